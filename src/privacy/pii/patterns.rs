//! Patterns of personal data. One pass over the digits of a text selects the patterns to try.

use crate::privacy::letter::{Span, is_digit, is_space, is_word};
use regex::Regex;
use std::sync::LazyLock;

/// The shortest number, a social security number, has nine digits.
const DIGITS_MIN: usize = 9;
/// Maximum bytes between two digits of one number: two separators, each a blank of any script.
const GAP_BYTES_MAX: usize = 6;

pub(super) struct Survey {
    /// Groups of nearby digits that are long enough to be a number of some kind.
    pub(super) clusters: Vec<Span>,
    pub(super) iban: bool,
    pub(super) address: bool,
}

pub(super) fn survey(text: &str) -> Survey {
    if has_digits_of_other_scripts(text) {
        let clusters = std::iter::once(0..text.len()).collect();
        return Survey { clusters, iban: true, address: true };
    }
    let bytes = text.as_bytes();
    let mut survey = Survey { clusters: Vec::new(), iban: false, address: false };
    let mut open = (0..0, 0);
    for run in std::iter::successors(ascii_run(text, 0), |run| ascii_run(text, run.end)) {
        survey.iban = survey.iban || may_start_iban(bytes, &run);
        survey.address = survey.address || may_start_address(text, &run);
        let (cluster, digits) = &mut open;
        let gap = bytes.get(cluster.end..run.start).unwrap_or_default();
        let near = gap.len() <= GAP_BYTES_MAX && gap.iter().all(|byte| may_separate(*byte));
        if 0 < *digits && near {
            cluster.end = run.end;
            *digits += run.len();
            continue;
        }
        let (done, digits) = std::mem::replace(&mut open, (run.clone(), run.len()));
        survey.clusters.extend(finished(bytes, done, digits));
    }
    survey.clusters.extend(finished(bytes, open.0, open.1));
    survey
}

fn finished(bytes: &[u8], cluster: Span, digits: usize) -> Option<Span> {
    let opener =
        cluster.start.checked_sub(1).filter(|at| matches!(bytes.get(*at), Some(b'+' | b'(')));
    let cluster = opener.unwrap_or(cluster.start)..cluster.end;
    let enough = DIGITS_MIN <= digits && is_grouped(bytes.get(cluster.clone()).unwrap_or_default());
    enough.then_some(cluster)
}

/// Returns whether the groups may form a number: each kind has a group of three or at least five,
/// or two adjacent ones of four; dates and times do not. After a `+`, any groups may.
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

/// Digits of other scripts start at U+0660, with these lead bytes.
fn has_digits_of_other_scripts(text: &str) -> bool {
    let leads = |byte: u8| matches!(byte, 0xd9 | 0xdb | 0xdf | 0xe0 | 0xe1 | 0xea | 0xef | 0xf0);
    if text.is_ascii() || !text.as_bytes().iter().fold(false, |any, byte| any | leads(*byte)) {
        return false;
    }
    let starts = text.bytes().enumerate().filter(|(_, byte)| leads(*byte));
    let mut letters = starts.filter_map(|(at, _)| text.get(at..)?.chars().next());
    letters.any(is_digit)
}

/// Runs of digits of any script.
fn digit_runs(text: &str) -> impl Iterator<Item = Span> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text.get(at..)?.find(is_digit)?;
        at = text[start..].find(|next| !is_digit(next)).map_or(text.len(), |end| start + end);
        Some(start..at)
    })
}

fn ascii_run(text: &str, at: usize) -> Option<Span> {
    let rest = text.as_bytes().get(at..)?;
    let start = rest.iter().position(u8::is_ascii_digit)?;
    let length = rest[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(at + start..at + start + length)
}

fn starts_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(is_word)
}

/// Country, check digits, two to seven groups of four and a rest.
static IBAN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let groups =
        r"\A([A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?)(?:\z|[^\p{L}\p{N}_])";
    Regex::new(groups).ok()
});
/// Characters in an IBAN: Norway's is the shortest, the standard allows 34.
const IBAN_LENGTH_MIN: usize = 15;
const IBAN_LENGTH_MAX: usize = 34;

/// Returns whether an IBAN may start before these digits.
fn may_start_iban(bytes: &[u8], digits: &Span) -> bool {
    let capitals = digits.start.checked_sub(2).and_then(|start| bytes.get(start..digits.start));
    2 <= digits.len() && capitals.is_some_and(|both| both.iter().all(u8::is_ascii_uppercase))
}

/// Finds IBANs. A match of the wrong length is skipped whole.
pub(super) fn ibans(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut passed_to = 0;
    for run in digit_runs(text) {
        let Some(start) = run.start.checked_sub(2).filter(|start| passed_to <= *start) else {
            continue;
        };
        let is_begun = text.is_char_boundary(start) && starts_word(text, start);
        let rest = text.get(start..).filter(|_| is_begun).unwrap_or_default();
        let Some(iban) = group_end(&IBAN, rest).and_then(|end| rest.get(..end)) else { continue };
        passed_to = start + iban.len();
        let length = iban.chars().filter(|letter| *letter != ' ').count();
        if (IBAN_LENGTH_MIN..=IBAN_LENGTH_MAX).contains(&length) {
            found.push(start..passed_to);
        }
    }
    found
}

