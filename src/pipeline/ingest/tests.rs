//! However a conversation is handed over, it is enqueued whole and once.

use super::IntakeReport;
use super::testing::{IntakeFixture, TestEntry, lines};
use crate::store::{OpenMode, Store};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Messages of a person: of medium length, longer than a slice, short enough to wait.
pub(super) const SOME: TestEntry = TestEntry::Person(30);
pub(super) const MANY: TestEntry = TestEntry::Person(180);
pub(super) const FEW: TestEntry = TestEntry::Person(2);

/// Change of a file.
#[derive(Clone, Debug)]
enum Step {
    /// It grows by so many lines and is handed over.
    Grow(usize),
    /// The last line is half written when it is handed over.
    Torn,
    /// It is handed over as it is.
    Again,
    /// The same with `flush`, so that nothing waits.
    Flush,
    /// Waits end, and a worker takes what is ready.
    Work,
}

pub(super) fn said() -> impl Strategy<Value = TestEntry> {
    prop_oneof![
        3 => (0usize..40).prop_map(TestEntry::Person),
        2 => (150usize..500).prop_map(TestEntry::Person),
        3 => (0usize..60).prop_map(TestEntry::Assistant),
        2 => Just(TestEntry::Call),
        2 => (0usize..200).prop_map(TestEntry::Result),
        1 => Just(TestEntry::Context),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1usize..5).prop_map(Step::Grow),
        1 => Just(Step::Torn),
        2 => Just(Step::Again),
        1 => Just(Step::Flush),
        2 => Just(Step::Work),
    ]
}

pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn hand_over(place: &mut IntakeFixture, lines: &[String], steps: &[Step]) {
    let mut grown = 0;
    for step in steps {
        let more = if let Step::Grow(more) = step { *more } else { 0 };
        grown = (grown + more).min(lines.len());
        let mut text = lines[..grown].concat();
        if let (Step::Torn, Some(next)) = (step, lines.get(grown)) {
            text.push_str(&next[..next.len() / 2]);
        }
        place.write("s.jsonl", text);
        match step {
            Step::Grow(_) | Step::Torn | Step::Again => drop(place.take_in("s.jsonl", false).await),
            Step::Flush => drop(place.take_in("s.jsonl", true).await),
            Step::Work => drop(place.work().await),
        }
    }
    place.write("s.jsonl", lines.concat());
    place.take_in("s.jsonl", true).await;
    place.work().await;
}

async fn however_it_is_handed_over(
    said: Vec<TestEntry>,
    steps: Vec<Step>,
    batch: usize,
) -> Result<(), TestCaseError> {
    let lines = lines("one", &said);
    let (mut at_once, mut bit_by_bit) =
        (IntakeFixture::new(), IntakeFixture::with_batches_of(batch));
    hand_over(&mut at_once, &lines, &[]).await;
    hand_over(&mut bit_by_bit, &lines, &steps).await;
    let entries = bit_by_bit.entries().await;
    prop_assert_eq!(&entries, &at_once.entries().await);
    for place in [&mut at_once, &mut bit_by_bit] {
        place.check_covered(&entries);
        let again = place.take_in("s.jsonl", true).await;
        prop_assert!(again.is_nothing_new(), "{:?}", again);
        prop_assert_eq!((again.known as usize, again.problems.len()), (place.worked.len(), 0));
        prop_assert_eq!(place.work().await, 0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::testing::cases(40))]

    #[test]
    fn every_entry_is_in_the_jobs_that_cover_it_however_it_is_handed_over(
        said in prop::collection::vec(said(), 1..30),
        steps in prop::collection::vec(step(), 0..12),
        batch in 1usize..8_000,
    ) {
        run(however_it_is_handed_over(said, steps, batch))?;
    }
}

/// Rewrites the file `s.jsonl` and hands it over.
async fn now_is(place: &IntakeFixture, session: &str, said: &[TestEntry]) -> IntakeReport {
    place.write("s.jsonl", lines(session, said).concat());
    let taken = place.take_in("s.jsonl", false).await;
    assert!(taken.problems.is_empty(), "{:?}", taken.problems);
    taken
}

