//! Repeated statements, requests and changes, in any order in which their conversations are read.

use super::fixture::*;
use super::{Memories, Verdict, Verdicts, consolidate};
use crate::domain::{Memory, MemoryMap, MemoryState, Record, Speaker, Stage};

fn said(text: &str, by: Speaker, on: i64) -> Record {
    record(decision(&[], text, "so it is"), by, on)
}

/// Words of the active memories after these records were read one by one.
fn believed(read: &[&Record]) -> Vec<String> {
    let mut state = MemoryMap::new();
    read.iter().for_each(|record| drop(plan(std::slice::from_ref(*record), &mut state)));
    let active = state.values().filter(|it| it.state == MemoryState::Active);
    active.map(|it| it.words().to_owned()).collect()
}

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[test]
fn a_change_that_was_taken_back_before_it_is_read_changes_nothing() {
    let port = |by| {
        [
            said("the dev server uses port 8080", Speaker::Person, 2),
            said("the dev server port changes from 8080 to 9090", Speaker::Person, 6),
            said("the dev server is back on port 8080", by, 12),
        ]
    };
    let records = port(Speaker::Person);
    for order in [[0, 2, 1], [2, 0, 1]] {
        let last = believed(&order.map(|at| &records[at]));
        assert!(last.len() == 1 && last[0].ends_with("port 8080"), "{order:?}: {last:?}");
    }
    let records = port(Speaker::Assistant);
    let last = believed(&[0, 2, 1].map(|at| &records[at]));
    assert!(last.iter().any(|it| it.ends_with("9090")), "a person's words stand: {last:?}");
}

fn asked(text: &str, by: Speaker, on: i64) -> Record {
    record(request(text), by, on)
}

const WISH: &str = "Add a CSV export to the report page";

fn done(on: i64) -> Record {
    let claim = attempt("Added the CSV export to the report page", "the test passes", true);
    record(claim, Speaker::Assistant, on)
}

fn open(state: &MemoryMap) -> Vec<&Memory> {
    let wishes = state.values().filter(|it| it.stage == Stage::Proposed);
    wishes.filter(|it| it.state == MemoryState::Active).collect()
}

#[test]
fn a_request_that_is_made_again_is_open_until_it_is_fulfilled_again() {
    let please = format!("Please {}", WISH.replacen("Add", "add", 1));
    for words in [WISH, &please] {
        let records = [asked(WISH, Speaker::Person, 2), done(5), asked(words, Speaker::Person, 9)];
        for order in ORDERS {
            let mut state = MemoryMap::new();
            for at in order {
                plan(std::slice::from_ref(&records[at]), &mut state);
            }
            assert_eq!(open(&state).len(), 1, "{order:?}: {state:#?}");
        }
    }
    let mut state = MemoryMap::new();
    let asked_twice = [2, 9].map(|on| asked(WISH, Speaker::Person, on));
    plan(&[asked_twice.to_vec(), vec![done(5), done(11)]].concat(), &mut state);
    assert_eq!(open(&state).len(), 0, "{state:#?}");
    let repeated =
        [asked(WISH, Speaker::Person, 2), done(5), asked(&please, Speaker::Assistant, 9)];
    let mut state = MemoryMap::new();
    plan(&repeated, &mut state);
    assert_eq!(open(&state).len(), 0, "an assistant repeats it: {state:#?}");
}

#[test]
fn a_model_that_finds_a_fulfilled_request_again_leaves_it_open() {
    let again =
        asked("The report page lacks a CSV export, somebody removed it", Speaker::Person, 9);
    let mut state = MemoryMap::new();
    plan(&[asked(WISH, Speaker::Person, 2), done(5)], &mut state);
    let memory = state.values().find(|it| it.is_fulfilled()).unwrap().id;
    for verdict in [Verdict::Same, Verdict::Covered, Verdict::Covers] {
        let mut verdicts = Verdicts::none();
        verdicts.insert(again.id, memory, verdict);
        let memories = Memories::of(NAMESPACE, &state);
        let (plan, _) = consolidate(std::slice::from_ref(&again), &memories, &verdicts);
        let mut after = state.clone();
        plan.apply(&mut after).unwrap();
        assert_eq!(open(&after).len(), 1, "{verdict:?}: {plan:#?}");
    }
}
