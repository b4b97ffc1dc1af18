//! The second pass over a Codex rollout: records in, entries out, in file order.

use super::index::{self, Index};
use super::record::{Envelope, Payload};
use super::{calls, outputs, review, said};
use crate::domain::{Branch, EntryKind, Outcome, Skip, Speaker, Timestamp};
use crate::source::RawEntry;
use crate::source::emit::Emit;
use crate::source::fields::Content;
use crate::source::marks::{OpenCalls, name_of};
use crate::source::records::Frame;
use crate::source::text::{between, clean, flatten, mark, mark_url, push_piece};
use crate::source::tools::is_web;
use std::borrow::Cow;

/// Calls without any output that an interruption may end.
const UNANSWERED_MAX: usize = 256;

/// Turns records into entries.
pub(super) struct Reader<'a, 's> {
    pub(super) emit: Emit<'a, 's>,
    index: Index,
    calls: OpenCalls<String>,
    /// Calls that no output will answer: their names and ids.
    unanswered: Vec<(String, String)>,
}

/// Whether nothing of use can stand on the line.
pub(super) fn is_passed<P>(envelope: &Envelope<'_, P>) -> bool {
    let kinds = ["session_meta", "turn_context", "world_state"];
    kinds.contains(&envelope.kind.get()) || envelope.record_type.some().is_some()
}

impl<'a, 's> Reader<'a, 's> {
    pub(super) fn new(index: Index, emit: Emit<'a, 's>) -> Reader<'a, 's> {
        Reader { emit, index, calls: OpenCalls::default(), unanswered: Vec::new() }
    }

    /// Emits what a record holds.
    pub(super) fn record(
        &mut self,
        line: u32,
        envelope: &Envelope<'_, Payload<'_>>,
        payload: Payload<'_>,
    ) {
        let marks = &self.index.marks;
        let branch = match (marks.has(line, index::ABANDONED), self.index.subagent) {
            (true, _) => Branch::Abandoned,
            (false, true) => Branch::Sidechain,
            (false, false) => Branch::Active,
        };
        let frame = Frame {
            line,
            at: envelope.timestamp.some().and_then(Timestamp::parse),
            native_id: payload.id.some().map(str::to_owned),
            branch,
            skip: marks.has(line, index::COPIED).then_some(Skip::Copied),
        };
        match envelope.kind.get() {
            "event_msg" => self.event(&frame, payload),
            "response_item" => self.item(&frame, payload),
            "compacted" => {
                let mut entry = frame.entry(
                    Speaker::Client,
                    EntryKind::Summary,
                    clean(Cow::Borrowed(payload.message.get())),
                );
                entry.skip = entry.skip.or(Some(Skip::Summarised));
                self.emit_words(entry);
            }
            _ if envelope.payload.is_none() => self.item(&frame, payload),
            _ => {}
        }
    }

    fn event(&mut self, frame: &Frame, payload: Payload<'_>) {
        match payload.kind.get() {
            "user_message" => self.prompt(frame, payload),
            "agent_message" => {
                let text = clean(Cow::Borrowed(payload.message.get()));
                self.emit_words(frame.entry(Speaker::Assistant, EntryKind::Text, text));
            }
            "turn_aborted" => self.aborted(frame, payload.reason.some().unwrap_or("unknown")),
            "entered_review_mode" => {
                let hint = payload.user_facing_hint.get();
                let text = format!("[review began] {hint}");
                self.emit_words(frame.entry(Speaker::Client, EntryKind::Notice, text.trim()));
            }
            "exited_review_mode" => {
                let text = payload.review_output.map(|review| review::render(review.get()));
                let text = text.unwrap_or_default();
                self.emit_words(frame.entry(Speaker::Assistant, EntryKind::Text, text));
            }
            "error" | "stream_error" => {
                let text = format!("[error] {}", payload.message.get());
                self.emit_words(frame.entry(Speaker::Client, EntryKind::Notice, text));
            }
            "task_complete" => {
                let error = payload.error.fields().map(|error| error.message.get());
                if let Some(error) = error.or(payload.error.text()).filter(|e| !e.is_empty()) {
                    let text = format!("[error] {error}");
                    self.emit_words(frame.entry(Speaker::Client, EntryKind::Notice, text));
                }
            }
            "undo_completed" | "thread_rolled_back" => {
                let text = format!("[{}] {}", payload.kind.get(), payload.message.get());
                self.emit_words(frame.entry(Speaker::Client, EntryKind::Notice, text.trim()));
            }
            _ => {}
        }
    }

