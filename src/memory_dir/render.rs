//! Renders memories as files. Rendering is a pure function of the memories: the same memories give
//! the same bytes. A memory is shown in a person's wording, if they edited it, wherever it is shown. Rendering ignores
//! everything else in the files; the merge combines both.
//!
//! Each run keeps its rendering as the base of the next.

use super::document::{Document, Part, Shape};
use super::edit::NewEntry;
use super::escape::{words_inline, words_line};
use super::facts::{
    CONFLICTS_WITH, DECIDED, Facts, IN_PART_REPLACED_BY, PROPOSED, SETTLED_BY, SessionNote, ending,
    is_past_mark, is_standing_rule, marks, past_end,
};
use super::kind::{self, Files, Kind};
use super::name::{adr_label, adr_number, adr_path, session_path};
use super::page::{Page, entry};
use super::tag::{Category, FOCUS, SOURCE, Tag, source_tags};
use super::units::{item_of, with_marks};
use crate::domain::{
    Attempt, Claim, ClaimKind, Decision, Discussion, Memory, MemoryId, MemoryState, PersonRequest,
    Speaker, Stage, without_label,
};
use crate::text::phrase::{in_one_line, without_asides};
use crate::text::tokens::{folded, keys};
use crate::text::truncate;
use crate::text::wording;
use foldhash::quality::FixedState;
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hash, Hasher};
use std::thread;

/// The rendered directory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rendered {
    /// All files with a rendered entry; the base of the next run.
    pub files: Files,
    /// Files that a person renamed: current name to the name in the base.
    pub renamed: BTreeMap<String, String>,
    /// Active memories that no file shows because the gate leaves nothing of their text.
    pub unplaced: Vec<MemoryId>,
    /// People's wordings that memories keep, by tag.
    pub wordings: BTreeMap<String, String>,
    /// Tags of memories that no list is to show any more, such as settled discussions.
    pub ended: BTreeSet<String>,
    /// Hashes of what files were rendered from.
    pub inputs: BTreeMap<String, u64>,
}

/// Renders `facts`. `base` is the last rendering, `disk` the current directory: numbers and names
/// of records and sessions come from them, and the date at the end of an unchanged file. A file of the base that the last
/// run rendered from the same memories is not rendered again.
pub fn render(facts: &Facts<'_>, base: &Files, disk: &Files) -> Rendered {
    let tags = source_tags(facts.memories.iter().map(|memory| memory.id));
    let wording = |it: &Memory| Some((tags.get(&it.id)?.clone(), it.edited.clone()?));
    let wordings = facts.memories.iter().filter_map(wording).collect();
    let named = NamedMemories { facts, base, tags, in_time: by_time(facts.memories) };
    let names = Names::of(&named, disk);
    let mut placing = Placing::new(named, &names);
    let (mut files, mut inputs, today) = (Files::new(), BTreeMap::new(), facts.today.day());
    let mut add = |page: Page| {
        let before = base.get(names.renamed.get(&page.path).unwrap_or(&page.path));
        // Only people create files without entries; existing ones stay.
        if !(page.is_empty() && before.is_none()) {
            inputs.extend(page.inputs.map(|it| (page.path.clone(), it)));
            let text = page.text(before, &today);
            files.insert(page.path, text);
        }
    };
    placing.lists().into_iter().for_each(&mut add);
    placing.records().into_iter().for_each(&mut add);
    placing.sessions().into_iter().for_each(&mut add);
    placing.archive(&mut add);
    let active = facts.memories.iter().filter(|memory| is_active(memory));
    let unplaced =
        active.map(|memory| memory.id).filter(|id| !placing.shown.contains(id)).collect();
    let ended = facts.memories.iter().filter(|memory| placing.ended.contains(&memory.id));
    let ended = ended.map(|memory| placing.tag(memory.id).to_owned()).collect();
    Rendered { files, renamed: names.renamed, unplaced, wordings, ended, inputs }
}

pub(super) struct Names {
    /// Path and number of each decision with a record.
    pub(super) records: BTreeMap<MemoryId, (String, u32)>,
    /// Path of each session, in the given order; empty if it is too old for a file.
    pub(super) sessions: Vec<String>,
    renamed: BTreeMap<String, String>,
}

/// Memories and their tags, the input for names.
struct NamedMemories<'a> {
    facts: &'a Facts<'a>,
    base: &'a Files,
    tags: HashMap<MemoryId, String>,
    in_time: Vec<&'a Memory>,
}

