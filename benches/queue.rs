//! The queue as whole runs, durable, with figures: `cargo bench --bench queue -- enqueue`. Each run has a
//! store of its own in a temporary folder, or the one that `--store URL` names.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its figures")]

use annalist::domain::{
    Branch, Digest, Entry, EntryKind, Format, Job, JobId, Session, SliceId, Speaker, Timestamp,
};
use annalist::edge::store::{Growth, Intake, Open, Store};
use annalist::privacy::{Redacted, Report};
use std::error::Error;
use std::time::Instant;

/// What is enqueued unless the command line says otherwise.
const JOBS: u32 = 100_000;
/// Sessions that are handed over in one transaction.
const BATCH: usize = 512;

type Outcome = Result<(), Box<dyn Error>>;

/// What a run works with.
struct Bench {
    store: Store,
    jobs: u32,
    /// Jobs of one session.
    each: u32,
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
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("queue.db").display());
    let store = Store::open(&value("--store").unwrap_or(url), Open::Create)?;
    let jobs = number("--jobs", if test { 100 } else { JOBS });
    let bench = Bench { store, jobs, each: number("--each", 1) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match args.first().map(String::as_str) {
        Some("enqueue") => runtime.block_on(enqueue(&bench)),
        _ if test => runtime.block_on(enqueue(&bench)),
        _ => {
            eprintln!("usage: queue enqueue [--jobs N] [--each JOBS_OF_ONE_SESSION] [--store URL]");
            Ok(())
        }
    }
}

/// Hands over small jobs in batches and says how many a second.
async fn enqueue(bench: &Bench) -> Outcome {
    let sessions = bench.jobs / bench.each;
    let intakes: Vec<Intake> = (0..sessions).map(|number| intake(number, bench.each)).collect();
    let mut batches: Vec<Vec<Intake>> = Vec::new();
    for intake in intakes {
        match batches.last_mut().filter(|batch| batch.len() < BATCH) {
            Some(batch) => batch.push(intake),
            None => batches.push(vec![intake]),
        }
    }
    let (started, mut added) = (Instant::now(), 0);
    for batch in batches {
        let taken = bench.store.enqueue_all(batch).await?;
        added += taken.iter().flatten().map(|enqueued| u64::from(enqueued.jobs)).sum::<u64>();
    }
    let secs = started.elapsed().as_secs_f64();
    println!(
        "enqueue: {added} jobs, {} a session: {secs:.2} s, {:.0} jobs/s",
        bench.each,
        added as f64 / secs
    );
    Ok(())
}

/// A session of `jobs` jobs of two entries.
fn intake(number: u32, jobs: u32) -> Intake {
    let name = format!("session-{number}");
    let session = Session {
        id: Session::id_of("bench", Format::Openai, &name),
        namespace: "bench".to_owned(),
        format: Format::Openai,
        native_id: Redacted::reopened(name),
        path: "bench.jsonl".to_owned(),
        title: None,
        cwd: None,
        parent: None,
        started_at: Some(Timestamp(0)),
    };
    let job = |index: u32| {
        let slice = Digest::of(&["slice", &session.id.to_string(), &index.to_string()]);
        Job {
            id: JobId(Digest::of(&["job", &slice.to_string()])),
            slice: SliceId(slice),
            index,
            first: (2 * index, 0),
            last: (2 * index + 1, 0),
            tokens: 40,
            cut: format!("[{index},[[{},{}]]]", 2 * index, 2 * index + 1),
        }
    };
    Intake {
        growth: Growth::default(),
        anew: None,
        entries: (0..2 * jobs).map(entry).collect(),
        known: 2 * jobs,
        goes_on: false,
        jobs: (0..jobs).map(job).collect(),
        gathering: None,
        priority: 0,
        document: None,
        findings: Vec::new(),
        masked: Report::default(),
        at: Timestamp(0),
        session,
    }
}

fn entry(ordinal: u32) -> Entry {
    let (speaker, kind) = match ordinal % 2 {
        0 => (Speaker::Person, EntryKind::Prompt),
        _ => (Speaker::Assistant, EntryKind::Text),
    };
    let text =
        format!("Line {ordinal}: we keep the queue in the store, since one thing less runs then.");
    Entry {
        ordinal,
        line: ordinal + 1,
        native_id: None,
        speaker,
        kind,
        branch: Branch::Active,
        text: Redacted::reopened(text),
        tool: None,
        outcome: None,
        exit_code: None,
        at: None,
        skip: None,
    }
}
