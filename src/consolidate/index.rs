//! Finds the memories that a record may touch without looking at the others.
//!
//! An inverted index over words, neighbouring words and pairs of alternatives, of which only the rare ones count: a
//! key that more than [`POSTINGS_MAX`] memories share names no subject, and is never walked. So a lookup costs the
//! same with ten thousand memories and with a million. MinHash was weighed and left: it finds texts that are alike
//! as a whole, by chance; an attempt and the request that it completes share a few rare words, and those are always
//! found here.

use super::subject::{Subject, mix};
use crate::domain::ClaimKind;
use std::collections::HashMap;

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

/// No posting.
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

    /// The slots under `key`, the last first.
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

/// The keys under which a memory of `kind` with this subject stands: all that it says, what may not differ, pairs of
/// alternatives, words, neighbours. Of another kind only words can be shared, of what surrounds the subject too.
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
