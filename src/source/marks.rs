//! What a first pass learnt about each line, in one byte a line, and short names for long ids.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// A map from names, the same in every run.
pub(super) type NameMap<V> = HashMap<u64, V, BuildHasherDefault<DefaultHasher>>;
/// A set of names, the same in every run.
pub(super) type NameSet = HashSet<u64, BuildHasherDefault<DefaultHasher>>;

/// A short name for a text: 64 bits, so that an index of a hundred thousand stays small and a
/// clash stays as unlikely as one in a billion.
pub(super) fn name_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Bits by line number.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<u8>);

impl Marks {
    /// Adds `bits` to the line, from 1.
    pub(super) fn set(&mut self, line: u32, bits: u8) {
        let at = line as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        if let Some(mark) = self.0.get_mut(at) {
            *mark |= bits;
        }
    }

    /// Whether the line has any of `bits`.
    pub(super) fn has(&self, line: u32, bits: u8) -> bool {
        self.0.get(line as usize).is_some_and(|mark| mark & bits != 0)
    }
}

/// Calls that wait for their result; more at once are not seen, so the oldest give way.
const CALLS_MAX: usize = 4096;

/// Tool calls whose results have not been read yet.
#[derive(Debug)]
pub(super) struct OpenCalls<V> {
    calls: NameMap<V>,
    order: VecDeque<u64>,
}

impl<V> Default for OpenCalls<V> {
    fn default() -> OpenCalls<V> {
        OpenCalls { calls: NameMap::default(), order: VecDeque::new() }
    }
}

impl<V> OpenCalls<V> {
    /// Remembers a call.
    pub(super) fn open(&mut self, call_id: &str, call: V) {
        let name = name_of(call_id);
        if self.calls.insert(name, call).is_none() {
            self.order.push_back(name);
        }
        if CALLS_MAX < self.order.len()
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    /// The call with this id, which is answered now.
    pub(super) fn close(&mut self, call_id: &str) -> Option<V> {
        let name = name_of(call_id);
        let call = self.calls.remove(&name)?;
        self.order.retain(|open| *open != name);
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_open_call_gives_way() {
        let mut calls = OpenCalls::default();
        for id in 0..=CALLS_MAX {
            calls.open(&id.to_string(), id);
        }
        assert_eq!(calls.close("0"), None);
        assert_eq!(calls.close("1"), Some(1));
        assert_eq!(calls.close("1"), None);
    }

    #[test]
    fn marks_are_by_line() {
        let mut marks = Marks::default();
        marks.set(3, 1);
        marks.set(3, 4);
        assert!(marks.has(3, 4) && marks.has(3, 1) && !marks.has(3, 2) && !marks.has(99, 255));
    }
}
