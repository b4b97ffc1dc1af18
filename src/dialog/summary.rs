//! The dialog of one session as it goes on: the last turns, and the one that is still open.

use super::cut::{Size, within};
use super::fit::{Block, evict};
use super::phrase::is_smalltalk;
use super::question::{asks_leave, first_question, last_question};
use super::records::tell;
use super::turn::{Asked, NAME_CHARS_MAX, Turn, has_words, ours};
use super::{CompactSummary, Rules};
use crate::domain::{Branch, Entry, EntryKind, Record, Speaker, Timestamp};
use crate::privacy::Redacted;
use serde::{Deserialize, Serialize};

/// The longest field of a turn that is kept, in characters; the longest block is far shorter.
const FIELD_CHARS_MAX: usize = 8_000;
/// Pending items of a turn that are kept.
const ITEMS_MAX: usize = 20;
/// What is kept of a person's words while their turn is open, in characters.
const WORDS_CHARS_MAX: usize = 160;
/// What is kept of a question while its turn is open, in characters.
const QUESTION_CHARS_MAX: usize = 80;
/// Names of tools that are kept of a turn.
const TOOLS_MAX: usize = 32;
/// The longest arguments of a tool that are read for a question, in bytes.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// Tools that ask the person something.
const ASKING_TOOLS: [&str; 4] =
    ["AskUserQuestion", "ask_followup_question", "request_user_input", "ask_user"];
/// Tools that ask the person for leave to go on.
const LEAVE_TOOLS: [&str; 2] = ["ExitPlanMode", "exit_plan_mode"];

/// The rolling summary of a dialog. Written down and read back, it goes on as if nothing had happened.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub struct DialogSummary {
    /// The last turns that ended, oldest first, within the limits.
    turns: Vec<CompactSummary>,
    /// The turn that goes on.
    open: Option<Open>,
    /// How many turns ended.
    ended: u32,
    /// The ordinal of the entry that comes next; those before it were taken.
    next: u32,
}

/// A turn that goes on.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize)]
struct Open {
    turn: Turn,
    weight: Weight,
    /// Whether the assistant did anything yet.
    answered: bool,
    entries: (u32, u32),
    at: Option<Timestamp>,
}

/// How much a person's words tell. Of several before an answer the first of the greatest weight count.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Weight {
    Nothing,
    SmallTalk,
    Command,
    Words,
}

impl DialogSummary {
    /// Takes the next entry of the session. One that was taken before changes nothing, so that a
    /// session can be read again from its beginning.
    pub fn push(&mut self, entry: &Entry, rules: Rules<'_>) {
        if entry.ordinal < self.next {
            return;
        }
        self.next = entry.ordinal.saturating_add(1);
        if entry.skip.is_some() || entry.branch != Branch::Active {
            return;
        }
        match entry.kind {
            EntryKind::Prompt | EntryKind::Command => self.says(entry, rules),
            EntryKind::Steering | EntryKind::Answer | EntryKind::Rejection => {
                match &mut self.open {
                    Some(open) => open.turn.asked = Asked::default(),
                    None => self.says(entry, rules),
                }
            }
            EntryKind::Text | EntryKind::ToolCall | EntryKind::ToolResult => {
                if let Some(open) = &mut self.open {
                    open.does(entry, rules);
                }
            }
            EntryKind::Summary | EntryKind::Injected | EntryKind::Notice => {}
        }
        if let Some(open) = &mut self.open {
            open.entries.1 = entry.ordinal;
        }
    }

    /// Adds a turn that is told already, behind all others; it gets its number here.
    pub fn add(&mut self, turn: CompactSummary, rules: Rules<'_>) {
        self.end(rules);
        self.keep(neat(turn, rules), rules);
    }

    /// The block for a prompt, with what `records` of the session say about its turns.
    pub fn block(&self, records: &[&Record], rules: Rules<'_>) -> Block {
        let mut turns = self.turns(rules);
        tell(&mut turns, records, rules);
        let all = self.ended.saturating_add(u32::from(self.goes_on().is_some()));
        let mut block = Block::of(&turns, rules);
        let shown = u32::try_from(block.turns.len()).unwrap_or(u32::MAX);
        block.fit.evicted = all.saturating_sub(shown);
        block
    }

    /// The turns that are kept, oldest first; the last one may go on.
    pub fn turns(&self, rules: Rules<'_>) -> Vec<CompactSummary> {
        let open = self.goes_on().map(|open| open.compact(self.ended.saturating_add(1), rules));
        self.turns.iter().cloned().chain(open).collect()
    }

    /// The ordinal of the first entry of the oldest turn that is kept: no record about earlier ones is
    /// of use.
    pub fn since(&self) -> Option<u32> {
        let kept = self.turns.iter().filter_map(|turn| turn.entries);
        kept.chain(self.open.as_ref().map(|open| open.entries)).map(|(first, _)| first).min()
    }

    /// The open turn, if it is told of: a command alone may be the client's own.
    fn goes_on(&self) -> Option<&Open> {
        self.open.as_ref().filter(|open| open.answered || open.weight != Weight::Command)
    }

    /// A person says something that begins a turn, unless nothing was done about the last.
    fn says(&mut self, entry: &Entry, rules: Rules<'_>) {
        if self.open.as_ref().is_some_and(|open| open.answered) {
            self.end(rules);
        }
        let (said, weight) = said(entry, rules);
        let open = self.open.get_or_insert_with(|| Open {
            turn: Turn { said: said.clone(), ..Turn::default() },
            weight,
            answered: false,
            entries: (entry.ordinal, entry.ordinal),
            at: entry.at,
        });
        if weight > open.weight {
            (open.turn.said, open.weight) = (said, weight);
        }
    }

