//! Events of OpenHands: actions and observations in a list or in the records of an evaluation, and
//! the events of its newer SDK, which have a `kind`.

use super::chat::{time_of, words_of};
use super::client::{Client, ignore, record};
use super::conversation::{Conversation, ToolResult};
use super::json::JsonExt;
use super::tools::{outcome_of_flag, outcome_of_status};
use crate::domain::{EntryKind, Format, Outcome, Speaker};
use serde_json::Value;

const SDK_EVENTS: &str =
    "kind=MessageEvent|ActionEvent|ObservationEvent|SystemPromptEvent|ACPToolCallEvent";

pub(super) const CLIENT: Client = Client {
    format: Format::Openhands,
    lines: &[
        &["instance_id", "instruction"],
        &["instance_id", "test_result"],
        &["history[]", "instance_id"],
        &["history[]", "git_patch"],
        &["history[]", "issue"],
        &["source", "action", "args"],
        &["source", "observation", "extras"],
        &[SDK_EVENTS, "source"],
    ],
    documents: &[
        &["source", "action", "!messages"],
        &["source", "observation", "!messages"],
        &[SDK_EVENTS, "source"],
        &["instance_id", "instruction"],
        &["instance_id", "test_result"],
        &["history[]", "instance_id"],
        &["history[]", "issue"],
    ],
    list: "history|events",
    kind,
    kinds: &[
        ("run", run),
        ("message", message),
        ("system|SystemPromptEvent", system),
        ("finish", finish),
        ("action", action),
        ("observation", observation),
        (IGNORED, ignore),
        ("MessageEvent", sdk_message),
        ("ActionEvent", sdk_action),
        ("ObservationEvent|AgentErrorEvent|UserRejectObservation", sdk_observation),
        ("Condensation|CondensationSummaryEvent", sdk_summary),
        ("ACPToolCallEvent", sdk_acp_call),
        ("ConversationErrorEvent|ServerErrorEvent", sdk_error),
        // The adapter's record of the folder that the events were in.
        ("Conversation", conversation),
        ("ConversationStateUpdateEvent|CondensationRequest|LLMCompletionLogEvent", ignore),
        ("PauseEvent|InterruptEvent|TokenEvent|HookExecutionEvent", ignore),
    ],
};

fn conversation(json: &Value, talk: &mut Conversation<'_>) {
    talk.name(json.text("id"));
    // A folder relative to the server's names no project.
    let cwd = json.text("cwd");
    if cwd.starts_with('/') || matches!(cwd.get(1..3), Some(":/" | ":\\")) {
        talk.cwd(cwd);
    }
}

const IGNORED: &str = "recall|change_agent_state|think|condensation|condensation_request|null|\
    agent_state_changed";

fn kind(json: &Value) -> &str {
    let is_run = ["instance_id", "instruction", "issue"].iter().any(|key| json.has(key));
    if is_run || json.get("history").is_some() {
        return "run";
    }
    let (action, observation) = (json.text("action"), json.text("observation"));
    match (observation, action) {
        ("", "") => json.text("kind"),
        ("", action @ ("message" | "system" | "finish")) => action,
        (ignored, _) | ("", ignored) if IGNORED.split('|').any(|it| it == ignored) => ignored,
        ("", _) => "action",
        _ => "observation",
    }
}

/// Reads a record of an evaluation or of the issue resolver; each is a session.
fn run(json: &Value, talk: &mut Conversation<'_>) {
    talk.next_session();
    talk.name(json.text("instance_id"));
    let issue = &json["issue"];
    if issue.is_object() {
        let (owner, repo) = (issue.text("owner"), issue.text("repo"));
        talk.name(&format!("{owner}/{repo}#{}", issue["number"]));
        talk.title(issue.text("title"));
    }
    let none = Value::Array(Vec::new());
    let history = Some(&json["history"]).filter(|it| it.is_array());
    record(&CLIENT, history.unwrap_or(&none), talk);
}

fn begin(json: &Value, talk: &mut Conversation<'_>) {
    let id = json["id"].as_u64().map(|id| id.to_string());
    talk.at(id.as_deref().unwrap_or(json.text("id")), time_of(json));
}

/// Fields of an event; in old files they are beside its kind.
fn fields<'j>(json: &'j Value, key: &str) -> &'j Value {
    if json[key].is_object() { &json[key] } else { json }
}

fn message(json: &Value, talk: &mut Conversation<'_>) {
    begin(json, talk);
    let args = fields(json, "args");
    let text = args.first_text(&["content"]).unwrap_or(json.text("message"));
    // Old files name no source; their first message is the user's.
    match json.text("source") {
        "agent" => talk.assistant(text),
        _ => talk.user(text),
    }
}

fn system(json: &Value, talk: &mut Conversation<'_>) {
    begin(json, talk);
    talk.injected(&words_of(fields(json, "args").first(&["content", "system_prompt"])));
}

