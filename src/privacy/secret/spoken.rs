//! Secrets in sentences of any language: a distinctive word near the word for a password, or a
//! token after a word such as `is`.

use super::scan::Scan;
use super::{value, words};
use std::ops::Range;

/// Bytes before and after the name that are read.
const NEAR_MAX: usize = 80;
/// Minimum length of a token in a sentence.
const TOKEN_MIN: usize = 24;
/// Punctuation around a word.
const AROUND: &[char] = &['.', ':', '!', '?', '(', ')', '[', ']', '*', '-'];

/// Masks the secrets near the name at `at`, within its line.
pub(super) fn told(scan: &mut Scan<'_>, at: Range<usize>) {
    let name = scan.piece(at.clone()).to_lowercase();
    // `password=`, `password.len`, `db_password` and `tokens` are different names.
    let goes_on = |byte: u8| b"_-=(/".contains(&byte) || byte.is_ascii_alphanumeric();
    let member = scan.byte(at.end) == b'.' && goes_on(scan.byte(at.end + 1));
    let is_code =
        member || goes_on(scan.byte(at.end)) || matches!(scan.before(at.start), b'_' | b'-' | b'.');
    if name.is_ascii() && (is_code || !scan.word_starts(at.start)) {
        return;
    }
    let is_token = words::phrases("told-tokens").contains(&name.as_str());
    let from = scan.line_start(at.start, NEAR_MAX);
    let text = scan.piece(from..scan.line_end(at.end, NEAR_MAX));
    let is_told = |place: usize, word: &str| match is_token {
        true => at.end <= from + place && is_linked(text, place) && is_told_token(word),
        false => value::is_strong(word) && (!is_numbered(word) || is_linked(text, place)),
    };
    let told = pieces(text).filter(|(place, word)| is_told(*place, word));
    let told: Vec<Range<usize>> =
        told.map(|(place, word)| from + place..from + place + word.len()).collect();
    told.into_iter().for_each(|it| scan.add_hit(it));
}

/// Words of ASCII letters and marks, with their positions.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let parts = |letter: char| !letter.is_ascii_graphic() || "\"'`,;<>".contains(letter);
    let mut end = 0;
    text.split_inclusive(parts).filter_map(move |piece| {
        end += piece.len();
        let word = piece.trim_end_matches(parts).trim_start_matches(AROUND);
        let start = end - piece.len() + piece.trim_end_matches(parts).len() - word.len();
        Some((start, word.trim_end_matches(AROUND))).filter(|(_, word)| !word.is_empty())
    })
}

/// Returns whether `is` or a colon precedes the word at `place`.
fn is_linked(text: &str, place: usize) -> bool {
    let quotes = |letter: char| letter.is_whitespace() || "\"'`«„“「*".contains(letter);
    let before = text.get(..place).unwrap_or_default().trim_end_matches(quotes);
    let word = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    before.ends_with([':', '：', '—', '–', '是', 'は', '为', '為'])
        || words::VERBS.contains(word.as_str())
}

/// Returns whether the word may denote an issue or a line of a file: `annalist#12`, `auth.md#L12`.
fn is_numbered(word: &str) -> bool {
    let Some((name, place)) = word.split_once('#') else { return false };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    name.bytes().all(plain)
        && (name.contains('.') || place.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True for a long word of upper-case letters, lower-case letters and digits.
fn is_told_token(word: &str) -> bool {
    let has = |fits: fn(&u8) -> bool| word.bytes().filter(fits).count();
    TOKEN_MIN <= word.len()
        && 2 < has(u8::is_ascii_digit)
        && 2 < has(u8::is_ascii_uppercase)
        && 2 < has(u8::is_ascii_lowercase)
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
