//! Second pass over a Codex rollout: turns records into entries, in file order.

use super::index::{self, Index};
use super::record::{Envelope, Payload};
use super::tools;
use crate::domain::{Branch, EntryKind, Outcome, Skip, Speaker, Timestamp};
use crate::transcripts::client_text::{ClientText, TURN_ABORTED, USER_ACTION};
use crate::transcripts::emit::Emit;
use crate::transcripts::fields::Content;
use crate::transcripts::json::JsonExt;
use crate::transcripts::marks::name_of;
use crate::transcripts::raw::RawEntry;
use crate::transcripts::text::{between, clean, flatten, mark, mark_url, push_piece};
use crate::transcripts::tools::{OpenCalls, is_web};
use std::borrow::Cow;

/// Beginnings of the context that an editor puts in front of a prompt, and the heading of the prompt.
const CONTEXT_HEADS: [&str; 4] = [
    "# Context from my IDE setup", "# Files mentioned by", "# Review findings:",
    "## Code review guidelines:",
];
const REQUEST: &str = "## My request for Codex:";
/// Maximum number of unanswered calls that an interruption may end.
const UNANSWERED_MAX: usize = 256;
/// Kinds of records and events with text that other records have too, or that says how the client works.
const UNREAD: [&str; 9] = [
    "agent_reasoning", "reasoning", "additional_tools", "exec_command_end", "patch_apply_end",
    "guardian_assessment", "warning", "collab_agent_interaction_end", "Reasoning",
];

#[derive(Default)]
pub(super) struct RecordReader<'a> {
    pub(super) emit: Emit<'a>,
    index: Index,
    calls: OpenCalls<String>,
    unanswered: Vec<(String, String)>,
    /// Form (`true` if newer) and hash of the last text event: some clients write both forms.
    last_event: Option<(bool, u64)>,
    /// Description of the review that runs. If a person wrote the reviewer's prompt, it is that prompt.
    review: Option<String>,
    /// True if the next text, unless a prompt comes first, repeats a review.
    is_review_told: bool,
}

/// True if a line has no entries.
pub(super) fn is_skipped<P>(envelope: &Envelope<'_, P>) -> bool {
    let kinds = ["session_meta", "turn_context", "world_state"];
    kinds.contains(&envelope.kind.get()) || envelope.record_type.some().is_some()
}

