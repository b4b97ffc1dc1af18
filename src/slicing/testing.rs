//! Test helpers for slices: sessions and their slices.

use super::{Cutting, SLICE_TOKENS_MIN, SliceSettings, Slicer, TOOL_TOKENS_MIN, tool_tokens_max};
use crate::domain::testing::said;
use crate::domain::{Branch, Digest, Entry, EntryKind, Outcome, SessionId, Speaker, Tool};
use crate::privacy::Redacted;
use proptest::prelude::*;
use std::collections::BTreeSet;

pub(super) const SETTINGS: SliceSettings = SliceSettings { tokens: 400, tool_tokens: 60 };

pub(super) fn entry(ordinal: u32, kind: EntryKind, text: &str, call: Option<u32>) -> Entry {
    // Skips redaction, which has tests of its own and is a hundred times slower.
    let text_of = |text: &str| Redacted::reopened(text.to_owned());
    let speaker = match kind {
        EntryKind::ToolResult => Speaker::Tool,
        EntryKind::ToolCall | EntryKind::Text => Speaker::Assistant,
        EntryKind::Prompt
        | EntryKind::Steering
        | EntryKind::Answer
        | EntryKind::Rejection
        | EntryKind::Command
        | EntryKind::Summary
        | EntryKind::Injected
        | EntryKind::Notice => Speaker::Person,
    };
    let call_id = call.map(|id| text_of(&format!("call-{id}")));
    // Names of any length; labels are part of a slice.
    let name = "mcp__名__".repeat(text.len() % 12);
    let tool = call_id.map(|id| Tool { name: text_of(&name), call_id: Some(id) });
    Entry {
        branch: Branch::ALL[text.len() % Branch::ALL.len()],
        tool,
        outcome: Outcome::ALL.get(text.len() % 5).copied(),
        exit_code: Some(i32::MIN),
        ..said(ordinal, (speaker, kind), text_of(text))
    }
}

pub(super) fn session() -> SessionId {
    SessionId(Digest::of(&["test"]))
}

/// The slices of a whole session, cut by [`SETTINGS`].
pub(super) fn cut_all(entries: &[Entry], ends: BTreeSet<u32>) -> Vec<Cutting> {
    cut(Slicer::new(session(), SETTINGS, ends), entries)
}

pub(super) fn cut(mut slicer: Slicer, entries: &[Entry]) -> Vec<Cutting> {
    let mut slices: Vec<Cutting> = Vec::new();
    entries.iter().for_each(|entry| slices.extend(slicer.push(entry.clone())));
    slices.extend(slicer.finish());
    slices
}

/// Settings that the configuration accepts.
pub(super) fn settings() -> impl Strategy<Value = SliceSettings> {
    (SLICE_TOKENS_MIN..3_000, any::<u32>()).prop_map(|(tokens, tool_tokens)| {
        let room = tool_tokens_max(tokens) - TOOL_TOKENS_MIN + 1;
        SliceSettings { tokens, tool_tokens: TOOL_TOKENS_MIN + tool_tokens % room }
    })
}

/// A session with calls that end, and calls that do not.
pub(super) fn transcript() -> impl Strategy<Value = Vec<Entry>> {
    let step = (0..6u8, "[a-zş名 \n]{0,300}", 1..40usize);
    prop::collection::vec(step, 1..30).prop_map(|steps| {
        let (mut entries, mut open, mut calls) = (Vec::new(), Vec::new(), 0);
        for (what, text, times) in steps {
            let ordinal = entries.len() as u32;
            let text = text.repeat(if what == 0 { times } else { 1 }) + ".";
            entries.push(match what {
                0 | 1 => entry(ordinal, EntryKind::Prompt, &text, None),
                2 => entry(ordinal, EntryKind::Text, &text, None),
                3 => {
                    calls += 1;
                    open.push(calls);
                    entry(ordinal, EntryKind::ToolCall, &text.repeat(5), Some(calls))
                }
                _ => match open.pop() {
                    Some(call) => {
                        entry(ordinal, EntryKind::ToolResult, &text.repeat(9), Some(call))
                    }
                    None => entry(ordinal, EntryKind::Steering, &text, None),
                },
            });
        }
        entries
    })
}
