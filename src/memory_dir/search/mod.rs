//! Finds entries by their words, the fitting ones first. Nothing private is ever found.

mod literal;
mod rank;
#[cfg(test)]
mod tests;

pub use literal::{Found, Literal, literal};

use super::Files;
use super::document::{Block, Document, Part};
use super::kind::Kind;
use super::name::{is_day, session_day};
use super::public::{Shown, public_lines};
use super::record_meta::meta;
use super::tag::Category;
use crate::privacy::{Gate, Redacted};
use rank::Index;
use serde::Serialize;

/// Hits that are shown, unless asked otherwise.
pub const HITS_MAX: usize = 20;
/// Lines around a hit that are shown, unless asked otherwise.
pub const LINES_AROUND: u32 = 1;

/// What is looked for. What is none does not matter.
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
    /// How many hits are shown.
    pub hits_max: usize,
    /// How many lines above and below a hit are shown.
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The file.
    pub path: String,
    /// Its first line, from 1.
    pub line: u32,
    /// The heading above it.
    pub section: Redacted,
    /// How well it fits: BM25 over the entries of the directory that pass the filters.
    pub score: f64,
    /// Its lines and those around them, with their numbers.
    pub lines: Vec<(u32, Redacted)>,
}

/// An entry that passes the filters.
struct Entry {
    file: usize,
    block: usize,
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
    for (file, (_, document)) in documents.iter().enumerate() {
        let shown = document.blocks().iter().enumerate().filter(|(_, block)| is_found(block));
        for (block, it) in shown.filter(|(_, block)| takes(document, block, query)) {
            index.add(&document.public(it));
            entries.push(Entry { file, block });
        }
    }
    let ranked = index.ranked();
    let best = ranked.into_iter().take(query.hits_max);
    let mut hits: Vec<Hit> = Vec::new();
    for (at, score) in best {
        let Some(entry) = entries.get(at) else { continue };
        let Some((path, document)) = documents.get(entry.file) else { continue };
        let Some(block) = document.blocks().get(entry.block) else { continue };
        hits.push(Hit {
            path: (*path).clone(),
            line: block.line,
            section: gate.redact(document.section(block)),
            score,
            lines: around(document, block, query.lines_around, gate),
        });
    }
    hits
}

fn takes_file(path: &str, document: &Document<'_>, query: &Query) -> bool {
    let is_kind = query.kind.is_none_or(|kind| kind == document.kind());
    let is_late = query
        .since
        .as_deref()
        .is_none_or(|since| day(path, document).is_some_and(|day| since <= day));
    is_kind && is_late && document.kind() != Kind::Config && !document.is_private()
}

/// The day of a file: by its name, its top or its last line.
fn day<'d>(path: &'d str, document: &Document<'d>) -> Option<&'d str> {
    if let Some(day) = session_day(path) {
        return Some(day);
    }
    if let Some((day, _)) = meta(document).date {
        return Some(day).filter(|day| is_day(day));
    }
    let footer = document.blocks().iter().find(|block| block.part == Part::Footer)?;
    let mut words = document.raw(footer).split([' ', '*', '\n', '\r']);
    words.find(|word| is_day(word))
}

/// Whether a block is searched.
fn is_found(block: &Block) -> bool {
    match block.part {
        Part::Entry(_) | Part::Title | Part::Heading => true,
        Part::FrontMatter
        | Part::Section
        | Part::Meta
        | Part::TableHead
        | Part::Comment
        | Part::StrayTag
        | Part::Private
        | Part::Marker
        | Part::Rule
        | Part::Footer
        | Part::Blank => false,
    }
}

fn takes(document: &Document<'_>, block: &Block, query: &Query) -> bool {
    let has_category = query
        .category
        .is_none_or(|category| document.tags(block).any(|tag| tag.category() == Some(category)));
    let has_tag = query.tag.as_deref().is_none_or(|wanted| {
        document.tags(block).any(|tag| tag.name == "tag" && tag.value == wanted)
    });
    has_category && has_tag
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