#[test]
fn what_is_little_waits_and_is_asked_about_with_what_follows() {
    run(async {
        let mut place = IntakeFixture::new();
        let first = now_is(&place, "one", &[FEW]).await;
        assert_eq!((first.jobs, first.entries), (0, 1));
        assert!(first.sessions[0].gathers_until.is_some());
        let again = now_is(&place, "one", &[FEW]).await;
        assert!(again.is_nothing_new() && again.sessions[0].gathers_until.is_some());
        now_is(&place, "one", &[FEW, FEW]).await;
        assert_eq!((place.work().await, place.worked[0].slice.parts.len()), (1, 2));
        let after = now_is(&place, "one", &[FEW, FEW, FEW]).await;
        assert_eq!(after.entries, 1, "what was asked about stays as it was");
        assert_eq!((place.work().await, place.worked[1].slice.range()), (1, (2, 2)));
    });
}

#[test]
fn the_rest_of_an_entry_does_not_wait() {
    run(async {
        let mut place = IntakeFixture::new();
        let taken = now_is(&place, "one", &[SOME, MANY]).await;
        assert!(taken.sessions[0].gathers_until.is_none(), "{taken:?}");
        now_is(&place, "one", &[SOME, MANY, FEW]).await;
        place.work().await;
        let last = place.worked.iter().filter(|it| it.slice.parts[0].part > 0);
        assert!(last.map(|it| it.slice.tokens).min() < Some(150), "it was short enough to wait");
        let entries = place.entries().await;
        place.check_covered(&entries);
    });
}

#[test]
fn a_call_waits_for_its_answer() {
    run(async {
        let mut place = IntakeFixture::new();
        let long = TestEntry::Person(60);
        let taken = now_is(&place, "one", &[long.clone(), TestEntry::Call]).await;
        assert_eq!(taken.jobs, 0, "{taken:?}");
        let taken = now_is(&place, "one", &[long, TestEntry::Call, TestEntry::Result(9)]).await;
        assert_eq!((taken.jobs, taken.sessions[0].gathers_until), (1, None));
        assert_eq!((place.work().await, place.worked[0].slice.range()), (1, (0, 2)));
    });
}

#[test]
fn a_file_that_is_cut_short_takes_nothing_away() {
    run(async {
        let mut place = IntakeFixture::new();
        now_is(&place, "one", &[SOME, SOME, SOME, FEW]).await;
        for shorter in [1, 3] {
            let taken = now_is(&place, "one", &[SOME, SOME, SOME][..shorter]).await;
            assert!(taken.is_nothing_new(), "{taken:?}");
        }
        assert!(now_is(&place, "one", &[SOME, SOME, SOME, FEW]).await.is_nothing_new());
        place.work().await;
        let entries = place.entries().await;
        assert_eq!(entries.len(), 4);
        place.check_covered(&entries);
    });
}

#[test]
fn what_was_rewritten_is_cut_anew_and_what_is_equal_is_known() {
    run(async {
        let mut place = IntakeFixture::new();
        let all = vec![SOME; 30];
        let jobs = now_is(&place, "one", &all).await.jobs;
        assert!(jobs > 2);
        let mut other = all.clone();
        other[28] = TestEntry::Person(31);
        let taken = now_is(&place, "one", &other).await;
        assert_eq!(taken.sessions.len(), 1, "{taken:?}");
        assert!(taken.known + 2 >= jobs && taken.known > 0 && taken.jobs < 3, "{taken:?}");
        place.work().await;
        let entries = place.entries().await;
        place.check_covered(&entries);
    });
}

#[test]
fn another_conversation_under_the_same_name_takes_nothing_away() {
    run(async {
        let mut place = IntakeFixture::new();
        let before = now_is(&place, "one", &[SOME, SOME, TestEntry::Person(50)]).await;
        let other = [TestEntry::Person(40), TestEntry::Person(45), TestEntry::Person(51)];
        let taken = now_is(&place, "one", &other).await;
        assert_eq!((taken.entries, taken.sessions.len()), (3, 2), "{taken:?}");
        let name = taken.sessions[1].name.as_str();
        assert!(name.starts_with("one@"), "{name}");
        let grown = [&other[..], &[SOME]].concat();
        let more = now_is(&place, "one", &grown).await;
        assert_eq!(more.entries, 1, "it goes on under its new name: {more:?}");
        place.work().await;
        let status = place.store.status().await.unwrap();
        let entries: Vec<_> = status.sessions.iter().map(|it| it.entries).collect();
        assert_eq!(
            (entries.len(), entries.contains(&Some(3)), entries.contains(&Some(4))),
            (2, true, true)
        );
        assert_eq!(before.entries, 3);
    });
}