impl<'a> RecordReader<'a> {
    pub(super) fn new(index: Index, emit: Emit<'a>) -> RecordReader<'a> {
        RecordReader { emit, index, ..RecordReader::default() }
    }

    pub(super) fn record(
        &mut self,
        line: u32,
        envelope: &Envelope<'_, Payload<'_>>,
        mut payload: Payload<'_>,
    ) {
        let marks = &self.index.marks;
        let branch = match (marks.has(line, index::ABANDONED), self.index.subagent) {
            (true, _) => Branch::Abandoned,
            (false, true) => Branch::Sidechain,
            (false, false) => Branch::Active,
        };
        // Fields that all entries of the record share.
        let frame = RawEntry {
            at: envelope.timestamp.some().and_then(Timestamp::parse),
            native_id: payload.id.owned(),
            branch,
            skip: marks.has(line, index::COPIED).then_some(Skip::Copied),
            line,
            ..RawEntry::default()
        };
        match envelope.kind.get() {
            "event_msg" => match payload.item.0.take_if(|_| payload.kind.is("item_completed")) {
                Some(item) => {
                    let item = Payload { thread_id: payload.thread_id, ..item.of_item() };
                    self.event(&frame, item, true);
                }
                None => self.event(&frame, payload, false),
            },
            "response_item" => self.item(&frame, payload),
            "compacted" => {
                let text = clean(Cow::Borrowed(payload.message.get()));
                self.emit_words(summary(&frame, &text));
            }
            _ if envelope.payload.is_none() => self.item(&frame, payload),
            kind => self.unread(&frame, kind, &payload),
        }
    }

    /// Reports a record of an unknown kind that holds text.
    fn unread(&mut self, frame: &RawEntry, kind: &str, payload: &Payload<'_>) {
        let holds_text = payload.message.some().or(payload.text.some()).is_some()
            || !matches!(payload.content, Content::None);
        if holds_text && !UNREAD.contains(&kind) {
            self.emit.unknown(kind, frame.line);
        }
    }

    /// Reads an event. `newer`: the client wrapped it into an item.
    fn event(&mut self, frame: &RawEntry, payload: Payload<'_>, newer: bool) {
        let kind = payload.kind.get();
        if matches!(kind, "user_message" | "agent_message") {
            let event = (newer, name_of(payload.message.get()));
            let again = self.last_event.replace(event) == Some((!newer, event.1));
            // Those of a sub-agent may have no prompt among them.
            let told = !self.index.events
                && self.index.answers.contains(&index::answer_name(payload.message.get()));
            if again || told {
                return;
            }
        }
        match kind {
            "user_message" if self.is_reviewers(&payload) => {
                let text = clean(Cow::Borrowed(payload.message.get()));
                self.emit_words(frame.entry(Speaker::Client, EntryKind::Prompt, text));
            }
            "user_message" => self.prompt(frame, payload),
            // Otherwise it is in a message, too.
            "plan" if !self.index.events => {}
            "agent_message" | "plan" => {
                self.says(frame, &clean(Cow::Borrowed(payload.message.get())))
            }
            "turn_aborted" => self.aborted(frame, payload.reason.some().unwrap_or("unknown")),
            "entered_review_mode" => {
                let text = format!("[review began] {}", payload.user_facing_hint.get());
                self.review = Some(payload.user_facing_hint.get().to_owned());
                self.emit_words(frame.notice(text.trim()));
            }
            "exited_review_mode" => {
                let text = payload.review_output.map(|review| tools::review(review.get()));
                let text = text.unwrap_or_default();
                (self.review, self.is_review_told) = (None, !text.trim().is_empty());
                self.emit_words(frame.entry(Speaker::Assistant, EntryKind::Text, text));
            }
            "error" | "stream_error" => {
                self.emit_words(frame.notice(format!("[error] {}", payload.message.get())));
            }
            "task_complete" => {
                let error = payload.error.first_text(&["message"]).or(payload.error.as_str());
                if let Some(error) = error.filter(|error| !error.is_empty()) {
                    self.emit_words(frame.notice(format!("[error] {error}")));
                }
            }
            "undo_completed" | "thread_rolled_back" => {
                let text = format!("[{kind}] {}", payload.message.get());
                self.emit_words(frame.notice(text.trim()));
            }
            _ => self.unread(frame, kind, &payload),
        }
    }

    /// True for the prompt of a reviewer that the client wrote: the reviewer has a thread of its own.
    fn is_reviewers(&self, payload: &Payload<'_>) -> bool {
        let is_own = payload.thread_id.some().is_none_or(|it| it == self.index.session.native_id);
        let review = self.review.as_deref().filter(|_| !is_own);
        review.is_some_and(|hint| hint.trim() != payload.message.get().trim())
    }

    /// Reads a prompt from the event stream.
    fn prompt(&mut self, frame: &RawEntry, payload: Payload<'_>) {
        let message = clean(Cow::Borrowed(payload.message.get()));
        let mut pictures = String::new();
        for content in [payload.images, payload.local_images] {
            let Content::Blocks(blocks) = content else { continue };
            for block in blocks {
                let picture = block.text.some().map_or_else(|| mark(&block), mark_url);
                push_piece(&mut pictures, &picture, "\n");
            }
        }
        let kind = payload.message_kind.get();
        let injected = matches!(kind, "environment_context" | "user_instructions");
        self.user(frame, &message, &pictures, injected);
    }

    /// Reads a text attributed to the user.
    fn user(&mut self, frame: &RawEntry, text: &str, pictures: &str, injected: bool) {
        let (context, text) = split_request(text);
        if let Some(context) = context {
            self.emit_words(frame.entry(Speaker::Client, EntryKind::Injected, context));
        }
        let ClientText { speaker, kind, skip, text: mut words } = user_text(text);
        // An event repeats it.
        let repeated = (words.starts_with(TURN_ABORTED) && self.index.aborted)
            || (words.starts_with(USER_ACTION) && self.index.reviewed);
        self.is_review_told &= repeated;
        push_piece(&mut words, pictures, "\n");
        let person = speaker == Speaker::Person;
        let mut entry = frame.entry(speaker, kind, words);
        entry.skip = entry.skip.or(skip);
        if kind == EntryKind::Summary && self.is_summary(text) {
            return self.emit_words(summary(frame, text));
        }
        if injected && person && kind != EntryKind::Command {
            if frame.line == self.index.last_line {
                // The event by which it is known as a prompt may not be written yet.
                return;
            }
            entry.speaker = Speaker::Client;
            entry.kind = EntryKind::Injected;
            entry.skip = entry.skip.or(Some(Skip::Injected));
        } else if person && self.index.subagent && entry.skip != Some(Skip::Copied) {
            // A sub-agent's prompt was written by the parent model.
            entry.speaker = Speaker::Client;
        }
        if repeated {
            entry.skip = entry.skip.or(Some(Skip::Copied));
        }
        let shell = kind == EntryKind::Command;
        if shell {
            entry.text.insert(0, '!');
        }
        self.emit_words(entry);
        if let Some(result) = between(text, "result").filter(|_| shell) {
            let output = tools::read_output(Content::Text(Cow::Borrowed(result.trim())), None);
            let mut entry = frame.entry(Speaker::Tool, EntryKind::ToolResult, output.text);
            (entry.outcome, entry.exit_code) = (Some(output.outcome), output.exit_code);
            self.emit.entry(entry);
        }
    }

    fn aborted(&mut self, frame: &RawEntry, reason: &str) {
        for (name, call_id) in std::mem::take(&mut self.unanswered) {
            let text = "[no output: the turn was aborted]";
            let mut entry = frame.entry(Speaker::Client, EntryKind::ToolResult, text);
            entry.tool = Some(name);
            entry.call_id = Some(call_id);
            entry.outcome = Some(Outcome::Aborted);
            self.emit.entry(entry);
        }
        let mut entry = frame.notice(format!("[turn aborted: {reason}]"));
        entry.outcome = Some(Outcome::Aborted);
        self.emit.entry(entry);
    }

    fn item(&mut self, frame: &RawEntry, payload: Payload<'_>) {
        match payload.kind.get() {
            "message" => self.message(frame, payload),
            "function_call" | "custom_tool_call" | "tool_search_call" => {
                let name = tool_name(&payload);
                let raw = payload.arguments.or(payload.input);
                let arguments = raw.map(tools::text_of).unwrap_or_default();
                let text = tools::render(&name, &arguments);
                self.call(call(frame, Speaker::Assistant, text), &name, payload.call_id.some());
            }
            kind @ ("local_shell_call" | "web_search_call") => {
                let is_web = kind == "web_search_call";
                let speaker = if is_web { Speaker::Web } else { Speaker::Assistant };
                let id = payload.call_id.some().or(payload.id.some());
                let entry = call(frame, speaker, tools::action(payload.action));
                self.call(entry, kind.trim_end_matches("_call"), id);
            }
            "image_generation_call" => {
                let text = payload.revised_prompt.get().to_owned();
                let entry = call(frame, Speaker::Assistant, text);
                self.call(entry, "image_generation", payload.id.some());
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
                self.emit_words(frame.notice(text));
            }
            kind => self.unread(frame, kind, &payload),
        }
    }

    /// Reads a message from the item stream, unless an event contains it too.
    fn message(&mut self, frame: &RawEntry, payload: Payload<'_>) {
        let Content::Blocks(blocks) = payload.content else {
            let text = flatten(payload.content);
            return self.item_text(frame, payload.role.get(), &text, "");
        };
        let (mut text, mut pictures) = (String::new(), String::new());
        let mut known = false;
        for block in &blocks {
            if block.kind.is("input_image") {
                push_piece(&mut pictures, &mark(block), "\n");
            } else {
                known |= self.is_in_events(block.text.get());
                push_piece(&mut text, &clean(Cow::Borrowed(block.text.get())), "\n");
            }
        }
        if !known {
            self.item_text(frame, payload.role.get(), &text, &pictures);
        }
    }

    fn is_in_events(&self, text: &str) -> bool {
        self.index.events && self.index.event_texts.contains(&name_of(text.trim()))
    }

    fn item_text(&mut self, frame: &RawEntry, role: &str, text: &str, pictures: &str) {
        match role {
            _ if self.is_in_events(text) => {}
            "assistant" => self.says(frame, text),
            // Where events hold the prompts, text found only in an item was not typed.
            "user" => self.user(frame, text, pictures, self.index.events),
            "developer" | "system" => {
                self.emit_words(frame.entry(Speaker::Client, EntryKind::Injected, text));
            }
            _ => {}
        }
    }

    /// Emits assistant text, or the summary that the assistant wrote for a compaction.
    fn says(&mut self, frame: &RawEntry, text: &str) {
        let mut entry = match self.is_summary(text) {
            true => summary(frame, text),
            false => frame.entry(Speaker::Assistant, EntryKind::Text, text),
        };
        if std::mem::take(&mut self.is_review_told) {
            entry.skip = entry.skip.or(Some(Skip::Copied));
        }
        self.emit_words(entry);
    }

    fn is_summary(&self, text: &str) -> bool {
        self.index.summaries.contains(&name_of(text.trim()))
    }

    fn call(&mut self, mut entry: RawEntry, name: &str, id: Option<&str>) {
        entry.tool = Some(name.to_owned());
        entry.call_id = id.map(str::to_owned);
        if let Some(id) = id {
            if entry.speaker == Speaker::Assistant
                && !self.index.answered.contains(&name_of(id))
                && self.unanswered.len() < UNANSWERED_MAX
            {
                self.unanswered.push((name.to_owned(), id.to_owned()));
            }
            self.calls.open(id, name.to_owned());
        }
        self.emit.entry(entry);
    }

    fn output(&mut self, frame: &RawEntry, payload: Payload<'_>) {
        let call_id = payload.call_id.some();
        let tool = call_id.and_then(|id| self.calls.close(id));
        let end = call_id.and_then(|id| self.index.ends.get(&name_of(id)).copied());
        let output = tools::read_output(payload.output, end);
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

    /// Emits an entry unless it is blank.
    fn emit_words(&mut self, entry: RawEntry) {
        if !entry.text.trim().is_empty() {
            self.emit.entry(entry);
        }
    }
}

/// Summary of earlier entries that are in the file too.
fn summary(frame: &RawEntry, text: &str) -> RawEntry {
    let mut entry = frame.entry(Speaker::Client, EntryKind::Summary, text);
    entry.skip = entry.skip.or(Some(Skip::Summarised));
    entry
}

/// Name of a tool; tools of an MCP server include the server's name.
fn tool_name<'a>(payload: &'a Payload<'_>) -> Cow<'a, str> {
    let name = payload.name.some().unwrap_or("tool_search");
    match payload.namespace.some().filter(|it| it.starts_with("mcp__") && !name.starts_with(it)) {
        Some(server) => Cow::Owned(format!("{server}__{name}")),
        None => Cow::Borrowed(name),
    }
}

fn call(frame: &RawEntry, speaker: Speaker, text: String) -> RawEntry {
    frame.entry(speaker, EntryKind::ToolCall, clean(Cow::Owned(text)))
}

/// Classifies a text attributed to the user.
fn user_text(text: &str) -> ClientText {
    let text = text.trim();
    if text.starts_with("<user_shell_command>") {
        let command = between(text, "command").unwrap_or(text).trim();
        return ClientText::new(Speaker::Person, EntryKind::Command, command);
    }
    let prompt = || ClientText::new(Speaker::Person, EntryKind::Prompt, text);
    ClientText::of_client(text).unwrap_or_else(prompt)
}

/// Splits the context that an editor puts in front of a prompt from the prompt.
fn split_request(text: &str) -> (Option<&str>, &str) {
    let start = text.trim_start();
    let is_wrapped = CONTEXT_HEADS.iter().any(|head| start.starts_with(head));
    match start.split_once(REQUEST).filter(|_| is_wrapped) {
        Some((context, request)) => (Some(context.trim_end()), request),
        None => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let text = user_text(text);
        let skip = text.skip.map_or("", |_| " skipped");
        let shown = format!("{} {}{skip}: {}", text.speaker.name(), text.kind.name(), text.text);
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_editors_context_in_front_of_a_prompt_is_no_part_of_it() {
        let context = "# Context from my IDE setup:\n## Open tabs\n- a.rs";
        let wrapped = format!("\n{context}\n\n## My request for Codex:\nfix a.rs\n");
        assert_eq!(split_request(&wrapped), (Some(context), "\nfix a.rs\n"));
        for context in ["# Review findings:\nLeak", "## Code review guidelines:\nBe brief."] {
            let wrapped = format!("{context}\n\n## My request for Codex:\nfix it");
            assert_eq!(split_request(&wrapped), (Some(context), "\nfix it"));
        }
        for words in
            ["# Files mentioned by the user:\n- a", "say ## My request for Codex: twice", "\n a"]
        {
            assert_eq!(split_request(words), (None, words));
        }
    }

    #[test]
    fn context_in_the_users_name_is_injected() {
        let text = "<environment_context>\n<cwd>/x</cwd>";
        check(text, &format!("client injected skipped: {text}"));
    }

    #[test]
    fn notices_and_shell_commands_are_told_apart() {
        for text in ["<subagent_notification>x", "<codex_delegation>\n<input>x</input>"] {
            check(text, &format!("client notice: {text}"));
        }
        let shell = "<user_shell_command>\n<command>\nls\n</command>\n<result>a</result>";
        check(shell, "person command: ls");
    }
}
