//! A dialog whose turns are told already: `{"turns": [{"user_intent", "action_taken",
//! "pending_items"}]}`, as a program that routes turns itself hands them over.

use super::{CompactSummary, Rules};
use crate::domain::{Finding, Severity, Timestamp};
use serde::Deserialize;
use serde_json::Value;

/// One turn as it is written; the pending items may be absent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
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
pub fn document(text: &str, rules: Rules<'_>) -> Option<(Vec<CompactSummary>, Vec<Finding>)> {
    let Ok(Value::Object(mut object)) = serde_json::from_str(text) else { return None };
    let Some(Value::Array(told)) = object.shift_remove("turns") else { return None };
    let (mut turns, mut findings) = (Vec::new(), Vec::new());
    if !object.is_empty() {
        let detail = format!("{} fields beside `turns` are not read", object.len());
        findings.push(Finding::new(Severity::Warning, "unknown-field", 0, detail));
    }
    for (place, turn) in (1..).zip(told) {
        match serde_json::from_value::<Told>(turn) {
            Ok(told) => turns.push(compact(told, rules)),
            Err(_) => findings.push(Finding::new(Severity::Error, "bad-turn", place, EXPECTED)),
        }
    }
    Some((turns, findings))
}

/// What a turn must be. What it was instead is not told: it may be somebody's words.
const EXPECTED: &str = "no turn: expected `user_intent` and `action_taken`, texts, and perhaps \
    `pending_items`, a list of texts, and `timestamp`; left out";

fn compact(told: Told, rules: Rules<'_>) -> CompactSummary {
    let pass = |text: &String| rules.gate.redact(text);
    CompactSummary {
        user_intent: pass(&told.user_intent),
        action_taken: pass(&told.action_taken),
        pending_items: told.pending_items.iter().map(pass).collect(),
        timestamp: told.timestamp.as_deref().and_then(Timestamp::parse),
        ..CompactSummary::default()
    }
}
