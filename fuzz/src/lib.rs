//! What the targets share: transcripts made of bytes, sealed and cut.

use annalist::Gate;
use annalist::{Branch, Digest, Entry, EntryKind, Part, SessionId, Slice, Speaker, ToolOutcome};
use annalist::{
    Cutting, SLICE_TOKENS_MIN, SliceSettings, Slicer, TOOL_TOKENS_MIN, tool_tokens_max,
};
use annalist::{RawEntry, redact_entry};
use arbitrary::Arbitrary;
use std::collections::BTreeSet;

/// One entry, as bytes choose it.
#[derive(Arbitrary, Debug)]
pub struct Step<'a> {
    kind: u8,
    speaker: u8,
    branch: u8,
    outcome: Option<u8>,
    exit_code: Option<i32>,
    tool: Option<&'a str>,
    call: u8,
    text: &'a str,
    times: u8,
}

/// A session and how to cut it.
#[derive(Arbitrary, Debug)]
pub struct Talk<'a> {
    tokens: u16,
    tool_tokens: u16,
    ends: Vec<u8>,
    steps: Vec<Step<'a>>,
}

/// One of `all`.
fn pick<T: Copy>(all: &[T], by: u8) -> T {
    all[usize::from(by) % all.len()]
}

impl Talk<'_> {
    /// SliceSettings that the configuration would let pass.
    pub fn settings(&self) -> SliceSettings {
        let tokens = SLICE_TOKENS_MIN + u32::from(self.tokens % 2_000);
        let room = tool_tokens_max(tokens) - TOOL_TOKENS_MIN + 1;
        SliceSettings { tokens, tool_tokens: TOOL_TOKENS_MIN + u32::from(self.tool_tokens) % room }
    }

    /// The entries behind the gate; those that no model reads are left out.
    pub fn entries(&self) -> Vec<Entry> {
        let gate = Gate::new(&[]);
        let mut entries = Vec::new();
        for step in &self.steps {
            let kind = pick(EntryKind::ALL, step.kind);
            let text = step.text.repeat(usize::from(step.times % 64) + 1);
            let ordinal = entries.len() as u32;
            let raw = RawEntry {
                branch: pick(Branch::ALL, step.branch),
                tool: step.tool.map(str::to_owned),
                call_id: (step.call > 0).then(|| format!("call {}", step.call % 8)),
                outcome: step.outcome.map(|by| pick(ToolOutcome::ALL, by)),
                exit_code: step.exit_code,
                ..RawEntry::new(ordinal + 1, pick(Speaker::ALL, step.speaker), kind, text)
            };
            let entry = redact_entry(raw, ordinal, &gate, &mut Default::default());
            if entry.skip.is_none() {
                entries.push(entry);
            }
        }
        entries
    }

    /// The slices of `entries`.
    pub fn cut(&self, entries: &[Entry]) -> Vec<Cutting> {
        let session = SessionId(Digest::of(&["fuzz"]));
        let ends: BTreeSet<u32> = self.ends.iter().map(|end| u32::from(*end)).collect();
        let mut slicer = Slicer::new(session, self.settings(), ends);
        let mut slices = Vec::new();
        entries.iter().for_each(|entry| slices.extend(slicer.push(entry.clone())));
        slices.extend(slicer.finish());
        slices
    }
}

/// The words of `part` in `slice`.
pub fn words<'a>(slice: &'a Slice, part: &Part) -> &'a str {
    &slice.text.as_str()[part.span.clone()]
}
