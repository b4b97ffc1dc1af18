//! Renders tool calls of Claude Code, reads tool results and outcomes, and finds a user's answer in
//! the place of a result.

use super::record::ToolUseResult;
use crate::domain::{EntryKind, Outcome, Speaker};
use crate::transcripts::fields::Block;
use crate::transcripts::json::JsonExt;
use crate::transcripts::marks::name_of;
use crate::transcripts::raw::RawEntry;
use crate::transcripts::text::{between, flatten, push_piece};
use crate::transcripts::tools::{is_web, outcome_of_status};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt::Write;

/// Renders a call: a command as typed, an edit as path and new text, a question with its options;
/// anything else as JSON.
pub(super) fn render(name: &str, input: &RawValue) -> String {
    let render: fn(&Value) -> Option<String> = match name {
        "Bash" | "bash" => command,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => edit,
        "AskUserQuestion" => questions,
        "ExitPlanMode" | "exit_plan_mode" => |json| json["plan"].as_str().map(str::to_owned),
        "Task" | "Agent" => |json| Some(join(json, &["subagent_type", "description", "prompt"])),
        "WebFetch" | "WebSearch" => |json| Some(join(json, &["url", "query", "prompt"])),
        _ => return input.get().to_owned(),
    };
    let json = serde_json::from_str(input.get()).ok();
    let words = json.and_then(|json| render(&json)).filter(|words| !words.is_empty());
    words.unwrap_or_else(|| input.get().to_owned())
}

pub(super) fn plan_of(input: &RawValue) -> Option<String> {
    let json: Value = serde_json::from_str(input.get()).ok()?;
    json["plan"].as_str().map(str::to_owned)
}

fn join(json: &Value, keys: &[&str]) -> String {
    let mut words = String::new();
    for key in keys {
        push_piece(&mut words, json.text(key), "\n");
    }
    words
}

fn command(json: &Value) -> Option<String> {
    let command = json["command"].as_str()?;
    Some(match json.first_text(&["description"]) {
        Some(description) => format!("{command}\n# {description}"),
        None => command.to_owned(),
    })
}

fn edit(json: &Value) -> Option<String> {
    let mut words =
        join(json, &["file_path", "notebook_path", "new_string", "new_source", "content"]);
    for change in json["edits"].list() {
        push_piece(&mut words, change.text("new_string"), "\n");
    }
    Some(words)
}

fn questions(json: &Value) -> Option<String> {
    let mut words = String::new();
    for question in json["questions"].list() {
        push_piece(&mut words, question.text("question"), "\n");
        for choice in question["options"].list() {
            let text = |key| choice.text(key);
            let gap = if text("description").is_empty() { "" } else { ": " };
            // Writing to a string cannot fail.
            let _ = write!(words, "\n- {}{gap}{}", text("label"), text("description"));
        }
    }
    Some(words)
}

#[derive(Debug, Default)]
pub(super) struct OpenCall {
    pub(super) name: String,
    pub(super) plan: Option<u64>,
}

/// Reads the result in `block`; `structured` is its structured form, `call` the call it answers.
pub(super) fn read_result(
    frame: &RawEntry,
    block: Block<'_>,
    structured: &ToolUseResult<'_>,
    call: Option<&OpenCall>,
) -> RawEntry {
    let flag = block.is_error.0;
    let failed = flag == Some(true);
    let text = flatten(block.content);
    let name = call.map(|call| call.name.as_str()).unwrap_or_default();
    if let Some(words) = refusal(&text) {
        let (speaker, kind, words) = match (given_answers(words), words) {
            (Some(answers), _) if !answers.is_empty() => {
                (Speaker::Person, EntryKind::Answer, answers)
            }
            (Some(_), _) | (None, "") => {
                (Speaker::Client, EntryKind::Rejection, "[tool use refused]".to_owned())
            }
            (None, words) => (Speaker::Person, EntryKind::Rejection, words.to_owned()),
        };
        let outcome = Some(Outcome::Aborted);
        return RawEntry { outcome, ..frame.entry(speaker, kind, words) };
    }
    let answer = match name {
        "ExitPlanMode" | "exit_plan_mode" if !failed => Some(approval(&text, structured, call)),
        "AskUserQuestion" | "" if !failed => chosen(&text, structured),
        _ => None,
    };
    if let Some(answer) = answer {
        let outcome = Some(Outcome::Succeeded);
        return RawEntry { outcome, ..frame.entry(Speaker::Person, EntryKind::Answer, answer) };
    }
    let exit = exit_code(&text).filter(|_| flag != Some(false));
    let outcome = outcome(&text, flag, structured, exit);
    let told = structured.fields().and_then(|fields| fields.return_code_interpretation.some());
    let shell = matches!(name, "Bash" | "bash") && outcome == Outcome::Succeeded && told.is_none();
    let text = match text.strip_prefix("<tool_use_error>") {
        Some(inner) => inner.trim_end().trim_end_matches("</tool_use_error>").to_owned(),
        None => text,
    };
    let speaker = if is_web(name) { Speaker::Web } else { Speaker::Tool };
    let mut entry = frame.entry(speaker, EntryKind::ToolResult, text);
    (entry.outcome, entry.exit_code) = (Some(outcome), exit.or(shell.then_some(0)));
    entry
}

