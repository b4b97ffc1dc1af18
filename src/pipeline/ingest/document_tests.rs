//! However a conversation is split into documents, and however often they come, it is enqueued
//! whole and once.

use super::DocumentError;
use super::testing::{IntakeFixture, TestEntry, document, entries};
use super::tests::{FEW, SOME, run, said};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::Value;

/// A document with part of a conversation.
#[derive(Clone, Debug)]
struct Step {
    /// Number of new entries.
    more: usize,
    /// Number of entries before them that are repeated.
    again: usize,
    /// True if it gives its position.
    numbered: bool,
    /// Number of times that it is handed over.
    times: usize,
    closed: bool,
    /// True if waits then end and a worker takes what is ready.
    work: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (0usize..6, 0usize..4, any::<bool>(), 1usize..3, any::<bool>(), any::<bool>()).prop_map(
        |(more, again, numbered, times, closed, work)| Step {
            more,
            again: if numbered { again } else { 0 },
            numbered,
            times,
            closed: closed && work,
            work,
        },
    )
}

async fn however_it_is_parted(said: Vec<TestEntry>, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let all = entries(&said);
    let (mut at_once, mut in_parts) = (IntakeFixture::new(), IntakeFixture::new());
    let whole = document(Some(0), &all, true);
    at_once.hand(&whole).await.unwrap();
    let (mut handed, mut unnumbered) = (0, Vec::new());
    for step in steps {
        let (from, end) = (handed - step.again.min(handed), all.len().min(handed + step.more));
        // A document without a number that equals an earlier one is that one again.
        let is_again = unnumbered.contains(&&all[from..end]);
        let numbered = (step.numbered || is_again).then_some(from);
        unnumbered.push(&all[from..end]);
        let part = document(numbered, &all[from..end], step.closed);
        for time in 0..step.times {
            let taken = in_parts.hand(&part).await.unwrap();
            let new = if time == 0 { end - handed } else { 0 };
            prop_assert_eq!(taken.entries as usize, new);
        }
        handed = end;
        if step.work {
            in_parts.work().await;
        }
    }
    in_parts.hand(&whole).await.unwrap();
    let expected = at_once.entries().await;
    prop_assert_eq!(&in_parts.entries().await, &expected);
    for place in [&mut at_once, &mut in_parts] {
        place.work().await;
        place.check_covered(&expected);
        let again = place.hand(&whole).await.unwrap();
        let jobs = place.worked.len();
        prop_assert_eq!((again.entries, again.jobs), (0, 0));
        prop_assert_eq!((again.known as usize, again.job_ids.len()), (jobs, jobs));
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::testing::cases(32))]

    #[test]
    fn every_entry_is_in_the_jobs_that_cover_it_however_it_is_parted(
        said in prop::collection::vec(said(), 1..24),
        steps in prop::collection::vec(step(), 0..8),
    ) {
        run(however_it_is_parted(said, steps))?;
    }
}

fn some(count: usize) -> Vec<Value> {
    entries(&vec![SOME; count])
}

#[track_caller]
fn refused(outcome: Result<super::SessionIntake, DocumentError>, words: &[&str]) {
    let Err(DocumentError::Refused(line) | DocumentError::Early(line)) = outcome else {
        panic!("{outcome:?}")
    };
    for word in words {
        assert!(line.contains(word), "no `{word}` in: {line}");
    }
    assert!(!line.contains("word0"), "words of the conversation: {line}");
}

#[test]
fn a_document_behind_a_gap_is_refused_with_what_was_expected() {
    run(async {
        let place = IntakeFixture::new();
        refused(place.hand(&document(Some(2), &some(1), false)).await, &["at most 0", "found 2"]);
        place.hand(&document(None, &some(2), false)).await.unwrap();
        let behind = document(Some(5), &some(1), false);
        refused(place.hand(&behind).await, &["at most 2", "found 5", "entries 2 to 4"]);
    });
}

#[test]
fn an_entry_with_other_words_than_before_is_refused_by_its_number() {
    run(async {
        let place = IntakeFixture::new();
        let all = some(4);
        place.hand(&document(Some(0), &all, false)).await.unwrap();
        let mut other = all[1..].to_vec();
        other[1]["text"] = Value::from("something else");
        refused(
            place.hand(&document(Some(1), &other, false)).await,
            &["entries[1]", "entry 2", "from = 4"],
        );
        assert_eq!(place.entries().await.len(), 4, "nothing of it was taken in");
    });
}

#[test]
fn a_document_that_closes_leaves_nothing_waiting_however_often_it_comes() {
    run(async {
        let mut place = IntakeFixture::new();
        let few = entries(&[FEW]);
        let taken = place.hand(&document(None, &few, false)).await.unwrap();
        assert!(taken.gathers_until.is_some() && taken.jobs == 0);
        let closing = document(None, &[], true);
        for jobs in [1, 0] {
            let taken = place.hand(&closing).await.unwrap();
            assert_eq!((taken.jobs, taken.gathers_until), (jobs, None));
        }
        place.hand(&document(Some(1), &few, false)).await.unwrap();
        assert_eq!(place.hand(&closing).await.unwrap().jobs, 1, "it was closed, and went on");
        assert_eq!(place.work().await, 2);
    });
}

#[test]
fn what_is_masked_is_added_up_over_documents() {
    run(async {
        let place = IntakeFixture::new();
        let mut part = entries(&[FEW]);
        part[0]["text"] = Value::from("mail ada@example.com");
        for at in 0..2 {
            place.hand(&document(Some(at), &part, false)).await.unwrap();
        }
        let status = place.store.status().await.unwrap();
        assert_eq!(status.sessions[0].masked.values().sum::<u64>(), 2);
    });
}

#[test]
fn a_log_of_documents_is_taken_in_line_by_line_and_what_grew_of_it() {
    run(async {
        let place = IntakeFixture::new();
        let line = |at: usize| {
            let part = entries(&vec![SOME; at + 1]).split_off(at);
            String::from_utf8(document(None, &part, false)).unwrap() + "\n"
        };
        let log: String = [line(0), "{\"session\": 7}\n".to_owned(), line(1)].concat();
        let torn = line(2);
        place.write("log.jsonl", format!("{log}{}", &torn[..torn.len() / 2]));
        let taken = place.take_in("log.jsonl", false).await;
        assert_eq!((taken.entries, taken.sessions.len()), (2, 1), "{taken:?}");
        assert_eq!(taken.problems.len(), 1);
        assert!(taken.problems[0].problem.starts_with("line 2: "), "{:?}", taken.problems);
        place.write("log.jsonl", format!("{log}{torn}"));
        assert_eq!(place.take_in("log.jsonl", false).await.entries, 1);
        assert_eq!(place.take_in("log.jsonl", false).await.entries, 0);
        let pretty: Value = serde_json::from_str(&line(0)).unwrap();
        place.write("one.json", format!("{pretty:#}"));
        let again = place.take_in("one.json", false).await;
        assert_eq!((again.entries, again.problems.len()), (0, 0), "the same over many lines");
    });
}
