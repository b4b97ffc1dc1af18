//! A search request and its hits: records, memories and notes, with their state.

use crate::domain::{
    Claim, ClaimKind, Evidence, Match, Memory, MemoryId, MemoryState, RecordState, Stage,
    Timestamp, named, shown_words,
};
use crate::memory_dir::{Section, section};
use crate::privacy::Redacted;
use crate::search::{Query, fields_of_memory, fields_of_record};
use crate::store::{SearchFilter, StoredRecord, Vector};

named! {
    /// State of what was found.
    #[derive(schemars::JsonSchema)]
    pub(crate) HitState {
        /// A memory that is believed now.
        Current = "current",
        /// A request that was fulfilled, a question that was answered, a failure that was solved.
        Completed = "completed",
        /// Another memory contradicts it, and both are active.
        Conflicting = "conflicting",
        /// Another memory took its place.
        Superseded = "superseded",
        /// Taken back, or found not to hold.
        Retracted = "retracted",
        /// Proven, and not made into memory yet.
        Staged = "staged",
        /// Proven, and decided to be no memory.
        Discarded = "discarded",
        /// Not proven.
        Quarantined = "quarantined",
        /// Text of the directory that is no memory.
        Note = "note",
    }
}

impl HitState {
    /// True if nobody has to take it into account any more.
    pub(crate) fn is_void(self) -> bool {
        matches!(self, HitState::Retracted | HitState::Discarded | HitState::Quarantined)
    }
}

/// Vector of the query's words, and the model that made it.
#[derive(Clone, Debug)]
pub(crate) struct QueryVector {
    pub(super) model: String,
    pub(super) vector: Vector,
}

/// A search; absent criteria match everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchRequest {
    /// Words in any case and order; if empty, the newest entries match.
    pub words: String,
    pub filter: SearchFilter,
    pub state: Option<HitState>,
    pub limit: usize,
    /// Vector of the words, to find texts of similar meaning.
    pub vector: Option<QueryVector>,
}

impl SearchRequest {
    /// True if no note can match.
    pub(crate) fn excludes_notes(&self) -> bool {
        let SearchFilter { kind, session, client, since, until, path, open, failed, .. } =
            &self.filter;
        let of_records = kind.is_some() || session.is_some() || client.is_some();
        let of_time = since.is_some() || until.is_some() || path.is_some();
        let of_state = *open || *failed || self.state.is_some_and(|it| it != HitState::Note);
        of_records || of_time || of_state
    }
}

/// An entry of a memory directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Note {
    pub path: String,
    pub line: u32,
    pub text: Redacted,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum HitSource {
    Record(Box<StoredRecord>),
    Memory,
    Note(Note),
}

/// A found record, memory or note; each memory is found at most once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SearchHit {
    found: HitSource,
    pub memory: Option<Memory>,
    pub state: HitState,
    /// A later memory of the same kind among the hits that may have made this one obsolete.
    pub outdated_by: Option<MemoryId>,
    /// Mark of what may have ended an open request, question or failure, such as `possibly done by src-1a2b3c4d`.
    pub possibly: Option<String>,
    pub score: f64,
}

impl SearchHit {
    pub(super) fn new(found: HitSource, memory: Option<Memory>) -> SearchHit {
        let state = state(&found, memory.as_ref());
        SearchHit { found, memory, state, outdated_by: None, possibly: None, score: 0.0 }
    }

    /// Makes `memory` the one that rests on the record.
    pub(super) fn adopt(&mut self, memory: Memory) {
        self.state = state(&self.found, Some(&memory));
        self.memory = Some(memory);
    }

    pub(crate) fn of_memory(memory: Memory) -> SearchHit {
        SearchHit::new(HitSource::Memory, Some(memory))
    }

    pub(super) fn of_record(record: StoredRecord, memory: Option<Memory>) -> SearchHit {
        SearchHit::new(HitSource::Record(Box::new(record)), memory)
    }

    pub(crate) fn record(&self) -> Option<&StoredRecord> {
        match &self.found {
            HitSource::Record(stored) => Some(stored),
            HitSource::Memory | HitSource::Note(_) => None,
        }
    }

    pub(crate) fn note(&self) -> Option<&Note> {
        match &self.found {
            HitSource::Note(note) => Some(note),
            HitSource::Memory | HitSource::Record(_) => None,
        }
    }

    pub(crate) fn claim(&self) -> Option<&Claim> {
        let of_memory = || self.memory.as_ref().map(|memory| &memory.claim);
        self.record().map(|stored| &stored.record.claim).or_else(of_memory)
    }