fn finish(json: &Value, talk: &mut Conversation<'_>) {
    begin(json, talk);
    let args = fields(json, "args");
    let words = args.first_text(&["final_thought", "thought"]);
    let words = words.or(args["outputs"].first_text(&["content"]));
    talk.assistant(words.unwrap_or(json.text("message")));
}

/// Id of a call: the model's, or derived from the event's number.
fn call_id(json: &Value, event: &Value) -> String {
    let own = json["tool_call_metadata"].first_text(&["tool_call_id"]).map(str::to_owned);
    own.or(event.as_u64().map(|id| format!("event-{id}"))).unwrap_or_default()
}

fn action(json: &Value, talk: &mut Conversation<'_>) {
    begin(json, talk);
    let (args, known) = (fields(json, "args"), &json["tool_call_metadata"]);
    talk.assistant(args.text("thought"));
    let own = json.text("action");
    let name = known.first_text(&["function_name"]);
    let name = name.unwrap_or(if own == "run" { "execute_bash" } else { own });
    let id = call_id(json, &json["id"]);
    let choices = known["model_response"]["choices"].list();
    let calls = choices.iter().flat_map(|choice| choice["message"]["tool_calls"].list());
    let call = calls.clone().find(|call| call["id"].as_str() == Some(&id));
    let arguments = call.map(|call| &call["function"]["arguments"]).filter(|it| !it.is_null());
    let keys = ["command", "code", "url", "browser_actions"];
    // The command of an edit is a word such as `str_replace`.
    let keys = keys.iter().filter(|key| **key != "command" || own.starts_with("run"));
    let plain = keys.map(|key| &args[key]).find(|it| it.is_string());
    let other = ["thought", "action", "blocking", "hidden", "confirmation_state", "action_risk"];
    let mut rest = args.clone();
    if let Value::Object(rest) = &mut rest {
        other.iter().for_each(|key| drop(rest.remove(*key)));
    }
    let arguments = arguments.or(plain).unwrap_or(&rest);
    talk.call(&id, name, arguments);
}

fn observation(json: &Value, talk: &mut Conversation<'_>) {
    begin(json, talk);
    let (extras, own) = (fields(json, "extras"), json.text("observation"));
    let id = call_id(json, &json["cause"]);
    if own == "error" && id.is_empty() {
        return talk.notice(&words_of(&json["content"]));
    }
    talk.cwd(extras["metadata"].text("working_dir"));
    let code = extras["metadata"]["exit_code"].int().or(extras["exit_code"].int());
    let flag = json["success"].as_bool().map(outcome_of_flag);
    let outcome = match own {
        "error" => Some(Outcome::Failed),
        "user_rejected" => Some(Outcome::Aborted),
        _ if code == Some(-1) => Some(Outcome::Running),
        _ => flag,
    };
    talk.result(ToolResult {
        id: &id,
        name: json["tool_call_metadata"].text("function_name"),
        text: words_of(&json["content"]),
        outcome,
        exit_code: code.filter(|code| *code != -1),
    });
}

fn sdk_message(json: &Value, talk: &mut Conversation<'_>) {
    talk.at(json.text("id"), time_of(json));
    let text = words_of(&json["llm_message"]["content"]);
    match json.text("source") {
        "user" => talk.user(&text),
        "agent" => talk.assistant(&text),
        _ => talk.injected(&text),
    }
    talk.injected(&words_of(&json["extended_content"]));
}

fn sdk_action(json: &Value, talk: &mut Conversation<'_>) {
    talk.at(json.text("id"), time_of(json));
    talk.assistant(&words_of(&json["thought"]));
    match json["action"].text("kind") {
        "FinishAction" => talk.assistant(json["action"].text("message")),
        "ThinkAction" => {}
        _ => {
            let call = &json["tool_call"];
            let own = call.first(&["arguments", "function"]);
            let own = if own.has("arguments") { &own["arguments"] } else { own };
            let arguments = if own.is_null() { &json["action"] } else { own };
            talk.call(json.text("tool_call_id"), json.text("tool_name"), arguments);
        }
    }
}

/// Beginning of the reason for a rejection for which a person gave none.
const REJECTED: &str = "User rejected the action";

fn sdk_observation(json: &Value, talk: &mut Conversation<'_>) {
    talk.at(json.text("id"), time_of(json));
    let seen = &json["observation"];
    if matches!(seen.text("kind"), "FinishObservation" | "ThinkObservation") {
        return;
    }
    let keys = ["content", "output", "error"];
    let content = keys.iter().map(|key| words_of(&seen[key])).find(|text| !text.is_empty());
    let words = json.first_text(&["error", "rejection_reason"]).unwrap_or_default();
    let is_reason = json["kind"] == "UserRejectObservation" && json["rejection_source"] != "hook";
    let is_persons = is_reason && !words.starts_with(REJECTED);
    let code = seen["exit_code"].int().or(seen["metadata"]["exit_code"].int());
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
        text: content.unwrap_or_else(|| if is_persons { REJECTED } else { words }.to_owned()),
        outcome,
        exit_code: code.filter(|code| *code != -1),
    });
    if is_persons {
        talk.say(Speaker::Person, EntryKind::Rejection, words);
    }
}

