use super::fixture::*;
use super::{Category, Retrospective, as_of, forget, history, standing};
use crate::domain::{MemoryMap, MemoryState, Record, Speaker, Stage};
use std::collections::BTreeSet;

fn reflect(records: &[Record]) -> Retrospective {
    super::reflect(NAMESPACE.to_owned(), records)
}

fn chosen(name: &str, by: &str, on: i64) -> Record {
    let claim = decision(&["Redis", "Postgres"], name, "the queue must survive a restart");
    record_of(claim, &[(Speaker::Person, by)], on)
}

#[test]
fn forgetting_a_superseder_restores_what_it_replaced() {
    let (old, new) =
        (chosen("Redis", "Redis it is", 1), chosen("Postgres", "Postgres after all", 4));
    let mut state = MemoryMap::new();
    let first = plan(std::slice::from_ref(&old), &mut state);
    let before = state.clone();
    let second = plan(std::slice::from_ref(&new), &mut state);
    assert_eq!(of(&state, &old).state, MemoryState::Superseded);
    let plans = [first, second];
    let forgotten = forget(&BTreeSet::from([new.id]), &state, &plans);
    forgotten.apply(&mut state);
    assert_eq!(state, before);
    assert!(forgotten.plans[0].is_empty(), "its words are gone from the plan too");
    assert_eq!(forgotten.plans[0].id, plans[1].id);
}

#[test]
fn what_rests_on_others_too_is_made_from_those() {
    let ask = |text: &str, on| record(request(text), Speaker::Person, on);
    let (first, second) = (
        ask("Please add a retry with backoff to the uploader", 1),
        ask("add a retry with backoff to the uploader", 3),
    );
    let mut state = MemoryMap::new();
    let plans = [plan(&[first.clone(), second.clone()], &mut state)];
    assert_eq!(state.len(), 1);
    forget(&BTreeSet::from([first.id]), &state, &plans).apply(&mut state);
    let left = of(&state, &second);
    assert_eq!(left.claim, second.claim);
    assert_eq!((left.sources.as_slice(), left.valid_from), ([second.id].as_slice(), Some(day(3))));
}

#[test]
fn what_another_record_says_too_keeps_its_consequences() {
    let (old, new) =
        (chosen("Redis", "Redis it is", 1), chosen("Postgres", "Postgres after all", 4));
    let again = chosen("Postgres", "Postgres, as I said", 6);
    let mut state = MemoryMap::new();
    let plans = [&old, &new, &again].map(|it| plan(std::slice::from_ref(it), &mut state));
    let home = of(&state, &again).id;
    forget(&BTreeSet::from([new.id]), &state, &plans).apply(&mut state);
    let before = of(&state, &old);
    assert_eq!((before.state, before.superseded_by), (MemoryState::Superseded, Some(home)));
    assert_eq!(
        (&state[&home].sources[..], state[&home].valid_from),
        (&[again.id][..], Some(day(6)))
    );
}

#[test]
fn what_a_person_wrote_instead_survives_forgetting() {
    let mut state = MemoryMap::new();
    let (kept, plain) = (
        chosen("Redis", "Redis it is", 1),
        record(request("Rename the crate"), Speaker::Person, 1),
    );
    let plans = [plan(&[kept.clone(), plain.clone()], &mut state)];
    let theirs = decision(&[], "Redis, but only in staging", "the team agreed");
    let id = of(&state, &kept).id;
    let edited = state.get_mut(&id).unwrap();
    (edited.claim, edited.confirmed) = (theirs.clone(), true);
    forget(&BTreeSet::from([kept.id, plain.id]), &state, &plans).apply(&mut state);
    assert_eq!(state.len(), 1);
    assert_eq!((&state[&id].claim, state[&id].sources.len()), (&theirs, 0));
}

#[test]
fn history_tells_what_happened_to_a_memory() {
    let (old, new) =
        (chosen("Redis", "Redis it is", 1), chosen("Postgres", "Postgres after all", 4));
    let mut state = MemoryMap::new();
    let plans = [plan(std::slice::from_ref(&old), &mut state), plan(&[new], &mut state)];
    let events = history(of(&state, &old).id, &plans);
    let told: Vec<_> =
        events.iter().map(|it| (it.disposition, it.rule.as_str(), it.state)).collect();
    assert_eq!(
        told,
        [("add", "new", MemoryState::Active), ("supersede", "reversal", MemoryState::Superseded)]
    );
}

