//! A search request and its hits: records, memories and notes, with their state.

use crate::adapters::memory_files::MemoryFolder;
use crate::domain::{
    Claim, ClaimKind, Evidence, Memory, MemoryId, MemoryState, RecordState, Stage, Timestamp,
    WISH_REFUSED, WISH_WITHDRAWN, named,
};
use crate::memory_dir::{Section, section, source_tag};
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
        /// Proven, and decided to be no memory, or set aside by an undo.
        Discarded = "discarded",
        /// Not proven.
        Quarantined = "quarantined",
        /// Text of the directory that is no memory.
        Note = "note",
    }
}

/// Words for the end of a memory that say more than the state of its hit.
const ENDS: [&str; 5] = ["solved", "settled", "decided", WISH_WITHDRAWN, WISH_REFUSED];

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
    /// Memory directory of the project, whose labels come first.
    pub here: Option<MemoryFolder>,
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

    /// True if the successor of a hit is shown with it. It was not matched by session, client or path.
    pub(super) fn allows_successor(&self, memory: &Memory) -> bool {
        let SearchFilter { session, client, path, .. } = &self.filter;
        let is_matched = session.is_some() || client.is_some() || path.is_some();
        !is_matched && SearchHit::of_memory(memory.clone()).is_wanted(self)
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
    /// Later memories of the same kind among the hits that may have made this one obsolete: those that contradict it
    /// for certain first, then the latest.
    pub(super) outdated_by: Vec<MemoryId>,
    /// An active memory that contradicts this one.
    pub conflicts_with: Option<MemoryId>,
    /// Mark of what may have ended it or made it obsolete, such as `possibly done by src-1a2b3c4d`.
    pub possibly: Option<String>,
    pub score: f64,
}

impl SearchHit {
    pub(super) fn new(found: HitSource, memory: Option<Memory>) -> SearchHit {
        let state = state(&found, memory.as_ref());
        let (outdated_by, conflicts_with, possibly) = (Vec::new(), None, None);
        SearchHit { found, memory, state, outdated_by, conflicts_with, possibly, score: 0.0 }
    }

    /// Makes `memory` the one that rests on the record.
    pub(super) fn adopt(&mut self, memory: Memory) {
        self.state = state(&self.found, Some(&memory));
        self.memory = Some(memory);
    }

    pub(crate) fn of_memory(memory: Memory) -> SearchHit {
        SearchHit::new(HitSource::Memory, Some(memory))
    }

    pub(crate) fn of_record(record: StoredRecord, memory: Option<Memory>) -> SearchHit {
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
        self.record().is_some_and(|stored| stored.record.is_noted())
    }

    /// State and the memory that replaced it, contradicts it or may have ended it, in words.
    pub(crate) fn standing(&self) -> String {
        let word = self.memory.as_ref().map(Memory::standing);
        let has_ended = matches!(self.state, HitState::Completed | HitState::Superseded);
        let word = word.filter(|it| has_ended && ENDS.contains(it));
        let name = word.unwrap_or(self.state.name());
        let by = self.memory.as_ref().and_then(|memory| memory.superseded_by);
        let by = by.filter(|_| self.state == HitState::Superseded);
        let by = by.map(|by| format!(" by {}", source_tag(by)));
        let with = self.conflicts_with.map(|other| format!(" with {}", source_tag(other)));
        let possibly = self.possibly.as_ref().map(|it| format!(", {it}"));
        [Some(name.to_owned()), by, with, possibly].into_iter().flatten().collect()
    }

    /// The later memory that most likely made it obsolete.
    pub(crate) fn outdated_by(&self) -> Option<MemoryId> {
        self.outdated_by.first().copied()
    }

    pub(crate) fn at(&self) -> Option<Timestamp> {
        let of_memory = || self.memory.as_ref().and_then(|memory| memory.valid_from);
        self.record().and_then(|stored| stored.record.provenance.at).or_else(of_memory)
    }

    /// The evidence of the main field that matches most words of the query, the first among equals; that of another
    /// field, if the main one's matches none. Words about an option are never quoted: most options were rejected.
    pub(crate) fn quote(&self, query: &Query) -> Option<&Evidence> {
        let evidence = self.record().map(|stored| stored.record.evidence.as_slice());
        let evidence = evidence.unwrap_or_default().iter().rev();
        evidence.filter(|it| !it.field.starts_with("options[")).max_by_key(|it| {
            let words = query.words_in(it.words.as_str());
            let is_main = matches!(&*it.field, "chosen" | "topic" | "action" | "summary");
            (words > 0 && is_main, words)
        })
    }

    /// The quote that is shown as evidence: none for a person's wording.
    pub(crate) fn shown_quote(&self, query: &Query) -> Option<&Evidence> {
        self.quote(query).filter(|_| self.edited().is_none())
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        let of_memory = || self.memory.as_ref().map(|memory| memory.namespace.as_str());
        self.record().map(|it| it.record.provenance.namespace.as_str()).or_else(of_memory)
    }

    /// Text to show: a person's wording, else the best [`quote`](SearchHit::quote).
    pub(crate) fn words(&self, query: &Query) -> &str {
        if let Some(note) = self.note() {
            return note.text.as_str();
        }
        let quote = || self.quote(query).map(|it| it.words.as_str());
        let claim = || self.claim().map(Claim::headline);
        self.edited().or_else(quote).or_else(claim).unwrap_or_default()
    }

    /// A person's wording in the directory; no speaker said it.
    pub(crate) fn edited(&self) -> Option<&str> {
        self.memory.as_ref().filter(|memory| memory.edited.is_some()).map(Memory::words)
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
                let edited =
                    of_memory.filter(|_| self.edited().is_some()).map(|[edited, ..]| edited);
                [edited.map_or(subject.clone(), |it| format!("{it}\n{subject}")), reason, evidence]
            }
        }
    }

    pub(super) fn is_wanted(&self, request: &SearchRequest) -> bool {
        let SearchFilter { kind, since, until, open, failed, .. } = &request.filter;
        let (claim, at) = (self.claim(), self.at());
        let is_late =
            |since: Timestamp| self.record().is_some() || at.is_some_and(|at| since <= at);
        let is_early =
            |until: Timestamp| self.record().is_some() || at.is_some_and(|at| at <= until);
        kind.is_none_or(|kind| claim.is_some_and(|claim| claim.kind() == kind))
            && since.is_none_or(is_late)
            && until.is_none_or(is_early)
            && request.state.is_none_or(|state| state == self.state)
            && (!open || self.is_open())
            && (!failed || claim.and_then(Claim::succeeded) == Some(false))
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
