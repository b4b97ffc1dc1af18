//! Lint of a directory: every rule has a stable name, a severity and a location.

mod check;
mod fix;
#[cfg(test)]
mod tests;

pub use check::lint;
pub(crate) use fix::fix;

use crate::domain::{MemoryId, MemoryState, Severity, Timestamp};
use crate::memory_dir::kind::Files;
use crate::privacy::Gate;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const FIXABLE: [&str; 7] = [
    "missing-heading", "missing-footer", "bad-tag", "private-unclosed", "duplicate-entry",
    "conflict-markers", "config-alias",
];

fn severity_of(rule: &str) -> Severity {
    match rule {
        "missing-file"
        | MISSING_FOLDER
        | "missing-title"
        | "adr-number-twice"
        | "adr-status"
        | "adr-successor-missing"
        | "bad-category"
        | "private-unclosed"
        | "conflict-markers"
        | "secret" => Severity::Error,
        "adr-number-gap" | "adr-slug" | "private-inline" | "over-total" | "config-alias"
        | "config-unused" => Severity::Info,
        _ => Severity::Warning,
    }
}

/// The files to check, and what they are checked against.
#[derive(Clone, Copy, Debug)]
pub struct Linting<'a> {
    /// The files.
    pub files: &'a Files,
    /// The state of every memory; `None` without a store.
    pub known: Option<&'a BTreeMap<MemoryId, MemoryState>>,
    /// Current date; later dates in files are wrong.
    pub today: Timestamp,
    /// Detects secrets and personal data.
    pub gate: &'a Gate,
}

/// Something wrong, with its place. Holds no words of the file that anybody would hide.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Issue {
    /// The file, relative to the directory.
    pub path: String,
    /// The line, from 1; 0 for the whole file.
    pub line: u32,
    /// The letter of the line, from 1; 0 for the whole line.
    pub column: u32,
    /// The rule's name.
    pub rule: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// Expectation and remedy, in one line.
    pub message: String,
    /// True if [`fix()`] repairs it.
    pub fixable: bool,
}

const MISSING_FOLDER: &str = "missing-folder";

impl Issue {
    /// A missing required folder; the files do not show it, because it may be empty.
    pub(crate) fn missing_folder(folder: &str) -> Issue {
        Issue {
            path: folder.to_owned(),
            line: 0,
            column: 0,
            rule: MISSING_FOLDER,
            severity: severity_of(MISSING_FOLDER),
            message: "expected this folder: `annalist memory init` makes it".to_owned(),
            fixable: false,
        }
    }
}

/// Formats one line per issue: `path:line:column: severity: message [rule]`.
pub fn print_text(issues: &[Issue]) -> String {
    let mut page = String::new();
    for issue in issues {
        page.push_str(&issue.path);
        for number in [issue.line, issue.column].into_iter().take_while(|number| *number > 0) {
            // Writing to a string never fails.
            let _ = write!(page, ":{number}");
        }
        let severity = match issue.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let _ = writeln!(page, ": {severity}: {} [{}]", issue.message, issue.rule);
    }
    page
}
