//! Automatic fixes. A fix removes nothing but duplicates.

use super::{FIXABLE, Linting, MARKERS, doubles, merge_span};
use crate::memory_dir::document::{Document, Part};
use crate::memory_dir::edit::Edits;
use crate::memory_dir::kind::{Files, Kind, footer};
use crate::memory_dir::merge::{repeated, with_both_sides, with_lost_headings};
use crate::memory_dir::tag::{Tag, is_value};
use crate::privacy::{UNCLOSED_PRIVATE, private_spans};

const ROUNDS_MAX: usize = 16;

pub(crate) fn fix(linting: &Linting<'_>) -> Files {
    let mut fixed = Files::new();
    for (path, text) in linting.files {
        let now = fix_file(path, text, linting);
        if *now != **text {
            fixed.insert(path.clone(), now.into());
        }
    }
    fixed
}

/// Fixes everything in a file. One fix may make room for another, such as the end of a private block for a
/// footer after it, so all are repeated until nothing changes; a second call does nothing.
pub(super) fn fix_file(path: &str, text: &str, linting: &Linting<'_>) -> String {
    let fixed = |now: String, rule: &&str| fix_rule(rule, path, &now, linting);
    repeated(text.to_owned(), ROUNDS_MAX, |now| FIXABLE.iter().fold(now.to_owned(), fixed))
}

/// Fixes violations of one rule; returns the same text if there are none, if the rule is not
/// fixable, and if the file is private.
pub(crate) fn fix_rule(rule: &str, path: &str, text: &str, linting: &Linting<'_>) -> String {
    let kind = Kind::of_path(path);
    let (document, _) = Document::parse(kind, text);
    if document.is_private() {
        return text.to_owned();
    }
    let fixed = match rule {
        MARKERS => return with_both_sides(&document).unwrap_or_else(|| text.to_owned()),
        "missing-heading" => {
            let rendered = linting.rendered.get(path).map_or("", |it| &**it);
            let whole = with_lost_headings(kind, rendered, text.to_owned());
            let (document, _) = Document::parse(kind, &whole);
            let mut edits = Edits::new(&document);
            let needed = kind.sections().iter().filter(|_| kind.needs_headings());
            needed.for_each(|section| edits.make_section(section));
            edits.finish().text
        }
        "missing-footer" => with_footer(&document, &linting.today.day()),
        "bad-tag" => with_exact_tags(&document),
        "private-unclosed" => closed(&document),
        "duplicate-entry" => {
            let mut edits = Edits::new(&document);
            doubles(&document).into_iter().for_each(|at| edits.remove(at));
            edits.finish().text
        }
        "config-alias" if kind == Kind::Config => renamed(text),
        _ => text.to_owned(),
    };
    // The sides of an unfinished merge stay.
    let merge = text.get(merge_span(&document)).unwrap_or_default();
    if fixed.contains(merge) { fixed } else { text.to_owned() }
}

fn with_footer(document: &Document<'_>, day: &str) -> String {
    let text = document.text.to_owned();
    let is_there = document.first(Part::Footer).is_some();
    let fits = !is_there && document.open.is_none() && document.misplaced_footer().is_none();
    let bare = text.trim_end().len();
    // Above it, an empty file would have unclosed front matter.
    let footer = footer(document.kind, day).filter(|_| fits && bare > 0);
    let Some(footer) = footer else { return text };
    let end = document.line_end();
    let kept = text.get(..bare).unwrap_or_default();
    let now = format!("{kept}{end}{end}---{end}{footer}{end}");
    // After unclosed front matter, for example, it would be something else.
    let (after, _) = Document::parse(document.kind, &now);
    if after.first(Part::Footer).is_some() { now } else { text }
}

/// Rewrites tags with exact blanks and lower-case values; leaves other tags as they are.
fn with_exact_tags(document: &Document<'_>) -> String {
    let mut edits = Edits::new(document);
    let merge = merge_span(document);
    let blocks = document.blocks.iter().enumerate();
    for (at, block) in blocks.filter(|(_, block)| !merge.contains(&block.span.start)) {
        let is_stray = block.part == Part::StrayTag;
        let body = if is_stray { "" } else { document.body(block) };
        let tags = document.raw(block).get(body.len()..).unwrap_or_default();
        let lines: Vec<String> = tags.split_inclusive('\n').map(exact).collect();
        let tags_now = lines.concat();
        if tags_now != tags {
            edits.replace_raw(at, &format!("{body}{tags_now}"));
        }
    }
    edits.finish().text
}

fn exact(line: &str) -> String {
    let Some(tag) = Tag::parse(line).filter(|tag| !tag.is_exact) else { return line.to_owned() };
    let value: String = tag.value.to_lowercase().split([' ', '_']).collect::<Vec<_>>().join("-");
    let name = tag.name.to_lowercase();
    if !matches!(name.as_str(), "category" | "tag") || !is_value(&value) {
        return line.to_owned();
    }
    let start = line.len() - line.trim_start().len();
    let (indent, end) = (line.get(..start), line.get(line.trim_end().len()..));
    format!("{}<!-- @{name}: {value} -->{}", indent.unwrap_or_default(), end.unwrap_or_default())
}

/// Appends as many closing tags as the last private block needs.
fn closed(document: &Document<'_>) -> String {
    let text = document.text;
    let (spans, remarks) = private_spans(text);
    if !remarks.iter().any(|remark| remark.what == UNCLOSED_PRIVATE) {
        return text.to_owned();
    }
    let end = document.line_end();
    let gap = if text.ends_with('\n') { "" } else { end };
    let with = |ends: usize| format!("{text}{gap}{}", format!("</private>{end}").repeat(ends));
    let is_closed = |ends: usize| {
        let (now, remarks) = private_spans(&with(ends));
        let is_same = now.iter().map(|span| span.start).eq(spans.iter().map(|span| span.start));
        is_same && remarks.iter().all(|remark| remark.what != UNCLOSED_PRIVATE)
    };
    // Nested blocks count too: each takes a closing tag from the outer one.
    let (mut fewest, mut most) = (1, remarks.len());
    while fewest < most {
        let half = fewest.midpoint(most);
        if is_closed(half) { most = half } else { fewest = half + 1 }
    }
    if is_closed(fewest) { with(fewest) } else { text.to_owned() }
}

fn renamed(text: &str) -> String {
    let line = |line: &str| {
        let is_it = line.trim_start().starts_with("token_budget");
        if is_it { line.replacen("compact", "economy", 1) } else { line.to_owned() }
    };
    text.split_inclusive('\n').map(line).collect()
}
