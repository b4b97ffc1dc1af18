//! One group a stage of the line, on inputs made here, so that figures compare from commit to
//! commit. `cargo bench -- --test` runs each once.

mod beside;
mod context;
mod directory;

use annalist::Prompts;
use annalist::ground_claims;
use annalist::{Claim, Digest, Entry, Format, OutputMode, Provenance, RunId, Session, Slice};
use annalist::{Cutting, SliceSettings, Slicer};
use annalist::{ExtractionExchange, ExtractionSpec, decode_answer, validate_answer};
use annalist::{Gate, Pii, RedactionReport};
use annalist::{
    RawSession, SessionSource, TranscriptItem, read_transcript, redact_entry, redact_session,
};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write;
use std::hint::black_box;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A session of Claude Code, 40 kB, 34 entries.
const SESSION: &[u8] = include_bytes!("../../examples/sessions/claude-code-queue.jsonl");
/// An answer about it.
const ANSWER: &str = include_str!("../../examples/answers/claude-code-queue.json");
/// What the gate reads at once, in bytes: a long tool output.
const TEXT_BYTES: usize = 256 * 1024;
/// How often the session is read in a row, as one file.
const REPEATS: usize = 25;
/// The product's own settings.
const SETTINGS: SliceSettings = SliceSettings { tokens: 6_000, tool_tokens: 1_000 };

/// `TEXT_BYTES` of lines that `line` writes for 0, 1, 2 …
fn text(line: impl Fn(&mut String, u64)) -> String {
    let mut text = String::with_capacity(TEXT_BYTES + 200);
    // Each step spreads the number over all digits: nothing repeats, and every run is the same.
    let numbers = (1_u64..).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for number in numbers {
        line(&mut text, number);
        if text.len() >= TEXT_BYTES {
            break;
        }
    }
    text
}

fn code(to: &mut String, n: u64) {
    let (a, b) = (n % 97, n % 89);
    let _ = writeln!(
        to,
        "    let token_{a} = self.keys.get(&\"k{b}\").map(|key| key.len() + {a});\n    \
         assert_eq!(parse(\"path/to/file_{b}.rs\")?, Some(Entry {{ id: {a}, password: None }}));"
    );
}

fn prose(to: &mut String, n: u64) {
    const WORDS: [&str; 12] = [
        "the", "queue", "lost", "jobs", "because", "nobody", "kept", "them", "until", "morning",
        "came", "quietly",
    ];
    for shift in 0..12 {
        let word = WORDS.get((n >> (shift * 5)) as usize % WORDS.len()).copied();
        to.push_str(word.unwrap_or_default());
        to.push(' ');
    }
    to.push_str("– and so it went.\n");
}

fn digits(to: &mut String, n: u64) {
    let _ = writeln!(to, "{},{:.3},{n:016x},2026-11-{:02}", n % 100_000, n as f64, n % 28 + 1);
}

fn gate(c: &mut Criterion) {
    let gate = Gate::new(&Pii::ALL);
    let mut group = c.benchmark_group("gate");
    for (name, text) in [("code", text(code)), ("prose", text(prose)), ("digits", text(digits))] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| b.iter(|| gate.redact(black_box(&text))));
    }
    group.finish();
}

/// The session `REPEATS` times in a row, each time with ids of its own: copies would be passed over.
fn long_session() -> Vec<u8> {
    let once = String::from_utf8_lossy(SESSION);
    let once = once.replace("4c691f44-7f5a-4f7b-99dc-344c4594a203", "bench-session");
    (0..REPEATS).flat_map(|n| once.replace("-4", &format!("-{n:02}")).into_bytes()).collect()
}

fn read(c: &mut Criterion) {
    let bytes = long_session();
    let mut group = c.benchmark_group("read");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("claude-code", |b| {
        b.iter(|| {
            let mut items = 0;
            let count = &mut |item: TranscriptItem| {
                black_box(item);
                items += 1;
                ControlFlow::Continue(())
            };
            let read = read_transcript(Format::ClaudeCode, Cursor::new(&bytes), count);
            assert!(read.is_ok() && items > 30 * REPEATS, "no copy is passed over: {items}");
            items
        });
    });
    group.finish();
}

