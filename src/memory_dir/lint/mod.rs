//! Lint of a directory: every rule has a stable name, a severity and a location.

mod fix;
#[cfg(test)]
mod tests;

use crate::memory_dir::merge::with_both_sides;
pub(crate) use fix::fix;

use crate::domain::{MemoryId, MemoryState, Severity, Timestamp, Tokens};
use crate::memory_dir::budget::{public_tokens, start_tokens, tokens_of};
use crate::memory_dir::config::MemoryConfig;
use crate::memory_dir::document::{Block, Document, Part};
use crate::memory_dir::kind::{
    ACTIVE_CONTEXT, CONFIG, DECISIONS, Files, Kind, LESSONS, PRODUCT_CONTEXT, SESSIONS, UNKNOWN,
};
use crate::memory_dir::line::{Line, lines};
use crate::memory_dir::merge::with_lost_headings;
use crate::memory_dir::name::{
    Link, Status, adr_label, adr_number, adr_title_slug, is_day, is_number, links, meta,
    session_day,
};
use crate::memory_dir::public::public_lines;
use crate::memory_dir::tag::{Category, SOURCE, TAG_LINE_LETTERS_MAX, Tag};
use crate::memory_dir::units::is_struck;
use crate::privacy::{
    Gate, PRIVATE_MENTION, Pii, Report as Masked, UNCLOSED_PRIVATE, private_spans, strip_private,
};
use crate::text::phrase::commas;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::ops::Range;

const FIXABLE: [&str; 7] = [
    "missing-heading", "missing-footer", "bad-tag", "private-unclosed", "duplicate-entry", MARKERS,
    "config-alias",
];
/// A merge that has two versions of an entry is not fixable.
const MARKERS: &str = "conflict-markers";