    /// Ends the open turn, if there is one.
    fn end(&mut self, rules: Rules<'_>) {
        if let Some(open) = self.open.take() {
            self.keep(open.compact(0, rules), rules);
        }
    }

    fn keep(&mut self, turn: CompactSummary, rules: Rules<'_>) {
        self.ended = self.ended.saturating_add(1);
        self.turns.push(CompactSummary { turn_number: self.ended, ..turn });
        evict(&mut self.turns, rules.limits);
    }
}

impl Open {
    fn compact(&self, turn_number: u32, rules: Rules<'_>) -> CompactSummary {
        let (entries, timestamp) = (Some(self.entries), self.at);
        let turn = CompactSummary { turn_number, entries, timestamp, ..self.turn.compact(rules) };
        if self.answered { turn } else { CompactSummary { action_taken: unanswered(), ..turn } }
    }

    /// The assistant, or one of its tools, does something.
    fn does(&mut self, entry: &Entry, rules: Rules<'_>) {
        let name = entry.tool.as_ref().map(|tool| &tool.name);
        let waits = name.is_some_and(|name| waits(name.as_str()));
        match entry.kind {
            EntryKind::Text if entry.speaker == Speaker::Assistant => {
                (self.answered, self.turn.replied) = (true, true);
                self.turn.asked = asked(last_question(entry.text.as_str()), rules);
            }
            EntryKind::ToolCall => {
                self.answered = true;
                name.inspect(|name| self.calls(name, rules));
                self.turn.asked = Asked::default();
                if waits && let Some(name) = name {
                    self.turn.asked = asked_by_tool(name.as_str(), entry.text.as_str(), rules);
                }
            }
            EntryKind::ToolResult if waits => self.turn.asked = Asked::default(),
            EntryKind::Text
            | EntryKind::ToolResult
            | EntryKind::Prompt
            | EntryKind::Command
            | EntryKind::Steering
            | EntryKind::Answer
            | EntryKind::Rejection
            | EntryKind::Summary
            | EntryKind::Injected
            | EntryKind::Notice => {}
        }
    }

    fn calls(&mut self, name: &Redacted, rules: Rules<'_>) {
        let name = within(name, Size::chars(NAME_CHARS_MAX), rules.gate);
        let tools = &mut self.turn.tools;
        if tools.len() < TOOLS_MAX && !name.is_empty() && !tools.contains(&name) {
            tools.push(name);
        }
    }
}

/// What a person said, and how much that tells.
fn said(entry: &Entry, rules: Rules<'_>) -> (Redacted, Weight) {
    let is_command = entry.kind == EntryKind::Command;
    let bare = is_command.then(|| rules.gate.redact(&untagged(entry.text.as_str())));
    let text = bare.as_ref().unwrap_or(&entry.text);
    let said = within(text, Size::chars(WORDS_CHARS_MAX), rules.gate);
    let weight = match said.as_str() {
        text if !has_words(text) => Weight::Nothing,
        text if is_smalltalk(text) => Weight::SmallTalk,
        _ if is_command => Weight::Command,
        _ => Weight::Words,
    };
    (said, weight)
}

/// A command without the tags in which clients wrap it.
fn untagged(text: &str) -> String {
    let pieces = text.split('<').enumerate();
    pieces.map(|(at, piece)| if at == 0 { piece } else { behind_tag(piece) }).collect()
}

fn behind_tag(piece: &str) -> &str {
    let is_name = |tag: &str| tag.chars().all(|c| c.is_ascii_lowercase() || "-/".contains(c));
    piece.split_once('>').filter(|(tag, _)| is_name(tag)).map_or(piece, |(_, rest)| rest)
}

/// What a question waits for.
fn asked(question: Option<&str>, rules: Rules<'_>) -> Asked {
    let Some(question) = question else { return Asked::default() };
    if asks_leave(question) {
        return Asked { leave: true, question: None };
    }
    let question =
        within(&rules.gate.redact(question), Size::chars(QUESTION_CHARS_MAX), rules.gate);
    Asked { leave: false, question: Some(question) }
}

fn waits(tool: &str) -> bool {
    ASKING_TOOLS.contains(&tool) || LEAVE_TOOLS.contains(&tool)
}

fn asked_by_tool(name: &str, arguments: &str, rules: Rules<'_>) -> Asked {
    if LEAVE_TOOLS.contains(&name) {
        return Asked { leave: true, question: None };
    }
    let in_json = question_in_json(arguments);
    asked(Some(in_json.as_deref().or_else(|| first_question(arguments)).unwrap_or_default()), rules)
}

fn question_in_json(arguments: &str) -> Option<String> {
    if ARGUMENTS_BYTES_MAX < arguments.len() || !arguments.starts_with('{') {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(arguments).ok()?;
    let question = value.get("question").or_else(|| value.pointer("/questions/0/question"))?;
    question.as_str().map(str::to_owned)
}

/// A turn that was told, on one line and within bounds.
fn neat(turn: CompactSummary, rules: Rules<'_>) -> CompactSummary {
    let neat = |text: &Redacted| within(text, Size::chars(FIELD_CHARS_MAX), rules.gate);
    let told = |text: &Redacted| Some(neat(text)).filter(|text| !text.is_empty());
    let items = turn.pending_items.iter().filter_map(told).take(ITEMS_MAX);
    CompactSummary {
        user_intent: told(&turn.user_intent).unwrap_or_else(|| ours("unclear request")),
        action_taken: told(&turn.action_taken).unwrap_or_else(unanswered),
        pending_items: items.collect(),
        ..turn
    }
}

fn unanswered() -> Redacted {
    ours("have not answered yet")
}
