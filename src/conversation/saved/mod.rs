//! Memories as JSON and back. What is read goes through the gate again: a text that passed it comes
//! out as it was, and one that somebody wrote into the file by hand is masked.

mod object;
mod reading;

pub use reading::from_json;

use super::MemoryType;
use super::held::{Count, Held, Kept};
use super::metadata::Metadata;
use crate::domain::{Role, Timestamp, Tokens};
use crate::privacy::Redacted;
use serde::Serialize;
use serde_json::Value;

/// What is written, and the one that is read.
const VERSION: u64 = 1;

#[derive(Serialize)]
struct Saved<'a> {
    version: u64,
    memory_type: MemoryType,
    session_id: Option<&'a Redacted>,
    limits: Value,
    read: Count,
    messages: Vec<SavedMessage<'a>>,
    #[serde(flatten)]
    more: Value,
}

#[derive(Serialize)]
struct SavedMessage<'a> {
    ordinal: u64,
    role: Role,
    content: &'a Redacted,
    timestamp: Option<Value>,
    id: Option<&'a Redacted>,
    token_count: Option<Tokens>,
    metadata: &'a Metadata,
}

/// A memory of `kind` with these limits, and what else is an object's worth of it.
pub(super) fn write(kind: MemoryType, limits: Value, held: &Held, more: Value) -> String {
    let saved = Saved {
        version: VERSION,
        memory_type: kind,
        session_id: held.session_id.as_ref(),
        limits,
        read: held.read,
        messages: held.in_order().map(saved_message).collect(),
        more,
    };
    // Every key is a text, so there is nothing that JSON could not hold.
    serde_json::to_string(&saved).unwrap_or_default()
}

fn saved_message(kept: &Kept) -> SavedMessage<'_> {
    let message = &kept.message;
    SavedMessage {
        ordinal: kept.ordinal,
        role: message.role,
        content: &message.content,
        timestamp: message.at.map(stamp),
        id: message.id.as_ref(),
        token_count: message.token_count,
        metadata: &message.metadata,
    }
}

/// RFC 3339; milliseconds where the calendar ends before the time does.
fn stamp(at: Timestamp) -> Value {
    let text = at.to_string();
    match Timestamp::of_rfc3339(&text) == Some(at) {
        true => Value::String(text),
        false => at.0.into(),
    }
}
