//! The rolling summary of one session's dialog: the last turns, and the open one.

use super::block::{Block, DialogRules, evict};
use super::cut::{Size, within};
use super::phrases::{asks_permission, first_question, is_smalltalk, last_question};
use super::turn::{
    AskedQuestion, CompactSummary, DialogTurn, NAME_CHARS_MAX, SAID_CHARS_MAX, has_words, ours,
};
use crate::domain::{
    Branch, Claim, Entry, EntryKind, Evidence, Record, RecordState, Speaker, Timestamp,
};
use crate::privacy::{Gate, Redacted, Woven};
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Maximum length of a stored field, in characters; blocks are far shorter.
const FIELD_CHARS_MAX: usize = 8_000;
const ITEMS_MAX: usize = 20;
const WORDS_CHARS_MAX: usize = 160;
const QUESTION_CHARS_MAX: usize = 80;
const TOOLS_MAX: usize = 32;
/// Maximum bytes of tool arguments that are parsed for a question.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of decisions and attempts shown per turn; the last ones are kept.
const CLAIMS_SHOWN_MAX: usize = 2;

const ASKING_TOOLS: [&str; 4] =
    ["AskUserQuestion", "ask_followup_question", "request_user_input", "ask_user"];
const PERMISSION_TOOLS: [&str; 2] = ["ExitPlanMode", "exit_plan_mode"];

/// The rolling summary of a dialog. A serialised summary continues as if it had never been stored.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub struct DialogSummary {
    /// The last finished turns, oldest first, within the limits.
    turns: Vec<CompactSummary>,
    open: Option<OpenTurn>,
    ended: u32,
    /// Ordinal of the next entry; earlier ones have been added.
    next: u32,
}

#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize)]
struct OpenTurn {
    turn: DialogTurn,
    weight: Weight,
    /// True once the assistant has done anything.
    answered: bool,
    entries: (u32, u32),
    at: Option<Timestamp>,
}

/// Weight of the user's words. Of several messages before an answer, the first with the greatest weight is used.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Weight {
    Nothing,
    SmallTalk,
    Command,
    Words,
}

impl DialogSummary {
    /// Adds the next entry of the session. Entries that were already added are ignored, so that a session can be
    /// read again from the start.
    pub fn push(&mut self, entry: &Entry, rules: DialogRules<'_>) {
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
                    Some(open) => open.turn.asked = AskedQuestion::default(),
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

    /// Appends a finished turn and assigns its number.
    pub fn add(&mut self, turn: CompactSummary, rules: DialogRules<'_>) {
        self.end(rules);
        self.keep(neat(turn, rules), rules);
    }

    /// Renders the prompt block, including the claims of the session's `records`.
    pub fn block(&self, records: &[&Record], rules: DialogRules<'_>) -> Block {
        let mut turns = self.turns(rules);
        add_records(&mut turns, records, rules.gate);
        let all = self.ended.saturating_add(u32::from(self.goes_on().is_some()));
        let mut block = Block::of(&turns, rules);
        let shown = u32::try_from(block.turns.len()).unwrap_or(u32::MAX);
        block.fit.evicted = all.saturating_sub(shown);
        block
    }

    /// Stored turns, oldest first; the last one may still be open.
    pub fn turns(&self, rules: DialogRules<'_>) -> Vec<CompactSummary> {
        let open = self.goes_on().map(|open| open.compact(self.ended.saturating_add(1), rules));
        self.turns.iter().cloned().chain(open).collect()
    }

    /// The open turn, unless it is only a command, which may come from the client.
    fn goes_on(&self) -> Option<&OpenTurn> {
        self.open.as_ref().filter(|open| open.answered || open.weight != Weight::Command)
    }

    /// Handles a user message: starts a turn, unless the open one is still unanswered.
    fn says(&mut self, entry: &Entry, rules: DialogRules<'_>) {
        if self.open.as_ref().is_some_and(|open| open.answered) {
            self.end(rules);
        }
        let (said, weight) = said(entry, rules);
        let open = self.open.get_or_insert_with(|| OpenTurn {
            turn: DialogTurn { said: said.clone(), ..DialogTurn::default() },
            weight,
            answered: false,
            entries: (entry.ordinal, entry.ordinal),
            at: entry.at,
        });
        if weight > open.weight {
            (open.turn.said, open.weight) = (said, weight);
        }
    }

    fn end(&mut self, rules: DialogRules<'_>) {
        if let Some(open) = self.open.take() {
            self.keep(open.compact(0, rules), rules);
        }
    }

    fn keep(&mut self, turn: CompactSummary, rules: DialogRules<'_>) {
        self.ended = self.ended.saturating_add(1);
        self.turns.push(CompactSummary { turn_number: self.ended, ..turn });
        evict(&mut self.turns, rules.limits);
    }
}

impl OpenTurn {
    fn compact(&self, turn_number: u32, rules: DialogRules<'_>) -> CompactSummary {
        let (entries, timestamp) = (Some(self.entries), self.at);
        let turn =
            CompactSummary { turn_number, entries, timestamp, ..self.turn.compact(rules.gate) };
        if self.answered { turn } else { CompactSummary { action_taken: unanswered(), ..turn } }
    }

