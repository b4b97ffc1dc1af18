//! Searches entries by words, best first, and lines for exact text. Never finds private text.

use super::document::{Block, Document, Part};
use super::kind::{CONFIG, Files, Kind, SESSIONS};
use super::name::session_day;
use super::public::{Shown, public_lines};
use super::tag::Tag;
use crate::privacy::{Gate, Redacted, Woven};
use crate::search::{self, Frequencies, Ranking};
use serde::Serialize;
use std::collections::HashSet;

/// Default maximum number of hits.
pub(crate) const HITS_MAX: usize = 20;
/// Default number of lines shown around a hit.
pub(crate) const LINES_AROUND: u32 = 1;

/// A search.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Query {
    /// Words in any case and order; an entry needs one. Without words, every entry is a hit.
    pub words: String,
    /// Maximum number of hits.
    pub hits_max: usize,
    /// Lines shown above and below a hit.
    pub lines_around: u32,
}

impl Default for Query {
    fn default() -> Query {
        Query { words: String::new(), hits_max: HITS_MAX, lines_around: LINES_AROUND }
    }
}

/// An entry that fits.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Hit {
    /// The file.
    pub path: String,
    /// Its first line, from 1.
    pub line: u32,
    /// The heading above it.
    pub section: Redacted,
    /// Relevance: BM25 over the entries of the directory.
    pub score: f64,
    /// Its lines and those around them, with their numbers.
    pub lines: Vec<(u32, Redacted)>,
}

/// Entries that match `query`, best first, each memory once; ties in the order of files and lines. For a tag, its entry.
pub fn search(files: &Files, query: &Query, gate: &Gate) -> Vec<Hit> {
    let documents: Vec<(&String, Document<'_>)> = files
        .iter()
        .map(|(path, text)| (path, Document::parse(Kind::of_path(path), text).0))
        .filter(|(_, document)| document.kind != Kind::Config && !document.is_private())
        .collect();
    let words = search::Query::of(&query.words);
    let mut ranking = Ranking::new(&words);
    let mut entries = Vec::new();
    for (path, document) in &documents {
        let is_searched =
            |block: &&Block| matches!(block.part, Part::Entry(_) | Part::Title | Part::Heading);
        for block in document.blocks.iter().filter(is_searched) {
            ranking.add(&[&document.public(block)]);
            entries.push((*path, document, block));
        }
    }
    let tag = query.words.trim();
    let named = entries.iter().position(|(_, document, block)| {
        document.tags(block).any(|it| it.ours().is_some_and(|ours| ours == tag))
    });
    let best = match named {
        Some(at) => vec![(at, 1.0)],
        None => ranking.ranked(&Frequencies::default()),
    };
    // A memory may stand in several files, with the same tag.
    let mut met = HashSet::new();
    let hit = |(at, score): (usize, f64)| {
        let (path, document, block) = *entries.get(at)?;
        if !document.tags(block).filter_map(|tag| tag.ours()).all(|tag| met.insert(tag)) {
            return None;
        }
        let section = gate.redact(document.section(block));
        let lines = around(document, block, query.lines_around, gate);
        Some(Hit { path: path.clone(), line: block.line, section, score, lines })
    };
    best.into_iter().filter_map(hit).take(query.hits_max).collect()
}

/// Public lines of a block and those around it.
fn around(document: &Document<'_>, block: &Block, more: u32, gate: &Gate) -> Vec<(u32, Redacted)> {
    let lines = public_lines(document);
    let shown = Shown::of(&lines, gate);
    let count = memchr::memchr_iter(b'\n', document.body(block).trim_end().as_bytes()).count();
    let last = block.line.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    let wanted = block.line.saturating_sub(more)..=last.saturating_add(more);
    let lines = lines.iter().filter(|(number, _)| wanted.contains(number));
    lines.map(|(number, line)| (*number, shown.line(line))).collect()
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct LiteralQuery<'a> {
    pub text: &'a str,
    pub sessions: bool,
    /// Earliest day of sessions that are named for a day.
    pub since: Option<&'a str>,
    pub category: Option<&'a str>,
    pub root: &'a str,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct LiteralPage {
    pub page: Redacted,
    /// Number of matching lines, and of files with such lines.
    pub matches: usize,
    pub files: usize,
}

/// Searches the lines of all files for exact text, without tags. Prints each hit below the category tags of its entry, as
/// ConKeeper's own search does.
pub(crate) fn literal(files: &Files, query: &LiteralQuery<'_>, gate: &Gate) -> LiteralPage {
    let label = |text: &str| Redacted::weave(&[Woven::Label(text)]);
    let mut found = LiteralPage::default();
    let asked = gate.redact(query.text);
    let mut pieces: Vec<Redacted> = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| is_searched(path, query)) {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        if document.is_private() || query.text.is_empty() {
            continue;
        }
        let lines = matching_lines(&document, query, gate);
        if !lines.is_empty() {
            pieces.push(label(&format!("\n### {}{path}\n\n", query.root)));
            found.matches += lines.len();
            found.files += 1;
            pieces.extend(lines);
        }
    }
    let asked = Woven::Passed(&asked);
    if found.matches == 0 {
        let (before, after) = ("No results found for \"", "\" in project memory.\n");
        found.page = Redacted::weave(&[Woven::Ours(before), asked, Woven::Ours(after)]);
        return found;
    }
    let (matches, files) = (found.matches, found.files);
    let end = label(&format!("\n---\nFound {matches} matches across {files} files.\n"));
    let mut parts = vec![Woven::Ours("## Results for: \""), asked, Woven::Ours("\"\n\n")];
    parts.extend(pieces.iter().map(Woven::Passed));
    parts.push(Woven::Passed(&end));
    found.page = Redacted::weave(&parts);
    found
}

fn is_searched(path: &str, query: &LiteralQuery<'_>) -> bool {
    if !path.starts_with(SESSIONS) {
        return path != CONFIG;
    }
    let is_late = |since: &str| session_day(path).is_none_or(|day| since <= day);
    query.sessions && query.since.is_none_or(is_late)
}

fn matching_lines(document: &Document<'_>, query: &LiteralQuery<'_>, gate: &Gate) -> Vec<Redacted> {
    let lines = public_lines(document);
    if !lines.iter().any(|(_, line)| line.contains(query.text)) {
        return Vec::new();
    }
    let shown = Shown::of(&lines, gate);
    let mut found = Vec::new();
    for (number, line) in lines.iter().filter(|(_, line)| line.contains(query.text)) {
        if Tag::parse(line).is_some() {
            continue;
        }
        let after = document.blocks.partition_point(|block| block.line <= *number);
        let block = after.checked_sub(1).and_then(|at| document.blocks.get(at));
        let tags = block.into_iter().flat_map(|block| document.tags(block));
        let tags: Vec<Tag<'_>> = tags.filter(|tag| tag.name == "category").collect();
        if query.category.is_some_and(|wanted| tags.iter().all(|tag| tag.value != wanted)) {
            continue;
        }
        let tags = tags.iter().map(|tag| format!("<!-- @category: {} -->\n", tag.value));
        found.push(Redacted::weave(&[
            Woven::Passed(&gate.redact(&tags.collect::<String>())),
            Woven::Label(&format!("**Line {number}:** ")),
            Woven::Passed(&shown.line(line)),
            Woven::Ours("\n"),
        ]));
    }
    found
}

#[cfg(test)]
#[path = "search_test.rs"]
mod tests;
