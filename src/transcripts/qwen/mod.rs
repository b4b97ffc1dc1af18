//! Sessions of Qwen Code: one envelope per line, with messages in the form of Google's API.

use super::chat::{time_of, words_of};
use super::client::{Client, ReadRecord, ignore, read_as};
use super::conversation::Conversation;
use super::gemini::parts;
use super::json::JsonExt;
use super::tools::outcome_of_status;
use crate::domain::{EntryKind, Format, Speaker};
use serde_json::Value;
use std::time::Duration;

pub(super) const CLIENT: Client = Client {
    format: Format::QwenCode,
    lines: &[&["message.parts"], &["uuid", "systemPayload"]],
    documents: &[&["message.parts"], &["uuid", "systemPayload"]],
    list: "",
    kind: |json| json.text("type"),
    kinds: &[
        ("user", user),
        ("assistant", assistant),
        ("tool_result", tool_result),
        ("system", system),
    ],
};

const SUBTYPES: &[(&str, ReadRecord)] = &[
    ("custom_title", |json, talk| talk.title(json["systemPayload"].text("customTitle"))),
    ("slash_command", command),
    ("notification", |json, talk| talk.notice(json["systemPayload"].text("displayText"))),
    ("chat_compression", compression),
    ("agent_launch_prompt", |json, talk| talk.user(json["systemPayload"].text("displayText"))),
    (BOOKKEEPING, ignore),
];

const BOOKKEEPING: &str = "ui_telemetry|attribution_snapshot|at_command|file_history_snapshot|rewind|session_source|\
    session_model|session_sources_snapshot|session_artifact_event|session_artifact_snapshot|parent_session|\
    branch_checkpoint|user_text_elements|turn_result|goal_state|goal_turn_end|background_task_completed|omni_recall|\
    agent_bootstrap|agent_retry|agent_session_ready";

fn begin(json: &Value, talk: &mut Conversation<'_>) {
    let (session, agent) = (json.text("sessionId"), json.text("agentId"));
    // A sub-agent has a file of its own, with its parent's session.
    if agent.is_empty() {
        talk.header(session);
    } else {
        talk.header(&format!("{session}/agent-{agent}"));
        talk.head().parent = Some(session.to_owned());
    }
    talk.cwd(json.text("cwd"));
    talk.branch(json.text("gitBranch"));
    talk.is_sidechain = json["isSidechain"] == true;
    if json["subtype"] == "rewind" && json["parentUuid"].is_null() {
        talk.restart();
    }
    talk.link(json.text("uuid"), json.text("parentUuid"));
    // A branch repeats the session before it, with its ids.
    if let Some(parent) = json["forkedFrom"].first_text(&["sessionId"]) {
        talk.head().parent = Some(parent.to_owned());
    }
    talk.at(json.text("uuid"), time_of(json));
}

/// Heading of a message that a person sent during a turn.
const MID_TURN: &str = "[User message received during tool execution]: ";

/// Maximum time from a slash command to the template that the client sends for it.
const TEMPLATE_MAX: Duration = Duration::from_secs(1);

fn user(json: &Value, talk: &mut Conversation<'_>) {
    let since = talk.now().zip(time_of(json)).map(|(before, at)| at.since(before));
    let is_template =
        talk.is_command(json.text("parentUuid")) && since.is_some_and(|it| it < TEMPLATE_MAX);
    begin(json, talk);
    let content = &json["message"]["parts"];
    match json.text("subtype") {
        "" if is_template => talk.injected(&words_of(content)),
        "" | "realtime_message" => parts(content, true, None, talk),
        "notification" => talk.notice(&words_of(content)),
        "mid_turn_user_message" if !talk.is_sidechain => {
            let all = words_of(content);
            let own = all.trim_start().strip_prefix(MID_TURN).unwrap_or(&all);
            let words = json["systemPayload"].first_text(&["displayText"]).unwrap_or(own);
            talk.say(Speaker::Person, EntryKind::Steering, words);
        }
        _ => talk.injected(&words_of(content)),
    }
}

fn assistant(json: &Value, talk: &mut Conversation<'_>) {
    begin(json, talk);
    parts(&json["message"]["parts"], false, None, talk);
}

fn tool_result(json: &Value, talk: &mut Conversation<'_>) {
    begin(json, talk);
    let outcome = outcome_of_status(json["toolCallResult"].text("status"));
    parts(&json["message"]["parts"], true, outcome, talk);
}

fn system(json: &Value, talk: &mut Conversation<'_>) {
    begin(json, talk);
    read_as(SUBTYPES, json.text("subtype"), json, talk);
}

