//! Chat sessions of VS Code: requests, with the answers in rounds of tool calls.

use crate::domain::Timestamp;
use crate::transcripts::chat::{time_of, words_of};
use crate::transcripts::conversation::{Conversation, ToolCall, ToolResult};
use crate::transcripts::json::JsonExt;
use serde_json::Value;

/// Reads the header and the requests of a chat.
pub(super) fn chat(json: &Value, talk: &mut Conversation<'_, '_>) {
    talk.name(json.text("sessionId"));
    talk.title(json.text("customTitle"));
    let begun = json["creationDate"].as_i64().map(Timestamp);
    talk.head().started_at = begun;
    json["requests"].list().iter().for_each(|json| request(json, talk));
}

pub(super) fn request(json: &Value, talk: &mut Conversation<'_, '_>) {
    talk.at(json.text("requestId"), time_of(json));
    talk.user(json["message"].text("text"));
    for variable in json["variableData"]["variables"].list() {
        talk.injected(&format!("[file {}]", variable.text("name")));
    }
    let known = &json["result"]["metadata"];
    for round in known["toolCallRounds"].list() {
        talk.assistant(&words_of(&round["response"]));
        for call in round["toolCalls"].list() {
            let (id, name) = (call.text("id"), call.text("name"));
            talk.call(ToolCall { id, name, arguments: &call["arguments"] });
            let result = &known["toolCallResults"][id];
            if !result.is_null() {
                talk.result(ToolResult { id, name, text: texts(result), ..ToolResult::default() });
            }
        }
    }
    if known["toolCallRounds"].list().is_empty() {
        json["response"].list().iter().for_each(|part| shown(part, talk));
    }
    talk.notice(json["result"]["errorDetails"].text("message"));
}

/// Reads a part of an answer as VS Code shows it.
fn shown(part: &Value, talk: &mut Conversation<'_, '_>) {
    match part.text("kind") {
        "" => talk.assistant(part.first_text(&["value"]).unwrap_or(part["value"].text("value"))),
        "markdownContent" => talk.assistant(part["content"].text("value")),
        "toolInvocationSerialized" => {
            let (id, name) = (part.text("toolCallId"), part.text("toolId"));
            let command = &part["toolSpecificData"]["commandLine"];
            let said = [&part["pastTenseMessage"], &part["invocationMessage"]].map(words_of);
            let said = said.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
            let line = command.first_text(&["userEdited", "toolEdited", "original"]);
            let arguments = Value::String(line.unwrap_or(&said).to_owned());
            talk.call(ToolCall { id, name, arguments: &arguments });
        }
        _ => {}
    }
}

/// All texts of a tool's result, which may be a tree.
fn texts(json: &Value) -> String {
    match json {
        Value::Array(list) => {
            list.iter().map(texts).filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(fields) => match json.first_text(&["text", "value"]) {
            Some(text) => text.to_owned(),
            None => ["content", "value", "node", "children"]
                .iter()
                .filter_map(|key| fields.get(*key))
                .map(texts)
                .collect(),
        },
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
