use super::*;
use crate::domain::{
    Claim, Disposition, Effect, Facts, MemoryState, Merging, PersonDecision, PersonRequest,
    RecordId, Speaker, Stage, Timestamp,
};
use std::borrow::Cow;

fn request(summary: &str) -> Claim {
    Claim::Request(PersonRequest {
        intent: summary.to_owned(),
        target: None,
        summary: summary.to_owned(),
    })
}

fn record(name: &str) -> RecordId {
    RecordId(Digest::of(&[name]))
}

fn own(name: &str) -> MemoryId {
    Memory::id_of("p", record(name))
}

fn operation(name: &str, disposition: Disposition) -> Operation {
    let facts = Facts {
        claim: request(name),
        stage: Stage::Proposed,
        said_by: Speaker::Person,
        at: Some(Timestamp(1_000)),
        ends: None,
    };
    let rule = Cow::Borrowed("rule");
    Operation { record: record(name), disposition, rule, facts, effects: Vec::new() }
}

fn add(name: &str) -> Operation {
    operation(name, Disposition::Add { memory: own(name) })
}

fn plan(operations: Vec<Operation>, before: Vec<Memory>) -> Plan {
    Plan::new("p".to_owned(), operations, before, Vec::new())
}

/// A state with the memories of these records.
fn state(names: &[&str]) -> MemoryMap {
    let mut state = MemoryMap::new();
    plan(names.iter().map(|name| add(name)).collect(), Vec::new()).apply(&mut state).unwrap();
    state
}

#[track_caller]
fn check(plan: &Plan, names: &[&str], state: &MemoryMap, rules: &[&str]) {
    let records: Vec<RecordId> = names.iter().map(|name| record(name)).collect();
    let findings = plan.check(&records, state);
    let found: Vec<&str> = findings.iter().map(|it| it.rule.as_ref()).collect();
    assert_eq!(found, rules, "{findings:?}");
}

#[test]
fn a_plan_is_read_back_from_json_as_it_was() {
    let state = state(&["a"]);
    let supersede = Disposition::Supersede { old: own("a"), memory: own("b") };
    let made = plan(vec![operation("b", supersede)], state.values().cloned().collect());
    let text = serde_json::to_string(&made).unwrap();
    let read: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(read, made);
    assert_eq!(read.digest(), made.id);
    check(&read, &["b"], &state, &[]);
}

#[test]
fn each_record_has_one_disposition() {
    let none = MemoryMap::new();
    check(&plan(vec![add("a")], vec![]), &["a"], &none, &[]);
    check(&plan(vec![add("a")], vec![]), &["a", "b"], &none, &["record-missed"]);
    check(&plan(vec![add("a")], vec![]), &[], &none, &["record-foreign"]);
    let twice = plan(vec![add("a"), operation("a", Disposition::Discard)], vec![]);
    check(&twice, &["a"], &none, &["record-twice"]);
}

#[test]
fn targets_exist_are_in_use_and_in_this_namespace() {
    let supersede =
        |by: &str| operation(by, Disposition::Supersede { old: own("a"), memory: own(by) });
    let known = state(&["a"]);
    let before: Vec<Memory> = known.values().cloned().collect();
    check(&plan(vec![supersede("b")], vec![]), &["b"], &MemoryMap::new(), &["target-missing"]);
    check(&plan(vec![supersede("b")], vec![]), &["b"], &known, &["before-missing"]);
    let both = plan(vec![supersede("b"), supersede("c")], before.clone());
    check(&both, &["b", "c"], &known, &["target-out-of-use", "superseded-twice"]);
    let mut foreign = known.clone();
    foreign.values_mut().for_each(|memory| memory.namespace = "q".to_owned());
    let there = plan(vec![supersede("b")], foreign.values().cloned().collect());
    check(&there, &["b"], &foreign, &["target-foreign"]);
    let mut changed = known.clone();
    changed.values_mut().for_each(|memory| memory.confirmed = true);
    check(&plan(vec![supersede("b")], before), &["b"], &changed, &["before-differs"]);
}

