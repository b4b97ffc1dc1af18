//! The memories of a namespace and the index that finds those a record may touch without looking at the others.
//!
//! An inverted index over the beginnings of words, ranked by BM25, of which only the rare ones count: a key that more
//! than [`POSTINGS_MAX`] memories share names no subject. So a lookup costs the same with ten thousand memories and with
//! a million.

use super::subject::{Subject, mix};
use crate::domain::{ClaimKind, Memory, MemoryId, MemoryMap, RecordId};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Subjects that are kept at a time.
const SUBJECTS_MAX: usize = 4_096;
/// Memories of one kind that a record is compared with, those that are nearest to it.
pub(super) const CANDIDATES_MAX: usize = 12;

/// The memories of one namespace. The same order of insertion, say by id, gives the same plan.
#[derive(Debug)]
pub struct Memories {
    namespace: String,
    memories: Vec<Memory>,
    slots: HashMap<MemoryId, u32>,
    index: Index,
    taken: HashSet<RecordId>,
}

impl Memories {
    /// An empty set of `namespace`.
    pub fn new(namespace: impl Into<String>) -> Memories {
        Memories {
            namespace: namespace.into(),
            memories: Vec::new(),
            slots: HashMap::new(),
            index: Index::default(),
            taken: HashSet::new(),
        }
    }

    /// The memories of `state` in `namespace`.
    pub fn of(namespace: impl Into<String>, state: &MemoryMap) -> Memories {
        let mut memories = Memories::new(namespace);
        for memory in state.values() {
            memories.insert(memory.clone());
        }
        memories
    }

    /// Enters a memory that is not there yet; false for one of another namespace.
    pub fn insert(&mut self, memory: Memory) -> bool {
        if memory.namespace != self.namespace || self.slots.contains_key(&memory.id) {
            return false;
        }
        let slot = u32::try_from(self.memories.len()).unwrap_or(u32::MAX);
        self.taken.extend(memory.sources.iter().copied());
        self.index.insert(slot, &Subject::of(&memory.claim));
        self.slots.insert(memory.id, slot);
        self.memories.push(memory);
        true
    }

    /// Notes that `record` was dealt with, also where no memory rests on it.
    pub fn take(&mut self, record: RecordId) {
        self.taken.insert(record);
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The memory with this id.
    pub fn get(&self, id: MemoryId) -> Option<&Memory> {
        self.slots.get(&id).and_then(|slot| self.memories.get(*slot as usize))
    }

    /// True if `record` was dealt with already.
    pub fn has_taken(&self, record: RecordId) -> bool {
        self.taken.contains(&record)
    }
}

/// Memories while a plan is made: the stored ones with the changes and additions of the plan so far.
#[derive(Debug)]
pub(super) struct WorkingSet<'a> {
    stored: &'a Memories,
    pub(super) map: MemoryMap,
    pub(super) before: MemoryMap,
    added: Vec<MemoryId>,
    index: Index,
    /// Subjects that were looked at, by memory.
    subjects: RefCell<HashMap<MemoryId, Rc<Subject>>>,
}

impl<'a> WorkingSet<'a> {
    pub(super) fn new(stored: &'a Memories) -> WorkingSet<'a> {
        WorkingSet {
            stored,
            map: MemoryMap::new(),
            before: MemoryMap::new(),
            added: Vec::new(),
            index: Index::default(),
            subjects: RefCell::default(),
        }
    }

    pub(super) fn get(&self, id: MemoryId) -> Option<&Memory> {
        self.map.get(&id).or_else(|| self.stored.get(id))
    }

    pub(super) fn touch(&mut self, id: MemoryId) {
        if self.map.contains_key(&id) {
            return;
        }
        if let Some(memory) = self.stored.get(id) {
            self.before.insert(id, memory.clone());
            self.map.insert(id, memory.clone());
        }
    }

    /// Indexes `id` under its new subject; what stands there under its former one stays.
    pub(super) fn enter(&mut self, id: MemoryId, subject: &Subject) {
        let slot = u32::try_from(self.added.len()).unwrap_or(u32::MAX);
        self.index.insert(slot, subject);
        self.added.push(id);
        self.subjects.borrow_mut().remove(&id);
    }

    /// The subject of `memory`, which is one of these.
    fn subject(&self, memory: &Memory) -> Rc<Subject> {
        let mut subjects = self.subjects.borrow_mut();
        if subjects.len() >= SUBJECTS_MAX {
            subjects.clear();
        }
        let subject = subjects.entry(memory.id);
        Rc::clone(subject.or_insert_with(|| Rc::new(Subject::of(&memory.claim))))
    }

    /// The memories of `kind` that say the most of what `subject` says, the nearest first, of equals by id.
    pub(super) fn candidates(&self, subject: &Subject, kind: ClaimKind) -> Vec<Candidate<'_>> {
        let found = look_up(&[&self.stored.index, &self.index], subject, kind);
        let mut best: HashMap<MemoryId, f64> = HashMap::new();
        for ((place, slot), score) in found {
            let id = match place {
                0 => self.stored.memories.get(slot as usize).map(|memory| memory.id),
                _ => self.added.get(slot as usize).copied(),
            };
            if let Some(id) = id {
                let most = best.entry(id).or_insert(score);
                *most = most.max(score);
            }
        }
        let mut ranked: Vec<(MemoryId, f64)> = best.into_iter().collect();
        ranked.sort_by(|(one, score), (other, than)| than.total_cmp(score).then(one.cmp(other)));
        // Of what was withdrawn nothing is left to be told again.
        let live = |(id, near): &(MemoryId, f64)| {
            let memory = self.get(*id).filter(|it| !it.is_hollow())?;
            Some(Candidate { memory, subject: self.subject(memory), near: *near })
        };
        ranked.iter().filter_map(live).take(CANDIDATES_MAX).collect()
    }
}

