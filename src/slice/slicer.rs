//! The cutter: entries in, slices out, holding no more than one slice and what waits for results.

use super::group::{Grouper, Unit, pairs};
use super::render::label;
use super::split::split;
use super::{LABEL_TOKENS_MAX, bound};
use crate::domain::{Entry, EntryKind, Part, SessionId, Slice, Speaker, Tokens, estimate_tokens};
use crate::privacy::{Redacted, Woven};
use std::collections::BTreeSet;
use std::ops::Range;

/// How slices are cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// The longest slice, in estimated tokens.
    pub tokens: Tokens,
    /// The longest tool call or tool output that is shown whole, in estimated tokens.
    pub tool_tokens: Tokens,
}

/// A slice and the entries that stand in it, as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Cutting {
    /// What a model reads.
    pub slice: Slice,
    /// Its entries; one in several parts stands in several slices.
    pub entries: Vec<Entry>,
}

/// Cuts one session.
#[derive(Debug)]
pub struct Slicer {
    session: SessionId,
    settings: Settings,
    ends: BTreeSet<u32>,
    grouper: Grouper,
    current: Current,
    index: u32,
    ready: Vec<Cutting>,
}

/// The slice that is being filled.
#[derive(Debug, Default)]
struct Current {
    entries: Vec<Entry>,
    /// Label, range of the entry's text, part and parts; by entry.
    pieces: Vec<(String, Range<usize>, u32, u32)>,
    tokens: Tokens,
}

impl Slicer {
    /// A cutter for `session`. `ends` are the numbers of entries that it had when it was read
    /// before: what has grown since is cut there again, so that what was paid for is found again.
    pub fn new(session: SessionId, settings: Settings, ends: BTreeSet<u32>) -> Slicer {
        let (grouper, current) = (Grouper::default(), Current::default());
        Slicer { session, settings, ends, grouper, current, index: 0, ready: Vec::new() }
    }

    /// Takes the next entry of the session; gives the slices that are whole.
    pub fn push(&mut self, mut entry: Entry) -> Vec<Cutting> {
        if is_tool(&entry)
            && let Some(bounded) = bound(&entry.text, self.settings.tool_tokens)
        {
            entry.text = bounded;
        }
        if self.ends.first().is_some_and(|end| *end <= entry.ordinal) {
            self.end();
            self.ends = self.ends.split_off(&(entry.ordinal + 1));
        }
        if let Some(unit) = self.grouper.push(entry) {
            self.place(unit);
        }
        std::mem::take(&mut self.ready)
    }

    /// The rest, at the end of the session.
    pub fn finish(&mut self) -> Vec<Cutting> {
        self.end();
        std::mem::take(&mut self.ready)
    }

    fn end(&mut self) {
        if let Some(unit) = self.grouper.take() {
            self.place(unit);
        }
        self.flush();
    }

    fn place(&mut self, unit: Unit) {
        let tokens = unit.iter().map(weight).fold(0, Tokens::saturating_add);
        if self.current.tokens.saturating_add(tokens) > self.settings.tokens {
            self.flush();
        }
        if tokens <= self.settings.tokens {
            unit.into_iter().for_each(|entry| self.add_whole(entry));
        } else if unit.len() == 1 {
            unit.into_iter().for_each(|entry| self.add_parts(entry));
        } else {
            let smaller = pairs(unit);
            // What cannot be made smaller is an answer that outgrew its call; it is told apart here
            // so that this ends.
            for unit in smaller {
                let whole = unit.iter().map(weight).fold(0, Tokens::saturating_add);
                if unit.len() > 1 && whole > self.settings.tokens {
                    unit.into_iter().for_each(|entry| self.place(vec![entry]));
                } else {
                    self.place(unit);
                }
            }
        }
    }

    fn add_whole(&mut self, entry: Entry) {
        let tokens = weight(&entry);
        let piece = (label(&entry, 0, 1), 0..entry.text.len(), 0, 1);
        self.add(entry, piece, tokens);
    }

    fn add_parts(&mut self, entry: Entry) {
        let label_tokens = LABEL_TOKENS_MAX + SEPARATOR_TOKENS;
        let tokens_max = self.settings.tokens.saturating_sub(label_tokens).max(1);
        let ranges = split(entry.text.as_str(), tokens_max);
        let parts = u32::try_from(ranges.len()).unwrap_or(u32::MAX);
        for (part, range) in (0..).zip(ranges) {
            let words = entry.text.as_str().get(range.clone()).unwrap_or_default();
            let tokens = estimate_tokens(words).saturating_add(label_tokens);
            if self.current.tokens.saturating_add(tokens) > self.settings.tokens {
                self.flush();
            }
            let piece = (label(&entry, part, parts), range, part, parts);
            self.add(entry.clone(), piece, tokens);
        }
    }

    fn add(&mut self, entry: Entry, piece: (String, Range<usize>, u32, u32), tokens: Tokens) {
        self.current.entries.push(entry);
        self.current.pieces.push(piece);
        self.current.tokens = self.current.tokens.saturating_add(tokens);
    }

    fn flush(&mut self) {
        if self.current.entries.is_empty() {
            return;
        }
        let current = std::mem::take(&mut self.current);
        let mut woven = Vec::with_capacity(current.entries.len() * 3);
        let mut cuts: Vec<Redacted> = Vec::new();
        for (entry, (_, range, _, parts)) in current.entries.iter().zip(&current.pieces) {
            cuts.push(if *parts > 1 { entry.text.cut(range.clone()) } else { Redacted::default() });
        }
        let (mut parts, mut length) = (Vec::with_capacity(current.entries.len()), 0);
        for ((entry, piece), cut) in current.entries.iter().zip(&current.pieces).zip(&cuts) {
            let (label, range, part, of) = piece;
            let start = length + label.len();
            parts.push(part_of(entry, (*part, *of), start..start + range.len(), range.start));
            woven.push(Woven::Label(label));
            woven.push(Woven::Passed(if *of > 1 { cut } else { &entry.text }));
            woven.push(Woven::Ours("\n\n"));
            length = start + range.len() + 2;
        }
        let text = Redacted::weave(&woven);
        let slice = Slice {
            id: Slice::id_of(self.session, &parts, &text),
            session: self.session,
            index: self.index,
            tokens: estimate_tokens(text.as_str()),
            text,
            parts,
        };
        self.index += 1;
        self.ready.push(Cutting { slice, entries: current.entries });
    }
}

fn part_of(entry: &Entry, numbers: (u32, u32), span: Range<usize>, entry_offset: usize) -> Part {
    Part {
        ordinal: entry.ordinal,
        line: entry.line,
        part: numbers.0,
        parts: numbers.1,
        speaker: entry.speaker,
        kind: entry.kind,
        branch: entry.branch,
        at: entry.at,
        span,
        entry_offset,
    }
}

fn is_tool(entry: &Entry) -> bool {
    let tool = matches!(entry.speaker, Speaker::Tool | Speaker::Web);
    tool || matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult)
}

/// The blank line behind an entry.
const SEPARATOR_TOKENS: Tokens = 1;

/// What an entry takes of a slice, its label included.
fn weight(entry: &Entry) -> Tokens {
    let label = estimate_tokens(&label(entry, 0, 1)) + SEPARATOR_TOKENS;
    estimate_tokens(entry.text.as_str()).saturating_add(label)
}

#[cfg(test)]
mod tests;
