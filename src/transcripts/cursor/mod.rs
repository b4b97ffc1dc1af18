//! Agent transcripts of Cursor: one message per line, without ids and times.

use super::client::Client;
use super::conversation::Conversation;
use super::json::JsonExt;
use crate::domain::Format;
use serde_json::{Value, json};

pub(super) const CLIENT: Client = Client {
    format: Format::Cursor,
    lines: &[&["role", "message", "!type", "!content", "!id"]],
    documents: &[&["role", "message", "!type", "!content", "!id"]],
    list: "",
    kind: |json| json.text("role"),
    kinds: &[("user|assistant|system|tool", message)],
};

fn message(json: &Value, talk: &mut Conversation<'_>) {
    talk.at("", None);
    talk.message(&json!({ "role": json["role"], "content": json["message"]["content"] }));
}
