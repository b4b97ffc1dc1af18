//! One turn: its facts, from a transcript or a document of turns, and its line in the summary.

use super::cut::{Size, within};
use super::phrases::{fold, is_smalltalk, wants_doing};
use crate::domain::{Finding, Severity, Timestamp, Tokens};
use crate::privacy::{Gate, Redacted, Woven};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum quoted characters of the user's words.
pub(super) const SAID_CHARS_MAX: usize = 60;
const QUESTION_CHARS_MAX: usize = 30;
pub(super) const NAME_CHARS_MAX: usize = 40;
/// Maximum number of tools that are named; the others are counted.
const TOOLS_NAMED_MAX: usize = 3;
/// Separator before a line in the block.
pub(super) const INDENT: &str = "\n  ";

/// One turn: what the person wanted, what was done, and what is still open.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub struct CompactSummary {
    /// Number in the dialog, from 1.
    pub turn_number: u32,
    /// Text after "User", such as `asked about calendar query`.
    pub user_intent: Redacted,
    /// Text after "I", such as `called list_events`.
    pub action_taken: Redacted,
    /// Items that the user must respond to, such as `waiting for confirmation`.
    pub pending_items: Vec<Redacted>,
    /// Start of the turn, if the transcript has times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// Ordinals of the first and last entry, if the turn is from a transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<(u32, u32)>,
}

impl CompactSummary {
    /// The turn as one line: `Turn 2: User asked about x, I called y. Pending: z`.
    pub fn line(&self) -> Redacted {
        let number = self.turn_number.to_string();
        let mut line = vec![
            Woven::Ours("Turn "),
            Woven::Label(&number),
            Woven::Ours(": User "),
            Woven::Passed(&self.user_intent),
            Woven::Ours(", I "),
            Woven::Passed(&self.action_taken),
            Woven::Ours("."),
        ];
        for (at, item) in self.pending_items.iter().enumerate() {
            line.push(Woven::Ours(if at == 0 { " Pending: " } else { ", " }));
            line.push(Woven::Passed(item));
        }
        Redacted::weave(&line)
    }

    /// Tokens of the line.
    pub fn tokens(&self) -> Tokens {
        self.size().tokens()
    }

    pub(super) fn size(&self) -> Size {
        #[cfg(test)]
        super::tests::MEASURED.with(|turns| turns.set(turns.get() + 1));
        let line = Size::of(self.line().as_str());
        Size { chars: line.chars + INDENT.len(), words: line.words }
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub(super) struct AskedQuestion {
    /// True if the assistant waits for permission.
    pub leave: bool,
    /// Text of the question.
    pub question: Option<Redacted>,
}

/// Facts of one turn, from a transcript or from a program that routes turns.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub(super) struct DialogTurn {
    /// The user's words.
    pub said: Redacted,
    /// Route of the words, such as `calendar` or `smalltalk`.
    pub route: Option<Redacted>,
    /// Intent within the route, such as `query` or `create`.
    pub intent: Option<Redacted>,
    /// Called tools, in order.
    pub tools: Vec<Redacted>,
    /// True if the assistant replied with text.
    pub replied: bool,
    /// The pending question of the assistant.
    pub asked: AskedQuestion,
}

impl DialogTurn {
    pub(super) fn compact(&self, gate: &Gate) -> CompactSummary {
        CompactSummary {
            user_intent: self.user_intent(gate),
            action_taken: self.action_taken(gate),
            pending_items: self.pending_items(gate),
            ..CompactSummary::default()
        }
    }

    fn user_intent(&self, gate: &Gate) -> Redacted {
        let name = |name: &Option<Redacted>| {
            let name = within(name.as_ref()?, Size::chars(NAME_CHARS_MAX), gate);
            let known = !matches!(fold(name.as_str()).as_str(), "" | "none" | "unknown");
            known.then_some(name)
        };
        let route = name(&self.route);
        let is_chat = match &route {
            Some(route) => fold(route.as_str()) == "smalltalk",
            None => is_smalltalk(self.said.as_str()),
        };
        if is_chat {
            return ours("casual chat");
        }
        if let (Some(route), Some(intent)) = (route, name(&self.intent)) {
            let verb = if wants_doing(intent.as_str()) { "requested " } else { "asked about " };
            let words = [Woven::Passed(&route), Woven::Ours(" "), Woven::Passed(&intent)];
            return Redacted::weave(&[&[Woven::Ours(verb)], &words[..]].concat());
        }
        let said = within(&self.said, Size::chars(SAID_CHARS_MAX), gate);
        if !has_words(said.as_str()) {
            return ours("unclear request");
        }
        Redacted::weave(&[Woven::Ours("requested: "), Woven::Passed(&said)])
    }

    fn action_taken(&self, gate: &Gate) -> Redacted {
        if !self.tools.is_empty() {
            return self.called(gate);
        }
        let asks = self.asked.question.is_some();
        ours(if self.replied && !asks { "responded with chat" } else { "asked for clarification" })
    }

