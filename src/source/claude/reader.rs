//! The second pass over a Claude Code transcript: records in, entries out, in file order.

use super::calls;
use super::index::{self, Index};
use super::record::{Attachment, Record, Twin};
use super::results::{self, Call};
use super::said;
use crate::domain::{Branch, EntryKind, Outcome, Skip, Speaker, Timestamp};
use crate::source::RawEntry;
use crate::source::emit::Emit;
use crate::source::fields::{Block, Content, Str};
use crate::source::marks::{NameSet, OpenCalls, name_of};
use crate::source::outcome;
use crate::source::records::Frame;
use crate::source::said::Said;
use crate::source::text::{clean, flatten, mark, push_piece};
use std::borrow::Cow;

/// Entries that wait behind a text which may go on; a message's results come sooner.
const HELD_MAX: usize = 32;
/// Pull requests that are told apart.
const LINKS_MAX: usize = 1024;
/// The longest error of the client that is kept, in characters.
const ERROR_CHARS_MAX: usize = 500;

/// Turns records into entries.
pub(super) struct Reader<'a, 's> {
    pub(super) emit: Emit<'a, 's>,
    index: Index,
    calls: OpenCalls<Call>,
    /// A text that the next line may go on with, and the message it is of.
    text: Option<(u64, RawEntry)>,
    /// What stands between the text and its going on.
    held: Vec<RawEntry>,
    links: NameSet,
    spoken: bool,
}

impl<'a, 's> Reader<'a, 's> {
    pub(super) fn new(index: Index, emit: Emit<'a, 's>) -> Reader<'a, 's> {
        Reader {
            emit,
            index,
            calls: OpenCalls::default(),
            text: None,
            held: Vec::new(),
            links: NameSet::default(),
            spoken: false,
        }
    }

    /// Whether the first pass found nothing of use on the line.
    pub(super) fn is_passed(&self, line: u32) -> bool {
        self.index.marks.has(line, index::PASSED)
    }

    /// Emits what a record holds.
    pub(super) fn record(&mut self, line: u32, record: Record<'_>) {
        let frame = self.frame(line, &record);
        match record.kind.get() {
            "user" => self.user(&frame, record),
            "assistant" => self.assistant(&frame, record),
            "queue-operation" => self.queued(&frame, &record.content),
            "attachment" => {
                if let Some(attachment) = record.attachment.0 {
                    self.attachment(&frame, attachment);
                }
            }
            "system" => self.system(&frame, &record),
            "pr-link" => self.link(&frame, &record),
            "result" => self.result(&frame, &record),
            _ => {}
        }
    }

    /// Ends the file.
    pub(super) fn close(mut self) {
        self.flush();
        self.emit.finish();
    }

    fn frame(&self, line: u32, record: &Record<'_>) -> Frame {
        let marks = &self.index.marks;
        let branch = match (record.is_sidechain(), marks.has(line, index::ABANDONED)) {
            (true, _) => Branch::Sidechain,
            (false, true) => Branch::Abandoned,
            (false, false) => Branch::Active,
        };
        let copied = marks.has(line, index::COPIED) || self.index.compaction_run;
        Frame {
            line,
            native_id: record.uuid.some().map(str::to_owned),
            at: record.timestamp.some().and_then(Timestamp::parse),
            branch,
            skip: copied.then_some(Skip::Copied),
        }
    }

    fn user(&mut self, frame: &Frame, record: Record<'_>) {
        let answers = super::holds_result(&record.message.content);
        if record.compact.on() {
            return self.summary(frame, record.message.content);
        }
        match record.message.content {
            Content::Blocks(blocks) if answers => {
                self.answers(frame, blocks, &record.tool_result);
            }
            content @ (Content::None | Content::Text(_) | Content::Blocks(_)) => {
                let origin = record.origin.0.as_ref().map(|origin| origin.kind.get());
                let source = record.prompt_source.get();
                let made = said::is_made(origin.unwrap_or_default(), source);
                for said in said::read_all(content) {
                    self.said(frame, said, record.meta.on(), made);
                }
            }
        }
    }

    fn said(&mut self, frame: &Frame, mut said: Said, meta: bool, made: bool) {
        let person = said.speaker == Speaker::Person;
        if meta {
            let kept = matches!(said.kind, EntryKind::Command | EntryKind::Notice);
            said.speaker = Speaker::Client;
            said.kind = if kept { said.kind } else { EntryKind::Injected };
            said.skip = Some(Skip::Injected);
        } else if frame.branch == Branch::Sidechain && person {
            // The parent model wrote what a sub-agent is asked.
            said.speaker = Speaker::Client;
        } else if made && person {
            said.speaker = Speaker::Client;
            said.kind = EntryKind::Notice;
        }
        let mut entry = frame.entry(said.speaker, said.kind, said.text);
        entry.skip = frame.skip.or(said.skip);
        // What the agent was at did not end by itself.
        let interrupted = entry.text.starts_with(said::INTERRUPTED);
        entry.outcome = (interrupted && !person).then_some(Outcome::Aborted);
        self.emit(entry);
    }