    fn does(&mut self, entry: &Entry, rules: DialogRules<'_>) {
        let name = entry.tool.as_ref().map(|tool| &tool.name);
        let waits = name.is_some_and(|name| waits(name.as_str()));
        if entry.kind == EntryKind::Text && entry.speaker == Speaker::Assistant {
            (self.answered, self.turn.replied) = (true, true);
            self.turn.asked = asked(last_question(entry.text.as_str()), rules);
        } else if entry.kind == EntryKind::ToolCall {
            self.answered = true;
            name.inspect(|name| self.calls(name, rules));
            let asking = name.filter(|_| waits);
            self.turn.asked = asking.map_or_else(AskedQuestion::default, |name| {
                asked_by_tool(name.as_str(), entry.text.as_str(), rules)
            });
        } else if entry.kind == EntryKind::ToolResult && waits {
            self.turn.asked = AskedQuestion::default();
        }
    }

    fn calls(&mut self, name: &Redacted, rules: DialogRules<'_>) {
        let name = within(name, Size::chars(NAME_CHARS_MAX), rules.gate);
        let tools = &mut self.turn.tools;
        if tools.len() < TOOLS_MAX && !name.is_empty() && !tools.contains(&name) {
            tools.push(name);
        }
    }
}

fn said(entry: &Entry, rules: DialogRules<'_>) -> (Redacted, Weight) {
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

/// Removes the tags with which clients wrap a command, and other `<`.
fn untagged(text: &str) -> Cow<'_, str> {
    static TAG: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("<(?:[a-z/-]*>)?").ok());
    TAG.as_ref().map_or(Cow::Borrowed(text), |tag| tag.replace_all(text, ""))
}

fn asked(question: Option<&str>, rules: DialogRules<'_>) -> AskedQuestion {
    let Some(question) = question else { return AskedQuestion::default() };
    if asks_permission(question) {
        return AskedQuestion { leave: true, question: None };
    }
    let question =
        within(&rules.gate.redact(question), Size::chars(QUESTION_CHARS_MAX), rules.gate);
    AskedQuestion { leave: false, question: Some(question) }
}

fn waits(tool: &str) -> bool {
    ASKING_TOOLS.contains(&tool) || PERMISSION_TOOLS.contains(&tool)
}

fn asked_by_tool(name: &str, arguments: &str, rules: DialogRules<'_>) -> AskedQuestion {
    if PERMISSION_TOOLS.contains(&name) {
        return AskedQuestion { leave: true, question: None };
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

fn neat(turn: CompactSummary, rules: DialogRules<'_>) -> CompactSummary {
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

/// Adds the claims of staged `records` to the turns in which they were settled: a request where a person first made
/// it, every other claim where its last evidence is.
fn add_records(turns: &mut [CompactSummary], records: &[&Record], gate: &Gate) {
    for turn in turns {
        let Some((first, last)) = turn.entries else { continue };
        let is_settled = |record: &&&Record| {
            let is_request = matches!(record.claim, Claim::Request(_));
            let is_asked = |it: &&Evidence| is_request && it.speaker == Speaker::Person;
            let asked = record.evidence.iter().filter(is_asked).map(|it| it.ordinal).min();
            let settled = asked.or_else(|| record.evidence.iter().map(|it| it.ordinal).max());
            record.state == RecordState::Staged
                && settled.is_some_and(|at| (first..=last).contains(&at))
        };
        add_claims(turn, records.iter().filter(is_settled).map(|it| &it.claim), gate);
    }
}

fn add_claims<'r>(turn: &mut CompactSummary, claims: impl Iterator<Item = &'r Claim>, gate: &Gate) {
    let (mut wanted, mut topic, mut done) = (None, None, Vec::new());
    for claim in claims {
        let passed = gate.redact(claim.headline());
        let said = within(&passed, Size::chars(SAID_CHARS_MAX), gate);
        if !has_words(said.as_str()) {
            continue;
        }
        match claim {
            Claim::Request(_) => wanted = wanted.or_else(|| Some(words("requested: ", &said, ""))),
            Claim::Discussion(_) => topic = topic.or_else(|| Some(words("discussed: ", &said, ""))),
            Claim::Decision(_) => done.push(words("; decision: ", &said, "")),
            Claim::Attempt(tried) => {
                let how = if tried.succeeded { " (worked)" } else { " (did not fully work)" };
                done.push(words("; tried: ", &said, how));
            }
        }
    }
    // The user's own words describe a turn better than a topic.
    let topic = topic.filter(|_| turn.user_intent == ours("unclear request"));
    if let Some(intent) = wanted.or(topic) {
        turn.user_intent = intent;
    }
    for more in done.iter().skip(done.len().saturating_sub(CLAIMS_SHOWN_MAX)) {
        let whole = [Woven::Passed(&turn.action_taken), Woven::Passed(more)];
        turn.action_taken = Redacted::weave(&whole);
    }
}

fn words(before: &'static str, said: &Redacted, behind: &'static str) -> Redacted {
    Redacted::weave(&[Woven::Ours(before), Woven::Passed(said), Woven::Ours(behind)])
}
