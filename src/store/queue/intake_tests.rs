//! Intake of sessions in several parts, after changes, and again.

use super::super::fixture::{on_each_store, staging};
use super::tests::{claim, intake, job, of};
use super::*;
use crate::domain::*;
use crate::store::*;

async fn growth(store: &Store, session: &Session) -> SessionProgress {
    store.growth(session.id).await.unwrap().unwrap()
}

/// Returns an intake of jobs with ten entries each, starting at entry `10 * from`.
fn tens(session: &Session, growth: SessionProgress, from: u32, names: &[&str]) -> Intake {
    let known = 10 * (from + names.len() as u32);
    let tens = (from..).map(|ten| (10 * ten, 10 * ten + 9));
    let jobs = names.iter().zip(tens).map(|(name, ordinals)| job(name, ordinals)).collect();
    let entries = (10 * from..known).map(super::super::fixture::entry).collect();
    Intake { growth, entries, known, jobs, ..intake(session, &[]) }
}

/// Claims and finishes every job with the run of that name.
async fn drain(store: &Store, session: &Session, names: &[&str]) {
    let jobs = store.claim(claim(99, 100)).await.unwrap().jobs;
    assert_eq!(jobs.len(), names.len());
    for (claimed, name) in jobs.into_iter().zip(names) {
        let mut staging = staging(session, name, claimed.job.first.0, &[name]);
        staging.run.slice = claimed.job.slice;
        let ended =
            store.finish(claimed.lease, Some(staging), JobEnding::Done, Timestamp(100)).await;
        assert_eq!(ended.unwrap().staged, 1);
    }
}

/// Returns the headlines of staged records, in order.
async fn staged(store: &Store) -> Vec<String> {
    let records = store.records(Default::default()).await.unwrap();
    records.iter().map(|it| it.record.claim.headline().to_owned()).collect()
}

#[tokio::test]
async fn a_session_ends_where_nothing_follows_at_once() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let first = tens(&session, SessionProgress::default(), 0, &["a"]);
        store.enqueue(Intake { goes_on: true, ..first }).await.unwrap();
        let between = growth(&store, &session).await;
        assert_eq!((between.taken, between.ends.as_slice()), (10, &[][..]));
        store.enqueue(tens(&session, between, 1, &["b"])).await.unwrap();
        let after = growth(&store, &session).await;
        assert_eq!((after.taken, after.entries, after.ends), (20, 20, vec![20]));
    })
    .await;
}

#[tokio::test]
async fn a_session_that_moved_keeps_no_other_from_being_taken_in() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        let other = of("other", "o");
        let next = Intake {
            growth: SessionProgress { intakes: 1, ..SessionProgress::default() },
            ..intake(&other, &[])
        };
        let moved = store.enqueue(intake(&session, &["b"])).await.unwrap_err();
        assert_eq!(moved.kind, StoreErrorKind::Moved);
        assert_eq!(store.enqueue(intake(&other, &["c"])).await.unwrap().jobs, 1);
        assert_eq!(store.enqueue(next).await.unwrap().jobs, 0);
        assert_eq!(growth(&store, &session).await.intakes, 1, "nothing was written");
        assert_eq!(store.claim(claim(9, 100)).await.unwrap().jobs.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn what_was_rewritten_counts_no_longer_until_it_is_as_it_was() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(tens(&session, SessionProgress::default(), 0, &["a", "b"])).await.unwrap();
        drain(&store, &session, &["a", "b"]).await;
        let anew = |growth, names| Intake {
            anew: Some(15),
            ..tens(&session, SessionProgress { taken: 0, ..growth }, 0, names)
        };
        let other = store.enqueue(anew(growth(&store, &session).await, &["a", "c"])).await.unwrap();
        assert_eq!((other.jobs, other.known), (1, 1));
        assert_eq!(staged(&store).await, ["a"]);
        drain(&store, &session, &["c"]).await;
        assert_eq!(staged(&store).await, ["a", "c"]);
        let jobs = store.jobs_of_entries(session.id, 0..20).await.unwrap();
        let expected = [job("a", (0, 9)), job("c", (10, 19))].map(|it| (it.id, false));
        assert_eq!(jobs, expected, "without the slice that changed");
        let back = store.enqueue(anew(growth(&store, &session).await, &["a", "b"])).await.unwrap();
        assert_eq!((back.jobs, back.known), (1, 1), "what nothing covers any more is done again");
        drain(&store, &session, &["b"]).await;
        assert_eq!(staged(&store).await, ["a", "b"]);
    })
    .await;
}

#[tokio::test]
async fn who_works_on_what_was_rewritten_has_lost_it() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(tens(&session, SessionProgress::default(), 0, &["a", "b"])).await.unwrap();
        let jobs = store.claim(claim(9, 100)).await.unwrap().jobs;
        let growth = SessionProgress { taken: 0, ..growth(&store, &session).await };
        let anew = Intake { anew: Some(10), ..tens(&session, growth, 0, &["a", "c"]) };
        store.enqueue(anew).await.unwrap();
        let mut kept = Vec::new();
        for claimed in jobs {
            let ended = store.finish(claimed.lease, None, JobEnding::Done, Timestamp(100)).await;
            kept.push(ended.is_ok());
        }
        assert_eq!(kept, [true, false]);
        let left = store.claim(claim(9, 100)).await.unwrap().jobs;
        assert_eq!(left.iter().map(|it| it.job.id).collect::<Vec<_>>(), [job("c", (0, 0)).id]);
    })
    .await;
}

#[tokio::test]
async fn who_said_what_is_told_in_order_without_what_tools_said() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let mut taken = intake(&session, &["a", "b", "c"]);
        taken.entries[1].speaker = crate::domain::Speaker::Person;
        taken.entries[1].kind = crate::domain::EntryKind::Prompt;
        store.enqueue(taken).await.unwrap();
        let mut told = Vec::new();
        let each = |said: SpokenEntry| told.push((said.ordinal, said.text.as_str().to_owned()));
        store.spoken_entries(session.id, 1..9, each).await.unwrap();
        assert_eq!(told, [(1, "the pump of line 1 runs".to_owned()), (2, String::new())]);
    })
    .await;
}