fn severity_of(rule: &str) -> Severity {
    match rule {
        "missing-file"
        | MISSING_FOLDER
        | UNREADABLE
        | "missing-title"
        | "adr-number-twice"
        | "adr-status"
        | "adr-successor-missing"
        | "bad-category"
        | "private-unclosed"
        | MARKERS
        | "secret" => Severity::Error,
        "private-inline" | "over-total" | "config-alias" => Severity::Info,
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
    /// The files as rendered last; empty without a store.
    pub rendered: &'a Files,
    /// Current date, for footers that are added.
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
const UNREADABLE: &str = "unreadable";

impl Issue {
    /// A missing required folder; the files do not show it, because it may be empty.
    pub(crate) fn missing_folder(folder: &str) -> Issue {
        let message = "expected this folder: `annalist memory init` makes it";
        Issue::of_path(folder, MISSING_FOLDER, message.to_owned())
    }

    /// A file that was not read, with the reason.
    pub(crate) fn unreadable(path: &str, reason: &str) -> Issue {
        Issue::of_path(path, UNREADABLE, format!("{reason}: no command reads or changes this file"))
    }

    fn of_path(path: &str, rule: &'static str, message: String) -> Issue {
        let (path, severity) = (path.to_owned(), severity_of(rule));
        Issue { path, line: 0, column: 0, rule, severity, message, fixable: false }
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
        let severity = issue.severity.name();
        let _ = writeln!(page, ": {severity}: {} [{}]", issue.message, issue.rule);
    }
    page
}

struct Checker<'a> {
    linting: &'a Linting<'a>,
    path: &'a str,
    records: BTreeMap<u32, &'a str>,
    issues: Vec<Issue>,
}

/// Checks a directory; returns issues in the order of files and lines. Skips private files.
pub fn lint(linting: &Linting<'_>) -> Vec<Issue> {
    let mut checker = Checker { linting, path: "", records: BTreeMap::new(), issues: Vec::new() };
    for path in [ACTIVE_CONTEXT, PRODUCT_CONTEXT] {
        if !linting.files.contains_key(path) {
            checker.path = path;
            checker.add("missing-file", 0, "expected this file: `annalist memory init` makes it");
        }
    }
    checker.record_numbers();
    for (path, text) in linting.files {
        checker.path = path;
        checker.file(text);
    }
    checker.budgets();
    checker.issues.sort();
    checker.issues.dedup();
    checker.issues
}

impl Checker<'_> {
    fn add(&mut self, rule: &'static str, line: u32, message: impl Into<String>) {
        self.add_at(rule, line, 0, message);
    }

    fn add_at(&mut self, rule: &'static str, line: u32, column: u32, message: impl Into<String>) {
        self.issues.push(Issue {
            path: self.path.to_owned(),
            line,
            column,
            rule,
            severity: severity_of(rule),
            message: message.into(),
            fixable: FIXABLE.contains(&rule),
        });
    }

    fn file(&mut self, text: &str) {
        let (document, odd) = Document::parse(Kind::of_path(self.path), text);
        if document.is_private() {
            return;
        }
        let config = (self.path == CONFIG).then(|| MemoryConfig::parse(text).1);
        for finding in odd.into_iter().chain(config.into_iter().flatten()) {
            if let Cow::Borrowed(rule) = finding.rule {
                self.add(rule, finding.line, finding.detail);
            }
        }
        self.file_name();
        self.title(&document);
        self.headings(&document);
        self.footer(&document);
        self.tags(&document);
        self.private_tags(&document);
        self.masked(&document);
        self.dead_links(&document);
        self.entries(&document);
        if document.kind == Kind::Decision
            && let Some(number) = adr_number(self.path)
        {
            self.record_title(&document, number);
            self.record_meta(&document);
        }
    }

    fn file_name(&mut self) {
        if self.path.starts_with(DECISIONS) && adr_title_slug(self.path).is_none() {
            let expected = "expected decisions/ADR-NNN-title.md, in lower case with hyphens";
            self.add("file-name", 0, expected);
        }
        if self.path.starts_with(SESSIONS) && session_day(self.path).is_none() {
            self.add("file-name", 0, "expected sessions/YYYY-MM-DD-topic.md");
        }
    }

    fn title(&mut self, document: &Document<'_>) {
        let Some(expected) = document.kind.title() else { return };
        let words = document.title();
        let is_prefix = matches!(document.kind, Kind::Decision | Kind::Session);
        let fits = if is_prefix { words.starts_with(expected) } else { words == expected };
        if !fits {
            let line = document.first(Part::Title).map_or(1, |block| block.line);
            let message = format!("expected the heading `# {}`", expected.trim_end());
            self.add("missing-title", line, message);
        }
    }

    fn headings(&mut self, document: &Document<'_>) {
        let expected = document.kind.sections();
        let sections = document.blocks.iter().filter(|block| block.part == Part::Section);
        let found = sections.map(|block| (document.heading_words(block), block.line));
        let rendered = self.linting.rendered.get(self.path).map_or("", |it| &**it);
        let whole = with_lost_headings(document.kind, rendered, document.text.to_owned());
        let (whole, _) = Document::parse(document.kind, &whole);
        for name in expected.iter().chain([&LESSONS]).filter(|name| !document.has_section(name)) {
            let is_needed = document.kind.needs_headings() && *name != LESSONS;
            if is_needed || whole.has_section(name) {
                self.add("missing-heading", 0, format!("expected the heading `## {name}`"));
            }
        }
        let mut first: HashMap<&str, u32> = HashMap::new();
        for (words, line) in found.filter(|(words, _)| expected.contains(words)) {
            let first = *first.entry(words).or_insert(line);
            if first < line {
                let message =
                    format!("`## {words}` is already on line {first}: move its content there");
                self.add("duplicate-heading", line, message);
            }
        }
    }

    fn footer(&mut self, document: &Document<'_>) {
        let Some(head) = document.kind.footer() else { return };
        let Some(block) = document.first(Part::Footer) else {
            let Some(line) = document.misplaced_footer() else {
                let message = format!("expected `---` and `*{head}…*` at the end");
                self.add("missing-footer", 0, message);
                let is_empty = document.text.trim().is_empty();
                self.issues.last_mut().into_iter().for_each(|it| it.fixable = !is_empty);
                return;
            };
            let message = "expected this as the last line, below a line `---`: move what follows it, or the \
                           private block that contains it";
            return self.add("bad-footer", line, message);
        };
        let lines = (block.line..).zip(document.raw(block).lines().map(str::trim));
        let last = lines.filter(|(_, line)| !line.is_empty()).last();
        let (line, words) = last.unwrap_or((block.line, ""));
        let value = words.trim_matches('*').strip_prefix(head);
        let day = value.map(|value| value.split(' ').next().unwrap_or(value));
        let is_session = document.kind == Kind::Session;
        let fits = match value {
            Some(value) if is_session => value == UNKNOWN || is_duration(value),
            Some(_) => day.is_some_and(is_day),
            None => false,
        };
        if !fits {
            let form = if is_session { "~Xh Xm" } else { "YYYY-MM-DD" };
            self.add("bad-footer", line, format!("expected `*{head}{form}*`"));
        }
    }

    fn tags(&mut self, document: &Document<'_>) {
        for block in &document.blocks {
            let is_stray = block.part == Part::StrayTag;
            let from = if is_stray { block.span.start } else { block.tags_at };
            if is_stray {
                let message = "expected a heading or an item directly above: put it there";
                self.add("stray-tag", block.line, message);
            }
            let text = |from, to| document.text.get(from..to).unwrap_or_default();
            let above = text(block.span.start, from).lines().count();
            let line = block.line.saturating_add(u32::try_from(above).unwrap_or(u32::MAX));
            for (line, raw) in (line..).zip(text(from, block.span.end).lines()) {
                if let Some(tag) = Tag::parse(raw) {
                    self.tag(&tag, raw, line, document.kind);
                    self.source(&tag, line, document, block);
                }
            }
        }
    }

    fn tag(&mut self, tag: &Tag<'_>, raw: &str, line: u32, kind: Kind) {
        if raw.trim_end().chars().count() > TAG_LINE_LETTERS_MAX {
            let message = "expected at most 80 characters on a tag line";
            self.add_at("long-tag", line, 81, message);
        }
        if !tag.is_exact {
            let expected = "expected `<!-- @tag: value -->` with a value of a-z, 0-9 and hyphens";
            self.add("bad-tag", line, expected);
        }
        if tag.name != "category" {
            return;
        }
        let names = |takes: &dyn Fn(&Category) -> bool| {
            commas(Category::ALL.iter().filter(|it| takes(it)).map(|it| it.name()))
        };
        let is_retro = kind == Kind::Retrospective;
        match tag.category() {
            None => self.add("bad-category", line, format!("expected one of {}", names(&|_| true))),
            Some(category) if kind != Kind::Other && category.is_retrospective() != is_retro => {
                let fitting = names(&|it| it.is_retrospective() == is_retro);
                self.add("other-category", line, format!("expected one of {fitting} here"));
            }
            Some(_) => {}
        }
    }

    /// Checks that the memory of a tag exists and is in use. Records and sessions may show
    /// superseded memories, and a line that is struck through stays.
    fn source(&mut self, tag: &Tag<'_>, line: u32, document: &Document<'_>, block: &Block) {
        let digits = tag.ours().and_then(|value| value.strip_prefix(SOURCE));
        let (Some(digits), Some(known)) = (digits, self.linting.known) else { return };
        let lowest: Option<MemoryId> = format!("{digits:0<32}").parse().ok();
        let from = lowest.into_iter().flat_map(|lowest| known.range(lowest..));
        let mut named = from.take_while(|(id, _)| id.to_string().starts_with(digits)).peekable();
        if named.peek().is_none() {
            let message = "no memory has this id: it was forgotten, or is another project's";
            return self.add("unknown-source", line, message);
        }
        let is_shown = matches!(block.part, Part::Entry(_))
            && !matches!(document.kind, Kind::Decision | Kind::Session)
            && !is_struck(document.body(block));
        if is_shown && named.all(|(_, state)| *state != MemoryState::Active) {
            let message = "the memory of this tag is superseded or retracted, but its entry is still here: remove \
                           the entry, or only the tag if the entry still holds";
            self.add("retired-source", line, message);
        }
    }

    fn private_tags(&mut self, document: &Document<'_>) {
        let (_, remarks) = private_spans(document.text);
        if remarks.is_empty() {
            return;
        }
        let lines = lines(document.text);
        for remark in remarks {
            let (rule, message) = match remark.what {
                UNCLOSED_PRIVATE => (
                    "private-unclosed",
                    "everything below is private: expected </private> at the end of the block",
                ),
                PRIVATE_MENTION => (
                    "private-mention",
                    "this tag hides nothing: put it at the start of a line and </private> at the end of the block, \
                     or remove it",
                ),
                "nested private block" => (
                    "private-nested",
                    "this private block is inside another one: only the outer one counts",
                ),
                "inline private span" => {
                    ("private-inline", "expected private tags on lines of their own")
                }
                "inexact opening tag" => ("private-tag", "expected exactly <private>"),
                "closing tag without opening" => {
                    ("private-tag", "expected <private> further up, or no </private>")
                }
                _ => continue,
            };
            let (line, column) = place(document.text, &lines, remark.at);
            self.add_at(rule, line, column, message);
        }
    }

    /// Reports what the gate would mask. Checks line by line only if the whole text has something.
    fn masked(&mut self, document: &Document<'_>) {
        let gate = self.linting.gate;
        let mut found = Masked::default();
        gate.redact_into(&strip_private(document.text), &mut found);
        if found.total() == 0 {
            return;
        }
        let mut placed: HashSet<&str> = HashSet::new();
        for (line, shown) in public_lines(document) {
            let mut of_line = Masked::default();
            gate.redact_into(&shown, &mut of_line);
            for masked in of_line.counts.keys() {
                placed.insert(masked);
                self.leak(masked, line);
            }
        }
        // A key block, for example, is found only in the text as a whole.
        for masked in found.counts.keys().filter(|masked| !placed.contains(**masked)) {
            self.leak(masked, 0);
        }
    }

    fn leak(&mut self, masked: &str, line: u32) {
        let is_pii = Pii::ALL.iter().any(|kind| kind.name() == masked);
        let rule = if is_pii { "personal-data" } else { "secret" };
        let message = format!(
            "the privacy gate finds {masked} here: remove it, or put it between <private> tags"
        );
        self.add(rule, line, message);
    }

    fn dead_links(&mut self, document: &Document<'_>) {
        for block in &document.blocks {
            if matches!(
                block.part,
                Part::Private | Part::FrontMatter | Part::Title | Part::Meta | Part::Blank
            ) {
                continue;
            }
            for (line, link) in links(self.path, &document.public(block)) {
                let line = block.line.saturating_add(line);
                let message = match link {
                    Link::File(target) if !self.linting.files.contains_key(&target) => {
                        format!("{target} does not exist: expected a file of the memory directory")
                    }
                    Link::Record(number) if !self.records.contains_key(&number) => {
                        let label = adr_label(number);
                        format!("{label} is not there: expected a record of that number")
                    }
                    Link::File(_) | Link::Record(_) => continue,
                };
                self.add("dead-link", line, message);
            }
        }
    }

    fn entries(&mut self, document: &Document<'_>) {
        let markers = || document.blocks.iter().filter(|block| block.part == Part::Marker);
        let is_joined = markers().next().is_some() && with_both_sides(document).is_some();
        for block in markers() {
            self.add(MARKERS, block.line, "unfinished git merge: choose the lines to keep");
            self.issues.last_mut().into_iter().for_each(|it| it.fixable = is_joined);
        }
        let doubles = doubles(document);
        let (merge, mut tagged) = (merge_span(document), HashMap::new());
        for (at, block) in document.blocks.iter().enumerate() {
            if doubles.contains(&at) {
                self.add("duplicate-entry", block.line, "duplicates an entry above: keep one");
            } else if matches!(block.part, Part::Entry(_)) && !merge.contains(&block.span.start) {
                let tags = || document.tags(block).filter_map(|tag| tag.ours());
                let memories = tags().filter(|tag| tag.starts_with(SOURCE));
                if let [first, other, ..] = *memories.collect::<Vec<_>>() {
                    let message = format!(
                        "has the tags of several memories, and only {first} counts: give {other} an entry of its own, \
                         or end it with `annalist memory supersede {other} {first}`"
                    );
                    self.add("several-tags", block.line, message);
                }
                for tag in tags() {
                    let first = *tagged.entry(tag).or_insert(block.line);
                    if first != block.line {
                        let message = format!(
                            "has the tag of the entry on line {first}, and only that one counts: remove one of them, \
                             or this tag"
                        );
                        self.add("duplicate-tag", block.line, message);
                    }
                }
            }
        }
    }

    fn budgets(&mut self) {
        let files = self.linting.files;
        let config = files.get(CONFIG).map(|text| MemoryConfig::parse(text).0).unwrap_or_default();
        let preset = config.token_budget;
        for (path, text) in files {
            let Some(most) = preset.file_max(Kind::of_path(path)) else { continue };
            if public_tokens(text) <= most {
                continue;
            }
            let tokens = written_tokens(path, text);
            if tokens > most {
                self.path = path;
                let message = format!(
                    "{tokens} tokens, expected at most {most}: move old entries to another file"
                );
                self.add("over-budget", 0, message);
            }
        }
        let (start, most) = (start_tokens(files), preset.total());
        if start > most {
            self.path = ".";
            let message = format!(
                "a session would start with {start} tokens, expected at most {most}: the rest is omitted"
            );
            self.add("over-total", 0, message);
        }
    }

    fn record_numbers(&mut self) {
        for path in self.linting.files.keys() {
            let Some(number) = adr_number(path) else { continue };
            let Some(first) = self.records.get(&number) else {
                self.records.insert(number, path);
                continue;
            };
            let message = format!(
                "{} is already the number of {first}: use the next free number",
                adr_label(number)
            );
            self.path = path;
            self.add("adr-number-twice", 0, message);
        }
    }

    fn record_title(&mut self, document: &Document<'_>, number: u32) {
        let Some(block) = document.first(Part::Title) else { return };
        let label = adr_label(number);
        let words = document.title();
        if !words.strip_prefix(&label).is_some_and(|rest| rest.starts_with(':')) {
            self.add("adr-title", block.line, format!("expected `# {label}: title`"));
        }
    }

    fn record_meta(&mut self, document: &Document<'_>) {
        let top = meta(document);
        match top.status {
            Some((Status::SupersededBy(number), at)) if !self.records.contains_key(&number) => {
                let label = adr_label(number);
                let message = format!("{label} is not there: expected a record of that number");
                self.add("adr-successor-missing", at, message);
            }
            Some(_) => {}
            None => {
                let expected = "expected `**Status:** Proposed`, Accepted, Deprecated or Superseded by ADR-XXX";
                self.add("adr-status", top.status_line.unwrap_or(0), expected);
            }
        }
        let expected = "expected `**Date:** YYYY-MM-DD`";
        match top.date {
            Some((day, _)) if is_day(day) || day == UNKNOWN => {}
            Some((_, at)) => self.add("adr-date", at, expected),
            None => self.add("adr-date", 0, format!("{expected} below the heading")),
        }
    }
}

