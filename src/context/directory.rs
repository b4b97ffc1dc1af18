//! Turns the memory directory into material: public entries by group, each with the tag of its source. The caller
//! decides which files are read.

use super::budget::Kind as Part;
use super::material::{Entry, Group, Material, Section};
use crate::memory_dir::{
    ARCHIVE, Block, CONFLICTS_WITH, Document, FOCUS, Files, IN_PART_REPLACED_BY, Kind, LESSONS,
    PAST, Part as BlockPart, Query, Readable, SOURCE, Status, adr_label, adr_number, is_struck,
    meta, readable, search,
};
use crate::privacy::{Gate, Redacted, Woven, is_private_file, private_spans};
use crate::text::truncate::words_within;
use crate::text::wording;
use jiff::civil::Date;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of what was brought up about an open question, in characters.
const POINTS_LETTERS_MAX: usize = 180;
/// Minimum length of a reason that is left out to save room, in bytes.
const REASON_MIN: usize = 32;
/// Maximum number of entries that a query scores; no block shows as many.
const SCORED_MAX: usize = 200;
/// Resolution of a score.
const SCORE_STEPS: f64 = 1_000.0;
/// Bytes of a decision record that are parsed for its title and status.
const HEAD_BYTES: usize = 4 * 1024;
/// Maximum number of records read without a query, newest first; more than any block has lines for.
const RECORDS_MAX: usize = 200;

/// Selects the files of `paths` that a block may show: without a query, the base files and the newest records.
pub(crate) fn shown_files(paths: &[String], is_query: bool) -> Vec<&str> {
    let mut shown: Vec<&str> =
        paths.iter().map(String::as_str).filter(|path| is_shown(path, is_query)).collect();
    let mut numbers: Vec<u32> = shown.iter().filter_map(|path| adr_number(path)).collect();
    numbers.sort_unstable_by_key(|number| Reverse(*number));
    if let Some(oldest) = numbers.get(RECORDS_MAX - 1).filter(|_| !is_query) {
        shown.retain(|path| adr_number(path).is_none_or(|number| number >= *oldest));
    }
    shown
}

fn is_shown(path: &str, is_query: bool) -> bool {
    match Kind::of_path(path) {
        Kind::ActiveContext
        | Kind::ProductContext
        | Kind::Progress
        | Kind::Patterns
        | Kind::Glossary
        | Kind::Decision => true,
        Kind::Session => is_query,
        Kind::Other => is_query || !path.starts_with(ARCHIVE),
        Kind::Retrospective | Kind::Config => false,
    }
}

/// True for a file that the schema does not know, such as one that a person renamed.
fn is_own(path: &str) -> bool {
    Kind::of_path(path) == Kind::Other && !path.starts_with(ARCHIVE)
}

/// Makes the material of `files`. With a `query`, each entry has a search score, and entries of other files that answer
/// it are included.
pub(crate) fn material(files: &Files, query: Option<&str>, gate: &Gate) -> Material {
    let scores = query.map(|words| scores(files, words, gate));
    let mut reader = Reader { scores, gate, groups: BTreeMap::new(), labels: BTreeSet::new() };
    let (own, ours): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| is_own(path));
    for (path, text) in ours.into_iter().chain(own) {
        reader.file(files, path, text);
    }
    reader.records(files);
    reader.conflicts();
    let groups = Part::DIRECTORY.into_iter().filter_map(|kind| {
        let sections = reader.groups.remove(&kind)?;
        Some(Group { kind, sections })
    });
    Material { groups: groups.collect(), ..Material::default() }
}

/// Scores by file and first line.
type Scores = BTreeMap<String, BTreeMap<u32, u32>>;

fn scores(files: &Files, words: &str, gate: &Gate) -> Scores {
    let query = Query { words: words.to_owned(), hits_max: SCORED_MAX, lines_around: 0 };
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
    groups: BTreeMap<Part, Vec<Section>>,
    /// Tags of entries, and labels of records that a list names, such as `ADR-007`.
    labels: BTreeSet<String>,
}