    /// True for an agent's note, which is nobody else's words.
    pub(crate) fn is_noted(&self) -> bool {
        let evidence = self.record().map(|stored| stored.record.evidence.as_slice());
        evidence.is_some_and(|all| !all.is_empty() && all.iter().all(|it| it.found == Match::Noted))
    }

    pub(crate) fn at(&self) -> Option<Timestamp> {
        let of_memory = || self.memory.as_ref().and_then(|memory| memory.valid_from);
        self.record().and_then(|stored| stored.record.provenance.at).or_else(of_memory)
    }

    /// The evidence that matches most words of the query, the first among equals.
    pub(crate) fn quote(&self, query: &Query) -> Option<&Evidence> {
        let evidence = self.record().map(|stored| stored.record.evidence.as_slice());
        evidence.unwrap_or_default().iter().rev().max_by_key(|it| query.words_in(it.words.as_str()))
    }

    /// Text to show: a person's wording, else the best [`quote`](SearchHit::quote).
    pub(crate) fn words(&self, query: &Query) -> &str {
        if let Some(note) = self.note() {
            return note.text.as_str();
        }
        if let Some(edited) = self.memory.as_ref().filter(|memory| memory.edited.is_some()) {
            return shown_words(edited.edited.as_deref(), &edited.claim);
        }
        let quote = self.quote(query).map(|it| it.words.as_str());
        quote.or_else(|| self.claim().map(Claim::headline)).unwrap_or_default()
    }

    /// Sort key by time among active memories of one kind.
    pub(super) fn age(&self) -> Option<(ClaimKind, Option<Timestamp>, MemoryId)> {
        let memory = self.memory.as_ref().filter(|it| it.state == MemoryState::Active)?;
        Some((memory.claim.kind(), memory.valid_from, memory.id))
    }

    pub(super) fn fields(&self) -> [String; 3] {
        let of_memory = self.memory.as_ref().map(fields_of_memory);
        match &self.found {
            HitSource::Note(note) => [note.text.as_str().to_owned(), String::new(), String::new()],
            HitSource::Memory => of_memory.unwrap_or_default(),
            HitSource::Record(stored) => {
                let [subject, reason, evidence] = fields_of_record(&stored.record);
                let is_edited = self.memory.as_ref().is_some_and(|memory| memory.edited.is_some());
                let edited = of_memory.filter(|_| is_edited).map(|[edited, ..]| edited);
                [edited.map_or(subject.clone(), |it| format!("{it}\n{subject}")), reason, evidence]
            }
        }
    }

    pub(super) fn is_wanted(&self, request: &SearchRequest) -> bool {
        let SearchFilter { kind, since, until, open, failed, .. } = &request.filter;
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
            && (!open || self.is_open())
            && (!failed || claim.is_some_and(is_failure))
    }

    pub(super) fn is_open(&self) -> bool {
        let is_current = matches!(self.state, HitState::Current | HitState::Conflicting);
        let is_open = |kind| matches!(kind, ClaimKind::Request | ClaimKind::Discussion);
        match &self.memory {
            // A standing rule is nothing to do.
            Some(memory) => is_current && memory.is_open() && section(memory) != Section::Rule,
            None => {
                self.state == HitState::Staged
                    && self.claim().is_some_and(|claim| is_open(claim.kind()))
            }
        }
    }
}

fn state(found: &HitSource, memory: Option<&Memory>) -> HitState {
    match (found, memory) {
        (HitSource::Note(_), _) => HitState::Note,
        (_, Some(memory)) => match memory.state {
            MemoryState::Superseded => HitState::Superseded,
            MemoryState::Retracted => HitState::Retracted,
            MemoryState::Active if is_completed(memory) => HitState::Completed,
            MemoryState::Active if memory.stage == Stage::Refuted => HitState::Retracted,
            MemoryState::Active => HitState::Current,
        },
        (HitSource::Record(stored), None) if stored.record.state == RecordState::Quarantined => {
            HitState::Quarantined
        }
        (HitSource::Record(stored), None) if stored.is_discarded => HitState::Discarded,
        (HitSource::Record(_) | HitSource::Memory, None) => HitState::Staged,
    }
}

fn is_completed(memory: &Memory) -> bool {
    match &memory.claim {
        Claim::Decision(_) => false,
        Claim::Attempt(it) => !it.succeeded && !memory.is_open(),
        Claim::Request(_) | Claim::Discussion(_) => memory.stage == Stage::Decided,
    }
}
