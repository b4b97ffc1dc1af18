//! What is said again, in whatever order its conversations are read.

use super::fixture::*;
use crate::domain::{MemoryMap, MemoryState, Record, Speaker};

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
