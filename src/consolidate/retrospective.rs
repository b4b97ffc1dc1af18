//! Retrospectives: the records of some sessions in five categories. A note by rule is a headline of
//! records and their ids; a note by a model is a checked lesson.
//!
//! A model draws lessons from records batch by batch. Half of a lesson's words and every name, number and negation must
//! be in the records it cites; unproven lessons are dropped.

use super::dialogue::{
    Answer, AskSpec, BATCH_TOKENS_MAX, BatchTask, Dialogue, DialogueSummary, record_index,
    shown_line,
};
use super::incoming::said_by;
use super::parts::sort;
use super::phrases::{exact_words, listed, says_no};
use super::subject::Subject;
use crate::domain::{
    Claim, ClaimKind, Digest, MemoryMap, MemoryState, OutputMode, Record, RecordId, RecordState,
    Request, SessionId, Speaker, Timestamp, Tokens, ToolSpec, estimate_tokens, named,
};
use crate::llm::prompt::BatchPrompt;
use crate::llm::tool::{schema_files_of, wire_of};
use crate::privacy::{Gate, Redacted};
use crate::text::names::names;
use crate::text::tokens::{folded, hash, keys, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of notes of one category; further ones rest on single records.
const NOTES_MAX: usize = 20;
const REPEATED_MIN: usize = 2;

named! {
    /// Subject of a note; the categories of retrospectives in the memory directory.
    #[derive(schemars::JsonSchema)]
    #[schemars(rename = "NoteCategory")]
    pub(crate) Category {
        /// Repeated attempts and requests.
        Efficiency = "efficiency",
        /// Failures and fixes.
        Quality = "quality",
        /// User interfaces.
        Ux = "ux",
        /// Findings.
        Knowledge = "knowledge",
        /// Choices.
        Architecture = "architecture",
    }
}

/// One thing that the records show.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Note {
    /// Its subject.
    pub category: Category,
    /// The headline of its latest record, or a lesson that a model drew from them.
    pub headline: Redacted,
    /// The records, the earliest first.
    pub records: Vec<RecordId>,
    /// Number of them that are failed attempts.
    pub failed: usize,
    /// Time of the last of them.
    #[serde(skip)]
    pub at: Option<Timestamp>,
}

/// Origin of a retrospective.
#[derive(schemars::JsonSchema, Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub(crate) enum Made {
    /// By rule.
    #[default]
    Rule,
    /// By a model, and checked.
    Model {
        /// Its name at the endpoint.
        model: String,
    },
}

/// Review of some sessions.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct Retrospective {
    /// Its origin.
    pub made: Made,
    /// Number of records by kind.
    pub kinds: BTreeMap<&'static str, usize>,
    /// Number of attempts that failed or succeeded in part.
    pub failed: usize,
    /// Number of conversations.
    pub sessions: usize,
    /// Notes by category; in each, the most repeated first, then the latest.
    pub notes: Vec<Note>,
}

type Key = (ClaimKind, Vec<u64>, Vec<u64>, Option<u64>);

/// Makes a retrospective by rule. Ignores quarantined and replaced records and the order of records.
pub(crate) fn reflect(records: &[Record]) -> Retrospective {
    let mut retrospective = Retrospective::default();
    let mut groups: BTreeMap<Key, Vec<&Record>> = BTreeMap::new();
    let mut sessions = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for record in records {
        if record.state != RecordState::Staged || !seen.insert(record.id) {
            continue;
        }
        let kind = record.claim.kind();
        *retrospective.kinds.entry(kind.name()).or_default() += 1;
        retrospective.failed += usize::from(has_failed(record));
        sessions.insert(record.provenance.session);
        let subject = Subject::of(&record.claim);
        let key = (kind, subject.words, subject.hard, subject.chosen);
        groups.entry(key).or_default().push(record);
    }
    retrospective.sessions = sessions.len();
    retrospective.notes = in_order(groups.into_values().filter_map(note).collect());
    retrospective
}

/// A retrospective with a model's lessons instead of the rules' notes.
pub(crate) fn reflect_with(records: &[Record], model: &str, lessons: Vec<Note>) -> Retrospective {
    let mut said = BTreeSet::new();
    let mut fresh = |it: &Note| said.insert((it.category, folded(it.headline.as_str())));
    let lessons = lessons.into_iter().filter(|it| fresh(it)).collect();
    let made = Made::Model { model: model.to_owned() };
    Retrospective { made, notes: in_order(lessons), ..reflect(records) }
}

