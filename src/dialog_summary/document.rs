//! A dialog whose turns are summarised already: `{"turns": [{"user_intent", "action_taken",
//! "pending_items"}]}`, as a program that routes turns itself hands them over.

use super::block::DialogRules;
use super::turn::CompactSummary;
use crate::domain::{Finding, Severity, Timestamp};
use serde::Deserialize;
use serde_json::Value;

/// One turn as it is written; the pending items may be absent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenTurn {
    user_intent: String,
    action_taken: String,
    #[serde(default)]
    pending_items: Vec<String>,
    /// RFC 3339.
    timestamp: Option<String>,
}

/// Reads the turns of a document, and reports those that are none; nothing if it is no such document.
///
/// Findings have the rule `bad-turn` or `unknown-field`, and for a line the turn's place from 1.
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
            Ok(given) => turns.push(compact(given, rules)),
            Err(_) => findings.push(Finding::new(Severity::Error, "bad-turn", place, EXPECTED)),
        }
    }
    Some((turns, findings))
}

/// Expected form of a turn. The found value is not shown: it may be words of a conversation.
const EXPECTED: &str = "no turn: expected `user_intent` and `action_taken`, texts, and perhaps \
    `pending_items`, a list of texts, and `timestamp`; left out";

fn compact(given: GivenTurn, rules: DialogRules<'_>) -> CompactSummary {
    let pass = |text: &String| rules.gate.redact(text);
    CompactSummary {
        user_intent: pass(&given.user_intent),
        action_taken: pass(&given.action_taken),
        pending_items: given.pending_items.iter().map(pass).collect(),
        timestamp: given.timestamp.as_deref().and_then(Timestamp::parse),
        ..CompactSummary::default()
    }
}
