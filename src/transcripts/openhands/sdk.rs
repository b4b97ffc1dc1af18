//! Events of the newer SDK of OpenHands, which have a `kind`.

use crate::domain::Outcome;
use crate::transcripts::chat::{time_of, words_of};
use crate::transcripts::conversation::{Conversation, ToolCall, ToolResult};
use crate::transcripts::json::JsonExt;
use crate::transcripts::tools::outcome_of_flag;
use serde_json::Value;

pub(super) fn message(json: &Value, talk: &mut Conversation<'_, '_>) {
    talk.at(json.text("id"), time_of(json));
    let text = words_of(&json["llm_message"]["content"]);
    match json.text("source") {
        "user" => talk.user(&text),
        "agent" => talk.assistant(&text),
        _ => talk.injected(&text),
    }
    talk.injected(&words_of(&json["extended_content"]));
}

pub(super) fn system(json: &Value, talk: &mut Conversation<'_, '_>) {
    talk.at(json.text("id"), time_of(json));
    talk.injected(&words_of(&json["system_prompt"]));
}

pub(super) fn action(json: &Value, talk: &mut Conversation<'_, '_>) {
    talk.at(json.text("id"), time_of(json));
    talk.assistant(&words_of(&json["thought"]));
    match json["action"].text("kind") {
        "FinishAction" => talk.assistant(json["action"].text("message")),
        "ThinkAction" => {}
        _ => {
            let call = &json["tool_call"];
            let keys = ["arguments", "function"];
            let own = keys.iter().map(|key| &call[key]).find(|it| !it.is_null());
            let own = own.map(|it| if it.has("arguments") { &it["arguments"] } else { it });
            let arguments = own.unwrap_or(&json["action"]);
            let (id, name) = (json.text("tool_call_id"), json.text("tool_name"));
            talk.call(ToolCall { id, name, arguments });
        }
    }
}

pub(super) fn observation(json: &Value, talk: &mut Conversation<'_, '_>) {
    talk.at(json.text("id"), time_of(json));
    let seen = &json["observation"];
    if matches!(seen.text("kind"), "FinishObservation" | "ThinkObservation") {
        return;
    }
    let keys = ["content", "output", "error"];
    let content = keys.iter().map(|key| words_of(&seen[key])).find(|text| !text.is_empty());
    let words = json.first_text(&["error", "rejection_reason"]).map(str::to_owned);
    let code = seen["exit_code"].as_i64().or(seen["metadata"]["exit_code"].as_i64());
    let outcome = match json.text("kind") {
        "AgentErrorEvent" => Some(Outcome::Failed),
        "UserRejectObservation" => Some(Outcome::Aborted),
        _ if code == Some(-1) || seen["timeout"] == true => Some(Outcome::Running),
        _ => ["is_error", "error"]
            .iter()
            .find_map(|key| seen[key].as_bool())
            .map(|it| outcome_of_flag(!it)),
    };
    talk.cwd(seen["metadata"].text("working_dir"));
    talk.result(ToolResult {
        id: json.text("tool_call_id"),
        name: json.text("tool_name"),
        text: content.or(words).unwrap_or_default(),
        outcome,
        exit_code: code.filter(|code| *code != -1).and_then(|code| i32::try_from(code).ok()),
    });
}

pub(super) fn summary(json: &Value, talk: &mut Conversation<'_, '_>) {
    talk.at(json.text("id"), time_of(json));
    talk.summary(json.text("summary"));
}
