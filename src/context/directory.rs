//! The memory directory as material: files by kind, entries under their headings, nothing private.
//! The caller decides which files are read.

use super::budget::Budget;
use super::material::{Decision, Document, Entry, Material, Section};
use crate::memory_dir::{
    self, Files, Kind, Part, Query, Readable, SESSIONS, Status, adr_label, adr_number, meta,
    readable, search, session_day,
};
use crate::privacy::{Gate, Redacted, Woven, is_private_file, private_spans};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of entries that a query scores; no block shows as many.
const SCORED_MAX: usize = 200;
/// Resolution of a score.
const SCORE_STEPS: f64 = 1_000.0;
/// Bytes of a decision that are read to know its title and status.
const HEAD_BYTES: usize = 4 * 1024;

/// Sessions among `paths`, newest first by the day in their name. Files without a day come last.
pub(crate) fn newest_sessions<'p>(paths: impl IntoIterator<Item = &'p str>) -> Vec<&'p str> {
    let is_session =
        |path: &&str| path.starts_with(SESSIONS) && Kind::of_path(path) == Kind::Session;
    let mut sessions: Vec<&str> = paths.into_iter().filter(is_session).collect();
    sessions.sort_by_key(|path| Reverse((session_day(path), *path)));
    sessions
}

/// Returns whether a block may show the file at `path` without a query: base files and decisions.
/// Of sessions it shows the newest only.
pub(crate) fn is_shown(path: &str) -> bool {
    match Kind::of_path(path) {
        Kind::ActiveContext
        | Kind::ProductContext
        | Kind::Progress
        | Kind::Patterns
        | Kind::Glossary
        | Kind::Decision => true,
        Kind::Session | Kind::Retrospective | Kind::Config | Kind::Other => false,
    }
}

/// Material of `files` for a block within `budget`. With a `query`, each entry has a search score.
pub(crate) fn material(
    files: &Files,
    budget: &Budget,
    query: Option<&str>,
    gate: &Gate,
) -> Material {
    let reader = Reader { scores: query.map(|words| scores(files, words, gate)), gate };
    let file = |path: &str| files.get(path).and_then(|text| reader.document(path, text));
    let paths = || files.keys().map(String::as_str);
    Material {
        active_context: file(memory_dir::ACTIVE_CONTEXT),
        product_context: file(memory_dir::PRODUCT_CONTEXT),
        progress: file(memory_dir::PROGRESS),
        patterns: file(memory_dir::PATTERNS),
        sessions: newest_sessions(paths()).into_iter().filter_map(file).collect(),
        decisions: reader.decisions(files, budget),
        glossary: file(memory_dir::GLOSSARY),
        ..Material::default()
    }
}

/// Scores by file and first line.
type Scores = BTreeMap<String, BTreeMap<u32, u32>>;

fn scores(files: &Files, words: &str, gate: &Gate) -> Scores {
    let query = Query {
        words: words.to_owned(),
        hits_max: SCORED_MAX,
        lines_around: 0,
        ..Query::default()
    };
    let mut scores = Scores::new();
    for hit in search(files, &query, gate) {
        let score = (hit.score * SCORE_STEPS).round().max(1.0) as u32;
        scores.entry(hit.path).or_default().insert(hit.line, score);
    }
    scores
}

struct Reader<'g> {
    /// `None` without a query.
    scores: Option<Scores>,
    gate: &'g Gate,
}

