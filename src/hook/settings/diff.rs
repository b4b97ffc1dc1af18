//! What changes in a settings file, for a person to read before it is written.

use crate::privacy::{Gate, Redacted};

/// Pairs of lines that are compared at most: a file of ours has some hundred lines, and one of many
/// thousand is shown as one change.
const PAIRS_MAX: usize = 1_000_000;

/// The lines that go with a `-`, the lines that come with a `+`, and `…` for those that stay: they may
/// hold keys of other programs, and are nobody's business here.
pub fn changes(before: &str, after: &str, gate: &Gate) -> Redacted {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut page = String::new();
    let mut shown = |mark: char, line: &str| match mark {
        ' ' if page.ends_with("…\n") => {}
        ' ' => page.push_str("  …\n"),
        mark => page.extend([mark, ' '].into_iter().chain(line.chars()).chain(['\n'])),
    };
    if head > 0 {
        shown(' ', "");
    }
    for (mark, line) in script(old, new) {
        shown(mark, line);
    }
    if tail > 0 {
        shown(' ', "");
    }
    gate.redact(&page)
}

/// The shortest way from `old` to `new`: `-` goes, `+` comes, a blank stays.
fn script<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    let lengths = lengths(old, new);
    let left = |i: usize, j: usize| -> u32 {
        lengths.get(i).and_then(|row| row.get(j)).copied().unwrap_or_default()
    };
    let (mut i, mut j, mut script) = (0, 0, Vec::new());
    // Every step takes a line of one of them.
    for _ in 0..old.len() + new.len() {
        match (old.get(i), new.get(j)) {
            (Some(one), Some(other)) if one == other && !lengths.is_empty() => {
                script.push((' ', *one));
                (i, j) = (i + 1, j + 1);
            }
            (Some(one), other) if other.is_none() || left(i, j + 1) <= left(i + 1, j) => {
                script.push(('-', *one));
                i += 1;
            }
            (_, Some(other)) => {
                script.push(('+', *other));
                j += 1;
            }
            (Some(_) | None, None) => break,
        }
    }
    script
}

/// How many lines the rest of `old` from `i` on and the rest of `new` from `j` on share, in order; nothing
/// where that takes too long.
fn lengths(old: &[&str], new: &[&str]) -> Vec<Vec<u32>> {
    if PAIRS_MAX < old.len().saturating_mul(new.len()) {
        return Vec::new();
    }
    let mut rows = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            rows[i][j] = match old[i] == new[j] {
                true => rows[i + 1][j + 1] + 1,
                false => rows[i + 1][j].max(rows[i][j + 1]),
            };
        }
    }
    rows
}