/// Reads a call by an agent behind the Agent Client Protocol, with its result. Events of a call that
/// is not over are incomplete.
fn sdk_acp_call(json: &Value, talk: &mut Conversation<'_>) {
    let id = json.text("tool_call_id");
    let flag = (json["is_error"] == true).then_some(Outcome::Failed);
    let outcome = flag.or(outcome_of_status(json.text("status")));
    if matches!(outcome, None | Some(Outcome::Running)) || talk.has_call(id) {
        return;
    }
    talk.at(json.text("id"), time_of(json));
    let name = match json.text("tool_kind") {
        "execute" => "terminal",
        "fetch" => "web_fetch",
        "" | "other" => json.text("title"),
        kind => kind,
    };
    talk.call(id, name, json.first(&["raw_input", "title"]));
    let content = json["content"].list().iter().map(|part| words_of(&part["content"]));
    let content = content.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    let text = if content.is_empty() { words_of(&json["raw_output"]) } else { content };
    talk.result(ToolResult { id, name, text, outcome, exit_code: None });
}

fn sdk_error(json: &Value, talk: &mut Conversation<'_>) {
    talk.at(json.text("id"), time_of(json));
    talk.notice(&format!("{}: {}", json.text("code"), json.text("detail")));
}

fn sdk_summary(json: &Value, talk: &mut Conversation<'_>) {
    talk.at(json.text("id"), time_of(json));
    talk.summary(json.text("summary"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::raw::TranscriptItem;
    use crate::transcripts::testing::{entries, items, show, shown};

    #[test]
    fn a_call_that_only_starts_is_told_when_it_is_over() {
        let event = |status: &str, output: &str| {
            format!(
                r#"{{"kind":"ACPToolCallEvent","source":"agent","id":"{status}","tool_call_id":"t","title":"ls","tool_kind":"execute","status":{status},"raw_output":{output}}}"#
            )
        };
        let lines = [event("null", "null"), event(r#""completed""#, r#""a.rs""#)];
        let lines = lines.join("\n").replace(r#""id":""completed"""#, r#""id":"e2""#);
        let items = items(Format::Openhands, lines.as_bytes());
        let shown: Vec<String> = entries(&items).map(show).collect();
        let expected =
            ["assistant tool_call terminal#t: ls", "tool tool_result terminal#t succeeded: a.rs"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_folder_that_is_relative_to_the_server_is_no_project() {
        let lines = [
            r#"{"kind":"Conversation","id":"c1","cwd":"workspace/project"}"#,
            r#"{"kind":"ObservationEvent","source":"environment","tool_name":"terminal","tool_call_id":"c","observation":{"kind":"TerminalObservation","content":[{"type":"text","text":"a"}],"metadata":{"working_dir":"/w/project"}}}"#,
        ];
        let items = items(Format::Openhands, lines.join("\n").as_bytes());
        let Some(TranscriptItem::Session(session)) = items.first() else { panic!("no session") };
        assert_eq!(session.cwd.as_deref(), Some("/w/project"));
    }

    #[test]
    fn the_reason_for_a_rejection_is_the_persons_if_they_gave_one() {
        let event = |reason: &str, more: &str| {
            format!(
                r#"{{"kind":"UserRejectObservation","source":"environment","tool_name":"terminal","tool_call_id":"c","rejection_reason":"{reason}"{more}}}"#
            )
        };
        let result = |text: &str| format!("tool tool_result terminal#c aborted: {text}");
        let hook = r#","rejection_source":"hook""#;
        for (event, expected) in [
            (event("use jj", ""), vec![result(REJECTED), "person rejection: use jj".to_owned()]),
            (event("User rejected the actions", ""), vec![result("User rejected the actions")]),
            (event("no network", hook), vec![result("no network")]),
        ] {
            assert_eq!(shown(Format::Openhands, &event), expected);
        }
    }

    #[test]
    fn an_edit_is_shown_with_its_texts() {
        let event = r#"{"id":1,"source":"agent","action":"edit","args":{"path":"/a","command":"str_replace","old_str":"x","new_str":"y"}}"#;
        let expected = r#"assistant tool_call edit#event-1: {"path":"/a","command":"str_replace","old_str":"x","new_str":"y"}"#;
        assert_eq!(shown(Format::Openhands, event), [expected]);
    }
}
