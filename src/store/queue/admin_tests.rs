use super::super::super::fixture::{entry, failed, on_each_store, staging};
use super::super::tests::{claim, intake, job, of};
use super::super::{ClaimRequest, Gathering, Intake, JobEnding, JobFilter, JobRelease};
use super::*;
use crate::domain::*;
use crate::domain::{Claimed, Coverage, Digest, Job, RunId, Session};
use crate::privacy::Redacted;
use crate::store::{JournalEntry, Staging, StoreErrorKind};
use proptest::prelude::*;

const NOW: Timestamp = Timestamp(100);

fn dead(kind: &str) -> JobEnding {
    let asking = Digest::of(&["asking"]);
    JobEnding::Dead { kind: kind.to_owned(), detail: "it did not work".to_owned(), asking }
}

/// Returns a run of the job's slice that covers exactly its entries.
fn came_to(session: &Session, job: &Job) -> Staging {
    let mut staging = staging(session, "run", job.first.0, &[]);
    staging.run.id = RunId(Digest::of(&["run", &job.id.to_string()]));
    (staging.run.slice, staging.run.first, staging.run.last) = (job.slice, job.first, job.last);
    staging.entries.retain(|it| it.entry.ordinal <= job.last.0);
    staging
}

async fn take(store: &Store) -> Claimed {
    store.claim(claim(1, NOW.0)).await.unwrap().jobs.remove(0)
}

async fn coverage(store: &Store) -> Coverage {
    let status = store.status().await.unwrap();
    assert!(status.sessions.iter().all(|it| it.entries.is_none() || it.is_balanced()));
    status.sessions[0].totals.coverage
}

async fn retry(store: &Store, id: JobId) -> JobChange {
    store.retry(JobSelection::Ids(vec![id]), NOW).await.unwrap().remove(0)
}

async fn cancel(store: &Store, id: JobId) -> JobChange {
    store.cancel(vec![id], NOW).await.unwrap().remove(0)
}

async fn dropped(store: &Store, id: JobId) -> JobChange {
    store.drop_jobs(JobSelection::Ids(vec![id])).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_dead_job_that_is_retried_is_asked_afresh_and_has_not_failed_any_more() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        let claimed = take(&store).await;
        let staged = Some(failed(came_to(&session, &claimed.job)));
        store.finish(claimed.lease, staged, dead("refused"), NOW).await.unwrap();
        assert_eq!(coverage(&store).await.failed, 1);
        let told = retry(&store, claimed.job.id).await;
        assert!(told.done && told.was == Some(JobState::Dead), "{told:?}");
        assert_eq!(told.reason.as_deref(), Some("refused"));
        let again = retry(&store, claimed.job.id).await;
        assert!(!again.done && again.was == Some(JobState::Ready), "{again:?}");
        assert_eq!(coverage(&store).await, Coverage { pending: 1, ..Coverage::default() });
        assert!(store.status().await.unwrap().failed.is_empty());
        let afresh = take(&store).await;
        assert_eq!((afresh.attempt, afresh.generation), (1, 1));
        let staged = Some(came_to(&session, &afresh.job));
        store.finish(afresh.lease, staged, JobEnding::Done, NOW).await.unwrap();
        assert_eq!(coverage(&store).await, Coverage { nothing: 1, ..Coverage::default() });
    })
    .await;
}

#[tokio::test]
async fn who_holds_a_cancelled_job_finds_the_commit_refused() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        let claimed = take(&store).await;
        for done in [true, false] {
            assert_eq!(cancel(&store, claimed.job.id).await.done, done);
        }
        assert_eq!(coverage(&store).await, Coverage { skipped: 1, ..Coverage::default() });
        let reasons = store.status().await.unwrap().sessions.remove(0).totals.reasons;
        assert_eq!(reasons, [((CoverageState::Skipped, CANCELLED.to_owned()), 1)].into());
        let lost = store.extend(vec![claimed.lease], Timestamp(900), NOW).await.unwrap();
        assert_eq!(lost, [claimed.job.id]);
        let refused = StoreErrorKind::LeaseLost(claimed.job.id);
        for _ in 0..2 {
            let staged = Some(came_to(&session, &claimed.job));
            let late = store.finish(claimed.lease, staged, JobEnding::Done, NOW).await;
            assert_eq!(late.unwrap_err().kind, refused);
            // A stale lease is refused even after the job was retried.
            assert!(
                retry(&store, claimed.job.id).await.done || coverage(&store).await.pending == 1
            );
        }
        // No answer is to be avoided: what was asked already is not asked again.
        assert_eq!(take(&store).await.generation, 0);
    })
    .await;
}

