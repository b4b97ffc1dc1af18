//! Marks annalist's own output in a conversation as context, so that no claim rests on it.

use super::marks::{NameSet, name_of};
use super::raw::RawEntry;
use crate::domain::{EntryKind, Skip, Speaker};
use crate::text::own_output::{is_notice, is_request_to_sync, runs_annalist, without_memory};

/// Beginning of the names of annalist's tools in a client.
const SERVER: &str = "mcp__annalist";

/// Calls of the `annalist` command whose results have not been read yet.
#[derive(Debug, Default)]
pub(super) struct OwnOutput {
    calls: NameSet,
    /// True if the last entry is a call without an id.
    ran: bool,
}

impl OwnOutput {
    pub(super) fn mark(&mut self, entry: &mut RawEntry) {
        let call = entry.call_id.as_deref().map(name_of);
        let is_call = matches!(entry.kind, EntryKind::ToolCall | EntryKind::Command);
        let is_result = entry.kind == EntryKind::ToolResult;
        let answers = is_result && call.map_or(self.ran, |call| self.calls.remove(&call));
        let named = entry.tool.as_deref().is_some_and(|tool| tool.starts_with(SERVER));
        let runs = is_call && (named || runs_annalist(&entry.text));
        self.ran = runs && call.is_none() || self.ran && is_result;
        self.calls.extend(call.filter(|_| runs));
        let own = without_memory(&entry.text);
        let blank = own.as_ref().is_some_and(|text| !text.contains(char::is_alphanumeric));
        let notice = match entry.speaker {
            Speaker::Client => is_notice(&entry.text),
            Speaker::Person => is_request_to_sync(&entry.text),
            Speaker::Assistant | Speaker::Tool | Speaker::Web => false,
        };
        // A note is already in the store as a note.
        if answers || blank || notice || (is_call && named) {
            (entry.speaker, entry.kind) = (Speaker::Client, EntryKind::Injected);
            entry.skip = entry.skip.or(Some(Skip::Injected));
        } else if let Some(own) = own {
            entry.text = own.trim().to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_over_mcp_and_its_answer_are_nobodys_words() {
        let mut own = OwnOutput::default();
        let mut entries = [
            (EntryKind::ToolCall, Some("mcp__annalist__note")),
            (EntryKind::ToolResult, None),
            (EntryKind::ToolCall, Some("mcp__other__note")),
        ]
        .map(|(kind, tool)| RawEntry {
            tool: tool.map(str::to_owned),
            call_id: tool.is_none_or(|tool| tool.starts_with(SERVER)).then(|| "c1".to_owned()),
            ..RawEntry::new(1, Speaker::Assistant, kind, "Use zebra")
        });
        entries.iter_mut().for_each(|entry| own.mark(entry));
        let skips = entries.map(|entry| entry.skip);
        assert_eq!(skips, [Some(Skip::Injected), Some(Skip::Injected), None]);
    }
}
