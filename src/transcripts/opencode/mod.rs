//! Sessions of opencode: output of `opencode export ID` (one document, or one per line), records of
//! its database, and the events that `opencode run --format json` prints.

use super::chat::time_of;
use super::client::{Client, ReadRecord, ignore, read_as, record};
use super::conversation::{Conversation, ToolResult};
use super::json::JsonExt;
use super::text::push_piece;
use super::tools::outcome_of_status;
use crate::domain::{EntryKind, Format, Outcome, Speaker, Timestamp};
use serde_json::Value;

pub(super) const CLIENT: Client = Client {
    format: Format::Opencode,
    lines: &[
        &["sessionID", "part.type"],
        &["info", "messages.0.parts"],
        &["info.directory", "info.id"],
        &["info.sessionID", "parts[]"],
        &["type=error", "sessionID"],
    ],
    documents: &[
        &["info", "messages.0.parts"],
        &["info.id", "info.directory"],
        &["sessionID", "part.type"],
    ],
    list: "messages",
    kind,
    kinds: &[("export", export), ("head", head), ("message", message), ("event", event)],
};

const PARTS: &[(&str, ReadRecord)] = &[
    ("text", text),
    ("tool", tool),
    ("file", file),
    ("subtask", subtask),
    ("retry", failure),
    ("reasoning|step-start|step-finish|snapshot|patch|agent|compaction", ignore),
];

/// Text before a command that the user ran.
const SHELL_MODE: &str = "The following tool was executed by the user";

/// Words in the errors of calls that the user stopped or a rule forbids.
const STOPPED: [&str; 4] = [
    "rejected permission",
    "Tool execution aborted",
    "dismissed this question",
    "specified a rule which prevents you",
];

fn kind(json: &Value) -> &str {
    match () {
        () if json["messages"].is_array() => "export",
        () if json.has("sessionID") && json.has("type") => "event",
        () if json["parts"].is_array() => "message",
        () if json.has("info") => "head",
        () => json.text("type"),
    }
}

fn export(json: &Value, talk: &mut Conversation<'_>) {
    talk.next_session();
    head(json, talk);
    record(&CLIENT, &json["messages"], talk);
}

fn head(json: &Value, talk: &mut Conversation<'_>) {
    let info = &json["info"];
    talk.header(info.text("id"));
    talk.title(info.text("title"));
    talk.cwd(info.text("directory"));
    let parent = info.first_text(&["parentID"]).map(str::to_owned);
    talk.is_sidechain = parent.is_some();
    // A part is undone by an API only, a message and all after it by `/undo`.
    let undone = &info["revert"];
    let from = if undone.has("partID") { "" } else { undone.text("messageID") };
    from.clone_into(&mut talk.undone_from);
    let head = talk.head();
    head.started_at = head.started_at.or(time_of(&info["time"]));
    head.parent = parent;
}

fn message(json: &Value, talk: &mut Conversation<'_>) {
    let info = &json["info"];
    talk.name(info.text("sessionID"));
    talk.cwd(info["path"].text("cwd"));
    if info["role"] == "user" {
        talk.is_users_tool = json["parts"][0]["text"] == SHELL_MODE;
    }
    for part in json["parts"].list() {
        talk.at(info.text("id"), time_of(&info["time"]));
        let is_text = info["role"] == "user" && part["type"] == "text";
        let is_own = is_text && part["synthetic"] != true;
        if is_own && part["ignored"] == true {
            talk.notice(part.text("text"));
        } else if is_own {
            talk.user(part.text("text"));
        } else if info["summary"] == true && part["type"] == "text" {
            talk.summary(part.text("text"));
        } else {
            read_as(PARTS, part.text("type"), part, talk);
        }
    }
    talk.at(info.text("id"), time_of(&info["time"]));
    failure(info, talk);
    // Ids of messages ascend.
    if !talk.undone_from.is_empty() && *talk.undone_from <= *info.text("id") {
        talk.rewind(info.text("id"));
    }
}

