//! Results of a first pass over a transcript for the second: one byte of flags per line, hashes of
//! ids, session headers, last versions of records, and abandoned records.

use super::raw::RawSession;
use crate::domain::Digest;
use foldhash::fast::FixedState;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

/// Map keyed by hash, with the same iteration order in every run.
pub(super) type NameMap<V> = HashMap<u64, V, FixedState>;
/// Set of hashes, with the same iteration order in every run.
pub(super) type NameSet = HashSet<u64, FixedState>;

/// 64-bit hash of a text. Among 100,000 texts, the odds of a collision are about one in a billion.
pub(super) fn name_of(text: &str) -> u64 {
    foldhash::quality::FixedState::default().hash_one(text)
}

/// Flags by 1-based line number.
#[derive(Debug, Default)]
pub(super) struct LineMarks(Vec<u8>);

impl LineMarks {
    pub(super) fn set(&mut self, line: u32, bits: u8) {
        let at = line as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= bits;
    }

    pub(super) fn has(&self, line: u32, bits: u8) -> bool {
        self.0.get(line as usize).is_some_and(|mark| mark & bits != 0)
    }
}

#[derive(Debug, Default)]
pub(super) struct FileIndex {
    pub(super) heads: Vec<RawSession>,
    /// Last version of each record that a file repeats, by id.
    pub(super) latest: NameMap<Value>,
    /// Document that the file's lines change.
    pub(super) rebuilt: Value,
    /// Records on abandoned branches.
    pub(super) abandoned: NameSet,
    /// Messages of the client's list as it is now, in order: ids, and hashes of what each says.
    pub(super) listed: Vec<(u64, u64)>,
    /// Messages that repeat another one under a new id, and the id of that one.
    pub(super) copies: NameMap<u64>,
    /// Parent of each record, by id, the last record, and the last one before the current session.
    parents: NameMap<u64>,
    pub(super) leaf: Option<u64>,
    pub(super) root: Option<u64>,
}

impl FileIndex {
    /// Sets a record's parent. An unknown parent is replaced by the previous record.
    pub(super) fn link(&mut self, name: u64, parent: u64) {
        let parent = Some(parent).filter(|parent| self.parents.contains_key(parent));
        let parent = parent.or(self.leaf).unwrap_or(name);
        self.parents.entry(name).or_insert(parent);
        self.leaf = Some(name);
    }

    /// Gives ids to sessions without one, and abandons all records not on the path to the last one.
    pub(super) fn closed(mut self) -> FileIndex {
        for head in self.heads.iter_mut().filter(|head| head.native_id.is_empty()) {
            let begun = head.started_at.map(|at| at.to_string()).unwrap_or_default();
            let cwd = head.cwd.as_deref().unwrap_or_default();
            head.native_id = Digest::of(&[begun.as_str(), cwd]).to_string();
        }
        let (mut path, mut at) = (NameSet::default(), self.leaf);
        while let Some(name) = at.filter(|name| path.insert(*name)) {
            at = self.parents.get(&name).copied();
        }
        self.abandoned.extend(self.parents.keys().filter(|name| !path.contains(*name)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_by_line() {
        let mut marks = LineMarks::default();
        marks.set(3, 1);
        marks.set(3, 4);
        assert!(marks.has(3, 4) && marks.has(3, 1) && !marks.has(3, 2) && !marks.has(99, 255));
    }
}
