//! The memories of a namespace and the index that finds those a record may touch without looking at the others.
//!
//! An inverted index over the beginnings of words, ranked by BM25, of which only the rare ones count: a key that more
//! than [`POSTINGS_MAX`] memories share names no subject. So a lookup costs the same with ten thousand memories and with
//! a million. The store keeps the same index, so that a plan is made of the memories that it asks for.

use super::subject::{SearchKeys, Subject, mix};
use crate::domain::{ClaimKind, Memory, MemoryId, MemoryMap, RecordId};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Subjects that are kept at a time, of about a kilobyte each: more than the records of a plan, which are compared with one
/// another most.
const SUBJECTS_MAX: usize = 131_072;
/// Memories of one kind that a record is compared with, those that are nearest to it.
pub(super) const CANDIDATES_MAX: usize = 12;

/// The memories of one namespace, or an index of them all and those that were loaded. The same memories give the same
/// plan.
#[derive(Debug)]
pub struct Memories {
    namespace: String,
    map: MemoryMap,
    index: Index,
    taken: HashSet<RecordId>,
}

impl Memories {
    /// An empty set of `namespace`.
    pub fn new(namespace: impl Into<String>) -> Memories {
        Memories::indexed(namespace, Index::default())
    }

    /// The memories of `state` in `namespace`.
    pub fn of(namespace: impl Into<String>, state: &MemoryMap) -> Memories {
        let mut memories = Memories::new(namespace);
        for memory in state.values() {
            memories.insert(memory.clone());
        }
        memories
    }

    /// Memories that are in `index` and not loaded yet.
    pub(crate) fn indexed(namespace: impl Into<String>, index: Index) -> Memories {
        let (map, taken) = (MemoryMap::new(), HashSet::new());
        Memories { namespace: namespace.into(), map, index, taken }
    }

    /// Enters a memory that is not there yet; false for one of another namespace.
    pub fn insert(&mut self, memory: Memory) -> bool {
        if memory.namespace != self.namespace || self.map.contains_key(&memory.id) {
            return false;
        }
        self.index.insert(memory.id, &SearchKeys::of(&memory.claim));
        self.load(memory);
        true
    }

    /// Loads a memory that is in the index.
    pub(crate) fn load(&mut self, memory: Memory) {
        self.taken.extend(memory.sources.iter().copied());
        self.map.insert(memory.id, memory);
    }