/// Reads a user's refusal: the words given with it, which may be empty.
fn refusal(text: &str) -> Option<&str> {
    const REFUSALS: [&str; 6] = [
        "The user doesn't want to proceed with this tool use",
        "The user doesn't want to take this action right now",
        "The agent proposed a plan that was rejected by the user",
        "User rejected tool use",
        "User declined to answer questions",
        "Permission for this tool use was denied.",
    ];
    let bare = text.trim_start().trim_start_matches("Error: ");
    REFUSALS.iter().find(|refusal| bare.starts_with(**refusal))?;
    let words = bare.split_once("he user said:").map_or("", |(_, words)| words);
    // Newer clients append a remark for the model.
    Some(words.split("\n\nNote: The user's next message").next().unwrap_or(words).trim())
}

/// Answers in the client's message about questions that the user left, one per line; `None` for
/// other words.
fn given_answers(words: &str) -> Option<String> {
    const HEADS: [&str; 2] = [
        "The user wants to clarify these questions",
        "The user has indicated they have provided enough answers",
    ];
    HEADS.iter().find(|head| words.starts_with(**head))?;
    let mut all = String::new();
    for item in words.split("\n- \"").skip(1) {
        let (question, rest) = item.split_once("\"\n").unwrap_or((item, ""));
        let told = rest.lines().map(str::trim).filter(|line| *line != "(No answer provided)");
        let told = told.map(|line| {
            let heads = ["Answer: ", "User notes: "];
            heads.iter().find_map(|head| line.strip_prefix(head)).unwrap_or(line)
        });
        let told = told.collect::<Vec<_>>().join(" ");
        if !told.is_empty() {
            push_piece(&mut all, &format!("{question} → {told}"), "\n");
        }
    }
    Some(all)
}

/// Reads a user's answers to the agent's questions, one per line.
fn chosen(text: &str, structured: &ToolUseResult<'_>) -> Option<String> {
    let fields = structured.fields();
    let answers = fields.and_then(|fields| pairs(fields.answers?.get(), fields.annotations));
    answers.or_else(|| written_answers(text))
}

fn pairs(answers: &str, annotations: Option<&RawValue>) -> Option<String> {
    let answers: Value = serde_json::from_str(answers).ok()?;
    let notes = annotations.and_then(|notes| serde_json::from_str::<Value>(notes.get()).ok());
    let mut all = String::new();
    for (question, answer) in answers.map() {
        let mut line = format!("{question} → {}", plain(answer));
        let note = notes.as_ref().and_then(|notes| notes[question].first_text(&["notes"]));
        if let Some(note) = note {
            line.push_str(&format!(" ({note})"));
        }
        push_piece(&mut all, &line, "\n");
    }
    (!all.is_empty()).then_some(all)
}

fn plain(answer: &Value) -> String {
    match answer {
        Value::String(text) => text.clone(),
        Value::Array(many) => many.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => answer.to_string(),
    }
}

/// Reads the answers from the sentence given to the model.
fn written_answers(text: &str) -> Option<String> {
    const STARTS: [&str; 2] =
        ["Your questions have been answered:", "User has answered your questions:"];
    let rest = STARTS.iter().find_map(|start| text.trim_start().strip_prefix(start))?;
    let rest = rest.split(". You can now continue").next().unwrap_or(rest).trim();
    Some(rest.replace("\"=\"", "\" → \"").replace("\", \"", "\"\n\""))
}

/// Reads a user's approval of a plan; includes the plan if the user edited it.
fn approval(text: &str, structured: &ToolUseResult<'_>, call: Option<&OpenCall>) -> String {
    let approved = structured.fields().and_then(|fields| fields.plan.some());
    let differs = match (approved, call.and_then(|call| call.plan)) {
        (Some(approved), Some(proposed)) => name_of(approved.trim()) != proposed,
        _ => text.contains("(edited by user)"),
    };
    match approved.filter(|_| differs) {
        Some(plan) => format!("[plan approved, as edited]\n{plan}"),
        None => "[plan approved]".to_owned(),
    }
}

