//! Trajectories of SWE-agent (`.traj`) and mini-swe-agent: messages in which every user message
//! after the first is a tool result.

use super::chat::{time_of, words_of};
use super::client::{AT_END, Client, ignore, read_as, records};
use super::conversation::{Conversation, ToolResult};
use super::json::JsonExt;
use super::responses;
use super::text::between;
use crate::domain::{EntryKind, Format, Outcome, Speaker, Timestamp};
use serde_json::Value;

pub(super) const CLIENT: Client = Client {
    format: Format::SweAgent,
    lines: &[],
    documents: &[
        &["trajectory", "history"],
        &["trajectory", "environment"],
        &["trajectory[]", "info"],
        &["trajectory.0.action", "trajectory.0.observation"],
        &["trajectory_format"],
        &["info.mini_version"],
        &["attempts.0.trajectory"],
        &["history.0.role", "!instance_id"],
    ],
    list: "history|messages",
    kind: |json| json.first_text(&["role", "object", "type"]).unwrap_or("run"),
    kinds: &[
        ("run", run),
        ("system", system),
        ("user", user),
        ("assistant", assistant),
        ("tool|function_call_output", tool),
        ("response", responses::exchange),
        ("exit", ignore),
        (AT_END, submission),
    ],
};

const SHELL: &str = "bash";
/// Beginnings of the messages by which mini-swe-agent passes on a person's words.
const PERSONS: [(&str, EntryKind); 5] = [
    (
        "Commands not executed. The user rejected your commands with the following message:",
        EntryKind::Rejection,
    ),
    (
        "Command not executed. The user rejected your command with the following message:",
        EntryKind::Rejection,
    ),
    ("Interrupted by user:", EntryKind::Prompt),
    ("The user added a new task:", EntryKind::Prompt),
    ("User command:", EntryKind::Command),
];
/// Words in place of the person's, if the person interrupted the agent without any.
const NO_WORDS: &str = "Temporary interruption caught.";
/// Words by which SWE-agent says that an action failed or was stopped.
const FAILURES: [(&str, Outcome); 3] = [
    ("Your proposed edit has introduced new syntax error", Outcome::Failed),
    ("EXECUTION TIMED OUT", Outcome::Aborted),
    ("' was cancelled because it took more than ", Outcome::Aborted),
];
/// Error of an action that was rejected or interrupted.
const NOT_EXECUTED: &str = "action was not executed";

/// Reads the header, and the steps of a trajectory that has no messages.
fn run(json: &Value, talk: &mut Conversation<'_>) {
    talk.cwd(json["info"]["config"]["environment"].text("cwd"));
    if let Some(list) = CLIENT.list.split('|').find_map(|list| json.get(list)) {
        records(&CLIENT, list, talk);
        return submission(json, talk);
    }
    // Each try of a run with retries has its own messages.
    for message in json["attempts"].list().iter().flat_map(|it| it["history"].list()) {
        talk.line += 1;
        read_as(CLIENT.kinds, (CLIENT.kind)(message), message, talk);
    }
    for (number, step) in (1..).zip(json["trajectory"].list()) {
        talk.line = number;
        talk.at("", None);
        act(step, talk);
        observe("", step.text("observation"), step, talk);
    }
}

/// Adds the result of the last action, which is beside the messages: the submission.
fn submission(json: &Value, talk: &mut Conversation<'_>) {
    let text = json["info"].text("submission");
    if talk.awaits("") && !text.is_empty() {
        observe("", text, &Value::Null, talk);
    }
}

fn time(json: &Value) -> Option<Timestamp> {
    time_of(json).or(time_of(&json["extra"]))
}

fn system(json: &Value, talk: &mut Conversation<'_>) {
    talk.at("", time(json));
    talk.injected(&words_of(&json["content"]));
}

fn user(json: &Value, talk: &mut Conversation<'_>) {
    talk.at("", time(json));
    let text = words_of(&json["content"]);
    let extra = &json["extra"];
    if json["is_demo"] == true {
        talk.injected(&text);
    } else if let Some((words, kind)) = persons_words(&text) {
        talk.say(Speaker::Person, kind, words);
    } else if extra.has("interrupt_type") {
        talk.injected(&text);
    } else if talk.has_call("") || extra.has("returncode") {
        observe("", &text, json, talk);
    } else {
        talk.user(&text);
    }
}

