//! Hand-written pattern matching: a cursor that advances only over matching characters. The
//! patterns spell out their few alternatives, so no backtracking is needed.

use crate::privacy::letter::{is_digit, is_space, is_word};
use std::ops::Range;

/// Byte range of a match.
pub(super) type Span = Range<usize>;

/// A position in a text.
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

    /// Consumes one matching character.
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