/// Exit code of a failed command, from the beginning of its result, or of one in the background.
fn exit_code(text: &str) -> Option<i32> {
    if text.starts_with("<retrieval_status>") {
        return between(text, "exit_code")?.trim().parse().ok();
    }
    let rest = text.strip_prefix("Error: ").unwrap_or(text).strip_prefix("Exit code ")?;
    rest.lines().next()?.trim().parse().ok()
}

/// Outcome of a call. The client's flag counts, whatever the tool printed.
fn outcome(
    text: &str,
    flag: Option<bool>,
    structured: &ToolUseResult<'_>,
    exit: Option<i32>,
) -> Outcome {
    let failed = flag == Some(true);
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    let fields = structured.fields();
    let interrupted = fields.is_some_and(|fields| fields.interrupted.on());
    let running = fields
        .is_some_and(|fields| fields.is_async.on() || fields.background_task_id.some().is_some());
    let timed_out = || (failed || exit.is_some()) && text.contains("Command timed out after");
    if text.starts_with("<retrieval_status>")
        && let Some(told) = between(text, "status").and_then(outcome_of_status)
    {
        return told;
    }
    let stopped = ["[Request interrupted", "Command timed out", "Interrupted by user"];
    if interrupted || starts(&stopped) || timed_out() {
        return Outcome::Aborted;
    }
    if running || starts(&["Command running in background", "Async agent launched"]) {
        return Outcome::Running;
    }
    let structured_error = structured.text().is_some_and(|text| text.starts_with("Error"));
    let failed = failed || exit.is_some_and(|code| code != 0);
    let printed = || starts(&["<tool_use_error>", "Error:", "MCP error"]);
    let is_told = flag.is_some() || exit.is_some();
    match failed || (!is_told && (structured_error || printed())) {
        true => Outcome::Failed,
        false => Outcome::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, input: &str, expected: &str) {
        let input = RawValue::from_string(input.to_owned()).unwrap();
        assert_eq!(render(name, &input), expected);
    }

    #[test]
    fn commands_are_shown_as_typed() {
        check("Bash", r#"{"command":"ls\n","description":"Look"}"#, "ls\n\n# Look");
    }

    #[test]
    fn edits_are_path_and_new_text() {
        check("Edit", r#"{"file_path":"a.rs","old_string":"x","new_string":"y"}"#, "a.rs\ny");
        let many = r#"{"file_path":"a.rs","edits":[{"new_string":"y"},{"new_string":"z"}]}"#;
        check("MultiEdit", many, "a.rs\ny\nz");
    }

    #[test]
    fn questions_show_their_options() {
        let input = r#"{"questions":[{"question":"Which?","options":[
            {"label":"A","description":"quick"},{"label":"B"}]}]}"#;
        check("AskUserQuestion", input, "Which?\n- A: quick\n- B");
    }

    #[test]
    fn what_has_no_form_of_its_own_is_json() {
        check("Grep", r#"{"pattern":"x"}"#, r#"{"pattern":"x"}"#);
        check("Bash", r#"{"command":1}"#, r#"{"command":1}"#);
    }
}

#[cfg(test)]
mod result_tests {
    use super::*;

    #[track_caller]
    fn check(tool: &str, block: &str, twin: &str, expected: &str) {
        let block = serde_json::from_str(block).unwrap();
        let twin = serde_json::from_str(twin).unwrap();
        let call = OpenCall { name: tool.to_owned(), plan: Some(name_of("step one")) };
        let frame = RawEntry::new(1, Speaker::Client, EntryKind::Notice, "");
        let got = read_result(&frame, block, &twin, Some(&call));
        let code = got.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
        let (speaker, kind, outcome) =
            (got.speaker.name(), got.kind.name(), got.outcome.unwrap().name());
        assert_eq!(format!("{speaker} {kind} {outcome}{code}: {}", got.text), expected);
    }

    #[test]
    fn commands_have_exit_codes() {
        let failed = r#"{"content":"Exit code 2\nno such file","is_error":true}"#;
        check(
            "Bash",
            failed,
            r#""Error: Exit code 2""#,
            "tool tool_result failed 2: Exit code 2\nno such file",
        );
        check(
            "Bash",
            r#"{"content":"fine"}"#,
            r#"{"stdout":"fine","interrupted":false}"#,
            "tool tool_result succeeded 0: fine",
        );
    }

    #[test]
    fn errors_are_read_from_flag_tag_and_twin() {
        let tagged = r#"{"content":"<tool_use_error>no file</tool_use_error>"}"#;
        check("Read", tagged, "null", "tool tool_result failed: no file");
        check("Read", r#"{"content":"x","is_error":true}"#, "1", "tool tool_result failed: x");
        check("Read", r#"{"content":"x"}"#, r#""Error: x""#, "tool tool_result failed: x");
        check(
            "Read",
            r#"{"content":[{"type":"text","text":"a"},"b"]}"#,
            "[1]",
            "tool tool_result succeeded: a\nb",
        );
    }

    #[test]
    fn the_clients_flag_counts_whatever_a_tool_prints() {
        let twin = r#"{"stdout":"x","interrupted":false}"#;
        for text in ["Error: no config, using defaults", "Exit code 3 was seen in the log"] {
            let block = format!(r#"{{"content":"{text}","is_error":false}}"#);
            check("Bash", &block, twin, &format!("tool tool_result succeeded 0: {text}"));
        }
        let block = r#"{"content":"Exit code 3 is wrong","is_error":true}"#;
        check("Read", block, "null", "tool tool_result failed: Exit code 3 is wrong");
    }

    #[test]
    fn an_exit_code_that_is_only_interpreted_is_unknown() {
        let twin = r#"{"stdout":"","returnCodeInterpretation":"No matches found"}"#;
        check("Bash", r#"{"content":"","is_error":false}"#, twin, "tool tool_result succeeded: ");
    }

    #[test]
    fn questions_that_are_left_keep_a_persons_answers() {
        let block = |first: &str| {
            format!(
                r#"{{"is_error":true,"content":"The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nThe user wants to clarify these questions.\n    This means they may have more.\n\n    Questions asked:\n- \"Which store?\"\n  {first}\n- \"Why?\"\n  (No answer provided)"}}"#
            )
        };
        let none = "client rejection aborted: [tool use refused]";
        check("AskUserQuestion", &block("(No answer provided)"), "null", none);
        let told = "person answer aborted: Which store? → SQLite for now";
        check("AskUserQuestion", &block("Answer: SQLite\\n  User notes: for now"), "null", told);
    }

    #[test]
    fn interrupted_and_background_work_is_told_apart() {
        check(
            "Bash", r#"{"content":"x"}"#, r#"{"interrupted":true}"#, "tool tool_result aborted: x",
        );
        check(
            "Bash",
            r#"{"content":"started"}"#,
            r#"{"backgroundTaskId":"b1"}"#,
            "tool tool_result running: started",
        );
    }

    #[test]
    fn a_refusal_holds_the_persons_words() {
        let block = r#"{"is_error":true,"content":"The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nuse tabs\n\nNote: The user's next message may differ."}"#;
        check("Edit", block, "null", "person rejection aborted: use tabs");
        let block = r#"{"is_error":true,"content":"The user doesn't want to proceed with this tool use. STOP"}"#;
        check("Edit", block, "null", "client rejection aborted: [tool use refused]");
    }

    #[test]
    fn answers_are_a_persons() {
        let block = r#"{"content":"Your questions have been answered: \"Which?\"=\"A\", \"Why?\"=\"fast\". You can now continue"}"#;
        let twin = r#"{"answers":{"Which?":"A","Why?":["fast","small"]},"annotations":{"Which?":{"notes":"for now"}}}"#;
        check(
            "AskUserQuestion",
            block,
            twin,
            "person answer succeeded: Which? → A (for now)\nWhy? → fast, small",
        );
        check(
            "AskUserQuestion",
            block,
            "null",
            "person answer succeeded: \"Which?\" → \"A\"\n\"Why?\" → \"fast\"",
        );
    }

    #[test]
    fn an_edited_plan_is_a_persons_and_an_approved_one_the_agents() {
        let block = r#"{"content":"User has approved your plan."}"#;
        check(
            "ExitPlanMode",
            block,
            r#"{"plan":"step one"}"#,
            "person answer succeeded: [plan approved]",
        );
        check(
            "ExitPlanMode",
            block,
            r#"{"plan":"step two"}"#,
            "person answer succeeded: [plan approved, as edited]\nstep two",
        );
    }

    #[test]
    fn what_the_web_says_is_the_webs() {
        check("WebFetch", r#"{"content":"x"}"#, "null", "web tool_result succeeded: x");
    }
}
