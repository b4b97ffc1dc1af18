//! What stands in the entries: private tags, secrets, links, doubles, budgets.

use super::rule::*;
use super::{Linting, Report, place};
use crate::memory_dir::config::MemoryConfig;
use crate::memory_dir::document::{Document, Part};
use crate::memory_dir::kind::{CONFIG, DECISIONS};
use crate::memory_dir::line;
use crate::memory_dir::links::{Link, links};
use crate::memory_dir::name::{adr_label, adr_number};
use crate::memory_dir::tally::tokens;
use crate::privacy::{
    PRIVATE_MENTION, Pii, Report as Masked, UNCLOSED_PRIVATE, private_spans, strip_private,
};
use std::collections::HashSet;

pub(super) fn check(document: &Document<'_>, linting: &Linting<'_>, report: &mut Report<'_>) {
    private(document, report);
    masked(document, linting, report);
    dead_links(document, linting, report);
    for block in document.blocks().iter().filter(|block| block.part == Part::Marker) {
        report.add(
            &CONFLICT_MARKERS,
            block.line,
            "git left a merge unfinished here: choose what is to stay",
        );
    }
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for block in document.entries() {
        let key = (document.section(block), document.raw(block).trim());
        if document.section(block).is_empty() || document.holds_private(block) {
            continue;
        }
        if !seen.insert(key) {
            report.add(
                &DUPLICATE_ENTRY,
                block.line,
                "this stands further up already: one is enough",
            );
        }
    }
}

fn private(document: &Document<'_>, report: &mut Report<'_>) {
    let (_, remarks) = private_spans(document.text());
    if remarks.is_empty() {
        return;
    }
    let lines = line::lines(document.text());
    for remark in remarks {
        let (rule, message) = match remark.what {
            UNCLOSED_PRIVATE => {
                (PRIVATE_UNCLOSED, "everything below is private: expected </private> where it ends")
            }
            PRIVATE_MENTION => {
                let message = "this tag does not hide anything: expected it at the start of its line, and </private> \
                               where it ends; or no tag";
                (PRIVATE_MENTIONED, message)
            }
            "nested private block" => {
                (PRIVATE_NESTED, "a private block stands in another: the outer one counts")
            }
            "inline private span" => {
                (PRIVATE_INLINE, "expected private tags on lines of their own")
            }
            "inexact opening tag" => (PRIVATE_TAG, "expected exactly <private>"),
            "closing tag without opening" => {
                (PRIVATE_TAG, "expected <private> further up, or no </private>")
            }
            _ => continue,
        };
        report.add_at(&rule, place(document.text(), &lines, remark.at), message);
    }
}

/// What the gate would mask. The whole text is asked once; only where it holds something, each line.
fn masked(document: &Document<'_>, linting: &Linting<'_>, report: &mut Report<'_>) {
    let (public, _) = strip_private(document.text());
    let mut found = Masked::default();
    linting.gate.redact_into(&public, &mut found);
    if found.total() == 0 {
        return;
    }
    let mut placed: HashSet<&str> = HashSet::new();
    for (line, shown) in crate::memory_dir::public::public_lines(document) {
        let mut of_line = Masked::default();
        linting.gate.redact_into(&shown, &mut of_line);
        for rule in of_line.counts.keys() {
            placed.insert(rule);
            leak(rule, line, report);
        }
    }
    // What needs more than a line to be seen, such as a key block.
    for rule in found.counts.keys().filter(|rule| !placed.contains(**rule)) {
        leak(rule, 0, report);
    }
}

fn leak(masked: &str, line: u32, report: &mut Report<'_>) {
    let is_pii = Pii::ALL.iter().any(|kind| kind.name() == masked);
    let rule = if is_pii { PERSONAL_DATA } else { SECRET };
    let message =
        format!("the gate finds {masked} here: take it out, or put it between <private> tags");
    report.add(&rule, line, message);
}

fn dead_links(document: &Document<'_>, linting: &Linting<'_>, report: &mut Report<'_>) {
    let path = report.path;
    let records = || linting.files.keys().filter(|path| path.starts_with(DECISIONS));
    let mut numbers: Option<HashSet<u32>> = None;
    for block in document.blocks() {
        if matches!(
            block.part,
            Part::Private | Part::FrontMatter | Part::Title | Part::Meta | Part::Blank
        ) {
            continue;
        }
        for (line, link) in links(path, &document.public(block)) {
            let line = block.line.saturating_add(line);
            match link {
                Link::File(target) if !linting.files.contains_key(&target) => {
                    report.add(
                        &DEAD_LINK,
                        line,
                        format!("{target} is not there: expected a file of the directory"),
                    );
                }
                Link::Record(number) => {
                    let known = numbers.get_or_insert_with(|| {
                        records().filter_map(|path| adr_number(path)).collect()
                    });
                    if !known.contains(&number) {
                        let label = adr_label(number);
                        report.add(
                            &DEAD_LINK,
                            line,
                            format!("{label} is not there: expected a record of that number"),
                        );
                    }
                }
                Link::File(_) => {}
            }
        }
    }
}

/// Budgets of files, and of all of them together.
pub(super) fn total<'a>(linting: &Linting<'a>, report: &mut Report<'a>) {
    let config =
        linting.files.get(CONFIG).map(|text| MemoryConfig::parse(text).0).unwrap_or_default();
    let table = tokens(linting.files, &config);
    for row in table.rows.iter().filter(|row| row.is_over()) {
        let Some((path, _)) = linting.files.get_key_value(&row.path) else { continue };
        report.path = path;
        let most = row.range.map_or(0, |(_, most)| most);
        let message =
            format!("{} tokens, expected at most {most}: move what is old elsewhere", row.tokens);
        report.add(&OVER_BUDGET, 0, message);
    }
    if table.start_tokens > table.total_max {
        report.path = ".";
        let (start, most) = (table.start_tokens, table.total_max);
        report.add(
            &OVER_TOTAL,
            0,
            format!(
                "a session would start with {start} tokens, expected at most {most}: it is cut"
            ),
        );
    }
}
