//! A search over the store and the notes of a directory: candidates, their state, one order. What took another memory's
//! place stands above it.

use crate::domain::{
    Claim, ClaimKind, Memory, MemoryId, MemoryState, RecordState, Stage, Timestamp, named,
};
use crate::privacy::Redacted;
use crate::search::{Frequencies, Query, Ranking, fields_of_memory, fields_of_record};
use crate::store::{PrefixLookup, SearchFilter, Store, StoreError, StoredRecord};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Candidates that are ranked.
const CANDIDATES_MAX: u32 = 200;
/// The same where the state, which is not in the index, leaves out some of them.
const CANDIDATES_BY_STATE_MAX: u32 = 2_000;
/// Longest chain of successors that is followed.
const SUCCESSORS_MAX: usize = 16;
/// Share of its score that is left to what is believed no more, or was never proven.
const DOUBTFUL: f64 = 0.5;

named! {
    /// State of what was found.
    #[derive(schemars::JsonSchema)]
    pub(crate) HitState {
        /// A memory that is believed now.
        Current = "current",
        /// A request that was fulfilled, a question that was answered, a failure that was solved.
        Completed = "completed",
        /// Another memory contradicts it, and both stand.
        Conflicting = "conflicting",
        /// Another memory took its place.
        Superseded = "superseded",
        /// Taken back.
        Retracted = "retracted",
        /// Proven, and not made into memory yet.
        Staged = "staged",
        /// Not proven.
        Quarantined = "quarantined",
        /// Text of the directory that is no memory.
        Note = "note",
    }
}

/// A search; absent criteria do not matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchRequest {
    /// Words in any case and order; without any the newest are found.
    pub words: String,
    pub filter: SearchFilter,
    pub state: Option<HitState>,
    /// Requests, questions and failures that are open.
    pub open: bool,
    /// Attempts that failed.
    pub failed: bool,
    pub limit: usize,
}

impl SearchRequest {
    /// True if only records and memories can fit.
    pub(crate) fn excludes_notes(&self) -> bool {
        let SearchFilter { kind, session, client, since, until, path, .. } = &self.filter;
        let of_records = kind.is_some() || session.is_some() || client.is_some();
        let of_time = since.is_some() || until.is_some() || path.is_some();
        let of_state =
            self.open || self.failed || self.state.is_some_and(|it| it != HitState::Note);
        of_records || of_time || of_state
    }
}

/// An entry of the directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Note {
    pub path: String,
    pub line: u32,
    pub text: Redacted,
}

/// Source of a hit.
#[derive(Clone, Debug, PartialEq)]
enum Found {
    Record(Box<StoredRecord>),
    Memory,
    Note(Note),
}

/// A record, a memory or a note that was found; a memory is found once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SearchHit {
    found: Found,
    pub memory: Option<Memory>,
    pub state: HitState,
    pub score: f64,
}

impl SearchHit {
    fn new(found: Found, memory: Option<Memory>) -> SearchHit {
        let state = state(&found, memory.as_ref());
        SearchHit { found, memory, state, score: 0.0 }
    }

    /// The hit that a memory is.
    pub(crate) fn of_memory(memory: Memory) -> SearchHit {
        SearchHit::new(Found::Memory, Some(memory))
    }

    pub(crate) fn record(&self) -> Option<&StoredRecord> {
        match &self.found {
            Found::Record(stored) => Some(stored),
            Found::Memory | Found::Note(_) => None,
        }
    }

    pub(crate) fn note(&self) -> Option<&Note> {
        match &self.found {
            Found::Note(note) => Some(note),
            Found::Memory | Found::Record(_) => None,
        }
    }

    pub(crate) fn claim(&self) -> Option<&Claim> {
        let of_memory = || self.memory.as_ref().map(|memory| &memory.claim);
        self.record().map(|stored| &stored.record.claim).or_else(of_memory)
    }

    /// Time of what was said.
    pub(crate) fn at(&self) -> Option<Timestamp> {
        let of_memory = || self.memory.as_ref().and_then(|memory| memory.valid_from);
        self.record().and_then(|stored| stored.record.provenance.at).or_else(of_memory)
    }

    /// The words for a reader: a person's wording, else the words it rests on that say most of the query.
    pub(crate) fn words(&self, query: &Query) -> &str {
        if let Some(note) = self.note() {
            return note.text.as_str();
        }
        if let Some(edited) = self.memory.as_ref().and_then(|memory| memory.edited.as_deref()) {
            return edited;
        }
        let evidence = self.record().map(|stored| stored.record.evidence.as_slice());
        let words = evidence.unwrap_or_default().iter().map(|it| it.words.as_str());
        // Of equal ones the first.
        let best = words.rev().max_by_key(|words| query.words_in(words));
        best.or_else(|| self.claim().map(Claim::headline)).unwrap_or_default()
    }

