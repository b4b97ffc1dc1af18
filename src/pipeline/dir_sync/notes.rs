//! Content of session files: the memories and the card of each session that memories come from.

use crate::domain::{
    Memory, MemoryId, MemoryMap, Record, RecordId, RecordState, Session, SessionId, Timestamp,
};
use crate::memory_card::Card;
use crate::memory_dir::SessionNote;
use crate::privacy::Redacted;
use crate::store::{RecordFilter, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Sessions and the records of theirs that memories rest on.
pub(crate) struct Sources {
    sessions: BTreeMap<RecordId, SessionId>,
    known: BTreeMap<SessionId, Known>,
}

#[derive(Default)]
struct Known {
    began: Option<Timestamp>,
    title: Option<Redacted>,
    card: Option<Card>,
}

impl Sources {
    /// Of records that no store holds, with the card of their session where it has one.
    pub(crate) fn of(records: &[Record], sessions: Vec<(&Session, Option<Card>)>) -> Sources {
        let known = |(session, card): (&Session, Option<Card>)| {
            let of = records.iter().filter(|record| record.provenance.session == session.id);
            let earliest = of.filter_map(|record| record.provenance.at).min();
            let began = session.started_at.or(earliest);
            (session.id, Known { began, title: session.title.clone(), card })
        };
        let of_record = |record: &Record| (record.id, record.provenance.session);
        Sources {
            sessions: records.iter().map(of_record).collect(),
            known: sessions.into_iter().map(known).collect(),
        }
    }
}

/// Reads what the notes of all sessions are made of.
pub(crate) async fn sources(
    store: &Store,
    namespace: &str,
    memories: &MemoryMap,
) -> Result<Sources, StoreError> {
    let wanted: BTreeSet<RecordId> =
        memories.values().flat_map(|memory| memory.sources.iter().copied()).collect();
    let mut found = Sources { sessions: BTreeMap::new(), known: BTreeMap::new() };
    if wanted.is_empty() {
        return Ok(found);
    }
    let filter = RecordFilter {
        namespace: Some(namespace.to_owned()),
        states: RecordState::ALL.to_vec(),
        ..RecordFilter::default()
    };
    let start = (wanted, found);
    let take = |(wanted, found): &mut (BTreeSet<RecordId>, Sources), stored: _| {
        let stored: crate::store::StoredRecord = stored;
        if wanted.contains(&stored.record.id) {
            let provenance = &stored.record.provenance;
            found.sessions.insert(stored.record.id, provenance.session);
            let known = found.known.entry(provenance.session).or_default();
            known.began = known.began.into_iter().chain(provenance.at).min();
        }
        ControlFlow::Continue(())
    };
    (_, found) = store.fold_records(filter, start, take).await?;
    for card in store.cards(None, Some(namespace.to_owned())).await? {
        let Some(known) = found.known.get_mut(&card.session.id) else { continue };
        known.began = card.session.started_at.or(known.began);
        known.title = card.session.title;
        // A card of a newer version is none that we can show.
        known.card = serde_json::from_str(&card.card).ok();
    }
    Ok(found)
}

/// A note for each session of `memories`, by beginning. A session without a time has none: its file could not be
/// named.
pub(crate) fn notes(sources: &Sources, memories: &[Memory]) -> Vec<SessionNote> {
    let mut of_session: BTreeMap<SessionId, BTreeSet<MemoryId>> = BTreeMap::new();
    for memory in memories {
        let sessions = memory.sources.iter().filter_map(|id| sources.sessions.get(id));
        for session in sessions {
            of_session.entry(*session).or_default().insert(memory.id);
        }
    }
    let mut notes = Vec::new();
    for (id, memories) in of_session {
        let Some((known, began)) =
            sources.known.get(&id).and_then(|known| Some((known, known.began?)))
        else {
            continue;
        };
        let subject = known.card.as_ref().map(|card| &card.title);
        let subject = subject.filter(|title| !title.is_empty()).cloned();
        notes.push(SessionNote {
            id,
            began,
            topic: known.title.clone().or_else(|| subject.clone()),
            summary: subject.into_iter().collect(),
            memories: memories.into_iter().collect(),
            card: known.card.as_ref().map(fields).unwrap_or_default(),
        });
    }
    notes.sort_by_key(|note| (note.began, note.id));
    notes
}

/// The fields of a card behind its title, with their names.
fn fields(card: &Card) -> Vec<(String, Vec<Redacted>)> {
    let Card { title: _, summary_bullets, decisions, todos, entities, keywords, notable_quotes } =
        card;
    let fields = [
        ("summary_bullets", summary_bullets),
        ("decisions", decisions),
        ("todos", todos),
        ("entities", entities),
        ("keywords", keywords),
        ("notable_quotes", notable_quotes),
    ];
    fields.map(|(name, items)| (name.to_owned(), items.clone())).into()
}
