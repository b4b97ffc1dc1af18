//! Orders hits relative to one another: a memory that superseded another, or may have, is placed above it.

use super::hit::{HitSource, HitState, SearchHit};
use crate::domain::{Memory, MemoryId, MemoryState};
use crate::store::{MemoryPairs, PrefixLookup, Store, StoreError};
use std::collections::{HashMap, HashSet};

/// Maximum length of a chain of successors.
const SUCCESSORS_MAX: usize = 16;
/// Minimum score of a later memory, relative to the one it may have made obsolete, to be placed above it.
const LATER_SHARE: f64 = 0.5;

/// Memories looked up while ordering.
pub(super) struct MemoryCache<'s> {
    pub(super) store: Option<&'s Store>,
    pub(super) known: HashMap<MemoryId, Option<Memory>>,
}

impl MemoryCache<'_> {
    async fn get(&mut self, id: MemoryId) -> Result<Option<Memory>, StoreError> {
        if let (None, Some(store)) = (self.known.get(&id), self.store) {
            let found = match store.memory(id.0.into()).await? {
                PrefixLookup::One(memory) => Some(*memory),
                PrefixLookup::None | PrefixLookup::Many(_) => None,
            };
            self.known.insert(id, found);
        }
        Ok(self.known.get(&id).cloned().flatten())
    }

    /// Returns the last memory in the chain of those that superseded `memory`.
    async fn successor(&mut self, memory: &Memory) -> Result<Option<Memory>, StoreError> {
        let (mut last, mut next) = (None, memory.superseded_by);
        for _ in 0..SUCCESSORS_MAX {
            let Some(id) = next else { break };
            let Some(found) = self.get(id).await? else { break };
            next = found.superseded_by;
            last = Some(found);
        }
        Ok(last)
    }

    /// Makes a hit of a memory that the query itself did not find.
    async fn hit(&self, memory: Memory) -> Result<SearchHit, StoreError> {
        let (source, store) = (memory.sources.last(), self.store);
        if let Some((record, store)) = source.zip(store)
            && let PrefixLookup::One(page) = store.record(record.0.into()).await?
        {
            return Ok(SearchHit::new(HitSource::Record(Box::new(page.stored)), Some(memory)));
        }
        Ok(SearchHit::new(HitSource::Memory, Some(memory)))
    }
}

/// Marks hits that contradict another memory, and those that a later hit may have made obsolete.
pub(super) async fn mark_pairs(
    hits: &mut [SearchHit],
    memories: &mut MemoryCache<'_>,
) -> Result<(), StoreError> {
    let Some(store) = memories.store else { return Ok(()) };
    let found = hits.iter().filter_map(|hit| hit.memory.as_ref());
    let MemoryPairs { certain, open } = store.pairs_of(found.map(|it| it.id).collect()).await?;
    let mut conflicts: HashMap<MemoryId, Vec<MemoryId>> = HashMap::new();
    let mut related: HashMap<MemoryId, Vec<MemoryId>> = HashMap::new();
    for (one, other) in certain.iter().copied() {
        conflicts.entry(one).or_default().push(other);
        conflicts.entry(other).or_default().push(one);
    }
    for (one, other) in certain.into_iter().chain(open) {
        related.entry(one).or_default().push(other);
        related.entry(other).or_default().push(one);
    }
    let ages = hits.iter().filter_map(SearchHit::age);
    let ages: HashMap<MemoryId, _> = ages.map(|age| (age.2, age)).collect();
    for hit in hits.iter_mut() {
        let Some(own) = hit.age() else { continue };
        for other in conflicts.get(&own.2).into_iter().flatten() {
            let other = memories.get(*other).await?;
            if hit.state == HitState::Current
                && other.is_some_and(|other| other.state == MemoryState::Active)
            {
                hit.state = HitState::Conflicting;
            }
        }
        let others = related.get(&own.2).into_iter().flatten().filter_map(|id| ages.get(id));
        let later = others.filter(|other| other.0 == own.0 && own < **other);
        hit.outdated_by = later.max().map(|other| other.2);
    }
    Ok(())
}

/// Moves the successor of a memory directly above it. So moves a later hit that may have made it obsolete and scores
/// at least [`LATER_SHARE`] of it. Hits that are above already stay.
pub(super) async fn below_later(
    hits: Vec<SearchHit>,
    memories: &mut MemoryCache<'_>,
) -> Result<Vec<SearchHit>, StoreError> {
    let mut waiting: Vec<Option<SearchHit>> = hits.into_iter().map(Some).collect();
    let mut ordered: Vec<SearchHit> = Vec::with_capacity(waiting.len());
    let mut placed: HashSet<MemoryId> = HashSet::new();
    for at in 0..waiting.len() {
        let mut next = waiting.get_mut(at).and_then(Option::take);
        let mut pile: Vec<SearchHit> = Vec::new();
        while let Some(hit) = next {
            next = above(&hit, &mut waiting, &placed, memories).await?;
            placed.extend(hit.memory.as_ref().map(|memory| memory.id));
            pile.push(hit);
        }
        let mut least = f64::MIN;
        pile.iter_mut().for_each(|hit| {
            hit.score = hit.score.max(least);
            least = hit.score;
        });
        ordered.extend(pile.into_iter().rev());
    }
    Ok(ordered)
}

/// Takes the hit that belongs directly above `hit`, unless it is already placed.
async fn above(
    hit: &SearchHit,
    waiting: &mut [Option<SearchHit>],
    placed: &HashSet<MemoryId>,
    memories: &mut MemoryCache<'_>,
) -> Result<Option<SearchHit>, StoreError> {
    let Some(memory) = &hit.memory else { return Ok(None) };
    let successor = memories.successor(memory).await?;
    let Some(id) = successor.as_ref().map(|it| it.id).or(hit.outdated_by) else { return Ok(None) };
    let is_it = |other: &&mut Option<SearchHit>| {
        other.as_ref().and_then(|other| other.memory.as_ref()).is_some_and(|it| it.id == id)
    };
    if let Some(place) = waiting.iter_mut().find(is_it) {
        let is_near = place.as_ref().is_some_and(|it| hit.score * LATER_SHARE <= it.score);
        return Ok(if is_near || successor.is_some() { place.take() } else { None });
    }
    match successor.filter(|it| !placed.contains(&it.id)) {
        Some(successor) => memories.hit(successor).await.map(Some),
        None => Ok(None),
    }
}
