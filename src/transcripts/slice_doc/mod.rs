//! Slice documents, which agents, hooks and other machines submit: one JSON object, or JSONL, with
//! the entries since the last document. A document is accepted whole or refused.

mod document;
mod parse;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use document::{schema as slice_schema, schema_file};
pub(crate) use parse::{SliceError, parse_slice};
pub(super) use reader::read;

use super::json::JsonExt;
use serde_json::Value;

/// True if a value is a slice document: it has entries, and either speakers or a session.
pub(super) fn is_slice(json: &Value) -> bool {
    let entries = &json["entries"];
    let speaks = entries.list().first().is_some_and(|entry| entry.has("speaker"));
    speaks || (entries.is_array() && json.first_text(&["session"]).is_some())
}
