//! Sessions of GitHub Copilot: the event log of its CLI (JSONL), and VS Code's chat sessions (a
//! document with requests, or the log of its changes).

mod vscode;

use super::chat::{time_of, words_of};
use super::client::{Client, ignore};
use super::conversation::{Conversation, ToolCall, ToolResult};
use super::json::JsonExt;
use super::tools::outcome_of_flag;
use crate::domain::{Format, Timestamp};
use serde_json::Value;

pub(super) const CLIENT: Client = Client {
    format: Format::Copilot,
    lines: &[
        &["data", "type=.", "id"],
        &["requests.0.message"],
        &["kind", "v.responderUsername"],
        &["kind", "v.requests"],
        &["kind", "k", "!requestId"],
    ],
    documents: &[
        &["requests.0.message"],
        &["requesterUsername", "requests[]"],
        &["sessionId", "requests[]"],
    ],
    list: "requests",
    kind,
    kinds: &[
        ("session.start", start),
        ("session.title_changed", title),
        ("user.message", user),
        ("assistant.message", assistant),
        ("tool.execution_start|tool.user_requested", execution),
        ("tool.execution_complete", complete),
        ("session.error|session.warning|abort|system.notification", notice),
        ("system.message|skill.invoked", system),
        ("session.compaction_complete", compaction),
        (BOOKKEEPING, ignore),
        ("delta", vscode::delta),
        ("chat", vscode::chat),
        ("request", vscode::request),
    ],
};

const BOOKKEEPING: &str = "session.model_change|session.info|session.resume|session.shutdown|session.idle|\
    session.truncation|session.usage_checkpoint|session.usage_info|session.auto_mode_resolved|\
    session.compaction_start|session.mode_changed|session.plan_changed|session.task_complete|\
    session.context_changed|session.handoff|session.snapshot_rewind|session.workspace_file_changed|\
    session.import_legacy|session.todos_changed|session.permissions_changed|session.remote_steerable_changed|\
    assistant.turn_start|assistant.turn_end|assistant.reasoning|assistant.intent|assistant.usage|\
    assistant.message_delta|assistant.reasoning_delta|hook.start|hook.end|subagent.started|\
    subagent.completed|subagent.failed|subagent.selected|subagent.deselected|tool.execution_progress|\
    tool.execution_partial_result|permission.requested|permission.completed|pending_messages.modified";

fn kind(json: &Value) -> &str {
    match () {
        () if json.has("requestId") || json["message"].has("text") => "request",
        () if json.get("requests").is_some() || json.has("requesterUsername") => "chat",
        () if json["kind"].is_u64() => "delta",
        () => json.text("type"),
    }
}

/// Starts an event; a sub-agent's events name the call that started it.
fn begin<'j>(json: &'j Value, talk: &mut Conversation<'_>) -> &'j Value {
    let data = &json["data"];
    talk.is_sidechain = data.first_text(&["parentToolCallId"]).is_some();
    talk.at(json.text("id"), time_of(json));
    data
}

fn start(json: &Value, talk: &mut Conversation<'_>) {
    talk.header(json["data"].text("sessionId"));
    let data = begin(json, talk);
    talk.cwd(data["context"].text("cwd"));
    talk.branch(data["context"].text("branch"));
    let head = talk.head();
    head.started_at = head.started_at.or(Timestamp::parse(data.text("startTime")));
}

fn title(json: &Value, talk: &mut Conversation<'_>) {
    talk.title(json["data"].text("title"));
}

fn user(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    // Requests of skills and hooks have the role `user` too.
    match data.text("source") {
        "" | "user" | "cli" => talk.user(data.text("content")),
        _ => talk.injected(data.text("content")),
    }
    for attachment in data["attachments"].list() {
        let name = attachment.first_text(&["path", "displayName", "title"]);
        talk.injected(&format!("[file {}]", name.unwrap_or_default()));
    }
}

fn assistant(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    talk.assistant(data.text("content"));
    for call in data["toolRequests"].list() {
        let (id, name) = (call.text("toolCallId"), call.text("name"));
        talk.call(ToolCall { id, name, arguments: &call["arguments"] });
    }
}

/// Reads a call that no assistant message requested.
fn execution(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    let (id, name) = (data.text("toolCallId"), data.text("toolName"));
    if !talk.has_call(id) {
        talk.call(ToolCall { id, name, arguments: &data["arguments"] });
    }
}

fn complete(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    let result = words_of(&data["result"]["content"]);
    let error = data["error"].first_text(&["message"]).unwrap_or_default();
    talk.result(ToolResult {
        id: data.text("toolCallId"),
        text: if result.is_empty() { error.to_owned() } else { result },
        outcome: data["success"].as_bool().map(outcome_of_flag),
        ..ToolResult::default()
    });
}

fn notice(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    let words = data.first_text(&["message", "content", "reason"]).unwrap_or_default();
    talk.notice(words);
}

fn system(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    talk.injected(data.text("content"));
}

fn compaction(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    talk.summary(data.text("summaryContent"));
}
