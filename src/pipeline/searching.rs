//! Searches the store and the notes of a directory, and merges the candidates into one ranking.

use crate::adapters::clock;
use crate::domain::{Memory, MemoryId, MemoryMap, MemoryState, RecordId, Timestamp, is_partly};
use crate::memory_dir::{label_number, marks, past_end, source_of, source_tag, suspicion};
use crate::pipeline::dir_sync::folders_of;
use crate::pipeline::lookup::{LookupError, memory_named, record_tag};
use crate::search::{Frequencies, Query, Ranking};
use crate::store::{
    MemoryPairs, NearText, PrefixLookup, SearchFilter, Store, StoreResult, Undated,
};
use crate::text::phrase::count;
pub(crate) use embedding::Embedder;
use hit::{HitSource, QueryVector};
pub(crate) use hit::{HitState, Note, SearchHit, SearchRequest};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;

mod embedding;
mod hit;

/// Maximum number of ranked candidates.
const CANDIDATES_MAX: u32 = 200;
/// The same for searches by state, which is not in the index and drops some candidates.
const CANDIDATES_BY_STATE_MAX: u32 = 2_000;
/// Number of records that are read for each open memory that is wanted, as several may support one.
const RECORDS_PER_OPEN: u32 = 10;
/// Maximum number of further candidates that match a synonym.
const SYNONYM_CANDIDATES_MAX: u32 = 60;
/// Maximum number of candidates nearest to the query's vector.
const NEAR_MAX: usize = 50;
/// Rank at which the contribution of one ranking is halved (the `k` of reciprocal rank fusion).
const RANK_HALF: f64 = 60.0;
/// Factor on the score of superseded, retracted, discarded and quarantined hits.
const DOUBTFUL: f64 = 0.5;

/// Records and memories of some days.
pub(crate) struct DayHits {
    pub hits: Vec<SearchHit>,
    /// Phrase about undated conversations, which are left out; `None` if there are none.
    pub undated: Option<String>,
}

/// Returns what was said in `span`, the newest first.
pub(crate) async fn search_days(
    store: &Store,
    namespace: Option<String>,
    span: RangeInclusive<Timestamp>,
    limit: usize,
) -> StoreResult<DayHits> {
    let (since, until) = (Some(*span.start()), Some(*span.end()));
    // Undated records match by the time at which they were read, not by when they were said.
    let undated = Undated::ByReading;
    let filter = SearchFilter { namespace, since, until, undated, ..SearchFilter::default() };
    let request = SearchRequest { filter, limit, ..SearchRequest::default() };
    let mut hits = search(Some(store), &request, Vec::new()).await?;
    // Notes of agents are discarded by rule.
    hits.retain(|hit| !hit.state.is_void() || hit.is_noted() && hit.state == HitState::Discarded);
    let undated = hits.iter().filter(|hit| hit.at().is_none()).filter_map(SearchHit::record);
    let undated: BTreeSet<_> = undated.map(|it| it.record.provenance.session).collect();
    // A successor is found together with the memory it replaced, whatever its date.
    hits.retain(|hit| hit.at().is_some_and(|at| span.contains(&at)));
    hits.sort_by_key(|hit| Reverse(hit.at()));
    let undated = match undated.len() as u64 {
        0 => None,
        1 => Some("1 undated conversation is not shown".to_owned()),
        more => Some(format!("{} undated conversations are not shown", count(more))),
    };
    Ok(DayHits { hits, undated })
}

/// Returns the number of records that only the time range of a request leaves out, since they have no time; counts at
/// most [`CANDIDATES_BY_STATE_MAX`].
pub(crate) async fn undated_left_out(store: &Store, request: &SearchRequest) -> StoreResult<u64> {
    let SearchFilter { since, until, undated, .. } = request.filter;
    if since.or(until).is_none() || undated != Undated::LeftOut {
        return Ok(0);
    }
    let filter = SearchFilter { undated: Undated::Only, ..request.filter.clone() };
    let keys = Query::of(&request.words).keys();
    let found = store.candidates(keys, filter, CANDIDATES_BY_STATE_MAX).await?;
    let records = found.records.into_iter();
    let hits = records.map(|(record, memory)| SearchHit::of_record(record, memory));
    Ok(hits.filter(|hit| hit.is_wanted(request)).count() as u64)
}