/// The session and its entries, behind the gate.
fn sealed() -> (Session, Vec<Entry>) {
    let (gate, mut report) = (Gate::new(&Pii::ALL), RedactionReport::default());
    let (mut head, mut entries) = (RawSession::default(), Vec::new());
    let read = read_transcript(Format::ClaudeCode, Cursor::new(SESSION), &mut |item| {
        match item {
            TranscriptItem::Session(raw) => head = raw,
            TranscriptItem::Entry(raw) => {
                let ordinal = entries.len() as u32;
                entries.push(redact_entry(raw, ordinal, &gate, &mut report));
            }
            TranscriptItem::Finding(_) => {}
        }
        ControlFlow::Continue(())
    });
    assert!(read.is_ok());
    let path = "claude-code-queue.jsonl";
    let source = SessionSource { namespace: "bench", format: Format::ClaudeCode, path };
    (redact_session(head, source, &gate, &mut report), entries)
}

/// The session, `REPEATS` times in a row, cut.
fn cut(session: &Session, entries: Vec<Entry>) -> Vec<Cutting> {
    let mut slicer = Slicer::new(session.id, SETTINGS, Default::default());
    let mut slices = Vec::new();
    entries.into_iter().for_each(|entry| slices.extend(slicer.push(entry)));
    slices.extend(slicer.finish());
    slices
}

fn slice(c: &mut Criterion) {
    let (session, once) = sealed();
    let mut entries: Vec<Entry> = (0..REPEATS).flat_map(|_| once.clone()).collect();
    (0..).zip(&mut entries).for_each(|(ordinal, entry)| entry.ordinal = ordinal);
    let bytes: usize = entries.iter().map(|entry| entry.text.len()).sum();
    let mut group = c.benchmark_group("slice");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("session", |b| {
        b.iter_batched(|| entries.clone(), |entries| cut(&session, entries), BatchSize::LargeInput);
    });
    group.finish();
}

fn whole() -> Slice {
    let (session, entries) = sealed();
    let first = cut(&session, entries).into_iter().next();
    first.map(|cutting| cutting.slice).unwrap_or_else(|| unreachable!("the session has entries"))
}

fn request(c: &mut Criterion) {
    let (slice, prompts) = (whole(), Arc::new(Prompts::built_in()));
    let asking = Arc::new(ExtractionSpec::new("bench", "English", prompts));
    let mut group = c.benchmark_group("request");
    group.throughput(Throughput::Elements(1));
    group.bench_function("start", |b| {
        b.iter(|| {
            ExtractionExchange::start(&asking, black_box(&slice), None, OutputMode::ForcedTool, 0)
        });
    });
    group.bench_function("digest", |b| {
        let (_, request) =
            ExtractionExchange::start(&asking, &slice, None, OutputMode::ForcedTool, 0);
        b.iter(|| request.digest());
    });
    group.finish();
}

/// The arguments that a model would hand over.
fn arguments() -> String {
    let (file, _) = decode_answer(ANSWER);
    file.get("arguments").unwrap_or(&file).to_string()
}

fn claims() -> Vec<Claim> {
    let claims = validate_answer(decode_answer(&arguments()).0).claims;
    assert!(!claims.is_empty());
    claims
}

fn answer(c: &mut Criterion) {
    let whole = arguments();
    // Cut inside the last claim, in a fence: what leniency costs.
    let cut = format!("Here it is:\n```json\n{}", whole.get(..whole.len() - 40).unwrap_or(&whole));
    let mut group = c.benchmark_group("decode and validate");
    for (name, text) in [("whole", whole), ("cut", cut)] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| validate_answer(decode_answer(black_box(&text)).0))
        });
    }
    group.finish();
}

fn provenance(slice: &Slice, run: RunId) -> Provenance {
    Provenance {
        namespace: "bench".to_owned(),
        session: slice.session,
        slice: slice.id,
        run,
        entries: slice.range(),
        at: None,
    }
}

fn proof(c: &mut Criterion) {
    let (slice, claims) = (whole(), claims());
    let from = provenance(&slice, RunId(Digest::of(&["bench"])));
    let mut group = c.benchmark_group("ground");
    group.throughput(Throughput::Elements(claims.len() as u64));
    group.bench_function("claims", |b| {
        b.iter_batched(
            || claims.clone(),
            |claims| ground_claims(black_box(&slice), None, claims, &from),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(line, gate, read, slice, request, answer, proof);
criterion_main!(line, beside::beside, context::context, directory::directory);
