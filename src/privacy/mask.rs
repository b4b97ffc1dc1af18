//! The gate itself: private blocks, then secrets, then PII, before anything is cut.

use super::{Pii, block, pii, secret};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Text that may be stored and sent. Only the gate makes one, so whoever takes it cannot leak.
/// Copies share it: an entry of many megabytes stands in every slice that holds a part of it.
#[derive(Clone, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Redacted(Arc<str>);

impl Redacted {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A piece of it; `range` must lie on character boundaries, or the piece is empty.
    pub fn cut(&self, range: Range<usize>) -> Redacted {
        Redacted(self.0.get(range).unwrap_or_default().into())
    }

    /// What may be kept of `text`: the one way in, so that no path brings a U+0000 with it.
    fn kept(text: Cow<'_, str>) -> Redacted {
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

/// What stands for U+0000, as in CommonMark: PostgreSQL keeps no text that holds one.
const NUL_MARK: &str = "\u{fffd}";

/// The text with every U+0000 replaced; none if it has none.
fn without_nul(text: &str) -> Option<String> {
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

/// What the gate masked: rule names and counts, never values.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Matches by rule.
    pub counts: BTreeMap<&'static str, u64>,
    /// Opening tags of private blocks that were let through: they hide nothing.
    pub mentions: u64,
}

impl Report {
    /// Counts `count` more matches of `rule`.
    pub(super) fn add(&mut self, rule: &'static str, count: u64) {
        *self.counts.entry(rule).or_default() += count;
    }

    /// Matches of all rules.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// Which part of the gate to apply; everything but `annalist redact --only` applies all of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Only {
    /// All three.
    Everything,
    /// Private blocks.
    Private,
    /// Secrets.
    Secrets,
    /// Personal data.
    Pii,
}

/// The rule of private blocks in a [`Report`].
const PRIVATE: &str = "private";

/// The gate. It always stands; which PII patterns it masks is configurable.
#[derive(Clone, Debug)]
pub struct Gate {
    pii: Vec<Pii>,
    only: Only,
}

impl Gate {
    /// A gate that masks these kinds of personal data, besides private blocks and secrets.
    pub fn new(pii: &[Pii]) -> Gate {
        Gate { pii: pii.to_vec(), only: Only::Everything }
    }

    /// The same gate with one part of it.
    pub fn only(mut self, only: Only) -> Gate {
        self.only = only;
        self
    }

    /// Lets `raw` through, and counts in `report` what was masked.
    ///
    /// Private blocks go first, then secrets, then personal data. Where something was masked the
    /// text is looked at again until nothing more is found: what stood around a secret may show
    /// another, and so passing the gate twice changes nothing. Every U+0000 becomes U+FFFD before
    /// that, so that places in the text are the same from here on.
    pub fn redact_into(&self, raw: &str, report: &mut Report) -> Redacted {
        let mut text = without_nul(raw).map_or(Cow::Borrowed(raw), Cow::Owned);
        // Those that a pass leaves are seen again by the next: the last one counts.
        let known = report.mentions;
        for _ in 0..block::PASSES_MAX {
            report.mentions = known;
            match self.pass(&text, report) {
                Some(masked) => text = Cow::Owned(masked),
                None => return Redacted::kept(text),
            }
        }
        // Only tags made to appear out of each other get here; what follows the first is not let
        // out.
        if self.masks_private()
            && let Some(head) = block::before_first_tag(&text)
        {
            return Redacted::kept(head.into());
        }
        Redacted::kept(text)
    }

    /// Lets `raw` through.
    pub fn redact(&self, raw: &str) -> Redacted {
        self.redact_into(raw, &mut Report::default())
    }

    /// The names of all rules, as they appear in a [`Report`].
    pub fn rules() -> Vec<&'static str> {
        let kinds = Pii::ALL.iter().map(|kind| kind.name());
        [PRIVATE].into_iter().chain(secret::rules()).chain(kinds).collect()
    }

    fn masks_private(&self) -> bool {
        match self.only {
            Only::Everything | Only::Private => true,
            Only::Secrets | Only::Pii => false,
        }
    }

    /// One pass over the text; none if it changes nothing.
    fn pass(&self, raw: &str, report: &mut Report) -> Option<String> {
        let (secrets, pii) = match self.only {
            Only::Everything => (true, true),
            Only::Private => (false, false),
            Only::Secrets => (true, false),
            Only::Pii => (false, true),
        };
        let mut text = Cow::Borrowed(raw);
        if self.masks_private() {
            let block::Stripped { left, mentions } = block::strip_counted(&text);
            report.mentions += mentions;
            if let Some((public, count)) = left {
                report.add(PRIVATE, count);
                text = Cow::Owned(public);
            }
        }
        if secrets && let Some(masked) = secret::mask(&text, report) {
            text = Cow::Owned(masked);
        }
        if pii && let Cow::Owned(masked) = pii::mask(&text, &self.pii, report) {
            text = Cow::Owned(masked);
        }
        match text {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        }
    }
}
