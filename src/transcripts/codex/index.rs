//! First pass over a Codex rollout: the session's header, which of the two streams holds the text,
//! how calls ended, and which lines are copied from another session.

use super::record::{AnyPayload, Envelope, Head};
use super::tools::{self, CallEnd};
use crate::domain::{Digest, Outcome, Timestamp};
use crate::transcripts::client_text::SUMMARY_HEAD;
use crate::transcripts::fields::Content;
use crate::transcripts::json::JsonExt;
use crate::transcripts::marks::{LineMarks, NameMap, NameSet, name_of};
use crate::transcripts::raw::{RawSession, short_title};
use crate::transcripts::text::{clean, flatten};
use crate::transcripts::tools::outcome_of_flag;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// Line copied from the session that this one was forked from.
pub(super) const COPIED: u8 = 1;
/// Line of a turn that was rolled back.
pub(super) const ABANDONED: u8 = 2;

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) session: RawSession,
    pub(super) marks: LineMarks,
    /// True if the session is a sub-agent's; its prompts were written by the parent model.
    pub(super) subagent: bool,
    /// True if text is read from events, false if from items.
    pub(super) events: bool,
    /// Hashes of what the agent says in items, as far as no event has a prompt; see [`answer_name`].
    pub(super) answers: NameSet,
    /// Hashes of texts in events, each of which an item repeats.
    pub(super) event_texts: NameSet,
    /// Ends of calls, by hash of the id.
    pub(super) ends: NameMap<CallEnd>,
    /// Hashes of the ids of calls with an output.
    pub(super) answered: NameSet,
    pub(super) last_line: u32,
    /// True if reviews end in an event.
    pub(super) reviewed: bool,
    /// True if interruptions have an event.
    pub(super) aborted: bool,
    /// Hashes of the summaries that replace the conversation at compactions.
    pub(super) summaries: NameSet,
}

#[derive(Debug, Default)]
pub(super) struct Indexer {
    index: Index,
    id: Option<String>,
    digest: Option<String>,
    fork: Fork,
    prompts: Vec<u32>,
    rolled_back: Vec<Range<u32>>,
    calls: NameSet,
    /// Scripts without output so far, each with the hash of its call id.
    scripts: Vec<(u64, String)>,
}

/// Maximum number of scripts without output.
const SCRIPTS_MAX: usize = 64;

impl Indexer {
    pub(super) fn add(
        &mut self,
        line: u32,
        envelope: &Envelope<'_, Head<'_>>,
        mut head: Head<'_>,
        text: &str,
    ) {
        self.index.last_line = line;
        self.digest.get_or_insert_with(|| Digest::of(&["codex", text]).to_string());
        let at = envelope.timestamp.some().and_then(Timestamp::parse);
        let kind = envelope.kind.get();
        let bare = envelope.payload.is_none() && envelope.record_type.some().is_none();
        if kind == "session_meta" || bare && kind.is_empty() && head.id.some().is_some() {
            self.meta(line, &head, at);
        } else if kind == "turn_context" {
            let cwd = head.cwd.owned();
            let session = &mut self.index.session;
            session.cwd = session.cwd.take().or(cwd);
        }
        if head.kind.is("message") && head.role.is("assistant") && !self.index.events {
            self.answer(head.content);
        }
        let (ordinal, payload_kind) = (envelope.ordinal.0, head.kind.get());
        self.fork.line(&LineInfo { line, ordinal, at, kind, payload_kind });
        match head.item.0.take().filter(|_| head.kind.is("item_completed")) {
            Some(item) => self.payload(line, kind, &item.of_item()),
            None => self.payload(line, kind, &head),
        }
    }

    fn meta(&mut self, line: u32, head: &Head<'_>, at: Option<Timestamp>) {
        let Some(own) = &self.id else {
            self.id = head.id.owned();
            let session = &mut self.index.session;
            session.cwd = head.cwd.owned();
            if let Some(branch) = head.git.first_text(&["branch"]) {
                session.on_branch(branch);
            }
            session.started_at = head.timestamp.some().and_then(Timestamp::parse).or(at);
            let subagent = &head.source["subagent"];
            self.index.subagent = subagent.is_object() || subagent.is_string();
            let spawn = subagent["thread_spawn"].first_text(&["parent_thread_id"]);
            let parents = [head.forked_from_id.some(), head.parent_thread_id.some(), spawn];
            session.parent = parents.into_iter().flatten().next().map(str::to_owned);
            let ordinal = head.subagent_history_start_ordinal.0;
            self.fork.begin(line, head.forked_from_id.some().is_some(), ordinal);
            return;
        };
        let other = head.id.some().filter(|id| id != own);
        if let Some(other) = other
            && self.fork.second_head()
        {
            self.index.session.parent.get_or_insert_with(|| other.to_owned());
        }
    }

