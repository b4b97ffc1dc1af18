//! Content of session files: the memories from each session, and its time span.

use crate::domain::{ClaimKind, Memory, MemoryId, Record, RecordId, Session, SessionId};
use crate::memory_dir::SessionNote;
use crate::privacy::Redacted;
use crate::store::{SessionSpan, Store, StoreError};
use std::collections::BTreeMap;

/// Session of each record, and the time spans of the sessions.
pub(crate) struct Sources {
    sessions: BTreeMap<RecordId, SessionId>,
    known: BTreeMap<SessionId, SessionSpan>,
}

impl Sources {
    /// Sources of records that are not in a store.
    pub(crate) fn of(records: &[Record], sessions: Vec<&Session>) -> Sources {
        let span = |session: &Session| {
            let of = records.iter().filter(|record| record.provenance.session == session.id);
            let times = || of.clone().filter_map(|record| record.provenance.at);
            let began = session.started_at.or(times().min());
            (session.id, SessionSpan { title: session.title.clone(), began, ended: times().max() })
        };
        let of_record = |record: &Record| (record.id, record.provenance.session);
        Sources {
            sessions: records.iter().map(of_record).collect(),
            known: sessions.into_iter().map(span).collect(),
        }
    }
}

/// Reads the sources of all session notes.
pub(crate) async fn sources(store: &Store, namespace: &str) -> Result<Sources, StoreError> {
    let sessions = store.sessions_of_records(namespace).await?.into_iter().collect();
    let known = store.session_spans(namespace).await?.into_iter().collect();
    Ok(Sources { sessions, known })
}

/// Notes for the sessions of `memories`, by start time. A session without a time has none: its file could not be
/// named.
pub(crate) fn notes(sources: &Sources, memories: &[Memory]) -> Vec<SessionNote> {
    let mut of_session: BTreeMap<SessionId, BTreeMap<MemoryId, &Memory>> = BTreeMap::new();
    for memory in memories {
        let sessions = memory.sources.iter().filter_map(|id| sources.sessions.get(id));
        for session in sessions {
            of_session.entry(*session).or_default().insert(memory.id, memory);
        }
    }
    let mut notes = Vec::new();
    for (id, memories) in of_session {
        let span = sources.known.get(&id);
        let Some((span, began)) = span.and_then(|span| Some((span, span.began?))) else { continue };
        let topic = span.title.clone().or_else(|| topic(memories.values().copied()));
        let memories = memories.into_keys().collect();
        notes.push(SessionNote { id, began, ended: span.ended, topic, memories });
    }
    notes.sort_by_key(|note| (note.began, note.id));
    notes
}

/// Headline of the memory that says most about a session: its first decision, or else its first request.
fn topic<'m>(memories: impl Iterator<Item = &'m Memory>) -> Option<Redacted> {
    let rank = |memory: &&Memory| {
        let kind = match memory.claim.kind() {
            ClaimKind::Decision => 0,
            ClaimKind::Request => 1,
            ClaimKind::Attempt => 2,
            ClaimKind::Discussion => 3,
        };
        (kind, memory.valid_from, memory.id)
    };
    let first = memories.min_by_key(rank)?;
    Some(Redacted::reopened(first.claim.headline().to_owned()))
}
