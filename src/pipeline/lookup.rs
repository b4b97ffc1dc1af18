//! Looks up records and memories by the ids and tags that people type, with their sources and their history.

use crate::consolidate::{Event, as_of, history};
use crate::domain::{Memory, MemoryMap, PERSON_EDITED, Plan, Timestamp};
use crate::memory_dir::{SOURCE, SOURCE_DIGITS_MIN};
use crate::store::{
    AuditEntry, BadPrefix, PrefixLookup, RecordSources, Store, StoreError, StoredPlan,
};
use std::collections::BTreeSet;

/// Maximum number of records looked up for a memory.
const RECORDS_MAX: usize = 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    /// The text is not the beginning of an id.
    #[error("`{text}`: {cause}")]
    Id { text: String, cause: BadPrefix },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Records behind an id: the record itself, or the sources of a memory.
#[derive(Debug)]
pub(crate) struct Why {
    pub records: Vec<RecordSources>,
    /// The memory, if the id names one.
    pub memory: Option<Memory>,
}

#[derive(Clone, Debug)]
pub(crate) enum MemoryChange {
    /// By a plan that was not undone.
    Planned { at: Timestamp, event: Event },
    /// Any other entry of the ledger.
    Audited(AuditEntry),
}

impl MemoryChange {
    pub(crate) fn at(&self) -> Timestamp {
        match self {
            MemoryChange::Planned { at, .. } => *at,
            MemoryChange::Audited(entry) => entry.at,
        }
    }
}

/// Finds a memory by its id, a unique prefix of it, or its tag in a memory directory.
pub(crate) async fn memory_named(
    store: &Store,
    id: &str,
) -> Result<PrefixLookup<Memory>, LookupError> {
    let digits = id.strip_prefix(SOURCE).unwrap_or(id);
    let prefix = digits.parse().map_err(|cause| LookupError::Id { text: digits.to_owned(), cause });
    let found = store.memory(prefix?).await?;
    // Among ids with a common prefix, the first has the shortest tag.
    if let (true, PrefixLookup::Many(ids)) =
        (digits != id && digits.len() >= SOURCE_DIGITS_MIN, &found)
        && let Some(first) = ids.first()
    {
        return Ok(store.memory((*first).into()).await?);
    }
    Ok(found)
}

/// Finds the record with this id, or the records of a memory.
pub(crate) async fn why(store: &Store, id: &str) -> Result<PrefixLookup<Why>, LookupError> {
    if !id.starts_with(SOURCE) {
        let prefix = id.parse().map_err(|cause| LookupError::Id { text: id.to_owned(), cause })?;
        match store.why(prefix).await? {
            PrefixLookup::One(record) => {
                let why = Why { records: vec![*record], memory: None };
                return Ok(PrefixLookup::One(Box::new(why)));
            }
            PrefixLookup::Many(ids) => return Ok(PrefixLookup::Many(ids)),
            PrefixLookup::None => {}
        }
    }
    let memory = match memory_named(store, id).await? {
        PrefixLookup::One(memory) => *memory,
        PrefixLookup::Many(ids) => return Ok(PrefixLookup::Many(ids)),
        PrefixLookup::None => return Ok(PrefixLookup::None),
    };
    let mut records = Vec::new();
    for record in memory.sources.iter().take(RECORDS_MAX) {
        if let PrefixLookup::One(found) = store.why(record.0.into()).await? {
            records.push(*found);
        }
    }
    Ok(PrefixLookup::One(Box::new(Why { records, memory: Some(memory) })))
}

/// The plans of a namespace that were applied and not undone.
pub(crate) async fn applied_plans(
    store: &Store,
    namespace: Option<&str>,
) -> Result<Vec<StoredPlan>, StoreError> {
    let mut plans = store.plans(namespace).await?;
    plans.retain(|stored| stored.undone_at.is_none());
    Ok(plans)
}

/// Memories as of `date`. The words of a person count from their last known edit on.
pub(crate) async fn memories_at(
    store: &Store,
    namespace: Option<&str>,
    date: Timestamp,
) -> Result<MemoryMap, StoreError> {
    let state = store.memories(namespace).await?;
    let plans = applied_plans(store, namespace).await?.into_iter().map(|it| it.plan);
    let mut then = as_of(date, &state, &plans.collect::<Vec<_>>());
    for memory in then.values_mut().filter(|memory| memory.edited.is_some()) {
        let audit = store.ledger(Some(memory.id)).await?;
        let amended = |it: &&AuditEntry| it.deed == "confirm";
        let edited = |it: &&AuditEntry| it.rule.as_deref() == Some(PERSON_EDITED);
        let last = audit.iter().filter(amended).rfind(edited);
        if last.or(audit.iter().find(amended)).is_some_and(|it| date < it.at) {
            memory.edited = None;
        }
    }
    Ok(then)
}

/// Changes of a memory, oldest first.
pub(crate) async fn memory_history(
    store: &Store,
    memory: &Memory,
) -> Result<Vec<MemoryChange>, StoreError> {
    let all = store.plans(Some(&memory.namespace)).await?;
    let (undone, stored): (Vec<StoredPlan>, Vec<StoredPlan>) =
        all.into_iter().partition(|it| it.undone_at.is_some());
    let plans: Vec<Plan> = stored.iter().map(|it| it.plan.clone()).collect();
    let applied_at = |event: &Event| stored.iter().find(|it| it.plan.id == event.plan);
    let events = history(memory.id, &plans).into_iter();
    let by_plan = events.filter_map(|event| {
        let plan = applied_at(&event)?;
        // The operation of a verdict has the time of the verdict, at which the record was not said.
        let said_at = event.at.filter(|_| !plan.plan.is_verdict());
        Some(MemoryChange::Planned { at: plan.at, event: Event { at: said_at, ..event } })
    });
    let mut changes: Vec<MemoryChange> = by_plan.collect();
    let is_by =
        |it: &StoredPlan, entry: &AuditEntry| Some(it.plan.id) == entry.plan && it.at == entry.at;
    let mut told = BTreeSet::new();
    for entry in store.ledger(Some(memory.id)).await? {
        let plan = undone.iter().find(|it| is_by(it, &entry));
        let is_told = plan.is_some_and(|it| !told.insert((it.plan.id, it.at)));
        if is_told || stored.iter().any(|it| is_by(it, &entry)) {
            continue;
        }
        let end = plan.and_then(|it| it.undone_at);
        let undo = |at| AuditEntry { at, deed: "undo".to_owned(), record: None, ..entry.clone() };
        let undo = end.map(undo);
        changes.extend([Some(entry), undo].into_iter().flatten().map(MemoryChange::Audited));
    }
    changes.sort_by_key(MemoryChange::at);
    Ok(changes)
}