fn event(json: &Value, talk: &mut Conversation<'_>) {
    talk.name(json.text("sessionID"));
    talk.at(json["part"].text("messageID"), time_of(json));
    match json.has("part") {
        true => read_as(PARTS, json["part"].text("type"), &json["part"], talk),
        false => failure(json, talk),
    }
}

fn text(part: &Value, talk: &mut Conversation<'_>) {
    match part["synthetic"] == true {
        true => talk.injected(part.text("text")),
        false => talk.assistant(part.text("text")),
    }
}

fn tool(part: &Value, talk: &mut Conversation<'_>) {
    let (id, name, state) = (part.text("callID"), part.text("tool"), &part["state"]);
    talk.time(state["time"]["start"].as_i64().map(Timestamp));
    let id = if talk.is_users_tool { "" } else { id };
    match talk.is_users_tool {
        true => talk.say(Speaker::Person, EntryKind::Command, state["input"].text("command")),
        false => talk.call(id, name, &state["input"]),
    }
    talk.time(state["time"]["end"].as_i64().map(Timestamp));
    let exit_code = state["metadata"]["exit"].int();
    let metadata = &state["metadata"];
    let mut text = String::new();
    if metadata["interrupted"] == true {
        push_piece(&mut text, metadata.text("output"), "\n");
    }
    let told = state.first_text(&["output", "error"]).unwrap_or_default();
    push_piece(&mut text, told, "\n");
    let was_stopped = told == "Cancelled" || STOPPED.iter().any(|it| told.contains(it));
    let outcome = match outcome_of_status(state.text("status")) {
        Some(Outcome::Failed) if was_stopped => Some(Outcome::Aborted),
        // The client completes a command of the user whatever its exit code, which it does not keep.
        Some(Outcome::Succeeded) if talk.is_users_tool && exit_code.is_none() => None,
        // The client's answer to a call that it cannot read.
        Some(Outcome::Succeeded) if name == "invalid" => Some(Outcome::Failed),
        outcome => outcome,
    };
    if outcome != Some(Outcome::Running) {
        talk.result(ToolResult { id, name, text, outcome, exit_code });
    }
}

fn file(part: &Value, talk: &mut Conversation<'_>) {
    let name = part.first_text(&["filename", "mime"]).unwrap_or_default();
    talk.injected(&format!("[file {name}]"));
}

fn subtask(part: &Value, talk: &mut Conversation<'_>) {
    let words = part.first_text(&["prompt", "description"]).unwrap_or_default();
    talk.say(Speaker::Client, EntryKind::Prompt, words);
}

/// Reads the error of a message, a retry or a run.
fn failure(json: &Value, talk: &mut Conversation<'_>) {
    let error = &json["error"];
    let words = error["data"].first_text(&["message"]).or(error.first_text(&["message"]));
    let name = error.text("name");
    if error.is_object() {
        let gap = if name.is_empty() { "" } else { ": " };
        talk.notice(&format!("{name}{gap}{}", words.unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::testing::shown;

    fn exported(messages: &[String]) -> Vec<String> {
        let head = r#"{"info":{"id":"s","directory":"/w","time":{"created":5000}},"messages":["#;
        shown(Format::Opencode, &format!("{head}{}]}}", messages.join(",")))
    }

    fn message(at: u32, parts: &str) -> String {
        format!(
            r#"{{"info":{{"id":"m{at}","role":"user","sessionID":"s","time":{{"created":{at}}}}},"parts":[{parts}]}}"#
        )
    }

    #[test]
    fn what_the_model_does_not_get_is_no_prompt_and_a_users_command_has_no_known_outcome() {
        let shell = r#"{"type":"text","synthetic":true,"text":"The following tool was executed by the user"}"#;
        let ran = r#"{"type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"ls nosuch"},"output":"none","metadata":{"output":"none"}}}"#;
        let messages = [
            message(1, r#"{"type":"text","text":"a plugin's remark","ignored":true}"#),
            message(2, &format!("{shell},{ran}")),
        ];
        assert_eq!(
            exported(&messages),
            [
                "client notice: a plugin's remark",
                "client injected: The following tool was executed by the user (injected context)",
                "person command: ls nosuch",
                "tool tool_result bash#: none",
            ]
        );
    }
}
