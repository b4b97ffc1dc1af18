//! One conversation in one JSON value: its messages, system prompt and id. Covers the wrappers of
//! clients, proxies, evaluations and fine-tuning sets.

use super::messages::{is_message, time_of};
use crate::transcripts::json::JsonExt;
use crate::transcripts::raw::RawSession;
use serde_json::Value;

/// Fields with a conversation's id, most reliable first.
const IDS: [&str; 7] =
    ["conversation_id", "session_id", "sessionId", "thread_id", "chat_id", "uuid", "id"];
/// Minimum size of an `id` that identifies a conversation; shorter ones only number records.
const ID_BYTES_MIN: usize = 16;
/// Fields with the messages of a conversation.
pub(super) const LISTS: [&str; 6] =
    ["messages", "traj", "conversations", "conversation", "chat_messages", "items"];
/// Fields with the system prompt.
const SYSTEMS: [&str; 3] = ["system", "system_prompt", "systemPrompt"];

pub(super) struct Record<'j> {
    /// Session header; its id may be empty.
    pub(super) head: RawSession,
    pub(super) system: &'j Value,
    pub(super) messages: Vec<&'j Value>,
}

static NULL: Value = Value::Null;

impl<'j> Record<'j> {
    pub(super) fn of(json: &'j Value) -> Option<Record<'j>> {
        if json.is_array() {
            let messages: Vec<_> = json.list().iter().filter(|m| is_message(m)).collect();
            let head = RawSession::default();
            return (!messages.is_empty()).then_some(Record { head, system: &NULL, messages });
        }
        let inner = ["request", "body", "input", "data"].iter().map(|key| &json[key]);
        let carriers = [json].into_iter().chain(inner.filter(|inner| inner.is_object()));
        let found = carriers.clone().find_map(|carrier| Some((carrier, list_of(carrier)?)));
        let (carrier, list) = found.unwrap_or((json, &[]));
        let mut messages: Vec<_> = list.iter().filter(|message| is_message(message)).collect();
        messages.extend(json["preferred_output"].list());
        messages.extend(answer(&json["response"]));
        if messages.is_empty() {
            return None;
        }
        Some(Record { head: head(json), system: system(carrier), messages })
    }
}

pub(super) fn head(json: &Value) -> RawSession {
    let ids = IDS.iter().filter_map(|key| Some((*key, json.first_text(&[key])?)));
    let id = ids.filter(|(key, id)| *key != "id" || id.len() >= ID_BYTES_MIN);
    let id = id.map(|(_, id)| id.to_owned()).next();
    RawSession {
        native_id: id.unwrap_or_default(),
        title: json.first_text(&["title", "name"]).map(str::to_owned),
        cwd: json.first_text(&["cwd"]).map(str::to_owned),
        started_at: time_of(json),
        ..RawSession::default()
    }
}

/// True if an object is a conversation without messages: `{"messages":[]}`.
pub(super) fn is_empty(json: &Value) -> bool {
    let mut lists = LISTS.iter().map(|key| &json[key]).filter(|value| value.is_array());
    lists.any(|value| value.list().is_empty())
}

fn list_of(carrier: &Value) -> Option<&[Value]> {
    let lists = LISTS.iter().map(|key| carrier[key].list());
    lists.into_iter().find(|list| list.iter().any(is_message))
}

pub(super) fn system(carrier: &Value) -> &Value {
    let found = SYSTEMS.iter().map(|key| &carrier[key]).find(|value| !value.is_null());
    found.unwrap_or(&carrier["system"])
}

/// Message of a logged response: OpenAI's first choice, or Anthropic's message itself.
fn answer(response: &Value) -> Option<&Value> {
    let body = if response["body"].is_object() { &response["body"] } else { response };
    let choice = body["choices"].list().first().map(|choice| &choice["message"]);
    let own = [&body["message"], body].into_iter().find(|message| is_message(message));
    choice.filter(|message| message.is_object()).or(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::json;

    #[track_caller]
    fn check(json: &str, id: &str, messages: usize) {
        let json = json::parse(json).unwrap();
        let record = Record::of(&json);
        let got = record.map(|record| (record.head.native_id, record.messages.len()));
        assert_eq!(got.unwrap_or_default(), (id.to_owned(), messages));
    }

    #[test]
    fn messages_are_found_in_every_wrapping() {
        const M: &str = r#"[{"role":"user","content":"a"}]"#;
        check(M, "", 1);
        check(&format!(r#"{{"messages":{M},"session_id":"s"}}"#), "s", 1);
        check(&format!(r#"{{"task_id":3,"reward":1,"traj":{M}}}"#), "", 1);
        check(&format!(r#"{{"custom_id":"c","body":{{"messages":{M}}}}}"#), "", 1);
        check(
            &format!(
                r#"{{"input":{{"messages":{M}}},"preferred_output":{M},"non_preferred_output":{M}}}"#
            ),
            "",
            2,
        );
        check(r#"{"conversations":[{"from":"human","value":"a"}]}"#, "", 1);
    }

    #[test]
    fn a_number_within_a_file_is_no_name() {
        const M: &str = r#"[{"role":"user","content":"a"}]"#;
        check(&format!(r#"{{"messages":{M},"id":"identity_0"}}"#), "", 1);
        check(
            &format!(r#"{{"messages":{M},"id":"chatcmpl-0123456789"}}"#),
            "chatcmpl-0123456789",
            1,
        );
    }

    #[test]
    fn a_logged_response_is_the_last_message() {
        check(
            r#"{"request":{"messages":[{"role":"user","content":"a"}]},
                "response":{"id":"r","choices":[{"message":{"role":"assistant","content":"b"}}]}}"#,
            "",
            2,
        );
        check(
            r#"{"request":{"messages":[{"role":"user","content":"a"}]},
                "response":{"role":"assistant","content":[{"type":"text","text":"b"}]}}"#,
            "",
            2,
        );
    }

    #[test]
    fn something_else_has_none() {
        check(r#"{"a":1}"#, "", 0);
        check("3", "", 0);
        check(r#"{"messages":[{"text":"no role"}]}"#, "", 0);
    }
}
