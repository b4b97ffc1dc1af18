//! Tags: how they are written, and what they stand below.

use super::rule::*;
use super::{Linting, Report};
use crate::domain::MemoryId;
use crate::memory_dir::document::{Block, Document, Part};
use crate::memory_dir::kind::Kind;
use crate::memory_dir::tag::{Category, SOURCE, TAG_LINE_LETTERS_MAX, Tag};
use std::collections::BTreeSet;

pub(super) fn check(document: &Document<'_>, linting: &Linting<'_>, report: &mut Report<'_>) {
    for block in document.blocks() {
        let is_stray = block.part == Part::StrayTag;
        let from = if is_stray { block.span.start } else { block.tags_at };
        if is_stray {
            report.add(
                &STRAY_TAG,
                block.line,
                "expected a heading or an item directly above: put it there",
            );
        }
        let line = first_line(document, block, from);
        let text = document.text().get(from..block.span.end).unwrap_or_default();
        for (line, raw) in (line..).zip(text.lines()) {
            if let Some(tag) = Tag::parse(raw) {
                one(&tag, raw, line, (document.kind(), linting), report);
            }
        }
    }
}

/// The line at which the tags of a block begin.
fn first_line(document: &Document<'_>, block: &Block, from: usize) -> u32 {
    let body = document.text().get(block.span.start..from).unwrap_or_default();
    let lines = memchr::memchr_iter(b'\n', body.as_bytes()).count();
    block.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX))
}

fn one(
    tag: &Tag<'_>,
    raw: &str,
    line: u32,
    (kind, linting): (Kind, &Linting<'_>),
    report: &mut Report<'_>,
) {
    if raw.trim_end().chars().count() > TAG_LINE_LETTERS_MAX {
        report.add_at(&LONG_TAG, (line, 81), "expected at most 80 letters on the line of a tag");
    }
    if !tag.is_exact {
        report.add(
            &BAD_TAG,
            line,
            "expected `<!-- @tag: value -->` with a value of a-z, 0-9 and hyphens",
        );
    }
    if tag.name == "category" {
        category(tag, line, kind, report);
    }
    let source = tag.ours().and_then(|value| value.strip_prefix(SOURCE));
    if let (Some(digits), Some(known)) = (source, linting.known)
        && !is_known(digits, known)
    {
        report.add(
            &UNKNOWN_SOURCE,
            line,
            "no memory has this id: it was forgotten, or is another project's",
        );
    }
}

fn category(tag: &Tag<'_>, line: u32, kind: Kind, report: &mut Report<'_>) {
    let Some(category) = tag.category() else {
        let names: Vec<&str> = Category::ALL.iter().map(|it| it.name()).collect();
        report.add(&BAD_CATEGORY, line, format!("expected one of {}", names.join(", ")));
        return;
    };
    let is_look_back = kind == Kind::Retrospective;
    if kind != Kind::Other && category.is_retrospective() != is_look_back {
        let fitting = Category::ALL.iter().filter(|it| it.is_retrospective() == is_look_back);
        let names: Vec<&str> = fitting.map(|it| it.name()).collect();
        report.add(&OTHER_CATEGORY, line, format!("expected one of {} here", names.join(", ")));
    }
}

/// Whether an id begins with these digits.
fn is_known(digits: &str, known: &BTreeSet<MemoryId>) -> bool {
    let lowest = format!("{digits:0<32}").parse().ok();
    let next = lowest.and_then(|lowest: MemoryId| known.range(lowest..).next());
    next.is_some_and(|id| id.to_string().starts_with(digits))
}