impl Names {
    fn of(named: &NamedMemories<'_>, disk: &Files) -> Names {
        let NamedMemories { facts, base, tags, in_time } = named;
        let (in_base, on_disk) = (marked(base), marked(disk));
        let mut renamed = BTreeMap::new();
        let mut known = |tag: &str| {
            let old = in_base.get(tag).copied();
            let now = on_disk.get(tag).copied();
            match (old, now) {
                (Some(old), Some(now)) if old != now && !disk.contains_key(old) => {
                    renamed.insert(now.to_owned(), old.to_owned());
                    Some(now.to_owned())
                }
                (Some(old), _) => Some(old.to_owned()),
                (None, now) => now.map(str::to_owned),
            }
        };
        let taken = base.keys().chain(disk.keys()).filter_map(|path| adr_number(path));
        let taken: BTreeSet<u32> = taken.collect();
        let last =
            taken.iter().chain(facts.last.removed.values()).max().copied().unwrap_or_default();
        let mut number = last.saturating_add(1);
        let mut records = BTreeMap::new();
        // What takes the place of a record has one too, so that the record can name it.
        let mut recorded: BTreeSet<MemoryId> = BTreeSet::new();
        let titled = in_time.iter().copied().filter_map(|memory| {
            if !(recorded.contains(&memory.id) || is_weighed(memory)) {
                return None;
            }
            recorded.extend(memory.superseded_by);
            let Claim::Decision(it) = &memory.claim else { return None };
            (!it.chosen.trim().is_empty()).then_some((memory, it))
        });
        let titled: Vec<(&Memory, &Decision)> = titled.collect();
        let older = titled.len().saturating_sub(RECORDS_MAX);
        for (at, (memory, it)) in titled.into_iter().enumerate() {
            let tag = tags.get(&memory.id).map_or("", String::as_str);
            let path = known(tag).filter(|path| adr_number(path).is_some());
            let path = match path {
                Some(path) => path,
                None if at < older || memory.state == MemoryState::Retracted => continue,
                None => {
                    match facts.last.removed.get(tag).filter(|number| !taken.contains(number)) {
                        Some(number) => adr_path(*number, &title_of(it)),
                        None => {
                            let path = adr_path(number, &title_of(it));
                            number = number.saturating_add(1);
                            path
                        }
                    }
                }
            };
            let number = adr_number(&path).unwrap_or_default();
            records.insert(memory.id, (path, number));
        }
        let mut names: BTreeSet<String> = base.keys().chain(disk.keys()).cloned().collect();
        let mut sessions = vec![String::new(); facts.sessions.len()];
        let mut order: Vec<(usize, &SessionNote)> = facts.sessions.iter().enumerate().collect();
        order.sort_by_key(|(_, note)| (note.began, note.id));
        let older = order.len().saturating_sub(SESSIONS_MAX);
        for (rank, (at, note)) in order.into_iter().enumerate() {
            let known = known(&note.tag());
            if known.is_none() && rank < older {
                continue;
            }
            let path = known.unwrap_or_else(|| {
                let topic = note.topic.as_ref().map(|topic| topic.as_str());
                session_path(note.began, topic, |path| names.contains(path))
            });
            names.insert(path.clone());
            sessions[at] = path;
        }
        Names { records, sessions, renamed }
    }

    pub(super) fn label(&self, id: MemoryId) -> Option<String> {
        self.records.get(&id).map(|(_, number)| adr_label(*number))
    }
}

/// Record and session files by the tag below their heading.
fn marked(files: &Files) -> BTreeMap<&str, &str> {
    let mut marked = BTreeMap::new();
    let folder = |path: &str| path.starts_with(kind::DECISIONS) || path.starts_with(kind::SESSIONS);
    for (path, text) in files.iter().filter(|(path, _)| folder(path)) {
        let lines =
            text.lines().skip_while(|line| !line.trim_start_matches('\u{feff}').starts_with("# "));
        let tags = lines.skip(1).filter(|line| !line.trim().is_empty()).map_while(Tag::parse);
        for tag in tags.filter_map(|tag| tag.ours()) {
            marked.entry(tag).or_insert(path.as_str());
        }
    }
    marked
}

/// Sorts by time, memories without a time first.
pub(super) fn by_time(memories: &[Memory]) -> Vec<&Memory> {
    let mut sorted: Vec<&Memory> = memories.iter().collect();
    sorted.sort_by_cached_key(|memory| (memory.valid_from, memory.id));
    sorted
}

/// True for a decision among alternatives, with a reason.
fn is_weighed(memory: &Memory) -> bool {
    let Claim::Decision(decision) = &memory.claim else { return false };
    let options: BTreeSet<&str> =
        decision.options.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
    let said = !decision.rationale.trim().is_empty() && !decision.chosen.trim().is_empty();
    options.len() >= 2 && said
}

/// The chosen text, with the reason if it is a fragment such as `5 attempts`.
pub(super) fn title_of(it: &Decision) -> String {
    let words: Vec<&str> = it.chosen.split_whitespace().collect();
    let begins_with_number =
        it.chosen.trim_start().starts_with(|letter: char| letter.is_ascii_digit());
    let is_fragment = words.len() < 2 || begins_with_number && words.len() < FRAGMENT_WORDS_MAX;
    match is_fragment {
        true => with_reason(&it.chosen, &it.rationale),
        false => end_trimmed(&it.chosen).to_owned(),
    }
}

/// Texts with fewer words that begin with a number name no subject.
const FRAGMENT_WORDS_MAX: usize = 4;

