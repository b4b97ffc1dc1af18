//! Second pass over a Claude Code transcript: turns records into entries, in file order.

use super::index::{self, Index};
use super::record::{Attachment, Record, ToolUseResult, is_generated};
use super::tools::{self, OpenCall};
use super::user_text;
use crate::domain::{Branch, EntryKind, Outcome, Severity, Skip, Speaker, Timestamp};
use crate::transcripts::client_text::{ClientText, INTERRUPTED};
use crate::transcripts::emit::Emit;
use crate::transcripts::fields::{Block, Content, Str};
use crate::transcripts::json::JsonExt;
use crate::transcripts::marks::{NameSet, name_of};
use crate::transcripts::raw::RawEntry;
use crate::transcripts::text::{clean, flatten, mark, push_piece};
use crate::transcripts::tools::{OpenCalls, outcome_of_flag};
use std::borrow::Cow;

/// Maximum number of entries buffered behind a text that may continue.
const WAITING_MAX: usize = 32;
/// Maximum number of pull requests that are remembered.
const LINKS_MAX: usize = 1024;
/// Maximum length of an error of the client.
const ERROR_CHARS_MAX: usize = 500;
/// Kinds of the parts of a message that are read, or known to hold no words of a conversation.
const PARTS: [&str; 13] = [
    "text", "image", "document", "tool_use", "tool_result", "server_tool_use", "mcp_tool_use",
    "web_search_tool_result", "web_fetch_tool_result", "mcp_tool_result", "thinking",
    "redacted_thinking", "fallback",
];

#[derive(Clone, Copy, Eq, PartialEq)]
enum Author {
    /// The client, as context for the model.
    Context,
    Client,
    /// Determined by the text.
    Unknown,
}

#[derive(Default)]
pub(super) struct RecordReader<'a> {
    pub(super) emit: Emit<'a>,
    index: Index,
    calls: OpenCalls<OpenCall>,
    /// Calls so far, in files of iFlow CLI: it repeats those of a message in the next one.
    called: NameSet,
    is_iflow: bool,
    /// Text that the next line may continue, and the hash of its message id.
    text: Option<(u64, RawEntry)>,
    /// Entries between the text and its continuation.
    waiting: Vec<RawEntry>,
    links: NameSet,
    spoken: bool,
}

