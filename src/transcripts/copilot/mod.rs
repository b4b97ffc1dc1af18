//! Sessions of GitHub Copilot: the event log of its CLI (JSONL), and VS Code's chat sessions: a
//! document with requests, each with the answers in rounds of tool calls, or the log of its changes,
//! as VS Code's `ObjectMutationLog` appends it. A line of the log holds the whole session, a value set
//! at a path, elements of a list, or a path to remove.

use super::chat::{time_of, words_of};
use super::client::{Client, ignore};
use super::conversation::{Conversation, ToolResult};
use super::json::JsonExt;
use super::tools::{outcome_of_flag, outcome_of_status};
use crate::domain::{EntryKind, Format, Outcome, Speaker, Timestamp};
use serde_json::{Value, json};

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
        ("session.title_changed", |json, talk| talk.title(json["data"].text("title"))),
        ("user.message", user),
        ("assistant.message", assistant),
        ("tool.execution_start", execution),
        ("tool.user_requested", requested),
        ("tool.execution_complete", complete),
        ("session.error|session.warning|abort|system.notification", notice),
        ("system.message|skill.invoked", system),
        ("session.compaction_complete", compaction),
        (BOOKKEEPING, ignore),
        ("delta", delta),
        ("chat", chat),
        ("request", request),
    ],
};

const BOOKKEEPING: &str = "session.model_change|session.info|session.resume|session.shutdown|session.idle|\
    session.truncation|session.usage_checkpoint|session.usage_info|session.usage_record|session.auto_mode_resolved|\
    session.compaction_start|session.mode_changed|session.plan_changed|session.task_complete|\
    session.context_changed|session.handoff|session.snapshot_rewind|session.workspace_file_changed|\
    session.import_legacy|session.todos_changed|session.permissions_changed|session.remote_steerable_changed|\
    assistant.turn_start|assistant.turn_end|assistant.reasoning|assistant.intent|assistant.usage|\
    assistant.message_delta|assistant.reasoning_delta|hook.start|hook.end|subagent.started|\
    subagent.completed|subagent.failed|subagent.selected|subagent.deselected|subagent.configured|tool.execution_progress|\
    tool.execution_partial_result|permission.requested|permission.completed|pending_messages.modified|\
    session.context_cleared|session.mode_notice_delivered|session.model_deselected|session.completion_receipt|\
    session.session_limits_changed|session.permission_recovery|tool_search.activated|human_response.recorded";

fn kind(json: &Value) -> &str {
    match () {
        () if json.has("requestId") || json["message"].has("text") => "request",
        () if json.get("requests").is_some() || json.has("requesterUsername") => "chat",
        () if json["kind"].is_u64() => "delta",
        () => json.text("type"),
    }
}

