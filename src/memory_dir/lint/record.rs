//! Records: their numbers, and what stands at their top.

use super::rule::*;
use super::structure::future;
use super::{Linting, Report};
use crate::memory_dir::document::{Document, Part};
use crate::memory_dir::kind::{DECISIONS, Kind};
use crate::memory_dir::name::{AdrName, adr_label, adr_number, is_day, slug};
use crate::memory_dir::record_meta::{Status, meta};
use std::collections::BTreeMap;

pub(super) fn all<'a>(linting: &Linting<'a>, report: &mut Report<'a>) {
    let records = linting.files.range(DECISIONS.to_owned()..);
    let records = records.take_while(|(path, _)| path.starts_with(DECISIONS));
    let mut numbers: BTreeMap<u32, &str> = BTreeMap::new();
    let mut documents = Vec::new();
    for (path, text) in records {
        report.path = path;
        let Some(number) = adr_number(path) else { continue };
        match numbers.get(&number) {
            Some(first) => {
                let label = adr_label(number);
                report.add(
                    &ADR_NUMBER_TWICE,
                    0,
                    format!("{label} is {first} already: give it the next number"),
                );
            }
            None => {
                numbers.insert(number, path);
            }
        }
        documents.push((path, number, text));
    }
    let mut before = 0;
    for (number, path) in &numbers {
        if *number > before + 1 {
            report.path = path;
            let missing = adr_label(before + 1);
            report.add(
                &ADR_NUMBER_GAP,
                0,
                format!("{missing} is not there: expected no gap before this"),
            );
        }
        before = *number;
    }
    for (path, number, text) in documents {
        report.path = path;
        let (document, _) = Document::parse(Kind::Decision, text);
        if !document.is_private() {
            title(&document, path, number, report);
            top(&document, &numbers, linting, report);
        }
    }
}

fn title(document: &Document<'_>, path: &str, number: u32, report: &mut Report<'_>) {
    let block = document.blocks().iter().find(|block| block.part == Part::Title);
    let Some(block) = block else { return };
    let label = adr_label(number);
    let words = document.title();
    let Some(title) = words.strip_prefix(&label).and_then(|rest| rest.strip_prefix(':')) else {
        report.add(&ADR_TITLE, block.line, format!("expected `# {label}: title`"));
        return;
    };
    let (Some(name), Some(slug)) = (AdrName::parse(path), slug(title)) else { return };
    let has = |word: &str| slug.split('-').any(|it| it == word);
    if !name.slug.split('-').any(has) {
        report.add(
            &ADR_SLUG,
            block.line,
            "expected a word of this heading in the name of the file",
        );
    }
}

fn top(
    document: &Document<'_>,
    numbers: &BTreeMap<u32, &str>,
    linting: &Linting<'_>,
    report: &mut Report<'_>,
) {
    let top = meta(document);
    let line = |at: Option<u32>| at.unwrap_or(0);
    match top.status {
        Some((Status::SupersededBy(number), at)) if !numbers.contains_key(&number) => {
            let label = adr_label(number);
            report.add(
                &ADR_SUCCESSOR,
                at,
                format!("{label} is not there: expected a record of that number"),
            );
        }
        Some((
            Status::Proposed | Status::Accepted | Status::Deprecated | Status::SupersededBy(_),
            _,
        )) => {}
        None => {
            let expected =
                "expected `**Status:** Proposed`, Accepted, Deprecated or Superseded by ADR-XXX";
            report.add(&ADR_STATUS, line(top.status_line), expected);
        }
    }
    match top.date {
        Some((day, at)) if is_day(day) => future(day, at, linting, report),
        Some((_, at)) => report.add(&ADR_DATE, at, "expected `**Date:** YYYY-MM-DD`"),
        None => report.add(&ADR_DATE, 0, "expected `**Date:** YYYY-MM-DD` below the heading"),
    }
}
