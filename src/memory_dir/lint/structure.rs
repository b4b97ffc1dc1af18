//! Files, headings and last lines.

use super::rule::*;
use super::{Linting, Report};
use crate::memory_dir::Files;
use crate::memory_dir::document::{Block, Document, Part};
use crate::memory_dir::kind::{ACTIVE_CONTEXT, DECISIONS, Kind, PRODUCT_CONTEXT, SESSIONS};
use crate::memory_dir::name::{AdrName, is_day, session_day};
use crate::memory_dir::template::UNKNOWN_DURATION;
use std::collections::HashMap;

/// What must be there.
pub(super) fn required<'a>(files: &'a Files, report: &mut Report<'a>) {
    for path in [ACTIVE_CONTEXT, PRODUCT_CONTEXT] {
        if !files.contains_key(path) {
            report.path = path;
            report.add(&MISSING_FILE, 0, "expected this file: `annalist memory init` makes it");
        }
    }
}

pub(super) fn check(document: &Document<'_>, linting: &Linting<'_>, report: &mut Report<'_>) {
    names(linting, report);
    title(document, report);
    headings(document, report);
    footer(document, linting, report);
}

fn names(linting: &Linting<'_>, report: &mut Report<'_>) {
    let path = report.path;
    if path.starts_with(DECISIONS) && AdrName::parse(path).is_none() {
        report.add(
            &FILE_NAME,
            0,
            "expected decisions/ADR-NNN-title.md, small letters with hyphens",
        );
    }
    if path.starts_with(SESSIONS) {
        match session_day(path) {
            None => report.add(&FILE_NAME, 0, "expected sessions/YYYY-MM-DD-topic.md"),
            Some(day) => future(day, 0, linting, report),
        }
    }
}

/// Reports a day behind today.
pub(super) fn future(day: &str, line: u32, linting: &Linting<'_>, report: &mut Report<'_>) {
    if is_day(day) && linting.today.day().as_str() < day {
        report.add(
            &FUTURE_DATE,
            line,
            format!("{day} is behind today: expected a day that has come"),
        );
    }
}

fn title(document: &Document<'_>, report: &mut Report<'_>) {
    let Some(expected) = document.kind().title() else { return };
    let block = document.blocks().iter().find(|block| block.part == Part::Title);
    let words = document.title();
    let fits = match document.kind() {
        Kind::Decision | Kind::Session => words.starts_with(expected),
        Kind::ActiveContext
        | Kind::ProductContext
        | Kind::Progress
        | Kind::Patterns
        | Kind::Glossary
        | Kind::Retrospective
        | Kind::Config
        | Kind::Other => words == expected,
    };
    if !fits {
        let line = block.map_or(1, |block| block.line);
        report.add(
            &MISSING_TITLE,
            line,
            format!("expected the heading `# {}`", expected.trim_end()),
        );
    }
}

fn headings(document: &Document<'_>, report: &mut Report<'_>) {
    let expected = document.kind().sections();
    let sections = document.blocks().iter().filter(|block| block.part == Part::Section);
    let found: Vec<(&str, u32)> =
        sections.map(|block| (document.heading_words(block), block.line)).collect();
    for name in expected {
        if !found.iter().any(|(words, _)| words == name) {
            report.add(&MISSING_HEADING, 0, format!("expected the heading `## {name}`"));
        }
    }
    let rank = |words: &str| expected.iter().position(|name| *name == words);
    let mut highest = 0;
    let mut first: HashMap<&str, u32> = HashMap::new();
    for (words, line) in found {
        let Some(rank) = rank(words) else { continue };
        if let Some(first) = first.get(words) {
            let message =
                format!("`## {words}` stands in line {first} already: put what is below it there");
            report.add(&DUPLICATE_HEADING, line, message);
            continue;
        }
        first.insert(words, line);
        if rank < highest {
            let below = expected.get(rank).copied().unwrap_or_default();
            report.add(&HEADING_ORDER, line, format!("expected `## {below}` further up"));
        }
        highest = highest.max(rank);
    }
}

fn footer(document: &Document<'_>, linting: &Linting<'_>, report: &mut Report<'_>) {
    let Some(head) = document.kind().footer() else { return };
    let block = document.blocks().iter().find(|block| block.part == Part::Footer);
    let Some(block) = block else {
        match misplaced_footer(document) {
            Some(line) => {
                let message = "expected this as the last line, below a line `---`: move what stands behind it, or \
                               the private block that it stands in";
                report.add(&BAD_FOOTER, line, message);
            }
            None => {
                let message = format!("expected `---` and `*{head}…*` at the end");
                report.add(&MISSING_FOOTER, 0, message);
            }
        }
        return;
    };
    let (words, line) = last_line(document, block);
    let value = words.strip_prefix(head);
    let day = value.map(|value| value.split(' ').next().unwrap_or(value));
    let fits = match (document.kind(), value) {
        (_, None) => false,
        (Kind::Session, Some(value)) => value == UNKNOWN_DURATION || is_duration(value),
        (
            Kind::ActiveContext
            | Kind::ProductContext
            | Kind::Progress
            | Kind::Patterns
            | Kind::Glossary
            | Kind::Decision
            | Kind::Retrospective
            | Kind::Config
            | Kind::Other,
            Some(_),
        ) => day.is_some_and(is_day),
    };
    if !fits {
        let form = if document.kind() == Kind::Session { "~Xh Xm" } else { "YYYY-MM-DD" };
        report.add(&BAD_FOOTER, line, format!("expected `*{head}{form}*`"));
    }
    future(day.unwrap_or_default(), line, linting, report);
}

/// The line that would be the footer if it stood at the end, and where all can read it; none if there is none. A
/// second one below it would stay there when it is moved.
pub(super) fn misplaced_footer(document: &Document<'_>) -> Option<u32> {
    let head = document.kind().footer()?;
    let is_it = |line: &str| {
        let line = line.trim_matches(|it: char| it.is_whitespace() || it == '\u{feff}');
        line.strip_prefix('*').is_some_and(|it| it.starts_with(head) && it.ends_with('*'))
    };
    let mut lines = (1..).zip(document.text().split('\n'));
    lines.find(|(_, line)| is_it(line)).map(|(at, _)| at)
}

/// The words of the footer, and their line.
fn last_line<'t>(document: &Document<'t>, block: &Block) -> (&'t str, u32) {
    let lines = (block.line..).zip(document.raw(block).lines());
    let last = lines.filter(|(_, line)| !line.trim().is_empty()).last();
    last.map_or(("", block.line), |(at, line)| (line.trim().trim_matches('*'), at))
}

/// Whether `text` is `~Xh Xm`.
fn is_duration(text: &str) -> bool {
    let number = |text: &str, unit| {
        let digits = text.strip_suffix(unit).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let parts = text.strip_prefix('~').and_then(|rest| rest.split_once(' '));
    parts.is_some_and(|(hours, minutes)| number(hours, 'h') && number(minutes, 'm'))
}
