//! Looks up records and memories by the ids and tags that people type, with their sources and their history.

use crate::adapters::memory_files::MemoryFolder;
use crate::consolidate::{Event, as_of, history};
use crate::domain::{BY_PERSON, Memory, MemoryMap, PERSON_EDITED, Plan, Timestamp};
use crate::memory_dir::{SOURCE, SOURCE_DIGITS_MIN, Tag, adr_number, label_number, source_of};
use crate::store::{
    AuditEntry, BadPrefix, IdPrefix, PrefixLookup, RecordSources, Store, StoreError, StoreResult,
    StoredPlan,
};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Maximum number of records looked up for a memory.
const RECORDS_MAX: usize = 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    /// The text is not the beginning of an id, or the label or tag of no memory.
    #[error("{0}")]
    Name(String),
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

/// A change of a memory, as the ledger has it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryChange {
    pub entry: AuditEntry,
    /// Outcome of a plan that was not undone.
    pub event: Option<Event>,
}

impl MemoryChange {
    pub(crate) fn in_words(&self) -> &str {
        if self.event.as_ref().is_some_and(|it| !it.is_own) {
            return "changed by another record";
        }
        match self.entry.deed.as_str() {
            "add" => "became memory",
            "merge" | "duplicate" => "was said again",
            "supersede" => "one replaced the other",
            "conflict" => "contradicts another",
            "settle" => "a pair was decided",
            "withdraw" => "a record was withdrawn, as its conversation was read again",
            "restate" => "rests on another record",
            "decide" | "confirm" => "a person decided",
            "undo" => "the plan was undone",
            "release" => "its records were staged again",
            "forget" => "a record was forgotten",
            other => other,
        }
    }
}

/// Words of the name of a rule, such as `person-kept-both`.
pub(crate) fn rule_in_words(rule: &str) -> String {
    rule.strip_prefix(BY_PERSON).unwrap_or(rule).replace('-', " ")
}

/// Replaces a label such as `ADR-013` by the tag of the memory that its record in the project's directory `here` shows,
/// and the tag of a request in focus by that of its memory.
pub(crate) fn tag_or_id<'i>(
    here: Option<&MemoryFolder>,
    id: &'i str,
) -> Result<Cow<'i, str>, LookupError> {
    if let Some(tag) = source_of(id) {
        return Ok(Cow::Owned(tag));
    }
    let session = ["session-", "summary-", "next-"].into_iter().find_map(|it| id.strip_prefix(it));
    if let Some(digits) = session {
        let list = format!("`annalist records --session {digits}` lists its records");
        return Err(LookupError::Name(format!("`{id}` is the tag of a session: {list}")));
    }
    let Some(number) = label_number(id) else { return Ok(Cow::Borrowed(id)) };
    let tag = here.and_then(|here| record_tag(here, number));
    let place = || here.map_or("the project's directory".into(), |it| it.path().to_string_lossy());
    let missing = || format!("`{id}`: no record with this number has a memory in {}", place());
    tag.map(Cow::Owned).ok_or_else(|| LookupError::Name(missing()))
}

/// Finds the tag of the memory that the record with this number in `folder` shows. What is unreadable shows none.
pub(super) fn record_tag(folder: &MemoryFolder, number: u32) -> Option<String> {
    let names = folder.names().ok()?;
    names.iter().filter(|name| adr_number(name) == Some(number)).find_map(|name| {
        let text = folder.file(name).ok().flatten()?;
        let mut tags = text.lines().filter_map(Tag::of_line);
        let tag = tags.find_map(|tag| tag.ours().filter(|tag| tag.starts_with(SOURCE)));
        tag.map(str::to_owned)
    })
}

impl From<AuditEntry> for MemoryChange {
    fn from(entry: AuditEntry) -> MemoryChange {
        MemoryChange { entry, event: None }
    }
}

/// Finds a memory by its id, a unique prefix of it, or its tag in a memory directory.
pub(crate) async fn memory_named(
    store: &Store,
    id: &str,
) -> Result<PrefixLookup<Memory>, LookupError> {
    let digits = id.strip_prefix(SOURCE).unwrap_or(id);
    let found = store.memory(prefix(digits)?).await?;
    // Among ids with a common prefix, the first has the shortest tag.
    if let (true, PrefixLookup::Many(ids)) =
        (digits != id && digits.len() >= SOURCE_DIGITS_MIN, &found)
        && let Some(first) = ids.first()
    {
        return Ok(store.memory((*first).into()).await?);
    }
    Ok(found)
}

fn prefix(id: &str) -> Result<IdPrefix, LookupError> {
    const NEXT: &str = "`annalist search WORDS` finds ids";
    id.parse().map_err(|cause: BadPrefix| LookupError::Name(format!("`{id}`: {cause}; {NEXT}")))
}

/// Finds the record with this id, or the records of a memory.
pub(crate) async fn why(store: &Store, id: &str) -> Result<PrefixLookup<Why>, LookupError> {
    if !id.starts_with(SOURCE) {
        match store.why(prefix(id)?).await? {
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
) -> StoreResult<Vec<StoredPlan>> {
    let mut plans = store.plans(namespace).await?;
    plans.retain(|stored| stored.undone_at.is_none());
    Ok(plans)
}

/// Memories as of `date`. The words of a person count from their last known edit on.
pub(crate) async fn memories_at(
    store: &Store,
    namespace: Option<&str>,
    date: Timestamp,
) -> StoreResult<MemoryMap> {
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
) -> StoreResult<Vec<MemoryChange>> {
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
        let entry = AuditEntry {
            at: plan.at,
            deed: event.disposition.to_owned(),
            plan: Some(event.plan),
            record: Some(event.record),
            memory: Some(memory.id),
            rule: Some(event.rule.clone()),
        };
        Some(MemoryChange { entry, event: Some(Event { at: said_at, ..event }) })
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
        changes.extend([Some(entry), undo].into_iter().flatten().map(MemoryChange::from));
    }
    changes.sort_by_key(|it| it.entry.at);
    Ok(changes)
}
