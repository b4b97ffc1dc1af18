//! Character classes for any script. Combining marks are not letters here, so that the PII patterns
//! match their published form. And a cursor over text that advances only over matching characters:
//! the patterns spell out their few alternatives, so no backtracking is needed.

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

/// A letter or a number of any kind.
pub(super) fn is_alnum(letter: char) -> bool {
    letter != '_' && is_word(letter)
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

#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Cursor<'a> {
        Cursor { text, at }
    }

    pub(super) fn to(self, at: usize) -> Cursor<'a> {
        Cursor { at, ..self }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            Some(_) | None => self.rest().chars().next(),
        }
    }

    pub(super) fn before(&self) -> Option<char> {
        self.text.get(..self.at).and_then(|head| head.chars().next_back())
    }

    /// Returns whether the cursor is at the start of a word.
    pub(super) fn word_starts(&self) -> bool {
        !self.before().is_some_and(is_word)
    }

    /// Returns whether the cursor is at the end of a word.
    pub(super) fn word_ends(&self) -> bool {
        !self.peek().is_some_and(is_word)
    }

    pub(super) fn one(self, fits: impl Fn(char) -> bool) -> Option<Cursor<'a>> {
        let next = self.peek().filter(|next| fits(*next))?;
        Some(Cursor { at: self.at + next.len_utf8(), ..self })
    }

    pub(super) fn char(self, wanted: char) -> Option<Cursor<'a>> {
        self.one(|next| next == wanted)
    }

    /// Consumes one matching character, if there is one.
    pub(super) fn maybe(self, fits: impl Fn(char) -> bool) -> Cursor<'a> {
        self.one(fits).unwrap_or(self)
    }

    /// Consumes exactly `count` matching characters.
    pub(super) fn exactly(self, count: usize, fits: impl Fn(char) -> bool) -> Option<Cursor<'a>> {
        (0..count).try_fold(self, |cursor, _| cursor.one(&fits))
    }

    pub(super) fn digits(self, count: usize) -> Option<Cursor<'a>> {
        self.exactly(count, is_digit)
    }

    /// Consumes all matching characters, at least one.
    pub(super) fn run(self, fits: impl Fn(char) -> bool) -> Option<Cursor<'a>> {
        let rest = self.rest();
        let length = rest.find(|next| !fits(next)).unwrap_or(rest.len());
        (0 < length).then_some(Cursor { at: self.at + length, ..self })
    }

    /// Consumes all blanks, at least one.
    pub(super) fn blanks(self) -> Option<Cursor<'a>> {
        self.run(is_space)
    }

    /// Returns the cursor itself if it is at the end of a word.
    pub(super) fn end(self) -> Option<Cursor<'a>> {
        self.word_ends().then_some(self)
    }
}
