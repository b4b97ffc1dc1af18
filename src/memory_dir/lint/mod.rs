//! What is wrong with a directory: every rule has a stable name, a severity and a place.

mod content;
mod fix;
mod print;
mod record;
mod rule;
mod structure;
mod tags;
#[cfg(test)]
mod tests;

pub use fix::{fix, fix_rule};
pub use print::{print_json, print_sarif, print_text};
pub use rule::{RULES, Rule};

use super::Files;
use super::config::MemoryConfig;
use super::document::Document;
use super::kind::{CONFIG, Kind};
use super::line::Line;
use crate::domain::{Finding, MemoryId, MemoryState, Severity, Timestamp};
use crate::privacy::Gate;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is checked, and by what.
#[derive(Clone, Copy, Debug)]
pub struct Linting<'a> {
    /// The files.
    pub files: &'a Files,
    /// The memories that there are, and whether they are in use; none where nobody can say.
    pub known: Option<&'a BTreeMap<MemoryId, MemoryState>>,
    /// Dates behind it are wrong.
    pub today: Timestamp,
    /// Finds secrets and personal data.
    pub gate: &'a Gate,
}

/// Something wrong, with its place. Holds no words of the file that anybody would hide.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Issue {
    /// The file, relative to the directory.
    pub path: String,
    /// The line, from 1; 0 for the whole file.
    pub line: u32,
    /// The letter of the line, from 1; 0 for the whole line.
    pub column: u32,
    /// The rule's name.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was expected and what to do, in one line.
    pub message: String,
    /// Whether [`fix()`] repairs it.
    pub fixable: bool,
}

/// Checks a directory; the issues are in the order of files and lines. Of a private file nothing is read.
pub fn lint(linting: &Linting<'_>) -> Vec<Issue> {
    let mut report = Report { path: "", issues: Vec::new() };
    structure::required(linting.files, &mut report);
    record::all(linting, &mut report);
    for (path, text) in linting.files {
        file(path, text, linting, &mut report);
    }
    content::total(linting, &mut report);
    let mut issues = report.issues;
    keep_fixable(&mut issues, linting);
    issues.sort();
    issues.dedup();
    issues
}

/// Checks what stands in a file.
fn file<'a>(path: &'a str, text: &str, linting: &Linting<'_>, report: &mut Report<'a>) {
    report.path = path;
    let (document, odd) = Document::parse(Kind::of_path(path), text);
    if document.is_private() {
        return;
    }
    odd.iter().for_each(|finding| report.finding(finding));
    structure::check(&document, linting, report);
    tags::check(&document, linting, report);
    content::check(&document, linting, report);
    if path == CONFIG {
        let (_, odd) = MemoryConfig::parse(text);
        let of_config = odd.iter().filter(|finding| finding.rule.starts_with("config-"));
        of_config.for_each(|finding| report.finding(finding));
    }
}

/// Says of the issues that could be repaired only what is: a rule says that its like can be, not that this one is. So
/// each file is repaired as [`fix()`] does it, and what is left then was promised in vain.
fn keep_fixable(issues: &mut [Issue], linting: &Linting<'_>) {
    let promised = issues.iter().filter(|issue| issue.fixable);
    let paths: BTreeSet<String> = promised.map(|issue| issue.path.clone()).collect();
    for path in paths {
        let Some(text) = linting.files.get(&path) else { continue };
        let fixed = fix::fix_file(&path, text, linting);
        let mut after = Report { path: "", issues: Vec::new() };
        file(&path, &fixed, linting, &mut after);
        let mut left: HashMap<Sameness<'_>, usize> = HashMap::new();
        for issue in after.issues.iter().filter(|issue| issue.fixable) {
            *left.entry(sameness(issue, &fixed)).or_default() += 1;
        }
        for issue in issues.iter_mut().filter(|issue| issue.fixable && issue.path == path) {
            let is_left = left.get_mut(&sameness(issue, text)).filter(|left| 0 < **left);
            if let Some(left) = is_left {
                *left -= 1;
                issue.fixable = false;
            }
        }
    }
}

/// Rule, message and words of its line: what is the same of an issue where the lines above it have changed.
type Sameness<'t> = (&'static str, String, &'t str);

fn sameness<'t>(issue: &Issue, text: &'t str) -> Sameness<'t> {
    let line = (issue.line as usize).checked_sub(1).and_then(|at| text.split('\n').nth(at));
    (issue.rule, issue.message.clone(), line.unwrap_or_default().trim())
}

/// Gathers issues of one file after the other.
struct Report<'a> {
    path: &'a str,
    issues: Vec<Issue>,
}

impl Report<'_> {
    fn add(&mut self, rule: &Rule, line: u32, message: impl Into<String>) {
        self.add_at(rule, (line, 0), message);
    }

    fn add_at(&mut self, rule: &Rule, (line, column): (u32, u32), message: impl Into<String>) {
        self.issues.push(Issue {
            path: self.path.to_owned(),
            line,
            column,
            rule: rule.name,
            severity: rule.severity,
            message: message.into(),
            fixable: rule.is_fixable,
        });
    }

    /// What the reader of the file found.
    fn finding(&mut self, finding: &Finding) {
        let Some(rule) = RULES.iter().find(|rule| rule.name == finding.rule) else { return };
        self.add(rule, finding.line, finding.detail.clone());
    }
}

/// Line and letter of a byte of `text`, both from 1.
fn place(text: &str, lines: &[Line], at: usize) -> (u32, u32) {
    let line = lines.partition_point(|line| line.end <= at);
    let start = lines.get(line).map_or(0, |line| line.start);
    let column = text.get(start..at).unwrap_or_default().chars().count() + 1;
    (u32::try_from(line + 1).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}