/// Reads a slash command; its result record repeats it. One without output may be followed by the template that the
/// client sends to the model.
fn command(json: &Value, talk: &mut Conversation<'_>) {
    let payload = &json["systemPayload"];
    if payload["phase"] != "result" {
        talk.say(Speaker::Person, EntryKind::Command, payload.text("rawCommand"));
    } else if payload["outputHistoryItems"].list().is_empty() {
        talk.note_command(json.text("uuid"));
    }
}

/// Reads a compression: the client replaces the conversation with a summary in a user message.
fn compression(json: &Value, talk: &mut Conversation<'_>) {
    talk.summary(&words_of(&json["systemPayload"]["compressedHistory"][0]["parts"]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::raw::TranscriptItem;
    use crate::transcripts::testing::{entries, items, show, show_item};

    #[test]
    fn a_sub_agent_is_a_session_of_its_own_below_its_parent() {
        let line = r#"{"uuid":"x","sessionId":"b","type":"user","agentId":"explore-1","isSidechain":true,"message":{"parts":[{"text":"look"}]}}"#;
        let items = items(Format::QwenCode, line.as_bytes());
        let Some(TranscriptItem::Session(session)) = items.first() else { panic!("no session") };
        assert_eq!(session.native_id, "b/agent-explore-1");
        assert_eq!(session.parent.as_deref(), Some("b"));
        assert_eq!(
            entries(&items).map(show).collect::<Vec<_>>(),
            ["client prompt sidechain: look"]
        );
    }

    #[test]
    fn what_a_person_says_aloud_is_theirs_and_the_task_of_a_fork_its_prompt() {
        let lines = [
            r#"{"uuid":"x","sessionId":"b","type":"user","subtype":"realtime_message","message":{"parts":[{"text":"use jj"}]}}"#,
            r#"{"uuid":"y","sessionId":"b","type":"system","subtype":"session_source","systemPayload":{"source":"cli"}}"#,
            r#"{"uuid":"z","sessionId":"b","type":"system","subtype":"agent_launch_prompt","agentId":"a","isSidechain":true,"systemPayload":{"displayText":"look"}}"#,
        ];
        let shown: Vec<String> =
            items(Format::QwenCode, lines.join("\n").as_bytes()).iter().map(show_item).collect();
        let expected = [
            "= b",
            "1: person prompt: use jj",
            "= b/agent-a < b",
            "3: client prompt sidechain: look",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_template_of_a_slash_command_is_the_clients() {
        let record = |id: &str, parent: &str, second: u32, rest: &str| {
            format!(
                r#"{{"uuid":"{id}","parentUuid":"{parent}","sessionId":"b","timestamp":"2026-11-20T10:00:{second:02}.000Z",{rest}}}"#
            )
        };
        let slash = |phase: &str| {
            format!(
                r#""type":"system","subtype":"slash_command","systemPayload":{{"phase":"{phase}","rawCommand":"/review a.rs","outputHistoryItems":[]}}"#
            )
        };
        let said =
            |words: &str| format!(r#""type":"user","message":{{"parts":[{{"text":"{words}"}}]}}"#);
        let lines = [
            record("a", "", 1, &slash("invocation")),
            record("b", "a", 1, &slash("result")),
            record("c", "b", 1, &said("You are a reviewer.")),
            record("d", "c", 2, &slash("invocation")),
            record("e", "d", 2, &slash("result")),
            record("f", "e", 9, &said("fix it")),
        ];
        let shown: Vec<String> =
            entries(&items(Format::QwenCode, lines.join("\n").as_bytes())).map(show).collect();
        assert_eq!(
            shown,
            [
                "person command: /review a.rs",
                "client injected: You are a reviewer. (injected context)",
                "person command: /review a.rs",
                "person prompt: fix it",
            ]
        );
    }

    #[test]
    fn records_on_one_line_are_all_read() {
        let said = |id: &str, kind: &str, words: &str| {
            format!(
                r#"{{"uuid":"{id}","parentUuid":null,"sessionId":"b","type":"{kind}","message":{{"parts":[{{"text":"{words}"}}]}}}}"#
            )
        };
        let line = said("x", "user", "go on") + &said("y", "assistant", "Done.");
        let shown: Vec<_> = entries(&items(Format::QwenCode, line.as_bytes())).map(show).collect();
        assert_eq!(shown, ["person prompt: go on", "assistant text: Done."]);
    }

    #[test]
    fn a_message_during_a_turn_is_read_without_its_heading() {
        let line = r#"{"uuid":"x","sessionId":"b","type":"user","subtype":"mid_turn_user_message","message":{"parts":[{"text":"\n[User message received during tool execution]: stop"}]}}"#;
        let items = items(Format::QwenCode, line.as_bytes());
        assert_eq!(entries(&items).map(show).collect::<Vec<_>>(), ["person steering: stop"]);
    }
}
