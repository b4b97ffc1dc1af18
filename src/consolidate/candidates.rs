//! Memories of a namespace, and the index that finds those a record may touch.
//!
//! An inverted index over word prefixes, ranked by BM25. It ignores common keys: more than [`POSTINGS_MAX`] memories
//! share them, so they name no subject. A lookup therefore costs the same with ten thousand memories and with a
//! million. The store keeps the same index, so that a plan loads only the memories it needs.

use super::incoming::Incoming;
use super::subject::{SearchKeys, Subject, mix};
use crate::domain::{ClaimKind, Memory, MemoryId, MemoryMap, RecordId, Timestamp};
use foldhash::{HashMap, HashSet};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Maximum number of cached subjects, of about a kilobyte each: more than the records of a plan,
/// which are compared with one another most.
const SUBJECTS_MAX: usize = 131_072;
/// Maximum number of memories of one kind that a record is compared with, nearest first.
pub(super) const CANDIDATES_MAX: usize = 12;

/// Memories of one namespace: all of them, or an index of all and those loaded so far. The same
/// memories give the same plan.
#[derive(Debug)]
pub struct Memories {
    namespace: String,
    map: MemoryMap,
    index: Index,
    taken: HashSet<RecordId>,
}

impl Memories {
    /// Creates an empty set for `namespace`.
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
        let (map, taken) = (MemoryMap::new(), HashSet::default());
        Memories { namespace: namespace.into(), map, index, taken }
    }

    /// Inserts a memory; false if it is there already or of another namespace.
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

    /// Marks `record` as processed, even if no memory rests on it.
    pub fn take(&mut self, record: RecordId) {
        self.taken.insert(record);
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The loaded memories.
    pub(crate) fn loaded(&self) -> &MemoryMap {
        &self.map
    }

    /// Drops the index and returns the loaded memories.
    pub(crate) fn into_loaded(self) -> MemoryMap {
        self.map
    }

    /// The memory with this id.
    pub fn get(&self, id: MemoryId) -> Option<&Memory> {
        self.map.get(&id)
    }

    /// Number of memories, including those that are not loaded.
    pub(crate) fn len(&self) -> u64 {
        self.index.memories
    }

    /// True if `record` was processed already.
    pub fn has_taken(&self, record: RecordId) -> bool {
        self.taken.contains(&record)
    }
}