    fn summary(&mut self, frame: &Frame, content: Content<'_>) {
        let mut entry = frame.entry(Speaker::Client, EntryKind::Summary, flatten(content));
        if self.index.marks.has(frame.line, index::SUMMARISED) {
            entry.skip = frame.skip.or(Some(Skip::Summarised));
        }
        self.emit(entry);
    }

    fn answers(&mut self, frame: &Frame, blocks: Vec<Block<'_>>, twin: &Twin<'_>) {
        for block in blocks {
            if block.kind.is("tool_result") {
                self.answer(frame, block, twin);
                continue;
            }
            let words = match block.kind.get() {
                "text" => clean(block.text.0.unwrap_or(Cow::Borrowed(""))),
                "image" | "document" => mark(&block),
                _ => continue,
            };
            // Beside a result, only the client speaks.
            let said = said::read(&words);
            let injected = said.is_prompt();
            if !said.text.is_empty() {
                self.said(frame, said, injected, false);
            }
        }
    }

    fn answer(&mut self, frame: &Frame, block: Block<'_>, twin: &Twin<'_>) {
        let call_id = block.tool_use_id.some().map(str::to_owned);
        let call = call_id.as_deref().and_then(|id| self.calls.close(id));
        let answer = results::read(block, twin, call.as_ref());
        let mut entry = frame.entry(answer.speaker, answer.kind, answer.text);
        if frame.branch == Branch::Sidechain && entry.speaker == Speaker::Person {
            entry.speaker = Speaker::Client;
        }
        entry.tool = call.map(|call| call.name);
        entry.call_id = call_id;
        entry.outcome = Some(answer.outcome);
        entry.exit_code = answer.exit_code;
        self.emit(entry);
    }

    fn assistant(&mut self, frame: &Frame, record: Record<'_>) {
        let message = record.message;
        if record.api_error.on() || message.model.is("<synthetic>") {
            let text = flatten(message.content);
            return self.emit(frame.entry(Speaker::Client, EntryKind::Notice, text));
        }
        let id = message.id.some().map(name_of);
        if self.text.as_ref().is_some_and(|(open, _)| Some(*open) != id) {
            self.flush();
        }
        match message.content {
            Content::None => {}
            Content::Text(text) => self.words(frame, id, &clean(text)),
            Content::Blocks(blocks) => {
                for block in blocks {
                    self.block(frame, id, block);
                }
            }
        }
        if id.is_none() {
            self.flush();
        }
    }

