//! Redacted text, and the report of masked matches.

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

    /// Returns a piece; empty if `range` is not on character boundaries.
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

    /// Joins redacted pieces with literals of our own, which are not secret.
    pub fn weave(pieces: &[Woven<'_>]) -> Redacted {
        let length = pieces.iter().map(|piece| piece.as_str().len()).sum();
        let mut text = String::with_capacity(length);
        pieces.iter().for_each(|piece| text.push_str(piece.as_str()));
        Redacted::kept(text.into())
    }

    /// Restores text of our own store, journal or cassette, which was redacted when stored.
    pub fn reopened(text: String) -> Redacted {
        Redacted::kept(text.into())
    }
}

/// Replaces ranges of `text`, which are in order.
pub(super) fn spliced(
    text: &str,
    pieces: impl IntoIterator<Item = (Range<usize>, impl AsRef<str>)>,
) -> String {
    let mut spliced = String::with_capacity(text.len());
    let mut kept_to = 0;
    for (range, piece) in pieces {
        spliced.push_str(text.get(kept_to..range.start).unwrap_or_default());
        spliced.push_str(piece.as_ref());
        kept_to = range.end;
    }
    spliced.push_str(text.get(kept_to..).unwrap_or_default());
    spliced
}

/// Replacement for U+0000, as in CommonMark; PostgreSQL stores no text with U+0000.
const NUL_MARK: &str = "\u{fffd}";

/// Replaces every U+0000; `None` if there is none.
pub(super) fn without_nul(text: &str) -> Option<String> {
    memchr::memchr(0, text.as_bytes())?;
    Some(text.replace('\0', NUL_MARK))
}

/// A piece of text for [`Redacted::weave`].
#[derive(Clone, Copy, Debug)]
pub enum Woven<'a> {
    /// A literal of our own: label, mark, prompt.
    Ours(&'static str),
    /// Text of our own with ids, counts or names.
    Label(&'a str),
    /// Redacted text.
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
    /// For our own store, journal and cassettes only: see [`Redacted::reopened`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Redacted, D::Error> {
        String::deserialize(deserializer).map(Redacted::reopened)
    }
}

/// Rule names and match counts, never the masked values.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Matches by rule.
    pub counts: BTreeMap<&'static str, u64>,
    /// Opening private tags that were kept because they hide nothing.
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
