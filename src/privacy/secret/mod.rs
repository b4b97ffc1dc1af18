//! Secrets, by shape and by name. One search finds the keywords that begin or announce a secret;
//! the keyword's rule then reads the text around it. A text without keywords is scanned once and
//! not copied.
//!
//! The table is [`rules::RULES`]: report name, keywords and reader function of each rule. Rules
//! only mark ranges. A range never includes a quote, a brace or half an escape, so JSON stays JSON,
//! even inside a JSON string.

mod code;
mod command;
mod file;
mod header;
mod separator;
mod named;
mod rules;
mod sentence;
mod scan;
mod shape;
mod value;
mod words;

use super::redacted::{Report, spliced};
use rules::{KEYWORDS, RULES};
pub(super) use scan::PLACEHOLDER;
use scan::{Hit, Scan, WholeWords};
pub(crate) use words::{sections as table_sections, table_section};

/// Masks every secret and counts them; `None` if there is nothing to mask.
pub(super) fn mask(text: &str, report: &mut Report) -> Option<String> {
    let mut hits = found(text);
    for line in WholeWords::lines(text) {
        hits.extend(found(&line.text).into_iter().map(|hit| Hit { at: line.place(hit.at), ..hit }));
    }
    if hits.is_empty() {
        return None;
    }
    let masks = joined(hits).into_iter().map(|hit| {
        report.add(hit.rule, 1);
        let quote = hit.quotes.map(|depth| "\\".repeat(depth) + "\"").unwrap_or_default();
        (hit.at, format!("{quote}{PLACEHOLDER}{quote}"))
    });
    Some(spliced(text, masks))
}

/// Finds every secret.
fn found(text: &str) -> Vec<Hit> {
    let mut scan = Scan::new(text);
    KEYWORDS.find(text.as_bytes(), |rule, at| {
        scan.rule = rule.name;
        (rule.read)(&mut scan, at);
    });
    scan.rule = "vendor-token";
    shape::unknown(&mut scan);
    shape::wrapped(&mut scan);
    scan.hits
}

/// Sorts the hits and merges overlapping ones.
fn joined(mut hits: Vec<Hit>) -> Vec<Hit> {
    let rank = |name: &str| RULES.iter().position(|rule| rule.name == name);
    hits.sort_by_key(|hit| (hit.at.start, hit.at.end, rank(hit.rule)));
    let mut joined: Vec<Hit> = Vec::with_capacity(hits.len());
    for hit in hits {
        match joined.last_mut() {
            Some(last) if hit.at.start < last.at.end => {
                last.at.end = last.at.end.max(hit.at.end);
                if rank(hit.rule) < rank(last.rule) {
                    last.rule = hit.rule;
                }
            }
            Some(_) | None => joined.push(hit),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
