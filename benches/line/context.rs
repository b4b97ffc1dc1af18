//! What a session starts with: the block of a large memory directory, and what a hook reads for it.

use super::{prose, text};
use annalist::BudgetPreset;
use annalist::{
    ContextBudget, ContextEntry, ContextGroup, ContextMaterial, ContextPartKind, ContextSection,
    assemble_context,
};
use annalist::{Gate, Pii};
use annalist::{TRANSCRIPT_TAIL_BYTES, last_usage};
use criterion::{Criterion, Throughput, criterion_group};
use std::hint::black_box;

criterion_group!(context, block, tail);

/// Entries of a group: more than fit.
const ENTRIES: usize = 300;

/// Groups that are full, the dialog and what is known.
fn material(gate: &Gate) -> ContextMaterial {
    let words = text(prose).replace(|letter: char| !letter.is_ascii() || letter == '\n', " ");
    let mut from = 0;
    let mut entry = || {
        from = (from + 130) % (words.len() / 2);
        let text = gate.redact(&format!("- {}", words[from..from + 120].trim()));
        ContextEntry { text, ..ContextEntry::default() }
    };
    let kinds = [
        ContextPartKind::Rules,
        ContextPartKind::Decisions,
        ContextPartKind::Requests,
        ContextPartKind::Blockers,
    ];
    let groups = kinds.map(|kind| {
        let entries = (0..ENTRIES).map(|_| entry()).collect();
        ContextGroup { kind, sections: vec![ContextSection { heading: None, entries }] }
    });
    ContextMaterial {
        groups: groups.into(),
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