    fn payload<C>(&mut self, line: u32, kind: &str, head: &AnyPayload<'_, C>) {
        match head.kind.get() {
            _ if kind == "compacted" => self.compacted(head.message.get()),
            payload @ ("user_message" | "agent_message") if kind == "event_msg" => {
                if payload == "user_message" {
                    self.index.events = true;
                    self.prompts.push(line);
                }
                self.index.event_texts.insert(name_of(head.message.get().trim()));
            }
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" => {
                if let Some(call) = head.call_id.some() {
                    self.ended(name_of(call), head);
                }
            }
            "function_call" | "custom_tool_call" => {
                let name = name_of(head.call_id.get());
                self.calls.insert(name);
                let is_script = matches!(head.name.get(), "exec" | "wait");
                if is_script && self.scripts.len() < SCRIPTS_MAX {
                    let script = head.input.map(tools::text_of).unwrap_or_default();
                    self.scripts.push((name, script.into_owned()));
                }
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                let name = name_of(head.call_id.get());
                self.index.answered.insert(name);
                self.scripts.retain(|(script, _)| *script != name);
            }
            "thread_name_updated" => {
                let title = head.thread_name.some().map(short_title);
                self.index.session.title = title.or(self.index.session.title.take());
            }
            "exited_review_mode" => self.index.reviewed = true,
            "turn_aborted" => self.index.aborted = true,
            "thread_rolled_back" => self.roll_back(line, head.num_turns.0),
            _ => {}
        }
    }

    /// Records what an item says, as a whole and by block, each of which may have an event.
    fn answer(&mut self, content: Option<&RawValue>) {
        let content: Option<Content<'_>> =
            content.and_then(|content| serde_json::from_str(content.get()).ok());
        if let Some(Content::Blocks(blocks)) = &content {
            self.index.answers.extend(blocks.iter().map(|block| answer_name(block.text.get())));
        }
        self.index.answers.insert(answer_name(&flatten(content.unwrap_or_default())));
    }

    /// Records the end of a call; a failed command in a script makes the script fail.
    fn ended<C>(&mut self, call: u64, head: &AnyPayload<'_, C>) {
        let end = end_of(head);
        let command = head.command.map(tools::command_of).unwrap_or_default();
        let runs = |(_, script): &&(u64, String)| script.contains(&command);
        let script = self.scripts.iter().find(runs).or(self.scripts.first());
        match script.filter(|_| !self.calls.contains(&call)) {
            None => drop(self.index.ends.insert(call, end)),
            Some(_) if matches!(end.outcome, None | Some(Outcome::Succeeded)) => {}
            Some((script, _)) => drop(self.index.ends.insert(*script, end)),
        }
    }

    /// Records the summary of a compaction, with and without its introduction.
    fn compacted(&mut self, text: &str) {
        let own = text.split_once('\n').filter(|_| text.starts_with(SUMMARY_HEAD));
        let texts = [text, own.map_or("", |(_, own)| own)].map(str::trim);
        self.index.summaries.extend(texts.into_iter().filter(|it| !it.is_empty()).map(name_of));
    }

    fn roll_back(&mut self, line: u32, turns: Option<i64>) {
        let turns = turns.and_then(|turns| usize::try_from(turns).ok()).unwrap_or(0);
        let kept = self.prompts.len().saturating_sub(turns);
        if let Some(first) = self.prompts.get(kept) {
            self.rolled_back.push(*first..line);
            self.prompts.truncate(kept);
        }
    }

    pub(super) fn finish(mut self) -> Index {
        for line in self.fork.copied() {
            self.index.marks.set(line, COPIED);
        }
        for line in self.rolled_back.iter().cloned().flatten() {
            self.index.marks.set(line, ABANDONED);
        }
        let digest = || Digest::of(&["codex", ""]).to_string();
        self.index.session.native_id = self.id.or(self.digest).unwrap_or_else(digest);
        self.index
    }
}

/// Hash of what the agent says. Events leave out the sources that are behind it.
pub(super) fn answer_name(text: &str) -> u64 {
    let text = clean(Cow::Borrowed(text));
    name_of(text.split("<oai-mem-citation>").next().unwrap_or_default().trim())
}

fn end_of<C>(head: &AnyPayload<'_, C>) -> CallEnd {
    let result = head.result.fields();
    let told = result.and_then(|it| match (&it.err, &it.ok.0) {
        (Some(_), _) => Some(false),
        (None, ok) => ok.as_ref().map(|output| !output.is_error.on()),
    });
    let success = match (head.exit_code.0, head.status.get()) {
        (Some(code), _) => Some(code == 0),
        (None, "failed") if head.success.0.is_none() => Some(false),
        (None, _) => head.success.0.or(told),
    };
    let declined = (head.status.get() == "declined").then_some(Outcome::Aborted);
    let outcome = declined.or(success.map(outcome_of_flag));
    CallEnd { outcome, exit_code: head.exit_code.0.and_then(|code| i32::try_from(code).ok()) }
}

