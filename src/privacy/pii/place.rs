//! E-mail addresses and street addresses.

use super::cursor::{Cursor, Found};
use super::digit::{Digits, digit_runs};
use crate::privacy::letter::{is_alnum, is_digit, is_space, is_word};

/// Words between the house number and the kind of street.
const STREET_WORDS_MAX: usize = 3;

/// Every e-mail address in the text.
pub(super) fn emails(text: &str) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut passed_to = 0;
    for at in memchr::memchr_iter(b'@', text.as_bytes()) {
        let head = text.get(passed_to..at).unwrap_or_default();
        let name = head
            .trim_end_matches(|letter| is_word(letter) || matches!(letter, '.' | '%' | '+' | '-'));
        let start = passed_to + name.len();
        if start == at {
            continue;
        }
        if let Some(end) = domain_end(text, at + 1) {
            passed_to = end;
            found.push(start..end);
        }
    }
    found
}

/// A letter, or a number that is no digit.
fn is_top_letter(letter: char) -> bool {
    is_alnum(letter) && !is_digit(letter)
}

/// Where the domain that starts here ends: behind the last dot that two letters or more follow, and
/// then neither letter nor digit.
fn domain_end(text: &str, start: usize) -> Option<usize> {
    let domain = Cursor::new(text, start).run(|next| is_word(next) || matches!(next, '.' | '-'))?;
    let name = text.get(start..domain.at)?;
    name.rmatch_indices('.').filter(|(dot, _)| 0 < *dot).find_map(|(dot, _)| {
        let top = Cursor::new(text, start + dot + 1).exactly(2, is_top_letter)?;
        let end = top.run(is_top_letter).unwrap_or(top);
        (!end.peek().is_some_and(is_alnum)).then_some(end.at)
    })
}

/// Reads what follows a number and blanks: where the street ends.
pub(super) type Street = fn(Cursor<'_>) -> Option<usize>;

/// The three forms of a street address, one after the other.
pub(super) const STREETS: [Street; 3] = [long_street, short_street, one_word_street];

/// Whether these digits may be the number of a house.
pub(super) fn may_start(text: &str, digits: &Found) -> bool {
    let street = number_before_blanks(text, digits);
    street.is_some_and(|cursor| STREETS.iter().any(|street| street(cursor).is_some()))
}

/// In any case: `12 old mill road`. The Turkish i, a long s and a Kelvin sign are letters of their
/// other case.
fn long_street(start: Cursor<'_>) -> Option<usize> {
    let is_street_letter = |next: char| {
        next.is_ascii_alphabetic() || matches!(next, '\u{130}' | '\u{131}' | '\u{17f}' | '\u{212a}')
    };
    let word = |cursor: Cursor<'_>| Some(cursor.run(is_street_letter)?.blanks()?.at);
    words_then(start, word, &|cursor| {
        let kinds = ["street", "avenue", "road", "boulevard"];
        kinds.iter().find_map(|kind| in_any_case(cursor, kind)?.end().map(|end| end.at))
    })
}

fn in_any_case<'a>(cursor: Cursor<'a>, word: &str) -> Option<Cursor<'a>> {
    word.chars().try_fold(cursor, |cursor, wanted| {
        cursor
            .one(|next| next.eq_ignore_ascii_case(&wanted) || (wanted == 's' && next == '\u{17f}'))
    })
}

fn literally<'a>(cursor: Cursor<'a>, word: &str) -> Option<Cursor<'a>> {
    cursor.rest().starts_with(word).then_some(cursor.to(cursor.at + word.len()))
}

/// Capitalised: `12 Old Mill Rd.`
fn short_street(start: Cursor<'_>) -> Option<usize> {
    let word = |cursor: Cursor<'_>| {
        let first = cursor.one(|next| next.is_ascii_uppercase())?;
        Some(first.run(|next| next.is_ascii_alphabetic()).unwrap_or(first).blanks()?.at)
    };
    words_then(start, word, &|cursor| {
        let kinds = ["St", "Ave", "Rd", "Blvd"];
        let end = kinds.iter().find_map(|kind| literally(cursor, kind)?.end())?;
        Some(end.maybe(|next| next == '.').at)
    })
}

/// One word of any case, then a capitalised kind: `12 mill Rd`
fn one_word_street(start: Cursor<'_>) -> Option<usize> {
    let kind = start.run(|next| next.is_ascii_alphabetic())?.blanks()?;
    let kinds = ["Street", "St", "Avenue", "Ave", "Road", "Rd", "Boulevard", "Blvd"];
    kinds.iter().find_map(|word| literally(kind, word)?.end().map(|end| end.at))
}

/// As many words as possible, at most three, and then a kind of street.
fn words_then(
    start: Cursor<'_>,
    word: impl Fn(Cursor<'_>) -> Option<usize>,
    kind: &dyn Fn(Cursor<'_>) -> Option<usize>,
) -> Option<usize> {
    let mut cursor = start;
    let mut end = None;
    for _ in 0..STREET_WORDS_MAX {
        let Some(at) = word(cursor) else { break };
        cursor = cursor.to(at);
        end = kind(cursor).or(end);
    }
    end
}

/// Every place where a number and blanks are followed by such a street.
pub(super) fn addresses(text: &str, digits: Digits, street: Street) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut passed_to = 0;
    for run in digit_runs(text, digits) {
        if run.start < passed_to {
            continue;
        }
        if let Some(end) = number_before_blanks(text, &run).and_then(street) {
            passed_to = end;
            found.push(run.start..end);
        }
    }
    found
}

/// The place behind the blanks that follow a whole number, if a word starts there.
fn number_before_blanks<'a>(text: &'a str, run: &Found) -> Option<Cursor<'a>> {
    let after = Cursor::new(text, run.end);
    let blanks = after.peek().filter(|next| is_space(*next)).and_then(|_| after.blanks())?;
    blanks.peek().filter(|next| next.is_alphabetic())?;
    Cursor::new(text, run.start).word_starts().then_some(blanks)
}
