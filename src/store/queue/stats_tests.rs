use super::super::super::fixture::{entry, on_each_store, stage, staging};
use super::super::tests::{claim, intake, job, of};
use super::super::{Gathering, Intake, JobEnding, JobRelease};
use super::*;
use crate::domain::*;
use crate::domain::{Coverage, Digest, Job, Session, Skip};

async fn coverage(store: &Store, session: &Session) -> Coverage {
    let status = store.status().await.unwrap();
    let one = status.sessions.into_iter().find(|it| it.session.id == session.id).unwrap();
    assert!(one.is_balanced(), "{:?} {:?}", one.entries, one.totals.coverage);
    one.totals.coverage
}

/// Registers a worker, as the worker itself does.
async fn present(store: &Store, id: &'static str, seen_at: i64, stopped: Option<&'static str>) {
    let sql = "INSERT INTO workers (id, started_at, seen_at, stopped) VALUES (?1, 1, ?2, ?3)";
    let write = move |to: &mut Db| to.execute(sql, values![id, seen_at, stopped]);
    store.write("beginning a worker", write).await.unwrap();
}

#[tokio::test]
async fn a_store_without_a_queue_has_none() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        stage(&store, staging(&session, "r", 0, &["a"])).await.unwrap();
        let depth = store.depth(Timestamp(5)).await.unwrap();
        assert!(depth.is_empty() && !depth.needs_person(), "{depth:?}");
    })
    .await;
}

#[tokio::test]
async fn an_entry_in_two_jobs_is_pending_once_and_one_that_is_accounted_for_is_not() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        // Jobs 0-1, 1-3, 4, and 5 in two parts. Entry 2 is in no slice; job 4 finishes below.
        let ranges = [(0, 1), (1, 3), (4, 4), (5, 5), (5, 5)];
        let jobs: Vec<Job> =
            ranges.into_iter().zip(0..).map(|(range, n)| job(&format!("j{n}"), range)).collect();
        let mut entries: Vec<_> = (0..6).map(entry).collect();
        entries[2].skip = Some(Skip::Empty);
        let names = ["j0"; 6];
        let whole = Intake { jobs, entries, ..intake(&session, &names) };
        store.enqueue(whole).await.unwrap();
        let sum = |skipped, nothing, pending| Coverage {
            skipped,
            nothing,
            pending,
            ..Coverage::default()
        };
        assert_eq!(coverage(&store, &session).await, sum(1, 0, 5));
        for claimed in store.claim(claim(3, 100)).await.unwrap().jobs {
            if claimed.job.first.0 != 4 {
                continue;
            }
            let mut run = staging(&session, "run", 4, &[]);
            run.entries.truncate(1);
            store.finish(claimed.lease, Some(run), JobEnding::Done, Timestamp(100)).await.unwrap();
        }
        assert_eq!(coverage(&store, &session).await, sum(1, 1, 4));
        // A replay outside the queue has extracted 0 and 1 in the meantime.
        let mut run = staging(&session, "beside", 0, &[]);
        run.entries.truncate(2);
        stage(&store, run).await.unwrap();
        assert_eq!(coverage(&store, &session).await, sum(1, 3, 2));
        // Jobs of another session do not count.
        store.enqueue(intake(&of("other", "o"), &["x", "y"])).await.unwrap();
        assert_eq!(coverage(&store, &session).await, sum(1, 3, 2));
        assert_eq!(coverage(&store, &of("other", "o")).await, sum(0, 0, 2));
    })
    .await;
}

#[tokio::test]
async fn jobs_are_told_by_state_wait_cap_and_kind_of_death() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a", "b", "c", "d", "e", "f", "g"])).await.unwrap();
        let gathering = Some(Gathering { job: job("h", (0, 0)), until: Timestamp(190) });
        let more = Intake { gathering, at: Timestamp(130), ..intake(&of("other", "o"), &["z"]) };
        store.enqueue(Intake { jobs: vec![], ..more }).await.unwrap();
        let jobs = store.claim(claim(6, 140)).await.unwrap().jobs;
        let at = Timestamp(150);
        for (claimed, cap) in jobs.iter().zip(["day", "day", "namespace"]) {
            let until = Timestamp(700 - i64::from(claimed.job.first.0));
            let wait = Some((Wait::Cap, until, format!("the cap of the {cap}")));
            store.release(claimed.lease, JobRelease { wait, charged: false }, at).await.unwrap();
        }
        for claimed in &jobs[3..5] {
            let kind = "malformed".to_owned();
            let asking = Digest::of(&["asking"]);
            let dead = JobEnding::Dead { kind, detail: "no JSON".to_owned(), asking };
            store.finish(claimed.lease, None, dead, at).await.unwrap();
        }
        let depth = store.depth(Timestamp(180)).await.unwrap();
        let told: Vec<_> =
            depth.open.iter().map(|it| (it.state, it.wait, it.jobs, it.until)).collect();
        let waiting =
            |wait, jobs, until| (JobState::Waiting, Some(wait), jobs, Some(Timestamp(until)));
        assert_eq!(
            told,
            [
                waiting(Wait::Gathering, 1, 190),
                waiting(Wait::Cap, 3, 698),
                (JobState::Ready, None, 1, None),
                (JobState::Leased, None, 1, Some(Timestamp(190))),
            ]
        );
        let caps: Vec<_> = depth.caps.iter().map(|it| (it.detail.as_deref(), it.jobs)).collect();
        assert_eq!(caps, [(Some("the cap of the day"), 2), (Some("the cap of the namespace"), 1)]);
        let millis = |it: Option<Duration>| it.map(|it| it.as_millis());
        assert_eq!(millis(depth.oldest()), Some(80));
        assert_eq!((millis(depth.lag()), millis(depth.gathering())), (Some(80), Some(50)));
        assert_eq!(depth.jobs_in(JobState::Waiting), 4);
        let dead = &depth.dead[0];
        assert_eq!((dead.kind.as_str(), dead.jobs, dead.since), ("malformed", 2, at));
        assert_eq!((dead.detail.as_deref(), depth.dead.len()), (Some("no JSON"), 1));
        assert_eq!((depth.expired, depth.waited), (None, None));
        let later = store.depth(Timestamp(190)).await.unwrap();
        let overdue = Some(Overdue { jobs: 1, since: Timestamp(190) });
        assert_eq!((later.expired, later.waited), (overdue, overdue));
    })
    .await;
}