/// End of the group of a pattern at the start of `text`.
fn group_end(pattern: &Option<Regex>, text: &str) -> Option<usize> {
    let groups = pattern.as_ref()?.captures(text)?;
    groups.iter().skip(1).flatten().next().map(|group| group.end())
}

/// Rest of a domain: up to the last dot that at least two letters follow, then neither letter nor digit.
static DOMAIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let letter = r"[\p{L}\p{Nl}\p{No}]";
    Regex::new(&format!(r"\A([\p{{L}}\p{{N}}_.-]+\.{letter}{{2,}})(?:\z|[^\p{{L}}\p{{N}}])")).ok()
});

pub(super) fn emails(text: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let mut passed_to = 0;
    for at in memchr::memchr_iter(b'@', text.as_bytes()) {
        let head = text.get(passed_to..at).unwrap_or_default();
        let name = head
            .trim_end_matches(|letter| is_word(letter) || matches!(letter, '.' | '%' | '+' | '-'));
        let start = passed_to + name.len();
        if start == at {
            continue;
        }
        if let Some(end) = group_end(&DOMAIN, &text[at + 1..]) {
            passed_to = at + 1 + end;
            found.push(start..passed_to);
        }
    }
    found
}

/// What follows a house number: blanks, at most three words and a street type. In matching order: in any case
/// (`12 old mill road`), capitalised (`12 Old Mill Rd.`), one word in any case and a capitalised type (`12 mill Rd`).
pub(super) static STREETS: LazyLock<[Option<Regex>; 3]> = LazyLock::new(|| {
    let (blanks, end) = (r"[\s\x1c-\x1f]+", r"(?:\z|[^\p{L}\p{N}_])");
    // Dotless i, long s and the Kelvin sign fold to ASCII letters.
    let word = r"[A-Za-z\x{130}\x{131}\x{17f}\x{212a}]+";
    let long = format!("((?:{word}{blanks}){{1,3}}(?i:street|avenue|road|boulevard)){end}");
    let short = format!("(?:[A-Z][A-Za-z]*{blanks}){{1,3}}(?:St|Ave|Rd|Blvd)");
    let short = format!(r"(?:({short}\.)|({short}){end})");
    let kinds = "Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd";
    let one_word = format!("([A-Za-z]+{blanks}(?:{kinds})){end}");
    [long, short, one_word].map(|street| Regex::new(&format!(r"\A{blanks}{street}")).ok())
});

/// Returns whether these digits may be a house number.
fn may_start_address(text: &str, digits: &Span) -> bool {
    STREETS.iter().any(|street| address(text, digits, street).is_some())
}

/// End of the address whose house number these digits are.
fn address(text: &str, digits: &Span, street: &Option<Regex>) -> Option<usize> {
    let rest = &text[digits.end..];
    let is_number = rest.starts_with(is_space) && starts_word(text, digits.start);
    Some(digits.end + is_number.then(|| group_end(street, rest))??)
}

/// Finds every number that is followed by blanks and such a street.
pub(super) fn addresses(text: &str, street: &Option<Regex>) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    for run in digit_runs(text) {
        if found.last().is_none_or(|last| last.end <= run.start)
            && let Some(end) = address(text, &run, street)
        {
            found.push(run.start..end);
        }
    }
    found
}

const ID_BYTES: usize = 36;
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// The clusters without UUIDs.
pub(super) fn outside(text: &str, clusters: Vec<Span>) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut outside = Vec::with_capacity(clusters.len());
    for cluster in clusters {
        let mut kept_to = cluster.start;
        // A UUID may start before the cluster, with letters.
        let from = cluster.start.saturating_sub(ID_BYTES);
        let near = bytes.get(from..cluster.end).unwrap_or_default();
        let mut id_end = 0;
        for dash in memchr::memchr_iter(b'-', near) {
            let Some(start) = (from + dash).checked_sub(8).filter(|start| id_end <= *start) else {
                continue;
            };
            if !is_id(text, start) {
                continue;
            }
            id_end = start + ID_BYTES;
            outside.extend(trimmed(text, kept_to..start));
            kept_to = kept_to.max(id_end);
        }
        outside.extend(trimmed(text, kept_to..cluster.end));
    }
    outside
}

/// Drops everything before the first digit or opener, so that no digit of a UUID is adjacent.
fn trimmed(text: &str, piece: Span) -> Option<Span> {
    let digits = text.get(piece.clone())?;
    let opens = |letter| is_digit(letter) || letter == '+' || letter == '(';
    let start = piece.start + digits.find(opens)?;
    Some(start..piece.end)
}

/// Returns whether a UUID starts here, with word boundaries on both sides.
fn is_id(text: &str, start: usize) -> bool {
    let end = start + ID_BYTES;
    let fits = |(at, byte): (usize, &u8)| match DASHES.contains(&at) {
        true => *byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    let id = text.as_bytes().get(start..end);
    id.is_some_and(|id| id.iter().enumerate().all(fits))
        && starts_word(text, start)
        && !text[end..].starts_with(is_word)
}
