//! Laws of the cutter.

use super::*;
use crate::domain::{Branch, Digest, Outcome, Tool};
use crate::privacy::Gate;
use proptest::prelude::*;

const SETTINGS: Settings = Settings { tokens: 400, tool_tokens: 60 };

fn entry(ordinal: u32, kind: EntryKind, text: &str, call: Option<u32>) -> Entry {
    let gate = Gate::new(&[]);
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
    let call_id = call.map(|id| gate.redact(&format!("call-{id}")));
    // Names of any length; labels are part of a slice.
    let name = "mcp__名__".repeat(text.len() % 12);
    let tool = call_id.map(|id| Tool { name: gate.redact(&name), call_id: Some(id) });
    Entry {
        ordinal,
        line: ordinal + 1,
        native_id: None,
        speaker,
        kind,
        branch: Branch::ALL[text.len() % Branch::ALL.len()],
        text: gate.redact(text),
        tool,
        outcome: Outcome::ALL.get(text.len() % 5).copied(),
        exit_code: Some(i32::MIN),
        at: None,
        skip: None,
    }
}

fn session() -> SessionId {
    SessionId(Digest::of(&["test"]))
}

fn cut_all(entries: &[Entry], ends: BTreeSet<u32>) -> Vec<Cutting> {
    let mut slicer = Slicer::new(session(), SETTINGS, ends);
    let mut slices: Vec<Cutting> = Vec::new();
    entries.iter().for_each(|entry| slices.extend(slicer.push(entry.clone())));
    slices.extend(slicer.finish());
    slices
}

fn check(entries: &[Entry], slices: &[Cutting]) {
    let parts: Vec<&Part> = slices.iter().flat_map(|cutting| &cutting.slice.parts).collect();
    for entry in entries {
        let mine: Vec<_> = parts.iter().filter(|part| part.ordinal == entry.ordinal).collect();
        let numbers: Vec<u32> = mine.iter().map(|part| part.part).collect();
        assert_eq!(numbers, (0..mine[0].parts).collect::<Vec<_>>(), "each part once");
        if !is_tool(entry) {
            let covered: usize = mine.iter().map(|part| part.span.len()).sum();
            assert_eq!(covered, entry.text.len(), "nobody's words are shortened");
        }
    }
    for Cutting { slice, entries } in slices {
        let whole = slice.text.as_str();
        assert!(slice.tokens <= SETTINGS.tokens, "{} tokens", slice.tokens);
        for (part, entry) in slice.parts.iter().zip(entries) {
            let words = &entry.text.as_str()[part.entry_offset..][..part.span.len()];
            assert_eq!(&whole[part.span.clone()], words);
        }
        for call in entries.iter().filter(|entry| entry.kind == EntryKind::ToolCall) {
            let id = call.tool.as_ref().unwrap().call_id.clone();
            let same = |entry: &&Entry| entry.tool.as_ref().is_some_and(|t| t.call_id == id);
            let here = entries.iter().filter(same).count();
            let all = slices.iter().flat_map(|cutting| &cutting.entries).filter(same).count();
            assert_eq!(here, all, "a call and its result stand in one slice");
        }
    }
}

fn transcript() -> impl Strategy<Value = Vec<Entry>> {
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

proptest! {
    #[test]
    fn every_entry_is_in_one_slice_and_no_call_loses_its_result(entries in transcript()) {
        check(&entries, &cut_all(&entries, BTreeSet::new()));
    }

    #[test]
    fn a_session_that_grew_is_cut_again_where_it_was(entries in transcript(), at in 1..30usize) {
        let before = cut_all(&entries[..at.min(entries.len())], BTreeSet::new());
        let after = cut_all(&entries, BTreeSet::from([at as u32]));
        let ids = |slices: &[Cutting]| slices.iter().map(|c| c.slice.id).collect::<Vec<_>>();
        prop_assert_eq!(&ids(&after)[..before.len()], &ids(&before)[..]);
    }
}

#[test]
fn an_entry_longer_than_a_slice_is_split_and_none_of_it_is_dropped() {
    let entries = [entry(0, EntryKind::Prompt, &"one two three\n".repeat(900), None)];
    let slices = cut_all(&entries, BTreeSet::new());
    assert!(slices.len() > 5);
    check(&entries, &slices);
    assert!(slices[1].slice.text.as_str().contains(", part 2 of "));
}