impl<'a> RecordReader<'a> {
    pub(super) fn new(index: Index, emit: Emit<'a>) -> RecordReader<'a> {
        RecordReader { emit, index, ..RecordReader::default() }
    }

    /// True if the line has no entries.
    pub(super) fn skips(&self, line: u32) -> bool {
        self.index.marks.has(line, index::PASSED)
    }

    /// Line of the call behind which the results of `line` are read, although they are in front of it.
    pub(super) fn call_behind(&self, line: u32) -> Option<u32> {
        let early = &self.index.early;
        early.binary_search_by_key(&line, |(line, _)| *line).ok().map(|at| early[at].1)
    }

    pub(super) fn record(&mut self, line: u32, record: Record<'_>) {
        let frame = self.frame(line, &record);
        if self.index.marks.has(line, index::REUSED) {
            let detail = "another record has the same id and says something else; both are kept";
            self.emit.finding(Severity::Warning, "reused-id", line, detail);
        }
        match record.kind.get() {
            "user" => self.user(&frame, record),
            "assistant" => self.assistant(&frame, record),
            "queue-operation" => self.queued(&frame, &record.content),
            "attachment" => {
                record.attachment.0.into_iter().for_each(|it| self.attachment(&frame, it));
            }
            "system" => self.system(&frame, &record),
            "pr-link" => self.link(&frame, &record),
            "result" => self.result(&frame, &record),
            kind => self.emit.unknown(kind, line),
        }
    }

    /// Reports parts of an unknown kind that hold text.
    fn check_parts(&mut self, line: u32, content: &Content<'_>) {
        let Content::Blocks(blocks) = content else { return };
        for block in blocks {
            let holds_text = block.text.some().is_some() || !matches!(block.content, Content::None);
            if holds_text && !PARTS.contains(&block.kind.get()) {
                self.emit.unknown(block.kind.get(), line);
            }
        }
    }

    pub(super) fn close(mut self) {
        self.flush();
        self.emit.finish();
    }

    /// Fields that all entries of a record share.
    fn frame(&self, line: u32, record: &Record<'_>) -> RawEntry {
        let marks = &self.index.marks;
        let branch = match (record.is_sidechain(), marks.has(line, index::ABANDONED)) {
            (true, _) => Branch::Sidechain,
            (false, true) => Branch::Abandoned,
            (false, false) => Branch::Active,
        };
        let copied = marks.has(line, index::COPIED) || self.index.compaction_run;
        RawEntry {
            native_id: record.uuid.owned(),
            at: record.timestamp.some().and_then(Timestamp::parse),
            branch,
            skip: copied.then_some(Skip::Copied),
            line,
            ..RawEntry::default()
        }
    }

    fn user(&mut self, frame: &RawEntry, record: Record<'_>) {
        let generated = record.is_generated();
        let content = record.message.message().content;
        self.check_parts(frame.line, &content);
        let answers = index::has_result(&content);
        if record.is_compact_summary.on() {
            let is_copy = self.index.marks.has(frame.line, index::SUMMARISED);
            return self.summary(frame, &flatten(content), is_copy);
        }
        let author = match (record.is_meta.on(), generated) {
            (true, _) => Author::Context,
            (false, true) => Author::Client,
            (false, false) => Author::Unknown,
        };
        match content {
            Content::Blocks(blocks) if answers => {
                self.answers(frame, blocks, author, &record.tool_use_result);
            }
            content @ (Content::None | Content::Text(_) | Content::Blocks(_)) => {
                let texts = user_text::read_all(content);
                texts.into_iter().for_each(|text| self.user_text(frame, text, author));
            }
        }
    }

    fn user_text(&mut self, frame: &RawEntry, mut text: ClientText, author: Author) {
        let person = text.speaker == Speaker::Person;
        if author == Author::Context {
            let kept = matches!(text.kind, EntryKind::Command | EntryKind::Notice);
            text.speaker = Speaker::Client;
            text.kind = if kept { text.kind } else { EntryKind::Injected };
            text.skip = Some(Skip::Injected);
        } else if frame.branch == Branch::Sidechain && person {
            // A sub-agent's prompt was written by the parent model.
            text.speaker = Speaker::Client;
        } else if author == Author::Client && person {
            text.speaker = Speaker::Client;
            text.kind = EntryKind::Notice;
        }
        let mut entry = frame.entry(text.speaker, text.kind, text.text);
        entry.skip = frame.skip.or(text.skip);
        let interrupted = entry.text.starts_with(INTERRUPTED);
        entry.outcome = (interrupted && !person).then_some(Outcome::Aborted);
        self.emit(entry);
    }

    fn summary(&mut self, frame: &RawEntry, text: &str, is_copy: bool) {
        let mut entry = frame.entry(Speaker::Client, EntryKind::Summary, text);
        entry.skip = frame.skip.or(is_copy.then_some(Skip::Summarised));
        self.emit(entry);
    }

    fn answers(
        &mut self,
        frame: &RawEntry,
        blocks: Vec<Block<'_>>,
        author: Author,
        structured: &ToolUseResult<'_>,
    ) {
        for block in blocks {
            if block.kind.is("tool_result") {
                self.answer(frame, block, structured);
                continue;
            }
            let words = match block.kind.get() {
                "text" => clean(block.text.0.unwrap_or(Cow::Borrowed(""))),
                "image" | "document" => mark(&block),
                _ => continue,
            };
            let mut text = user_text::read(&words);
            if text.is_prompt() && block.kind.is("text") {
                // Words that a person added to the approval or refusal of the call.
                text.kind = EntryKind::Steering;
            } else if text.is_prompt() {
                text = ClientText::injected(text.text);
            }
            if !text.text.is_empty() {
                self.user_text(frame, text, author);
            }
        }
    }

    fn answer(&mut self, frame: &RawEntry, block: Block<'_>, structured: &ToolUseResult<'_>) {
        let call_id = block.tool_use_id.owned();
        let call = call_id.as_deref().and_then(|id| self.calls.close(id));
        self.is_iflow |= matches!(&block.content, Content::Blocks(parts) if parts.iter().any(|it| !it.response.is_null()));
        let mut entry = tools::read_result(frame, block, structured, call.as_ref());
        if frame.branch == Branch::Sidechain && entry.speaker == Speaker::Person {
            entry.speaker = Speaker::Client;
        }
        entry.tool = call.map(|call| call.name);
        entry.call_id = call_id;
        self.emit(entry);
    }

    fn assistant(&mut self, frame: &RawEntry, record: Record<'_>) {
        let message = record.message.message();
        self.check_parts(frame.line, &message.content);
        if record.is_api_error_message.on() || message.model.is("<synthetic>") {
            let text = flatten(message.content);
            return self.emit(frame.notice(text));
        }
        let id = message.id.some().map(name_of);
        if self.text.as_ref().is_some_and(|(open, _)| Some(*open) != id) {
            self.flush();
        }
        match message.content {
            Content::None => {}
            Content::Text(text) => self.words(frame, id, &clean(text)),
            Content::Blocks(blocks) => {
                blocks.into_iter().for_each(|block| self.block(frame, id, block));
            }
        }
        if id.is_none() {
            self.flush();
        }
    }

    fn block(&mut self, frame: &RawEntry, message: Option<u64>, block: Block<'_>) {
        match block.kind.get() {
            "text" => {
                let words = clean(block.text.0.unwrap_or(Cow::Borrowed("")));
                self.words(frame, message, &words);
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => self.call(frame, block),
            "web_search_tool_result" | "web_fetch_tool_result" | "mcp_tool_result" => {
                let call_id = block.tool_use_id.owned();
                let call = call_id.as_deref().and_then(|id| self.calls.close(id));
                let failed = block.is_error.on();
                let text = flatten(block.content);
                let mut entry = frame.entry(Speaker::Web, EntryKind::ToolResult, text);
                entry.tool = call.map(|call| call.name);
                entry.call_id = call_id;
                entry.outcome = Some(outcome_of_flag(!failed));
                self.emit(entry);
            }
            _ => {}
        }
    }

    /// Adds assistant text; texts of one message become one entry.
    fn words(&mut self, frame: &RawEntry, message: Option<u64>, words: &str) {
        if words.trim().is_empty() {
            return;
        }
        self.spoken = true;
        let message = message.unwrap_or_default();
        match &mut self.text {
            Some((open, entry)) if *open == message => push_piece(&mut entry.text, words, "\n\n"),
            Some(_) | None => {
                self.flush();
                let entry = frame.entry(Speaker::Assistant, EntryKind::Text, words);
                self.text = Some((message, entry));
            }
        }
    }

    fn call(&mut self, frame: &RawEntry, block: Block<'_>) {
        if block.id.some().is_some_and(|id| !self.called.insert(name_of(id))) && self.is_iflow {
            return;
        }
        let name = block.name.some().unwrap_or("unnamed").to_owned();
        let text = block.input.map(|input| tools::render(&name, input)).unwrap_or_default();
        let text = clean(Cow::Owned(text));
        let mut entry = frame.entry(Speaker::Assistant, EntryKind::ToolCall, text);
        entry.tool = Some(name.clone());
        entry.call_id = block.id.owned();
        if let Some(id) = block.id.some() {
            let plans = matches!(name.as_str(), "ExitPlanMode" | "exit_plan_mode");
            let plan = block.input.filter(|_| plans).and_then(tools::plan_of);
            let plan = plan.map(|plan| name_of(plan.trim()));
            self.calls.open(id, OpenCall { name, plan });
        }
        self.flush();
        self.emit(entry);
    }

    fn queued(&mut self, frame: &RawEntry, content: &Str<'_>) {
        let marks = &self.index.marks;
        let taken_back = marks.has(frame.line, index::TAKEN_BACK);
        if !taken_back && !marks.has(frame.line, index::STEERING) {
            return;
        }
        if let Some(text) = content.some() {
            let skip = taken_back.then_some(Skip::TakenBack);
            self.steering(frame, Content::Text(Cow::Borrowed(text)), skip);
        }
    }

    fn steering(&mut self, frame: &RawEntry, content: Content<'_>, skip: Option<Skip>) {
        for mut text in user_text::read_all(content) {
            if text.is_prompt() {
                text.kind = EntryKind::Steering;
            }
            text.skip = text.skip.or(skip);
            self.user_text(frame, text, Author::Unknown);
        }
    }

    fn attachment(&mut self, frame: &RawEntry, attachment: Attachment<'_>) {
        let kind = attachment.kind.get();
        if kind != "queued_command" {
            let file = attachment.filename.get();
            let gap = if file.is_empty() { "" } else { " " };
            let text = format!("[{kind}{gap}{file}]");
            return self.emit(frame.entry(Speaker::Client, EntryKind::Injected, text));
        }
        if self.is_steered(&attachment.prompt) {
            return;
        }
        if is_generated(&attachment.origin) || attachment.mode.is("task-notification") {
            return self.emit(frame.notice(flatten(attachment.prompt)));
        }
        self.steering(frame, attachment.prompt, None);
    }

    /// True if the prompt was read from the queue; decrements its count.
    fn is_steered(&mut self, prompt: &Content<'_>) -> bool {
        let steering = &mut self.index.steering;
        let mut take = |text: &str| {
            let left = steering.get_mut(&index::queued_name(text)).filter(|left| 0 < **left);
            left.map(|left| *left -= 1).is_some()
        };
        match prompt {
            Content::None => false,
            Content::Text(text) => take(text),
            Content::Blocks(blocks) => blocks.iter().any(|block| take(block.text.get())),
        }
    }

    fn system(&mut self, frame: &RawEntry, record: &Record<'_>) {
        let text = record.content.get();
        match record.subtype.get() {
            "local_command" => {
                let texts = user_text::read_all(Content::Text(Cow::Borrowed(text)));
                texts.into_iter().for_each(|text| self.user_text(frame, text, Author::Unknown));
            }
            "away_summary" => self.summary(frame, text, true),
            "api_error"
            | "error"
            | "api_refusal"
            | "model_refusal_fallback"
            | "informational"
            | "permission_retry"
            | "model_fallback"
            | "model_consent_fallback"
            | "scheduled_task_fire" => {
                let status = record.error["status"].as_i64();
                let status = status.map(|status| format!("status {status}")).unwrap_or_default();
                let mut words = format!("[{}]", record.subtype.get());
                for piece in [status.as_str(), record.error.text("message"), text] {
                    let piece: String = piece.chars().take(ERROR_CHARS_MAX).collect();
                    push_piece(&mut words, &piece, " ");
                }
                self.emit(frame.notice(words));
            }
            "compact_boundary" | "microcompact_boundary" | "bridge_status" => {}
            subtype if !text.is_empty() => self.emit.unknown(subtype, frame.line),
            _ => {}
        }
    }

    fn link(&mut self, frame: &RawEntry, record: &Record<'_>) {
        let Some(url) = record.pr_url.some() else { return };
        if LINKS_MAX <= self.links.len() || !self.links.insert(name_of(url)) {
            return;
        }
        let number = record.pr_number.0.map(|number| format!(" #{number}")).unwrap_or_default();
        let text = format!("[pull request{number}] {url}");
        self.emit(frame.notice(text));
    }

    /// Reads the last record of `stream-json` output, which repeats text of the assistant.
    fn result(&mut self, frame: &RawEntry, record: &Record<'_>) {
        let Some(text) = record.result.some() else { return };
        if record.is_error.on() {
            self.emit(frame.notice(clean(Cow::Borrowed(text))));
        } else if !self.spoken {
            self.emit(frame.entry(Speaker::Assistant, EntryKind::Text, clean(Cow::Borrowed(text))));
        }
    }

    /// Emits an entry, or buffers it while the text before it may continue.
    fn emit(&mut self, entry: RawEntry) {
        let between = entry.kind == EntryKind::ToolResult || entry.skip == Some(Skip::Injected);
        if self.text.is_some() && between && self.waiting.len() < WAITING_MAX {
            self.waiting.push(entry);
        } else {
            self.flush();
            self.emit.entry(entry);
        }
    }

    fn flush(&mut self) {
        let text = self.text.take().map(|(_, entry)| entry);
        text.into_iter().chain(self.waiting.drain(..)).for_each(|entry| self.emit.entry(entry));
    }
}
