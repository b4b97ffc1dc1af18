//! The queue through its public functions.

use super::super::fixture::{conversation, entry, failed, on_each_store, stage, staging};
use super::*;
use crate::domain::*;
use crate::domain::{Digest, JobId, SliceId, Wait};
use crate::privacy::Report;
use crate::store::StoreErrorKind;
use crate::store::*;

pub(super) fn job(name: &str, ordinals: (u32, u32)) -> Job {
    Job {
        id: JobId(Digest::of(&["job", name])),
        slice: SliceId(Digest::of(&[name])),
        index: 0,
        first: (ordinals.0, 0),
        last: (ordinals.1, 0),
        tokens: 10,
        cut: "[]".to_owned(),
        context: None,
    }
}

/// Returns an intake of `session` with one job of one entry per name.
pub(super) fn intake(session: &Session, names: &[&str]) -> Intake {
    let known = names.len() as u32;
    Intake {
        session: session.clone(),
        growth: SessionProgress::default(),
        anew: None,
        goes_on: false,
        entries: (0..known).map(entry).collect(),
        known,
        jobs: names.iter().zip(0..).map(|(name, n)| job(name, (n, n))).collect(),
        gathering: None,
        priority: 0,
        document: None,
        findings: vec![],
        masked: Report::default(),
        remembered: None,
        at: Timestamp(100),
    }
}

pub(super) fn claim(jobs_max: u32, now: i64) -> ClaimRequest {
    ClaimRequest {
        holder: "w".to_owned(),
        jobs_max,
        until: Timestamp(now + 50),
        attempts_max: 3,
        batch: None,
        now: Timestamp(now),
    }
}

pub(super) fn of(namespace: &str, name: &str) -> Session {
    let session = conversation(name);
    let id = Session::id_of(namespace, session.format, name);
    Session { id, namespace: namespace.to_owned(), ..session }
}

#[tokio::test]
async fn an_old_token_is_refused_and_writes_nothing() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        let first = store.claim(claim(9, 100)).await.unwrap().jobs.remove(0);
        assert!(store.claim(claim(9, 149)).await.unwrap().jobs.is_empty());
        let second = store.claim(claim(9, 150)).await.unwrap().jobs.remove(0);
        assert_eq!((first.lease.token, second.lease.token, second.attempt), (1, 2, 2));
        let staged = || Some(staging(&session, "run", 0, &["it ran"]));
        let late = store.finish(first.lease, staged(), JobEnding::Done, Timestamp(160)).await;
        assert_eq!(late.unwrap_err().kind, StoreErrorKind::LeaseLost(first.lease.subject));
        assert!(store.records(Default::default()).await.unwrap().is_empty());
        for _ in 0..2 {
            let done = store.finish(second.lease, staged(), JobEnding::Done, Timestamp(160)).await;
            assert_eq!(done.unwrap().staged, 1);
        }
        assert_eq!(store.records(Default::default()).await.unwrap().len(), 1);
        assert!(store.claim(claim(9, 999)).await.unwrap().jobs.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_noisy_namespace_starves_no_other() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        let many: Vec<String> = (0..50).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        store.enqueue(intake(&of("noisy", "n"), &many)).await.unwrap();
        store.enqueue(intake(&of("quiet", "q"), &["q1", "q2"])).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.extend(
                store.claim(claim(1, 100)).await.unwrap().jobs.into_iter().map(|it| it.session),
            );
        }
        let quiet = of("quiet", "q").id;
        assert_eq!(seen.iter().filter(|id| **id == quiet).count(), 2, "{seen:?}");
        assert_eq!(store.claim(claim(99, 100)).await.unwrap().jobs.len(), 48);
    })
    .await;
}

#[tokio::test]
async fn within_a_namespace_priority_goes_before_age() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a", "b"])).await.unwrap();
        let growth = store.growth(session.id).await.unwrap().unwrap();
        let urgent = Intake { growth, priority: 5, ..intake(&session, &["u"]) };
        store.enqueue(urgent).await.unwrap();
        let jobs = store.claim(claim(9, 100)).await.unwrap().jobs;
        let ids: Vec<JobId> = jobs.iter().map(|it| it.job.id).collect();
        assert_eq!(ids, ["u", "a", "b"].map(|name| job(name, (0, 0)).id));
    })
    .await;
}