#[tokio::test]
async fn the_answers_about_a_cancelled_job_are_billed_once() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        let claimed = take(&store).await;
        let (digest, run) = (RequestDigest(Digest::of(&["asked"])), RunId(Digest::of(&["run"])));
        let usage = Usage { prompt_tokens: 100, cached_tokens: 0, completion_tokens: 10 };
        let reply = Reply {
            calls: vec![],
            content: Redacted::default(),
            refusal: None,
            finish: Finish::Stop,
            usage,
        };
        let answer = JournalEntry {
            digest,
            run,
            session: Some(session.id),
            model: "small".to_owned(),
            rung: OutputMode::Text,
            at: NOW,
            reply,
            bill: None,
            spare_bill: None,
        };
        store.journal(answer).await.unwrap();
        let bill = async || {
            let cost = |usage: Usage| usage.prompt_tokens + usage.completion_tokens;
            store.bill_cancelled(claimed.job.id, run, NOW, cost).await.unwrap();
            let lines = store.status().await.unwrap().bill;
            lines.iter().map(|it| (it.purpose, it.spent.cost_micros)).collect::<Vec<_>>()
        };
        // The job pays for its own answers as long as it goes on.
        assert_eq!(bill().await, []);
        cancel(&store, claimed.job.id).await;
        for _ in 0..2 {
            assert_eq!(bill().await, [(Purpose::Cancelled, 110)]);
        }
        assert!(store.journaled(digest).await.unwrap().unwrap().is_billed);
    })
    .await;
}

#[tokio::test]
async fn what_gathers_and_is_called_off_does_not_come_back_with_what_the_session_grows_by() {
    on_each_store(async |kind| {
        for keep in [true, false] {
            let (_place, store, session) = kind.begun().await;
            let gathering = Some(Gathering { job: job("a", (0, 0)), until: Timestamp(900) });
            let first = Intake { jobs: vec![], gathering, ..intake(&session, &["a"]) };
            store.enqueue(first).await.unwrap();
            let id = job("a", (0, 0)).id;
            let told = if keep { retry(&store, id).await } else { cancel(&store, id).await };
            assert!(told.done && told.reason.as_deref() == Some("gathering"), "{told:?}");
            let growth = store.growth(session.id).await.unwrap().unwrap();
            assert_eq!((growth.taken, growth.ends.as_slice()), (1, &[1][..]));
            let more =
                Intake { growth, entries: vec![entry(1)], known: 2, ..intake(&session, &[]) };
            let more = Intake { jobs: vec![job("b", (1, 1))], ..more };
            store.enqueue(more).await.unwrap();
            let ready = store.claim(claim(9, NOW.0)).await.unwrap().jobs.len();
            assert_eq!(ready, if keep { 2 } else { 1 });
            assert_eq!(coverage(&store).await.skipped, u64::from(!keep));
        }
    })
    .await;
}

#[tokio::test]
async fn a_job_that_waits_is_ready_at_once_and_its_attempts_count() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a"])).await.unwrap();
        let claimed = take(&store).await;
        let wait = Some((Wait::Cap, Timestamp(9_000), "day_tokens_max".to_owned()));
        store.release(claimed.lease, JobRelease { wait, charged: true }, NOW).await.unwrap();
        assert!(store.claim(claim(1, NOW.0)).await.unwrap().jobs.is_empty());
        assert!(retry(&store, claimed.job.id).await.done);
        let again = take(&store).await;
        assert_eq!((again.attempt, again.generation), (2, 0));
    })
    .await;
}

#[tokio::test]
async fn only_what_is_dead_or_cancelled_is_dropped_and_its_entries_stay_as_they_are() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        store.enqueue(intake(&session, &["a", "b", "c", "d"])).await.unwrap();
        let ids = ["a", "b", "c", "d"].map(|name| job(name, (0, 0)).id);
        let jobs = store.claim(claim(2, NOW.0)).await.unwrap().jobs;
        let run = |job: &Job| came_to(&session, job);
        store.finish(jobs[0].lease, Some(run(&jobs[0].job)), JobEnding::Done, NOW).await.unwrap();
        let staged = Some(failed(run(&jobs[1].job)));
        store.finish(jobs[1].lease, staged, dead("refused"), NOW).await.unwrap();
        cancel(&store, ids[2]).await;
        let before = coverage(&store).await;
        assert_eq!([before.nothing, before.failed, before.skipped, before.pending], [1; 4]);
        let states = [JobState::Done, JobState::Dead, JobState::Cancelled, JobState::Ready];
        for (id, was) in ids.into_iter().zip(states) {
            let told = dropped(&store, id).await;
            let may = matches!(was, JobState::Dead | JobState::Cancelled);
            assert_eq!((told.was, told.done), (Some(was), may));
            assert_eq!(dropped(&store, id).await.was, (!may).then_some(was));
        }
        assert_eq!(coverage(&store).await, before);
    })
    .await;
}