/// Maximum length of an entry, in letters: it is read in a list; the record has the rest.
const ENTRY_LETTERS_MAX: usize = 400;
/// Maximum length of a lesson, in letters: it has two attempts with their results.
const LESSON_LETTERS_MAX: usize = 600;
/// Maximum length of what failed in it, so that what worked has room.
const FAILURE_LETTERS_MAX: usize = LESSON_LETTERS_MAX / 2;
/// Maximum number of failures in it.
const FAILURES_MAX: usize = 3;
/// Words by which a rule is about tests.
const OF_TESTS: [&str; 7] =
    ["test", "tests", "fixture", "fixtures", "coverage", "mock", "assertion"];
/// Maximum number of decisions with a record, newest first; existing records stay.
const RECORDS_MAX: usize = 2_000;
/// Maximum number of sessions with a file, newest first; existing files stay.
const SESSIONS_MAX: usize = 2_000;
/// Minimum share of a reason's words at which it only repeats the decision.
const REPEATED_SHARE: f64 = 0.6;
/// Maximum number of words of a speaker's name.
const SPEAKER_WORDS_MAX: usize = 2;
/// Maximum length of a mark about missing code, in letters.
const MARK_LETTERS_MAX: usize = 120;
/// Maximum number of memories between a superseded one and the active one.
pub(super) const SUCCESSORS_MAX: usize = 20;
/// Maximum number of requests shown as current focus.
const FOCUS_MAX: usize = 2;

/// A list in a top-level file, newest entries first. Entries beyond its limit go to the archive.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct List {
    path: &'static str,
    section: &'static str,
    entries_max: usize,
}

const fn list(path: &'static str, section: &'static str, entries_max: usize) -> List {
    List { path, section, entries_max }
}

const CURRENT_FOCUS: List = list(kind::ACTIVE_CONTEXT, "Current Focus", FOCUS_MAX);
const DECISIONS: List = list(kind::ACTIVE_CONTEXT, "Recent Decisions", 60);
const QUESTIONS: List = list(kind::ACTIVE_CONTEXT, "Open Questions", 20);
const BLOCKERS: List = list(kind::ACTIVE_CONTEXT, "Blockers", 20);
const IN_PROGRESS: List = list(kind::PROGRESS, "In Progress", 30);
const COMPLETED: List = list(kind::PROGRESS, "Completed (Recent)", 20);
const BACKLOG: List = list(kind::PROGRESS, "Backlog", 60);
const RULES: List = list(kind::PATTERNS, "Code Conventions", 60);
const TEST_RULES: List = list(kind::PATTERNS, "Testing Patterns", 30);
const LESSONS: List = list(kind::PATTERNS, kind::LESSONS, 40);
const TERMS: List = list(kind::GLOSSARY, "Terms", 200);
const ABBREVIATIONS: List = list(kind::GLOSSARY, "Abbreviations", 100);

pub(super) struct Placing<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) names: &'a Names,
    base: &'a Files,
    tags: HashMap<MemoryId, String>,
    in_time: Vec<&'a Memory>,
    pub(super) by_id: HashMap<MemoryId, &'a Memory>,
    /// Memories by the memory that superseded them.
    pub(super) replaced: BTreeMap<MemoryId, Vec<&'a Memory>>,
    /// Marks of each memory that others replaced, settled or contradict, or may.
    pub(super) marks: HashMap<MemoryId, Vec<String>>,
    /// Later failures that the same attempt solved, by the first one, whose lesson has them; empty for the later ones.
    lessons: BTreeMap<MemoryId, Vec<&'a Memory>>,
    pub(super) shown: HashSet<MemoryId>,
    /// Memories that no list is to show.
    pub(super) ended: HashSet<MemoryId>,
}

