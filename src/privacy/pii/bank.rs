//! IBANs: two capitals, two digits, then groups of four with or without blanks.

use super::cursor::{Cursor, Found};
use super::digit::{Digits, digit_runs};

/// Groups of four behind the check digits.
const GROUPS_MIN: usize = 2;
const GROUPS_MAX: usize = 7;
/// Letters and digits in an IBAN: Norway's is the shortest, the standard allows 34.
const LENGTH_MIN: usize = 15;
const LENGTH_MAX: usize = 34;

/// Whether an IBAN may start before these digits.
pub(super) fn may_start(bytes: &[u8], digits: &Found) -> bool {
    let capitals = digits.start.checked_sub(2).and_then(|start| bytes.get(start..digits.start));
    2 <= digits.len() && capitals.is_some_and(|both| both.iter().all(u8::is_ascii_uppercase))
}

/// Every IBAN in the text. What has the form but not the length is passed over as a whole.
pub(super) fn ibans(text: &str, digits: Digits) -> Vec<Found> {
    let mut found = Vec::new();
    let mut passed_to = 0;
    let bytes = text.as_bytes();
    for run in digit_runs(text, digits) {
        let Some(start) = run.start.checked_sub(2) else { continue };
        let capitals = bytes.get(start..run.start).unwrap_or_default();
        if start < passed_to || !capitals.iter().all(u8::is_ascii_uppercase) {
            continue;
        }
        let Some(end) = iban(text, start) else { continue };
        passed_to = end;
        let blanks = text.get(start..end).unwrap_or_default().matches(' ').count();
        let length = text.get(start..end).unwrap_or_default().chars().count() - blanks;
        if (LENGTH_MIN..=LENGTH_MAX).contains(&length) {
            found.push(start..end);
        }
    }
    found
}

fn is_code(letter: char) -> bool {
    letter.is_ascii_uppercase() || letter.is_ascii_digit()
}

/// Where the form that starts here ends: as many groups as there are, then a rest of up to four,
/// and no word behind it.
fn iban(text: &str, start: usize) -> Option<usize> {
    let start = Cursor::new(text, start);
    if !start.word_starts() {
        return None;
    }
    let mut groups = vec![start.exactly(2, |next| next.is_ascii_uppercase())?.digits(2)?];
    for _ in 0..GROUPS_MAX {
        let group = |cursor: &Cursor<'_>| {
            cursor.maybe(|next| next == ' ').exactly(4, is_code).map(|c| c.at)
        };
        let Some(end) = groups.last().and_then(group) else { break };
        groups.push(Cursor::new(text, end));
    }
    let whole = groups.get(GROUPS_MIN..).unwrap_or_default();
    whole.iter().rev().find_map(|group| {
        let spaced = group.maybe(|next| next == ' ');
        let rests = (1..=4).rev().filter_map(|count| spaced.exactly(count, is_code));
        rests.chain([*group]).find_map(Cursor::end).map(|end| end.at)
    })
}
