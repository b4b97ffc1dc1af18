//! What recorded answers about real transcripts come to. They lie beside the project; without them the rules are
//! still kept by the tests of the room.

use super::fixture::*;
use crate::domain::{Claim, MemoryMap, MemoryState, Record, Speaker, WriteExtracted};
use crate::testing::shared;

/// The claims of one recorded answer.
fn claims(path: &std::path::Path) -> Vec<Claim> {
    let text = std::fs::read_to_string(path).unwrap();
    let answer: WriteExtracted = serde_json::from_str(&text).unwrap();
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
        let said = claims(path).into_iter().map(|claim| record(claim, Speaker::Person, on));
        records.extend(said);
    }
    assert!(records.len() > 80, "{}", records.len());
    let mut state = MemoryMap::new();
    let made = plan(&records, &mut state);
    for (operation, rule) in made.operations.iter().zip(told(&made)) {
        if rule != "add new" {
            println!("{rule} {} {:?}", operation.facts.claim.to_json(), operation.disposition);
            if let Some(other) = operation.disposition.other().or(operation.disposition.home()) {
                println!("   <- {}", state[&other].claim.to_json());
            }
        }
        for e in &operation.effects {
            println!(
                "effect {} {} BY {}",
                e.rule,
                state[&e.memory].claim.to_json(),
                state[&e.by].claim.to_json()
            );
        }
    }
    println!("{:?} open {:?}", made.counts(), made.left_open.len());
    let superseded = state.values().filter(|memory| memory.state == MemoryState::Superseded);
    assert_eq!(superseded.count(), 0);
}
