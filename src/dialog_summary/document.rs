//! A dialog from a program that routes turns itself: `{"turns": [...]}`. Each turn is already summarised
//! (`user_intent`, `action_taken`, `pending_items`) or has the router's output (`user_input`, `output`).

use super::block::DialogRules;
use super::turn::{AskedQuestion, CompactSummary, DialogTurn};
use crate::domain::{Finding, Severity, Timestamp};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(untagged)]
enum GivenTurn {
    Summarised(SummarisedTurn),
    Routed(RoutedTurn),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SummarisedTurn {
    user_intent: String,
    action_taken: String,
    #[serde(default)]
    pending_items: Vec<String>,
    /// RFC 3339.
    timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutedTurn {
    user_input: String,
    output: RoutedOutput,
    /// RFC 3339.
    timestamp: Option<String>,
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

/// Parses the turns of a document and reports invalid ones; `None` if `text` is not such a document.
///
/// Findings have the rule `bad-turn` or `unknown-field`; their line is the turn's position, from 1.
pub(crate) fn document(
    text: &str,
    rules: DialogRules<'_>,
) -> Option<(Vec<CompactSummary>, Vec<Finding>)> {
    let Ok(Value::Object(mut object)) = serde_json::from_str(text) else { return None };
    let Some(Value::Array(given)) = object.shift_remove("turns") else { return None };
    let (mut turns, mut findings) = (Vec::new(), Vec::new());
    if !object.is_empty() {
        let detail = format!("{} fields beside `turns` are not read", object.len());
        findings.push(Finding::new(Severity::Warning, "unknown-field", 0, detail));
    }
    for (place, turn) in (1..).zip(given) {
        match serde_json::from_value::<GivenTurn>(turn) {
            Ok(GivenTurn::Summarised(given)) => turns.push(summarised(given, rules)),
            Ok(GivenTurn::Routed(given)) => turns.push(routed(given, rules)),
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

fn summarised(given: SummarisedTurn, rules: DialogRules<'_>) -> CompactSummary {
    let pass = |text: &String| rules.gate.redact(text);
    CompactSummary {
        user_intent: pass(&given.user_intent),
        action_taken: pass(&given.action_taken),
        pending_items: given.pending_items.iter().map(pass).collect(),
        timestamp: given.timestamp.as_deref().and_then(Timestamp::parse),
        ..CompactSummary::default()
    }
}

fn routed(given: RoutedTurn, rules: DialogRules<'_>) -> CompactSummary {
    let pass = |text: &String| rules.gate.redact(text);
    let RoutedTurn { user_input, output, timestamp } = given;
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
    let timestamp = timestamp.as_deref().and_then(Timestamp::parse);
    CompactSummary { timestamp, ..turn.compact(rules.gate) }
}
