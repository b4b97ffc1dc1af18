//! Questions for a person: pairs of memories that contradict one another, or may, and open items.

use super::dir_sync::contradictions;
use crate::domain::{ClaimKind, Memory, MemoryId, MemoryMap, MemoryState, is_partly};
use crate::memory_dir::{Contradiction, Section, section};
use crate::store::{MemoryPairs, PrefixLookup, Store, StoreResult};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of open pairs to ask about; the rest follow once these are answered.
const PAIRS_MAX: u32 = 1_000;
/// Maximum number of undecided pairs of one memory.
const UNDECIDED_MAX: usize = 200;

#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// Two memories that contradict one another, or may; the earlier one first.
    Pair {
        one: Box<Memory>,
        other: Box<Memory>,
        /// True if they contradict one another, false if they may.
        is_certain: bool,
    },
    /// An open request, question or failure.
    Open(Box<Memory>),
}

/// All questions of a namespace: first the pairs, then the open items by time.
pub(crate) async fn questions(store: &Store, namespace: &str) -> StoreResult<Vec<Question>> {
    let pairs = pairs(store, namespace).await?;
    let mut found = pair_questions(store, &pairs).await?;
    let memories = store.memories(Some(namespace)).await?;
    let mut open: Vec<&Memory> = memories.values().filter(|it| is_open(it)).collect();
    open.sort_by_key(|it| (it.valid_from, it.id));
    found.extend(open.into_iter().map(|it| Question::Open(Box::new(it.clone()))));
    Ok(found)
}

/// Pairs of a namespace to ask about: those that a plan left open, then those that contradict one another.
pub(crate) async fn pairs(store: &Store, namespace: &str) -> StoreResult<Vec<Contradiction>> {
    let mut all = contradictions(store, namespace, PAIRS_MAX).await?;
    let mut met = BTreeSet::new();
    // Of a pair of which one changes a part of the other, a model decided that both stand.
    all.retain(|it| !it.is_partly && met.insert((it.one, it.other)));
    all.sort_by_key(|it| it.is_certain);
    Ok(all)
}

/// Questions for those of `pairs` whose memories are both active.
pub(crate) async fn pair_questions(
    store: &Store,
    pairs: &[Contradiction],
) -> StoreResult<Vec<Question>> {
    let ids = pairs.iter().flat_map(|it| [it.one, it.other]).collect();
    let memories = store.memories_of(ids).await?;
    let memories: BTreeMap<MemoryId, Memory> = memories.into_iter().map(|it| (it.id, it)).collect();
    let question = |it: &Contradiction| {
        Question::pair(memories.get(&it.one)?, memories.get(&it.other)?, it.is_certain)
    };
    Ok(pairs.iter().filter_map(question).collect())
}

/// Active memories that contradict an active one or may have made it obsolete, each with the words for it.
pub(crate) async fn undecided(
    store: &Store,
    memory: &Memory,
) -> StoreResult<Vec<(&'static str, Memory)>> {
    if !is_active(memory) {
        return Ok(Vec::new());
    }
    let MemoryPairs { certain, open } = store.pairs_with(memory.id).await?;
    let open = open.into_iter().map(|(by, one, rule)| (by, one, false, is_partly(&rule)));
    let certain = certain.into_iter().map(|(one, other)| (one, other, true, false));
    let pair = |(one, other, is_certain, is_partly)| {
        let pair = Contradiction { one, other, is_certain, is_partly };
        (if one == memory.id { other } else { one }, pair)
    };
    let mut met = BTreeSet::new();
    let mut pairs: Vec<_> = certain.chain(open).map(pair).filter(|it| met.insert(it.0)).collect();
    pairs.truncate(UNDECIDED_MAX);
    let others = store.memories_of(pairs.iter().map(|it| it.0).collect()).await?;
    let others: MemoryMap = others.into_iter().map(|it| (it.id, it)).collect();
    let related = |(id, pair): (MemoryId, Contradiction)| {
        let by = others.get(&id).filter(|it| is_active(it))?;
        Some((pair.words(memory, by)?, by.clone()))
    };
    Ok(pairs.into_iter().filter_map(related).collect())
}

fn asks(memory: &Memory) -> bool {
    matches!(memory.claim.kind(), ClaimKind::Request | ClaimKind::Discussion)
}

fn is_active(memory: &Memory) -> bool {
    memory.state == MemoryState::Active
}

fn is_open(memory: &Memory) -> bool {
    let may_close = memory.is_open() && memory.stage_once(true).is_some();
    is_active(memory) && may_close && section(memory) != Section::Rule
}

impl Question {
    fn pair(one: &Memory, other: &Memory, is_certain: bool) -> Option<Question> {
        // Of two without a time, the request or question comes before what may have closed it.
        let rank = |it: &Memory| (it.valid_from, !asks(it), it.id);
        let is_earlier = rank(one) <= rank(other);
        let (one, other) = if is_earlier { (one, other) } else { (other, one) };
        let (first, second) = (Box::new(one.clone()), Box::new(other.clone()));
        let both = is_active(one) && is_active(other);
        both.then_some(Question::Pair { one: first, other: second, is_certain })
    }

    pub(crate) fn memories(&self) -> Vec<&Memory> {
        match self {
            Question::Pair { one, other, .. } => vec![one, other],
            Question::Open(memory) => vec![memory],
        }
    }

    /// Reloads the question; returns false if it no longer needs an answer.
    pub(crate) async fn refresh(&mut self, store: &Store) -> StoreResult<bool> {
        if let Question::Pair { one, other, .. } = &*self {
            let ids = [one.id, other.id];
            let is_it = |it: &Contradiction| ids.contains(&it.one) && ids.contains(&it.other);
            // An earlier answer may have settled it.
            if !pairs(store, &one.namespace).await?.iter().any(is_it) {
                return Ok(false);
            }
        }
        let mut now = MemoryMap::new();
        for memory in self.memories() {
            if let PrefixLookup::One(found) = store.memory(memory.id.0.into()).await? {
                now.insert(found.id, *found);
            }
        }
        let fresh = match &*self {
            Question::Pair { one, other, is_certain } => {
                let both = now.get(&one.id).zip(now.get(&other.id));
                both.and_then(|(one, other)| Question::pair(one, other, *is_certain))
            }
            Question::Open(memory) => {
                now.remove(&memory.id).filter(is_open).map(|it| Question::Open(Box::new(it)))
            }
        };
        Ok(fresh.map(|it| *self = it).is_some())
    }

    /// The open memory; in a pair, the request or question that the other memory may close.
    pub(crate) fn asked(&self) -> Option<&Memory> {
        match self {
            Question::Pair { one, other, .. } if one.claim.kind() != other.claim.kind() => {
                [&**one, &**other].into_iter().find(|it| asks(it))
            }
            Question::Pair { .. } => None,
            Question::Open(memory) => Some(memory),
        }
    }
}