#[tokio::test]
async fn a_cap_is_told_once_with_the_largest_amount_that_a_call_needs() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a", "b", "c", "d", "e"])).await.unwrap();
        let small = |what: &str| format!("limits.day is too small: one call {what}");
        let needs = [
            small("needs up to 9,999 tokens"),
            small("needs up to 10,000 tokens"),
            small("may cost $0.0700"),
            small("may cost $0.0090"),
            "limits.session_tokens_max is reached".to_owned(),
        ];
        for (claimed, need) in store.claim(claim(5, 140)).await.unwrap().jobs.iter().zip(&needs) {
            let wait = Some((Wait::Cap, Timestamp(700), need.clone()));
            let release = JobRelease { wait, charged: false };
            store.release(claimed.lease, release, Timestamp(150)).await.unwrap();
        }
        let depth = store.depth(Timestamp(180)).await.unwrap();
        let caps: Vec<_> = depth.caps.iter().map(|it| (it.detail.as_deref(), it.jobs)).collect();
        let of = |need: usize, jobs| (Some(needs[need].as_str()), jobs);
        assert_eq!(caps, [of(2, 2), of(1, 2), of(4, 1)]);
        assert_eq!(depth.lasting_caps().count(), 1);
    })
    .await;
}

#[tokio::test]
async fn nothing_is_stuck_while_a_worker_is_about() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a", "b"])).await.unwrap();
        store.claim(claim(1, 100)).await.unwrap();
        let silent = 1_000 * SILENT_SECS as i64;
        let depth = async |now| store.depth(Timestamp(now)).await.unwrap();
        assert_eq!(depth(149).await.stuck(), []);
        let leases = Stuck::Leases(Overdue { jobs: 1, since: Timestamp(150) });
        assert_eq!(depth(150).await.stuck(), [leases]);
        let ready = Stuck::Ready(Overdue { jobs: 1, since: Timestamp(100) });
        let now = 100 + silent;
        assert_eq!(depth(now).await.stuck(), [leases, ready]);
        present(&store, "gone", now - silent - 1, None).await;
        present(&store, "stopped", now, Some("set the key")).await;
        let with_none = depth(now).await;
        assert!(with_none.alive().next().is_none() && with_none.stuck().len() == 2);
        present(&store, "alive", now - silent, None).await;
        let with_one = depth(now).await;
        assert_eq!(with_one.alive().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["alive"]);
        assert!(with_one.stuck().is_empty() && with_one.needs_person(), "one has stopped");
        assert_eq!(depth(now + 1).await.stuck().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_worker_whose_process_ended_is_not_at_work_and_goes_with_its_leases() {
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    let (pid, name) = (ended.id(), process::name());
    ended.wait().unwrap();
    let gone = name.replace(&std::process::id().to_string(), &pid.to_string());
    let gone: &'static str = Box::leak(gone.into_boxed_str());
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        present(&store, gone, 100, None).await;
        let depth = store.depth(Timestamp(101)).await.unwrap();
        assert_eq!((depth.workers.len(), depth.alive().count() == 0), (1, process::is_gone(gone)));
        store.abandon_leases(vec![gone.to_owned()], Timestamp(101)).await.unwrap();
        assert!(store.depth(Timestamp(101)).await.unwrap().workers.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_wait_that_nobody_ends_is_stuck_after_a_while() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let gathering = Some(Gathering { job: job("a", (0, 0)), until: Timestamp(200) });
        let first = Intake { jobs: vec![], gathering, ..intake(&session, &["a"]) };
        store.enqueue(first).await.unwrap();
        let over = 200 + 1_000 * SILENT_SECS as i64;
        assert!(!store.depth(Timestamp(over - 1)).await.unwrap().needs_person());
        let waits = Stuck::Waits(Overdue { jobs: 1, since: Timestamp(200) });
        assert_eq!(store.depth(Timestamp(over)).await.unwrap().stuck(), [waits]);
    })
    .await;
}
