//! Results of the first pass over a file for the second: session headers, last versions of records,
//! and abandoned records.

use super::marks::{NameMap, NameSet};
use super::raw::RawSession;
use crate::domain::Digest;
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct FileIndex {
    pub(super) heads: Vec<RawSession>,
    /// Last version of each record that a file repeats, by id.
    pub(super) latest: NameMap<Value>,
    /// Document that the file's lines change.
    pub(super) rebuilt: Value,
    /// Records on abandoned branches.
    pub(super) abandoned: NameSet,
    /// Parent of each record, by id, and the last record.
    parents: NameMap<u64>,
    leaf: Option<u64>,
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