/// A memory that a record may touch.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) memory: &'a Memory,
    pub(super) subject: Rc<Subject>,
    /// Share of what the record says that it says too, from 0; rare words count more.
    pub(super) near: f64,
}

/// Memories that one key may lead to. Beyond this the key is common, and says nothing about a subject.
pub(super) const POSTINGS_MAX: u32 = 256;
/// Keys of a record that are followed, the rarest first.
const KEYS_MAX: usize = 32;
/// Keys of one memory that are kept.
const KEYS_KEPT_MAX: usize = 96;
/// Memories that are thought to be there besides those that are: among few, no word is rare.
const BACKGROUND: f64 = 100.0;
/// The usual constants of BM25: how soon more of the same word counts no more, and how much length counts.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// One key's postings: the last one written, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Head {
    last: u32,
    count: u32,
}

/// A posting, and the one written before it under the same key.
#[derive(Clone, Copy, Debug)]
struct Posting {
    slot: u32,
    before: u32,
    times: u16,
}

const NONE: u32 = u32::MAX;

/// Slots of memories by key, for ranking by BM25. Keys of one kind never meet those of another.
#[derive(Debug, Default)]
pub(super) struct Index {
    heads: HashMap<u64, Head>,
    postings: Vec<Posting>,
    /// Number of words of each slot.
    lengths: Vec<u16>,
    words: u64,
}

impl Index {
    /// Enters the memory in `slot`, the next one.
    pub(super) fn insert(&mut self, slot: u32, subject: &Subject) {
        let length = subject.terms.iter().map(|term| u32::from(term.times)).sum::<u32>();
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        self.lengths.push(length);
        self.words += u64::from(length);
        for (key, times) in keys(subject, subject.kind).take(KEYS_KEPT_MAX) {
            let head = self.heads.entry(key).or_insert(Head { last: NONE, count: 0 });
            head.count += 1;
            if head.count <= POSTINGS_MAX {
                let next = u32::try_from(self.postings.len()).unwrap_or(NONE);
                self.postings.push(Posting { slot, before: head.last, times });
                head.last = next;
            }
        }
    }

    fn count(&self, key: u64) -> u32 {
        self.heads.get(&key).map_or(0, |head| head.count)
    }

    fn postings(&self, key: u64) -> impl Iterator<Item = Posting> + '_ {
        let mut at = self.heads.get(&key).map_or(NONE, |head| head.last);
        std::iter::from_fn(move || {
            let posting = *self.postings.get(usize::try_from(at).ok()?)?;
            at = posting.before;
            Some(posting)
        })
    }
}

/// Scores of the slots of `kind` in each of `indexes`, by the index's place among them and the slot: BM25, as a share of
/// the greatest weight that the words of `subject` can have.
pub(super) fn look_up(
    indexes: &[&Index],
    subject: &Subject,
    kind: ClaimKind,
) -> HashMap<(usize, u32), f64> {
    let slots = indexes.iter().map(|index| index.lengths.len()).sum::<usize>() as f64;
    let words = indexes.iter().map(|index| index.words).sum::<u64>() as f64;
    let mean = (words / slots.max(1.0)).max(1.0);
    let count = |key: u64| indexes.iter().map(|index| index.count(key)).sum::<u32>();
    let weight = |count: u32| {
        let count = f64::from(count);
        (1.0 + (slots + BACKGROUND - count + 0.5) / (count + 0.5)).ln()
    };
    let mut wanted: Vec<(u32, u64)> =
        keys(subject, kind).map(|(key, _)| (count(key), key)).collect();
    let whole: f64 = wanted.iter().map(|(count, _)| weight(*count)).sum();
    wanted.retain(|(count, _)| (1..=POSTINGS_MAX).contains(count));
    wanted.sort_unstable();
    let mut found = HashMap::new();
    for (count, key) in wanted.into_iter().take(KEYS_MAX) {
        for (place, index) in indexes.iter().enumerate() {
            for Posting { slot, times, .. } in index.postings(key) {
                let length = index.lengths.get(slot as usize).copied().unwrap_or_default();
                let length = 1.0 - LENGTH + LENGTH * f64::from(length) / mean;
                let times = f64::from(times);
                let said = times * (SATURATION + 1.0) / (times + SATURATION * length);
                *found.entry((place, slot)).or_insert(0.0) += weight(count) * said / whole;
            }
        }
    }
    found
}

/// The keys of a memory of `kind` with this subject, and how often each is said: words, and of the same kind the content
/// as a whole.
fn keys(subject: &Subject, kind: ClaimKind) -> impl Iterator<Item = (u64, u16)> + '_ {
    let salt = 1 + kind as u64;
    let whole = (kind == subject.kind).then(|| (mix(salt, subject.content.short()), 1));
    whole.into_iter().chain(subject.terms.iter().map(move |term| (mix(salt, term.key), term.times)))
}