/// Searches the store, if there is one, and `notes`; the best first.
pub(crate) async fn search(
    store: Option<&Store>,
    request: &SearchRequest,
    notes: Vec<Note>,
) -> StoreResult<Vec<SearchHit>> {
    if let Some(store) = store
        && let Some(named) = named(store, request).await?
    {
        return Ok(named);
    }
    let query = Query::of(&request.words);
    let (mut hits, mut frequencies) = (Vec::new(), Frequencies::default());
    let mut near_places: Vec<usize> = Vec::new();
    let mut memories = MemoryCache { store, known: HashMap::new() };
    if let Some(store) = store {
        let wanted = u32::try_from(request.limit).unwrap_or(u32::MAX);
        let limit = match request.filter.open {
            _ if request.state.is_some() => CANDIDATES_BY_STATE_MAX,
            true => wanted
                .saturating_mul(RECORDS_PER_OPEN)
                .clamp(CANDIDATES_MAX, CANDIDATES_BY_STATE_MAX),
            false => CANDIDATES_MAX,
        };
        let limit = limit.max(wanted);
        let mut found = store.candidates(query.keys(), request.filter.clone(), limit).await?;
        let synonyms = query.synonym_keys();
        if !synonyms.is_empty() {
            let filter = request.filter.clone();
            found.add(store.candidates(synonyms, filter, SYNONYM_CANDIDATES_MAX).await?);
        }
        frequencies = found.frequencies;
        let of_records = found.records.into_iter();
        hits.extend(of_records.map(|(record, memory)| SearchHit::of_record(record, memory)));
        hits.extend(found.memories.into_iter().map(SearchHit::of_memory));
        let near = match &request.vector {
            Some(QueryVector { model, vector }) => {
                let filter = request.filter.clone();
                store.near_texts(model, vector.clone(), filter, NEAR_MAX).await?
            }
            None => Vec::new(),
        };
        near_places = near.into_iter().map(|it| place_of(it, &mut hits)).collect();
        adopt_records(&mut hits);
        mark_pairs(store, &mut hits, &mut memories, clock::now()).await?;
    }
    if !request.excludes_notes() {
        hits.extend(notes.into_iter().map(|note| SearchHit::new(HitSource::Note(note), None)));
    }
    let mut ranking = Ranking::new(&query);
    for hit in &hits {
        ranking.add(&hit.fields().each_ref().map(String::as_str));
    }
    let ranked = ranked(hits, fused(ranking.ranked(&frequencies), &near_places));
    let wanted = ranked.into_iter().filter(|hit| hit.is_wanted(request)).collect();
    let mut hits = below_later(wanted, &mut memories, request).await?;
    // The successor of a hit may be later than what was asked for.
    let until = request.filter.until;
    hits.retain(|hit| hit.at().is_none_or(|at| until.is_none_or(|until| at <= until)));
    hits.truncate(request.limit);
    Ok(hits)
}

/// The memory whose tag is the query, or the memories whose record has this label; `None` if the query is neither.
async fn named(store: &Store, request: &SearchRequest) -> StoreResult<Option<Vec<SearchHit>>> {
    let words = request.words.trim();
    let Some(number) = label_number(words) else {
        return tagged(store, request, source_of(words).into_iter().collect()).await;
    };
    // A label is that of the project's record first.
    let own = request.here.as_ref().and_then(|it| record_tag(it, number));
    let own = tagged(store, request, own.into_iter().collect()).await?;
    if own.as_ref().is_some_and(|hits| !hits.is_empty()) {
        return Ok(own);
    }
    let namespace = request.filter.namespace.as_ref();
    tagged(store, request, labelled(store, namespace, number).await?).await
}

/// The memories with these tags that match a request; `None` without tags.
async fn tagged(
    store: &Store,
    request: &SearchRequest,
    tags: BTreeSet<String>,
) -> StoreResult<Option<Vec<SearchHit>>> {
    let namespace = request.filter.namespace.as_ref();
    let mut hits = Vec::new();
    for tag in &tags {
        match memory_named(store, tag).await {
            Ok(PrefixLookup::One(memory))
                if namespace.is_none_or(|it| *it == memory.namespace)
                    && request.allows_successor(&memory) =>
            {
                hits.push(hit_of_memory(store, *memory).await?);
            }
            Ok(_) => {}
            Err(LookupError::Store(error)) => return Err(error),
            Err(LookupError::Name(_)) => return Ok(None),
        }
    }
    hits.truncate(request.limit);
    // A label without a record is words.
    Ok((!tags.is_empty()).then_some(hits))
}