    /// Notes that `record` was dealt with, also where no memory rests on it.
    pub fn take(&mut self, record: RecordId) {
        self.taken.insert(record);
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The memories that are loaded.
    pub(crate) fn loaded(&self) -> &MemoryMap {
        &self.map
    }

    /// The same, without the index.
    pub(crate) fn into_loaded(self) -> MemoryMap {
        self.map
    }

    /// The memory with this id.
    pub fn get(&self, id: MemoryId) -> Option<&Memory> {
        self.map.get(&id)
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
    index: Index,
    /// Room for the scores of a lookup.
    scores: RefCell<Scores>,
    /// Memories that were asked for and are not loaded.
    missing: RefCell<BTreeSet<MemoryId>>,
    /// Subjects that were looked at, by memory.
    subjects: RefCell<HashMap<MemoryId, Rc<Subject>>>,
}

impl<'a> WorkingSet<'a> {
    pub(super) fn new(stored: &'a Memories) -> WorkingSet<'a> {
        WorkingSet {
            stored,
            map: MemoryMap::new(),
            before: MemoryMap::new(),
            index: Index { numbers: stored.index.numbers.clone(), ..Index::default() },
            scores: RefCell::default(),
            missing: RefCell::default(),
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
    pub(super) fn enter(&mut self, id: MemoryId, subject: &Rc<Subject>) {
        self.index.insert(id, &subject.search);
        self.subjects.borrow_mut().insert(id, Rc::clone(subject));
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
        let mut scores = self.scores.borrow_mut();
        let indexes = [&self.stored.index, &self.index];
        look_up(indexes, &mut scores, &subject.search, kind);
        let mut ranked = scores.ranked(&self.index.numbers);
        drop(scores);
        let order = |one: &(MemoryId, f64), other: &(MemoryId, f64)| {
            other.1.total_cmp(&one.1).then(one.0.cmp(&other.0))
        };
        // Of thousands the nearest are enough, unless many of them are withdrawn.
        let mut others = Vec::new();
        if ranked.len() > RANKED_MAX {
            ranked.select_nth_unstable_by(RANKED_MAX, order);
            others = ranked.split_off(RANKED_MAX);
        }
        ranked.sort_unstable_by(order);
        // Of what was withdrawn nothing is left to be told again.
        let is_live = |(id, _): &(MemoryId, f64)| self.get(*id).is_none_or(|it| !it.is_hollow());
        let candidate = |(id, near): (MemoryId, f64)| {
            let Some(memory) = self.get(id) else {
                self.missing.borrow_mut().insert(id);
                return None;
            };
            Some(Candidate { memory, subject: self.subject(memory), near })
        };
        let mut nearest: Vec<(MemoryId, f64)> =
            ranked.into_iter().filter(is_live).take(CANDIDATES_MAX).collect();
        if nearest.len() < CANDIDATES_MAX {
            others.sort_unstable_by(order);
            let room = CANDIDATES_MAX - nearest.len();
            nearest.extend(others.into_iter().filter(is_live).take(room));
        }
        nearest.into_iter().filter_map(candidate).collect()
    }

    /// The memories that must be loaded for the plan to be the one that all memories give.
    pub(super) fn into_missing(self) -> BTreeSet<MemoryId> {
        self.missing.into_inner()
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

/// Least share of what a record says that a memory must say too for somebody to be asked about the two.
pub(super) const RELATED_NEAR: f64 = 0.1;
/// Memories that one key may lead to. Beyond this the key is common, and says nothing about a subject.
pub(super) const POSTINGS_MAX: u32 = 256;
/// Keys of a record that are followed, the rarest first.
const KEYS_MAX: usize = 32;
/// Memories of a lookup that are put in order at first.
const RANKED_MAX: usize = 64;
/// Keys of one memory that are kept.
const KEYS_KEPT_MAX: usize = 96;
/// Memories that are thought to be there besides those that are: among few, no word is rare.
const BACKGROUND: f64 = 100.0;
/// The usual constants of BM25: how soon more of the same word counts no more, and how much length counts.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// Memories by the number that stands for each in an index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    ids: Vec<MemoryId>,
    by_id: HashMap<MemoryId, u32>,
}

impl Numbers {
    /// The number of `id`, which is given one if it has none.
    pub(crate) fn number(&mut self, id: MemoryId) -> u32 {
        let next = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        *self.by_id.entry(id).or_insert_with(|| {
            self.ids.push(id);
            next
        })
    }

    /// The memory of a number.
    pub(crate) fn memory(&self, number: u32) -> Option<MemoryId> {
        self.ids.get(number as usize).copied()
    }
}

/// A memory under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    /// Its number.
    pub memory: u32,
    /// Number of times that it says the key.
    pub times: u16,
    /// Number of its words.
    pub length: u16,
}

/// The memories under one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Postings {
    /// Number of them. Where it is not that of the list, the key is common and the list empty.
    pub count: u32,
    pub list: Vec<Posting>,
}

/// Memories by key, for ranking by BM25. Keys of one kind never meet those of another.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub numbers: Numbers,
    pub keys: HashMap<u64, Postings>,
    /// Number of memories, and of their words.
    pub memories: u64,
    pub words: u64,
}

impl Index {
    /// Enters a memory that is found by `search`.
    pub(crate) fn insert(&mut self, id: MemoryId, search: &SearchKeys) {
        let length = length_of(search);
        let memory = self.numbers.number(id);
        self.memories += 1;
        self.words += u64::from(length);
        for (key, times) in entered_keys(search) {
            let Postings { count, list } = self.keys.entry(key).or_default();
            if *count as usize == list.len() && *count < POSTINGS_MAX {
                list.push(Posting { memory, times, length });
            } else {
                *list = Vec::new();
            }
            *count += 1;
        }
    }

    /// Takes a memory out that is found by `search`. A common key stays common until nothing is under it.
    pub(crate) fn remove(&mut self, id: MemoryId, search: &SearchKeys) {
        let number = self.numbers.number(id);
        self.memories = self.memories.saturating_sub(1);
        self.words = self.words.saturating_sub(u64::from(length_of(search)));
        for (key, _) in entered_keys(search) {
            if let Some(Postings { count, list }) = self.keys.get_mut(&key) {
                *count = count.saturating_sub(1);
                list.retain(|it| it.memory != number);
            }
        }
    }

    fn count(&self, key: u64) -> u32 {
        self.keys.get(&key).map_or(0, |it| it.count)
    }
}

fn length_of(search: &SearchKeys) -> u16 {
    let length = search.terms.iter().map(|term| u32::from(term.times)).sum::<u32>();
    u16::try_from(length).unwrap_or(u16::MAX)
}

/// The keys under which a memory that is found by `search` is entered, and how often it says each.
pub(crate) fn entered_keys(search: &SearchKeys) -> impl Iterator<Item = (u64, u16)> + '_ {
    keys(search, search.kind).take(KEYS_KEPT_MAX)
}

/// Scores of one lookup by the number of a memory, in two indexes that number alike: BM25, as a share of the greatest
/// weight that the words of a subject can have.
#[derive(Debug, Default)]
struct Scores {
    of: [Vec<f64>; 2],
    /// The numbers of those that have one, each once.
    found: Vec<u32>,
}

impl Scores {
    fn clear(&mut self, memories: usize) {
        for number in self.found.drain(..) {
            for scores in &mut self.of {
                scores.get_mut(number as usize).into_iter().for_each(|it| *it = 0.0);
            }
        }
        self.of.iter_mut().for_each(|scores| scores.resize(memories, 0.0));
    }

    fn change(&mut self, place: usize, number: u32, to: impl Fn(f64) -> f64) {
        let at = number as usize;
        if self.of.iter().all(|scores| scores.get(at) == Some(&0.0)) {
            self.found.push(number);
        }
        let score = self.of.get_mut(place).and_then(|scores| scores.get_mut(at));
        score.into_iter().for_each(|it| *it = to(*it));
    }

    /// The memories with the greater of their scores, in no order.
    fn ranked(&self, numbers: &Numbers) -> Vec<(MemoryId, f64)> {
        let scored = |number: &u32| {
            let each = self.of.iter().filter_map(|scores| scores.get(*number as usize));
            Some((numbers.memory(*number)?, each.copied().fold(0.0, f64::max)))
        };
        self.found.iter().filter_map(scored).collect()
    }
}

/// Looks the memories of `kind` up that share words with `search`.
fn look_up(indexes: [&Index; 2], scores: &mut Scores, search: &SearchKeys, kind: ClaimKind) {
    scores.clear(indexes.iter().map(|index| index.numbers.ids.len()).max().unwrap_or_default());
    let memories = indexes.iter().map(|index| index.memories).sum::<u64>() as f64;
    let words = indexes.iter().map(|index| index.words).sum::<u64>() as f64;
    let mean = (words / memories.max(1.0)).max(1.0);
    let count = |key: u64| indexes.iter().map(|index| index.count(key)).sum::<u32>();
    let weight = |count: u32| {
        let count = f64::from(count);
        (1.0 + (memories + BACKGROUND - count + 0.5) / (count + 0.5)).ln()
    };
    let said = keys(search, kind).filter(|(key, _)| *key != every_key(kind));
    let mut wanted: Vec<(u32, u64)> = said.map(|(key, _)| (count(key), key)).collect();
    let whole: f64 = wanted.iter().map(|(count, _)| weight(*count)).sum();
    wanted.retain(|(count, _)| (1..=POSTINGS_MAX).contains(count));
    wanted.sort_unstable();
    let every = every_key(kind);
    let few = count(every) as usize <= CANDIDATES_MAX;
    for (count, key) in wanted.into_iter().take(KEYS_MAX) {
        let share = weight(count) / whole;
        for (place, index) in indexes.iter().enumerate() {
            for posting in index.keys.get(&key).into_iter().flat_map(|it| &it.list) {
                let length = 1.0 - LENGTH + LENGTH * f64::from(posting.length) / mean;
                let times = f64::from(posting.times);
                let said = times * (SATURATION + 1.0) / (times + SATURATION * length);
                scores.change(place, posting.memory, |score| score + share * said);
            }
        }
    }
    // Among few memories none is too far, also where it says the same in other words.
    for (place, index) in indexes.iter().enumerate().filter(|_| few) {
        for posting in index.keys.get(&every).into_iter().flat_map(|it| &it.list) {
            scores.change(place, posting.memory, |score| score.max(RELATED_NEAR));
        }
    }
}

/// The key under which every memory of `kind` stands.
fn every_key(kind: ClaimKind) -> u64 {
    mix(1 + kind as u64, 0)
}

/// The keys of memories of `kind` that say the same, and how often each is said: that of the kind, words, and of the same
/// kind the content as a whole.
pub(super) fn keys(search: &SearchKeys, kind: ClaimKind) -> impl Iterator<Item = (u64, u16)> + '_ {
    let salt = 1 + kind as u64;
    let whole = (kind == search.kind).then(|| (mix(salt, search.content.short()), 1));
    let every = std::iter::once((every_key(kind), 1));
    every.chain(whole).chain(search.terms.iter().map(move |term| (mix(salt, term.key), term.times)))
}
