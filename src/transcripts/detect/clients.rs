//! Clients whose files are recognised but not read, so that the error can name them.

use crate::transcripts::client::has_fields;
use crate::transcripts::json::JsonExt;
use serde_json::Value;

/// Client, and the fields that identify its files.
type Signature = (&'static str, &'static [&'static str]);

const OPENCODE_PART: &str = "a part of an opencode session (`opencode export ID` writes it whole)";

/// Signatures of one line of a file.
const LINES: [Signature; 5] = [
    ("Kimi CLI", &["type=metadata", "protocol_version"]),
    (OPENCODE_PART, &["sessionID"]),
    ("Grok CLI", &["type=system|user|assistant", "content", "!role"]),
    ("a prompt history", &["display", "pastedContents"]),
    ("a prompt history", &["session_id", "ts", "text", "!role", "!type"]),
];

/// Signatures of a whole file, or of the first element of a list.
const DOCUMENTS: [Signature; 11] = [
    ("Trae agent", &["llm_interactions"]),
    ("Trae agent", &["agent_steps"]),
    ("LoCoMo", &["speaker_a", "session_1"]),
    ("LoCoMo", &["conversation.speaker_a"]),
    ("LongMemEval", &["haystack_sessions"]),
    ("LongMemEval", &["haystack_session_ids"]),
    ("an ATIF trajectory", &["schema_version", "steps[]"]),
    (OPENCODE_PART, &["sessionID"]),
    ("Amp", &["messages.0.createdAt", "messages.0.text"]),
    ("OpenTelemetry or Gemini messages", &["messages.0.parts"]),
    ("Cline's ui_messages.json", &["type=say|ask"]),
];

pub(super) fn of_line(json: &Value) -> Option<&'static str> {
    LINES.iter().find(|(_, fields)| has_fields(json, fields)).map(|(name, _)| *name)
}

pub(super) fn of_document(json: &Value) -> Option<&'static str> {
    let is_otel = json.map().any(|(key, _)| key.starts_with("gen_ai."));
    let known =
        DOCUMENTS.iter().find(|(_, fields)| has_fields(json, fields)).map(|(name, _)| *name);
    known.or(is_otel.then_some("OpenTelemetry"))
}
