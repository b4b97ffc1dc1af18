//! Finds entries by their words, the best first (BM25). Nothing private is ever found.

use super::document::{Block, Document, Part};
use super::kind::{Files, Kind};
use super::name::{is_day, meta, session_day};
use super::public::{Shown, public_lines};
use super::tag::Category;
use crate::privacy::{Gate, Redacted};
use crate::text::tokens::keys;
use serde::Serialize;
use std::collections::HashMap;

/// Hits that are shown, unless asked otherwise.
pub(crate) const HITS_MAX: usize = 20;
/// Lines around a hit that are shown, unless asked otherwise.
pub(crate) const LINES_AROUND: u32 = 1;

/// A search; absent criteria do not matter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Query {
    /// Words, in any case and order; an entry needs one of them. Without any, every entry is a hit.
    pub words: String,
    /// Entries with this category.
    pub category: Option<Category>,
    /// Entries with this tag.
    pub tag: Option<String>,
    /// Entries of files of this kind.
    pub kind: Option<Kind>,
    /// Entries of files of this day or later, such as `2026-11-21`; files without a day are left out.
    pub since: Option<String>,
    /// Maximum number of hits.
    pub hits_max: usize,
    /// Lines shown above and below a hit.
    pub lines_around: u32,
}

impl Default for Query {
    fn default() -> Query {
        Query {
            words: String::new(),
            category: None,
            tag: None,
            kind: None,
            since: None,
            hits_max: HITS_MAX,
            lines_around: LINES_AROUND,
        }
    }
}

/// An entry that fits.
#[derive(schemars::JsonSchema, Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The file.
    pub path: String,
    /// Its first line, from 1.
    pub line: u32,
    /// The heading above it.
    pub section: Redacted,
    /// Relevance: BM25 over the entries of the directory that pass the filters.
    pub score: f64,
    /// Its lines and those around them, with their numbers.
    pub lines: Vec<(u32, Redacted)>,
}

/// The entries that fit `query`, the best first; of equal ones in the order of files and lines.
pub fn search(files: &Files, query: &Query, gate: &Gate) -> Vec<Hit> {
    let documents: Vec<(&String, Document<'_>)> = files
        .iter()
        .map(|(path, text)| (path, Document::parse(Kind::of_path(path), text).0))
        .filter(|(path, document)| takes_file(path, document, query))
        .collect();
    let mut index = Index::new(&query.words);
    let mut entries = Vec::new();
    for (path, document) in &documents {
        for block in document.blocks().iter().filter(|block| takes(document, block, query)) {
            index.add(&document.public(block));
            entries.push((*path, document, block));
        }
    }
    let best = index.ranked().into_iter().take(query.hits_max);
    let hit = |(at, score): (usize, f64)| {
        let (path, document, block) = *entries.get(at)?;
        let section = gate.redact(document.section(block));
        let lines = around(document, block, query.lines_around, gate);
        Some(Hit { path: path.clone(), line: block.line, section, score, lines })
    };
    best.filter_map(hit).collect()
}

fn takes_file(path: &str, document: &Document<'_>, query: &Query) -> bool {
    let is_kind = query.kind.is_none_or(|kind| kind == document.kind());
    let is_late = |since: &String| day(path, document).is_some_and(|day| since.as_str() <= day);
    is_kind
        && query.since.as_ref().is_none_or(is_late)
        && document.kind() != Kind::Config
        && !document.is_private()
}

/// The day of a file: by its name, its top or its last line.
fn day<'d>(path: &'d str, document: &Document<'d>) -> Option<&'d str> {
    if let Some(day) = session_day(path) {
        return Some(day);
    }
    if let Some((day, _)) = meta(document).date {
        return Some(day).filter(|day| is_day(day));
    }
    let footer = document.first(Part::Footer)?;
    document.raw(footer).split([' ', '*', '\n', '\r']).find(|word| is_day(word))
}

fn takes(document: &Document<'_>, block: &Block, query: &Query) -> bool {
    let has_category = |it| document.tags(block).any(|tag| tag.category() == Some(it));
    let has_tag = |it: &str| document.tags(block).any(|tag| tag.name == "tag" && tag.value == it);
    matches!(block.part, Part::Entry(_) | Part::Title | Part::Heading)
        && query.category.is_none_or(has_category)
        && query.tag.as_deref().is_none_or(has_tag)
}

/// The lines of a block and those around it that may be shown.
fn around(document: &Document<'_>, block: &Block, more: u32, gate: &Gate) -> Vec<(u32, Redacted)> {
    let lines = public_lines(document);
    let shown = Shown::of(&lines, gate);
    let count = memchr::memchr_iter(b'\n', document.body(block).trim_end().as_bytes()).count();
    let last = block.line.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    let wanted = block.line.saturating_sub(more)..=last.saturating_add(more);
    let lines = lines.iter().filter(|(number, _)| wanted.contains(number));
    lines.map(|(number, line)| (*number, shown.line(line))).collect()
}

const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;
/// Maximum number of query words.
const WORDS_MAX: usize = 32;

/// Counts the words of a query in entries.
pub(super) struct Index {
    words: HashMap<u64, usize>,
    /// The words of each entry, and how often each word of the query is among them.
    entries: Vec<(usize, Vec<u32>)>,
}

impl Index {
    pub(super) fn new(query: &str) -> Index {
        let mut words = HashMap::new();
        for word in keys(query) {
            let next = words.len();
            if next < WORDS_MAX {
                words.entry(word).or_insert(next);
            }
        }
        Index { words, entries: Vec::new() }
    }

    pub(super) fn add(&mut self, text: &str) {
        let mut counts = vec![0; self.words.len()];
        let words = keys(text);
        for at in words.iter().filter_map(|word| self.words.get(word)) {
            counts[*at] += 1;
        }
        self.entries.push((words.len(), counts));
    }

    /// The entries that have a word, by their order of coming, with their scores; the best first. All, with
    /// no score, if there is no word.
    pub(super) fn ranked(&self) -> Vec<(usize, f64)> {
        if self.words.is_empty() {
            return (0..self.entries.len()).map(|at| (at, 0.0)).collect();
        }
        let count = self.entries.len() as f64;
        let total: usize = self.entries.iter().map(|(length, _)| length).sum();
        let mean = (total as f64 / count.max(1.0)).max(1.0);
        let mut with: Vec<f64> = vec![0.0; self.words.len()];
        for (_, counts) in &self.entries {
            for (with, count) in with.iter_mut().zip(counts) {
                *with += f64::from(u8::from(*count > 0));
            }
        }
        let rarity: Vec<f64> =
            with.iter().map(|with| (1.0 + (count - with + 0.5) / (with + 0.5)).ln()).collect();
        let score = |(length, counts): &(usize, Vec<u32>)| -> f64 {
            let long = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * *length as f64 / mean);
            let each = counts.iter().zip(&rarity).map(|(count, rarity)| {
                let count = f64::from(*count);
                rarity * count * (SATURATION + 1.0) / (count + long)
            });
            each.sum()
        };
        let scored = self.entries.iter().enumerate().map(|(at, entry)| (at, score(entry)));
        let mut found: Vec<(usize, f64)> = scored.filter(|(_, score)| *score > 0.0).collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        found
    }
}

#[cfg(test)]
#[path = "search_test.rs"]
mod tests;
