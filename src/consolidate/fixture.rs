//! Records and checks for tests.

use super::{Memories, Verdicts, consolidate};
use crate::domain::{
    Attempt, Claim, Decision, Digest, Discussion, Evidence, Match, Memory, MemoryMap,
    PersonRequest, Plan, Provenance, Record, RecordId, RecordState, RunId, SessionId, SliceId,
    Speaker, Timestamp,
};
use crate::privacy::Redacted;

pub(super) const NAMESPACE: &str = "project";

pub(super) fn decision(options: &[&str], chosen: &str, rationale: &str) -> Claim {
    let options = options.iter().map(|it| (*it).to_owned()).collect();
    Claim::Decision(Decision {
        options,
        chosen: chosen.to_owned(),
        rationale: rationale.to_owned(),
    })
}

pub(super) fn discussion(topic: &str, points: &[&str]) -> Claim {
    let points = points.iter().map(|it| (*it).to_owned()).collect();
    Claim::Discussion(Discussion { topic: topic.to_owned(), points })
}

pub(super) fn attempt(action: &str, result: &str, succeeded: bool) -> Claim {
    Claim::Attempt(Attempt { action: action.to_owned(), result: result.to_owned(), succeeded })
}

pub(super) fn request(summary: &str) -> Claim {
    Claim::Request(PersonRequest {
        intent: summary.to_owned(),
        target: None,
        summary: summary.to_owned(),
    })
}

pub(super) fn day(number: i64) -> Timestamp {
    Timestamp::of_rfc3339("2026-03-02T09:00:00Z")
        .unwrap()
        .after(std::time::Duration::from_secs(u64::try_from(number).unwrap() * 86_400))
}

/// `claim`, said by `speaker` on a day, in a conversation of that day; its own words are the evidence.
pub(super) fn record(claim: Claim, speaker: Speaker, on: i64) -> Record {
    let words: Vec<String> = claim.strings().into_iter().map(|(_, text)| text.to_owned()).collect();
    record_of(claim, &[(speaker, &words.join("; "))], on)
}

/// `claim` with this evidence.
pub(super) fn record_of(claim: Claim, evidence: &[(Speaker, &str)], on: i64) -> Record {
    let session = SessionId(Digest::of(&["session", &on.to_string()]));
    let run = RunId(Digest::of(&["run", &on.to_string(), &format!("{evidence:?}")]));
    let evidence = evidence.iter().map(|(speaker, words)| Evidence {
        field: "words".to_owned(),
        ordinal: 3,
        line: 1,
        bytes: 0..words.len(),
        speaker: *speaker,
        name: None,
        found: Match::Exact,
        words: Redacted::reopened((*words).to_owned()),
    });
    Record {
        id: Record::id_of(run, &claim),
        claim,
        provenance: Provenance {
            namespace: NAMESPACE.to_owned(),
            session,
            slice: SliceId(Digest::of(&["slice"])),
            run,
            entries: (0, 9),
            at: Some(day(on)),
        },
        evidence: evidence.collect(),
        score: 1.0,
        state: RecordState::Staged,
        reason: None,
    }
}

/// Plans by rule, checks and applies the plan, and checks that planning again changes nothing.
#[track_caller]
pub(super) fn plan(records: &[Record], state: &mut MemoryMap) -> Plan {
    let memories = Memories::of(NAMESPACE, state);
    let (plan, findings) = consolidate(records, &memories, &Verdicts::none());
    assert_eq!(findings, []);
    finish(records, &plan, memories, state);
    plan
}

/// Plans all records at once, in the given and in reverse order, and checks each disposition.
#[track_caller]
pub(super) fn check(records: &[Record], expected: &[&str]) -> MemoryMap {
    let (mut state, mut other) = (MemoryMap::new(), MemoryMap::new());
    let made = plan(records, &mut state);
    assert_eq!(told(&made), expected);
    let turned: Vec<Record> = records.iter().rev().cloned().collect();
    assert_eq!(plan(&turned, &mut other).id, made.id, "the order given does not count");
    state
}

/// Checks the invariants of every plan.
#[track_caller]
pub(super) fn finish(records: &[Record], plan: &Plan, memories: Memories, state: &mut MemoryMap) {
    let mut fresh: Vec<RecordId> = records.iter().map(|it| it.id).collect();
    fresh.retain(|id| !memories.has_taken(*id));
    assert_eq!(plan.check(&fresh, state), [], "{plan:#?}");
    let before = state.clone();
    plan.apply(state).unwrap();
    let after = state.clone();
    plan.apply(state).unwrap();
    assert_eq!(*state, after, "applying twice changes nothing");
    plan.undo(state).unwrap();
    assert_eq!(*state, before, "undone as it was");
    plan.apply(state).unwrap();
    let known = memories;
    let mut memories = Memories::of(NAMESPACE, state);
    let dealt_with = records.iter().filter(|it| known.has_taken(it.id));
    dealt_with.for_each(|it| memories.take(it.id));
    let withdraws = |it: &crate::domain::Operation| {
        matches!(it.disposition, crate::domain::Disposition::Withdraw { .. })
    };
    let stand = plan.operations.iter().filter(|it| !withdraws(it));
    stand.for_each(|it| memories.take(it.record));
    let (again, _) = consolidate(records, &memories, &Verdicts::none());
    assert!(again.is_empty(), "{again:#?}");
}

/// Disposition and rule of each operation, in order.
pub(super) fn told(plan: &Plan) -> Vec<String> {
    let name = |it: &crate::domain::Operation| format!("{} {}", it.disposition.name(), it.rule);
    plan.operations.iter().map(name).collect()
}

/// The memory that rests on `record`.
#[track_caller]
pub(super) fn of<'a>(state: &'a MemoryMap, record: &Record) -> &'a Memory {
    state.values().find(|memory| memory.sources.contains(&record.id)).expect("a memory")
}

impl super::history::Forgotten {
    pub(crate) fn apply(&self, state: &mut MemoryMap) {
        for change in &self.changes {
            match &change.after {
                Some(memory) => state.insert(change.memory, memory.clone()),
                None => state.remove(&change.memory),
            };
        }
    }
}
