//! Pairs that were left open and are settled later.

use super::fixture::*;
use super::{Asked, Draft, Memories, OpenPair, Undecided, Verdict, Verdicts, forget};
use crate::domain::{Memory, MemoryMap, MemoryState, Plan, Record, Speaker, Stage};
use std::collections::{BTreeMap, BTreeSet};

const STORES: [&str; 2] = ["Redis", "Postgres"];

/// Two contradicting choices, the later one by `by` without words of change.
fn choices(by: Speaker) -> [Record; 2] {
    let old = record(decision(&STORES, "Redis", "the queue needs low latency"), Speaker::Person, 1);
    let new = decision(&STORES, "Postgres", "the queue must survive a restart");
    [old, record_of(new, &[(by, "Postgres it is, the queue must survive a restart")], 4)]
}

/// State and plan by rule, and the pairs that were left open.
fn left_open(records: &[Record]) -> (MemoryMap, Plan, Vec<OpenPair>) {
    let mut state = MemoryMap::new();
    let made = plan(records, &mut state);
    let by_id = |id| records.iter().find(|it| it.id == id).cloned();
    let pairs = made.left_open.iter().map(|left| OpenPair {
        record: by_id(left.record).unwrap(),
        home: of(&state, &by_id(left.record).unwrap()).id,
        memory: left.memory,
        first: state[&left.memory].sources.first().and_then(|id| by_id(*id)),
        rule: left.rule.clone().into_owned(),
    });
    let pairs = pairs.collect();
    (state, made, pairs)
}

/// Settles the one open pair of `records` by `verdict`; checks the operations and the findings.
#[track_caller]
fn check(records: &[Record], verdict: Verdict, expected: &[&str], found: &[&str]) -> MemoryMap {
    let (mut state, made, pairs) = left_open(records);
    let [pair] = &pairs[..] else { panic!("{made:#?}") };
    let mut verdicts = Verdicts::none();
    verdicts.insert(pair.record.id, pair.memory, verdict);
    let memories = Memories::of(NAMESPACE, &state);
    let Draft { plan: settled, findings, .. } = Draft::of(&[], &pairs, &memories, &verdicts);
    let rules: Vec<&str> = findings.iter().map(|it| it.rule.as_ref()).collect();
    assert_eq!(
        (told(&settled), rules),
        (expected.iter().map(|it| (*it).to_owned()).collect(), found.to_vec())
    );
    let before = state.clone();
    finish(&[], &settled, memories, &mut state);
    // Forgetting the later record leaves what the earlier one alone makes.
    let gone = BTreeSet::from([pair.record.id]);
    let mut rest = state.clone();
    forget(&gone, &state, &[made.clone(), settled.clone()]).apply(&mut rest);
    let mut alone = before;
    forget(&gone, &alone.clone(), &[made]).apply(&mut alone);
    assert_eq!(rest, alone, "as if it had never been settled");
    state
}

fn believed<'a>(state: &'a MemoryMap, records: &[Record]) -> Vec<&'a Memory> {
    let all = state.values().filter(|it| it.state == MemoryState::Active);
    all.filter(|it| records.iter().any(|record| it.sources.contains(&record.id))).collect()
}

#[test]
fn a_pair_that_says_the_same_becomes_one_that_rests_on_both() {
    let records = choices(Speaker::Person);
    let state = check(&records, Verdict::Same, &["settle judged-same"], &[]);
    let [memory] = believed(&state, &records)[..] else { panic!("{state:#?}") };
    assert_eq!(memory.sources, [records[0].id, records[1].id]);
    assert_eq!(memory.valid_from, records[0].provenance.at);
}

#[test]
fn a_proven_change_settles_and_the_earlier_one_goes_out_of_use() {
    let records = choices(Speaker::Person);
    let state =
        check(&records, Verdict::Replaces { agreed: false }, &["settle judged-replaced"], &[]);
    let [memory] = believed(&state, &records)[..] else { panic!("{state:#?}") };
    assert_eq!(memory.sources, [records[1].id]);
}

