//! What a session starts with: the block of a large memory directory, and what a hook reads for it.

use super::{prose, text};
use annalist::BudgetPreset;
use annalist::{
    ContextBudget, ContextDecision, ContextDocument, ContextEntry, ContextMaterial, ContextSection,
    assemble_context,
};
use annalist::{Gate, Pii};
use annalist::{TRANSCRIPT_TAIL_BYTES, last_usage};
use criterion::{Criterion, Throughput, criterion_group};
use std::hint::black_box;

criterion_group!(context, block, tail);

/// Decisions of the directory, and sessions.
const FILES: usize = 300;
/// Entries of a base file: more than fit.
const ENTRIES: usize = 60;

/// A file of that many entries in four sections.
fn document(name: &str, entries: usize, words: &str, gate: &Gate) -> ContextDocument {
    let mut from = name.len() * 97 % 1_000;
    let mut entry = || {
        from = (from + 130) % (words.len() / 2);
        ContextEntry {
            text: gate.redact(&format!("- {}", words[from..from + 120].trim())),
            score: 0,
        }
    };
    let sections = (0..4).map(|section| ContextSection {
        heading: Some(gate.redact(&format!("## ContextSection {section}"))),
        entries: (0..entries / 4).map(|_| entry()).collect(),
    });
    ContextDocument { name: gate.redact(name), sections: sections.collect() }
}

/// Five files that are full, the dialog, what is known, and every decision and session read.
fn material(gate: &Gate) -> ContextMaterial {
    let words = text(prose).replace(|letter: char| !letter.is_ascii() || letter == '\n', " ");
    let base = |name: &str| Some(document(name, ENTRIES, &words, gate));
    let decision = |number: usize| ContextDecision {
        line: ContextEntry {
            text: gate.redact(&format!("ADR-{number:03}: Queue {number}")),
            score: 0,
        },
        document: Some(document(&format!("decisions/ADR-{number:03}.md"), 12, &words, gate)),
    };
    let session = |day: usize| document(&format!("sessions/{day}.md"), 16, &words, gate);
    ContextMaterial {
        active_context: base("active-context.md"),
        product_context: base("product-context.md"),
        progress: base("progress.md"),
        patterns: base("patterns.md"),
        glossary: base("glossary.md"),
        sessions: (0..FILES).rev().map(session).collect(),
        decisions: (0..FILES).rev().map(decision).collect(),
        dialog: Some(gate.redact("DIALOG_SUMMARY (last few turns):\n  Turn 1: User x, I y.")),
        entities: Some(gate.redact("Known entities:\n- Mira: {}")),
        ..ContextMaterial::default()
    }
}

fn block(c: &mut Criterion) {
    let gate = Gate::new(&Pii::ALL);
    let material = material(&gate);
    let mut group = c.benchmark_group("context");
    for &preset in BudgetPreset::ALL {
        let budget = ContextBudget::of(preset);
        group.bench_function(preset.name(), |b| {
            b.iter(|| assemble_context(black_box(&material), &budget, &gate));
        });
    }
    group.finish();
}

/// The largest tail with one answer at its beginning: nothing behind it is of use.
fn tail(c: &mut Criterion) {
    let answer = r#"{"type":"assistant","message":{"model":"m","usage":{"input_tokens":9}}}"#;
    let tool =
        format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{}\"}}}}\n", "x".repeat(9_000));
    let [.., longest] = TRANSCRIPT_TAIL_BYTES;
    let lines = tool.repeat(longest as usize / tool.len() - 1);
    let text = format!("\n{answer}\n{lines}");
    let mut group = c.benchmark_group("tail of a transcript");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("8 MiB", |b| {
        b.iter(|| last_usage(black_box(text.as_bytes()), false));
    });
    group.finish();
}
