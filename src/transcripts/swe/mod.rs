//! Trajectories of SWE-agent (`.traj`) and mini-swe-agent: messages in which every user message
//! after the first is a tool result.

use super::chat::{time_of, words_of};
use super::client::{Client, ignore};
use super::conversation::{Conversation, ToolResult};
use super::json::JsonExt;
use super::text::between;
use crate::domain::Format;
use serde_json::Value;

pub(super) const CLIENT: Client = Client {
    format: Format::SweAgent,
    lines: &[],
    documents: &[
        &["trajectory", "history"],
        &["trajectory", "environment"],
        &["trajectory[]", "info"],
        &["trajectory_format"],
        &["history.0.role", "!instance_id"],
    ],
    list: "history|messages",
    kind: |json| json.first_text(&["role"]).unwrap_or("run"),
    kinds: &[
        ("run", run),
        ("system", system),
        ("user", user),
        ("assistant", assistant),
        ("tool", tool),
        ("exit", ignore),
    ],
};

const SHELL: &str = "bash";

/// Reads the steps of a trajectory that has no messages.
fn run(json: &Value, talk: &mut Conversation<'_>) {
    if CLIENT.list.split('|').any(|list| json.get(list).is_some()) {
        return;
    }
    for (number, step) in (1..).zip(json["trajectory"].list()) {
        talk.line = number;
        talk.at("", None);
        act(step, talk);
        observe("", step.text("observation"), talk);
    }
}

fn system(json: &Value, talk: &mut Conversation<'_>) {
    talk.at("", time_of(json));
    talk.injected(&words_of(&json["content"]));
}

fn user(json: &Value, talk: &mut Conversation<'_>) {
    talk.at("", time_of(json));
    let text = words_of(&json["content"]);
    if json["is_demo"] == true {
        talk.injected(&text);
    } else if talk.has_call("") {
        observe("", &text, talk);
    } else {
        talk.user(&text);
    }
}

fn assistant(json: &Value, talk: &mut Conversation<'_>) {
    talk.at("", time_of(json));
    if json["is_demo"] == true {
        talk.injected(&words_of(&json["content"]));
    } else if json["tool_calls"].list().is_empty() {
        act(json, talk);
    } else {
        talk.message(json);
    }
}

/// Reads the text and the command of a step, or of an answer with the command in a fence.
fn act(json: &Value, talk: &mut Conversation<'_>) {
    let said = words_of(&json["content"]);
    let fenced = said.split_once("```").and_then(|(before, rest)| {
        let (command, after) = rest.split_once('\n')?.1.split_once("\n```")?;
        Some((command, format!("{before}{after}")))
    });
    let (command, words) = fenced.unzip();
    let words = words.as_deref().unwrap_or(&said);
    talk.assistant(json.first_text(&["thought", "response"]).unwrap_or(words));
    if let Some(action) = json.first_text(&["action"]).or(command) {
        talk.call("", SHELL, &Value::from(action.trim_end()));
    }
}

fn tool(json: &Value, talk: &mut Conversation<'_>) {
    talk.at("", time_of(json));
    let id = json["tool_call_ids"].list().first().and_then(Value::as_str);
    let id = id.or(json.first_text(&["tool_call_id"])).unwrap_or_default();
    observe(id, &words_of(&json["content"]), talk);
}

fn observe(id: &str, text: &str, talk: &mut Conversation<'_>) {
    let folder =
        text.rsplit_once("(Current directory: ").and_then(|(_, rest)| rest.split_once(')'));
    talk.cwd(folder.map_or("", |(folder, _)| folder));
    let exit_code = between(text, "returncode").and_then(|code| code.trim().parse().ok());
    talk.result(ToolResult { id, text: text.to_owned(), exit_code, ..ToolResult::default() });
}