#[test]
fn nothing_takes_its_own_place() {
    let known = state(&["a", "b"]);
    let over = |old: &str, by: &str| Effect {
        memory: own(old),
        by: own(by),
        stage: None,
        supersedes: true,
        restores: false,
        retracts: false,
        at: None,
        rule: Cow::Borrowed("rule"),
    };
    let mut turn = operation("c", Disposition::Add { memory: own("c") });
    turn.effects = vec![over("a", "b"), over("b", "a")];
    let made = plan(vec![turn], known.values().cloned().collect());
    check(&made, &["c"], &known, &["supersede-cycle"]);
}

#[test]
fn forged_ids_and_stages_are_found() {
    let none = MemoryMap::new();
    let other = operation("a", Disposition::Add { memory: own("b") });
    check(&plan(vec![other], vec![]), &["a"], &none, &["memory-id"]);
    let known = state(&["a"]);
    let again = plan(vec![add("a")], known.values().cloned().collect());
    check(&again, &["a"], &known, &["memory-exists"]);
    let mut edited = plan(vec![add("b")], vec![]);
    edited.namespace = "q".to_owned();
    check(&edited, &["b"], &none, &["plan-id", "memory-id"]);
    let mut back = add("b");
    let stage = |stage| Effect {
        memory: own("a"),
        by: own("b"),
        stage: Some(stage),
        supersedes: false,
        restores: false,
        retracts: false,
        at: None,
        rule: Cow::Borrowed("rule"),
    };
    back.effects = vec![stage(Stage::Proposed)];
    let back = plan(vec![back], known.values().cloned().collect());
    check(&back, &["b"], &known, &["stage"]);
}

#[test]
fn stages_only_go_forward() {
    for from in Stage::ALL {
        for to in Stage::ALL {
            assert_eq!(from.may_become(*to), from < to, "{from:?} {to:?}");
        }
    }
}

#[test]
fn what_something_else_changed_is_not_overwritten() {
    let mut known = state(&["a"]);
    let merge = Disposition::Merge { into: own("a"), how: Merging::Provenance };
    let made = plan(vec![operation("b", merge)], known.values().cloned().collect());
    made.apply(&mut known).unwrap();
    known.values_mut().for_each(|memory| memory.state = MemoryState::Retracted);
    let edited = known.clone();
    assert_eq!(made.undo(&mut known), Err(Moved(vec![own("a")])));
    assert_eq!(made.apply(&mut known), Err(Moved(vec![own("a")])));
    assert_eq!(known, edited);
}

#[test]
fn an_undo_keeps_what_people_changed_since() {
    let mut known = state(&["a"]);
    let before = known.clone();
    let supersede = Disposition::Supersede { old: own("a"), memory: own("b") };
    let made = plan(vec![operation("b", supersede)], known.values().cloned().collect());
    made.apply(&mut known).unwrap();
    let decided = Some(PersonDecision { rule: "person-edited".into(), at: Timestamp(2_000) });
    let edit = |memory: &mut Memory| {
        (memory.confirmed, memory.decided) = (true, decided.clone());
        memory.edited = Some("mine".to_owned());
    };
    known.values_mut().for_each(edit);
    let mine = known[&own("b")].clone();
    made.undo(&mut known).unwrap();
    let mut expected = before[&own("a")].clone();
    edit(&mut expected);
    assert_eq!(known, MemoryMap::from([(own("a"), expected), (own("b"), mine)]));
}

#[test]
fn a_plan_of_which_nothing_is_left_has_words() {
    assert_eq!(plan(vec![add("a"), add("b")], Vec::new()).in_words(), "2 added");
    assert!(plan(Vec::new(), Vec::new()).in_words().contains("forgotten"));
}
