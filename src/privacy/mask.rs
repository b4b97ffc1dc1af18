//! The gate: masks private blocks, then secrets, then PII, before anything is cut.

use super::redacted::{Redacted, Report, without_nul};
use super::{Pii, block, pii, secret};
use std::borrow::Cow;

/// Parts of the gate to apply; only `annalist redact --only` applies fewer than all.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
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

const PRIVATE: &str = "private";

/// The redactor. It cannot be disabled; the PII patterns that it masks are configurable.
#[derive(Clone, Debug, Hash)]
pub struct Gate {
    pii: Vec<Pii>,
    only: Only,
}

impl Gate {
    /// Creates a gate that masks these kinds of personal data, besides private blocks and secrets.
    pub fn new(pii: &[Pii]) -> Gate {
        Gate { pii: pii.to_vec(), only: Only::Everything }
    }

    /// Restricts the gate to one part.
    pub fn only(mut self, only: Only) -> Gate {
        self.only = only;
        self
    }

    /// Redacts `raw`, and counts in `report` what was masked.
    ///
    /// Private blocks go first, then secrets, then personal data. Passes repeat until one masks
    /// nothing: masking a secret may reveal another, and redaction must be idempotent. U+0000
    /// becomes U+FFFD first, so that later stages see the same positions.
    pub fn redact_into(&self, raw: &str, report: &mut Report) -> Redacted {
        let text = without_nul(raw).map_or(Cow::Borrowed(raw), Cow::Owned);
        match self.masked(&text, report) {
            Cow::Owned(masked) => Redacted::kept(masked.into()),
            Cow::Borrowed(_) => Redacted::kept(text),
        }
    }

    /// Masks everything; borrowed if there was nothing to mask.
    pub(super) fn masked<'t>(&self, raw: &'t str, report: &mut Report) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(raw);
        // The next pass counts the remaining mentions again, so only its count is kept.
        let known = report.mentions;
        for _ in 0..block::PASSES_MAX {
            report.mentions = known;
            match self.pass(&text, report) {
                Some(masked) => text = Cow::Owned(masked),
                None => return text,
            }
        }
        // Only nested constructed tags get here; everything from the first tag on is dropped.
        if self.applies(Only::Private)
            && let Some(head) = block::before_first_tag(&text)
        {
            return Cow::Owned(head.to_owned());
        }
        text
    }

    /// Redacts `raw` without a report.
    pub fn redact(&self, raw: &str) -> Redacted {
        self.redact_into(raw, &mut Report::default())
    }

    fn applies(&self, part: Only) -> bool {
        self.only == Only::Everything || self.only == part
    }

    /// Runs one pass over the text; `None` if it changes nothing.
    fn pass(&self, raw: &str, report: &mut Report) -> Option<String> {
        let mut text = Cow::Borrowed(raw);
        if self.applies(Only::Private) {
            let found = block::PrivateText::find(raw);
            let mentions = found.remarks.iter().filter(|it| it.what == block::PRIVATE_MENTION);
            report.mentions += mentions.count() as u64;
            if !found.spans.is_empty() {
                report.add(PRIVATE, found.spans.len() as u64);
                text = found.left;
            }
        }
        if self.applies(Only::Secrets)
            && let Some(masked) = secret::mask(&text, report)
        {
            text = Cow::Owned(masked);
        }
        if self.applies(Only::Pii)
            && let Cow::Owned(masked) = pii::mask(&text, &self.pii, report)
        {
            text = Cow::Owned(masked);
        }
        match text {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        }
    }
}
