//! Labels and words together: the text of a slice, and where in it each entry's words stand. What is
//! cut for the first time and what is rebuilt from stored entries both go through here.

use super::render::label;
use crate::domain::{Entry, Part, SessionId, Slice, estimate_tokens};
use crate::privacy::{Redacted, Woven};
use std::ops::Range;

/// The blank line behind an entry.
const SEPARATOR: &str = "\n\n";

/// A slice and the entries that stand in it, as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Cutting {
    /// What a model reads.
    pub slice: Slice,
    /// Its entries; one in several parts stands in several slices.
    pub entries: Vec<Entry>,
}

/// The words of an entry that stand in a slice.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// Where they stand in the entry's text, in bytes, on character boundaries.
    pub(super) range: Range<usize>,
    /// Which part of the entry they are, from 0.
    pub(super) part: u32,
    /// How many parts the entry has.
    pub(super) parts: u32,
}

impl Stretch {
    /// All words of the entry.
    pub(super) fn whole(entry: &Entry) -> Stretch {
        Stretch { range: 0..entry.text.len(), part: 0, parts: 1 }
    }
}

/// The slice of these entries, of each its stretch.
pub(super) fn weave(
    (session, index): (SessionId, u32),
    entries: Vec<Entry>,
    stretches: Vec<Stretch>,
) -> Cutting {
    let labels: Vec<String> =
        entries.iter().zip(&stretches).map(|(entry, it)| label(entry, it.part, it.parts)).collect();
    let cut = |(entry, stretch): (&Entry, &Stretch)| {
        let whole = stretch.range == (0..entry.text.len());
        if whole { entry.text.clone() } else { entry.text.cut(stretch.range.clone()) }
    };
    let words: Vec<Redacted> = entries.iter().zip(&stretches).map(cut).collect();
    let (mut woven, mut parts) = (Vec::with_capacity(entries.len() * 3), Vec::new());
    let mut length = 0;
    for (((entry, stretch), label), words) in entries.iter().zip(stretches).zip(&labels).zip(&words)
    {
        let start = length + label.len();
        let span = start..start + words.len();
        length = span.end + SEPARATOR.len();
        parts.push(part_of(entry, stretch, span));
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

fn part_of(entry: &Entry, stretch: Stretch, span: Range<usize>) -> Part {
    Part {
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
    }
}
