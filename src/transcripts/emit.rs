//! Output of a reader. Findings are bounded and use the same rules for every format.

use super::client_text::persons_words;
use super::cutter::{Cut, Cutter, Element, Line, lossy};
use super::json::{self, Parsed};
use super::marks::{NameSet, name_of};
use super::raw::{RawEntry, RawSession, Sink, TranscriptItem};
use super::tools::never_ran;
use crate::domain::{
    EntryKind, FINDINGS_MAX, Finding, LINE_BYTES_MAX, Outcome, Severity, Skip, Speaker,
};
use crate::text::own_output::{
    is_memory_file, is_notice, is_request_to_sync, reads_memory, without_memory,
};
use crate::text::phrase::counted;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Read};

/// Maximum number of unknown kinds reported per file.
const UNKNOWN_MAX: usize = 20;

/// Output to a sink; without one, nothing is emitted.
#[derive(Default)]
pub(super) struct Emit<'e> {
    sink: Option<&'e mut Sink<'e>>,
    findings: usize,
    unknown: BTreeSet<String>,
    repairs: Repairs,
    stopped: bool,
    own: OwnOutput,
}

/// Lines with invalid characters; reported once, since such a file has many.
#[derive(Default)]
struct Repairs {
    first: u32,
    last: u32,
    count: usize,
}

impl<'e> Emit<'e> {
    pub(super) fn new(sink: &'e mut Sink<'_>) -> Emit<'e> {
        Emit { sink: Some(sink), ..Emit::default() }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn session(&mut self, session: RawSession) {
        self.item(TranscriptItem::Session(session));
    }

    pub(super) fn entry(&mut self, mut entry: RawEntry) {
        if entry.kind == EntryKind::ToolResult
            && let Some(tool) = &entry.tool
            && let Some((kind, words)) = persons_words(tool, &entry.text, entry.outcome)
        {
            (entry.speaker, entry.kind, entry.text) = (Speaker::Person, kind, words);
            let is_refused = kind == EntryKind::Rejection;
            entry.outcome = is_refused.then_some(Outcome::Aborted).or(entry.outcome);
        }
        if entry.kind == EntryKind::ToolResult && never_ran(&entry.text, entry.outcome) {
            entry.outcome = Some(Outcome::Aborted);
        }
        self.own.mark(&mut entry);
        let failed = entry.outcome == Some(Outcome::Failed) || entry.exit_code.unwrap_or(0) != 0;
        if failed && entry.text.trim().is_empty() {
            entry.text = "[no output]".to_owned();
        }
        self.item(TranscriptItem::Entry(entry));
    }

    /// Reports a finding. Findings beyond [`FINDINGS_MAX`] are only counted.
    pub(super) fn finding(
        &mut self,
        severity: Severity,
        rule: &'static str,
        line: u32,
        detail: impl Into<String>,
    ) {
        self.findings += 1;
        if self.findings <= FINDINGS_MAX {
            self.item(TranscriptItem::Finding(Finding::new(severity, rule, line, detail)));
        }
    }

    /// Reports an unknown kind of record, or of a part of one, once per file.
    pub(super) fn unknown(&mut self, kind: &str, line: u32) {
        if self.unknown.len() < UNKNOWN_MAX && self.unknown.insert(kind.to_owned()) {
            let known = |it: char| it.is_ascii_alphanumeric() || "._-$".contains(it);
            let name: String = kind.chars().filter(|it| known(*it)).take(40).collect();
            let detail = format!("expected a known kind of record, found `{name}`");
            self.finding(Severity::Info, "unknown-record", line, detail);
        }
    }

    /// True if a line can be read; reports repairs and skipped lines.
    pub(super) fn accepts(&mut self, line: &Line<'_>) -> bool {
        if line.too_long {
            let detail = format!("expected at most {LINE_BYTES_MAX} bytes a line; passed over");
            self.finding(Severity::Warning, "line-too-long", line.number, detail);
        } else if line.repaired {
            self.repaired(line.number);
        }
        !line.too_long
    }