#[tokio::test]
async fn what_gathers_is_merged_until_its_time_has_come() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let gathering =
            |name: &str, last| Some(Gathering { job: job(name, (0, last)), until: Timestamp(200) });
        let first =
            Intake { jobs: vec![], gathering: gathering("a", 0), ..intake(&session, &["a"]) };
        store.enqueue(first.clone()).await.unwrap();
        assert!(store.claim(claim(9, 199)).await.unwrap().jobs.is_empty());
        assert_eq!(store.enqueue(first).await.unwrap_err().kind, StoreErrorKind::Moved);
        let growth = store.growth(session.id).await.unwrap().unwrap();
        assert_eq!((growth.taken, growth.entries), (0, 1));
        let more = Intake {
            growth,
            jobs: vec![],
            gathering: gathering("ab", 1),
            ..intake(&session, &["a", "b"])
        };
        store.enqueue(more).await.unwrap();
        let jobs = store.claim(claim(9, 200)).await.unwrap().jobs;
        assert_eq!(jobs.iter().map(|it| it.job.last.0).collect::<Vec<_>>(), [1]);
        let growth = store.growth(session.id).await.unwrap().unwrap();
        assert_eq!((growth.taken, growth.ends), (2, vec![2]));
    })
    .await;
}

#[tokio::test]
async fn who_never_comes_back_is_counted_and_then_the_job_is_dead() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        let mut last = None;
        for now in [100, 200, 300] {
            last = store.claim(claim(9, now)).await.unwrap().jobs.pop();
        }
        let claims = store.claim(claim(9, 400)).await.unwrap();
        assert_eq!((claims.jobs.len(), claims.expired, claims.next_at), (0, 1, None));
        let lease = last.unwrap().lease;
        let staged = Some(staging(&session, "run", 0, &["it ran"]));
        let late = store.finish(lease, staged, JobEnding::Done, Timestamp(410)).await;
        assert_eq!(late.unwrap_err().kind, StoreErrorKind::LeaseLost(lease.subject));
        let status = store.status().await.unwrap();
        assert_eq!(status.sessions[0].totals.coverage.failed, 1);
    })
    .await;
}

#[tokio::test]
async fn a_release_gives_the_attempt_back_or_not() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        for (charged, attempt) in [(false, 1), (true, 1), (false, 2), (false, 2)] {
            let claimed = store.claim(claim(9, 100)).await.unwrap().jobs.remove(0);
            assert_eq!(claimed.attempt, attempt);
            let release = JobRelease { wait: None, charged };
            store.release(claimed.lease, release, Timestamp(100)).await.unwrap();
        }
        let claimed = store.claim(claim(9, 100)).await.unwrap().jobs.remove(0);
        let wait = Some((Wait::BackOff, Timestamp(500), "busy".to_owned()));
        let release = JobRelease { wait, charged: true };
        store.release(claimed.lease, release, Timestamp(100)).await.unwrap();
        let claims = store.claim(claim(9, 499)).await.unwrap();
        assert_eq!((claims.jobs.len(), claims.next_at), (0, Some(Timestamp(500))));
        assert_eq!(store.claim(claim(9, 500)).await.unwrap().jobs.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_clock_that_went_back_holds_nothing() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        let far = 10_000_000_000;
        assert_eq!(store.claim(claim(9, far)).await.unwrap().jobs.len(), 1);
        assert!(store.claim(claim(9, 1_000)).await.unwrap().jobs.is_empty());
        assert_eq!(store.recover(Timestamp(1_000)).await.unwrap(), 1);
        let held = store.claim(claim(9, 1_000)).await.unwrap().jobs.remove(0).lease;
        // A lease that ends too late came from a wrong clock.
        store.extend(vec![held], Timestamp(3_661_001), Timestamp(1_000)).await.unwrap();
        assert_eq!(store.recover(Timestamp(1_001)).await.unwrap(), 0);
        assert_eq!(store.recover(Timestamp(1_000)).await.unwrap(), 1);
        assert_eq!(store.claim(claim(9, 1_000)).await.unwrap().jobs.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_document_that_comes_again_is_known() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let document = Some(Digest::of(&["doc"]));
        let first = Intake { document, ..intake(&session, &["a"]) };
        assert_eq!(store.enqueue(first.clone()).await.unwrap().jobs, 1);
        let growth = store.growth(session.id).await.unwrap().unwrap();
        let again = store.enqueue(Intake { growth, ..first }).await.unwrap();
        assert!(again.repeated);
        assert_eq!(store.claim(claim(9, 100)).await.unwrap().jobs.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn halves_take_the_place_of_what_was_too_long() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a", "b"])).await.unwrap();
        let claimed = store.claim(claim(1, 100)).await.unwrap().jobs.remove(0);
        let halves = vec![job("a1", (0, 0)), job("a2", (0, 0))];
        store.finish(claimed.lease, None, JobEnding::Cut(halves), Timestamp(100)).await.unwrap();
        let queued = store.jobs_of_entries(session.id, 0..2).await.unwrap();
        assert_eq!(queued, ["a", "b"].map(|name| (job(name, (0, 0)).id, false)));
        assert_eq!(store.claim(claim(9, 100)).await.unwrap().jobs.len(), 3);
    })
    .await;
}

