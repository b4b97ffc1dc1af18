//! Character classes for any script. Combining marks are not letters here, so that the PII patterns
//! match their published form.

use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{L}\z").ok());
static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{Nd}\z").ok());

fn is_in(class: &LazyLock<Option<Regex>>, letter: char) -> bool {
    let mut buffer = [0; 4];
    class.as_ref().is_some_and(|class| class.is_match(letter.encode_utf8(&mut buffer)))
}

/// A letter of any script.
pub(super) fn is_letter(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphabetic();
    }
    letter.is_alphabetic() && is_in(&LETTER, letter)
}

/// A decimal digit of any script.
pub(super) fn is_digit(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_digit();
    }
    letter.is_numeric() && is_in(&DIGIT, letter)
}

/// A letter, a number of any kind or an underscore.
pub(super) fn is_word(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric() || letter == '_';
    }
    letter.is_numeric() || is_letter(letter)
}

/// True for whitespace, including line ends and the four information separators.
pub(super) fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// Value of a decimal digit. Every script has its ten digits in sequence, zero first.
pub(super) fn digit_value(digit: char) -> u32 {
    if let Some(value) = digit.to_digit(10) {
        return value;
    }
    /// Longest run of digits in Unicode: five alphabets of mathematical digits.
    const RUN_MAX: u32 = 50;
    let code = u32::from(digit);
    let before = (1..=RUN_MAX)
        .take_while(|back| code.checked_sub(*back).and_then(char::from_u32).is_some_and(is_digit))
        .count();
    (before % 10) as u32
}

pub(super) type Span = Range<usize>;