impl Reader<'_> {
    /// Puts the entries of a file into their groups.
    fn file(&mut self, files: &Files, path: &str, text: &str) {
        let kind = Kind::of_path(path);
        if kind == Kind::Decision && self.scores.is_none() {
            return;
        }
        let (document, _) = Document::parse(kind, text);
        // A file that a person renamed has its title, and is missing under its name.
        let is_it = |it: &&Kind| it.title() == Some(document.title());
        let is_missing = |it: &&Kind| !files.keys().any(|path| Kind::of_path(path) == **it);
        let mut named = Kind::ALL.iter().filter(|it| is_own(path) && is_it(it) && is_missing(it));
        let kind = named.next().copied().unwrap_or(kind);
        let is_over = |it| matches!(it, Status::Deprecated | Status::SupersededBy(_));
        // A record that no longer holds answers no query.
        if kind == Kind::Decision && status(&document).is_some_and(is_over) {
            return;
        }
        let title = document.title();
        let mut heading = None;
        for entry in readable(&document, self.gate).into_iter().filter(|entry| !entry.is_head) {
            if entry.heading.is_some() {
                heading = self.heading(kind, &entry);
            }
            let score = self.score(path, entry.line);
            let is_new = || entry.tag.as_ref().is_none_or(|tag| !self.labels.contains(tag));
            let is_shown = kind != Kind::Other || is_own(path) && is_new();
            let part = match group(kind, &entry).filter(|_| is_shown) {
                Some(part) => part,
                None if score > 0 && !matches!(kind, Kind::Progress) => Part::Answers,
                None => continue,
            };
            if part == Part::Answers {
                // Under the title of its file.
                let heading = self.gate.redact(&format!("### {title}"));
                self.put(
                    part,
                    Some(&heading),
                    Entry { text: sourced(&entry), score, ..Entry::default() },
                );
                continue;
            }
            self.labels.extend(entry.tag.clone());
            if let Some((label, _)) = entry.text.as_str().split_once(':') {
                self.labels.insert(label.trim_start_matches("- ").to_owned());
            }
            let entry = if part == Part::Questions { asked(entry) } else { entry };
            let heading = heading.as_ref().filter(|_| kind != Kind::Other);
            self.put(part, heading, Entry { text: sourced(&entry), score, ..Entry::default() });
        }
    }

    /// Adds an entry to the last section of a group, or to a new one if its heading is another. Entries without a heading
    /// come first.
    fn put(&mut self, part: Part, heading: Option<&Redacted>, mut entry: Entry) {
        if self.scores.is_none() {
            // Of what does not fit, what holds only in part is left out first.
            let mark = format!("{IN_PART_REPLACED_BY} {SOURCE}");
            entry.score = u32::from(!entry.text.as_str().contains(&mark));
            entry.short = (part == Part::Decisions).then(|| without_reason(&entry.text)).flatten();
        }
        let sections = self.groups.entry(part).or_default();
        let mut known = sections.iter_mut().rev().take(heading.map_or(usize::MAX, |_| 1));
        match known.find(|it| it.heading.as_ref() == heading) {
            Some(section) => section.entries.push(entry),
            None => {
                let at = heading.map_or(0, |_| sections.len());
                sections.insert(at, Section { heading: heading.cloned(), entries: vec![entry] });
            }
        }
    }

    /// Headings above an entry, without that of a section that the block names itself.
    fn heading(&self, kind: Kind, entry: &Readable) -> Option<Redacted> {
        // Rows of two cells need no header.
        let heading = entry.heading.as_ref().filter(|_| kind != Kind::Glossary)?;
        let is_named =
            kind.sections().contains(&entry.section.as_str()) || entry.section == LESSONS;
        let is_section = heading.as_str().starts_with("## ");
        if is_section && (kind == Kind::ProductContext || !is_named) {
            return Some(Redacted::weave(&[Woven::Ours("#"), Woven::Passed(heading)]));
        }
        if !is_section {
            return Some(heading.clone());
        }
        let first = heading.as_str().find('\n')? + 1;
        Some(heading.cut(first..heading.len()))
    }

    fn score(&self, path: &str, line: u32) -> u32 {
        let lines = self.scores.as_ref().and_then(|scores| scores.get(path));
        lines.and_then(|lines| lines.get(&line)).copied().unwrap_or_default()
    }

    /// Adds accepted records that no list names, by descending number, a line each.
    fn records(&mut self, files: &Files) {
        let is_record = |path: &&String| Kind::of_path(path) == Kind::Decision;
        let mut paths: Vec<&String> = files.keys().filter(is_record).collect();
        paths.sort_by_key(|path| Reverse((adr_number(path), *path)));
        for path in paths {
            let label = adr_number(path).map(adr_label).unwrap_or_default();
            if self.labels.contains(&label) {
                continue;
            }
            let line = files.get(path).and_then(|text| self.record(path, &label, text));
            line.into_iter().for_each(|entry| self.put(Part::Decisions, None, entry));
        }
    }

    /// A record as one line, such as `- ADR-007: Keep the queue in Postgres (2026-01-02)`; `None` if it is not
    /// accepted.
    fn record(&self, path: &str, label: &str, text: &str) -> Option<Entry> {
        if is_private_file(text) {
            return None;
        }
        let (document, _) = Document::parse(Kind::Decision, head(text));
        (status(&document)? == Status::Accepted).then_some(())?;
        let title = document.blocks.iter().find(|block| block.part == BlockPart::Title);
        let words = title.map(|title| document.public(title).into_owned()).unwrap_or_default();
        let words = words.trim_start_matches('#').trim();
        let is_labelled = words.get(..4).is_some_and(|it| it.eq_ignore_ascii_case("adr-"));
        let words = match (words.is_empty(), is_labelled || label.is_empty()) {
            (true, _) => path.to_owned(),
            (false, true) => words.to_owned(),
            (false, false) => format!("{label}: {words}"),
        };
        let top = meta(&document);
        let tag = title.and_then(|title| document.tags(title).find_map(|tag| tag.ours()));
        if tag.is_some() && top.mark.is_some_and(is_past) {
            return None;
        }
        let behind: Vec<&str> =
            top.date.map(|(date, _)| date).into_iter().chain(top.mark).collect();
        let behind =
            if behind.is_empty() { String::new() } else { format!(" ({})", behind.join("; ")) };
        let tag = tag.map(|tag| format!(" [{tag}]")).unwrap_or_default();
        let text = mark_first(&self.gate.redact(&format!("- {words}{behind}")));
        let text = Redacted::weave(&[Woven::Passed(&text), Woven::Label(&tag)]);
        let lines = self.scores.as_ref().and_then(|scores| scores.get(path));
        let score = lines.and_then(|lines| lines.values().max().copied()).unwrap_or_default();
        Some(Entry { text, score, ..Entry::default() })
    }

    /// Moves entries that are marked as contradicting one another out of their groups, pair by pair.
    fn conflicts(&mut self) {
        // As rendered; a person may use the same words.
        let mark = format!("{CONFLICTS_WITH} {SOURCE}");
        let mut marked: Vec<Entry> = Vec::new();
        let is_marked = |entry: &mut Entry| entry.text.as_str().contains(&mark);
        for part in [Part::Rules, Part::Decisions, Part::Requests] {
            for section in self.groups.get_mut(&part).into_iter().flatten() {
                marked.extend(section.entries.extract_if(.., is_marked));
            }
        }
        let mut pairs: Vec<Entry> = Vec::with_capacity(marked.len());
        while !marked.is_empty() {
            let first = marked.remove(0);
            let text = first.text.clone();
            pairs.push(first);
            let tag = text.as_str().strip_suffix(']').and_then(|it| it.rsplit_once('['));
            let Some((_, tag)) = tag else { continue };
            if let Some(at) = marked.iter().position(|entry| entry.text.as_str().contains(tag)) {
                pairs.push(marked.remove(at));
            }
        }
        for sections in self.groups.values_mut() {
            sections.retain(|section| !section.entries.is_empty());
        }
        self.groups.retain(|_, sections| !sections.is_empty());
        if !pairs.is_empty() {
            let sections = vec![Section { heading: None, entries: pairs }];
            self.groups.insert(Part::Conflicts, sections);
        }
    }
}