#[tokio::test]
async fn dead_jobs_open_again_under_another_prompt_only() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        let claimed = store.claim(claim(1, 100)).await.unwrap().jobs.remove(0);
        let asking = Digest::of(&["old"]);
        let dead = JobEnding::Dead { kind: "refused".to_owned(), detail: "no".to_owned(), asking };
        store.finish(claimed.lease, None, dead, Timestamp(100)).await.unwrap();
        let coverage = async || store.status().await.unwrap().sessions[0].totals.coverage;
        assert_eq!(store.reopen(asking, Timestamp(100)).await.unwrap(), 0);
        assert_eq!((coverage().await.failed, coverage().await.pending), (1, 0));
        assert_eq!(store.reopen(Digest::of(&["new"]), Timestamp(100)).await.unwrap(), 1);
        assert_eq!((coverage().await.failed, coverage().await.pending), (0, 1));
        let claimed = store.claim(claim(1, 100)).await.unwrap().jobs.remove(0);
        assert_eq!((claimed.attempt, claimed.generation), (1, 1));
    })
    .await;
}

/// Returns the only part of a replay, with the slice of this run.
fn part(session: &Session, batch: &str, of: &Staging) -> BatchPart {
    let job = Job { slice: of.run.slice, ..job("a", (0, 9)) };
    BatchPart {
        batch: batch.to_owned(),
        session: session.clone(),
        begins: true,
        entries: (0..10).map(entry).collect(),
        jobs: vec![BatchJob { job, generation: 0 }],
        asking: of.run.asking,
        end: None,
        at: Timestamp(100),
    }
}

#[tokio::test]
async fn a_failed_slice_that_a_replay_queues_again_is_pending() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let failed = failed(staging(&session, "a", 0, &[]));
        stage(&store, failed.clone()).await.unwrap();
        assert_eq!(store.status().await.unwrap().coverage().failed, 10);
        store.enqueue_part(part(&session, "again", &failed)).await.unwrap();
        let status = store.status().await.unwrap();
        assert_eq!(status.coverage(), Coverage { pending: 10, ..Coverage::default() });
        assert_eq!(status.failed, []);
    })
    .await;
}

#[tokio::test]
async fn a_dead_job_of_two_batches_stays_until_the_second_one_ends() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let failed = failed(staging(&session, "a", 0, &[]));
        for batch in ["first", "second"] {
            store.enqueue_part(part(&session, batch, &failed)).await.unwrap();
        }
        let claimed = store.claim(claim(1, 100)).await.unwrap().jobs.remove(0);
        let dead = JobEnding::Dead {
            kind: "stale".to_owned(),
            detail: "no answer".to_owned(),
            asking: failed.run.asking,
        };
        store.finish(claimed.lease, Some(failed), dead, Timestamp(100)).await.unwrap();
        let jobs_of = async |batch: &str| store.batch_slices(batch.to_owned()).await.unwrap().len();
        store.end_batch("first".to_owned()).await.unwrap();
        assert_eq!(jobs_of("second").await, 1, "its session's end counts the run of this job");
        store.end_batch("second".to_owned()).await.unwrap();
        assert_eq!(store.jobs(JobFilter::default()).await.unwrap().len(), 0);
    })
    .await;
}