    fn fields(&self) -> [String; 3] {
        let of_memory = self.memory.as_ref().map(fields_of_memory);
        match &self.found {
            Found::Note(note) => [note.text.as_str().to_owned(), String::new(), String::new()],
            Found::Memory => of_memory.unwrap_or_default(),
            Found::Record(stored) => {
                let [subject, reason, evidence] = fields_of_record(&stored.record);
                let is_edited = self.memory.as_ref().is_some_and(|memory| memory.edited.is_some());
                let edited = of_memory.filter(|_| is_edited).map(|[edited, ..]| edited);
                [edited.map_or(subject.clone(), |it| format!("{it}\n{subject}")), reason, evidence]
            }
        }
    }

    fn is_wanted(&self, request: &SearchRequest) -> bool {
        let SearchFilter { kind, since, until, .. } = &request.filter;
        let (claim, at) = (self.claim(), self.at());
        let is_failure = |claim: &Claim| matches!(claim, Claim::Attempt(it) if !it.succeeded);
        let is_late =
            |since: Timestamp| self.record().is_some() || at.is_some_and(|at| since <= at);
        let is_early =
            |until: Timestamp| self.record().is_some() || at.is_some_and(|at| at <= until);
        kind.is_none_or(|kind| claim.is_some_and(|claim| claim.kind() == kind))
            && since.is_none_or(is_late)
            && until.is_none_or(is_early)
            && request.state.is_none_or(|state| state == self.state)
            && (!request.open || self.is_open())
            && (!request.failed || claim.is_some_and(is_failure))
    }

    fn is_open(&self) -> bool {
        let is_current = matches!(self.state, HitState::Current | HitState::Conflicting);
        let is_open = |kind| matches!(kind, ClaimKind::Request | ClaimKind::Discussion);
        match &self.memory {
            Some(memory) => is_current && memory.is_open(),
            None => {
                self.state == HitState::Staged
                    && self.claim().is_some_and(|claim| is_open(claim.kind()))
            }
        }
    }
}

fn state(found: &Found, memory: Option<&Memory>) -> HitState {
    match (found, memory) {
        (Found::Note(_), _) => HitState::Note,
        (_, Some(memory)) => match memory.state {
            MemoryState::Superseded => HitState::Superseded,
            MemoryState::Retracted => HitState::Retracted,
            MemoryState::Active if is_completed(memory) => HitState::Completed,
            MemoryState::Active => HitState::Current,
        },
        (Found::Record(stored), None) if stored.record.state == RecordState::Quarantined => {
            HitState::Quarantined
        }
        (Found::Record(_) | Found::Memory, None) => HitState::Staged,
    }
}

fn is_completed(memory: &Memory) -> bool {
    let was_open = match &memory.claim {
        Claim::Decision(_) => false,
        Claim::Attempt(it) => !it.succeeded,
        Claim::Request(_) | Claim::Discussion(_) => true,
    };
    was_open && memory.stage == Stage::Decided
}

/// Searches the store, if there is one, and `notes`; the best first.
pub(crate) async fn search(
    store: Option<&Store>,
    request: &SearchRequest,
    notes: Vec<Note>,
) -> Result<Vec<SearchHit>, StoreError> {
    let query = Query::of(&request.words);
    let (mut hits, mut frequencies) = (Vec::new(), Frequencies::default());
    let mut memories = MemoryCache { store, known: HashMap::new() };
    if let Some(store) = store {
        let is_by_state = request.open || request.failed || request.state.is_some();
        let limit = if is_by_state { CANDIDATES_BY_STATE_MAX } else { CANDIDATES_MAX };
        let limit = limit.max(u32::try_from(request.limit).unwrap_or(u32::MAX));
        let found = store.candidates(query.keys(), request.filter.clone(), limit).await?;
        frequencies = found.frequencies;
        let of_records = found.records.into_iter();
        hits.extend(
            of_records.map(|(it, memory)| SearchHit::new(Found::Record(Box::new(it)), memory)),
        );
        let of_memories = found.memories.into_iter();
        hits.extend(of_memories.map(|memory| SearchHit::new(Found::Memory, Some(memory))));
        mark_conflicts(&mut hits, &mut memories).await?;
    }
    if !request.excludes_notes() {
        hits.extend(notes.into_iter().map(|note| SearchHit::new(Found::Note(note), None)));
    }
    let ranked = ranked(hits, &query, &frequencies);
    let wanted = ranked.into_iter().filter(|hit| hit.is_wanted(request)).collect();
    let mut hits = match request.state {
        None => below_successors(wanted, &mut memories).await?,
        Some(_) => wanted,
    };
    hits.truncate(request.limit);
    Ok(hits)
}