/// Drops the records on which only retracted memories rest.
pub(crate) fn standing(records: Vec<Record>, memories: &MemoryMap) -> Vec<Record> {
    let (mut stands, mut withdrawn) = (BTreeSet::new(), BTreeSet::new());
    for memory in memories.values() {
        let list = match memory.state {
            MemoryState::Retracted => &mut withdrawn,
            MemoryState::Active | MemoryState::Superseded => &mut stands,
        };
        list.extend(memory.sources.iter().copied());
    }
    let keep = |record: &Record| stands.contains(&record.id) || !withdrawn.contains(&record.id);
    records.into_iter().filter(keep).collect()
}

/// Sorts by category, number of records and time, and limits each category.
fn in_order(mut notes: Vec<Note>) -> Vec<Note> {
    notes.sort_by_cached_key(|note| {
        let (many, last) = (Reverse(note.records.len()), Reverse(note.at));
        (note.category, many, last, note.records.clone(), folded(note.headline.as_str()))
    });
    let mut kept = BTreeMap::new();
    notes.retain(|note| {
        let count: &mut usize = kept.entry(note.category).or_default();
        *count += 1;
        *count <= NOTES_MAX
    });
    notes
}

fn has_failed(record: &Record) -> bool {
    matches!(&record.claim, Claim::Attempt(attempt) if !attempt.succeeded)
}

fn note(mut records: Vec<&Record>) -> Option<Note> {
    records.sort_by_key(|record| (record.provenance.at, record.id));
    let last = records.last()?;
    let failed = records.iter().filter(|record| has_failed(record)).count();
    let category = category(last, records.len(), failed)?;
    let headline = Redacted::reopened(last.claim.headline().to_owned());
    let ids = records.iter().map(|record| record.id).collect();
    Some(Note { category, headline, records: ids, failed, at: last.provenance.at })
}

fn category(record: &Record, times: usize, failed: usize) -> Option<Category> {
    let about = |list: &str| {
        let mut found = false;
        let keys: BTreeSet<u64> = listed(list).map(key).collect();
        words(&folded(record.claim.headline()), |word| found |= keys.contains(&word.key));
        found
    };
    match record.claim.kind() {
        ClaimKind::Attempt | ClaimKind::Request if times >= REPEATED_MIN => {
            Some(Category::Efficiency)
        }
        _ if about("ux") => Some(Category::Ux),
        ClaimKind::Decision => Some(Category::Architecture),
        ClaimKind::Discussion => Some(Category::Knowledge),
        ClaimKind::Attempt if failed > 0 || about("quality") => Some(Category::Quality),
        ClaimKind::Attempt => Some(Category::Knowledge),
        // A request alone tells nothing about how the work went.
        ClaimKind::Request => None,
    }
}

/// Key that a word has in texts.
fn key(word: &str) -> u64 {
    let mut key = hash(word);
    words(word, |word| key = word.key);
    key
}

/// Maximum number of lessons kept per batch; the prompt states it too.
const LESSONS_MAX: usize = 12;
const LESSON_LETTERS_MAX: usize = 300;
/// Maximum number of records per lesson; together, more would have any word.
const LESSON_RECORDS_MAX: usize = 8;
/// Minimum share of a lesson's words in its records, in percent; the others connect them.
const WORDS_PERCENT_MIN: usize = 50;
/// Minimum number of such words, however short the lesson is: one proves nothing.
const WORDS_MIN: usize = 2;
const BATCH_RECORDS_MAX: usize = 60;
/// Maximum number of batches per retrospective, latest first; bounds the cost of reviewing years of work.
const BATCHES_MAX: usize = 20;

/// Name of the tool that hands over lessons.
pub(super) const REFLECT_TOOL_NAME: &str = "write_reflection";
/// Version of the published schema. A breaking change increments it.
const SCHEMA_VERSION: u32 = 1;
const TOOL_DESCRIPTION: &str =
    "Hands over what the records teach about how the work went. Call it once, with every lesson.";
const FIELDS: [&str; 3] = ["category", "lesson", "records"];

/// What records teach.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
struct WriteReflection {
    /// The lessons, the most useful first; empty where there is nothing to learn.
    lessons: Vec<Lesson>,
}

/// One lesson, unproven.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
struct Lesson {
    /// What it is about.
    #[schemars(extend("enum" = ["efficiency", "quality", "ux", "knowledge", "architecture"]))]
    category: String,
    /// What happened and what follows from it, in one sentence and in the words of its records.
    lesson: String,
    /// The ids of the records that show it, such as R1.
    records: Vec<String>,
}