#[test]
fn a_day_is_looked_back_at_as_it_was_believed_then() {
    let asked =
        record(request("Make waiting jobs survive a restart of the worker"), Speaker::Person, 1);
    let done = attempt("Made waiting jobs survive a worker restart", "exit 0", true);
    let done = record(done, Speaker::Assistant, 6);
    let (old, new) =
        (chosen("Redis", "Redis it is", 1), chosen("Postgres", "Postgres after all", 4));
    let mut state = MemoryMap::new();
    // The older choice arrives last.
    let plans = [
        plan(&[asked.clone(), done.clone(), new.clone()], &mut state),
        plan(std::slice::from_ref(&old), &mut state),
    ];
    let then = as_of(day(2), &state, &plans);
    assert_eq!(then.len(), 2);
    assert_eq!(of(&then, &asked).stage, Stage::Proposed);
    assert_eq!(of(&then, &old).state, MemoryState::Active);
    let later = as_of(day(5), &state, &plans);
    assert_eq!(of(&later, &old).state, MemoryState::Superseded);
    assert_eq!(of(&later, &new).state, MemoryState::Active);
    assert_eq!(of(&as_of(day(6), &state, &plans), &asked).stage, Stage::Decided);
    assert_eq!(of(&state, &asked).settled_by, Some(of(&state, &done).id));
    assert_eq!(of(&then, &asked).settled_by, None);
    assert!(as_of(day(0), &state, &plans).is_empty());
}

#[test]
fn a_retrospective_has_five_categories_and_the_records_behind_each() {
    let by = |claim, on| record(claim, Speaker::Person, on);
    let records = [
        by(attempt("Ran the migration against staging", "timeout", false), 1),
        by(attempt("ran the migration against staging", "lock wait", false), 2),
        by(attempt("Fixed the flaky retry test", "exit 0", true), 2),
        by(decision(&["Redis", "Postgres"], "Postgres", "survives"), 3),
        by(discussion("Why the uploader stalls", &["slow disk"]), 3),
        by(request("Make the button wider"), 4),
        by(request("Rename the crate"), 4),
    ];
    let told = reflect(&records);
    let turned: Vec<Record> = records.iter().rev().cloned().collect();
    assert_eq!(reflect(&turned), told, "the order does not count");
    let categories: Vec<Category> = told.notes.iter().map(|note| note.category).collect();
    assert_eq!(categories, Category::ALL);
    assert_eq!(told.notes[0].records, [records[0].id, records[1].id]);
    assert_eq!((told.notes[0].failed, told.failed, told.sessions), (2, 2, 4));
    assert_eq!(told.kinds["request"], 2);
}

#[test]
fn another_choice_among_the_same_is_another_note() {
    let told = reflect(&[
        chosen("Redis", "Redis it is", 1),
        chosen("Postgres", "Postgres it is", 2),
        chosen("Redis", "Redis, as before", 3),
    ]);
    let notes: Vec<(&str, usize)> =
        told.notes.iter().map(|it| (it.headline.as_str(), it.records.len())).collect();
    assert_eq!(notes, [("Redis", 2), ("Postgres", 1)]);
}

#[test]
fn a_question_that_was_raised_again_is_not_closed_by_an_older_answer() {
    let raise = |by, on| {
        let claim =
            discussion("Redis or Postgres for the queue", &["the queue must survive a restart"]);
        record(claim, by, on)
    };
    let mut state = MemoryMap::new();
    let again = raise(Speaker::Person, 5);
    plan(&[chosen("Redis", "Redis it is", 1), again.clone()], &mut state);
    plan(&[raise(Speaker::Assistant, 1)], &mut state);
    assert_eq!(of(&state, &again).state, MemoryState::Active);
}

#[test]
fn what_was_taken_back_is_not_looked_back_at() {
    let records = [
        chosen("Redis", "Redis it is", 1),
        record(request("Make the export button wider"), Speaker::Person, 4),
    ];
    let mut state = MemoryMap::new();
    plan(&records, &mut state);
    let id = of(&state, &records[0]).id;
    state.get_mut(&id).unwrap().state = MemoryState::Superseded;
    assert_eq!(
        standing(records.to_vec(), BTreeSet::new(), &state).len(),
        2,
        "what gave way did happen"
    );
    state.get_mut(&id).unwrap().state = MemoryState::Retracted;
    assert_eq!(standing(records.to_vec(), BTreeSet::new(), &state), records[1..]);
}
