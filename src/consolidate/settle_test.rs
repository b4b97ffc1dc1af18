//! Pairs that were left open and are settled later.

use super::fixture::*;
use super::{Asked, Draft, Memories, OpenPair, Undecided, Verdict, Verdicts, consolidate, forget};
use crate::domain::{
    Claim, Memory, MemoryId, MemoryMap, MemoryState, PARTLY, Plan, Record, Speaker, Stage,
};
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
fn questions_that_are_joined_later_keep_what_was_said_about_both() {
    let old = discussion("How wide must the path be (left open)", &["law: 1.20"]);
    let new = discussion("Width of the path (left open)", &["it is 1.32"]);
    for (by, verdict, kept) in [
        (Speaker::Person, Verdict::Same, vec!["law: 1.20", "it is 1.32"]),
        (Speaker::Person, Verdict::Covers, vec!["law: 1.20", "it is 1.32"]),
        (Speaker::Assistant, Verdict::Covers, vec!["it is 1.32"]),
    ] {
        let records = [record(old.clone(), by, 1), record(new.clone(), Speaker::Person, 4)];
        let (mut state, made, _) = left_open(&records);
        let [home, memory] = [&records[1], &records[0]].map(|it| of(&state, it).id);
        let pair = OpenPair {
            record: records[1].clone(),
            home,
            memory,
            first: Some(records[0].clone()),
            rule: "alike".to_owned(),
        };
        assert_ne!(home, memory, "{made:#?}");
        let mut verdicts = Verdicts::none();
        verdicts.insert(records[1].id, memory, verdict);
        let memories = Memories::of(NAMESPACE, &state);
        let Draft { plan: settled, .. } = Draft::of(&[], &[pair], &memories, &verdicts);
        let before = state.clone();
        finish(&[], &settled, memories, &mut state);
        let [memory] = believed(&state, &records)[..] else { panic!("{settled:#?}") };
        let Claim::Discussion(it) = &memory.claim else { panic!() };
        assert_eq!(it.points, kept, "{by:?} {verdict:?}");
        // Forgetting the later record leaves what the earlier one alone makes.
        let gone = BTreeSet::from([records[1].id]);
        let mut rest = state.clone();
        forget(&gone, &state, &[made.clone(), settled.clone()]).apply(&mut rest);
        let mut alone = before;
        forget(&gone, &alone.clone(), &[made]).apply(&mut alone);
        assert_eq!(rest, alone, "{by:?} {verdict:?}");
    }
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
fn what_is_changed_in_part_stays_beside_the_change_and_is_marked_once() {
    let records = choices(Speaker::Person);
    let state = check(&records, Verdict::Partly, &["settle judged-partly"], &[]);
    assert_eq!(believed(&state, &records).len(), 2);
    let (state, _, mut pairs) = left_open(&records);
    pairs[0].rule = PARTLY.to_owned();
    let mut verdicts = Verdicts::none();
    verdicts.insert(pairs[0].record.id, pairs[0].memory, Verdict::Partly);
    let memories = Memories::of(NAMESPACE, &state);
    assert!(Draft::of(&[], &pairs, &memories, &verdicts).plan.is_empty());
}

#[test]
fn a_decision_for_a_time_leaves_what_it_replaces_in_use() {
    let [old, _] = choices(Speaker::Person);
    let new = decision(&STORES, "Postgres until 20 March", "the queue must survive a restart");
    let new = record(new, Speaker::Person, 4);
    let records = [old, new];
    let replaces = Verdict::Replaces { agreed: false };
    let state = check(&records, replaces, &["settle for-a-time"], &[]);
    assert_eq!(believed(&state, &records).len(), 2);
}

/// Plans `new` over the memory of a decision, with these verdicts; returns the state.
fn judged(old: &Record, new: &[Record], said: &[(&Record, MemoryId, Verdict)]) -> MemoryMap {
    let mut state = MemoryMap::new();
    plan(std::slice::from_ref(old), &mut state);
    let memories = Memories::of(NAMESPACE, &state);
    let mut verdicts = Verdicts::none();
    said.iter().for_each(|(record, memory, verdict)| verdicts.insert(record.id, *memory, *verdict));
    let (planned, findings) = consolidate(new, &memories, &verdicts);
    assert_eq!(findings, []);
    finish(new, &planned, memories, &mut state);
    state
}

#[test]
fn a_merged_decision_settles_a_question_whichever_side_a_verdict_names() {
    let own = |record: &Record| Memory::id_of(NAMESPACE, record.id);
    let settles = Verdict::Replaces { agreed: false };
    let old = "uploads go to the archive of the town";
    let old = record(decision(&[], old, "it is large"), Speaker::Person, 1);
    for (days, topic, again) in [
        ([5, 6], "Where do we leave the scans?", "scans are kept with all that comes in"),
        ([5, 5], "Where do we leave the scans?", "scans are kept with all that comes in"),
        ([5, 5], "Where are the scans left?", "scans are put with everything that comes in"),
    ] {
        let asked = record(discussion(topic, &["they are large"]), Speaker::Person, days[0]);
        let again = record(decision(&[], again, ""), Speaker::Person, days[1]);
        for (record, memory) in [(&asked, &again), (&again, &asked), (&asked, &old)] {
            let said = [(&again, own(&old), Verdict::Same), (record, own(memory), settles)];
            let state = judged(&old, &[asked.clone(), again.clone()], &said);
            assert_eq!(of(&state, &again).id, own(&old), "merged");
            let settled = of(&state, &asked);
            assert_eq!(settled.superseded_by, Some(own(&old)), "{topic} {days:?} {memory:#?}");
            assert_eq!(settled.stage, Stage::Decided);
        }
    }
}

#[test]
fn a_merged_decision_answers_a_question_by_the_words_of_both() {
    let old = "the queue of the uploader is kept in Postgres";
    let old = record(decision(&[], old, "it survives"), Speaker::Person, 1);
    let asked = discussion("Where is the queue of the uploader kept?", &[]);
    let asked = record(asked, Speaker::Person, 5);
    let again = record(decision(&[], "jobs wait in Postgres", ""), Speaker::Person, 6);
    let home = Memory::id_of(NAMESPACE, old.id);
    let said = [(&again, home, Verdict::Same)];
    let state = judged(&old, &[asked.clone(), again.clone()], &said);
    assert_eq!(of(&state, &asked).superseded_by, Some(home));
}

#[test]
fn a_pair_of_a_memory_that_was_joined_is_settled_with_the_one_that_stands_for_it() {
    let own = |record: &Record| Memory::id_of(NAMESPACE, record.id);
    let question = "Do we keep Postgres for the queue of the uploader when it is full?";
    let asked = record(discussion(question, &[]), Speaker::Person, 2);
    let [old, new] = choices(Speaker::Person);
    let records = [old.clone(), asked.clone(), new.clone()];
    let (mut state, _, _) = left_open(&records);
    assert_eq!(of(&state, &asked).stage, Stage::Proposed);
    let pair = |other: &Record| OpenPair {
        record: new.clone(),
        home: own(&new),
        memory: own(other),
        first: Some(other.clone()),
        rule: "alike".to_owned(),
    };
    let mut verdicts = Verdicts::none();
    verdicts.insert(new.id, own(&old), Verdict::Same);
    verdicts.insert(new.id, own(&asked), Verdict::Replaces { agreed: false });
    let memories = Memories::of(NAMESPACE, &state);
    let pairs = [pair(&old), pair(&asked)];
    let Draft { plan: settled, .. } = Draft::of(&[], &pairs, &memories, &verdicts);
    finish(&[], &settled, memories, &mut state);
    assert_eq!(of(&state, &asked).superseded_by, Some(own(&old)));
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