/// Memories during planning: the stored ones with the plan's changes so far.
#[derive(Debug)]
pub(super) struct WorkingSet<'a> {
    stored: &'a Memories,
    pub(super) map: MemoryMap,
    pub(super) before: MemoryMap,
    index: Index,
    /// Reused buffer for the scores of a lookup.
    scores: RefCell<Scores>,
    /// Requested memories that are not loaded.
    pub(super) missing: RefCell<BTreeSet<MemoryId>>,
    /// Cached subjects, by memory.
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

    /// Indexes `id` under its new subject; entries under its former one stay.
    pub(super) fn enter(&mut self, id: MemoryId, subject: &Rc<Subject>) {
        self.index.insert(id, &subject.search);
        self.subjects.borrow_mut().insert(id, Rc::clone(subject));
    }

    /// The subject of `memory` for a record of the time `at`: earlier ones meet the words that it had before a person's edit.
    pub(super) fn subject(&self, memory: &Memory, at: Option<Timestamp>) -> Rc<Subject> {
        if memory.edited.is_some() {
            return Rc::new(Subject::of(&memory.claim_at(at)));
        }
        let mut subjects = self.subjects.borrow_mut();
        if subjects.len() >= SUBJECTS_MAX {
            subjects.clear();
        }
        let subject = subjects.entry(memory.id);
        Rc::clone(subject.or_insert_with(|| Rc::new(Subject::of(&memory.claim))))
    }

    /// Memories of `kind` that share most with `new`, nearest first, ties by id.
    pub(super) fn candidates(&self, new: &Incoming<'_>, kind: ClaimKind) -> Vec<Candidate<'_>> {
        let mut scores = self.scores.borrow_mut();
        let indexes = [&self.stored.index, &self.index];
        look_up(indexes, &mut scores, &new.subject.search, kind);
        let mut ranked = scores.ranked(&self.index.numbers);
        drop(scores);
        // The nearest are enough, unless many of them are withdrawn.
        let mut others = Vec::new();
        if ranked.len() > RANKED_MAX {
            ranked.select_nth_unstable_by(RANKED_MAX, by_nearness);
            others = ranked.split_off(RANKED_MAX);
        }
        ranked.sort_unstable_by(by_nearness);
        // A withdrawn memory has no content to compare with.
        let is_live = |(id, _): &(MemoryId, f64)| self.get(*id).is_none_or(|it| !it.is_hollow());
        let candidate = |(id, near): (MemoryId, f64)| {
            let Some(memory) = self.get(id) else {
                self.missing.borrow_mut().insert(id);
                return None;
            };
            Some(Candidate { memory, subject: self.subject(memory, new.facts.at), near })
        };
        let mut nearest: Vec<(MemoryId, f64)> =
            ranked.into_iter().filter(is_live).take(CANDIDATES_MAX).collect();
        if nearest.len() < CANDIDATES_MAX {
            others.sort_unstable_by(by_nearness);
            let room = CANDIDATES_MAX - nearest.len();
            nearest.extend(others.into_iter().filter(is_live).take(room));
        }
        nearest.into_iter().filter_map(candidate).collect()
    }

    /// Memories of `kind` among `ids` that are not in `found`, beside `new`.
    pub(super) fn named(
        &self,
        new: &Incoming<'_>,
        ids: impl Iterator<Item = MemoryId>,
        kind: ClaimKind,
        found: &[Candidate<'_>],
    ) -> Vec<Candidate<'_>> {
        let others = ids.filter(|id| !found.iter().any(|it| it.memory.id == *id));
        let candidate = |id: MemoryId| {
            // A model saw only loaded ones, and those of the plan.
            let memory = self.get(id)?;
            let fits = memory.claim.kind() == kind && !memory.is_hollow();
            fits.then(|| Candidate {
                memory,
                subject: self.subject(memory, new.facts.at),
                near: RELATED_NEAR,
            })
        };
        others.filter_map(candidate).collect()
    }
}

/// A memory that a record may touch.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) memory: &'a Memory,
    pub(super) subject: Rc<Subject>,
    /// Share of the record's words that it has too, from 0; rare words count more.
    pub(super) near: f64,
}

/// Minimum share of a record's words in a memory for the pair to be asked about.
pub(super) const RELATED_NEAR: f64 = 0.1;
/// Maximum number of memories under a key; a key with more is common and names no subject.
pub(super) const POSTINGS_MAX: u32 = 256;
/// Maximum number of a record's keys to look up, rarest first.
const KEYS_MAX: usize = 32;
/// Number of memories that a lookup sorts at first.
const RANKED_MAX: usize = 64;
/// Maximum number of keys indexed per memory.
const KEYS_KEPT_MAX: usize = 96;
/// Number added to the count of memories, because no word is rare among few.
const BACKGROUND: f64 = 100.0;
/// BM25 constants: term frequency saturation (k1) and length normalization (b).
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// Numbers of memories in an index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    ids: Vec<MemoryId>,
    by_id: HashMap<MemoryId, u32>,
}

impl Numbers {
    /// Returns the number of `id`, assigning one if it has none.
    pub(crate) fn number(&mut self, id: MemoryId) -> u32 {
        let next = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        *self.by_id.entry(id).or_insert_with(|| {
            self.ids.push(id);
            next
        })
    }

    /// The memory with this number.
    pub(crate) fn memory(&self, number: u32) -> Option<MemoryId> {
        self.ids.get(number as usize).copied()
    }
}

/// Entry of a memory under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    /// Number of the memory.
    pub memory: u32,
    /// Occurrences of the key in the memory.
    pub times: u16,
    /// Number of words of the memory.
    pub length: u16,
}

/// The memories under one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Postings {
    /// Number of memories. If the list has another length, the key is common and the list empty.
    pub count: u32,
    pub list: Vec<Posting>,
}

/// Inverted index of memories for BM25. Each kind has keys of its own.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub numbers: Numbers,
    pub keys: HashMap<u64, Postings>,
    /// Number of memories, and of their words.
    pub memories: u64,
    pub words: u64,
}