/// Group of an entry; `None` if it is shown only if it answers a query.
fn group(kind: Kind, entry: &Readable) -> Option<Part> {
    // Requests that we put into the focus are also among the open ones.
    if entry.tag.as_ref().is_some_and(|tag| tag.starts_with(FOCUS)) {
        return None;
    }
    if entry.tag.is_some() && (is_past(entry.text.as_str()) || is_struck(entry.text.as_str())) {
        return None;
    }
    match (kind, entry.section.as_str()) {
        (Kind::Patterns, LESSONS) => Some(Part::Lessons),
        (Kind::Patterns, _) => Some(Part::Rules),
        (Kind::ProductContext, _) => Some(Part::Project),
        (Kind::ActiveContext, "Recent Decisions") => Some(Part::Decisions),
        (Kind::ActiveContext, "Open Questions") => Some(Part::Questions),
        (Kind::ActiveContext, "Blockers") => Some(Part::Blockers),
        (Kind::ActiveContext, _) => Some(Part::Focus),
        (Kind::Progress, "Completed (Recent)") => None,
        (Kind::Progress, _) if is_ticked(entry.text.as_str()) => None,
        (Kind::Progress, _) => Some(Part::Requests),
        (Kind::Glossary, _) => Some(Part::Glossary),
        // A person moved it to a file of their own, with its heading.
        (Kind::Other, section) => {
            entry.tag.as_ref().filter(|tag| tag.starts_with(SOURCE))?;
            let mut kinds = [Kind::Patterns, Kind::ActiveContext, Kind::Progress].into_iter();
            group(kinds.find(|it| it.sections().contains(&section) || section == LESSONS)?, entry)
        }
        (Kind::Decision | Kind::Session | Kind::Retrospective | Kind::Config, _) => None,
    }
}

/// True if a mark says that the end of what the text states is past. A sync marks only what it also tags.
fn is_past(text: &str) -> bool {
    let is_day = |it: &str| it.get(1..11).is_some_and(|day| day.parse::<Date>().is_ok());
    text.split(PAST).skip(1).any(is_day)
}

