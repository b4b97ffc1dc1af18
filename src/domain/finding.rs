//! One problem with content. Bad content is a finding, never an error; the rest goes on.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Severity of a finding.
#[derive(
    Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, schemars::JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; nothing was lost.
    Info,
    /// Something was repaired or left out.
    Warning,
    /// Something could not be used.
    Error,
}

/// A rule, a place and a sentence. The sentence holds no words of any conversation.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// The rule's stable name, such as `bad-line`.
    pub rule: Cow<'static, str>,
    /// Where: a line of the file from 1, or 0 for the whole.
    pub line: u32,
    /// The expectation, for a person to read.
    pub detail: String,
}

impl Finding {
    /// Creates a finding of `rule` at `line`.
    pub fn new(
        severity: Severity,
        rule: &'static str,
        line: u32,
        detail: impl Into<String>,
    ) -> Finding {
        Finding { severity, rule: Cow::Borrowed(rule), line, detail: detail.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{} [{}]", self.detail, self.rule)
    }
}
