//! Where digits stand. Most texts have few, and most of those belong to nobody: one look over the
//! text tells which patterns need to be tried, and where.

use super::bank;
use super::cursor::{Cursor, Found};
use super::place;
use crate::privacy::letter::is_digit;

/// The shortest number of a kind, a social security number, has nine digits.
const DIGITS_MIN: usize = 9;
/// Bytes between two digits of one number: at most two separators, each a blank of any script.
const GAP_BYTES_MAX: usize = 6;
/// Bytes looked at together for a digit.
const LANE: usize = 32;

/// What one look over the text found.
pub(super) struct Survey {
    /// Where digits stand close enough together, and are enough, to be a number of one of the
    /// kinds.
    pub(super) clusters: Vec<Found>,
    /// Whether an IBAN may be there.
    pub(super) iban: bool,
    /// Whether a street address may be there.
    pub(super) address: bool,
    /// Whose digits there are.
    pub(super) digits: Digits,
}

/// The digits of a text. Masking adds none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Digits {
    /// Only `0` to `9`.
    Ascii,
    /// Those of other scripts too.
    AnyScript,
}

/// Looks over the text.
pub(super) fn survey(text: &str) -> Survey {
    if has_digits_of_other_scripts(text) {
        let digits = Digits::AnyScript;
        return Survey {
            clusters: std::iter::once(0..text.len()).collect(),
            iban: true,
            address: true,
            digits,
        };
    }
    let bytes = text.as_bytes();
    let digits = Digits::Ascii;
    let mut survey = Survey { clusters: Vec::new(), iban: false, address: false, digits };
    let mut open = (0..0, 0);
    for run in std::iter::successors(ascii_run(text, 0), |run| ascii_run(text, run.end)) {
        survey.iban = survey.iban || bank::may_start(bytes, &run);
        survey.address = survey.address || place::may_start(text, &run);
        let (cluster, digits) = &mut open;
        let gap = bytes.get(cluster.end..run.start).unwrap_or_default();
        let near = gap.len() <= GAP_BYTES_MAX && gap.iter().all(|byte| may_separate(*byte));
        if 0 < *digits && near {
            cluster.end = run.end;
            *digits += run.len();
            continue;
        }
        let done = std::mem::replace(&mut open, (run.clone(), run.len()));
        survey.clusters.extend(finished(bytes, done));
    }
    survey.clusters.extend(finished(bytes, open));
    survey
}

fn finished(bytes: &[u8], (cluster, digits): (Found, usize)) -> Option<Found> {
    let opener =
        cluster.start.checked_sub(1).filter(|at| matches!(bytes.get(*at), Some(b'+' | b'(')));
    let cluster = opener.unwrap_or(cluster.start)..cluster.end;
    let enough = DIGITS_MIN <= digits && is_grouped(bytes.get(cluster.clone()).unwrap_or_default());
    enough.then_some(cluster)
}

/// Whether the groups of digits may be those of a number: each kind has a group of three, or of five
/// and more, or two of four one after the other. Dates and times have not. Behind a `+` they may be of any length.
fn is_grouped(cluster: &[u8]) -> bool {
    if cluster.contains(&b'+') {
        return true;
    }
    let groups = cluster.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len);
    let mut before = 0;
    groups.filter(|length| 0 < *length).any(|length| {
        let twice = before == 4 && length == 4;
        before = length;
        twice || length == 3 || 5 <= length
    })
}

fn may_separate(byte: u8) -> bool {
    let blank = byte.is_ascii_whitespace() || matches!(byte, 0x0b | 0x1c..=0x1f);
    blank || !byte.is_ascii() || matches!(byte, b'.' | b'-' | b'(' | b')' | b'+')
}

/// The digits of other scripts start at U+0660, with these first bytes.
fn has_digits_of_other_scripts(text: &str) -> bool {
    let leads = |byte: u8| matches!(byte, 0xd9 | 0xdb | 0xdf | 0xe0 | 0xe1 | 0xea | 0xef | 0xf0);
    if text.is_ascii() || !text.as_bytes().iter().fold(false, |any, byte| any | leads(*byte)) {
        return false;
    }
    let starts = text.bytes().enumerate().filter(|(_, byte)| leads(*byte));
    let mut letters = starts.filter_map(|(at, _)| text.get(at..)?.chars().next());
    letters.any(is_digit)
}

/// Every run of digits.
pub(super) fn digit_runs(text: &str, digits: Digits) -> impl Iterator<Item = Found> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let run = match digits {
            Digits::Ascii => ascii_run(text, at),
            Digits::AnyScript => any_run(text, at),
        }?;
        at = run.end;
        Some(run)
    })
}

fn ascii_run(text: &str, at: usize) -> Option<Found> {
    let bytes = text.as_bytes();
    let start = at + first_digit(bytes.get(at..)?)?;
    let rest = bytes.get(start..)?;
    let length = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    Some(start..start + length)
}

fn any_run(text: &str, at: usize) -> Option<Found> {
    let start = at + text.get(at..)?.find(is_digit)?;
    Cursor::new(text, start).run(is_digit).map(|end| start..end.at)
}

/// Where the first digit stands. Whole lanes are skipped at once, most of a text has none.
fn first_digit(bytes: &[u8]) -> Option<usize> {
    let mut skipped = 0;
    for lane in bytes.chunks(LANE) {
        let any = lane.iter().fold(false, |any, byte| any | byte.is_ascii_digit());
        if any {
            return lane.iter().position(u8::is_ascii_digit).map(|at| skipped + at);
        }
        skipped += lane.len();
    }
    None
}
