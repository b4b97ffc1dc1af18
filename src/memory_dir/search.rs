//! Searches entries by words, best first. Never finds private text.

use super::document::{Block, Document, Part};
use super::kind::{Files, Kind};
use super::public::{Shown, public_lines};
use crate::privacy::{Gate, Redacted};
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

/// Entries that match `query`, best first, each memory once; ties in the order of files and lines.
pub fn search(files: &Files, query: &Query, gate: &Gate) -> Vec<Hit> {
    let documents: Vec<(&String, Document<'_>)> = files
        .iter()
        .map(|(path, text)| (path, Document::parse(Kind::of_path(path), text).0))
        .filter(|(_, document)| document.kind() != Kind::Config && !document.is_private())
        .collect();
    let words = search::Query::of(&query.words);
    let mut ranking = Ranking::new(&words);
    let mut entries = Vec::new();
    for (path, document) in &documents {
        let is_searched =
            |block: &&Block| matches!(block.part, Part::Entry(_) | Part::Title | Part::Heading);
        for block in document.blocks().iter().filter(is_searched) {
            ranking.add(&[&document.public(block)]);
            entries.push((*path, document, block));
        }
    }
    let best = ranking.ranked(&Frequencies::default()).into_iter();
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
    best.filter_map(hit).take(query.hits_max).collect()
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

#[cfg(test)]
#[path = "search_test.rs"]
mod tests;
