//! The memories of one namespace with their index: loaded from a store one by one, kept while a worker lives, and
//! carried forward by the plans that were applied.

use super::index::{Index, look_up};
use super::subject::Subject;
use crate::domain::{ClaimKind, Disposition, Memory, MemoryId, MemoryMap, Plan, RecordId};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Memories that a record is compared with, those that share the most rare keys with it.
pub(super) const CANDIDATES_MAX: usize = 12;

/// The memories of one namespace. To come to the same plan, enter them in the same order, say by id.
#[derive(Debug)]
pub struct Memories {
    namespace: String,
    memories: Vec<Memory>,
    slots: HashMap<MemoryId, u32>,
    index: Index,
    taken: HashSet<RecordId>,
}

impl Memories {
    /// None yet, of `namespace`.
    pub fn new(namespace: impl Into<String>) -> Memories {
        Memories {
            namespace: namespace.into(),
            memories: Vec::new(),
            slots: HashMap::new(),
            index: Index::default(),
            taken: HashSet::new(),
        }
    }

    /// Those of `state` that are of `namespace`.
    pub fn of(namespace: impl Into<String>, state: &MemoryMap) -> Memories {
        let mut memories = Memories::new(namespace);
        for memory in state.values() {
            memories.insert(memory.clone());
        }
        memories
    }

    /// Enters `memory`, or puts it in the place of the one with its id. Says no to one of another namespace.
    pub fn insert(&mut self, memory: Memory) -> bool {
        if memory.namespace != self.namespace {
            return false;
        }
        self.taken.extend(memory.sources.iter().copied());
        let next = u32::try_from(self.memories.len()).unwrap_or(u32::MAX);
        match self.slots.get(&memory.id).and_then(|slot| self.memories.get_mut(*slot as usize)) {
            Some(old) => {
                // Words that are gone stay in the index: what they lead to is compared anew each time.
                if old.claim != memory.claim {
                    let slot = self.slots.get(&memory.id).copied().unwrap_or(next);
                    let former = Subject::of(&old.claim);
                    self.index.insert(slot, &Subject::of(&memory.claim), Some(&former));
                }
                *old = memory;
            }
            None => {
                self.index.insert(next, &Subject::of(&memory.claim), None);
                self.slots.insert(memory.id, next);
                self.memories.push(memory);
            }
        }
        true
    }

    /// Notes that `record` was dealt with, also where no memory rests on it.
    pub fn take(&mut self, record: RecordId) {
        self.taken.insert(record);
    }

    /// Brings them to what `plan` made of them.
    pub fn applied(&mut self, plan: &Plan) {
        for memory in plan.after().into_values() {
            self.insert(memory);
        }
        for operation in &plan.operations {
            if matches!(operation.disposition, Disposition::Withdraw { .. }) {
                self.taken.remove(&operation.record);
            } else {
                self.taken.insert(operation.record);
            }
        }
    }

    /// Whose they are.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// How many there are, in use or not.
    pub fn len(&self) -> usize {
        self.memories.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.memories.is_empty()
    }

    /// The memory with this id.
    pub fn get(&self, id: MemoryId) -> Option<&Memory> {
        self.slots.get(&id).and_then(|slot| self.memories.get(*slot as usize))
    }

    /// All of them by id.
    pub fn map(&self) -> MemoryMap {
        self.memories.iter().map(|memory| (memory.id, memory.clone())).collect()
    }

    /// Whether `record` was dealt with already.
    pub fn has_taken(&self, record: RecordId) -> bool {
        self.taken.contains(&record)
    }
}

/// Memories as they are while a plan is made: those of the store, with what the plan so far has changed and added.
#[derive(Debug)]
pub(super) struct Desk<'a> {
    stored: &'a Memories,
    /// What was touched, as it is now.
    pub(super) map: MemoryMap,
    /// What was touched of the stored ones, as it was.
    pub(super) before: MemoryMap,
    added: Vec<MemoryId>,
    index: Index,
}

impl<'a> Desk<'a> {
    pub(super) fn new(stored: &'a Memories) -> Desk<'a> {
        Desk {
            stored,
            map: MemoryMap::new(),
            before: MemoryMap::new(),
            added: Vec::new(),
            index: Index::default(),
        }
    }

    /// The memory as it is now.
    pub(super) fn get(&self, id: MemoryId) -> Option<&Memory> {
        self.map.get(&id).or_else(|| self.stored.get(id))
    }

    /// Puts `id` among what is touched.
    pub(super) fn touch(&mut self, id: MemoryId) {
        if self.map.contains_key(&id) {
            return;
        }
        if let Some(memory) = self.stored.get(id) {
            self.before.insert(id, memory.clone());
            self.map.insert(id, memory.clone());
        }
    }

    /// Lets `id`, which the plan made or whose claim it changed, be found by what it did not say before.
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
