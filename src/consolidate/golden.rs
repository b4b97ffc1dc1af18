//! Consolidation of recorded answers about real transcripts. The recordings are not in the
//! repository; without them the test passes.

use super::fixture::*;
use crate::domain::{Claim, MemoryMap, MemoryState, Record, Speaker, WriteExtracted};
use crate::testing::shared;

/// The claims of one recorded answer.
fn claims(path: &std::path::Path) -> Vec<Claim> {
    let text = std::fs::read_to_string(path).unwrap();
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    let answer: WriteExtracted = serde_json::from_value(answer["arguments"].clone()).unwrap();
    let decisions = answer.decisions.into_iter().map(Claim::Decision);
    let discussions = answer.discussions.into_iter().map(Claim::Discussion);
    let attempts = answer.attempts.into_iter().map(Claim::Attempt);
    let requests = answer.requests.into_iter().map(Claim::Request);
    decisions.chain(discussions).chain(attempts).chain(requests).collect()
}

#[test]
fn real_claims_of_many_conversations_are_kept_apart() {
    let Some(folder) = shared("answers") else { return };
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let mut records: Vec<Record> = Vec::new();
    for (on, path) in
        (0..).zip(paths.iter().filter(|path| path.extension().is_some_and(|it| it == "json")))
    {
        // The usual order: request, discussion, attempt, decision.
        records.extend(claims(path).into_iter().map(|claim| {
            let mut record = record(claim, Speaker::Person, on);
            let ordinal = match record.claim {
                Claim::Request(_) => 1,
                Claim::Discussion(_) => 2,
                Claim::Attempt(_) => 5,
                Claim::Decision(_) => 6,
            };
            record.evidence.iter_mut().for_each(|it| it.ordinal = ordinal);
            record
        }));
    }
    assert!(records.len() > 80, "{}", records.len());
    let mut state = MemoryMap::new();
    let made = plan(&records, &mut state);
    let others: Vec<_> = told(&made).into_iter().zip(&made.operations).collect();
    let others: Vec<_> = others.iter().filter(|(told, _)| told != "add new").collect();
    assert!(others.is_empty(), "{others:#?}");
    assert!(state.values().all(|memory| memory.state == MemoryState::Active));
    let effects = made.operations.iter().flat_map(|operation| &operation.effects);
    let mut moved = 0;
    for effect in effects {
        // A request is completed within its conversation.
        let session = |id| {
            let sources = &state[id].sources;
            let found = records.iter().find(|record| sources.contains(&record.id));
            found.map(|record| record.provenance.session)
        };
        assert_eq!(session(&effect.memory), session(&effect.by), "{effect:?}");
        moved += 1;
    }
    assert!(moved >= 2, "{moved}");
}