/// Maximum pause within a copy. Copies are written within ten milliseconds.
const COPY_GAP_MILLIS_MAX: i64 = 1000;

/// Fields of a line that distinguish copies from own records.
struct LineInfo<'l> {
    line: u32,
    ordinal: Option<i64>,
    at: Option<Timestamp>,
    kind: &'l str,
    payload_kind: &'l str,
}

#[derive(Debug, Default)]
struct Fork {
    forked: bool,
    head: u32,
    /// Ordinal of the first own record, if the client gives it.
    own_ordinal: Option<i64>,
    own_line: Option<u32>,
    begun: Option<Timestamp>,
    previous: Option<Timestamp>,
    /// Line of the last turn, and whether the turn is still open.
    turn: Option<(u32, bool)>,
    spoken: bool,
    last: u32,
}

impl Fork {
    /// Records the line of the file's own header.
    fn begin(&mut self, line: u32, forked: bool, own_ordinal: Option<i64>) {
        self.head = line;
        self.forked = forked || own_ordinal.is_some();
        self.own_ordinal = own_ordinal;
    }

    /// Handles another session's header; returns whether it makes the file a fork.
    fn second_head(&mut self) -> bool {
        self.forked |= !self.spoken;
        self.forked
    }

    fn line(&mut self, info: &LineInfo<'_>) {
        let LineInfo { line, ordinal, at, kind, payload_kind } = *info;
        self.last = line;
        let meta = matches!(kind, "session_meta" | "");
        self.spoken |= !meta;
        // The parent's header opens the copy: pauses are measured from there.
        if self.own_line.is_some() || line <= self.head || (meta && !self.spoken) {
            self.begun = self.begun.or(at);
            self.previous = at.or(self.previous);
            return;
        }
        if let Some(own) = self.own_ordinal {
            let number = ordinal.unwrap_or(i64::from(line) - 1);
            if own <= number {
                self.own_line = Some(line);
            }
            return;
        }
        if self.is_pause(at) {
            let begins = matches!(payload_kind, "task_started" | "thread_settings_applied");
            self.own_line = Some(match self.turn {
                Some((turn, true)) if !begins => turn,
                Some(_) | None => line,
            });
        }
        match payload_kind {
            "task_started" => self.turn = Some((line, true)),
            "task_complete" | "turn_aborted" => {
                self.turn = self.turn.map(|(turn, _)| (turn, false))
            }
            _ => {}
        }
    }

    fn is_pause(&mut self, at: Option<Timestamp>) -> bool {
        let (Some(at), Some(begun)) = (at, self.begun) else { return false };
        if at < begun {
            // A copy that kept its own times.
            return false;
        }
        let previous = self.previous.replace(at).unwrap_or(at);
        COPY_GAP_MILLIS_MAX < at.0.saturating_sub(previous.0)
    }

    fn copied(&self) -> Range<u32> {
        if !self.forked {
            return 0..0;
        }
        let open = self.turn.filter(|(_, open)| *open).map(|(turn, _)| turn);
        let own = self.own_line.or(open.filter(|_| self.own_ordinal.is_none()));
        let own = own.unwrap_or(self.last.saturating_add(1));
        self.head.saturating_add(1)..own
    }
}

#[cfg(test)]
mod fork_tests {
    use super::*;

    /// Lines as `kind@milliseconds`; the first is the header.
    #[track_caller]
    fn check(lines: &str, own: Option<i64>, expected: Range<u32>) {
        let mut fork = Fork::default();
        fork.begin(1, true, own);
        for (line, text) in (1..).zip(lines.split(' ')) {
            let (kind, at) = text.split_once('@').unwrap();
            let at = Some(Timestamp(at.parse().unwrap()));
            let (kind, payload_kind) = ("event_msg", kind);
            fork.line(&LineInfo { line, ordinal: None, at, kind, payload_kind });
        }
        assert_eq!(fork.copied(), expected);
    }

    #[test]
    fn the_copy_ends_where_time_goes_on() {
        check("h@0 user@2 agent@3 task_complete@4 task_started@9000 user@9001", None, 2..5);
    }

    #[test]
    fn a_turn_begun_with_the_fork_is_its_own() {
        check("h@0 task_started@1 agent@2 task_started@5 user@6 agent@4000", None, 2..4);
    }

    #[test]
    fn a_turn_that_ended_is_copied() {
        check("h@0 task_started@1 agent@2 task_complete@3 user@8000", None, 2..5);
    }

    #[test]
    fn a_copy_with_its_own_times_is_a_copy_still() {
        check("h@90000 user@1 agent@5000 task_complete@9000 task_started@99000", None, 2..5);
    }

    #[test]
    fn the_client_may_say_where_own_work_begins() {
        check("h@0 user@1 agent@2 user@3 agent@4", Some(3), 2..4);
    }
}
