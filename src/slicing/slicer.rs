//! The cutter: entries in, slices out, holding no more than one slice and what waits for results.

use super::assemble::{Cutting, LABEL_TOKENS_MAX, Stretch, assemble, label};
use super::bound::{MARK_TOKENS_MAX, bound, split};
use crate::domain::{Entry, EntryKind, SessionId, Speaker, Tokens, estimate_tokens};
use crate::privacy::Redacted;
use std::collections::BTreeSet;

/// Minimum budget of a slice, in tokens; below it a pair of call and result would not fit.
pub const SLICE_TOKENS_MIN: u32 = 400;
/// Minimum bound of tool output, in tokens.
pub const TOOL_TOKENS_MIN: u32 = 40;

/// Maximum bound of tool output for slices of `tokens`: a call and its result, both at the
/// bound, with labels and marks, fit in one slice.
pub fn tool_tokens_max(tokens: u32) -> u32 {
    (tokens / 2).saturating_sub(LABEL_TOKENS_MAX + MARK_TOKENS_MAX)
}

const _: () = assert!(SLICE_TOKENS_MIN / 2 > LABEL_TOKENS_MAX + MARK_TOKENS_MAX + TOOL_TOKENS_MIN);

/// Settings of slices.
#[derive(serde::Deserialize, Clone, Copy, Debug, Eq, PartialEq)]
pub struct SliceSettings {
    /// The longest slice, in estimated tokens.
    pub tokens: Tokens,
    /// The longest tool call or tool output that is shown whole, in estimated tokens; one that is
    /// longer by no more than a mark would take is shown whole too.
    pub tool_tokens: Tokens,
}

/// Cuts one session.
#[derive(Debug)]
pub struct Slicer {
    session: SessionId,
    settings: SliceSettings,
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
    /// Words of each entry.
    stretches: Vec<Stretch>,
    tokens: Tokens,
}

impl Slicer {
    /// A cutter for `session`. `ends` are the numbers of entries that it had when it was read
    /// before: what has grown since is cut there again, so that what was paid for is found again.
    pub fn new(session: SessionId, settings: SliceSettings, ends: BTreeSet<u32>) -> Slicer {
        let (grouper, current) = (Grouper::default(), Current::default());
        Slicer { session, settings, ends, grouper, current, index: 0, ready: Vec::new() }
    }

    /// The same cutter for a session of which so many slices were cut before: it is given the
    /// entries behind them, and its first slice has this index.
    pub fn starting_at(mut self, index: u32) -> Slicer {
        self.index = index;
        self
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
        let stretch = Stretch::whole(&entry);
        self.add(entry, stretch, tokens);
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
            self.add(entry.clone(), Stretch { range, part, parts }, tokens);
        }
    }

    fn add(&mut self, entry: Entry, stretch: Stretch, tokens: Tokens) {
        self.current.entries.push(entry);
        self.current.stretches.push(stretch);
        self.current.tokens = self.current.tokens.saturating_add(tokens);
    }

    fn flush(&mut self) {
        if self.current.entries.is_empty() {
            return;
        }
        let current = std::mem::take(&mut self.current);
        let Current { entries, stretches, .. } = current;
        self.ready.push(assemble(self.session, self.index, entries, stretches));
        self.index += 1;
    }
}

fn is_tool(entry: &Entry) -> bool {
    let tool = matches!(entry.speaker, Speaker::Tool | Speaker::Web);
    tool || matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult)
}

/// The blank line behind an entry.
const SEPARATOR_TOKENS: Tokens = 1;

/// Tokens of an entry in a slice, its label included.
fn weight(entry: &Entry) -> Tokens {
    let label = estimate_tokens(&label(entry, 0, 1)) + SEPARATOR_TOKENS;
    estimate_tokens(entry.text.as_str()).saturating_add(label)
}

/// Maximum number of entries that wait for results; a call without one by then never ended.
const WAITING_ENTRIES_MAX: usize = 256;

/// Entries that belong together, in the order of the transcript.
type Unit = Vec<Entry>;

/// Makes units out of a stream of entries.
#[derive(Debug, Default)]
struct Grouper {
    waiting: Unit,
    open: Vec<Option<Redacted>>,
}

impl Grouper {
    /// Takes the next entry; gives a unit when one is whole.
    fn push(&mut self, entry: Entry) -> Option<Unit> {
        let call_id = || entry.tool.as_ref().and_then(|tool| tool.call_id.clone());
        match entry.kind {
            EntryKind::ToolCall => self.open.push(call_id()),
            EntryKind::ToolResult => {
                let id = call_id();
                // A result without an id answers the call before it.
                let found = match &id {
                    Some(_) => self.open.iter().position(|open| *open == id),
                    None => self.open.len().checked_sub(1),
                };
                found.map(|at| self.open.remove(at));
            }
            EntryKind::Prompt
            | EntryKind::Steering
            | EntryKind::Answer
            | EntryKind::Rejection
            | EntryKind::Command
            | EntryKind::Text
            | EntryKind::Summary
            | EntryKind::Injected
            | EntryKind::Notice => {}
        }
        self.waiting.push(entry);
        let whole = self.open.is_empty() || self.waiting.len() >= WAITING_ENTRIES_MAX;
        whole.then(|| self.take()).flatten()
    }

    /// All waiting entries; none if none wait.
    fn take(&mut self) -> Option<Unit> {
        self.open.clear();
        (!self.waiting.is_empty()).then(|| std::mem::take(&mut self.waiting))
    }
}

/// Breaks a unit that is too long for a slice into smaller ones: each call with its result, every
/// other entry alone, in the order in which they begin.
fn pairs(unit: Unit) -> Vec<Unit> {
    let mut pairs: Vec<Unit> = Vec::new();
    for entry in unit {
        let home = match (&entry.kind, &entry.tool) {
            (EntryKind::ToolResult, Some(tool)) => {
                pairs.iter_mut().find(|pair| is_call(pair, tool.call_id.as_ref()))
            }
            _ => None,
        };
        match home {
            Some(pair) => pair.push(entry),
            None => pairs.push(vec![entry]),
        }
    }
    pairs
}

/// Returns whether `pair` is a call with this id that has no result yet.
fn is_call(pair: &Unit, call_id: Option<&Redacted>) -> bool {
    let [call] = pair.as_slice() else { return false };
    let id = call.tool.as_ref().and_then(|tool| tool.call_id.as_ref());
    call.kind == EntryKind::ToolCall && id == call_id
}

#[cfg(test)]
mod tests;