/// Starts an event; a sub-agent's events name it, or the call that started it.
fn begin<'j>(json: &'j Value, talk: &mut Conversation<'_>) -> &'j Value {
    let data = &json["data"];
    talk.is_sidechain = ![data.text("parentToolCallId"), json.text("agentId")].concat().is_empty();
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

fn user(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    // Requests of skills and hooks have the role `user` too.
    match data.text("source") {
        "" | "user" | "cli" if data["isAutopilotContinuation"] != true => {
            talk.user(data.text("content"))
        }
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
        talk.call(call.text("toolCallId"), call.text("name"), &call["arguments"]);
    }
}

/// Reads a call that no assistant message requested.
fn execution(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    let id = data.text("toolCallId");
    if !talk.has_call(id) {
        talk.call(id, data.text("toolName"), &data["arguments"]);
    }
}

/// Reads a command line that the user ran, or a call of another tool. Its execution follows.
fn requested(json: &Value, talk: &mut Conversation<'_>) {
    let line = json["data"]["arguments"].text("command");
    if line.is_empty() {
        return execution(json, talk);
    }
    let data = begin(json, talk);
    talk.command(data.text("toolCallId"), line);
}

fn complete(json: &Value, talk: &mut Conversation<'_>) {
    let data = begin(json, talk);
    let is_users = talk.is_command(data.text("toolCallId"));
    let result = words_of(&data["result"]["content"]);
    let error = data["error"].first_text(&["message"]).unwrap_or_default();
    talk.result(ToolResult {
        id: if is_users { "" } else { data.text("toolCallId") },
        name: if is_users { "shell" } else { "" },
        text: if result.is_empty() { error.to_owned() } else { result },
        outcome: outcome_of_status(data["error"].text("code"))
            .or(data["success"].as_bool().map(outcome_of_flag)),
        exit_code: data["shellExecution"]["exitCode"].int(),
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

/// Ways in which the user answered a request for permission: denied, and skipped.
const REFUSED: [u64; 2] = [0, 5];

/// End of what VS Code tells the model in the place of the result of a call that failed.
const ERROR_END: &str = "Please check your input and try again.";

/// Kinds of changes.
const INITIAL: u64 = 0;
const SET: u64 = 1;
const PUSH: u64 = 2;
const DELETE: u64 = 3;
/// States of an answer that is not finished yet: pending, and waiting for the user.
const UNFINISHED: [u64; 2] = [0, 4];

/// Reads the header and the requests of a chat.
pub(super) fn chat(json: &Value, talk: &mut Conversation<'_>) {
    talk.name(json.text("sessionId"));
    talk.title(json.text("customTitle"));
    let begun = json["creationDate"].as_i64().map(Timestamp);
    talk.head().started_at = begun;
    json["requests"].list().iter().for_each(|json| request(json, talk));
}

pub(super) fn request(json: &Value, talk: &mut Conversation<'_>) {
    let (id, words) = (json.text("requestId"), json["message"].text("text"));
    // An exported chat has no id.
    talk.name(id);
    talk.at(id, time_of(json));
    match json.has("confirmation") {
        true => talk.say(Speaker::Person, EntryKind::Answer, words),
        false => talk.user(words),
    }
    for variable in json["variableData"]["variables"].list() {
        talk.injected(&format!("[file {}]", variable.text("name")));
    }
    let known = &json["result"]["metadata"];
    for round in known["toolCallRounds"].list() {
        talk.assistant(&words_of(&round["response"]));
        for call in round["toolCalls"].list() {
            let (id, name) = (call.text("id"), call.text("name"));
            talk.call(id, name, &call["arguments"]);
            let told = &known["toolCallResults"][id];
            let shown = json["response"].list().iter().find(|part| part["toolCallId"] == id);
            let shown = shown.and_then(|part| result(part, told.is_null()));
            if !told.is_null() || shown.is_some() {
                let shown = shown.unwrap_or_default();
                let text = if told.is_null() { shown.text } else { texts(told) };
                let is_error = text.starts_with("ERROR") && text.trim_end().ends_with(ERROR_END);
                let outcome = shown.outcome.or(is_error.then_some(Outcome::Failed));
                talk.result(ToolResult { id, name, text, outcome, ..shown });
            }
        }
    }
    if known["toolCallRounds"].list().is_empty() {
        response(json["response"].list(), talk);
    }
    let is_canceled = json["isCanceled"] == true;
    let error = json["result"]["errorDetails"].text("message");
    talk.notice(if is_canceled && error == "Canceled" { "" } else { error });
    talk.notice(if is_canceled { "[canceled]" } else { "" });
}

/// Reads the parts of an answer as VS Code shows them. A reference is a name within the text.
fn response(parts: &[Value], talk: &mut Conversation<'_>) {
    let (mut words, mut is_open) = (String::new(), false);
    for part in parts {
        let is_reference = part["kind"] == "inlineReference";
        if !is_reference && !is_open {
            talk.assistant(&std::mem::take(&mut words));
        }
        is_open = is_reference;
        match part.text("kind") {
            "" => words += part.first_text(&["value"]).unwrap_or(part["value"].text("value")),
            "markdownContent" | "markdownVuln" => words += part["content"].text("value"),
            "inlineReference" => words += reference(part),
            _ => {
                talk.assistant(&std::mem::take(&mut words));
                shown(part, talk);
            }
        }
    }
    talk.assistant(&words);
}

/// Name of a symbol or a file.
fn reference(part: &Value) -> &str {
    let target = &part["inlineReference"];
    let path = target.first_text(&["path"]).unwrap_or(target["uri"].text("path"));
    let file = || path.rsplit('/').next().unwrap_or_default();
    part.first_text(&["name"]).or(target.first_text(&["name"])).unwrap_or_else(file)
}

/// Kinds of parts of an answer that are nobody's words.
const SILENT: [&str; 9] = [
    "thinking", "progressMessage", "progressTaskSerialized", "codeCitation", "command",
    "textEditGroup", "notebookEditGroup", "treeData", "codeblockUri",
];

/// Reads a part of an answer that is not text.
fn shown(part: &Value, talk: &mut Conversation<'_>) {
    let kind = part.text("kind");
    if kind != "toolInvocationSerialized" {
        let keys = ["content", "message", "title", "subtitle", "value", "text"];
        if !SILENT.contains(&kind) && keys.iter().any(|key| !texts(&part[*key]).is_empty()) {
            talk.unknown(kind);
        }
        return;
    }
    let (id, name) = (part.text("toolCallId"), part.text("toolId"));
    let command = &part["toolSpecificData"]["commandLine"];
    let said = [&part["pastTenseMessage"], &part["invocationMessage"]].map(words_of);
    let said = said.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    let line = command.first_text(&["userEdited", "toolEdited", "original"]);
    talk.call(id, name, &Value::from(line.unwrap_or(&said)));
    result(part, true).into_iter().for_each(|result| talk.result(result));
}

/// Result of a call as VS Code shows it: a terminal's output, or the details of another tool. A part that is shown as
/// incomplete is aborted if it `is_all`, since the model may have received a result.
fn result(part: &Value, is_all: bool) -> Option<ToolResult<'_>> {
    let (terminal, details) = (&part["toolSpecificData"], &part["resultDetails"]);
    let code = terminal["terminalCommandState"]["exitCode"].int();
    let mut text = terminal["terminalCommandOutput"].text("text").to_owned();
    if text.is_empty() {
        text = details["output"].list().iter().map(output).collect::<Vec<_>>().join("\n");
    }
    let confirmed = &part["isConfirmed"];
    let refused = *confirmed == false
        || confirmed["type"].as_u64().is_some_and(|answer| REFUSED.contains(&answer));
    let outcome = match details["isError"].as_bool() {
        Some(failed) => Some(outcome_of_flag(!failed)),
        None => (refused || is_all && part["isComplete"] == false).then_some(Outcome::Aborted),
    };
    let is_told = outcome.is_some() || code.is_some() || !text.is_empty();
    is_told.then(|| ToolResult {
        id: part.text("toolCallId"),
        name: part.text("toolId"),
        text,
        outcome,
        exit_code: code,
    })
}

/// Part of a tool's output; what is not text is base64.
fn output(part: &Value) -> String {
    match part["isText"] == false {
        true => format!("[file {}]", part.text("mimeType")),
        false => texts(part),
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

/// Applies a change. The session as all changes leave it is read at the first of them.
pub(super) fn delta(json: &Value, talk: &mut Conversation<'_>) {
    if let Some(session) = talk.rebuilt() {
        rebuilt(session, talk);
    }
    let session = talk.rebuild();
    let (path, kind) = (json["k"].list(), json["kind"].as_u64().unwrap_or_default());
    match kind {
        INITIAL => *session = json["v"].clone(),
        SET => at(session, path).into_iter().for_each(|old| *old = json["v"].clone()),
        PUSH => push(session, json),
        DELETE => delete(session, path),
        _ => talk.unknown(&kind.to_string()),
    }
}

/// Reads the session. The last answer is left out until it is finished, since it will change.
fn rebuilt(mut session: Value, talk: &mut Conversation<'_>) {
    let mut requests = session["requests"].take();
    chat(&session, talk);
    if let Some(last) = requests.as_array_mut().and_then(|all| all.last_mut())
        && !is_finished(last)
        && last.is_object()
    {
        last["response"] = Value::Null;
    }
    for (asked, number) in requests.list().iter().zip(1..) {
        talk.line = number;
        request(asked, talk);
    }
}

fn is_finished(request: &Value) -> bool {
    let state = request["modelState"]["value"].as_u64();
    request.has("result")
        || request["isCanceled"] == true
        || state.is_some_and(|state| !UNFINISHED.contains(&state))
}

/// Value at a path. Missing objects are created, and elements at the ends of lists.
fn at<'v>(mut value: &'v mut Value, path: &[Value]) -> Option<&'v mut Value> {
    for step in path {
        if value.is_null() {
            *value = if step.is_u64() { json!([]) } else { json!({}) };
        }
        value = if let Value::Array(list) = value {
            let index = usize::try_from(step.as_u64()?).ok()?;
            if index == list.len() {
                list.push(Value::Null);
            }
            list.get_mut(index)?
        } else {
            value.as_object_mut()?.entry(step.as_str()?).or_insert(Value::Null)
        };
    }
    Some(value)
}

/// Appends elements to a list, which is first cut off at the index `i`, if there is one.
fn push(session: &mut Value, json: &Value) {
    let Some(list) = at(session, json["k"].list()) else { return };
    if list.is_null() {
        *list = json!([]);
    }
    let Value::Array(list) = list else { return };
    if let Some(end) = json["i"].as_u64().and_then(|end| usize::try_from(end).ok()) {
        list.truncate(end);
    }
    list.extend_from_slice(json["v"].list());
}

fn delete(session: &mut Value, path: &[Value]) {
    let Some((Value::String(key), parents)) = path.split_last() else { return };
    if let Some(Value::Object(fields)) = at(session, parents) {
        fields.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::testing::{entries, items, show, show_item, shown};

    #[test]
    fn only_a_command_line_that_the_user_runs_is_a_command() {
        let event = |kind: &str, rest: &str| {
            format!(r#"{{"type":"tool.{kind}","id":"e","data":{{"toolCallId":{rest}}}}}"#)
        };
        let lines = [
            event("user_requested", r#""u1","toolName":"view","arguments":{"path":"/a"}"#),
            event("execution_start", r#""u1","toolName":"view","arguments":{"path":"/a"}"#),
            event("execution_complete", r#""u1","isUserRequested":true,"result":{"content":"a"}"#),
            event("user_requested", r#""u2","toolName":"bash","arguments":{"command":"ls"}"#),
            event("execution_complete", r#""u2","isUserRequested":true,"result":{"content":"b"}"#),
        ];
        let items = items(Format::Copilot, lines.join("\n").as_bytes());
        let shown: Vec<String> = entries(&items).map(show).collect();
        let expected = [
            r#"assistant tool_call view#u1: {"path":"/a"}"#,
            "tool tool_result view#u1: a",
            "person command: !ls",
            "tool tool_result shell#: b",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn only_what_a_person_typed_is_a_persons() {
        let lines = [
            r#"{"type":"user.message","id":"e1","data":{"content":"go"}}"#,
            r#"{"type":"user.message","id":"e2","data":{"content":"on","isAutopilotContinuation":true}}"#,
            r#"{"type":"user.message","id":"e3","agentId":"a","data":{"content":"look"}}"#,
            r#"{"type":"assistant.message","id":"e4","agentId":"a","data":{"content":"I look."}}"#,
            r#"{"type":"human_response.recorded","id":"e5","data":{"response":{"answer":"jj"}}}"#,
        ];
        let expected = [
            "person prompt: go",
            "client injected: on (injected context)",
            "client prompt sidechain: look",
            "assistant text sidechain: I look.",
        ];
        let items = items(Format::Copilot, lines.join("\n").as_bytes());
        assert_eq!(entries(&items).map(show).collect::<Vec<_>>(), expected);
        assert_eq!(items.len(), expected.len() + 1, "no finding: {items:?}");
    }

    #[test]
    fn parts_of_an_answer_with_words_are_read_or_reported() {
        let file = r#"{"sessionId":"s","requests":[{"requestId":"r","message":{"text":"go"},"response":[{"value":"Done."},{"kind":"markdownVuln","content":{"value":"See it."}},{"kind":"progressMessage","content":{"value":"Looking"}},{"kind":"of_mars","title":"Really?"},{"kind":"of_venus","count":1}]}]}"#;
        let items = items(Format::Copilot, file.as_bytes());
        let found: Vec<String> = items.iter().skip(1).map(show_item).collect();
        let expected = [
            "1: person prompt: go", "1: assistant text: Done.", "1: assistant text: See it.",
            "! unknown-record 1",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_exported_chat_is_named_after_its_first_request_and_a_button_is_an_answer() {
        let file = r#"{"requesterUsername":"u","requests":[{"requestId":"r1","message":{"text":"go"},"response":[]},{"requestId":"r2","confirmation":"Continue","message":{"text":"@agent Continue: \"Continue to iterate?\""},"response":[]}]}"#;
        let items = items(Format::Copilot, file.as_bytes());
        let found: Vec<String> = items.iter().map(show_item).collect();
        let expected = [
            "= r1",
            "1: person prompt: go",
            "2: person answer: @agent Continue: \"Continue to iterate?\"",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_call_that_the_client_could_not_make_failed() {
        let told = |text: &str| {
            format!(
                r#"{{"sessionId":"s","requests":[{{"requestId":"r","message":{{"text":"go"}},"response":[],"result":{{"metadata":{{"toolCallRounds":[{{"response":"","toolCalls":[{{"id":"c","name":"read_file","arguments":"{{}}"}}]}}],"toolCallResults":{{"c":{{"content":[{{"value":"{text}"}}]}}}}}}}}}}]}}"#
            )
        };
        let error =
            r"ERROR while calling tool: no such file\nPlease check your input and try again.";
        let failed = error.replace(r"\n", "\n");
        assert_eq!(
            shown(Format::Copilot, &told(error))[2],
            format!("tool tool_result read_file#c failed: {failed}")
        );
        let printed = "ERROR in line 3 of the log";
        assert_eq!(
            shown(Format::Copilot, &told(printed))[2],
            format!("tool tool_result read_file#c: {printed}")
        );
    }

    #[test]
    fn outcomes_that_the_chat_shows_belong_to_the_calls_of_the_model() {
        let part = |id: &str, confirmed: u8, state: &str| {
            format!(
                r#"{{"kind":"toolInvocationSerialized","toolCallId":"{id}","isConfirmed":{{"type":{confirmed}}},"toolSpecificData":{{"terminalCommandState":{state}}}}}"#
            )
        };
        let parts = [part("c1", 4, r#"{"exitCode":2}"#), part("c2", 5, "{}")].join(",");
        let call =
            |id: &str| format!(r#"{{"id":"{id}","name":"run_in_terminal","arguments":"{{}}"}}"#);
        let file = format!(
            r#"{{"sessionId":"s","requests":[{{"requestId":"r","message":{{"text":"go"}},"isCanceled":true,"response":[{parts}],"result":{{"errorDetails":{{"message":"Canceled"}},"metadata":{{"toolCallRounds":[{{"response":"","toolCalls":[{},{}]}}],"toolCallResults":{{"c1":{{"value":"boom"}},"c2":{{"value":"skipped"}}}}}}}}}}]}}"#,
            call("c1"),
            call("c2")
        );
        let expected = [
            "person prompt: go",
            "assistant tool_call run_in_terminal#c1: {}",
            "tool tool_result run_in_terminal#c1 failed 2: boom",
            "assistant tool_call run_in_terminal#c2: {}",
            "tool tool_result run_in_terminal#c2 aborted: skipped",
            "client notice: [canceled]",
        ];
        assert_eq!(shown(Format::Copilot, &file), expected);
    }

    #[test]
    fn an_error_and_a_result_that_the_model_received_stay_what_they_are() {
        let file = r#"{"sessionId":"s","requests":[{"requestId":"r","message":{"text":"go"},"isCanceled":true,"response":[{"kind":"toolInvocationSerialized","toolCallId":"c","isConfirmed":{"type":4},"isComplete":false}],"result":{"errorDetails":{"message":"Quota exceeded"},"metadata":{"toolCallRounds":[{"response":"","toolCalls":[{"id":"c","name":"run","arguments":"{}"}]}],"toolCallResults":{"c":{"value":"tests pass"}}}}}]}"#;
        let expected = [
            "person prompt: go",
            "assistant tool_call run#c: {}",
            "tool tool_result run#c: tests pass",
            "client notice: Quota exceeded",
            "client notice: [canceled]",
        ];
        assert_eq!(shown(Format::Copilot, file), expected);
        let aborted = file.replace(r#""c":{"value":"tests pass"}"#, "");
        assert_eq!(shown(Format::Copilot, &aborted)[2], "tool tool_result run#c aborted: ");
    }
}
