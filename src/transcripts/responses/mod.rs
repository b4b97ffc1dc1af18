//! Logged objects of OpenAI's Responses API: a response, or a request with its response. A request
//! without `previous_response_id` repeats the conversation before it.

use super::chat::{time_of, words_of};
use super::client::{Client, ReadRecord, ignore, read_as};
use super::conversation::{Conversation, ToolResult};
use super::json::JsonExt;
use super::tools::outcome_of_status;
use crate::domain::{Format, Outcome, Timestamp};
use serde_json::Value;

pub(super) const CLIENT: Client = Client {
    format: Format::Responses,
    lines: &[&["object=response"], &["response.object"], &["response.output"], &["body.object"]],
    documents: &[&["object=response"], &["response.output"]],
    list: "",
    kind,
    kinds: &[
        ("response", exchange),
        ("list", |json, talk| json["data"].list().iter().for_each(|json| exchange(json, talk))),
    ],
};

const ITEMS: &[(&str, ReadRecord)] = &[
    ("message", |item, talk| talk.message(item)),
    ("function_call|custom_tool_call|mcp_call|mcp_approval_request", call),
    ("local_shell_call|shell_call|apply_patch_call|computer_call", call),
    ("web_search_call|file_search_call|code_interpreter_call", call),
    ("function_call_output|custom_tool_call_output|local_shell_call_output", output),
    ("shell_call_output|apply_patch_call_output|computer_call_output", output),
    ("reasoning|item_reference|mcp_list_tools|image_generation_call|compaction", ignore),
    ("mcp_approval_response", ignore),
];

fn kind(json: &Value) -> &str {
    let carriers = [json, &json["response"], &json["body"], &json["response"]["body"]];
    let is_one = |it: &&Value| it["object"] == "response" || it["output"].is_array();
    match carriers.iter().any(is_one) {
        true => "response",
        false if json["data"].is_array() => "list",
        false => json.first_text(&["object", "type"]).unwrap_or_default(),
    }
}

/// Reads the request, if it was logged, and the response.
pub(super) fn exchange(json: &Value, talk: &mut Conversation<'_>) {
    let inner = [&json["response"]["body"], &json["response"], &json["body"], json];
    let response = inner.into_iter().find(|it| it["output"].is_array()).unwrap_or(json);
    let asked = ["request", "body"].iter().map(|key| &json[key]).find(|it| it.has("input"));
    let request = asked.unwrap_or(if json.has("input") { json } else { response });
    let conversation = &response["conversation"];
    let before =
        [request, response].into_iter().find_map(|it| it.first_text(&["previous_response_id"]));
    let named = conversation.as_str().or(conversation.first_text(&["id"]));
    talk.name(named.or(before).or(response.first_text(&["id"])).unwrap_or_default());
    let at = response["created_at"].as_f64().and_then(Timestamp::from_secs);
    talk.next_request();
    let is_whole = before.is_none() && named.is_none();
    talk.at("", at.or(time_of(json)));
    let instructions = [request, response].map(|it| words_of(&it["instructions"]));
    let instructions = instructions.iter().find(|text| !text.is_empty());
    if let Some(text) = instructions.filter(|text| !talk.repeats(text)) {
        talk.injected(text);
    }
    let input = &request["input"];
    if let Some(text) =
        input.as_str().filter(|text| !is_whole || !talk.repeats(&format!("user {text}")))
    {
        talk.user(text);
    }
    for (items, is_input) in [(input.list(), true), (response["output"].list(), false)] {
        for item in items {
            let is_told = talk.repeats(&key(item)) && is_input && is_whole;
            if !is_told {
                talk.at(item.text("id"), at.or(time_of(json)));
                let kind = if item.has("role") { "message" } else { item.text("type") };
                read_as(ITEMS, kind, item, talk);
            }
        }
    }
    if response["error"].is_object() {
        talk.notice(response["error"].text("message"));
    }
}

/// Key of an item by its content; a copy in a later request has other ids and states.
fn key(item: &Value) -> String {
    let role = item.text("role");
    let content = words_of(&item["content"]);
    match item.first_text(&["call_id"]) {
        Some(call) => format!("{} {call}", item.text("type")),
        None if role.is_empty() => item.to_string(),
        None => format!("{role} {content}"),
    }
}

/// Reads a call. Calls of tools that the API runs itself include the result.
fn call(item: &Value, talk: &mut Conversation<'_>) {
    let id = item.first_text(&["call_id", "id"]).unwrap_or_default();
    let kind = item.text("type").trim_end_matches("_call");
    let name = item.first_text(&["name"]).unwrap_or(kind);
    let keys = ["arguments", "input", "action", "code", "queries", "operation"];
    talk.call(id, name, item.first(&keys));
    let keys = ["error", "output", "outputs", "results"];
    let output = keys.into_iter().find(|key| item.has(key));
    if let Some(key) = output {
        let failed = (key == "error").then_some(Outcome::Failed);
        let outcome = failed.or(outcome_of_status(item.text("status")));
        talk.result(ToolResult { id, name, text: words_of(&item[key]), outcome, exit_code: None });
    }
}

fn output(item: &Value, talk: &mut Conversation<'_>) {
    let code = item["output"].list().iter().find_map(|it| it["outcome"]["exit_code"].int());
    let texts: Vec<&str> = item["output"]
        .list()
        .iter()
        .flat_map(|it| [it.text("stdout"), it.text("stderr")])
        .filter(|text| !text.is_empty())
        .collect();
    let text = if texts.is_empty() { words_of(&item["output"]) } else { texts.join("\n") };
    let failed = matches!(item.text("status"), "failed" | "incomplete").then_some(Outcome::Failed);
    talk.result(ToolResult {
        id: item.text("call_id"),
        text,
        outcome: failed,
        exit_code: code,
        ..ToolResult::default()
    });
}
