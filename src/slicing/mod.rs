//! Cuts a session into slices within a token budget: on entry boundaries, and never between a tool
//! call and its result. Omits nothing but the middle of long tool output, with a mark.
//!
//! The text of a slice is each entry as a label with the speaker, then the words. The labels are
//! explained in `prompts/extract.md`. New slices and those rebuilt from stored entries are both
//! assembled here.

mod bound;
mod cut;
#[cfg(test)]
mod laws;
mod slicer;
#[cfg(test)]
mod testing;

pub(crate) use bound::bound;
pub(crate) use cut::{SliceCut, halve, rebuild};
pub use slicer::{SLICE_TOKENS_MIN, SliceSettings, Slicer, TOOL_TOKENS_MIN, tool_tokens_max};

use crate::domain::{
    Branch, Entry, EntryKind, Outcome, Part, SessionId, Slice, Speaker, estimate_tokens,
};
use crate::privacy::{Redacted, Woven};
use crate::text::truncate::bytes;
use std::ops::Range;

/// Maximum tokens of an entry's label; most have six. A test builds the longest.
const LABEL_TOKENS_MAX: u32 = 64;
/// Maximum length of a tool's name in a label, in bytes.
const NAME_BYTES_MAX: usize = 48;
/// Blank line after an entry.
const SEPARATOR: &str = "\n\n";

/// A slice and its entries, as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Cutting {
    /// Slice that a model reads.
    pub slice: Slice,
    /// Its entries; one in several parts is in several slices.
    pub entries: Vec<Entry>,
}

/// The part of an entry's text that is in a slice.
#[derive(Clone, Debug)]
struct Stretch {
    /// Bytes in the entry's text, on character boundaries.
    range: Range<usize>,
    /// Part of the entry, from 0.
    part: u32,
    /// Number of the entry's parts.
    parts: u32,
}

/// Assembles the slice of these entries, each with its stretch.
fn assemble(
    session: SessionId,
    index: u32,
    entries: Vec<Entry>,
    stretches: Vec<Stretch>,
) -> Cutting {
    let labelled = |(entry, stretch): (&Entry, &Stretch)| {
        let Stretch { range, part, parts } = stretch.clone();
        let is_whole = range == (0..entry.text.len());
        let words = if is_whole { entry.text.clone() } else { entry.text.cut(range) };
        (label(entry, part, parts), words)
    };
    let labelled: Vec<(String, Redacted)> = entries.iter().zip(&stretches).map(labelled).collect();
    let (mut woven, mut parts) = (Vec::with_capacity(entries.len() * 3), Vec::new());
    let mut length = 0;
    for ((entry, stretch), (label, words)) in entries.iter().zip(stretches).zip(&labelled) {
        let start = length + label.len();
        let span = start..start + words.len();
        length = span.end + SEPARATOR.len();
        parts.push(Part {
            ordinal: entry.ordinal,
            line: entry.line,
            part: stretch.part,
            parts: stretch.parts,
            speaker: entry.speaker,
            kind: entry.kind,
            branch: entry.branch,
            at: entry.at,
            span,
            entry_offset: stretch.range.start,
        });
        woven.extend([Woven::Label(label), Woven::Passed(words), Woven::Ours(SEPARATOR)]);
    }
    let text = Redacted::weave(&woven);
    let slice = Slice {
        id: Slice::id_of(session, &parts, &text),
        session,
        index,
        tokens: estimate_tokens(text.as_str()),
        text,
        parts,
    };
    Cutting { slice, entries }
}

/// Label of an entry, with a space after it.
fn label(entry: &Entry, part: u32, parts: u32) -> String {
    let mut label = String::with_capacity(32);
    label.push('[');
    match entry.branch {
        Branch::Active => {}
        Branch::Abandoned => label.push_str("Abandoned branch: "),
        Branch::Sidechain => label.push_str("Sub-agent: "),
    }
    push_speaker(entry, &mut label);
    if parts > 1 {
        label.push_str(&format!(", part {} of {parts}", part + 1));
    }
    label.push_str("] ");
    label
}

fn push_speaker(entry: &Entry, label: &mut String) {
    label.push_str(match entry.kind {
        EntryKind::Prompt => match entry.speaker {
            Speaker::Person => "User",
            Speaker::Client => "Parent agent",
            Speaker::Assistant | Speaker::Tool | Speaker::Web => "Prompt",
        },
        EntryKind::Steering => "User, while the agent worked",
        EntryKind::Answer => "User answers",
        EntryKind::Rejection => "User refuses",
        EntryKind::Command => "User runs",
        EntryKind::Text => match entry.speaker {
            Speaker::Person => "User",
            Speaker::Assistant | Speaker::Tool | Speaker::Web | Speaker::Client => "Assistant",
        },
        EntryKind::ToolCall => "ToolCall",
        EntryKind::ToolResult => "ToolResult",
        EntryKind::Summary => "Summary of earlier conversation",
        EntryKind::Injected => "Context",
        EntryKind::Notice => "Notice",
    });
    if let Some(tool) = &entry.tool {
        let name = tool.name.as_str();
        label.push(' ');
        label.extend(bytes(name, NAME_BYTES_MAX).chars().filter(is_plain));
    }
    if let Some(outcome) = entry.outcome {
        let still = if outcome == Outcome::Running { "still " } else { "" };
        label.push_str(&format!(": {still}{}", outcome.name()));
    }
    if let Some(code) = entry.exit_code {
        label.push_str(&format!(", exit {code}"));
    }
}

/// False for brackets and line ends, which in a tool's name could pass for another label.
fn is_plain(letter: &char) -> bool {
    !letter.is_control() && !matches!(letter, '[' | ']')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{SPEAKER_LABELS, Tool};
    use crate::privacy::Gate;

    #[test]
    fn the_longest_label_is_as_long_as_slices_expect() {
        let gate = Gate::new(&[]);
        let mut longest = 0;
        for (kind, branch) in
            EntryKind::ALL.iter().flat_map(|kind| Branch::ALL.iter().map(move |b| (kind, b)))
        {
            for (speaker, outcome) in
                Speaker::ALL.iter().flat_map(|who| Outcome::ALL.iter().map(move |o| (who, o)))
            {
                let entry = Entry {
                    ordinal: u32::MAX,
                    line: 1,
                    native_id: None,
                    speaker: *speaker,
                    kind: *kind,
                    branch: *branch,
                    text: gate.redact("x"),
                    tool: Some(Tool { name: gate.redact(&"名".repeat(99)), call_id: None }),
                    outcome: Some(*outcome),
                    exit_code: Some(i32::MIN),
                    at: None,
                    skip: None,
                };
                let label = label(&entry, u32::MAX - 1, u32::MAX);
                assert!(SPEAKER_LABELS.iter().any(|head| label[1..].starts_with(head)), "{label}");
                longest = longest.max(estimate_tokens(&label));
            }
        }
        assert!(longest <= LABEL_TOKENS_MAX, "{longest}");
    }
}