#[tokio::test]
async fn of_all_that_are_dead_those_of_a_kind_and_a_namespace_are_meant() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        for (namespace, kinds) in [("x", ["refused", "malformed"]), ("y", ["refused", "refused"])] {
            let names = kinds.iter().enumerate().map(|(n, kind)| format!("{namespace}{n}{kind}"));
            let names: Vec<String> = names.collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            store.enqueue(intake(&of(namespace, namespace), &names)).await.unwrap();
            for claimed in store.claim(claim(9, NOW.0)).await.unwrap().jobs {
                let kind = kinds[claimed.job.first.0 as usize];
                store.finish(claimed.lease, None, dead(kind), NOW).await.unwrap();
            }
        }
        let which = |kind: Option<&str>, namespace: Option<&str>| JobSelection::Dead {
            kind: kind.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
        };
        let retry = |which| async { store.retry(which, NOW).await.unwrap().len() };
        assert_eq!(retry(which(Some("refusal"), None)).await, 0);
        assert_eq!(retry(which(Some("refused"), Some("x"))).await, 1);
        assert_eq!(retry(which(Some("refused"), None)).await, 2);
        assert_eq!(retry(which(None, Some("y"))).await, 0);
        let gone = store.drop_jobs(which(None, Some("x"))).await.unwrap();
        assert_eq!(
            gone.iter().map(|it| it.reason.as_deref()).collect::<Vec<_>>(),
            [Some("malformed")]
        );
        assert_eq!(retry(which(None, None)).await, 0);
        assert!(store.drop_jobs(JobSelection::Cancelled).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn an_entry_in_two_dead_jobs_has_failed_until_both_are_opened() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let names = ["a", "b"];
        let mut jobs: Vec<Job> = names.iter().map(|name| job(name, (0, 0))).collect();
        jobs[1].first.1 = 1;
        let both = Intake { jobs, known: 1, entries: vec![entry(0)], ..intake(&session, &names) };
        store.enqueue(both).await.unwrap();
        for now in [100, 200, 300, 400] {
            store.claim(claim(9, now)).await.unwrap();
        }
        assert_eq!(coverage(&store).await.failed, 1);
        retry(&store, job("a", (0, 0)).id).await;
        assert_eq!(coverage(&store).await.failed, 1);
        retry(&store, job("b", (0, 0)).id).await;
        assert_eq!(coverage(&store).await.pending, 1);
    })
    .await;
}

/// An event in a queue; numbers are indices modulo the number of jobs.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Adds entries in so many jobs. Flags: first starts within the last entry, last gathers.
    Grow(u32, bool, bool),
    ClaimRequest,
    Done(usize),
    Dead(usize),
    JobRelease(usize),
    /// Workers that hold leases never return.
    Vanish,
    Retry(usize),
    Cancel(usize),
    Drop(usize),
    RetryAll,
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        (1..3u32, any::<bool>(), any::<bool>())
            .prop_map(|(n, cut, last)| Event::Grow(n, cut, last)),
        Just(Event::ClaimRequest),
        Just(Event::ClaimRequest),
        (0..4usize).prop_map(Event::Done),
        (0..4usize).prop_map(Event::Dead),
        (0..4usize).prop_map(Event::JobRelease),
        Just(Event::Vanish),
        (0..9usize).prop_map(Event::Retry),
        (0..9usize).prop_map(Event::Cancel),
        (0..9usize).prop_map(Event::Drop),
        Just(Event::RetryAll),
    ]
}

struct Life {
    store: Store,
    session: Session,
    held: Vec<Claimed>,
    jobs: u32,
    now: i64,
}

impl Life {
    async fn all(&self) -> Vec<JobId> {
        let filter = JobFilter { states: JobState::ALL.to_vec(), ..JobFilter::default() };
        self.store.jobs(filter).await.unwrap().into_iter().map(|it| it.id).collect()
    }

    fn hold(&mut self, at: usize) -> Option<Claimed> {
        (!self.held.is_empty()).then(|| self.held.remove(at % self.held.len()))
    }

