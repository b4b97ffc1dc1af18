//! Clients whose files are recognised by their fields but not read, so that the refusal can name them.

use crate::transcripts::json::JsonExt;
use serde_json::Value;

/// A client, and the fields that tell its files: `a.0.b` is a path, `!a` an absent field, `a[]` a list,
/// `a=x|y` a value.
type Signature = (&'static str, &'static [&'static str]);

/// Signatures of one line of a file.
const LINES: [Signature; 22] = [
    ("Factory droid", &["type=session_start"]),
    ("pi or OpenClaw", &["type=session", "version"]),
    ("pi or OpenClaw", &["parentId", "message"]),
    ("pi or OpenClaw", &["type=model_change|thinking_level_change|compaction", "parentId"]),
    ("Gemini CLI", &["$set"]),
    ("Gemini CLI", &["$rewindTo"]),
    ("Gemini CLI", &["projectHash"]),
    ("Gemini CLI", &["type=gemini|info|warning", "id"]),
    ("Kimi CLI", &["type=metadata", "protocol_version"]),
    ("GitHub Copilot CLI", &["data", "type=."]),
    ("OpenHands", &["history[]", "instance_id"]),
    ("OpenHands", &["history[]", "git_patch"]),
    ("OpenHands", &["history[]", "issue"]),
    ("opencode", &["sessionID"]),
    ("a Cursor agent transcript", &["role", "message", "!type", "!content", "!id"]),
    ("OpenTelemetry", &["resourceLogs"]),
    ("OpenTelemetry", &["resourceSpans"]),
    ("Grok CLI", &["type=system|user|assistant", "content", "!role"]),
    ("a prompt history", &["display", "pastedContents"]),
    ("a prompt history", &["session_id", "ts", "text", "!role", "!type"]),
    ("Qwen Code", &["message.parts"]),
    ("Qwen Code", &["uuid", "systemPayload"]),
];

/// Signatures of a whole file, or of the first element of a list.
const DOCUMENTS: [Signature; 25] = [
    ("Gemini CLI", &["projectHash"]),
    ("SWE-agent", &["trajectory", "history"]),
    ("mini-swe-agent", &["trajectory_format"]),
    ("SWE-agent", &["trajectory", "environment"]),
    ("SWE-agent", &["trajectory", "info"]),
    ("SWE-agent", &["history.0.role"]),
    ("Trae agent", &["llm_interactions"]),
    ("Trae agent", &["agent_steps"]),
    ("LoCoMo", &["speaker_a", "session_1"]),
    ("LoCoMo", &["conversation.speaker_a"]),
    ("LongMemEval", &["haystack_sessions"]),
    ("LongMemEval", &["haystack_session_ids"]),
    ("an ATIF trajectory", &["schema_version", "steps[]"]),
    ("opencode", &["sessionID"]),
    ("opencode", &["info", "messages.0.parts"]),
    ("Amp", &["messages.0.createdAt", "messages.0.text"]),
    ("OpenTelemetry", &["resourceLogs"]),
    ("OpenTelemetry", &["resourceSpans"]),
    ("OpenTelemetry or Gemini messages", &["messages.0.parts"]),
    ("OpenHands", &["source", "action", "!messages"]),
    ("OpenHands", &["source", "observation", "!messages"]),
    ("a Gemini API conversation", &["parts", "role=user|model"]),
    ("OpenTelemetry", &["parts", "role"]),
    ("Cline's ui_messages.json", &["type=say|ask"]),
    ("Qwen Code", &["message.parts"]),
];

pub(super) fn of_line(json: &Value) -> Option<&'static str> {
    LINES.iter().find(|(_, fields)| matches(json, fields)).map(|(name, _)| *name)
}

pub(super) fn of_document(json: &Value) -> Option<&'static str> {
    let is_otel = json.map().any(|(key, _)| key.starts_with("gen_ai."));
    let known = DOCUMENTS.iter().find(|(_, fields)| matches(json, fields)).map(|(name, _)| *name);
    known.or(is_otel.then_some("OpenTelemetry"))
}

fn matches(json: &Value, fields: &[&str]) -> bool {
    fields.iter().all(|field| {
        if let Some(absent) = field.strip_prefix('!') {
            return json[absent].is_null();
        }
        if let Some(list) = field.strip_suffix("[]") {
            return json[list].is_array();
        }
        match field.split_once('=') {
            // A dotted type, such as `session.start`.
            Some((key, ".")) => json[key].as_str().is_some_and(|text| text.contains('.')),
            Some((key, values)) => {
                json[key].as_str().is_some_and(|text| values.split('|').any(|it| it == text))
            }
            None => has_path(json, field),
        }
    })
}

fn has_path(json: &Value, path: &str) -> bool {
    if json.map().any(|(key, _)| key == path) {
        return true;
    }
    let Some((head, rest)) = path.split_once('.') else { return false };
    match head {
        "0" => json.list().first().is_some_and(|first| has_path(first, rest)),
        head => has_path(&json[head], rest),
    }
}
