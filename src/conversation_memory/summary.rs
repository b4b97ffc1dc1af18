//! The summary strategy: the request to a model, its reply, and a rule-based summary for callers without a model.

use super::message::{History, MessageCount};
use crate::domain::{Message, Role};
use crate::llm::prompt::SummaryPrompt;
use crate::privacy::{Gate, Redacted, Woven};
use crate::text::names::sentences;
use crate::text::truncate::words_within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const LABEL: &str = "Previous conversation summary: ";
/// Maximum bytes of a rule-based summary: about 350 tokens, to leave room for newer messages.
const RULE_BYTES_MAX: usize = 1_400;
const LINE_CHARS_MAX: usize = 120;
/// Minimum length of a usable sentence, in characters; a shorter one is a greeting.
const SENTENCE_CHARS_MIN: usize = 12;
/// Line that replaces older lines.
const OMITTED: &str = "[… earlier messages left out …]";

/// Messages to add to the summary.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SummaryRequest {
    /// The summary so far.
    pub existing: Option<Redacted>,
    /// Messages, oldest first.
    pub messages: Vec<Message>,
    /// Ordinal of the last message among all added messages, from 0.
    pub through: u64,
}

impl SummaryRequest {
    /// The prompt for a model, whose whole reply is the new summary.
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

    /// Summarises without a model: one line with the beginning of each message; drops the oldest lines. Redacts the
    /// whole, since truncated text may match other patterns.
    pub fn by_rule(&self, gate: &Gate) -> Redacted {
        let before = self.existing.as_ref().map_or("", Redacted::as_str);
        let had_mark = before.lines().next() == Some(OMITTED);
        let mut lines: Vec<String> =
            before.lines().skip(usize::from(had_mark)).map(str::to_owned).collect();
        lines.extend(self.messages.iter().filter_map(|message| {
            let words = beginning(message.content.as_str())?;
            Some(format!("- {}: {words}", message.role.name()))
        }));
        let mut room = RULE_BYTES_MAX - OMITTED.len();
        let fits = |line: &&String| {
            let left = room.checked_sub(line.len() + 1);
            room = left.unwrap_or(room);
            left.is_some()
        };
        let kept = lines.iter().rev().take_while(fits).count();
        let omitted = lines.len() - kept;
        let mark = (had_mark || omitted > 0).then_some(OMITTED);
        let kept = lines.iter().skip(omitted).map(String::as_str);
        gate.redact(&mark.into_iter().chain(kept).collect::<Vec<_>>().join("\n"))
    }
}

/// The first sentence longer than a greeting, truncated if necessary.
fn beginning(text: &str) -> Option<String> {
    let mut all = sentences(text).filter_map(|range| text.get(range)).peekable();
    let first = all.peek().copied();
    let is_long = |it: &&str| it.chars().nth(SENTENCE_CHARS_MIN - 1).is_some();
    let sentence = all.find(is_long).or(first)?;
    let head = words_within(sentence, LINE_CHARS_MAX);
    let mark = if head.len() < sentence.len() { "…" } else { "" };
    Some(format!("{head}{mark}"))
}

/// Outcome of a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Absorbed {
    /// The reply is the summary now, and its messages are dropped.
    Taken,
    /// The reply is empty: the messages stay, and are due again after the next one.
    Empty,
    /// The reply belongs to another request than the due one; nothing changed.
    Stale,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SummaryState {
    pub(super) text: Option<Redacted>,
    /// Messages before this ordinal are in it.
    pub(super) before: u64,
    #[serde(rename = "of")]
    pub(super) count: MessageCount,
    /// Number of messages read when the last reply was empty.
    pub(super) tried_at: Option<u64>,
}

impl SummaryState {
    /// Messages of `history`, with the summary in place of the summarised ones.
    pub(super) fn insert_into(&self, history: &History) -> Vec<Message> {
        let mut summary = self.text.as_ref().map(|text| Message {
            role: Role::System,
            content: Redacted::weave(&[Woven::Ours(LABEL), Woven::Passed(text)]),
        });
        let mut messages = Vec::with_capacity(history.pinned.len() + history.others.len() + 1);
        for stored in history.in_order() {
            if stored.ordinal >= self.before {
                messages.extend(summary.take());
            }
            messages.push(stored.message.shown());
        }
        messages.extend(summary);
        messages
    }

    pub(super) fn absorb(
        &mut self,
        history: &mut History,
        request: &SummaryRequest,
        reply: &Redacted,
    ) -> Absorbed {
        let is_next = self.before <= request.through && request.through < history.read.messages;
        if !is_next || request.existing != self.text {
            return Absorbed::Stale;
        }
        if reply.as_str().trim().is_empty() {
            self.tried_at = Some(history.read.messages);
            return Absorbed::Empty;
        }
        let taken = history.others.partition_point(|stored| stored.ordinal <= request.through);
        history.others.drain(..taken).for_each(|stored| self.count.add(&stored.message));
        (self.text, self.before) = (Some(reply.clone()), request.through + 1);
        self.tried_at = None;
        Absorbed::Taken
    }
}
