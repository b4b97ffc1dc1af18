//! How many slices a second the store stages: `cargo bench --bench store -- URL`. Eight hand over at
//! once, as workers do; a slice has five entries and three records. Durability is the store's own.

use annalist::domain::{
    Attempt, Branch, Claim, CoverageState, Digest, Entry, EntryKind, Evidence, Format, Match,
    Provenance, Record, RecordState, RunId, RunState, Rung, Session, SliceId, Speaker, Timestamp,
    Usage,
};
use annalist::edge::store::{Covered, Open, Run, Staging, Store, StoreError};
use annalist::privacy::{Gate, Redacted};
use std::time::Instant;

const TASKS: u32 = 8;
const SLICES: u32 = 2_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds flags of its own; as a test there is nothing to do.
    let mut urls: Vec<String> =
        std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    if std::env::args().any(|it| it == "--test") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    if urls.is_empty() {
        urls.push(format!("sqlite:{}", folder.path().join("bench.db").display()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for url in urls {
        let store = Store::open(&url, Open::Create)?;
        runtime.block_on(measure(&store))?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "what was measured")]
async fn measure(store: &Store) -> Result<(), StoreError> {
    for round in 0..3 {
        let mut all: Vec<Vec<Staging>> = Vec::new();
        for task in 0..TASKS {
            let name = format!("{round}-{task}-{}", std::process::id());
            let session = conversation(&name);
            store.begin_session(&session).await?;
            all.push((0..SLICES / TASKS).map(|n| staging(&session, &name, n)).collect());
        }
        let begun = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for stagings in all {
            let store = store.clone();
            tasks.spawn(async move {
                for staging in stagings {
                    store.stage(staging).await?;
                }
                Ok::<(), StoreError>(())
            });
        }
        for staged in tasks.join_all().await {
            staged?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!("{}: {:.0} stages/s", store.place(), f64::from(SLICES) / seconds);
    }
    Ok(())
}

fn words(text: &str) -> Redacted {
    Gate::new(&[]).redact(text)
}

fn conversation(name: &str) -> Session {
    Session {
        id: Session::id_of("bench", Format::Codex, name),
        namespace: "bench".to_owned(),
        format: Format::Codex,
        native_id: words(name),
        path: format!("{name}.jsonl"),
        title: None,
        cwd: None,
        parent: None,
        started_at: Some(Timestamp(1_000)),
    }
}

fn entry(ordinal: u32) -> Entry {
    Entry {
        ordinal,
        line: ordinal + 1,
        native_id: Some(words("n")),
        speaker: Speaker::Assistant,
        kind: EntryKind::Text,
        branch: Branch::Active,
        text: words(&"the pump of this line runs again, and nobody knows why. ".repeat(8)),
        tool: None,
        outcome: None,
        exit_code: None,
        at: Some(Timestamp(2_000)),
        skip: None,
    }
}

/// The slice with number `n` of a session: five entries, three records.
fn staging(session: &Session, name: &str, n: u32) -> Staging {
    let (first, last) = (n * 5, n * 5 + 4);
    let slice = SliceId(Digest::of(&[name, &n.to_string(), "slice"]));
    let id = RunId(Digest::of(&[name, &n.to_string()]));
    let record = |number: u32| {
        let claim = Claim::Attempt(Attempt {
            action: format!("raise the pressure {number}"),
            result: "it ran for an hour and then stopped again".to_owned(),
            succeeded: false,
        });
        let proof = Evidence {
            field: "action".to_owned(),
            ordinal: first,
            line: first + 1,
            bytes: 4..8,
            speaker: Speaker::Assistant,
            found: Match::Folded,
            words: words("the pump"),
        };
        Record {
            id: Record::id_of(id, &claim),
            claim,
            provenance: Provenance {
                namespace: session.namespace.clone(),
                session: session.id,
                slice,
                run: id,
                entries: (first, last),
                at: Some(Timestamp(2_000)),
            },
            evidence: vec![proof],
            score: 0.75,
            state: RecordState::Staged,
            reason: None,
        }
    };
    let run = Run {
        id,
        session: session.id,
        slice,
        index: n,
        first: (first, 0),
        last: (last, 0),
        asking: Digest::of(&["asking"]),
        model: "small".to_owned(),
        prompt_id: "extract".to_owned(),
        prompt_version: 3,
        schema_version: 1,
        rung: Rung::ForcedTool,
        generation: 0,
        asks: 1,
        calls: 1,
        usage: Usage { prompt_tokens: 100, cached_tokens: 50, completion_tokens: 10 },
        cost_micros: 7,
        state: RunState::Done,
        failure: None,
        findings: vec![],
        started_at: Timestamp(5_000),
        finished_at: Timestamp(6_000),
    };
    let covered =
        |ordinal| Covered { entry: entry(ordinal), state: CoverageState::Extracted, reason: None };
    Staging {
        run,
        entries: (first..=last).map(covered).collect(),
        records: (0..3).map(record).collect(),
    }
}