    /// A prompt in the stream of events.
    fn prompt(&mut self, frame: &Frame, payload: Payload<'_>) {
        let message = clean(Cow::Borrowed(payload.message.get()));
        let mut pictures = String::new();
        for content in [payload.images, payload.local_images] {
            let Content::Blocks(blocks) = content else { continue };
            for block in blocks {
                push_piece(&mut pictures, &mark_url(block.text.get()), "\n");
            }
        }
        let injected = ["environment_context", "user_instructions"].contains(&payload.sort.get());
        self.user(frame, &message, &pictures, injected);
    }

    /// What stands in a person's name.
    fn user(&mut self, frame: &Frame, text: &str, pictures: &str, injected: bool) {
        let said = said::read(text);
        let repeated = index::repeats_event(&self.index, &said.text);
        let mut words = said.text;
        push_piece(&mut words, pictures, "\n");
        let person = said.speaker == Speaker::Person;
        let mut entry = frame.entry(said.speaker, said.kind, words);
        entry.skip = entry.skip.or(said.skip);
        if injected && person {
            entry.speaker = Speaker::Client;
            entry.kind = EntryKind::Injected;
            entry.skip = entry.skip.or(Some(Skip::Injected));
        } else if person && self.index.subagent && entry.skip != Some(Skip::Copied) {
            // The parent model wrote what a sub-agent is asked.
            entry.speaker = Speaker::Client;
        }
        if repeated {
            entry.skip = entry.skip.or(Some(Skip::Copied));
        }
        let shell = said.kind == EntryKind::Command;
        if shell {
            entry.text.insert(0, '!');
        }
        self.emit_words(entry);
        if let Some(result) = between(text, "result").filter(|_| shell) {
            let output = outputs::read(Content::Text(Cow::Borrowed(result.trim())), None);
            let mut entry = frame.entry(Speaker::Tool, EntryKind::ToolResult, output.text);
            (entry.outcome, entry.exit_code) = (Some(output.outcome), output.exit_code);
            self.emit.entry(entry);
        }
    }

    fn aborted(&mut self, frame: &Frame, reason: &str) {
        for (name, call_id) in std::mem::take(&mut self.unanswered) {
            let text = "[no output: the turn was aborted]";
            let mut entry = frame.entry(Speaker::Client, EntryKind::ToolResult, text);
            entry.tool = Some(name);
            entry.call_id = Some(call_id);
            entry.outcome = Some(Outcome::Aborted);
            self.emit.entry(entry);
        }
        let text = format!("[turn aborted: {reason}]");
        let mut entry = frame.entry(Speaker::Client, EntryKind::Notice, text);
        entry.outcome = Some(Outcome::Aborted);
        self.emit.entry(entry);
    }

    fn item(&mut self, frame: &Frame, payload: Payload<'_>) {
        match payload.kind.get() {
            "message" => self.message(frame, payload),
            "function_call" | "custom_tool_call" | "tool_search_call" => {
                let name = payload.name.some().unwrap_or("tool_search").to_owned();
                let raw = payload.arguments.or(payload.input);
                let arguments = raw.map(calls::text_of).unwrap_or_default();
                let text = calls::render(&name, &arguments);
                self.call(frame, Speaker::Assistant, (name, payload.call_id.some()), text);
            }
            "local_shell_call" => {
                let id = payload.call_id.some().or(payload.id.some());
                let text = calls::action(payload.action);
                self.call(frame, Speaker::Assistant, ("local_shell".to_owned(), id), text);
            }
            "web_search_call" => {
                let id = payload.call_id.some().or(payload.id.some());
                let text = calls::action(payload.action);
                self.call(frame, Speaker::Web, ("web_search".to_owned(), id), text);
            }
            "image_generation_call" => {
                let text = payload.revised_prompt.get().to_owned();
                let name = "image_generation".to_owned();
                self.call(frame, Speaker::Assistant, (name, payload.id.some()), text);
            }
            "function_call_output" | "custom_tool_call_output" => self.output(frame, payload),
            "tool_search_output" => {
                let tools = payload.tools.map(|tools| tools.get()).unwrap_or_default();
                let text = format!("[{} bytes of tool descriptions]", tools.len());
                self.output(frame, Payload { output: Content::Text(text.into()), ..payload });
            }
            "agent_message" => {
                let author = payload.author.get();
                let text = format!("[from agent {author}] {}", flatten(payload.content));
                self.emit_words(frame.entry(Speaker::Client, EntryKind::Notice, text));
            }
            _ => {}
        }
    }