    fn block(&mut self, frame: &Frame, message: Option<u64>, block: Block<'_>) {
        match block.kind.get() {
            "text" => {
                let words = clean(block.text.0.unwrap_or(Cow::Borrowed("")));
                self.words(frame, message, &words);
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => self.call(frame, block),
            "web_search_tool_result" | "web_fetch_tool_result" | "mcp_tool_result" => {
                let call_id = block.tool_use_id.some().map(str::to_owned);
                let call = call_id.as_deref().and_then(|id| self.calls.close(id));
                let failed = block.is_error.on();
                let text = flatten(block.content);
                let mut entry = frame.entry(Speaker::Web, EntryKind::ToolResult, text);
                entry.tool = call.map(|call| call.name);
                entry.call_id = call_id;
                entry.outcome = Some(outcome::of_flag(!failed));
                self.emit(entry);
            }
            _ => {}
        }
    }

    /// A piece of what the assistant said; pieces of one message become one entry.
    fn words(&mut self, frame: &Frame, message: Option<u64>, words: &str) {
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

    fn call(&mut self, frame: &Frame, block: Block<'_>) {
        let name = block.name.some().unwrap_or("unnamed").to_owned();
        let text = block.input.map(|input| calls::render(&name, input)).unwrap_or_default();
        let text = clean(Cow::Owned(text));
        let mut entry = frame.entry(Speaker::Assistant, EntryKind::ToolCall, text);
        entry.tool = Some(name.clone());
        entry.call_id = block.id.some().map(str::to_owned);
        if let Some(id) = block.id.some() {
            let plans = matches!(name.as_str(), "ExitPlanMode" | "exit_plan_mode");
            let plan = block.input.filter(|_| plans).and_then(|input| calls::plan_of(input.get()));
            let plan = plan.map(|plan| name_of(plan.trim()));
            self.calls.open(id, Call { name, plan });
        }
        self.flush();
        self.emit(entry);
    }

    fn queued(&mut self, frame: &Frame, content: &Str<'_>) {
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

    fn steering(&mut self, frame: &Frame, content: Content<'_>, skip: Option<Skip>) {
        for mut said in said::read_all(content) {
            if said.is_prompt() {
                said.kind = EntryKind::Steering;
            }
            said.skip = said.skip.or(skip);
            self.said(frame, said, false, false);
        }
    }

    fn attachment(&mut self, frame: &Frame, attachment: Attachment<'_>) {
        let kind = attachment.kind.get();
        if kind != "queued_command" {
            let file = attachment.filename.get();
            let gap = if file.is_empty() { "" } else { " " };
            let text = format!("[{kind}{gap}{file}]");
            let mut entry = frame.entry(Speaker::Client, EntryKind::Injected, text);
            entry.skip = frame.skip.or(Some(Skip::Injected));
            return self.emit(entry);
        }
        if self.is_steered(&attachment.prompt) {
            return;
        }
        let origin = attachment.origin.0.as_ref().map(|origin| origin.kind.get());
        if said::is_made(origin.unwrap_or_default(), "") {
            let text = flatten(attachment.prompt);
            return self.emit(frame.entry(Speaker::Client, EntryKind::Notice, text));
        }
        match attachment.mode.get() {
            "task-notification" => {
                let text = flatten(attachment.prompt);
                self.emit(frame.entry(Speaker::Client, EntryKind::Notice, text));
            }
            _ => self.steering(frame, attachment.prompt, None),
        }
    }

    /// Whether the queue gave this prompt already; takes it off the list if so.
    fn is_steered(&mut self, prompt: &Content<'_>) -> bool {
        let steering = &mut self.index.steering;
        let mut take = |text: &str| match steering.get_mut(&index::queued_name(text)) {
            Some(left) if 0 < *left => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        };
        match prompt {
            Content::None => false,
            Content::Text(text) => take(text),
            Content::Blocks(blocks) => blocks.iter().any(|block| take(block.text.get())),
        }
    }

    fn system(&mut self, frame: &Frame, record: &Record<'_>) {
        let text = record.content.get();
        match record.subtype.get() {
            "local_command" => {
                for said in said::read_all(Content::Text(Cow::Borrowed(text))) {
                    self.said(frame, said, false, false);
                }
            }
            "away_summary" => {
                let mut entry = frame.entry(Speaker::Client, EntryKind::Summary, text);
                entry.skip = frame.skip.or(Some(Skip::Summarised));
                self.emit(entry);
            }
            "api_error" | "error" | "api_refusal" | "model_refusal_fallback" | "informational" => {
                let error = record.error.0.as_ref();
                let status = error.and_then(|error| error.status.0);
                let status = status.map(|status| format!("status {status}")).unwrap_or_default();
                let said = error.map(|error| error.message.get()).unwrap_or_default();
                let mut words = format!("[{}]", record.subtype.get());
                for piece in [status.as_str(), said, text] {
                    let piece: String = piece.chars().take(ERROR_CHARS_MAX).collect();
                    push_piece(&mut words, &piece, " ");
                }
                self.emit(frame.entry(Speaker::Client, EntryKind::Notice, words));
            }
            _ => {}
        }
    }

    fn link(&mut self, frame: &Frame, record: &Record<'_>) {
        let Some(url) = record.pr_url.some() else { return };
        if LINKS_MAX <= self.links.len() || !self.links.insert(name_of(url)) {
            return;
        }
        let number = record.pr_number.0.map(|number| format!(" #{number}")).unwrap_or_default();
        let text = format!("[pull request{number}] {url}");
        self.emit(frame.entry(Speaker::Client, EntryKind::Notice, text));
    }

    /// The last record of a printed run: it repeats what the assistant said, if that is here.
    fn result(&mut self, frame: &Frame, record: &Record<'_>) {
        let Some(text) = record.result.some() else { return };
        if record.is_error.on() {
            self.emit(frame.entry(Speaker::Client, EntryKind::Notice, clean(Cow::Borrowed(text))));
        } else if !self.spoken {
            self.emit(frame.entry(Speaker::Assistant, EntryKind::Text, clean(Cow::Borrowed(text))));
        }
    }

    /// Emits an entry; one that may stand between two pieces of a text waits for the second.
    fn emit(&mut self, entry: RawEntry) {
        let between = entry.kind == EntryKind::ToolResult || entry.skip == Some(Skip::Injected);
        if self.text.is_some() && between && self.held.len() < HELD_MAX {
            self.held.push(entry);
        } else {
            self.flush();
            self.emit.entry(entry);
        }
    }

    /// Emits the text that waits, and what waits behind it.
    fn flush(&mut self) {
        if let Some((_, entry)) = self.text.take() {
            self.emit.entry(entry);
        }
        for entry in self.held.drain(..) {
            self.emit.entry(entry);
        }
    }
}