#[test]
fn what_is_apart_or_contradicts_stands_and_is_decided() {
    let records = choices(Speaker::Person);
    for (verdict, told) in [
        (Verdict::Unrelated, "settle judged-unrelated"),
        (Verdict::Conflict, "settle judged-conflict"),
    ] {
        let state = check(&records, verdict, &[told], &[]);
        assert_eq!(believed(&state, &records).len(), 2);
    }
}

#[test]
fn an_assistant_or_a_tool_takes_a_persons_memory_out_of_use_in_no_way() {
    for by in [Speaker::Assistant, Speaker::Tool] {
        let mut records = choices(by);
        // With tool evidence alone it would not be kept at all.
        let more = records[1].evidence[0].clone();
        records[1].evidence.push(crate::domain::Evidence { speaker: Speaker::Assistant, ..more });
        check(&records, Verdict::Replaces { agreed: false }, &[], &["verdict-refused"]);
    }
    let turned = choices(Speaker::Person);
    check(&turned, Verdict::Nothing, &[], &["verdict-refused"]);
    let mut earlier = choices(Speaker::Person);
    earlier[0].evidence[0].speaker = Speaker::Assistant;
    let state = check(&earlier, Verdict::Same, &[], &["verdict-refused"]);
    assert_eq!(believed(&state, &earlier).len(), 2);
}

#[test]
fn what_an_assistant_said_may_be_dropped() {
    let records = choices(Speaker::Assistant);
    let state = check(&records, Verdict::Nothing, &["settle judged-nothing"], &[]);
    let [memory] = believed(&state, &records)[..] else { panic!("{state:#?}") };
    assert_eq!(memory.sources, [records[0].id]);
}

#[test]
fn two_verdicts_that_would_make_a_circle_make_none() {
    let records = choices(Speaker::Person);
    let (mut state, _, mut pairs) = left_open(&records);
    let pair = pairs[0].clone();
    pairs.push(OpenPair {
        record: records[0].clone(),
        home: pair.memory,
        memory: pair.home,
        first: Some(records[1].clone()),
        rule: pair.rule.clone(),
    });
    let mut verdicts = Verdicts::none();
    for it in &pairs {
        verdicts.insert(it.record.id, it.memory, Verdict::Replaces { agreed: false });
    }
    let memories = Memories::of(NAMESPACE, &state);
    let Draft { plan: settled, .. } = Draft::of(&[], &pairs, &memories, &verdicts);
    assert_eq!(told(&settled), ["settle judged-replaced"], "the second finds the first out of use");
    finish(&[], &settled, memories, &mut state);
}

#[test]
fn an_attempt_completes_a_request_that_it_was_left_open_beside() {
    let asked =
        record(request("Make waiting jobs survive a restart of the worker"), Speaker::Person, 1);
    let tried = attempt("Stored waiting jobs so that they survive an upgrade", "exit 0", true);
    let records = [asked.clone(), record(tried, Speaker::Assistant, 2)];
    let state =
        check(&records, Verdict::Replaces { agreed: false }, &["settle judged-followed"], &[]);
    assert_eq!(of(&state, &asked).stage, Stage::Decided);
}

#[test]
fn what_was_asked_is_not_offered_again_and_no_verdict_leaves_it_open() {
    let records = choices(Speaker::Person);
    let (state, _, pairs) = left_open(&records);
    let memories = Memories::of(NAMESPACE, &state);
    let Draft { plan: settled, findings, .. } =
        Draft::of(&[], &pairs, &memories, &Verdicts::none());
    assert!(settled.is_empty() && findings.is_empty());
    let (plan, earlier, memories) = (&settled, pairs.as_slice(), &memories);
    let offered = |asked: &Asked| {
        Undecided { plan, records: &[], earlier, memories, asked }.batches(&BTreeMap::new())
    };
    let pairs: BTreeSet<_> = offered(&Asked::default()).iter().flat_map(|it| it.pairs()).collect();
    assert_eq!(pairs.len(), 1);
    assert!(offered(&Asked { pairs, ..Asked::default() }).is_empty());
}