fn persons_words(text: &str) -> Option<(&str, EntryKind)> {
    let (head, kind) = PERSONS.iter().find(|(head, _)| text.starts_with(head))?;
    let words = text.strip_prefix(head)?.trim();
    let command = words.strip_prefix("```bash\n").and_then(|it| it.strip_suffix("\n```"));
    (words != NO_WORDS).then_some((command.unwrap_or(words), *kind))
}

fn assistant(json: &Value, talk: &mut Conversation<'_>) {
    talk.at("", time(json));
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
    talk.at("", time(json));
    let id = json["tool_call_ids"].list().first().and_then(Value::as_str);
    let id = id.or(json.first_text(&["tool_call_id", "call_id"])).unwrap_or_default();
    observe(id, &words_of(json.first(&["content", "output"])), json, talk);
}

fn observe(id: &str, text: &str, json: &Value, talk: &mut Conversation<'_>) {
    let folder =
        text.rsplit_once("(Current directory: ").and_then(|(_, rest)| rest.split_once(')'));
    talk.cwd(folder.map_or("", |(folder, _)| folder));
    let extra = &json["extra"];
    let aborted = (extra["exception_info"] == NOT_EXECUTED).then_some(Outcome::Aborted);
    let first = text.trim_start().lines().next().unwrap_or_default();
    let exit_code = between(text, "returncode").and_then(|code| code.trim().parse().ok());
    let failure = FAILURES.iter().find(|(words, _)| exit_code.is_none() && first.contains(words));
    talk.result(ToolResult {
        id,
        name: if extra.has("returncode") { SHELL } else { "" },
        text: aborted.map_or(text, |_| NOT_EXECUTED).to_owned(),
        outcome: aborted.or(failure.map(|(_, outcome)| *outcome)),
        exit_code: exit_code.filter(|_| aborted.is_none()),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::raw::TranscriptItem;
    use crate::transcripts::{client, testing};

    /// Compares the entries of mini-swe-agent's `messages` with `expected`.
    #[track_caller]
    fn check(messages: &str, expected: &[&str]) {
        let file = format!(
            r#"{{"info":{{"config":{{"environment":{{"cwd":"/home/me/dock"}}}}}},"messages":[{messages}]}}"#
        );
        let items =
            testing::read(|input, sink| client::read(&CLIENT, input, sink), file.as_bytes());
        let Some(TranscriptItem::Session(session)) = items.first() else { panic!("no session") };
        assert_eq!(session.cwd.as_deref(), Some("/home/me/dock"));
        let shown: Vec<_> = items.iter().skip(1).map(testing::show_item).collect();
        assert_eq!(shown, expected);
    }

    const CALL: &str = r#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function",
        "function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}],"extra":{"timestamp":1771000001.5}}"#;

    #[test]
    fn messages_of_the_responses_api_are_read() {
        check(
            r#"{"role":"user","content":"fix it"},
            {"object":"response","id":"r","created_at":1771000001.5,"output":[
                {"type":"reasoning","id":"rs","summary":[]},
                {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
                {"type":"function_call","call_id":"c1","name":"bash","arguments":"{\"command\":\"ls\"}"}]},
            {"type":"function_call_output","call_id":"c1","output":"{\"returncode\": 2, \"output\": \"FAIL\"}",
                "extra":{"returncode":2,"timestamp":1771000002.5}}"#,
            &[
                "1: person prompt: fix it",
                "2: assistant text: I look.",
                "2: assistant tool_call bash#c1: ls",
                r#"3: tool tool_result bash#c1 failed 2: {"returncode": 2, "output": "FAIL"}"#,
            ],
        );
    }

    #[test]
    fn each_try_of_a_run_is_read() {
        let file = r#"{"environment":"e","attempts":[{"trajectory":[],"history":[{"role":"user","content":"fix it"},{"role":"assistant","content":"No."}]},{"trajectory":[],"history":[{"role":"user","content":"fix it again"}]}]}"#;
        let expected =
            ["person prompt: fix it", "assistant text: No.", "person prompt: fix it again"];
        assert_eq!(testing::shown(Format::SweAgent, file), expected);
    }

    #[test]
    fn times_are_beside_the_message() {
        let items = testing::items(
            Format::SweAgent,
            format!(r#"{{"trajectory_format":"mini-swe-agent-1.1","messages":[{CALL}]}}"#)
                .as_bytes(),
        );
        assert!(
            testing::entries(&items).all(|entry| entry.at == Some(Timestamp(1_771_000_001_500)))
        );
    }

    #[test]
    fn a_rejection_is_the_persons_and_its_command_was_not_run() {
        check(
            &format!(
                r#"{CALL},{{"role":"tool","tool_call_id":"c1","content":"{{\"returncode\": -1}}",
                    "extra":{{"returncode":-1,"exception_info":"action was not executed"}}}},
                {{"role":"user","extra":{{"interrupt_type":"UserRejection"}},
                    "content":"Commands not executed. The user rejected your commands with the following message: keep x"}}"#
            ),
            &[
                "1: assistant text: I look.",
                "1: assistant tool_call bash#c1: ls",
                "2: tool tool_result bash#c1 aborted: action was not executed",
                "3: person rejection: keep x",
            ],
        );
    }

    #[test]
    fn interruptions_and_commands_are_the_persons_and_errors_of_format_are_not() {
        check(
            r#"{"role":"assistant","content":"I look.\n```mswea_bash_command\nls\n```"},
            {"role":"user","content":"<returncode>0</returncode>","extra":{"returncode":0}},
            {"role":"user","content":"Format error: no action","extra":{"interrupt_type":"FormatError"}},
            {"role":"user","content":"Interrupted by user: wait","extra":{"interrupt_type":"UserInterruption"}},
            {"role":"user","content":"Interrupted by user: Temporary interruption caught.","extra":{"interrupt_type":"UserInterruption"}},
            {"role":"user","content":"The user added a new task: sail","extra":{"interrupt_type":"UserNewTask"}},
            {"role":"user","content":"User command: \n```bash\ngit status\n```","extra":{"actions":[{"command":"git status"}]}},
            {"role":"user","content":"{\"returncode\": 1}","extra":{"returncode":1}}"#,
            &[
                "1: assistant text: I look.",
                "1: assistant tool_call bash#: ls",
                "2: tool tool_result bash# succeeded 0: <returncode>0</returncode>",
                "3: client injected: Format error: no action (injected context)",
                "4: person prompt: wait",
                "5: client injected: Interrupted by user: Temporary interruption caught. (injected context)",
                "6: person prompt: sail",
                "7: person command: git status",
                r#"8: tool tool_result bash# failed 1: {"returncode": 1}"#,
            ],
        );
    }

    #[test]
    fn the_submission_is_the_result_of_the_last_action() {
        for gap in ["", "\n"] {
            let file = format!(
                r#"{{"trajectory":[],{gap}"history":[{{"role":"user","content":"fix it"}},
                {{"role":"assistant","content":"I edit.\n```\nedit\n```"}},
                {{"role":"user","content":"Your proposed edit has introduced new syntax error(s).\nE999"}},
                {{"role":"assistant","content":"I wait.\n```\nsleep 9\n```"}},
                {{"role":"user","content":"The command 'sleep 9' was cancelled because it took more than 5 seconds."}},
                {{"role":"assistant","content":"Done.\n```\nsubmit\n```"}}],
                "info":{{"exit_status":"submitted","submission":"diff --git a b"}}}}"#
            );
            let shown = testing::shown(Format::SweAgent, &file);
            let results: Vec<_> = shown.iter().filter(|it| it.starts_with("tool ")).collect();
            let expected = [
                "tool tool_result bash# failed: Your proposed edit has introduced new syntax error(s).\nE999",
                "tool tool_result bash# aborted: The command 'sleep 9' was cancelled because it took more than 5 seconds.",
                "tool tool_result bash#: diff --git a b",
            ];
            assert_eq!(results, expected.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_trajectory_on_one_line_is_read_like_any_other() {
        for gap in ["", "\n"] {
            let file = format!(
                r#"{{"trajectory":[],{gap}"history":[{{"role":"system","content":"rules"}},{{"role":"user","content":"fix it"}}]}}"#
            );
            let shown = testing::shown(Format::SweAgent, &format!("{file}\n"));
            assert_eq!(
                shown,
                ["client injected: rules (injected context)", "person prompt: fix it"]
            );
        }
    }
}
