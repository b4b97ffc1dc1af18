//! Holds entries back while a tool call waits for its result, so that the two are never parted.

use crate::domain::{Entry, EntryKind};
use crate::privacy::Redacted;

/// How many entries wait for results; a call that has none by then is one that never ended.
const WAITING_ENTRIES_MAX: usize = 256;

/// Entries that belong together, in the order of the transcript.
pub(super) type Unit = Vec<Entry>;

/// Makes units out of a stream of entries.
#[derive(Debug, Default)]
pub(super) struct Grouper {
    waiting: Unit,
    open: Vec<Option<Redacted>>,
}

impl Grouper {
    /// Takes the next entry; gives a unit when one is whole.
    pub(super) fn push(&mut self, entry: Entry) -> Option<Unit> {
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

    /// What waits, whether whole or not; none if nothing does.
    pub(super) fn take(&mut self) -> Option<Unit> {
        self.open.clear();
        (!self.waiting.is_empty()).then(|| std::mem::take(&mut self.waiting))
    }
}

/// Breaks a unit that is too long for a slice into smaller ones: each call with its result, every
/// other entry alone, in the order in which they begin.
pub(super) fn pairs(unit: Unit) -> Vec<Unit> {
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

/// Whether `pair` is a call with this id that has no result yet.
fn is_call(pair: &Unit, call_id: Option<&Redacted>) -> bool {
    let [call] = pair.as_slice() else { return false };
    let id = call.tool.as_ref().and_then(|tool| tool.call_id.as_ref());
    call.kind == EntryKind::ToolCall && id == call_id
}
