//! Sessions of pi, OpenClaw and Factory's droid, which are similar: JSONL that forms a tree.

use super::chat::{time_of, words_of};
use super::client::{Client, ignore};
use super::conversation::{Conversation, ToolResult};
use super::json::JsonExt;
use super::tools::outcome_of_flag;
use crate::domain::{EntryKind, Format, Outcome, Speaker};
use serde_json::Value;

pub(super) const CLIENT: Client = Client {
    format: Format::Pi,
    lines: &[
        &["type=session", "version"],
        &["type=session", "id", "cwd"],
        &["type=session_start", "id"],
        &["parentId", "message.role"],
        &["type=model_change|thinking_level_change|compaction|custom_message", "parentId"],
    ],
    documents: &[],
    list: "",
    kind: |json| json.text("type"),
    kinds: &[
        ("session|session_start", session),
        ("session_info", info),
        ("message", message),
        ("custom_message", injected),
        ("compaction|branch_summary", summary),
        ("model_change|thinking_level_change|custom|label|todo_state|session_end", link),
        ("leaf|cwd_change", ignore),
    ],
};

fn session(json: &Value, talk: &mut Conversation<'_>) {
    talk.header(json.text("id"));
    talk.cwd(json.text("cwd"));
    talk.title(json.first_text(&["sessionTitle", "title"]).unwrap_or_default());
    // A path whose file is named after the time and the id.
    let parent = json.first_text(&["parentSession"]).map(|path| {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        name.rsplit('_').next().unwrap_or(name).trim_end_matches(".jsonl").to_owned()
    });
    let head = talk.head();
    head.started_at = head.started_at.or(time_of(json));
    head.parent = head.parent.take().or(parent);
}

fn link(json: &Value, talk: &mut Conversation<'_>) {
    if json.get("parentId").is_some_and(Value::is_null) {
        talk.restart();
    }
    talk.link(json.text("id"), json.text("parentId"));
    talk.at(json.text("id"), time_of(json));
}

fn info(json: &Value, talk: &mut Conversation<'_>) {
    // An extension names the sessions of its sub-agents, which fork the parent's.
    talk.is_sidechain |= is_subagent(json.text("name"));
    link(json, talk);
    talk.title(json.text("name"));
}

/// True for `subagent-ROLE-RUN-NUMBER`, with eight hex digits as the run: a person may name a session
/// `subagent-refactor`. The header tells nothing: not every sub-agent's has a parent.
fn is_subagent(name: &str) -> bool {
    let mut parts = name.rsplit('-');
    let number = parts.next().is_some_and(|it| it.parse::<u32>().is_ok());
    let run = parts.next().filter(|it| it.len() == 8 && u32::from_str_radix(it, 16).is_ok());
    number && run.is_some() && name.starts_with("subagent-")
}

fn injected(json: &Value, talk: &mut Conversation<'_>) {
    link(json, talk);
    talk.injected(&words_of(&json["content"]));
}

fn summary(json: &Value, talk: &mut Conversation<'_>) {
    link(json, talk);
    talk.summary(json.text("summary"));
}

fn message(json: &Value, talk: &mut Conversation<'_>) {
    link(json, talk);
    let message = &json["message"];
    match message.text("role") {
        "toolResult" => talk.result(ToolResult {
            id: message.text("toolCallId"),
            name: message.text("toolName"),
            text: words_of(&message["content"]),
            outcome: message["isError"].as_bool().map(|failed| outcome_of_flag(!failed)),
            exit_code: None,
        }),
        "bashExecution" => shell(message, talk),
        "custom" | "hookMessage" => talk.injected(&words_of(&message["content"])),
        "branchSummary" | "compactionSummary" => talk.summary(message.text("summary")),
        "user" if message["visibility"] == "user_only" => {
            talk.notice(&words_of(&message["content"]));
        }
        "user" if attached(&words_of(&message["content"])).is_some() => user(message, talk),
        _ => {
            talk.message(message);
            talk.time(time_of(json));
            talk.notice(message.text("errorMessage"));
        }
    }
}

/// Beginnings and ends of what is in front of a prompt: a file that was named on the command line, a skill.
const ATTACHED: [(&str, &str); 2] = [("<file name=", "</file>"), ("<skill name=", "</skill>")];

/// Splits an attachment from the rest of a text.
fn attached(text: &str) -> Option<(&str, &str)> {
    let (_, end) = ATTACHED.iter().find(|(start, _)| text.starts_with(start))?;
    Some(text.split_at(text.find(end)? + end.len()))
}

fn user(message: &Value, talk: &mut Conversation<'_>) {
    let text = words_of(&message["content"]);
    let mut prompt = text.as_str();
    while let Some((attachment, rest)) = attached(prompt) {
        talk.injected(attachment);
        prompt = rest.trim_start_matches('\n');
    }
    talk.user(prompt);
}

/// Reads a command line that the user ran.
fn shell(message: &Value, talk: &mut Conversation<'_>) {
    talk.say(Speaker::Person, EntryKind::Command, message.text("command"));
    talk.result(ToolResult {
        id: "",
        name: "bash",
        text: message.text("output").to_owned(),
        outcome: (message["cancelled"] == true).then_some(Outcome::Aborted),
        exit_code: message["exitCode"].int(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::testing::shown;

    #[test]
    fn a_skill_in_front_of_a_prompt_is_the_clients() {
        let line = r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":[{"type":"text","text":"<skill name=\"review\" location=\"/s\">\nReject it.\n</skill>\n\nonly a.rs"}]}}"#;
        let skill = "client injected: <skill name=\"review\" location=\"/s\">\nReject it.\n</skill> (injected context)";
        assert_eq!(shown(Format::Pi, line), [skill, "person prompt: only a.rs"]);
    }

    #[test]
    fn a_sub_agents_task_is_not_a_persons_nor_is_what_only_the_user_sees() {
        let said = |id: &str, parent: &str, message: &str| {
            format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{message}}}"#)
        };
        let lines = [
            said("a", "null", r#"{"role":"user","content":"plan it"}"#),
            said("b", r#""a""#, r#"{"role":"user","content":"Limit.","visibility":"user_only"}"#),
            r#"{"type":"session_info","id":"c","parentId":"b","name":"subagent-worker-90afef25-1"}"#.into(),
            said("d", r#""c""#, r#"{"role":"user","content":"Task: test it"}"#),
        ];
        let told = [
            "person prompt: plan it",
            "client notice: Limit.",
            "client prompt sidechain: Task: test it",
        ];
        assert_eq!(shown(Format::Pi, &lines.join("\n")), told);
        assert!(!is_subagent("subagent-refactor") && !is_subagent("subagent-step-2"));
    }
}
