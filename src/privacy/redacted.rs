//! Redacted text, and the report of what was masked.

use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Text that may be stored and sent. Only the gate makes one, so whoever takes it cannot leak.
/// Copies share it: an entry of many megabytes stands in every slice that holds a part of it.
#[derive(schemars::JsonSchema, Clone, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Redacted(Arc<str>);

impl Redacted {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A piece of it; `range` must lie on character boundaries, or the piece is empty.
    pub fn cut(&self, range: Range<usize>) -> Redacted {
        Redacted(self.0.get(range).unwrap_or_default().into())
    }

    /// The only constructor; replaces U+0000.
    pub(super) fn kept(text: Cow<'_, str>) -> Redacted {
        match without_nul(&text) {
            Some(clean) => Redacted(clean.into()),
            None => Redacted(text.into()),
        }
    }

    /// Joins what has passed with words of our own, which are no secret.
    pub fn weave(pieces: &[Woven<'_>]) -> Redacted {
        let length = pieces.iter().map(|piece| piece.as_str().len()).sum();
        let mut text = String::with_capacity(length);
        pieces.iter().for_each(|piece| text.push_str(piece.as_str()));
        Redacted::kept(text.into())
    }

    /// Takes back what our own store, journal or cassette kept; it passed the gate on its way in.
    pub fn reopened(text: String) -> Redacted {
        Redacted::kept(text.into())
    }
}

/// Replacement for U+0000, as in CommonMark; PostgreSQL stores no text with U+0000.
const NUL_MARK: &str = "\u{fffd}";

/// The text with every U+0000 replaced; none if it has none.
pub(super) fn without_nul(text: &str) -> Option<String> {
    memchr::memchr(0, text.as_bytes())?;
    Some(text.replace('\0', NUL_MARK))
}

/// A piece for [`Redacted::weave`].
#[derive(Clone, Copy, Debug)]
pub enum Woven<'a> {
    /// Words of our own: labels, marks, prompts.
    Ours(&'static str),
    /// Words of our own with ids, counts or names in them.
    Label(&'a str),
    /// Text that has passed.
    Passed(&'a Redacted),
}

impl Woven<'_> {
    fn as_str(&self) -> &str {
        match self {
            Woven::Ours(text) => text,
            Woven::Label(text) => text,
            Woven::Passed(text) => text.as_str(),
        }
    }
}

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redacted({} bytes)", self.0.len())
    }
}

impl<'de> Deserialize<'de> for Redacted {
    /// Only for our own store, journal and cassettes: see [`Redacted::reopened`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Redacted, D::Error> {
        String::deserialize(deserializer).map(Redacted::reopened)
    }
}

/// Rule names and counts of what was masked, never values.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Matches by rule.
    pub counts: BTreeMap<&'static str, u64>,
    /// Opening tags of private blocks that were let through: they hide nothing.
    pub mentions: u64,
}

impl Report {
    pub(super) fn add(&mut self, rule: &'static str, count: u64) {
        *self.counts.entry(rule).or_default() += count;
    }

    /// Matches of all rules.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}
