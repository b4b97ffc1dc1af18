//! The first pass over a Codex rollout: the session's head, which of the two streams holds the
//! words, how calls ended, and which lines are a copy of another session's history.

use super::fork::Fork;
use super::outputs::End;
use super::record::{Envelope, Head};
use super::said;
use crate::domain::{Digest, Outcome, Timestamp};
use crate::source::RawSession;
use crate::source::marks::{Marks, NameMap, NameSet, name_of};
use crate::source::raw::short_title;

/// The line is copied from the session that this one was forked from.
pub(super) const COPIED: u8 = 1;
/// It stands in a turn that was rolled back.
pub(super) const ABANDONED: u8 = 2;

/// What the first pass learnt.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) session: RawSession,
    pub(super) marks: Marks,
    /// Whether a sub-agent's work is in the file: its prompts are the parent model's.
    pub(super) subagent: bool,
    /// Whether events hold the words; else items do.
    pub(super) events: bool,
    /// Names of the texts in events, each of which an item repeats.
    pub(super) said: NameSet,
    /// How calls ended, by name of the call.
    pub(super) ends: NameMap<End>,
    /// Calls that have an output.
    pub(super) answered: NameSet,
    /// Whether reviews end in an event.
    pub(super) reviewed: bool,
    /// Whether interruptions have an event.
    pub(super) aborted: bool,
}

/// Builds an [`Index`] line by line.
#[derive(Debug, Default)]
pub(super) struct Builder {
    index: Index,
    id: Option<String>,
    digest: Option<String>,
    fork: Fork,
    prompts: Vec<u32>,
    /// Lines of turns that were rolled back, the end left out.
    rolled_back: Vec<(u32, u32)>,
}

impl Builder {
    /// Takes the next line, whose payload is `head`; `text` is the whole line.
    pub(super) fn add(
        &mut self,
        line: u32,
        envelope: &Envelope<'_, Head<'_>>,
        head: &Head<'_>,
        text: &str,
    ) {
        if self.digest.is_none() {
            self.digest = Some(Digest::of(&["codex", text]).to_string());
        }
        let at = envelope.timestamp.some().and_then(Timestamp::parse);
        let kind = envelope.kind.get();
        let bare = envelope.payload.is_none() && envelope.record_type.some().is_none();
        if kind == "session_meta" || bare && kind.is_empty() && head.id.some().is_some() {
            self.meta(line, head, at);
        } else if kind == "turn_context" {
            let cwd = head.cwd.some().map(str::to_owned);
            let session = &mut self.index.session;
            session.cwd = session.cwd.take().or(cwd);
        }
        self.fork.line(line, envelope.ordinal.0, at, (kind, head.kind.get()));
        self.payload(line, kind, head);
    }

    fn meta(&mut self, line: u32, head: &Head<'_>, at: Option<Timestamp>) {
        let Some(own) = &self.id else {
            self.id = head.id.some().map(str::to_owned);
            let session = &mut self.index.session;
            session.cwd = head.cwd.some().map(str::to_owned);
            session.started_at = head.timestamp.some().and_then(Timestamp::parse).or(at);
            let origin = head.source.fields();
            let subagent = origin.map(|origin| &origin.subagent);
            let spawn = subagent.and_then(|sub| sub.fields()).and_then(|sub| {
                sub.thread_spawn.0.as_ref().and_then(|spawn| spawn.parent_thread_id.some())
            });
            self.index.subagent =
                subagent.is_some_and(|sub| sub.fields().is_some() || sub.text().is_some());
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

    fn payload(&mut self, line: u32, kind: &str, head: &Head<'_>) {
        let name = |id: &str| name_of(id);
        match head.kind.get() {
            "user_message" if kind == "event_msg" => {
                self.index.events = true;
                self.prompts.push(line);
                self.index.said.insert(name(head.message.get().trim()));
            }
            "agent_message" if kind == "event_msg" => {
                self.index.said.insert(name(head.message.get().trim()));
            }
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" => {
                if let Some(call) = head.call_id.some() {
                    self.index.ends.insert(name(call), end_of(head));
                }
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.index.answered.insert(name(head.call_id.get()));
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

    fn roll_back(&mut self, line: u32, turns: Option<i64>) {
        let turns = turns.and_then(|turns| usize::try_from(turns).ok()).unwrap_or(0);
        let kept = self.prompts.len().saturating_sub(turns);
        if let Some(first) = self.prompts.get(kept) {
            self.rolled_back.push((*first, line));
            self.prompts.truncate(kept);
        }
    }

    /// Ends the pass.
    pub(super) fn finish(mut self) -> Index {
        for line in self.fork.copied() {
            self.index.marks.set(line, COPIED);
        }
        for (first, after) in std::mem::take(&mut self.rolled_back) {
            for line in first..after {
                self.index.marks.set(line, ABANDONED);
            }
        }
        let digest = || Digest::of(&["codex", ""]).to_string();
        self.index.session.native_id = self.id.or(self.digest).unwrap_or_else(digest);
        self.index
    }
}

fn end_of(head: &Head<'_>) -> End {
    let ended = head.result.fields();
    let outcome = match (head.exit_code.0, head.success.0, head.status.get()) {
        (_, _, "declined") => Some(Outcome::Aborted),
        (Some(0), ..) | (None, Some(true), _) => Some(Outcome::Succeeded),
        (Some(_), ..) | (None, Some(false), _) | (None, None, "failed") => Some(Outcome::Failed),
        (None, None, _) => match ended {
            Some(ended) if ended.badly.is_some() => Some(Outcome::Failed),
            Some(ended) if ended.well.is_some() => Some(Outcome::Succeeded),
            Some(_) | None => None,
        },
    };
    End { outcome, exit_code: head.exit_code.0.and_then(|code| i32::try_from(code).ok()) }
}

/// Whether an item's text is only told to the model because an event says it too.
pub(super) fn repeats_event(index: &Index, text: &str) -> bool {
    (text.starts_with(said::TURN_ABORTED) && index.aborted)
        || (text.starts_with(said::USER_ACTION) && index.reviewed)
}
