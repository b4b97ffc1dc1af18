//! A session as one JSON object, in which every message keeps its role:
//! `{"session_id": …, "messages": [{"role", "content", "timestamp"}]}`.

use super::chat::time_of;
use super::cutter::{Cut, Cutter, FIELD_BYTES_MAX};
use super::emit::Emit;
use super::json::JsonExt;
use super::raw::TranscriptItem;
use super::text::push_piece;
use crate::domain::{Finding, LINE_BYTES_MAX, Severity, Timestamp};
use serde_json::Value;
use std::io::{self, Read, Seek};
use std::ops::ControlFlow;

const SESSION_ID: &str = "session_id";
const MESSAGES: &str = "messages";

/// Message before redaction.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct RawMessage {
    /// Role as written; may be empty.
    pub role: String,
    /// Content, or its text parts.
    pub text: String,
    pub at: Option<Timestamp>,
}

/// Fields of a session other than its messages, before redaction.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct RawSessionDocument {
    pub session_id: String,
    pub messages: u64,
    pub findings: Vec<Finding>,
}

/// Visits every message of a session; returns `None` if the input is not a session.
pub(crate) fn read_session<R: Read + Seek>(
    mut input: R,
    mut each: impl FnMut(RawMessage),
) -> io::Result<Option<RawSessionDocument>> {
    input.rewind()?;
    let Some(session_id) = head(&mut input)? else { return Ok(None) };
    input.rewind()?;
    let (mut findings, mut count) = (Vec::new(), 0);
    let mut sink = |item| {
        if let TranscriptItem::Finding(finding) = item {
            findings.push(finding);
        }
        ControlFlow::Continue(())
    };
    let mut emit = Emit::new(&mut sink);
    let is_list = |key: &str| key == MESSAGES;
    Cutter::new(input).lists(LINE_BYTES_MAX, is_list, |it| {
        let json = emit.element(&it);
        if let Some(message) = json.and_then(|json| message(&json, it.line, &mut emit)) {
            count += 1;
            each(message);
        }
        true
    })?;
    emit.finish();
    Ok(Some(RawSessionDocument { session_id, messages: count, findings }))
}

/// Returns the id of a session, if the input consists of exactly one.
fn head<R: Read>(input: &mut R) -> io::Result<Option<String>> {
    let (mut session_id, mut has_messages, mut has_others) = (None, false, false);
    let mut cutter = Cutter::new(input);
    let cut = cutter.fields(|cutter, key, buffer| {
        let first = cutter.peek()?;
        let cut = cutter.value(buffer, if key == SESSION_ID { FIELD_BYTES_MAX } else { 0 })?;
        match key {
            SESSION_ID => session_id = Some(serde_json::from_slice(buffer).unwrap_or_default()),
            MESSAGES => has_messages = first == Some(b'['),
            _ => has_others = true,
        }
        // Values that are not kept have no maximum.
        Ok(if cut == Cut::TooLong { Cut::Whole } else { cut })
    })?;
    let is_session = has_messages || !has_others;
    let is_alone = cut == Cut::Whole && cutter.peek()?.is_none();
    Ok((is_session && is_alone).then(|| session_id.unwrap_or_default()))
}

/// Reads one message; reports anything else.
fn message(json: &Value, line: u32, emit: &mut Emit<'_>) -> Option<RawMessage> {
    if !json.is_object() {
        let expected = "expected a message: an object with a role and content";
        emit.finding(Severity::Warning, "no-message", line, expected);
        return None;
    }
    let role = json.text("role").to_owned();
    Some(RawMessage { role, text: words(&json["content"]), at: time_of(json) })
}

fn words(content: &Value) -> String {
    let mut words = content.as_str().unwrap_or_default().to_owned();
    for part in content.list() {
        if part["type"].as_str() == Some("text") {
            push_piece(&mut words, part.text("text"), "\n");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Compares the session id and `role: text` of each message; `None` if it is no session.
    #[track_caller]
    fn check(input: &str, expected: Option<&[&str]>) {
        let mut found = Vec::new();
        let document = read_session(Cursor::new(input), |message| {
            found.push(format!("{}: {}", message.role, message.text));
        });
        let document = document.unwrap();
        if let Some(document) = &document {
            assert_eq!(document.messages, found.len() as u64);
            found.insert(0, document.session_id.clone());
            found.extend(document.findings.iter().map(|finding| format!("! {}", finding.rule)));
        }
        assert_eq!(
            document.map(|_| found),
            expected.map(|it| it.iter().map(|it| (*it).to_owned()).collect())
        );
    }

    #[test]
    fn every_message_is_handed_on_in_its_own_role() {
        check(
            r#"{"messages":[{"role":"system","content":"s"},{"role":"critic","content":"c"},{"content":"n"}],
                "session_id":"x","other":[1,{}]}"#,
            Some(&["x", "system: s", "critic: c", ": n"]),
        );
    }

    #[test]
    fn only_text_has_words() {
        check(
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":"b"},
                {"type":"thinking","thinking":"c","text":"d"},{"type":"text","text":"e"}]},
                {"role":"user","content":null},{"role":"user","content":5}]}"#,
            Some(&["", "user: a\ne", "user: ", "user: "]),
        );
    }

    #[test]
    fn a_session_may_have_no_messages() {
        for input in ["{}", "{\"messages\":null}", "{\"messages\":[]}\n"] {
            check(input, Some(&[""]));
        }
        check(r#"{"session_id":"x"}"#, Some(&["x"]));
        check(r#"{"session_id":7}"#, Some(&[""]));
    }

    #[test]
    fn odd_elements_cost_themselves_only() {
        check(
            r#"{"messages":["a",{"role":"user","content":"b"},{oops}]}"#,
            Some(&["", "user: b", "! no-message", "! bad-json"]),
        );
    }

    #[test]
    fn something_else_is_no_session() {
        for input in [
            "",
            "[]",
            "5",
            "{\"a\":1}",
            "{\"messages\":[",
            "{}{}",
            "{\"messages\":[]}\n{\"messages\":[]}\n",
        ] {
            check(input, None);
        }
    }

    #[test]
    fn times_are_read() {
        let mut at = None;
        let input =
            r#"{"messages":[{"role":"user","content":"a","timestamp":"1970-01-01T00:00:01Z"}]}"#;
        read_session(Cursor::new(input), |message| at = message.at).unwrap();
        assert_eq!(at, Some(Timestamp(1_000)));
    }
}