pub(crate) fn reflect_schema_files() -> Vec<(String, String)> {
    schema_files_of::<WriteReflection>(REFLECT_TOOL_NAME, SCHEMA_VERSION)
}

/// Model, prompt and privacy gate of lessons.
#[derive(Debug)]
pub(crate) struct LessonSpec {
    /// Model, prompt and tool.
    pub ask: AskSpec,
    /// The gate for batches and answers.
    pub gate: Gate,
}

impl LessonSpec {
    /// Asks `model` with `prompt`, about texts that are mostly in `language`; answers pass through `gate`.
    pub(crate) fn new(
        model: impl Into<String>,
        language: &str,
        prompt: Arc<BatchPrompt>,
        gate: Gate,
    ) -> LessonSpec {
        let description = TOOL_DESCRIPTION.to_owned();
        let tool = ToolSpec::new(REFLECT_TOOL_NAME, description, wire_of::<WriteReflection>());
        LessonSpec { ask: AskSpec::new(model.into(), language, prompt, tool), gate }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lessons {
    pub lessons: Vec<Note>,
    /// True if the answer counts: it has proven lessons, or is well formed and has none.
    pub usable: bool,
    pub summary: DialogueSummary,
}

/// Task of drawing lessons from one batch.
#[derive(Debug)]
pub(crate) struct LessonTask {
    spec: Arc<LessonSpec>,
    batch: LessonBatch,
    lessons: Vec<Note>,
    /// True if the last answer was well formed and nothing in it was rejected.
    sound: bool,
    unproven: usize,
}

impl LessonTask {
    /// Starts with `rung`, the best output mode that the endpoint is known to support.
    pub(crate) fn start(
        spec: &Arc<LessonSpec>,
        batch: LessonBatch,
        rung: OutputMode,
    ) -> (Dialogue<LessonTask>, Request) {
        let (spec, lessons) = (Arc::clone(spec), Vec::new());
        Dialogue::start(LessonTask { spec, batch, lessons, sound: false, unproven: 0 }, rung)
    }

    /// Checks a well-formed lesson and keeps it if its records support it.
    fn take(&mut self, lesson: ShapedLesson, here: &str, answer: &mut Answer) {
        let ShapedLesson { category, text, records } = lesson;
        let shown = records.iter().filter_map(|at| self.batch.records.get(*at));
        let (mut near, far): (Vec<&ShownRecord>, Vec<&ShownRecord>) =
            shown.partition(|it| it.shares_word(&text));
        if let Some(why) = unproven(&text, &near) {
            answer.note("unproven-lesson", format!("{here}: {why}"));
            self.unproven += 1;
            return;
        }
        if !far.is_empty() {
            let detail = format!("{here} shares no word with {} of its records", far.len());
            answer.note("unrelated-record", detail);
        }
        let known = folded(text.as_str());
        if self.lessons.iter().any(|it| folded(it.headline.as_str()) == known) {
            answer.note("lesson-twice", format!("{here} says what another one says"));
        } else if self.lessons.len() == LESSONS_MAX {
            answer.note("too-many-lessons", format!("only {LESSONS_MAX} of a batch are kept"));
        } else {
            near.sort_by_key(|it| (it.at, it.id));
            self.lessons.push(Note {
                category,
                headline: text,
                failed: near.iter().filter(|it| it.failed).count(),
                at: near.last().and_then(|it| it.at),
                records: near.into_iter().map(|it| it.id).collect(),
            });
        }
    }
}

impl BatchTask for LessonTask {
    type Outcome = Lessons;
    const LIST: &'static str = "lessons";

    fn spec(&self) -> &AskSpec {
        &self.spec.ask
    }

    fn text(&self) -> &Redacted {
        &self.batch.text
    }

    fn accepted(&self) -> usize {
        self.lessons.len()
    }

    fn check(&mut self, answer: Option<&mut Answer>) -> Vec<String> {
        let mut problems = Vec::new();
        self.sound = answer.is_some();
        let Some(answer) = answer else { return problems };
        for (n, entry) in std::mem::take(&mut answer.entries).into_iter().enumerate() {
            let here = format!("lessons[{n}]");
            let Some(lesson) = answer.parse::<Lesson>(entry, &FIELDS) else {
                let expected = "not an entry with `category`, `lesson` and `records`";
                problems.push(format!("{here}: {expected}"));
                continue;
            };
            match shaped(&lesson, &self.batch, &self.spec.gate) {
                Ok(lesson) => self.take(lesson, &here, answer),
                Err((rule, problem)) => {
                    answer.note(rule, format!("{here}{problem}"));
                    problems.push(format!("{here}{problem}"));
                }
            }
        }
        self.sound = problems.is_empty();
        problems
    }

    fn outcome(&mut self, summary: DialogueSummary) -> Lessons {
        let lessons = std::mem::take(&mut self.lessons);
        let usable = !lessons.is_empty() || (self.sound && self.unproven == 0);
        Lessons { lessons, usable, summary }
    }
}

/// A well-formed lesson, with the indices of its records.
struct ShapedLesson {
    category: Category,
    text: Redacted,
    records: BTreeSet<usize>,
}

/// Rule that an entry breaks, and the expected form, without words of a conversation.
type Problem = (&'static str, String);

fn shaped(lesson: &Lesson, batch: &LessonBatch, gate: &Gate) -> Result<ShapedLesson, Problem> {
    let category = Category::of_name(&lesson.category.trim().to_ascii_lowercase());
    let category = category.ok_or_else(|| {
        let known: Vec<&str> = Category::ALL.iter().map(|it| it.name()).collect();
        ("unknown-category", format!(".category: expected one of {}", known.join(", ")))
    })?;
    let known = |id: &String| record_index(id).filter(|at| *at < batch.records.len());
    let records: Option<BTreeSet<usize>> = lesson.records.iter().map(known).collect();
    let records = records
        .ok_or_else(|| ("forged-id", ".records: names a record that was not shown".to_owned()))?;
    if records.is_empty() || records.len() > LESSON_RECORDS_MAX {
        let problem = format!(".records: expected 1 to {LESSON_RECORDS_MAX} of them");
        return Err(("record-count", problem));
    }
    // JSON escapes may have hidden a secret until now.
    let passed = gate.redact(&one_line(&lesson.lesson));
    let text = gate.redact(&one_line(passed.as_str()));
    let letters = text.as_str().chars().count();
    if letters == 0 || letters > LESSON_LETTERS_MAX {
        let problem = format!(".lesson: expected 1 to {LESSON_LETTERS_MAX} letters");
        return Err(("lesson-length", problem));
    }
    Ok(ShapedLesson { category, text, records })
}

/// Replaces control characters and runs of whitespace with single blanks.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reason why these records do not support `lesson`; `None` if they do.
fn unproven(lesson: &Redacted, records: &[&ShownRecord]) -> Option<&'static str> {
    let flat = folded(lesson.as_str());
    let mut said = keys(&flat);
    sort(&mut said);
    let is_there = |key: &u64| records.iter().any(|record| record.words.contains(key));
    let there = said.iter().filter(|key| is_there(key)).count();
    if there < WORDS_MIN || there * 100 < said.len() * WORDS_PERCENT_MIN {
        return Some("fewer than half of its words stand in the records that it names");
    }
    if exact_words(&flat).any(|word| !records.iter().any(|record| record.exact.contains(&word))) {
        return Some("a number, path or identifier that none of its records has");
    }
    let invented = |name: &str| keys(&folded(name)).iter().any(|key| !is_there(key));
    if names(lesson).any(|name| name.is_sure && invented(name.text)) {
        return Some("a name that none of its records has");
    }
    if says_no(&flat) && !records.iter().any(|record| record.denies) {
        return Some("a no where none of its records says no");
    }
    None
}

/// A record of a batch with the words that lessons are checked against.
#[derive(Clone, Debug)]
struct ShownRecord {
    id: RecordId,
    at: Option<Timestamp>,
    failed: bool,
    words: BTreeSet<u64>,
    exact: BTreeSet<u64>,
    denies: bool,
}

impl ShownRecord {
    fn of(record: &Record, claim: &Claim) -> ShownRecord {
        let mut texts: Vec<&str> = claim.strings().into_iter().map(|(_, text)| text).collect();
        let day = record.provenance.at.map(Timestamp::day);
        texts.extend(day.as_deref());
        let flat = folded(&texts.join("\n"));
        let failed = matches!(claim, Claim::Attempt(attempt) if !attempt.succeeded);
        ShownRecord {
            id: record.id,
            at: record.provenance.at,
            failed,
            words: keys(&flat).into_iter().collect(),
            exact: exact_words(&flat).collect(),
            denies: failed || says_no(&flat),
        }
    }

    fn shares_word(&self, lesson: &Redacted) -> bool {
        keys(&folded(lesson.as_str())).iter().any(|key| self.words.contains(key))
    }
}

/// Records of one request, conversation by conversation, under short ids that are valid only in the
/// batch.
#[derive(Clone, Debug)]
pub(crate) struct LessonBatch {
    records: Vec<ShownRecord>,
    text: Redacted,
}

impl LessonBatch {
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn about(&self) -> Vec<Digest> {
        let about: BTreeSet<Digest> = self.records.iter().map(|it| it.id.0).collect();
        about.into_iter().collect()
    }
}

#[derive(Serialize)]
struct ShownLine<'a> {
    id: String,
    talk: usize,
    kind: &'static str,
    by: Speaker,
    day: Option<String>,
    claim: &'a Claim,
}

/// Batches of staged `records`, and the number of records in none: too long, or earlier than the batches that fit.
/// The order of `records` does not matter; later records leave earlier batches unchanged.
pub(crate) fn lesson_batches(records: &[Record], gate: &Gate) -> (Vec<LessonBatch>, usize) {
    let mut sessions: BTreeMap<SessionId, Vec<&Record>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for record in records {
        if record.state == RecordState::Staged && seen.insert(record.id) {
            sessions.entry(record.provenance.session).or_default().push(record);
        }
    }
    let order = |it: &&Record| (it.provenance.at, it.id);
    let mut sessions: Vec<Vec<&Record>> = sessions.into_values().collect();
    sessions.iter_mut().for_each(|session| session.sort_by_key(order));
    sessions.sort_by_key(|session| session.first().map(order));
    let (mut all, mut draft) = (Vec::new(), Draft::default());
    for session in sessions {
        draft.sessions += 1;
        for record in session {
            let claim = record.claim.clone().map(&|text| gate.redact(text).as_str().to_owned());
            if !draft.add(record, &claim) {
                all.extend(std::mem::take(&mut draft).finish(gate));
                draft.sessions = 1;
                draft.add(record, &claim);
            }
        }
    }
    all.extend(draft.finish(gate));
    let latest = all.split_off(all.len().saturating_sub(BATCHES_MAX));
    let shown: usize = latest.iter().map(LessonBatch::len).sum();
    (latest, seen.len() - shown)
}

#[derive(Default)]
struct Draft {
    records: Vec<ShownRecord>,
    sessions: usize,
    text: String,
    tokens: Tokens,
}

impl Draft {
    /// Adds a record, or skips it if it fits no batch; false if it belongs in the next one.
    fn add(&mut self, record: &Record, claim: &Claim) -> bool {
        let shown = ShownLine {
            id: format!("R{}", self.records.len() + 1),
            talk: self.sessions,
            kind: claim.kind().name(),
            by: said_by(record),
            day: record.provenance.at.map(Timestamp::day),
            claim,
        };
        let Some(line) = shown_line(&shown) else { return true };
        let tokens = self.tokens.saturating_add(estimate_tokens(&line));
        let full = self.records.len() == BATCH_RECORDS_MAX || tokens > BATCH_TOKENS_MAX;
        if full && !self.records.is_empty() {
            return false;
        }
        self.tokens = tokens;
        self.text.push_str(&line);
        self.text.push('\n');
        self.records.push(ShownRecord::of(record, claim));
        true
    }

    fn finish(self, gate: &Gate) -> Option<LessonBatch> {
        // Adjacent texts may reveal together what none of them reveals alone.
        let text = gate.redact(self.text.trim_end());
        (!self.records.is_empty()).then_some(LessonBatch { records: self.records, text })
    }
}

#[cfg(test)]
mod schema_tests {
    use super::*;
    use crate::llm::tool::check_strict;
    use std::path::Path;

    #[test]
    fn the_wire_schema_to_reflect_is_strict_and_knows_every_category() {
        let wire = wire_of::<WriteReflection>();
        check_strict(&wire, "root");
        let text = wire.to_string();
        for category in Category::ALL {
            assert!(text.contains(&format!("\"{}\"", category.name())), "{text}");
        }
    }

    #[test]
    fn published_schemas_to_reflect_are_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for (name, content) in reflect_schema_files() {
            let published = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
            assert_eq!(published, content, "schemas/{name}: run `just bless`, read the change");
        }
    }
}

#[cfg(test)]
#[path = "retrospective_test.rs"]
mod tests;