#[test]
fn another_conversation_does_not_replace_one_that_waits() {
    run(async {
        let mut place = IntakeFixture::new();
        let begun = now_is(&place, "one", &[FEW, FEW]).await;
        assert!(begun.sessions[0].gathers_until.is_some(), "{begun:?}");
        let changed = now_is(&place, "one", &[FEW, TestEntry::Person(4)]).await;
        assert_eq!((changed.entries, changed.sessions.len()), (0, 1), "its last entry grew");
        let other = [TestEntry::Person(3), TestEntry::Person(5)];
        let taken = now_is(&place, "one", &other).await;
        assert_eq!((taken.entries, taken.sessions.len()), (2, 2), "{taken:?}");
        assert!(now_is(&place, "one", &other).await.is_nothing_new());
        assert_eq!(place.work().await, 2);
    });
}

#[test]
fn a_changed_text_that_waits_is_stored_beside_the_earlier_one() {
    run(async {
        for change in [1, 2] {
            let mut place = IntakeFixture::new();
            now_is(&place, "one", &[FEW, TestEntry::Person(4), TestEntry::Person(6)]).await;
            let mut other = [FEW, TestEntry::Person(4), TestEntry::Person(6), FEW];
            other[change] = TestEntry::Person(3);
            let taken = now_is(&place, "one", &other).await;
            assert_eq!((taken.entries, taken.sessions.len()), (4, 2), "{taken:?}");
            assert!(now_is(&place, "one", &other).await.is_nothing_new());
            place.work().await;
            let mut entries: Vec<_> =
                place.worked.iter().map(|it| it.slice.range().1 + 1).collect();
            entries.sort_unstable();
            assert_eq!(entries, [3, 4], "both are extracted");
        }
    });
}

#[test]
fn a_renamed_file_goes_on_and_a_copy_is_not_taken_in_twice() {
    run(async {
        let place = IntakeFixture::new();
        now_is(&place, "one", &[SOME, SOME]).await;
        std::fs::rename(place.path("s.jsonl"), place.path("t.jsonl")).unwrap();
        place.write("t.jsonl", lines("one", &[SOME, SOME, SOME]).concat());
        let renamed = place.take_in("t.jsonl", false).await;
        assert_eq!((renamed.entries, renamed.sessions.len()), (1, 1));
        place.write("copy.jsonl", lines("one", &[SOME, SOME, SOME]).concat());
        let copy = place.take_in("copy.jsonl", true).await;
        assert_eq!((copy.entries, copy.copies, copy.sessions.len()), (0, 1, 0), "{copy:?}");
        place.write("copy.jsonl", lines("one", &[SOME, SOME, SOME, FEW]).concat());
        let parted = place.take_in("copy.jsonl", true).await;
        assert_eq!((parted.entries, parted.jobs), (1, 1), "{parted:?}");
        assert_eq!(
            parted.sessions[0].name.as_str(),
            "one",
            "a longer copy is the same conversation"
        );
    });
}

#[test]
fn two_that_take_in_the_same_growing_file_at_once_take_in_each_entry_once() {
    run(async {
        let mut place = IntakeFixture::with_batches_of(500);
        let url = format!("sqlite:{}", place.store.place());
        let said = vec![SOME; 40];
        let lines = lines("one", &said);
        for grown in (4..=40).step_by(4) {
            place.write("s.jsonl", lines[..grown].concat());
            let other = place.with_store(Store::open(&url, OpenMode::Existing).unwrap());
            let both =
                tokio::join!(place.take_in("s.jsonl", false), other.take_in("s.jsonl", false));
            let entries = both.0.entries + both.1.entries;
            assert_eq!((entries, both.0.problems.len() + both.1.problems.len()), (4, 0));
        }
        place.take_in("s.jsonl", true).await;
        place.work().await;
        let entries = place.entries().await;
        assert_eq!(entries.len(), 40);
        place.check_covered(&entries);
    });
}
