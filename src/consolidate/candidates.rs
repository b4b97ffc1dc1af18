//! The memories of a namespace and the index that finds those a record may touch without looking at the others.
//!
//! An inverted index over words, neighbouring words and pairs of alternatives, of which only the rare ones count: a key
//! that more than [`POSTINGS_MAX`] memories share names no subject. So a lookup costs the same with ten thousand
//! memories and with a million.

use super::subject::{Subject, mix};
use crate::domain::{ClaimKind, Memory, MemoryId, MemoryMap, RecordId};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Memories that a record is compared with, those that share the most rare keys with it.
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
        self.index.insert(slot, &Subject::of(&memory.claim), None);
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
}

impl<'a> WorkingSet<'a> {
    pub(super) fn new(stored: &'a Memories) -> WorkingSet<'a> {
        WorkingSet {
            stored,
            map: MemoryMap::new(),
            before: MemoryMap::new(),
            added: Vec::new(),
            index: Index::default(),
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

    /// Indexes `id` under its new subject.
    pub(super) fn enter(&mut self, id: MemoryId, subject: &Subject, former: Option<&Subject>) {
        let slot = u32::try_from(self.added.len()).unwrap_or(u32::MAX);
        self.index.insert(slot, subject, former);
        self.added.push(id);
    }

    /// The memories of `kind` that share the most with `subject`, by that and then by id.
    pub(super) fn candidates(&self, subject: &Subject, kind: ClaimKind) -> Vec<&Memory> {
        let found = look_up(&[&self.stored.index, &self.index], subject, kind);
        let id = |(place, slot): (usize, u32)| match place {
            0 => self.stored.memories.get(slot as usize).map(|memory| memory.id),
            _ => self.added.get(slot as usize).copied(),
        };
        let named = found.into_iter().filter_map(|(at, keys)| Some((Reverse(keys), id(at)?)));
        let mut ranked: Vec<(Reverse<u32>, MemoryId)> = named.collect();
        ranked.sort_unstable();
        let mut seen = HashSet::new();
        // Of what was withdrawn nothing is left to be told again.
        ranked
            .retain(|(_, id)| seen.insert(*id) && self.get(*id).is_some_and(|it| !it.is_hollow()));
        ranked.truncate(CANDIDATES_MAX);
        ranked.iter().filter_map(|(_, id)| self.get(*id)).collect()
    }
}

/// Memories that one key may lead to. Beyond this the key is common, and says nothing about a subject.
pub(super) const POSTINGS_MAX: u32 = 96;
/// Keys of a record that are followed, the rarest first.
const KEYS_MAX: usize = 12;
/// Keys of one memory that are kept, words before neighbours.
const KEYS_KEPT_MAX: usize = 48;

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
}

const NONE: u32 = u32::MAX;

/// Slots of memories by key. Keys of one kind never meet those of another.
#[derive(Debug, Default)]
pub(super) struct Index {
    heads: HashMap<u64, Head>,
    postings: Vec<Posting>,
}

impl Index {
    /// Enters the memory in `slot`, as far as it does not stand there with its former subject already.
    pub(super) fn insert(&mut self, slot: u32, subject: &Subject, former: Option<&Subject>) {
        let former = former.map(|former| keys(former, former.kind)).unwrap_or_default();
        for key in keys(subject, subject.kind).into_iter().take(KEYS_KEPT_MAX) {
            if former.contains(&key) {
                continue;
            }
            let head = self.heads.entry(key).or_insert(Head { last: NONE, count: 0 });
            head.count += 1;
            if head.count <= POSTINGS_MAX {
                let next = u32::try_from(self.postings.len()).unwrap_or(NONE);
                self.postings.push(Posting { slot, before: head.last });
                head.last = next;
            }
        }
    }

    fn count(&self, key: u64) -> u32 {
        self.heads.get(&key).map_or(0, |head| head.count)
    }

    fn slots(&self, key: u64) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.heads.get(&key).map_or(NONE, |head| head.last);
        std::iter::from_fn(move || {
            let posting = self.postings.get(usize::try_from(at).ok()?)?;
            at = posting.before;
            Some(posting.slot)
        })
    }
}

/// The slots of `kind` in each of `indexes` that share rare keys with `subject`, with how many: the index's place
/// among them, the slot, the keys.
pub(super) fn look_up(
    indexes: &[&Index],
    subject: &Subject,
    kind: ClaimKind,
) -> HashMap<(usize, u32), u32> {
    let wanted = keys(subject, kind);
    let count = |key: u64| indexes.iter().map(|index| index.count(key)).sum::<u32>();
    let mut rare: Vec<(u32, u64)> = wanted.iter().map(|key| (count(*key), *key)).collect();
    rare.retain(|(count, _)| (1..=POSTINGS_MAX).contains(count));
    rare.sort_unstable();
    let mut found = HashMap::new();
    for (_, key) in rare.into_iter().take(KEYS_MAX) {
        for (place, index) in indexes.iter().enumerate() {
            for slot in index.slots(key) {
                *found.entry((place, slot)).or_insert(0) += 1;
            }
        }
    }
    found
}

/// The keys of a memory of `kind` with this subject: content, pairs of alternatives, words, neighbours. Across kinds
/// only words are shared, also those around the subject.
fn keys(subject: &Subject, kind: ClaimKind) -> Vec<u64> {
    let salt = 1 + kind as u64;
    if kind != subject.kind {
        let across = |key: &u64| mix(salt, *key);
        return subject.all().iter().map(across).collect();
    }
    let mut keys = vec![mix(salt, subject.content.short())];
    for (at, one) in subject.alternatives.iter().enumerate() {
        let others = subject.alternatives.iter().skip(at + 1);
        keys.extend(others.map(|other| mix(salt, mix(*one, *other))));
        if keys.len() > KEYS_KEPT_MAX / 2 {
            break;
        }
    }
    keys.extend(subject.words.iter().map(|key| mix(salt, *key)));
    keys.extend(subject.pairs.iter().map(|key| mix(salt, *key)));
    keys
}
