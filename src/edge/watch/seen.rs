//! What every file looked like last time, in sixteen bytes a file: a digest of its path and one of its
//! state. Two of 50,000 paths share a digest once in ten billion machines.

use std::collections::HashMap;
use std::fs::Metadata;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

/// The last look at every file.
#[derive(Debug, Default)]
pub(super) struct Seen {
    now: HashMap<u64, u64>,
    /// The look before, while everything is looked at.
    before: Option<HashMap<u64, u64>>,
    digest: RandomState,
}

impl Seen {
    /// A look at everything begins; what it does not come by is forgotten when it ends.
    pub(super) fn begin_all(&mut self) {
        let room = HashMap::with_capacity(self.now.len());
        self.before = Some(std::mem::replace(&mut self.now, room));
    }

    /// The look at everything is over.
    pub(super) fn end_all(&mut self) {
        self.before = None;
    }

    /// Takes the file at `path` for new, should it be there again.
    pub(super) fn forget(&mut self, path: &Path) {
        self.now.remove(&self.digest.hash_one(path.as_os_str()));
    }

    /// Whether the file at `path` differs from the last look, which is then this one. Within a look at
    /// everything the second way to the same file is no news.
    pub(super) fn is_news(&mut self, path: &Path, meta: &Metadata) -> bool {
        let key = self.digest.hash_one(path.as_os_str());
        let state = self.digest.hash_one(state(meta));
        match (self.now.insert(key, state), &self.before) {
            (Some(_), Some(_)) => false,
            (None, Some(before)) => before.get(&key) != Some(&state),
            (last, None) => last != Some(state),
        }
    }
}

/// What changes with every change of a file; its rights too, since it may be readable now.
#[cfg(unix)]
fn state(meta: &Metadata) -> impl std::hash::Hash {
    use std::os::unix::fs::MetadataExt;
    let file = (meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
    (file, meta.mode(), meta.uid(), meta.gid())
}

/// What changes with every change of a file.
#[cfg(not(unix))]
fn state(meta: &Metadata) -> impl std::hash::Hash {
    (meta.len(), meta.modified().ok(), meta.created().ok())
}
