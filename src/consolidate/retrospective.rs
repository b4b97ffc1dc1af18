//! Retrospectives: the records of some sessions in five categories. A note is a headline of records and their ids.

use super::phrases::list;
use super::subject::Subject;
use crate::domain::{
    Claim, ClaimKind, MemoryMap, MemoryState, Record, RecordId, RecordState, Timestamp, named,
};
use crate::privacy::Redacted;
use crate::text::tokens::{folded, hash, words};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

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
    /// The headline of its latest record.
    pub headline: Redacted,
    /// The records, the earliest first.
    pub records: Vec<RecordId>,
    /// Number of them that are failed attempts.
    pub failed: usize,
    /// Time of the last of them.
    #[serde(skip)]
    pub at: Option<Timestamp>,
}

/// Review of the sessions of a namespace.
#[derive(schemars::JsonSchema, Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct Retrospective {
    pub namespace: String,
    /// Number of conversations.
    pub sessions: usize,
    /// Number of records by kind.
    pub kinds: BTreeMap<&'static str, usize>,
    /// Number of attempts that failed or succeeded in part.
    pub failed: usize,
    /// Notes by category; in each, the most repeated first, then the latest.
    pub notes: Vec<Note>,
}

type Key = (ClaimKind, Vec<u64>, Vec<u64>, Option<u64>);

/// Makes a retrospective. Ignores quarantined and replaced records and the order of records.
pub(crate) fn reflect(namespace: String, records: &[Record]) -> Retrospective {
    let mut retrospective = Retrospective { namespace, ..Retrospective::default() };
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

/// Drops the records on which only retracted memories rest, and those of which no memory was made, or of which a person
/// undid it (`discarded`).
pub(crate) fn standing(
    records: Vec<Record>,
    discarded: BTreeSet<RecordId>,
    memories: &MemoryMap,
) -> Vec<Record> {
    let (mut stands, mut withdrawn) = (BTreeSet::new(), discarded);
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
    let about = |name: &str| {
        let mut found = false;
        let keys: BTreeSet<u64> = list(name).words().map(key).collect();
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
