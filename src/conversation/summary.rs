//! A summary of what was said, and the messages since. Who can ask a model is offered a request and
//! hands back the reply; nothing is asked here.

use super::brief;
use super::held::{Account, Count, Held};
use super::{ConversationMemory, Limits, MemoryMessage, MemoryType, saved};
use crate::domain::{Finding, Message, Role};
use crate::privacy::{Gate, Redacted, Woven};
use crate::prompt::SummaryPrompt;
use serde_json::json;

/// What stands before a summary, for the model that reads it.
const LABEL: &str = "Previous conversation summary: ";

/// Messages that are to become a part of the summary.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SummaryRequest {
    /// The summary so far.
    pub existing: Option<Redacted>,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The place of the last of them among all that were added, from 0.
    pub through: u64,
}

impl SummaryRequest {
    /// The prompt for a model whose whole answer is the new summary.
    pub fn prompt(&self, prompt: &SummaryPrompt) -> Redacted {
        let mut lines = Vec::with_capacity(self.messages.len() * 4);
        for message in &self.messages {
            let between = if lines.is_empty() { "" } else { "\n" };
            lines.extend([
                Woven::Ours(between),
                Woven::Ours(message.role.name()),
                Woven::Ours(": "),
                Woven::Passed(&message.content),
            ]);
        }
        prompt.fill(self.existing.as_ref(), &Redacted::weave(&lines))
    }

    /// A summary without a model: how each message begins, within bounds.
    pub fn by_rule(&self, gate: &Gate) -> Redacted {
        brief::of(self.existing.as_ref(), &self.messages, gate)
    }
}

/// What became of a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Absorbed {
    /// It is the summary now, and its messages are gone.
    Taken,
    /// It says nothing: the messages stay, and are offered again with the next one.
    Empty,
    /// It answers another request than the one that is due: nothing has changed.
    Stale,
}

/// Keeps a summary and the messages that are not in it yet.
#[derive(Clone, Debug)]
pub struct SummaryMemory {
    pub(super) summary_threshold: u32,
    pub(super) keep_recent: u32,
    pub(super) held: Held,
    pub(super) told: Told,
}

/// The summary and what it stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) text: Option<Redacted>,
    /// Messages before this place are in it.
    pub(super) before: u64,
    /// What it stands for.
    pub(super) count: Count,
    /// How many messages were read when a reply said nothing.
    pub(super) tried_at: Option<u64>,
}

impl SummaryMemory {
    pub(super) fn new(limits: &Limits, session_id: Option<Redacted>) -> SummaryMemory {
        let Limits { summary_threshold, keep_recent, .. } = *limits;
        let (held, told) = (Held::new(session_id), Told::default());
        SummaryMemory { summary_threshold, keep_recent, held, told }
    }

    fn shown(&self) -> Option<Message> {
        let text = self.told.text.as_ref()?;
        let content = Redacted::weave(&[Woven::Ours(LABEL), Woven::Passed(text)]);
        Some(Message { role: Role::System, content })
    }
}

impl ConversationMemory for SummaryMemory {
    fn kind(&self) -> MemoryType {
        MemoryType::Summary
    }

    fn add_message(&mut self, message: MemoryMessage) -> Option<Finding> {
        self.held.push(message);
        None
    }

    fn messages(&self) -> Vec<Message> {
        let mut summary = self.shown();
        let mut messages = Vec::with_capacity(self.held.len() + 1);
        for kept in self.held.in_order() {
            if kept.ordinal >= self.told.before {
                messages.extend(summary.take());
            }
            messages.push(kept.message.shown());
        }
        messages.extend(summary);
        messages
    }

    fn due(&self) -> Option<SummaryRequest> {
        let others = &self.held.others;
        let is_due = others.len() >= self.summary_threshold as usize
            && self.told.tried_at != Some(self.held.read.messages);
        let taken = others.len().checked_sub(self.keep_recent as usize).filter(|_| is_due)?;
        let last = others.get(taken.checked_sub(1)?)?;
        Some(SummaryRequest {
            existing: self.told.text.clone(),
            messages: others.iter().take(taken).map(|kept| kept.message.shown()).collect(),
            through: last.ordinal,
        })
    }

    fn absorb(&mut self, request: &SummaryRequest, reply: &Redacted) -> Absorbed {
        let (told, held) = (&mut self.told, &mut self.held);
        let is_next = told.before <= request.through && request.through < held.read.messages;
        if !is_next || request.existing != told.text {
            return Absorbed::Stale;
        }
        if reply.as_str().trim().is_empty() {
            told.tried_at = Some(held.read.messages);
            return Absorbed::Empty;
        }
        let taken = held.others.partition_point(|kept| kept.ordinal <= request.through);
        held.others.drain(..taken).for_each(|kept| told.count.add(&kept.message));
        (told.text, told.before) = (Some(reply.clone()), request.through + 1);
        told.tried_at = None;
        Absorbed::Taken
    }

    fn account(&self) -> Account {
        self.held.account(self.told.count)
    }

    fn clear(&mut self) {
        self.held.clear();
        self.told = Told::default();
    }

    fn to_json(&self) -> String {
        let limits = json!({
            "summary_threshold": self.summary_threshold,
            "keep_recent": self.keep_recent,
        });
        let Told { text, before, count, tried_at } = &self.told;
        let summary = json!({
            "summary": { "text": text, "before": before, "of": count, "tried_at": tried_at },
        });
        saved::write(self.kind(), limits, &self.held, summary)
    }
}
