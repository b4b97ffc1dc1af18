//! The memory directory: 300 records and 300 sessions beside the files at the top.

use annalist::{
    Claim, Decision, Digest, Memory, MemoryId, MemoryState, SessionId, Speaker, Stage, Timestamp,
};
use annalist::{
    DirectoryFacts, DirectoryFileKind, DirectoryFiles, DirectoryQuery, InitialDirectory,
    LintOptions, MemoryDocument, SessionNote, initial_directory_files, lint_directory,
    render_directory, search_directory, update_directory,
};
use annalist::{Gate, Pii, Redacted};
use criterion::{Criterion, Throughput, criterion_group};
use std::hint::black_box;

criterion_group!(directory, memory_dir);

/// Records, and sessions.
const MANY: usize = 300;
const DAY_MILLIS: i64 = 86_400_000;
/// 2026-11-21.
const TODAY: Timestamp = Timestamp(1_795_219_200_000);

fn day(n: usize) -> Timestamp {
    Timestamp(TODAY.0 - (MANY - n) as i64 * DAY_MILLIS)
}

fn memory(n: usize) -> Memory {
    let options =
        vec![format!("Keep service {n} on the queue"), format!("Call service {n} at once")];
    let rationale =
        format!("Service {n} is away at night, and nobody waits for its answer before {n}");
    let chosen = options[0].clone();
    Memory {
        id: MemoryId(Digest::of(&[&n.to_string()])),
        namespace: "bench".into(),
        claim: Claim::Decision(Decision { options, chosen, rationale }),
        stage: Stage::Decided,
        state: MemoryState::Active,
        said_by: Speaker::Person,
        confirmed: false,
        edited: None,
        decided: None,
        valid_from: Some(day(n)),
        last_said: None,
        valid_until: None,
        superseded_by: None,
        settled_by: None,
        settled_as: None,
        ends: None,
        reason: None,
        sources: Vec::new(),
    }
}

fn note(n: usize) -> SessionNote {
    SessionNote {
        id: SessionId(Digest::of(&["session", &n.to_string()])),
        began: day(n),
        ended: None,
        topic: Some(Redacted::reopened(format!("service {n}"))),
        memories: vec![memory(n).id],
    }
}

fn memory_dir(c: &mut Criterion) {
    let gate = Gate::new(&Pii::ALL);
    let memories: Vec<Memory> = (0..MANY).map(memory).collect();
    let sessions: Vec<SessionNote> = (0..MANY).map(note).collect();
    let facts = DirectoryFacts {
        memories: &memories,
        sessions: &sessions,
        contradictions: &[],
        missing: &[],
        last: &Default::default(),
        today: TODAY,
        gate: &gate,
    };
    let rendered = render_directory(&facts, &DirectoryFiles::new(), &DirectoryFiles::new());
    let base = rendered.files.clone();
    let mut disk = base.clone();
    for (path, text) in initial_directory_files(InitialDirectory::All, "2026-11-21") {
        disk.entry(path.to_owned()).or_insert(text.into());
    }
    let bytes: usize = disk.values().map(|text| text.len()).sum();
    let mut group = c.benchmark_group("memory_dir");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("parse", |b| {
        b.iter(|| {
            let blocks = disk.iter().map(|(path, text)| {
                MemoryDocument::parse(DirectoryFileKind::of_path(path), black_box(text))
                    .0
                    .blocks
                    .len()
            });
            blocks.sum::<usize>()
        });
    });
    let query =
        DirectoryQuery { words: "queue host night 217".to_owned(), ..DirectoryQuery::default() };
    group
        .bench_function("search", |b| b.iter(|| search_directory(black_box(&disk), &query, &gate)));
    group.bench_function("render", |b| b.iter(|| render_directory(&facts, &base, &disk)));
    group.bench_function("update", |b| b.iter(|| update_directory(&base, &rendered, &disk, &gate)));
    let (files, rendered) = (&disk, &rendered.files);
    let linting = LintOptions { files, known: None, rendered, today: TODAY, gate: &gate };
    group.bench_function("lint", |b| b.iter(|| lint_directory(&linting)));
    group.finish();
}
