//! Tags: how they are written, and what they stand below.

use super::rule::*;
use super::{Linting, Report};
use crate::domain::{MemoryId, MemoryState};
use crate::memory_dir::document::{Block, Document, Part};
use crate::memory_dir::kind::Kind;
use crate::memory_dir::tag::{Category, SOURCE, TAG_LINE_LETTERS_MAX, Tag};
use std::collections::BTreeMap;

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
                one(&tag, raw, line, document.kind(), report);
                source(&tag, line, (document.kind(), block), linting, report);
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

fn one(tag: &Tag<'_>, raw: &str, line: u32, kind: Kind, report: &mut Report<'_>) {
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
}

/// Whether the memory that a tag names is there and in use. Records and sessions tell what was: they show memories that
/// others took the place of.
fn source(
    tag: &Tag<'_>,
    line: u32,
    (kind, block): (Kind, &Block),
    linting: &Linting<'_>,
    report: &mut Report<'_>,
) {
    let digits = tag.ours().and_then(|value| value.strip_prefix(SOURCE));
    let (Some(digits), Some(known)) = (digits, linting.known) else { return };
    let mut states = named(digits, known).peekable();
    if states.peek().is_none() {
        report.add(
            &UNKNOWN_SOURCE,
            line,
            "no memory has this id: it was forgotten, or is another project's",
        );
        return;
    }
    let is_shown =
        matches!(block.part, Part::Entry(_)) && !matches!(kind, Kind::Decision | Kind::Session);
    if is_shown && states.all(|state| state != MemoryState::Active) {
        report.add(
            &RETIRED_SOURCE,
            line,
            "the memory of this tag is out of use, and this is still shown: take it out, or take the tag away where \
             it holds",
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

/// The states of the memories whose ids begin with these digits.
fn named<'k>(
    digits: &'k str,
    known: &'k BTreeMap<MemoryId, MemoryState>,
) -> impl Iterator<Item = MemoryState> + 'k {
    let lowest: Option<MemoryId> = format!("{digits:0<32}").parse().ok();
    let from = lowest.into_iter().flat_map(|lowest| known.range(lowest..));
    from.take_while(move |(id, _)| id.to_string().starts_with(digits)).map(|(_, state)| *state)
}