/// Tags of the memories that the records with this number show in the directories of this machine.
async fn labelled(
    store: &Store,
    namespace: Option<&String>,
    number: u32,
) -> StoreResult<BTreeSet<String>> {
    let namespaces = match namespace {
        Some(namespace) => vec![namespace.clone()],
        None => store.namespaces().await?,
    };
    let mut tags = BTreeSet::new();
    for namespace in namespaces {
        for folder in folders_of(store, &namespace).await? {
            tags.extend(record_tag(&folder, number));
        }
    }
    Ok(tags)
}

/// Joins records of an undone plan with the memories among the hits that a person's edit kept.
fn adopt_records(hits: &mut [SearchHit]) {
    let kept = hits.iter().filter(|hit| hit.record().is_none());
    let kept = kept.filter_map(|hit| hit.memory.as_ref());
    let kept: HashMap<RecordId, Memory> =
        kept.flat_map(|it| it.sources.iter().map(|source| (*source, it.clone()))).collect();
    for hit in hits.iter_mut().filter(|hit| hit.state == HitState::Staged) {
        if let Some(memory) = hit.record().and_then(|it| kept.get(&it.record.id)) {
            hit.adopt(memory.clone());
        }
    }
}

/// Makes a hit of a memory and its last record, independent of a query.
pub(crate) async fn hit_of_memory(store: &Store, memory: Memory) -> StoreResult<SearchHit> {
    if let Some(last) = memory.sources.last()
        && let PrefixLookup::One(page) = store.record(last.0.into()).await?
    {
        return with_marks(store, SearchHit::of_record(page.stored, Some(memory))).await;
    }
    with_marks(store, SearchHit::of_memory(memory)).await
}

/// Adds the marks of its pairs to a hit that no query found.
pub(crate) async fn with_marks(store: &Store, hit: SearchHit) -> StoreResult<SearchHit> {
    let mut hits = [hit];
    let mut memories = MemoryCache { store: Some(store), known: HashMap::new() };
    mark_pairs(store, &mut hits, &mut memories, clock::now()).await?;
    let [hit] = hits;
    Ok(hit)
}

/// Makes hits of memories, with the marks that they have on the day `on`. If `all` is given, no other memories are taken into
/// account.
pub(crate) async fn marked(
    store: &Store,
    memories: Vec<Memory>,
    all: Option<MemoryMap>,
    on: Timestamp,
) -> StoreResult<Vec<SearchHit>> {
    let mut hits: Vec<SearchHit> = memories.into_iter().map(SearchHit::of_memory).collect();
    let from = all.is_none().then_some(store);
    let known = all.into_iter().flatten().map(|(id, memory)| (id, Some(memory))).collect();
    mark_pairs(store, &mut hits, &mut MemoryCache { store: from, known }, on).await?;
    Ok(hits)
}

/// Index in `hits` of a text near the query; appends it if it is missing.
fn place_of(near: NearText, hits: &mut Vec<SearchHit>) -> usize {
    let NearText { record, memory } = near;
    let id = record.as_ref().map(|stored| stored.record.id);
    let is_it = |hit: &SearchHit| match id {
        Some(id) => hit.record().is_some_and(|stored| stored.record.id == id),
        None => hit.record().is_none() && hit.memory == memory,
    };
    hits.iter().position(is_it).unwrap_or_else(|| {
        let source = record.map_or(HitSource::Memory, |it| HitSource::Record(Box::new(it)));
        hits.push(SearchHit::new(source, memory));
        hits.len() - 1
    })
}

/// Merges the rankings by words and by vector by reciprocal rank; by words alone if no vector is near.
fn fused(by_words: Vec<(usize, f64)>, near: &[usize]) -> Vec<(usize, f64)> {
    if near.is_empty() {
        return by_words;
    }
    let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
    for order in [by_words.iter().map(|(at, _)| *at).collect(), near.to_vec()] {
        for (rank, at) in order.into_iter().enumerate() {
            *scores.entry(at).or_default() += 1.0 / (RANK_HALF + rank as f64);
        }
    }
    let mut fused: Vec<(usize, f64)> = scores.into_iter().collect();
    fused.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    fused
}

