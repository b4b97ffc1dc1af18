//! What stands beside the line and needs no model: cards, memories of a conversation, dialogs.

use super::{code, prose, text};
use annalist::CardBuilder;
use annalist::{
    ConversationLimits, ConversationMemory, MemoryMessage, MemoryType, create_conversation_memory,
    summarise_by_rule,
};
use annalist::{DialogLimits, DialogRules, DialogSummary};
use annalist::{Entry, EntryKind, Speaker};
use annalist::{Gate, Pii, RedactionReport};
use annalist::{RawEntry, redact_entry};
use criterion::{Criterion, Throughput, criterion_group};
use std::fmt::Write;
use std::hint::black_box;

criterion_group!(beside, card, conversation, dialog);

/// What people and agents say: names, contractions, addresses, other scripts, no word that a card looks
/// for, so that it looks to the end.
fn said(to: &mut String, n: u64) {
    let (a, b) = (n % 7_919, n % 613);
    let _ = writeln!(
        to,
        "Mira's deploy of service_{a} to Kubernetes-{b} isn\u{2019}t done; see https://ci.example.com/run?id={a}. \
         The İzmir cluster answered <EMAIL> with status {b}, as Postgres expected. \
         Ein Rückfall auf Redis-{b} wäre möglich (siehe runbook_{a}.md), sagt Jörg."
    );
}

/// Messages of a card, in bytes each.
const MESSAGE_BYTES: usize = 2_000;

fn card(c: &mut Criterion) {
    let gate = Gate::new(&Pii::ALL);
    let mut group = c.benchmark_group("card");
    for (name, text) in [("code", text(code)), ("prose", text(prose)), ("said", text(said))] {
        let letters: Vec<char> = text.chars().collect();
        let parts = letters.chunks(MESSAGE_BYTES).map(|part| part.iter().collect::<String>());
        let messages: Vec<_> = parts.map(|part| gate.redact(&part)).collect();
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut builder = CardBuilder::new(&gate);
                messages.iter().for_each(|text| builder.message("user", black_box(text), None));
                builder.finish()
            });
        });
    }
    group.finish();
}

/// Messages that are added at a time.
const SAID: usize = 1_000;
/// How many messages a memory has read before.
const READ: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Messages of a few sentences, which name 200 services.
fn messages(gate: &Gate) -> Vec<MemoryMessage> {
    let words = |n: usize| {
        let (one, other) = (n % 200, n * 7 % 200);
        format!(
            "The queue of Service{one} waits. We asked for Service{other} and Postgres, at {n}."
        )
    };
    let said = |n: usize| match n % 2 {
        0 => MemoryMessage::user(gate.redact(&words(n))),
        _ => MemoryMessage::assistant(gate.redact(&words(n))),
    };
    (0..SAID).map(said).collect()
}

fn add(memory: &mut ConversationMemory, said: &[MemoryMessage], gate: &Gate) {
    for message in said {
        black_box(memory.add_message(message.clone()));
        summarise_by_rule(memory, gate);
    }
}

/// What a message costs after so many others.
fn conversation(c: &mut Criterion) {
    let gate = Gate::new(&Pii::ALL);
    let said = messages(&gate);
    let mut group = c.benchmark_group("conversation");
    group.throughput(Throughput::Elements(SAID as u64));
    for kind in [MemoryType::Window, MemoryType::Entity, MemoryType::Summary] {
        for read in READ {
            let Ok(mut memory) =
                create_conversation_memory(kind, &ConversationLimits::default(), None)
            else {
                continue;
            };
            (0..read / SAID).for_each(|_| add(&mut memory, &said, &gate));
            group.bench_function(format!("{kind} after {read}"), |b| {
                b.iter(|| add(&mut memory, &said, &gate));
            });
        }
    }
    group.finish();
}

/// Turns of a dialog that is told.
const TURNS: u32 = 200;

/// A dialog of many turns, a tool and a long answer in each.
fn talk() -> Vec<Entry> {
    let (gate, mut report) = (Gate::new(&Pii::ALL), RedactionReport::default());
    let mut entries: Vec<Entry> = Vec::new();
    let prose = text(prose);
    for turn in 0..TURNS as usize {
        let long = prose.get(turn * 1_000..turn * 1_000 + 900).unwrap_or_default();
        let said = [
            (
                Speaker::Person,
                EntryKind::Prompt,
                format!("{turn}. toplantıyı ada@example.com ile yarına al, {long}"),
            ),
            (Speaker::Assistant, EntryKind::ToolCall, format!("{{\"day\": {turn}}}")),
            (
                Speaker::Assistant,
                EntryKind::Text,
                format!("{long}\nYarın onda yer var. Taşıyayım mı?"),
            ),
        ];
        for (speaker, kind, text) in said {
            let mut raw = RawEntry::new(1, speaker, kind, text);
            raw.tool = (kind == EntryKind::ToolCall).then(|| "calendar.find_slot".to_owned());
            entries.push(redact_entry(raw, entries.len() as u32, &gate, &mut report));
        }
    }
    entries
}

fn dialog(c: &mut Criterion) {
    let (gate, entries) = (Gate::new(&Pii::ALL), talk());
    let rules = DialogRules { gate: &gate, limits: DialogLimits::default() };
    let push = |blocks: bool| {
        let mut dialog = DialogSummary::default();
        for (at, entry) in entries.iter().enumerate() {
            dialog.push(black_box(entry), rules);
            if blocks && at % 3 == 2 {
                black_box(dialog.block(&[], rules));
            }
        }
        dialog
    };
    let mut group = c.benchmark_group("dialog");
    group.throughput(Throughput::Elements(u64::from(TURNS)));
    group.bench_function("turns", |b| b.iter(|| push(false)));
    group.bench_function("turns, a block after each", |b| b.iter(|| push(true)));
    group.finish();
    let whole = push(false);
    assert_eq!(whole.block(&[], rules).turns.len(), 5);
    let mut group = c.benchmark_group("dialog block");
    group.throughput(Throughput::Elements(1));
    group.bench_function("five turns", |b| b.iter(|| black_box(&whole).block(&[], rules)));
    group.finish();
}