    /// Converts bytes to text; invalid UTF-8 is replaced and counted.
    pub(super) fn text<'b>(&mut self, bytes: &'b [u8], line: u32) -> Cow<'b, str> {
        let text = lossy(bytes);
        if matches!(text, Cow::Owned(_)) {
            self.repaired(line);
        }
        text
    }

    pub(super) fn parsed(&mut self, line: &Line<'_>, parsed: Parsed, expected: &str) {
        match parsed {
            Parsed::Valid => {}
            Parsed::Repaired => self.repaired(line.number),
            Parsed::First => {
                let detail = "expected one JSON object a line; what follows the first is not read";
                self.finding(Severity::Warning, "bad-line", line.number, detail);
            }
            Parsed::Invalid => self.unreadable(line, expected),
        }
    }

    /// Reports a line that does not parse, or that is still being written.
    pub(super) fn unreadable(&mut self, line: &Line<'_>, expected: &str) {
        if line.complete {
            self.finding(Severity::Warning, "bad-line", line.number, expected);
        } else {
            let detail = "the last line is not complete yet; it is read when it is";
            self.finding(Severity::Info, "truncated-last-line", line.number, detail);
        }
    }

    /// Reports a value that could not be cut out of a document.
    pub(super) fn cut(&mut self, cut: Cut, line: u32) {
        let detail = match cut {
            Cut::Whole => return,
            Cut::TooLong => {
                &format!("expected at most {LINE_BYTES_MAX} bytes a value; passed over")
            }
            Cut::Unfinished => "expected the end of the value, found the end of the file",
            Cut::Missing => "expected a value; the rest of the file is not read",
        };
        let rule = if cut == Cut::TooLong { "line-too-long" } else { "bad-json" };
        self.finding(Severity::Warning, rule, line, detail);
    }

    /// Parses an element that was cut out of a document; reports one that is incomplete or broken.
    pub(super) fn element(&mut self, element: &Element<'_>) -> Option<Value> {
        let Element { cut, bytes, line, .. } = *element;
        self.cut(cut, line);
        if cut != Cut::Whole {
            return None;
        }
        let parsed = json::parse(&self.text(bytes, line));
        parsed.map_err(|expected| self.finding(Severity::Warning, "bad-json", line, expected)).ok()
    }

    /// Reports content after a complete value.
    pub(super) fn rest<R: Read>(&mut self, cutter: &mut Cutter<R>, cut: Cut) -> io::Result<()> {
        if cut == Cut::Whole && !self.stopped && cutter.peek()?.is_some() {
            let detail = "expected the end of the file; what follows the first value is not read";
            self.finding(Severity::Warning, "bad-json", cutter.line(), detail);
        }
        Ok(())
    }

    /// Reports the number of repaired lines and of findings that were only counted.
    pub(super) fn finish(&mut self) {
        if self.repairs.count > 0 {
            let lines = counted(self.repairs.count as u64, "line");
            let detail = format!("{lines} had bytes or escapes that are not characters");
            let line = self.repairs.first;
            let finding = Finding::new(Severity::Info, "invalid-utf8", line, detail);
            self.item(TranscriptItem::Finding(finding));
        }
        let more = self.findings.saturating_sub(FINDINGS_MAX);
        if more > 0 {
            let detail = format!("{more} more findings of this file are not listed");
            let finding = Finding::new(Severity::Warning, "more-findings", 0, detail);
            self.item(TranscriptItem::Finding(finding));
        }
    }

    /// Counts a line whose invalid characters were replaced.
    pub(super) fn repaired(&mut self, line: u32) {
        let lines = &mut self.repairs;
        if lines.count == 0 {
            lines.first = line;
        } else if lines.last == line {
            return;
        }
        lines.last = line;
        lines.count += 1;
    }

    fn item(&mut self, item: TranscriptItem) {
        if let Some(sink) = self.sink.as_mut().filter(|_| !self.stopped) {
            self.stopped = sink(item).is_break();
        }
    }
}

/// Beginning of the names of annalist's tools in a client.
const SERVER: &str = "mcp__annalist";

/// Marks annalist's own output in a conversation as context, so that no claim rests on it.
#[derive(Debug, Default)]
struct OwnOutput {
    /// Calls that read memory and whose results have not been read yet.
    calls: NameSet,
    /// True if the last entry is a call without an id.
    ran: bool,
}

impl OwnOutput {
    fn mark(&mut self, entry: &mut RawEntry) {
        let call = entry.call_id.as_deref().map(name_of);
        let is_call = matches!(entry.kind, EntryKind::ToolCall | EntryKind::Command);
        let is_result = entry.kind == EntryKind::ToolResult;
        let answers = is_result && call.map_or(self.ran, |call| self.calls.remove(&call));
        let named = entry.tool.as_deref().is_some_and(|tool| tool.starts_with(SERVER));
        let runs = is_call && (named || reads_memory(&entry.text));
        self.ran = runs && call.is_none() || self.ran && is_result;
        self.calls.extend(call.filter(|_| runs));
        let own = without_memory(&entry.text);
        let blank = own.as_ref().is_some_and(|text| !text.contains(char::is_alphanumeric))
            || is_result && is_memory_file(&entry.text);
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
    use std::ops::ControlFlow;

    fn findings(work: impl FnOnce(&mut Emit<'_>)) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut sink = |item| {
            if let TranscriptItem::Finding(finding) = item {
                found.push(finding);
            }
            ControlFlow::Continue(())
        };
        let mut emit = Emit::new(&mut sink);
        work(&mut emit);
        emit.finish();
        found
    }

    #[test]
    fn findings_beyond_the_bound_are_counted() {
        let found = findings(|emit| {
            for line in 0..150 {
                emit.finding(Severity::Warning, "bad-line", line, "expected JSON");
            }
        });
        assert_eq!(found.len(), FINDINGS_MAX + 1);
        assert!(found[FINDINGS_MAX].detail.starts_with("50 more"));
    }

    #[test]
    fn repaired_lines_are_told_once() {
        let found = findings(|emit| {
            for line in [3, 3, 5] {
                emit.text(b"\xff", line);
            }
        });
        assert_eq!((found.len(), found[0].line), (1, 3));
        assert!(found[0].detail.starts_with("2 lines"));
    }

    #[test]
    fn nothing_comes_after_stop() {
        let mut seen = 0;
        let mut sink = |_: TranscriptItem| {
            seen += 1;
            ControlFlow::Break(())
        };
        let mut emit = Emit::new(&mut sink);
        emit.session(RawSession::default());
        emit.cut(Cut::Missing, 1);
        emit.finish();
        assert!(emit.stopped());
        assert_eq!(seen, 1);
    }
}

#[cfg(test)]
mod own_output_tests {
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
