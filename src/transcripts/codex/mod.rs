//! Rollouts of Codex: JSONL in which every text appears twice. The first pass finds which stream to
//! read, how calls ended and what is copied from another session; the second emits entries.

mod index;
mod reader;
mod record;
mod tools;
#[cfg(test)]
mod tests;

use super::cutter::{each_record, has_list};
use super::emit::Emit;
use super::json::{JsonExt, parse_object};
use super::raw::{Input, Sink};
use record::{Envelope, Head, Payload};
use serde_json::Value;
use std::io;

/// Field with the items in files of the first clients, which wrote one JSON object.
const OLD_LIST: &str = "items";

/// Reads a rollout, with or without envelopes.
pub(super) fn read(input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let list = has_list(input, OLD_LIST)?.then_some(OLD_LIST);
    let mut indexer = index::Indexer::default();
    each_record(input, list, |line| {
        parse_object(&line.text, |json| {
            let mut envelope: Envelope<'_, Head<'_>> = serde_json::from_str(json)?;
            let head = envelope.open(json)?;
            indexer.add(line.number, &envelope, head, &line.text);
            Ok(())
        });
        true
    })?;
    let index = indexer.finish();
    let mut emit = Emit::new(sink);
    emit.session(index.session.clone());
    let mut reader = reader::RecordReader::new(index, emit);
    let cut = each_record(input, list, |line| {
        if reader.emit.accepts(&line) && !line.text.trim().is_empty() {
            let parsed = parse_object(&line.text, |json| {
                let mut envelope: Envelope<'_, Payload<'_>> = serde_json::from_str(json)?;
                if !reader::is_skipped(&envelope) {
                    let payload = envelope.open(json)?;
                    reader.record(line.number, &envelope, payload);
                }
                Ok(())
            });
            let expected = "expected a JSON object of a rollout; line skipped";
            reader.emit.parsed(&line, parsed, expected);
        }
        !reader.emit.stopped()
    })?;
    reader.emit.cut(cut, 0);
    reader.emit.finish();
    Ok(())
}

const ENVELOPES: [&str; 7] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
    "inter_agent_communication_metadata",
];
const ITEMS: [&str; 8] = [
    "message", "function_call", "function_call_output", "reasoning", "local_shell_call",
    "custom_tool_call", "custom_tool_call_output", "web_search_call",
];

pub(super) fn is_record(json: &Value) -> bool {
    let is_envelope = json["payload"].is_object() && ENVELOPES.contains(&json.text("type"));
    let is_state = json.first_text(&["record_type"]) == Some("state");
    let is_old_head = json.has("id") && json.has("timestamp") && json.get("instructions").is_some();
    let is_old = json.has("session") && json["items"].is_array();
    is_envelope
        || is_state
        || is_old
        || (is_old_head && json.text("type").is_empty())
        || is_item(json)
}

/// True if a value is an item of the Responses API or of a rollout without envelopes.
pub(super) fn is_item(json: &Value) -> bool {
    let kind = json.text("type");
    let is_known = ITEMS.contains(&kind) && (kind != "message" || json.has("content"));
    is_known && !json.has("parentId") && !json.has("uuid") && !json["message"].is_object()
}
