//! Results of a first pass over a transcript: one byte of flags per line, and hashes of ids.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// Map keyed by hash, with the same iteration order in every run.
pub(super) type NameMap<V> = HashMap<u64, V, BuildHasherDefault<DefaultHasher>>;
/// Set of hashes, with the same iteration order in every run.
pub(super) type NameSet = HashSet<u64, BuildHasherDefault<DefaultHasher>>;

/// 64-bit hash of a text. Among 100,000 texts, the odds of a collision are about one in a billion.
pub(super) fn name_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
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
        if let Some(mark) = self.0.get_mut(at) {
            *mark |= bits;
        }
    }

    pub(super) fn has(&self, line: u32, bits: u8) -> bool {
        self.0.get(line as usize).is_some_and(|mark| mark & bits != 0)
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
