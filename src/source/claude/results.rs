//! What a tool answered and how its call ended; and what a person answered in a tool's place.

use super::record::Twin;
use crate::domain::{EntryKind, Outcome, Speaker};
use crate::source::fields::Block;
use crate::source::marks::name_of;
use crate::source::text::{flatten, push_piece};
use crate::source::tools::is_web;
use serde_json::Value;

/// A call that waits for its result.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    /// The name of the plan it proposed.
    pub(super) plan: Option<u64>,
}

/// A result, read.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) speaker: Speaker,
    pub(super) kind: EntryKind,
    pub(super) text: String,
    pub(super) outcome: Outcome,
    pub(super) exit_code: Option<i32>,
}

/// What a refusal without words says.
const REFUSED: &str = "[tool use refused]";

/// Reads the result in `block`, with its structured twin, of the call it answers.
pub(super) fn read(block: Block<'_>, twin: &Twin<'_>, call: Option<&Call>) -> Answer {
    let failed = block.is_error.on();
    let text = flatten(block.content);
    let name = call.map(|call| call.name.as_str()).unwrap_or_default();
    let person = refusal(&text).or_else(|| match name {
        "AskUserQuestion" if !failed => chosen(&text, twin),
        "ExitPlanMode" | "exit_plan_mode" if !failed => Some(approval(&text, twin, call)),
        "" if !failed => chosen(&text, twin),
        _ => None,
    });
    person.unwrap_or_else(|| tool(text, failed, twin, name))
}

/// A person's refusal, with their words if they gave any.
fn refusal(text: &str) -> Option<Answer> {
    const REFUSALS: [&str; 5] = [
        "The user doesn't want to proceed with this tool use",
        "The user doesn't want to take this action right now",
        "The agent proposed a plan that was rejected by the user",
        "User rejected tool use",
        "User declined to answer questions",
    ];
    let bare = text.trim_start().trim_start_matches("Error: ");
    REFUSALS.iter().find(|refusal| bare.starts_with(**refusal))?;
    let words = bare.split_once("the user said:").map(|(_, words)| words.trim());
    let words = words.map(|words| {
        // Newer clients add a remark for the model below the person's words.
        words.split("\n\nNote: The user's next message").next().unwrap_or(words).trim()
    });
    let (speaker, text) = match words.filter(|words| !words.is_empty()) {
        Some(words) => (Speaker::Person, words),
        None => (Speaker::Client, REFUSED),
    };
    Some(Answer {
        speaker,
        kind: EntryKind::Rejection,
        text: text.to_owned(),
        outcome: Outcome::Aborted,
        exit_code: None,
    })
}

fn answered(text: String) -> Answer {
    Answer {
        speaker: Speaker::Person,
        kind: EntryKind::Answer,
        text,
        outcome: Outcome::Succeeded,
        exit_code: None,
    }
}

/// A person's answers to the agent's questions, one a line.
fn chosen(text: &str, twin: &Twin<'_>) -> Option<Answer> {
    let structured =
        twin.fields().and_then(|fields| pairs(fields.answers?.get(), fields.annotations));
    structured.or_else(|| written(text)).map(answered)
}

fn pairs(answers: &str, annotations: Option<&serde_json::value::RawValue>) -> Option<String> {
    let answers: serde_json::Map<String, Value> = serde_json::from_str(answers).ok()?;
    let notes = annotations.and_then(|notes| serde_json::from_str::<Value>(notes.get()).ok());
    let mut all = String::new();
    for (question, answer) in &answers {
        let mut line = format!("{question} → {}", plain(answer));
        let note = notes.as_ref().and_then(|notes| notes.get(question)?.get("notes")?.as_str());
        if let Some(note) = note.filter(|note| !note.is_empty()) {
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

/// The same from the sentence that the model is given.
fn written(text: &str) -> Option<String> {
    const STARTS: [&str; 2] =
        ["Your questions have been answered:", "User has answered your questions:"];
    let rest = STARTS.iter().find_map(|start| text.trim_start().strip_prefix(start))?;
    let rest = rest.split(". You can now continue").next().unwrap_or(rest).trim();
    Some(rest.replace("\"=\"", "\" → \"").replace("\", \"", "\"\n\""))
}

/// A person's approval of a plan; with the plan if they edited it.
fn approval(text: &str, twin: &Twin<'_>, call: Option<&Call>) -> Answer {
    let approved = twin.fields().and_then(|fields| fields.plan.some());
    let proposed = call.and_then(|call| call.plan);
    let differs = match (approved, proposed) {
        (Some(approved), Some(proposed)) => name_of(approved.trim()) != proposed,
        (Some(_) | None, _) => text.contains("(edited by user)"),
    };
    let edited = approved.filter(|_| differs);
    answered(match edited {
        Some(plan) => format!("[plan approved, as edited]\n{plan}"),
        None => "[plan approved]".to_owned(),
    })
}

/// What a tool itself answered.
fn tool(text: String, failed: bool, twin: &Twin<'_>, name: &str) -> Answer {
    let speaker = if is_web(name) { Speaker::Web } else { Speaker::Tool };
    let exit = exit_code(&text);
    let outcome = outcome(&text, failed, twin, exit);
    let shell = matches!(name, "Bash" | "bash") && outcome == Outcome::Succeeded;
    let exit_code = exit.or(shell.then_some(0));
    let text = match text.strip_prefix("<tool_use_error>") {
        Some(inner) => inner.trim_end().trim_end_matches("</tool_use_error>").to_owned(),
        None => text,
    };
    Answer { speaker, kind: EntryKind::ToolResult, text, outcome, exit_code }
}

/// The code of a command that failed: its result begins with it.
fn exit_code(text: &str) -> Option<i32> {
    let rest = text.strip_prefix("Error: ").unwrap_or(text).strip_prefix("Exit code ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit() && c != '-').next()?;
    digits.parse().ok()
}

fn outcome(text: &str, failed: bool, twin: &Twin<'_>, exit: Option<i32>) -> Outcome {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    let fields = twin.fields();
    let interrupted = fields.is_some_and(|fields| fields.interrupted.on());
    let running =
        fields.is_some_and(|fields| fields.is_async.on() || fields.background.some().is_some());
    let timed_out = || (failed || exit.is_some()) && text.contains("Command timed out after");
    let stopped = ["[Request interrupted", "Command timed out", "Interrupted by user"];
    if interrupted || starts(&stopped) || timed_out() {
        return Outcome::Aborted;
    }
    if running || starts(&["Command running in background", "Async agent launched"]) {
        return Outcome::Running;
    }
    let twin_failed = twin.text().is_some_and(|text| text.starts_with("Error"));
    let said = starts(&["<tool_use_error>", "Error:", "MCP error"]);
    match exit {
        Some(0) if !failed => Outcome::Succeeded,
        Some(_) => Outcome::Failed,
        None if failed || twin_failed || said => Outcome::Failed,
        None => Outcome::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tool: &str, block: &str, twin: &str, expected: &str) {
        let block = serde_json::from_str(block).unwrap();
        let twin = serde_json::from_str(twin).unwrap();
        let call = Call { name: tool.to_owned(), plan: Some(name_of("step one")) };
        let got = read(block, &twin, Some(&call));
        let code = got.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
        let (speaker, kind, outcome) = (got.speaker.name(), got.kind.name(), got.outcome.name());
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
    fn interrupted_and_background_work_is_told_apart() {
        check(
            "Bash",
            r#"{"content":"x"}"#,
            r#"{"interrupted":true}"#,
            "tool tool_result aborted: x",
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
