//! The queue as whole runs, durable, with figures: `cargo bench --bench queue -- enqueue`. Each run has a
//! store of its own in a temporary folder, or the empty one that `--store URL` names.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its figures")]

mod material;

use annalist::{ClaimRequest, ClaimedJobs, JobEnding, OpenMode, Staging, Store, StoreError};
use annalist::{Claimed, Timestamp};
use std::error::Error;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const USAGE: &str = "\
usage: queue enqueue [--jobs N] [--each JOBS_OF_ONE_SESSION] [--store URL]
       queue finish  [--jobs N] [--concurrency N] [--store URL]
       queue latency [--jobs N] [--store URL]";
/// Sessions that are handed over at once; the writer groups what waits into one commit.
const BATCH: usize = 512;
/// How many jobs one process works on at once.
const CONCURRENCY: u32 = 64;
/// ClaimedJobs of one job whose time is taken.
const CLAIMS: usize = 500;

type Outcome = Result<(), Box<dyn Error>>;

/// What a run works with.
struct Bench {
    store: Store,
    jobs: u32,
    /// Jobs of one session.
    each: u32,
    concurrency: u32,
}

fn main() -> Outcome {
    // `cargo bench` adds a flag of its own; `cargo bench -- --test` wants to see that it runs.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)).cloned()
    };
    let test = args.iter().any(|arg| arg == "--test");
    let number = |name: &str, otherwise: u32| {
        value(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let run = match (args.first().map(String::as_str), test) {
        (Some(run @ ("enqueue" | "finish" | "latency")), _) => run,
        (_, true) => "finish",
        _ => {
            eprintln!("{USAGE}");
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("queue.db").display());
    let store = Store::open(&value("--store").unwrap_or(url), OpenMode::Create)?;
    let jobs = match (run, test) {
        (_, true) => 100,
        ("enqueue", _) => 100_000,
        ("finish", _) => 20_000,
        _ => 1_000_000,
    };
    let bench = Bench {
        store,
        jobs: number("--jobs", jobs),
        each: number("--each", 1).max(1),
        concurrency: number("--concurrency", CONCURRENCY).max(1),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match run {
            "enqueue" => {
                let took = bench.enqueue(0..bench.jobs / bench.each).await?;
                say(&format!("enqueue, {} a session", bench.each), bench.jobs, took);
                Ok(())
            }
            "finish" => bench.finish_all().await,
            _ => bench.latency().await,
        }
    })
}

fn say(what: &str, jobs: u32, took: Duration) {
    let secs = took.as_secs_f64();
    println!("{what}: {jobs} jobs in {secs:.2} s, {:.0} jobs/s", f64::from(jobs) / secs);
}

impl Bench {
    /// Hands over sessions of small jobs in batches, and gives how long that took.
    async fn enqueue(&self, sessions: std::ops::Range<u32>) -> Result<Duration, StoreError> {
        let wanted = sessions.len() * self.each as usize;
        let intakes = sessions.map(|number| material::intake(number, self.each));
        let mut batches: Vec<Vec<_>> = Vec::new();
        for intake in intakes {
            match batches.last_mut().filter(|batch| batch.len() < BATCH) {
                Some(batch) => batch.push(intake),
                None => batches.push(vec![intake]),
            }
        }
        let (started, mut added) = (Instant::now(), 0);
        for batch in batches {
            let mut tasks = JoinSet::new();
            for intake in batch {
                let store = self.store.clone();
                tasks.spawn(async move { store.enqueue(intake).await });
            }
            for taken in tasks.join_all().await {
                added += taken?.jobs as usize;
            }
        }
        let took = started.elapsed();
        assert_eq!(added, wanted, "the store was not empty");
        Ok(took)
    }

    /// ClaimedJobs jobs and ends each with three records, as a worker whose endpoint answers at once.
    async fn finish_all(&self) -> Outcome {
        self.enqueue(0..self.jobs).await?;
        let stagings = (0..self.jobs).map(|number| (material::job_id(number), number)).collect();
        let stagings: std::collections::HashMap<_, _> = stagings;
        let started = Instant::now();
        let ended = self
            .work(|claimed| stagings.get(&claimed.job.id).map(|&number| material::staging(number)))
            .await?;
        let took = started.elapsed();
        assert_eq!(ended, self.jobs, "every job was ended");
        say(&format!("{}: claim and finish", self.store.place()), ended, took);
        Ok(())
    }

    /// Works until nothing is ready; gives how many jobs were ended.
    async fn work(&self, staging: impl Fn(&Claimed) -> Option<Staging>) -> Result<u32, StoreError> {
        let (mut working, mut ended) = (JoinSet::new(), 0);
        loop {
            let room = self.concurrency.saturating_sub(working.len() as u32);
            let ClaimedJobs { jobs, .. } = self.store.claim(claim(room)).await?;
            for claimed in jobs {
                let (store, staging) = (self.store.clone(), staging(&claimed));
                working.spawn(async move {
                    store.finish(claimed.lease, staging, JobEnding::Done, Timestamp(2)).await
                });
            }
            let Some(first) = working.join_next().await else { return Ok(ended) };
            let mut next = Some(first);
            while let Some(done) = next.take() {
                done.unwrap_or_else(|died| std::panic::resume_unwind(died.into_panic()))?;
                ended += 1;
                next = working.try_join_next();
            }
        }
    }

    /// How long a claim takes with ever more finished jobs in the table, and some thousand that are
    /// ready.
    async fn latency(&self) -> Outcome {
        let (mut finished, mut next) = (0, 0);
        for goal in [1_000, 10_000, 100_000, 1_000_000] {
            if self.jobs < goal {
                break;
            }
            // In parts, so that what is ready is as much at every goal.
            while finished < goal {
                let part = (goal - finished).min(20_000);
                self.enqueue(next..next + part).await?;
                (finished, next) = (finished + self.work(|_| None).await?, next + part);
            }
            self.enqueue(next..next + 2 * CLAIMS as u32).await?;
            next += 2 * CLAIMS as u32;
            let mut times = Vec::with_capacity(CLAIMS);
            for _ in 0..CLAIMS {
                let started = Instant::now();
                let claims = self.store.claim(claim(1)).await?;
                times.push(started.elapsed());
                assert_eq!(claims.jobs.len(), 1);
                for claimed in claims.jobs {
                    self.store.finish(claimed.lease, None, JobEnding::Done, Timestamp(2)).await?;
                }
            }
            times.sort();
            println!(
                "{}: {finished} finished: a claim takes {:?} (median), {:?} (99 of 100)",
                self.store.place(),
                times[CLAIMS / 2],
                times[CLAIMS * 99 / 100]
            );
            finished += self.work(|_| None).await? + CLAIMS as u32;
        }
        Ok(())
    }
}

fn claim(jobs_max: u32) -> ClaimRequest {
    ClaimRequest {
        holder: "bench".to_owned(),
        jobs_max,
        until: Timestamp(60_000),
        attempts_max: 5,
        batch: None,
        now: Timestamp(1),
    }
}