/// The hit that a record is, whatever is searched for.
pub(crate) async fn hit_of(
    store: &Store,
    record: StoredRecord,
    memory: Option<Memory>,
) -> Result<SearchHit, StoreError> {
    let mut hits = [SearchHit::new(Found::Record(Box::new(record)), memory)];
    let mut memories = MemoryCache { store: Some(store), known: HashMap::new() };
    mark_conflicts(&mut hits, &mut memories).await?;
    let [hit] = hits;
    Ok(hit)
}

/// Hits by score, each memory once.
fn ranked(hits: Vec<SearchHit>, query: &Query, frequencies: &Frequencies) -> Vec<SearchHit> {
    let mut ranking = Ranking::new(query);
    for hit in &hits {
        ranking.add(&hit.fields().each_ref().map(String::as_str));
    }
    let order = ranking.ranked(frequencies);
    let mut hits: Vec<Option<SearchHit>> = hits.into_iter().map(Some).collect();
    let mut ranked: Vec<SearchHit> = Vec::with_capacity(order.len());
    let mut memories = HashSet::new();
    for (at, score) in order {
        let Some(mut hit) = hits.get_mut(at).and_then(Option::take) else { continue };
        if hit.memory.as_ref().is_none_or(|memory| memories.insert(memory.id)) {
            let is_doubtful = match hit.state {
                HitState::Superseded | HitState::Retracted | HitState::Quarantined => true,
                HitState::Current
                | HitState::Completed
                | HitState::Conflicting
                | HitState::Staged
                | HitState::Note => false,
            };
            hit.score = if is_doubtful { score * DOUBTFUL } else { score };
            ranked.push(hit);
        }
    }
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    ranked
}

/// Memories that are looked up by the way.
struct MemoryCache<'s> {
    store: Option<&'s Store>,
    known: HashMap<MemoryId, Option<Memory>>,
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

    /// The memory that holds in the place of `memory`.
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

    /// A hit for a memory that the query itself did not find.
    async fn hit(&self, memory: Memory) -> Result<SearchHit, StoreError> {
        let (source, store) = (memory.sources.last(), self.store);
        if let Some((record, store)) = source.zip(store)
            && let PrefixLookup::One(page) = store.record(record.0.into()).await?
        {
            return Ok(SearchHit::new(Found::Record(Box::new(page.stored)), Some(memory)));
        }
        Ok(SearchHit::new(Found::Memory, Some(memory)))
    }
}

async fn mark_conflicts(
    hits: &mut [SearchHit],
    memories: &mut MemoryCache<'_>,
) -> Result<(), StoreError> {
    let Some(store) = memories.store else { return Ok(()) };
    let all = hits.iter().filter_map(|hit| hit.memory.as_ref());
    let namespaces: BTreeSet<String> = all.map(|memory| memory.namespace.clone()).collect();
    let mut others: HashMap<MemoryId, Vec<MemoryId>> = HashMap::new();
    for namespace in namespaces {
        for (one, other) in store.contradictions(&namespace).await? {
            others.entry(one).or_default().push(other);
            others.entry(other).or_default().push(one);
        }
    }
    for hit in hits.iter_mut().filter(|hit| hit.state == HitState::Current) {
        let id = hit.memory.as_ref().map(|memory| memory.id);
        for other in id.and_then(|id| others.get(&id)).into_iter().flatten() {
            let other = memories.get(*other).await?;
            if other.is_some_and(|other| other.state == MemoryState::Active) {
                hit.state = HitState::Conflicting;
            }
        }
    }
    Ok(())
}

/// Puts what took a memory's place directly above it, unless it stands above it already.
async fn below_successors(
    hits: Vec<SearchHit>,
    memories: &mut MemoryCache<'_>,
) -> Result<Vec<SearchHit>, StoreError> {
    let mut waiting: Vec<Option<SearchHit>> = hits.into_iter().map(Some).collect();
    let mut ordered: Vec<SearchHit> = Vec::with_capacity(waiting.len());
    let mut placed: HashSet<MemoryId> = HashSet::new();
    for at in 0..waiting.len() {
        let Some(mut hit) = waiting.get_mut(at).and_then(Option::take) else { continue };
        let successor = match hit.memory.as_ref().filter(|it| it.superseded_by.is_some()) {
            Some(memory) => memories.successor(memory).await?,
            None => None,
        };
        if let Some(successor) = successor.filter(|it| placed.insert(it.id)) {
            let is_it =
                |hit: &SearchHit| hit.memory.as_ref().is_some_and(|it| it.id == successor.id);
            let found = waiting.iter_mut().find(|hit| hit.as_ref().is_some_and(is_it));
            let mut above = match found.and_then(Option::take) {
                Some(above) => above,
                None => memories.hit(successor).await?,
            };
            above.score = above.score.max(hit.score);
            hit.score = hit.score.min(above.score);
            ordered.push(above);
        }
        if hit.memory.as_ref().is_none_or(|memory| placed.insert(memory.id)) {
            ordered.push(hit);
        }
    }
    Ok(ordered)
}