impl<'a> Placing<'a> {
    fn new(named: NamedMemories<'a>, names: &'a Names) -> Placing<'a> {
        let NamedMemories { facts, base, tags, in_time } = named;
        let by_id = facts.memories.iter().map(|memory| (memory.id, memory)).collect();
        let mut replaced: BTreeMap<MemoryId, Vec<&Memory>> = BTreeMap::new();
        for memory in in_time.iter().copied() {
            if let Some(by) = memory.superseded_by {
                replaced.entry(by).or_default().push(memory);
            }
        }
        let (marks, lessons) = (HashMap::new(), BTreeMap::new());
        let (shown, ended) = (HashSet::new(), HashSet::new());
        let mut placing = Placing {
            facts,
            names,
            base,
            tags,
            in_time,
            by_id,
            replaced,
            marks,
            lessons,
            shown,
            ended,
        };
        placing.mark();
        placing.join_lessons();
        let is_proposed = |it: &&Memory| {
            is_active(it) && it.stage == Stage::Proposed && it.claim.kind() == ClaimKind::Decision
        };
        for memory in facts.memories.iter().filter(is_proposed) {
            placing.marks.entry(memory.id).or_default().push(PROPOSED.to_owned());
        }
        // Nothing was done for it.
        let is_decided = |it: &&Memory| it.stage_in_words() == "decided";
        for memory in facts.memories.iter().filter(is_decided) {
            let by = memory.settled_by.map(|by| format!(" by {}", placing.tag(by)));
            let mark = DECIDED.to_owned() + &by.unwrap_or_default();
            placing.marks.entry(memory.id).or_default().push(mark);
        }
        for memory in facts.memories.iter().filter(|it| is_active(it)) {
            let past = past_end(memory, facts.today);
            past.into_iter().for_each(|it| placing.marks.entry(memory.id).or_default().push(it));
        }
        for (id, words) in facts.missing {
            let mark = words_inline(words, MARK_LETTERS_MAX, facts.gate);
            placing.marks.entry(*id).or_default().push(mark);
        }
        placing
    }

    /// Marks memories with what replaced, settled or contradicts them, or may; the newest first.
    fn mark(&mut self) {
        let mut related: BTreeMap<MemoryId, Vec<(&'static str, &Memory)>> = BTreeMap::new();
        let mut relate = |id, words: Option<&'static str>, by| {
            related.entry(id).or_default().extend(words.map(|words| (words, by)));
        };
        let known = |id: &MemoryId| self.by_id.get(id).copied();
        for pair in self.facts.contradictions {
            let Some((one, other)) = known(&pair.one).zip(known(&pair.other)) else { continue };
            // What held for a time changes nothing any more.
            let is_past = |it| past_end(it, self.facts.today).is_some();
            if is_active(one) && is_active(other) && !is_past(one) && !is_past(other) {
                relate(one.id, pair.words(one, other), other);
                relate(other.id, pair.words(other, one), one);
            }
        }
        for memory in self.facts.memories {
            let by = memory.superseded_by.or(memory.settler()).and_then(|by| known(&by));
            by.into_iter().for_each(|by| relate(memory.id, ending(memory, by), by));
        }
        let named = |(words, by): (&'static str, &Memory)| {
            let is_quoted = [IN_PART_REPLACED_BY, CONFLICTS_WITH].contains(&words)
                || words == SETTLED_BY && is_active(by);
            // Parentheses end the marks of a line, and semicolons part them.
            let now = || {
                let words = without_asides(by.words()).replace(';', ",");
                words_inline(&words, MARK_LETTERS_MAX, self.facts.gate).replace("; ", ", ")
            };
            let now = if is_quoted { format!(" “{}”", now()) } else { String::new() };
            (words, format!("{}{now}", self.tag(by.id)))
        };
        self.marks = related
            .into_iter()
            .map(|(id, mut related)| {
                related.sort_by_key(|(_, by)| Reverse((by.valid_from, by.id)));
                (id, marks(related.into_iter().map(named)))
            })
            .collect();
    }

    /// Joins the failures that the same attempt solved. One that a person worded stands alone.
    fn join_lessons(&mut self) {
        let mut solved: BTreeMap<MemoryId, Vec<&Memory>> = BTreeMap::new();
        for memory in self.in_time.iter().copied() {
            let is_failure = matches!(&memory.claim, Claim::Attempt(it) if !it.succeeded);
            let is_ours = memory.edited.is_none() && memory.state != MemoryState::Retracted;
            let solver = (is_failure && is_ours).then(|| self.solver(memory)).flatten();
            solver.into_iter().for_each(|it| solved.entry(it.id).or_default().push(memory));
        }
        for mut later in solved.into_values().filter(|failures| failures.len() > 1) {
            let first = later.remove(0);
            self.lessons.extend(later.iter().map(|it| (it.id, Vec::new())));
            self.lessons.insert(first.id, later);
        }
    }

    /// The top-level files, newest entries of each section first.
    fn lists(&mut self) -> Vec<Page> {
        let paths = [kind::ACTIVE_CONTEXT, kind::PROGRESS, kind::PATTERNS, kind::GLOSSARY];
        let mut pages = paths.map(Page::new).to_vec();
        let focus = self.in_time.iter().rev().filter_map(|it| self.focus(it)).take(FOCUS_MAX);
        for (text, digits) in focus {
            let tag = format!("{FOCUS}{digits}");
            push(&mut pages, CURRENT_FOCUS, entry(Shape::Bullet, &text, None, Some(&tag)));
        }
        let newest = self.in_time.iter().rev().copied();
        let mut ended = HashSet::new();
        let placed: Vec<(&Memory, List)> = newest
            .filter_map(|it| {
                let list = self.list_of(it);
                ended.extend(list.is_none().then_some(it.id));
                Some((it, list?))
            })
            .collect();
        let decisions = placed.iter().filter(|(_, list)| *list == DECISIONS);
        let overflow = self.overflow(decisions.map(|(memory, _)| *memory));
        let mut counts: BTreeMap<List, usize> = BTreeMap::new();
        let mut shown = Vec::new();
        for (memory, list) in placed {
            let count = counts.entry(list).or_default();
            if *count < list.entries_max
                && !overflow.contains(&memory.id)
                && let Some(entry) = self.listed(memory, list)
            {
                *count += 1;
                let later = self.lessons.get(&memory.id).into_iter().flatten();
                shown.extend(later.map(|later| later.id).chain([memory.id]));
                push(&mut pages, list, entry);
            }
        }
        self.shown.extend(shown);
        self.ended = ended;
        pages
    }

    /// Those of the `newest` decisions for which their list has no room. What is past goes first. Of the others, the newest
    /// half of the list stays; of the rest, those that were said again go last, and those that have a record of their own
    /// go before those of people and before older ones.
    fn overflow<'m>(&self, newest: impl Iterator<Item = &'m Memory>) -> BTreeSet<MemoryId> {
        let is_past = |it: &&Memory| {
            let marks = self.marks.get(&it.id);
            marks.is_some_and(|marks| marks.iter().any(|mark| is_past_mark(mark)))
        };
        let (past, mut current): (Vec<&Memory>, Vec<&Memory>) = newest.partition(is_past);
        let mut older = current.split_off(current.len().min(DECISIONS.entries_max / 2));
        older.sort_by_cached_key(|it| {
            let has_record = self.names.records.contains_key(&it.id);
            let is_persons = it.confirmed || it.said_by == Speaker::Person;
            (it.sources.len() < 2, has_record, !is_persons)
        });
        older.extend(past);
        older.iter().skip(DECISIONS.entries_max - current.len()).map(|it| it.id).collect()
    }

    /// Text of a request in progress, and the digits of its tag.
    fn focus(&self, memory: &Memory) -> Option<(String, &str)> {
        let Claim::Request(it) = &memory.claim else { return None };
        let is_it = is_active(memory) && memory.stage == Stage::Attempted;
        let text = words_line(&said(memory, summary_of(it)), ENTRY_LETTERS_MAX, self.facts.gate);
        (is_it && !text.is_empty()).then(|| (text, self.tag(memory.id).trim_start_matches(SOURCE)))
    }

    fn list_of(&self, memory: &Memory) -> Option<List> {
        if self.lessons.get(&memory.id).is_some_and(Vec::is_empty) {
            return None;
        }
        match (&memory.claim, memory.stage) {
            _ if memory.state == MemoryState::Retracted => None,
            (Claim::Attempt(_), _) if !is_active(memory) => Some(LESSONS),
            (Claim::Attempt(it), _) if it.succeeded => None,
            (Claim::Attempt(_), _) => Some(if memory.is_open() { BLOCKERS } else { LESSONS }),
            (_, Stage::Refuted) => None,
            _ if !is_active(memory) => None,
            (Claim::Decision(it), _) => Some(self.list_of_decision(memory, it)),
            (Claim::Discussion(_), Stage::Decided) => None,
            (Claim::Discussion(_), Stage::Proposed | Stage::Attempted) => Some(QUESTIONS),
            (Claim::Request(it), stage) => match (wording::is_constraint(summary_of(it)), stage) {
                (true, Stage::Proposed) => Some(RULES),
                // The decision that laid it down is shown instead.
                (true, Stage::Decided) => None,
                (false, Stage::Proposed) => Some(BACKLOG),
                (false, Stage::Decided) => Some(COMPLETED),
                (_, Stage::Attempted | Stage::Refuted) => Some(IN_PROGRESS),
            },
        }
    }

    /// The entry of a memory in its list; `None` if the gate leaves nothing of it.
    fn listed(&self, memory: &Memory, list: List) -> Option<NewEntry> {
        match &memory.claim {
            Claim::Decision(it) if [TERMS, ABBREVIATIONS].contains(&list) => self.term(memory, it),
            Claim::Decision(it) if list != DECISIONS => {
                let is_pattern = Category::of_words(&it.chosen) == Some(Category::Pattern);
                let category = if is_pattern { Category::Pattern } else { Category::Convention };
                self.line(Shape::Bullet, &self.decided(memory, it), Some(category), memory)
            }
            Claim::Attempt(it) => {
                let alone = || self.attempt(memory, it).filter(|_| is_active(memory));
                self.lesson(memory).or_else(alone)
            }
            Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_) => {
                let shape = match list {
                    IN_PROGRESS | COMPLETED => Shape::Task { done: list == COMPLETED },
                    _ => Shape::Bullet,
                };
                self.entry(memory, shape)
            }
        }
    }

    pub(super) fn tag(&self, id: MemoryId) -> &str {
        self.tags.get(&id).map_or("", String::as_str)
    }

    /// A line with the date and the marks of the memory after its text.
    fn line(
        &self,
        shape: Shape,
        text: &str,
        category: Option<Category>,
        memory: &Memory,
    ) -> Option<NewEntry> {
        let words = words_line(text, ENTRY_LETTERS_MAX, self.facts.gate);
        self.marked(shape, words, category, memory)
    }

    fn marked(
        &self,
        shape: Shape,
        words: String,
        category: Option<Category>,
        memory: &Memory,
    ) -> Option<NewEntry> {
        let marks = self.marks.get(&memory.id).into_iter().flatten().cloned();
        let behind: Vec<String> =
            memory.valid_from.map(|at| at.day()).into_iter().chain(marks).collect();
        let behind = behind.join("; ");
        let with_all = |words: String| match behind.is_empty() {
            true => words,
            false => format!("{words} ({behind})"),
        };
        let words = match wording_of(memory) {
            Some((Shape::Bullet | Shape::Task { .. }, own)) if own.contains('\n') => own,
            Some((Shape::Bullet | Shape::Task { .. }, own)) => with_marks(&own, &behind),
            // It was worded in a table or a record.
            Some((Shape::Row | Shape::Paragraph | Shape::Code, _)) => {
                let label = self.names.label(memory.id).map(|label| format!("{label}: "));
                let text = label.unwrap_or_default() + &said(memory, "");
                with_all(words_line(&text, ENTRY_LETTERS_MAX, self.facts.gate))
            }
            None if words.is_empty() => return None,
            None => with_all(words),
        };
        Some(entry(shape, &words, category, Some(self.tag(memory.id))))
    }

    /// List of a term, a standing rule, or another active decision.
    fn list_of_decision(&self, memory: &Memory, it: &Decision) -> List {
        let is_recorded = self.names.label(memory.id).is_some();
        if let Some((term, _)) =
            wording::definition(&it.chosen, &it.rationale).filter(|_| !is_recorded)
        {
            let is_short = term.chars().all(|letter| letter.is_uppercase() || letter.is_numeric());
            return if is_short { ABBREVIATIONS } else { TERMS };
        }
        if !is_standing_rule(memory, it) {
            return DECISIONS;
        }
        let chosen = it.chosen.to_lowercase();
        let mut words = chosen.split(|c: char| !c.is_alphanumeric());
        if words.any(|it| OF_TESTS.contains(&it)) { TEST_RULES } else { RULES }
    }

    fn term(&self, memory: &Memory, it: &Decision) -> Option<NewEntry> {
        let claimed = wording::definition(&it.chosen, &it.rationale)?;
        let said = said(memory, "");
        let (term, meaning) = wording::definition(&said, "").unwrap_or(claimed);
        let cell =
            |text| words_inline(text, ENTRY_LETTERS_MAX, self.facts.gate).replace('|', "\\|");
        let row = match wording_of(memory) {
            Some((Shape::Row, own)) => own,
            Some(_) | None => format!("| {} | {} |", cell(term), cell(meaning)),
        };
        Some(entry(Shape::Row, &row, None, Some(self.tag(memory.id))))
    }

    /// A decision in a list, by its record if it has one.
    fn decided(&self, memory: &Memory, it: &Decision) -> String {
        match self.names.label(memory.id) {
            Some(label) => format!("{label}: {}", title_of(it)),
            None => with_reason(&it.chosen, &it.rationale),
        }
    }

    fn discussion(&self, memory: &Memory, it: &Discussion) -> Option<NewEntry> {
        let mut text = with_points(it);
        if !memory.is_open() {
            // It was settled since.
            text = text.replacen(" (left open)", "", 1);
        }
        self.line(Shape::Bullet, &text, None, memory)
    }

    fn attempt(&self, memory: &Memory, it: &Attempt) -> Option<NewEntry> {
        let text = with_result(it);
        let is_bugfix = Category::of_words(&text) == Some(Category::Bugfix);
        let category = if is_bugfix { Category::Bugfix } else { Category::Learning };
        let category = Some(category).filter(|_| !it.succeeded);
        self.line(Shape::Bullet, &text, category, memory)
    }

    /// Failures that another attempt solved: what failed, and what worked.
    fn lesson(&self, memory: &Memory) -> Option<NewEntry> {
        let Claim::Attempt(it) = &memory.claim else { return None };
        let solver = self.solver(memory).filter(|_| !it.succeeded)?;
        let Claim::Attempt(by) = &solver.claim else { return None };
        let worked = if is_active(solver) { "what worked" } else { "what worked then" };
        let later = self.lessons.get(&memory.id).into_iter().flatten();
        let all: Vec<&Memory> = std::iter::once(memory).chain(later.copied()).collect();
        let letters_max = FAILURE_LETTERS_MAX / if all.len() == 1 { 1 } else { 2 };
        let failure = |memory: &&Memory| {
            let Claim::Attempt(it) = &memory.claim else { return None };
            let failed = with_result(it);
            let head = truncate::words_within(&failed, letters_max);
            let cut = || head.trim_end_matches([';', ',', ':', '.']).to_owned() + "…";
            Some(if head.len() < failed.len() { cut() } else { failed })
        };
        let failed: Vec<String> = all.iter().take(FAILURES_MAX).filter_map(failure).collect();
        let more = all.len() - failed.len();
        let more = if more > 0 { format!("; then {more} more") } else { String::new() };
        let text = format!("{}{more}; {worked}: {}", failed.join("; then "), with_result(by));
        let words = words_line(&text, LESSON_LETTERS_MAX, self.facts.gate);
        self.marked(Shape::Bullet, words, Some(Category::Learning), memory)
    }

    /// The first successful attempt among the memories that replaced or solved a failed one.
    fn solver(&self, memory: &'a Memory) -> Option<&'a Memory> {
        let mut at = memory;
        for _ in 0..SUCCESSORS_MAX {
            at = self.by_id.get(&at.superseded_by.or(at.settler())?).copied()?;
            let is_success = matches!(&at.claim, Claim::Attempt(it) if it.succeeded);
            let is_void = at.state == MemoryState::Retracted || at.stage == Stage::Refuted;
            if is_success && !is_void {
                return Some(at);
            }
        }
        None
    }

    fn request_line(&self, shape: Shape, memory: &Memory, it: &PersonRequest) -> Option<NewEntry> {
        let summary = summary_of(it);
        let target = it.target.as_deref().map(str::trim).unwrap_or_default();
        let mut text = end_trimmed(summary).to_owned();
        // It may add something, such as a path.
        if !target.is_empty() && !summary.contains(target) && !is_repeated(target, summary) {
            text.push_str(&format!(" ({target})"));
        }
        self.line(shape, &text, None, memory)
    }

    /// Hash of what lines of `memories`, and what is made of `more`, are rendered from.
    pub(super) fn inputs(&self, more: impl Hash, memories: &[&Memory]) -> u64 {
        let mut hasher = FixedState::default().build_hasher();
        (&self.facts.last.program, self.facts.gate, more).hash(&mut hasher);
        for memory in memories {
            let (marks, label) = (self.marks.get(&memory.id), self.names.label(memory.id));
            (memory, self.tag(memory.id), label, marks).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// A file that is rendered from `inputs`, or was already.
    pub(super) fn page(&self, path: String, inputs: u64) -> Page {
        let is_there = self.base.contains_key(&path) && !self.names.renamed.contains_key(&path);
        let is_kept = is_there && self.facts.last.inputs.get(&path) == Some(&inputs);
        Page { inputs: Some(inputs), is_kept, ..Page::new(path) }
    }

    /// Archive by month: active memories that no other file shows, and points of settled discussions.
    fn archive(&mut self, mut add: impl FnMut(Page)) {
        let mut months: BTreeMap<String, Vec<&Memory>> = BTreeMap::new();
        let is_left = |it: &&Memory| {
            if let Claim::Discussion(of) = &it.claim
                && it.state == MemoryState::Superseded
            {
                // Its points, unless the decision that settled it has a record with them.
                let has_record = it.superseded_by.is_some_and(|by| self.names.label(by).is_some());
                return !of.points.is_empty() && !has_record;
            }
            is_active(it) && !self.shown.contains(&it.id)
        };
        for memory in self.in_time.iter().copied().filter(is_left) {
            let month = memory.valid_from.map(|at| at.day().chars().take(MONTH_LETTERS).collect());
            months.entry(month.unwrap_or_else(|| UNDATED.to_owned())).or_default().push(memory);
        }
        for (month, memories) in months {
            let inputs = self.inputs((), &memories);
            let page = |part: usize| {
                let part = if part == 1 { String::new() } else { format!("-{part}") };
                self.page(format!("{}{month}{part}.md", kind::ARCHIVE), inputs)
            };
            let parts = 1..=memories.len().div_ceil(ARCHIVE_ENTRIES_MAX);
            let pages: Vec<Page> = parts.map(page).collect();
            if pages.iter().all(|page| page.is_kept) {
                self.shown.extend(memories.iter().map(|memory| memory.id));
                pages.into_iter().for_each(&mut add);
                continue;
            }
            let entries = self.all_archived(&memories);
            // Otherwise the memories do not tell what is shown.
            let is_whole = entries.iter().all(Option::is_some);
            let mut entries = memories
                .iter()
                .zip(entries)
                .filter_map(|(memory, entry)| Some((memory.id, entry?)));
            for page in pages {
                let inputs = page.inputs.filter(|_| is_whole);
                let head = Some(format!("# Archive: {month}\n"));
                let mut page = Page { head, inputs, is_kept: false, ..page };
                for (id, (section, entry)) in entries.by_ref().take(ARCHIVE_ENTRIES_MAX) {
                    self.shown.insert(id);
                    page.push(section, entry);
                }
                if !page.is_empty() {
                    add(page);
                }
            }
        }
    }

    /// Entries of `memories`, made by two threads: they are most of the lines of a large directory.
    fn all_archived(&self, memories: &[&Memory]) -> Vec<Option<(&'static str, NewEntry)>> {
        let (one, other) = memories.split_at(memories.len() / 2);
        let archived = |some: &[&Memory]| -> Vec<_> {
            some.iter().map(|memory| self.archived(memory)).collect()
        };
        thread::scope(|scope| {
            let others = scope.spawn(|| archived(other));
            let mut all = archived(one);
            all.extend(others.join().unwrap_or_else(|_| archived(other)));
            all
        })
    }

    fn archived(&self, memory: &Memory) -> Option<(&'static str, NewEntry)> {
        let section = match memory.claim.kind() {
            ClaimKind::Decision => "Decisions",
            ClaimKind::Discussion => "Discussions",
            ClaimKind::Attempt => "Attempts",
            ClaimKind::Request => "Requests",
        };
        let done = memory.stage == Stage::Decided;
        Some((section, self.entry(memory, Shape::Task { done })?))
    }

    /// The line of a memory; that of a request has this shape.
    pub(super) fn entry(&self, memory: &Memory, of_request: Shape) -> Option<NewEntry> {
        match &memory.claim {
            Claim::Decision(it) => {
                let category = Some(Category::Decision);
                self.line(Shape::Bullet, &self.decided(memory, it), category, memory)
            }
            Claim::Discussion(it) => self.discussion(memory, it),
            Claim::Attempt(it) => self.attempt(memory, it),
            Claim::Request(it) => self.request_line(of_request, memory, it),
        }
    }
}

/// Maximum number of entries in an archive file, which is read as a whole.
const ARCHIVE_ENTRIES_MAX: usize = 5_000;
/// Name of the archive for memories without a date.
const UNDATED: &str = "undated";
/// Length of a month such as `2026-04`, in letters.
const MONTH_LETTERS: usize = 7;

fn push(pages: &mut [Page], list: List, entry: NewEntry) {
    if let Some(page) = pages.iter_mut().find(|page| page.path == list.path) {
        page.push(list.section, entry);
    }
}

pub(super) fn is_active(memory: &Memory) -> bool {
    memory.state == MemoryState::Active
}

/// A person's wording of a memory, without its list marker; `None` if they did not edit it, or left no words. Several
/// blocks would break the file that shows them: like code, they count by their first line.
pub(super) fn wording_of(memory: &Memory) -> Option<(Shape, String)> {
    let edited = memory.edited.as_deref()?.replace("\r\n", "\n");
    let (document, _) = Document::parse(Kind::Other, &edited);
    let block = document.blocks.first().filter(|_| document.blocks.len() == 1);
    let (shape, text) = match block.map(|block| block.part) {
        Some(Part::Entry(shape)) if document.private.is_empty() && document.open.is_none() => {
            (shape, item_of(&edited).text)
        }
        Some(_) | None => (Shape::Code, memory.words()),
    };
    let text = text.trim().to_owned();
    text.contains(char::is_alphanumeric).then_some((shape, text))
}

/// Words for the middle of a text: a person's in one line, without the label of a record, or else `claimed`.
pub(super) fn said<'m>(memory: &'m Memory, claimed: &'m str) -> Cow<'m, str> {
    let words = match wording_of(memory) {
        Some((Shape::Row, row)) => row.trim_matches(['|', ' ']).replace(" | ", " – "),
        Some((Shape::Paragraph, own)) => in_one_line(&own),
        Some(_) => memory.words().to_owned(),
        None => return Cow::Borrowed(claimed),
    };
    Cow::Owned(without_label(&words).to_owned())
}

pub(super) fn summary_of(it: &PersonRequest) -> &str {
    if it.summary.trim().is_empty() { &it.intent } else { &it.summary }
}

/// The text, with the reason if that adds something.
pub(super) fn with_reason(what: &str, why: &str) -> String {
    match why.trim().is_empty() || is_repeated(why, what) {
        true => end_trimmed(what).to_owned(),
        false => format!("{} – {}", end_trimmed(what), end_trimmed(why)),
    }
}

/// The action and its result, unless that is part of the action.
fn with_result(it: &Attempt) -> String {
    let (action, result) = (end_trimmed(&it.action), end_trimmed(&it.result));
    match folded(action).contains(&folded(result)) {
        true => action.to_owned(),
        false => format!("{action} – {result}"),
    }
}

/// The topic and its points.
pub(super) fn with_points(it: &Discussion) -> String {
    let points = it.points.iter().map(|point| end_trimmed(point));
    let points: Vec<&str> = points.filter(|point| !point.is_empty()).collect();
    let topic = end_trimmed(&it.topic);
    let colon = if topic.ends_with('?') { "" } else { ":" };
    match points.is_empty() {
        true => topic.to_owned(),
        false => format!("{topic}{colon} {}", points.join("; ")),
    }
}

/// True if most words of `text` are in `other`; for a quotation, which may be in another language, one word, or two if it
/// begins with its speaker.
fn is_repeated(text: &str, other: &str) -> bool {
    let is_quotation = |text: &str| text.trim().starts_with(['"', '“', '„', '«']);
    let speech = text
        .split_once(": ")
        .filter(|(by, said)| by.split(' ').count() <= SPEAKER_WORDS_MAX && is_quotation(said));
    let (said, least) = speech.map_or((text, 1), |(_, said)| (said, 2));
    let (words, other) = (keys(said), keys(other));
    let known = words.iter().filter(|word| other.contains(word)).count();
    let is_most = known as f64 >= REPEATED_SHARE * words.len() as f64;
    known > 0 && is_most || known >= least && is_quotation(said)
}

/// Strips the punctuation at the end.
pub(super) fn end_trimmed(text: &str) -> &str {
    text.trim().trim_end_matches(['.', ':', ';', '。'])
}

#[cfg(test)]
#[path = "render_test.rs"]
mod tests;