impl Reader<'_> {
    /// File as it may be shown; `None` if only its head is left.
    fn document(&self, path: &str, text: &str) -> Option<Document> {
        let kind = Kind::of_path(path);
        let (document, _) = memory_dir::Document::parse(kind, text);
        let entries = readable(&document, self.gate);
        if entries.iter().all(|entry| entry.is_head) {
            return None;
        }
        let mut sections = vec![Section::default()];
        // The name of a base file is that of its part.
        let has_head = matches!(kind, Kind::Decision | Kind::Session);
        for entry in entries.into_iter().filter(|entry| has_head || !entry.is_head) {
            let Readable { line, heading, text, .. } = entry;
            if heading.is_some() {
                sections.push(Section { heading, entries: Vec::new() });
            }
            let score = self.score(path, Some(line));
            if let Some(section) = sections.last_mut() {
                section.entries.push(Entry { text, score });
            }
        }
        sections.retain(|section| !section.entries.is_empty());
        Some(Document { name: self.gate.redact(path), sections })
    }

    /// Score of an entry, or the best of a file.
    fn score(&self, path: &str, line: Option<u32>) -> u32 {
        let lines = self.scores.as_ref().and_then(|scores| scores.get(path));
        let score = lines.and_then(|lines| match line {
            Some(line) => lines.get(&line),
            None => lines.values().max(),
        });
        score.copied().unwrap_or_default()
    }

    /// Accepted decisions by descending number: as many whole as can be shown, the others by a
    /// line.
    fn decisions(&self, files: &Files, budget: &Budget) -> Vec<Decision> {
        let is_decision = |path: &&String| Kind::of_path(path) == Kind::Decision;
        let mut paths: Vec<&String> = files.keys().filter(is_decision).collect();
        paths.sort_by_key(|path| Reverse((adr_number(path), *path)));
        let lines = paths.iter().filter_map(|path| {
            let line = self.line(path, files.get(*path)?)?;
            Some((*path, Decision { line, document: None }))
        });
        let mut decisions: Vec<(&String, Decision)> = lines.collect();
        // Of those that answer alike the newest are shown whole.
        let mut whole: Vec<&mut (&String, Decision)> = decisions.iter_mut().collect();
        whole.sort_by_key(|(_, decision)| Reverse(decision.line.score));
        for (path, decision) in whole.into_iter().take(budget.decisions_max()) {
            decision.document = files.get(*path).and_then(|text| self.document(path, text));
        }
        decisions.into_iter().map(|(_, decision)| decision).collect()
    }

    /// A decision as one line, such as `ADR-007: Keep the queue in Postgres`; `None` if it is not
    /// accepted.
    fn line(&self, path: &str, text: &str) -> Option<Entry> {
        if is_private_file(text) {
            return None;
        }
        let (document, _) = memory_dir::Document::parse(Kind::Decision, head(text));
        (status(&document)? == Status::Accepted).then_some(())?;
        let title = document.blocks().iter().find(|block| block.part == Part::Title);
        let title = title.map(|title| document.public(title).into_owned()).unwrap_or_default();
        let words = self.gate.redact(title.trim_start_matches('#').trim());
        let is_labelled = words.as_str().get(..4).is_some_and(|it| it.eq_ignore_ascii_case("adr-"));
        let label = adr_number(path).map(adr_label).unwrap_or_default();
        let text = match (words.is_empty(), is_labelled || label.is_empty()) {
            (true, _) => self.gate.redact(path),
            (false, true) => words,
            (false, false) => {
                Redacted::weave(&[Woven::Label(&label), Woven::Ours(": "), Woven::Passed(&words)])
            }
        };
        Some(Entry { text, score: self.score(path, None) })
    }
}

/// Status of a record: at its top, or in a section of that name.
fn status(document: &memory_dir::Document<'_>) -> Option<Status> {
    let first = || {
        let is_it =
            |block: &&memory_dir::Block| document.section(block).eq_ignore_ascii_case("status");
        let block = document.entries().find(is_it)?;
        Status::parse(document.public(block).trim().trim_matches(['*', '.']))
    };
    meta(document).status.map(|(status, _)| status).or_else(first)
}

/// Head of a text in whole lines; all of it if a private tag there has no other half in the head.
fn head(text: &str) -> &str {
    if text.len() <= HEAD_BYTES {
        return text;
    }
    let head = text.get(..text.floor_char_boundary(HEAD_BYTES)).unwrap_or_default();
    let head = head.rfind('\n').and_then(|end| head.get(..=end)).unwrap_or(head);
    if private_spans(head).1.is_empty() { head } else { text }
}