fn is_ticked(text: &str) -> bool {
    text.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("- [x]"))
}

/// A question that says that it was left open, with the last of what was brought up about it.
fn asked(mut entry: Readable) -> Readable {
    const LEFT_OPEN: &str = "(left open): ";
    let words = entry.text.as_str();
    let points = words.find(LEFT_OPEN).filter(|_| entry.tag.is_some());
    if let Some(from) = points.map(|at| at + LEFT_OPEN.len()) {
        let marks = words.rfind(" (2").filter(|at| from < *at && words.ends_with(')'));
        let marks = marks.unwrap_or(words.len());
        let points = &words[from..marks];
        let mut back = points.char_indices().rev().map(|(at, _)| at);
        let room = back.nth(POINTS_LETTERS_MAX - 1).unwrap_or(0);
        let begins = || points.match_indices("; ").map(|(at, mark)| at + mark.len());
        let later = || begins().find(|at| room <= *at).or_else(|| begins().last());
        let first = from + if room == 0 { 0 } else { later().unwrap_or(0) };
        let last = first + words_within(&words[first..marks], POINTS_LETTERS_MAX).len();
        let parts = [0..from, first..last, marks..words.len()].map(|it| entry.text.cut(it));
        let [asked, points, behind] = parts.each_ref().map(Woven::Passed);
        let head = Woven::Ours(if from < first { "… " } else { "" });
        let tail = Woven::Ours(if last < marks { " …" } else { "" });
        entry.text = Redacted::weave(&[asked, head, points, tail, behind]);
    }
    entry
}

/// Moves the mark that a part no longer holds to the front: behind the text, the old value would be read as current.
fn mark_first(text: &Redacted) -> Redacted {
    let words = text.as_str();
    let start = if words.starts_with("- [ ] ") { "- [ ] ".len() } else { "- ".len() };
    let open = words.rfind(" (").filter(|open| start < *open && words.ends_with(')'));
    let open = open.filter(|_| words.starts_with("- "));
    // As rendered; a person may use the same words.
    let mark = format!("{IN_PART_REPLACED_BY} {SOURCE}");
    let Some(open) = open.filter(|open| words[*open..].contains(&mark)) else {
        return text.clone();
    };
    Redacted::weave(&[
        Woven::Passed(&text.cut(0..start)),
        Woven::Passed(&text.cut(open + 1..words.len())),
        Woven::Passed(&text.cut(start - 1..open)),
    ])
}

/// An entry such as `- Pay monthly – Ann: it is simpler, and cheaper (2026-01-02) [src-1]` with `…` for the reason. What a
/// statement says behind a dash of its own is not cut: it is short, or an exception.
fn without_reason(text: &Redacted) -> Option<Redacted> {
    const DASH: &str = " – ";
    let words = text.as_str();
    let tag = words.rfind(" [").filter(|_| words.ends_with(']'))?;
    let day = words[..tag].rfind(" (2").filter(|_| words[..tag].ends_with(')'))?;
    let reason = words[..day].rfind(DASH).filter(|_| !words.starts_with("- ("))?;
    let said = &words[reason + DASH.len()..day];
    if said.len() < REASON_MIN || wording::begins_with_exception(said) {
        return None;
    }
    let parts = [0..reason, day..words.len()].map(|it| text.cut(it));
    let [before, behind] = parts.each_ref().map(Woven::Passed);
    Some(Redacted::weave(&[before, Woven::Ours(" …"), behind]))
}

/// Appends the tag of its source to an entry, unless it is a row of a table.
fn sourced(entry: &Readable) -> Redacted {
    match &entry.tag {
        Some(tag) if tag.starts_with(SOURCE) && !entry.text.as_str().starts_with('|') => {
            Redacted::weave(&[
                Woven::Passed(&mark_first(&entry.text)),
                Woven::Ours(" ["),
                Woven::Label(tag),
                Woven::Ours("]"),
            ])
        }
        Some(_) | None => entry.text.clone(),
    }
}

/// Status of a record: at its top, or in a section of that name.
fn status(document: &Document<'_>) -> Option<Status> {
    let first = || {
        let is_it = |block: &&Block| document.section(block).eq_ignore_ascii_case("status");
        let block = document.entries().find(is_it)?;
        Status::parse(document.public(block).trim().trim_matches(['*', '.']))
    };
    meta(document).status.map(|(status, _)| status).or_else(first)
}

/// Head of a text in whole lines; the whole text if the head has an unpaired private tag.
fn head(text: &str) -> &str {
    if text.len() <= HEAD_BYTES {
        return text;
    }
    let head = text.get(..text.floor_char_boundary(HEAD_BYTES)).unwrap_or_default();
    let head = head.rfind('\n').and_then(|end| head.get(..=end)).unwrap_or(head);
    if private_spans(head).1.is_empty() { head } else { text }
}
