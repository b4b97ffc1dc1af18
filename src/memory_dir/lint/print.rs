//! Issues as text, as JSON and as SARIF 2.1.0, which code hosts show beside the lines.

use super::{Issue, RULES};
use crate::domain::Severity;
use serde_json::{Value, json};
use std::fmt::Write;

/// One line an issue: `path:line:column: severity: message [rule]`.
pub fn print_text(issues: &[Issue]) -> String {
    let mut page = String::new();
    for issue in issues {
        page.push_str(&issue.path);
        for number in [issue.line, issue.column].into_iter().take_while(|number| *number > 0) {
            // A string takes everything.
            let _ = write!(page, ":{number}");
        }
        let severity = severity(issue.severity);
        let _ = writeln!(page, ": {severity}: {} [{}]", issue.message, issue.rule);
    }
    page
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// The issues with their number by severity.
pub fn print_json(issues: &[Issue]) -> Value {
    let count = |wanted| issues.iter().filter(|issue| issue.severity == wanted).count();
    json!({
        "issues": issues,
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
        "infos": count(Severity::Info),
        "fixable": issues.iter().filter(|issue| issue.fixable).count(),
    })
}

/// A log of SARIF 2.1.0. Paths are below `root`, such as `.claude/memory`.
pub fn print_sarif(issues: &[Issue], root: &str) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.name,
                "shortDescription": { "text": rule.summary },
                "defaultConfiguration": { "level": level(rule.severity) },
            })
        })
        .collect();
    let results: Vec<Value> = issues.iter().map(|issue| result(issue, root)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "annalist",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
            "columnKind": "unicodeCodePoints",
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn result(issue: &Issue, root: &str) -> Value {
    let uri = format!("{}/{}", root.trim_end_matches('/'), issue.path);
    let mut place = json!({ "artifactLocation": { "uri": encoded(uri.trim_start_matches('/')) } });
    // SARIF counts from 1; what is wrong with a file as a whole has no region.
    if issue.line > 0 {
        place["region"] = json!({ "startLine": issue.line, "startColumn": issue.column.max(1) });
    }
    json!({
        "ruleId": issue.rule,
        "ruleIndex": RULES.iter().position(|rule| rule.name == issue.rule),
        "level": level(issue.severity),
        "message": { "text": issue.message },
        "locations": [{ "physicalLocation": place }],
    })
}

/// A path as part of a URI.
fn encoded(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            byte => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}