    async fn grow(&mut self, jobs: u32, cut: bool, gathers: bool) {
        let growth = self.store.growth(self.session.id).await.unwrap().unwrap();
        // The gathering slice is cut again; a slice may start where the previous one ended.
        let mut at = growth.taken;
        let mut made = Vec::new();
        for n in 0..jobs {
            let first = if cut && n == 0 { at.saturating_sub(1) } else { at };
            self.jobs += 1;
            let last = if n + 1 == jobs { (at + 1).max(growth.entries.max(1) - 1) } else { at + 1 };
            made.push(job(&format!("j{}", self.jobs), (first, last)));
            at = last + 1;
        }
        let last = gathers.then(|| made.pop()).flatten();
        let known = at;
        self.store
            .enqueue(Intake {
                entries: (growth.taken..known).map(entry).collect(),
                known,
                gathering: last.map(|job| Gathering { job, until: Timestamp(self.now + 70) }),
                jobs: made,
                growth,
                ..intake(&self.session, &[])
            })
            .await
            .unwrap();
    }

    async fn finish(&mut self, at: usize, fails: bool) {
        let Some(claimed) = self.hold(at) else { return };
        let run = came_to(&self.session, &claimed.job);
        let (run, ending) =
            if fails { (failed(run), dead("refused")) } else { (run, JobEnding::Done) };
        // The lease may be lost by now; then nothing is written.
        let _ = self.store.finish(claimed.lease, Some(run), ending, Timestamp(self.now)).await;
    }

    async fn steer(&self, event: Event) {
        let (store, now, all) = (&self.store, Timestamp(self.now), self.all().await);
        let one = |at: usize| all.get(at % all.len().max(1)).copied().into_iter().collect();
        let order = match event {
            Event::Retry(at) => store.retry(JobSelection::Ids(one(at)), now).await,
            Event::Cancel(at) => store.cancel(one(at), now).await,
            Event::Drop(at) => store.drop_jobs(JobSelection::Ids(one(at))).await,
            Event::Grow(..)
            | Event::ClaimRequest
            | Event::Done(_)
            | Event::Dead(_)
            | Event::JobRelease(_)
            | Event::Vanish
            | Event::RetryAll => {
                store.retry(JobSelection::Dead { kind: None, namespace: None }, now).await
            }
        };
        order.unwrap();
    }

    async fn happen(&mut self, event: Event) {
        self.now += 1;
        let now = self.now;
        match event {
            Event::Grow(jobs, cut, gathers) => self.grow(jobs, cut, gathers).await,
            Event::ClaimRequest => {
                let claims = self.store.claim(ClaimRequest { attempts_max: 2, ..claim(2, now) });
                self.held.extend(claims.await.unwrap().jobs);
            }
            Event::Done(at) => self.finish(at, false).await,
            Event::Dead(at) => self.finish(at, true).await,
            Event::JobRelease(at) => {
                let Some(claimed) = self.hold(at) else { return };
                let release = JobRelease { wait: None, charged: true };
                let _ = self.store.release(claimed.lease, release, Timestamp(now)).await;
            }
            Event::Vanish => self.now += 60,
            Event::Retry(_) | Event::Cancel(_) | Event::Drop(_) | Event::RetryAll => {
                self.steer(event).await;
            }
        }
    }

    async fn dump(&self) -> String {
        let filter = JobFilter { states: JobState::ALL.to_vec(), ..JobFilter::default() };
        let jobs = self.store.jobs(filter).await.unwrap();
        format!("{jobs:?} {:?}", self.store.status().await.unwrap())
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(16))]

    #[test]
    fn totals_balance_whatever_happens_and_orders_given_twice_are_orders_given_once(
        events in prop::collection::vec(events(), 1..30),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(on_each_store(async |kind| {
            let (_place, store, session) = kind.begun().await;
            let mut life = Life { store, session, held: vec![], jobs: 0, now: 100 };
            life.grow(2, false, false).await;
            for event in events.iter().copied() {
                life.happen(event).await;
                let status = life.store.status().await.unwrap();
                let one = &status.sessions[0];
                assert!(one.is_balanced(), "{event:?}: {:?} {:?}", one.entries, one.totals.coverage);
                let open = life.store.depth(Timestamp(life.now)).await.unwrap().open;
                assert!(!open.is_empty() || one.totals.coverage.pending == 0, "{event:?}: {open:?}");
                if matches!(event, Event::Cancel(_) | Event::Retry(_) | Event::RetryAll) {
                    let before = life.dump().await;
                    life.steer(event).await;
                    assert_eq!(life.dump().await, before, "{event:?}");
                }
            }
        }));
    }
}