    /// A message in the stream of items: what no event says already.
    fn message(&mut self, frame: &Frame, payload: Payload<'_>) {
        let Content::Blocks(blocks) = payload.content else {
            let text = flatten(payload.content);
            return self.spoken(frame, payload.role.get(), &text, "");
        };
        let (mut text, mut pictures) = (String::new(), String::new());
        let mut known = false;
        for block in &blocks {
            if block.kind.is("input_image") {
                push_piece(&mut pictures, &mark(block), "\n");
            } else {
                known |= self.is_said(block.text.get());
                push_piece(&mut text, &clean(Cow::Borrowed(block.text.get())), "\n");
            }
        }
        if !known {
            self.spoken(frame, payload.role.get(), &text, &pictures);
        }
    }

    fn is_said(&self, text: &str) -> bool {
        self.index.events && self.index.said.contains(&name_of(text.trim()))
    }

    fn spoken(&mut self, frame: &Frame, role: &str, text: &str, pictures: &str) {
        match role {
            _ if self.is_said(text) => {}
            "assistant" => {
                self.emit_words(frame.entry(Speaker::Assistant, EntryKind::Text, text));
            }
            // Where events hold the prompts, what only an item says was not typed.
            "user" => self.user(frame, text, pictures, self.index.events),
            "developer" | "system" => {
                let mut entry = frame.entry(Speaker::Client, EntryKind::Injected, text);
                entry.skip = entry.skip.or(Some(Skip::Injected));
                self.emit_words(entry);
            }
            _ => {}
        }
    }

    fn call(
        &mut self,
        frame: &Frame,
        speaker: Speaker,
        (name, id): (String, Option<&str>),
        text: String,
    ) {
        let mut entry = frame.entry(speaker, EntryKind::ToolCall, clean(Cow::Owned(text)));
        entry.tool = Some(name.clone());
        entry.call_id = id.map(str::to_owned);
        if let Some(id) = id {
            if speaker == Speaker::Assistant
                && !self.index.answered.contains(&name_of(id))
                && self.unanswered.len() < UNANSWERED_MAX
            {
                self.unanswered.push((name.clone(), id.to_owned()));
            }
            self.calls.open(id, name);
        }
        self.emit.entry(entry);
    }

    fn output(&mut self, frame: &Frame, payload: Payload<'_>) {
        let call_id = payload.call_id.some();
        let tool = call_id.and_then(|id| self.calls.close(id));
        let end = call_id.and_then(|id| self.index.ends.get(&name_of(id)).copied());
        let output = outputs::read(payload.output, end);
        let web = tool.as_deref().is_some_and(is_web);
        let (speaker, kind) = match (output.refused, web) {
            (true, _) => (Speaker::Client, EntryKind::Rejection),
            (false, true) => (Speaker::Web, EntryKind::ToolResult),
            (false, false) => (Speaker::Tool, EntryKind::ToolResult),
        };
        let mut entry = frame.entry(speaker, kind, output.text);
        entry.tool = tool;
        entry.call_id = call_id.map(str::to_owned);
        entry.outcome = Some(output.outcome);
        entry.exit_code = output.exit_code;
        self.emit.entry(entry);
    }

    /// Emits an entry that is nothing without words.
    fn emit_words(&mut self, entry: RawEntry) {
        if !entry.text.trim().is_empty() {
            self.emit.entry(entry);
        }
    }
}