/// Bytes from the first to the last marker of an unfinished git merge; empty if there is none.
pub(super) fn merge_span(document: &Document<'_>) -> Range<usize> {
    let mut markers = document.blocks.iter().filter(|block| block.part == Part::Marker);
    let Some(first) = markers.next() else { return 0..0 };
    first.span.start..markers.next_back().unwrap_or(first).span.end
}

/// Blocks that repeat an entry above them in the same section; the sides of an unfinished merge do not count.
pub(super) fn doubles(document: &Document<'_>) -> Vec<usize> {
    let merge = merge_span(document);
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let mut is_double = |block: &Block| {
        let section = document.section(block);
        let counts = matches!(block.part, Part::Entry(_)) && !section.is_empty();
        counts
            && !document.holds_private(block)
            && !merge.contains(&block.span.start)
            && !seen.insert((section, document.raw(block).trim()))
    };
    let blocks = document.blocks.iter().enumerate();
    blocks.filter(|(_, block)| is_double(block)).map(|(at, _)| at).collect()
}

/// Tokens of what people wrote; rendered lists have limits of their own.
fn written_tokens(path: &str, text: &str) -> Tokens {
    let (document, _) = Document::parse(Kind::of_path(path), text);
    let is_written = |block: &&Block| document.tags(block).all(|tag| tag.ours().is_none());
    let written = document.blocks.iter().filter(is_written);
    tokens_of(&written.map(|block| document.public(block)).collect::<String>())
}

/// True for `~Xh Xm`.
fn is_duration(text: &str) -> bool {
    let number = |text: &str, unit| text.strip_suffix(unit).is_some_and(is_number);
    let parts = text.strip_prefix('~').and_then(|rest| rest.split_once(' '));
    parts.is_some_and(|(hours, minutes)| number(hours, 'h') && number(minutes, 'm'))
}

/// Line and column of a byte of `text`, both from 1.
fn place(text: &str, lines: &[Line], at: usize) -> (u32, u32) {
    let line = lines.partition_point(|line| line.end <= at);
    let start = lines.get(line).map_or(0, |line| line.start);
    let column = text.get(start..at).unwrap_or_default().chars().count() + 1;
    (u32::try_from(line + 1).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}
