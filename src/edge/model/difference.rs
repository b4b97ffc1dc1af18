//! In which lines two messages differ, for a person: some lines around each change, no more than fit a screen.

use std::fmt::Write;

/// Pairs of lines that are compared at most; of longer stretches all goes and all comes.
const PAIRS_MAX: usize = 1_000_000;
/// Lines that are shown at most.
const LINES_MAX: usize = 40;
/// Lines that stay and are shown on either side of a change.
const AROUND: usize = 1;
/// Letters of a line that are shown.
const LETTERS_MAX: usize = 100;
/// Letters before the place where a long line changes that are shown: prompts have a paragraph a line.
const BEFORE: usize = 20;

/// The lines that go with a `-`, those that come with a `+`, and some of those that stay around them.
pub fn difference(before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev());
    let tail = tail.take_while(same).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let mut script: Vec<(char, &str)> = Vec::new();
    let from = head.saturating_sub(AROUND);
    script.extend(old.get(from..head).unwrap_or_default().iter().map(|line| (' ', *line)));
    let (gone, come) = (old.get(head..old_end), new.get(head..new_end));
    script.extend(changes(gone.unwrap_or_default(), come.unwrap_or_default()));
    let end = (old_end + AROUND).min(old.len());
    script.extend(old.get(old_end..end).unwrap_or_default().iter().map(|line| (' ', *line)));
    page(&script)
}

/// The script as text: of what stays only what is beside a change, and no more than [`LINES_MAX`] lines.
fn page(script: &[(char, &str)]) -> String {
    let changed = |at: usize| script.get(at).is_some_and(|(mark, _)| *mark != ' ');
    let near = |at: usize| (at.saturating_sub(AROUND)..=at + AROUND).any(changed);
    let begins = begins(script);
    let (mut page, mut shown, mut left_out) = (String::new(), 0, false);
    for (at, ((mark, line), from)) in script.iter().zip(begins).enumerate() {
        if shown == LINES_MAX {
            let rest = script.iter().skip(at).filter(|(mark, _)| *mark != ' ').count();
            // Writing to a string cannot fail.
            let _ = writeln!(page, "  … {rest} more lines that differ");
            break;
        }
        if !near(at) {
            if !left_out {
                page.push_str("  …\n");
            }
            left_out = true;
            continue;
        }
        left_out = false;
        shown += 1;
        let before = if from > 0 { "…" } else { "" };
        let short: String = line.chars().skip(from).take(LETTERS_MAX).collect();
        let more = if from + LETTERS_MAX < line.chars().count() { "…" } else { "" };
        let _ = writeln!(page, "{mark} {before}{short}{more}");
    }
    page
}

/// The letter from which each line is shown: where a line takes the place of another and both begin alike,
/// a little before they differ.
fn begins(script: &[(char, &str)]) -> Vec<usize> {
    let mut begins = vec![0; script.len()];
    let mut at = 0;
    // Each round passes one run of lines at least.
    while at < script.len() {
        let run = |mark: char, from: usize| {
            script.iter().skip(from).take_while(|(it, _)| *it == mark).count()
        };
        let gone = run('-', at);
        let come = run('+', at + gone);
        for (old, new) in (at..at + gone).zip(at + gone..at + gone + come) {
            let (Some((_, one)), Some((_, other))) = (script.get(old), script.get(new)) else {
                continue;
            };
            let alike = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
            let alike = alike.count();
            let long = one.chars().count().max(other.chars().count()) > LETTERS_MAX;
            for place in [old, new] {
                if let (Some(begin), true) = (begins.get_mut(place), long) {
                    *begin = alike.saturating_sub(BEFORE);
                }
            }
        }
        at += (gone + come).max(1);
    }
    begins
}

/// The shortest way from `old` to `new`: `-` goes, `+` comes, a blank stays.
fn changes<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    let goes = |line: &&'t str| ('-', *line);
    let comes = |line: &&'t str| ('+', *line);
    if PAIRS_MAX < old.len().saturating_mul(new.len()) {
        return old.iter().map(goes).chain(new.iter().map(comes)).collect();
    }
    // How many lines the rest of `old` from `i` on and that of `new` from `j` on share, in order.
    let width = new.len() + 1;
    let mut shared = vec![0_u32; (old.len() + 1) * width];
    let at = |i: usize, j: usize| i * width + j;
    let read = |shared: &[u32], i, j| shared.get(at(i, j)).copied().unwrap_or_default();
    for (i, one) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            let most = match one == other {
                true => read(&shared, i + 1, j + 1) + 1,
                false => read(&shared, i + 1, j).max(read(&shared, i, j + 1)),
            };
            if let Some(place) = shared.get_mut(at(i, j)) {
                *place = most;
            }
        }
    }
    let (mut i, mut j, mut script) = (0, 0, Vec::new());
    // Every step takes a line of one of them.
    for _ in 0..old.len() + new.len() {
        match (old.get(i), new.get(j)) {
            (Some(one), Some(other)) if one == other => {
                script.push((' ', *one));
                (i, j) = (i + 1, j + 1);
            }
            (Some(one), other)
                if other.is_none() || read(&shared, i, j + 1) <= read(&shared, i + 1, j) =>
            {
                script.push(goes(one));
                i += 1;
            }
            (_, Some(other)) => {
                script.push(comes(other));
                j += 1;
            }
            (Some(_) | None, None) => break,
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &str) {
        assert_eq!(difference(before, after), expected);
    }

    #[test]
    fn what_stays_is_shown_beside_a_change_only() {
        check("a\nb\nc\nd\ne", "a\nb\nx\nd\ne", "  b\n- c\n+ x\n  d\n");
        check("a\nb", "a\nb", "");
        check("", "a", "+ a\n");
        check("a\nb\nc\nd\ne\nf\ng", "x\nb\nc\nd\ne\nf\ny", "- a\n+ x\n  b\n  …\n  f\n- g\n+ y\n");
    }

    #[test]
    fn a_long_difference_ends_with_the_number_of_lines_that_are_left() {
        let lines = |mark: &str| (0..100).map(|n| format!("{mark}{n}\n")).collect::<String>();
        let page = difference(&lines("a"), &lines("b"));
        assert_eq!(page.lines().count(), LINES_MAX + 1);
        assert!(page.ends_with("  … 160 more lines that differ\n"), "{page}");
        let long = difference("a", &"ş".repeat(LETTERS_MAX + 1));
        assert_eq!(long, format!("- a\n+ {}…\n", "ş".repeat(LETTERS_MAX)));
    }

    #[test]
    fn a_long_line_is_shown_from_where_it_changes() {
        let lead = "x".repeat(200);
        let page = difference(&format!("{lead} months on"), &format!("{lead} years on"));
        let lead = "x".repeat(BEFORE - 1);
        assert_eq!(page, format!("- …{lead} months on\n+ …{lead} years on\n"));
    }

    proptest::proptest! {
        /// Whoever follows the marks comes from one text to the other.
        #[test]
        fn a_script_leads_from_one_to_the_other(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
            let script = changes(&old, &new);
            let kept = |without: char| -> Vec<&str> {
                script.iter().filter(|(mark, _)| *mark != without).map(|(_, line)| *line).collect()
            };
            assert_eq!((kept('+'), kept('-')), (old, new));
        }
    }
}