    /// Lists the tools by the last part of their names, without duplicates.
    fn called(&self, gate: &Gate) -> Redacted {
        let mut names: Vec<Redacted> = Vec::new();
        for name in self.tools.iter().map(last_part) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = match names.len().saturating_sub(TOOLS_NAMED_MAX) {
            0 => String::new(),
            more => format!(" +{more}"),
        };
        let cut = |name: &Redacted| within(name, Size::chars(NAME_CHARS_MAX), gate);
        let named: Vec<Redacted> = names.iter().take(TOOLS_NAMED_MAX).map(cut).collect();
        let mut words = vec![Woven::Ours("called ")];
        for (at, name) in named.iter().enumerate() {
            words.push(Woven::Ours(if at == 0 { "" } else { ", " }));
            words.push(Woven::Passed(name));
        }
        words.push(Woven::Label(&more));
        Redacted::weave(&words)
    }

    fn pending_items(&self, gate: &Gate) -> Vec<Redacted> {
        let leave = self.asked.leave.then(|| ours("waiting for confirmation"));
        let question = self.asked.question.as_ref().map(|question| {
            let question = within(question, Size::chars(QUESTION_CHARS_MAX), gate);
            if !has_words(question.as_str()) {
                return ours("need: an answer");
            }
            Redacted::weave(&[Woven::Ours("need: "), Woven::Passed(&question)])
        });
        leave.into_iter().chain(question).collect()
    }
}

/// `list_events` of `calendar.list_events`.
fn last_part(tool: &Redacted) -> Redacted {
    let name = tool.as_str().trim_end_matches('.');
    tool.cut(name.rfind('.').map_or(0, |dot| dot + 1)..name.len())
}

pub(super) fn ours(words: &'static str) -> Redacted {
    Redacted::weave(&[Woven::Ours(words)])
}

/// True if a text contains more than punctuation.
pub(super) fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum GivenTurn {
    Summarised {
        user_intent: String,
        action_taken: String,
        #[serde(default)]
        pending_items: Vec<String>,
        /// RFC 3339.
        timestamp: Option<String>,
    },
    Routed {
        user_input: String,
        output: RoutedOutput,
        /// RFC 3339.
        timestamp: Option<String>,
    },
}

/// Output of a router; every field is optional, and others are ignored.
#[derive(Deserialize)]
struct RoutedOutput {
    route: Option<String>,
    #[serde(alias = "intent")]
    calendar_intent: Option<String>,
    tool_plan: Option<Vec<String>>,
    assistant_reply: Option<String>,
    requires_confirmation: Option<bool>,
    ask_user: Option<bool>,
    question: Option<String>,
}

/// Parses the turns of a document of a program that routes turns itself, `{"turns": [...]}`, and reports invalid ones;
/// `None` if `text` is not such a document. Each turn is already summarised (`user_intent`, `action_taken`,
/// `pending_items`) or has the router's output (`user_input`, `output`).
///
/// Findings have the rule `bad-turn` or `unknown-field`; their line is the turn's position, from 1.
pub(crate) fn document(text: &str, gate: &Gate) -> Option<(Vec<CompactSummary>, Vec<Finding>)> {
    let Ok(Value::Object(mut object)) = serde_json::from_str(text) else { return None };
    let Some(Value::Array(given)) = object.shift_remove("turns") else { return None };
    let (mut turns, mut findings) = (Vec::new(), Vec::new());
    if !object.is_empty() {
        let detail = format!("{} fields beside `turns` are not read", object.len());
        findings.push(Finding::new(Severity::Warning, "unknown-field", 0, detail));
    }
    for (place, turn) in (1..).zip(given) {
        match serde_json::from_value::<GivenTurn>(turn) {
            Ok(given) => turns.push(compact(given, gate)),
            Err(_) => findings.push(Finding::new(Severity::Error, "bad-turn", place, EXPECTED)),
        }
    }
    Some((turns, findings))
}

/// Expected form of a turn. Does not show the found value, which may be conversation text.
const EXPECTED: &str = "no turn: expected `user_intent` and `action_taken`, texts, and perhaps \
    `pending_items`, a list of texts, and `timestamp`; or `user_input`, a text, and `output` with \
    `route`, `calendar_intent`, `tool_plan`, `assistant_reply`, `requires_confirmation`, `ask_user`, \
    `question`; left out";

fn compact(given: GivenTurn, gate: &Gate) -> CompactSummary {
    let pass = |text: &String| gate.redact(text);
    let (turn, timestamp) = match given {
        GivenTurn::Summarised { user_intent, action_taken, pending_items, timestamp } => {
            let turn = CompactSummary {
                user_intent: pass(&user_intent),
                action_taken: pass(&action_taken),
                pending_items: pending_items.iter().map(pass).collect(),
                ..CompactSummary::default()
            };
            (turn, timestamp)
        }
        GivenTurn::Routed { user_input, output, timestamp } => {
            let question = output.question.filter(|_| output.ask_user == Some(true));
            let turn = DialogTurn {
                said: pass(&user_input),
                route: output.route.as_ref().map(pass),
                intent: output.calendar_intent.as_ref().map(pass),
                tools: output.tool_plan.iter().flatten().map(pass).collect(),
                replied: output.assistant_reply.is_some_and(|reply| !reply.trim().is_empty()),
                asked: AskedQuestion {
                    leave: output.requires_confirmation == Some(true),
                    question: question.as_ref().map(pass),
                },
            };
            (turn.compact(gate), timestamp)
        }
    };
    CompactSummary { timestamp: timestamp.as_deref().and_then(Timestamp::parse), ..turn }
}