/// Hits by score, each memory once; what is not proven comes last.
fn ranked(hits: Vec<SearchHit>, order: Vec<(usize, f64)>) -> Vec<SearchHit> {
    let mut hits: Vec<Option<SearchHit>> = hits.into_iter().map(Some).collect();
    let mut ranked: Vec<SearchHit> = Vec::with_capacity(order.len());
    let mut memories = HashSet::new();
    for (at, score) in order {
        let Some(mut hit) = hits.get_mut(at).and_then(Option::take) else { continue };
        if hit.memory.as_ref().is_none_or(|memory| memories.insert(memory.id)) {
            let is_doubtful = hit.state.is_void() || hit.state == HitState::Superseded;
            hit.score = if is_doubtful { score * DOUBTFUL } else { score };
            ranked.push(hit);
        }
    }
    let is_unproven = |hit: &SearchHit| hit.state == HitState::Quarantined;
    ranked.sort_by(|one, other| {
        is_unproven(one).cmp(&is_unproven(other)).then(other.score.total_cmp(&one.score))
    });
    ranked
}

/// Maximum length of a chain of successors.
const SUCCESSORS_MAX: usize = 16;
/// Minimum score of a later memory, relative to the one it may have made obsolete, to be placed above it.
const LATER_SHARE: f64 = 0.25;

struct MemoryCache<'s> {
    /// Source of memories that are not known yet.
    store: Option<&'s Store>,
    known: HashMap<MemoryId, Option<Memory>>,
}

impl MemoryCache<'_> {
    async fn get(&mut self, id: MemoryId) -> StoreResult<Option<Memory>> {
        if let (None, Some(store)) = (self.known.get(&id), self.store) {
            let found = match store.memory(id.0.into()).await? {
                PrefixLookup::One(memory) => Some(*memory),
                PrefixLookup::None | PrefixLookup::Many(_) => None,
            };
            self.known.insert(id, found);
        }
        Ok(self.known.get(&id).cloned().flatten())
    }

    /// Reads memories at once that are asked for one by one.
    async fn load(&mut self, mut ids: BTreeSet<MemoryId>) -> StoreResult<()> {
        ids.retain(|id| !self.known.contains_key(id));
        let Some(store) = self.store else { return Ok(()) };
        let found = store.memories_of(ids).await?;
        self.known.extend(found.into_iter().map(|it| (it.id, Some(it))));
        Ok(())
    }

    /// Returns the last memory in the chain of those that superseded `memory`.
    async fn successor(&mut self, memory: &Memory) -> StoreResult<Option<Memory>> {
        let (mut last, mut next) = (None, memory.superseded_by);
        for _ in 0..SUCCESSORS_MAX {
            let Some(id) = next else { break };
            let Some(found) = self.get(id).await? else { break };
            next = found.superseded_by;
            last = Some(found);
        }
        Ok(last)
    }
}