impl Index {
    /// Indexes a memory under the keys of `search`.
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

    /// Removes a memory from the keys of `search`. A common key stays common until it has no memory.
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

    /// Up to `most` memories of any kind among `of` that share most words with `search`, nearest first, ties by id.
    pub(super) fn nearest(
        &self,
        search: &SearchKeys,
        of: &BTreeSet<MemoryId>,
        most: usize,
    ) -> Vec<MemoryId> {
        let (other, mut scores, mut found) = (Index::default(), Scores::default(), Vec::new());
        for kind in ClaimKind::ALL.iter().copied() {
            look_up([self, &other], &mut scores, search, kind);
            found.extend(scores.ranked(&self.numbers).into_iter().filter(|it| of.contains(&it.0)));
        }
        found.sort_unstable_by(by_nearness);
        found.into_iter().take(most).map(|it| it.0).collect()
    }

    fn count(&self, key: u64) -> u32 {
        self.keys.get(&key).map_or(0, |it| it.count)
    }
}

fn length_of(search: &SearchKeys) -> u16 {
    let length = search.terms.iter().map(|term| u32::from(term.times)).sum::<u32>();
    u16::try_from(length).unwrap_or(u16::MAX)
}

/// Keys under which a memory with `search` is indexed, and its occurrences of each.
pub(crate) fn entered_keys(search: &SearchKeys) -> impl Iterator<Item = (u64, u16)> + '_ {
    keys(search, search.kind).take(KEYS_KEPT_MAX)
}

/// Scores of one lookup by memory number, in two indexes with the same numbers: BM25, as a share of
/// the maximum weight of a subject's words.
#[derive(Debug, Default)]
struct Scores {
    of: [Vec<f64>; 2],
    /// Numbers of memories with a score, without duplicates.
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

    /// Memories with the greater of their scores, unsorted.
    fn ranked(&self, numbers: &Numbers) -> Vec<(MemoryId, f64)> {
        let scored = |number: &u32| {
            let each = self.of.iter().filter_map(|scores| scores.get(*number as usize));
            Some((numbers.memory(*number)?, each.copied().fold(0.0, f64::max)))
        };
        self.found.iter().filter_map(scored).collect()
    }
}

fn by_nearness(one: &(MemoryId, f64), other: &(MemoryId, f64)) -> std::cmp::Ordering {
    other.1.total_cmp(&one.1).then(one.0.cmp(&other.0))
}

/// Scores the memories of `kind` that share words with `search`.
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
    let postings = |key: u64| {
        let found = indexes.into_iter().map(move |index| index.keys.get(&key)).enumerate();
        let lists = found.flat_map(|(place, it)| it.map(|it| (place, &it.list)));
        lists.flat_map(|(place, list)| list.iter().map(move |it| (place, it)))
    };
    for (count, key) in wanted.into_iter().take(KEYS_MAX) {
        let share = weight(count) / whole;
        for (place, posting) in postings(key) {
            let length = 1.0 - LENGTH + LENGTH * f64::from(posting.length) / mean;
            let times = f64::from(posting.times);
            let said = times * (SATURATION + 1.0) / (times + SATURATION * length);
            scores.change(place, posting.memory, |score| score + share * said);
        }
    }
    // Among few memories all are near enough, even in different words.
    for (place, posting) in postings(every).filter(|_| few) {
        scores.change(place, posting.memory, |score| score.max(RELATED_NEAR));
    }
}

/// Key of all memories of `kind`.
fn every_key(kind: ClaimKind) -> u64 {
    mix(1 + kind as u64, 0)
}

/// Keys of matching memories of `kind`, and occurrences of each: the kind, words, and for the same
/// kind the content digest.
pub(super) fn keys(search: &SearchKeys, kind: ClaimKind) -> impl Iterator<Item = (u64, u16)> + '_ {
    let salt = 1 + kind as u64;
    let whole = (kind == search.kind).then(|| (mix(salt, search.content.short()), 1));
    let every = std::iter::once((every_key(kind), 1));
    every.chain(whole).chain(search.terms.iter().map(move |term| (mix(salt, term.key), term.times)))
}