/// Marks hits that contradict another memory, those that another memory may have ended or made obsolete, and those whose own
/// words end before `today`.
async fn mark_pairs(
    store: &Store,
    hits: &mut [SearchHit],
    memories: &mut MemoryCache<'_>,
    today: Timestamp,
) -> StoreResult<()> {
    let found = hits.iter().filter_map(|hit| hit.memory.as_ref());
    let MemoryPairs { certain, open } = store.pairs_of(found.map(|it| it.id).collect()).await?;
    memories.load(open.iter().flat_map(|(by, one, _)| [*by, *one]).collect()).await?;
    // The partners of each memory, with the rule that left the pair open, and true for those that it may have ended.
    let mut partners_of: HashMap<MemoryId, Vec<_>> = HashMap::new();
    let certain = certain.into_iter().map(|(by, one)| (by, one, None));
    // What held for a time changes nothing any more.
    let is_past = |id: &MemoryId| {
        memories
            .known
            .get(id)
            .and_then(Option::as_ref)
            .is_some_and(|it| past_end(it, today).is_some())
    };
    let open = open.into_iter().filter(|(by, one, _)| !is_past(by) && !is_past(one));
    let open = open.map(|(by, one, rule)| (by, one, Some(rule)));
    for (by, one, rule) in certain.chain(open) {
        partners_of.entry(by).or_default().push((one, rule.clone(), true));
        partners_of.entry(one).or_default().push((by, rule, false));
    }
    let ages = hits.iter().filter_map(SearchHit::age);
    let ages: HashMap<MemoryId, _> = ages.map(|age| (age.2, age)).collect();
    for hit in hits.iter_mut() {
        let Some(own) = hit.age() else { continue };
        let Some(partners) = partners_of.get(&own.2) else { continue };
        for (other, ..) in partners.iter().filter(|(_, rule, _)| rule.is_none()) {
            let by = memories.get(*other).await?;
            if hit.state == HitState::Current
                && by.is_some_and(|by| by.state == MemoryState::Active)
            {
                hit.state = HitState::Conflicting;
                hit.conflicts_with = Some(*other);
            }
        }
        let others =
            partners.iter().filter_map(|(id, rule, _)| Some((rule.is_none(), ages.get(id)?)));
        let mut later: Vec<_> =
            others.filter(|(_, other)| other.0 == own.0 && own < **other).collect();
        later.sort_by_key(|it| Reverse(*it));
        hit.outdated_by = later.into_iter().map(|(_, other)| other.2).collect();
        if !matches!(hit.state, HitState::Current | HitState::Conflicting) {
            continue;
        }
        let is_open = hit.is_open();
        let mut related = Vec::new();
        for (ender, rule, is_ended) in partners {
            let Some(rule) = rule.as_ref().filter(|_| is_open || !is_ended) else { continue };
            let by = memories.get(*ender).await?.filter(|by| by.state == MemoryState::Active);
            let both = hit.memory.as_ref().zip(by.as_ref());
            let words = both.and_then(|(it, by)| suspicion(it, by, is_partly(rule)));
            related.extend(words.zip(by));
        }
        related.sort_by_key(|(_, by)| Reverse((by.valid_from, by.id)));
        let named = related.iter().map(|(words, by)| (*words, source_tag(by.id)));
        hit.possibly = Some(marks(named).join("; ")).filter(|marks| !marks.is_empty());
    }
    for hit in hits.iter_mut().filter(|hit| hit.state == HitState::Current) {
        let past = hit.memory.as_ref().and_then(|memory| past_end(memory, today));
        hit.possibly =
            hit.possibly.take().into_iter().chain(past).reduce(|all, it| all + "; " + &it);
    }
    Ok(())
}

/// Moves the successor of a memory directly above it. So moves a later hit that may have made it obsolete and scores
/// at least [`LATER_SHARE`] of it. Hits that are above already stay.
async fn below_later(
    hits: Vec<SearchHit>,
    memories: &mut MemoryCache<'_>,
    request: &SearchRequest,
) -> StoreResult<Vec<SearchHit>> {
    let mut waiting: Vec<Option<SearchHit>> = hits.into_iter().map(Some).collect();
    let mut ordered: Vec<SearchHit> = Vec::with_capacity(waiting.len());
    let mut placed: HashSet<MemoryId> = HashSet::new();
    for at in 0..waiting.len() {
        let mut next = waiting.get_mut(at).and_then(Option::take);
        let mut pile: Vec<SearchHit> = Vec::new();
        while let Some(hit) = next {
            let successor = match &hit.memory {
                Some(memory) => memories.successor(memory).await?,
                None => None,
            };
            placed.extend(hit.memory.as_ref().map(|memory| memory.id));
            next = above(&hit, successor.as_ref(), &mut waiting);
            let fetched = successor.filter(|it| next.is_none() && !placed.contains(&it.id));
            if let Some((memory, store)) = fetched.zip(memories.store)
                && request.allows_successor(&memory)
            {
                next = Some(hit_of_memory(store, memory).await?);
            }
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
fn above(
    hit: &SearchHit,
    successor: Option<&Memory>,
    waiting: &mut [Option<SearchHit>],
) -> Option<SearchHit> {
    let of = |other: &Option<SearchHit>| Some(other.as_ref()?.memory.as_ref()?.id);
    if let Some(successor) = successor {
        return waiting.iter_mut().find(|it| of(it) == Some(successor.id))?.take();
    }
    let least = hit.score * LATER_SHARE;
    let is_near = |it: &Option<SearchHit>| it.as_ref().is_some_and(|it| least <= it.score);
    let mut later = hit.outdated_by.iter();
    let at = later.find_map(|id| waiting.iter().position(|it| of(it) == Some(*id) && is_near(it)));
    waiting.get_mut(at?)?.take()
}
