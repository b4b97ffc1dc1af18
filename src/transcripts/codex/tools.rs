//! Renders tool calls of Codex, and reads tool outputs in all historic forms, and reviews.

use crate::domain::Outcome;
use crate::transcripts::fields::{Content, Int, Str};
use crate::transcripts::json::JsonExt;
use crate::transcripts::text::{clean, flatten, push_piece};
use crate::transcripts::tools::outcome_of_flag;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Contents of a JSON string; the JSON itself for other values.
pub(super) fn text_of(value: &RawValue) -> Cow<'_, str> {
    match serde_json::from_str::<Str<'_>>(value.get()) {
        Ok(Str(Some(text))) => text,
        Ok(Str(None)) | Err(_) => Cow::Borrowed(value.get()),
    }
}

/// Renders a call: a command as typed, a patch as sent, a plan as its steps; anything else as its
/// arguments, which may be broken JSON.
pub(super) fn render(name: &str, arguments: &str) -> String {
    let render: fn(&Value) -> Option<String> = match name {
        "exec_command" | "shell" | "local_shell" | "shell_command" | "container.exec" => {
            |json| json.is_object().then(|| command(json))
        }
        "update_plan" => |json| json.is_object().then(|| plan(json)),
        "write_stdin" => stdin,
        "apply_patch" => |json| json["input"].as_str().map(str::to_owned),
        _ => return arguments.to_owned(),
    };
    let json = serde_json::from_str(arguments).ok();
    let words = json.and_then(|json| render(&json)).filter(|words| !words.is_empty());
    words.unwrap_or_else(|| arguments.to_owned())
}

fn command(json: &Value) -> String {
    match json["cmd"].as_str() {
        Some(command) => command.to_owned(),
        None => words_of(&json["command"]),
    }
}

/// Command named by an event.
pub(super) fn command_of(command: &RawValue) -> String {
    serde_json::from_str(command.get()).map(|json| words_of(&json)).unwrap_or_default()
}

fn words_of(command: &Value) -> String {
    let words: Vec<&str> = command.list().iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [] => clean(command.as_str().unwrap_or_default().into()),
        [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => (*script).to_owned(),
        words => words.join(" "),
    }
}

fn plan(json: &Value) -> String {
    let mut words = json.text("explanation").to_owned();
    for step in json["plan"].list() {
        let text = |key| step.text(key);
        push_piece(&mut words, &format!("- {} ({})", text("step"), text("status")), "\n");
    }
    words
}

fn stdin(json: &Value) -> Option<String> {
    let session = json["session_id"].number().unwrap_or_default() as u64;
    Some(match json.first_text(&["chars"]) {
        None => format!("[waits for session {session}]"),
        Some(chars) => format!("[to session {session}] {chars}"),
    })
}

/// Renders a web search or a local shell item.
pub(super) fn action(action: Option<&RawValue>) -> String {
    let Some(action) = action else { return String::new() };
    let json = serde_json::from_str(action.get()).ok().filter(Value::is_object);
    let Some(json) = json else { return action.get().to_owned() };
    let mut words = String::new();
    for key in ["query", "url", "pattern"] {
        push_piece(&mut words, json.text(key), " ");
    }
    if words.is_empty() { command(&json) } else { words }
}

pub(super) fn review(json: &str) -> String {
    let review = serde_json::from_str(json).ok();
    let review = review.filter(|review: &Value| review.is_object() || review.is_null());
    let Some(review) = review else { return json.to_owned() };
    let mut words = review.text("overall_correctness").to_owned();
    push_piece(&mut words, review.text("overall_explanation"), "\n");
    for finding in review["findings"].list() {
        let text = |key| finding.text(key);
        let location = &finding["code_location"];
        let lines = &location["line_range"];
        let line = |key| lines[key].number().unwrap_or_default();
        let location = location.first_text(&["absolute_file_path"]);
        let location = location.map(|path| format!(" ({path}:{}-{})", line("start"), line("end")));
        let location = location.unwrap_or_default();
        push_piece(&mut words, &format!("{}{location}\n{}", text("title"), text("body")), "\n\n");
    }
    words
}

/// End of a call. An event that reports it is more reliable than the output text.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct CallEnd {
    pub(super) outcome: Option<Outcome>,
    pub(super) exit_code: Option<i32>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ToolOutput {
    pub(super) text: String,
    pub(super) outcome: Outcome,
    pub(super) exit_code: Option<i32>,
    pub(super) refused: bool,
}

/// Reads an output; `end` takes precedence over the text.
pub(super) fn read_output(content: Content<'_>, end: Option<CallEnd>) -> ToolOutput {
    let pieces = match content {
        Content::Blocks(blocks) => blocks.into_iter().map(|it| Content::Blocks(vec![it])).collect(),
        Content::None | Content::Text(_) => vec![content],
    };
    let (mut text, mut ends) = (String::new(), Vec::new());
    for piece in pieces {
        let mut end = CallEnd::default();
        push_piece(&mut text, &unwrap(flatten(piece), &mut end), "\n");
        ends.push(end);
    }
    // Of several commands of a script, one that failed counts.
    let told = ends.into_iter().filter(|end| end.outcome.is_some());
    let found = told.max_by_key(|end| end.outcome == Some(Outcome::Failed)).unwrap_or_default();
    let refused = text.contains("rejected by user") && text.len() < REFUSAL_BYTES_MAX;
    let end = end.unwrap_or_default();
    let exit_code = end.exit_code.or(found.exit_code);
    let outcome = end.outcome.or(found.outcome).unwrap_or_else(|| guess(&text, refused));
    let outcome = match (outcome, exit_code) {
        (Outcome::Succeeded, Some(code)) if code != 0 => Outcome::Failed,
        (outcome, _) => outcome,
    };
    ToolOutput { text, outcome, exit_code, refused }
}

/// Maximum size of a refusal; longer outputs only mention one.
const REFUSAL_BYTES_MAX: usize = 400;
/// Maximum number of lines of a header before the output itself.
const HEADER_LINES_MAX: usize = 8;
/// Maximum depth of wrappers: a script's header around a command's JSON.
const WRAPPERS_MAX: usize = 3;

fn unwrap(mut text: String, found: &mut CallEnd) -> String {
    for _ in 0..WRAPPERS_MAX {
        match json(&text, found).or_else(|| header(&text, found)) {
            Some(inner) => text = inner,
            None => break,
        }
    }
    text
}

/// Reads `{"output":…,"metadata":{"exit_code":…}}`, and the form in which scripts receive output. A script may print
/// some of its fields among others; they stay text.
fn json(text: &str, found: &mut CallEnd) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default, bound = "'de: 'a")]
    struct Wrapped<'a> {
        output: Str<'a>,
        metadata: Value,
        exit_code: Int,
        session_id: Int,
        chunk_id: Str<'a>,
    }
    if !text.starts_with('{') || !text.contains("\"output\"") {
        return None;
    }
    let wrapped: Wrapped<'_> = serde_json::from_str(text.trim_end()).ok()?;
    let known = wrapped.metadata.is_object() || wrapped.chunk_id.some().is_some();
    let output = wrapped.output.0?;
    match wrapped.metadata["exit_code"].as_i64().or(wrapped.exit_code.0) {
        Some(code) if known || found.exit_code.is_none() => ended(code, found),
        None if known && wrapped.session_id.0.is_some() => found.outcome = Some(Outcome::Running),
        Some(_) | None => {}
    }
    known.then(|| clean(output))
}

/// Reads lines such as `Process exited with code 1` up to `Output:`.
fn header(text: &str, found: &mut CallEnd) -> Option<String> {
    let first = text.lines().next()?;
    const STARTS: [&str; 6] =
        ["Chunk ID:", "Command:", "Exit code:", "Script ", "Wall time", "Process "];
    if !STARTS.iter().any(|start| first.starts_with(start)) {
        return None;
    }
    let mut end = CallEnd::default();
    let mut used = 0;
    for line in text.split_inclusive('\n').take(HEADER_LINES_MAX) {
        used += line.len();
        let line = line.trim();
        if line == "Output:" {
            found.outcome = end.outcome.or(found.outcome);
            found.exit_code = end.exit_code.or(found.exit_code);
            let rest = text.get(used..).unwrap_or_default();
            return Some(rest.strip_prefix('\n').unwrap_or(rest).to_owned());
        }
        header_line(line, &mut end);
    }
    None
}

fn header_line(line: &str, end: &mut CallEnd) {
    let code = line
        .strip_prefix("Process exited with code ")
        .or_else(|| line.strip_prefix("Exit code: "))
        .and_then(|code| code.trim().parse().ok());
    if let Some(code) = code {
        ended(code, end);
    } else if line.starts_with("Process running with") || line.starts_with("Script running") {
        end.outcome = Some(Outcome::Running);
    } else if line.starts_with("Script failed") || line.starts_with("Script error") {
        end.outcome = Some(Outcome::Failed);
    } else if line.starts_with("Script terminated") {
        end.outcome = Some(Outcome::Aborted);
    }
}

fn ended(code: i64, end: &mut CallEnd) {
    end.exit_code = i32::try_from(code).ok();
    end.outcome = Some(outcome_of_flag(code == 0));
}

fn guess(text: &str, refused: bool) -> Outcome {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    let aborted = ["aborted", "command timed out", "[Request interrupted"];
    let failed = [
        "exec_command failed",
        "write_stdin failed",
        "apply_patch verification failed",
        "failed to ",
        "execution error",
        "unsupported call",
        "error:",
        "Error:",
        "err:",
    ];
    // Behind the time that it took.
    let is_interrupted = text.starts_with("Wall time")
        && text.lines().nth(1).is_some_and(|line| line.starts_with("aborted by user"));
    match () {
        () if refused || is_interrupted || starts(&aborted) => Outcome::Aborted,
        () if starts(&failed) || text.contains("failed in sandbox") => Outcome::Failed,
        () => Outcome::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: &str) {
        assert_eq!(render(name, arguments), expected);
    }

    #[test]
    fn a_commands_words_are_the_command() {
        check("exec_command", r#"{"cmd":"ls -l","workdir":"/x"}"#, "ls -l");
        check("shell", r#"{"command":["bash","-lc","ls | wc"]}"#, "ls | wc");
        check("shell", r#"{"command":["git","status"]}"#, "git status");
    }

    #[test]
    fn broken_arguments_are_kept_as_text() {
        check("exec_command", r#"{"cmd":"ls"#, r#"{"cmd":"ls"#);
        check("mcp__x__y", "not json", "not json");
    }

    #[test]
    fn plans_are_their_steps() {
        let plan = r#"{"explanation":"so","plan":[{"step":"look","status":"completed"}]}"#;
        check("update_plan", plan, "so\n- look (completed)");
    }

    #[test]
    fn waiting_for_a_session_is_told_from_typing() {
        check("write_stdin", r#"{"session_id":7,"chars":""}"#, "[waits for session 7]");
        check("write_stdin", r#"{"session_id":7,"chars":"y\n"}"#, "[to session 7] y\n");
    }
}

#[cfg(test)]
mod review_tests {
    use super::*;

    #[test]
    fn findings_have_title_place_and_body() {
        let json = r#"{"findings":[{"title":"Leak","body":"It leaks.","confidence_score":0.9,
            "code_location":{"absolute_file_path":"/a.rs","line_range":{"start":1,"end":2}}}],
            "overall_correctness":"incorrect","overall_explanation":"One bug."}"#;
        let expected = "incorrect\nOne bug.\n\nLeak (/a.rs:1-2)\nIt leaks.";
        assert_eq!(review(json), expected);
        assert_eq!(review("null"), "");
    }
}

#[cfg(test)]
mod output_tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, expected: &str) {
        let got = read_output(serde_json::from_str(output).unwrap(), None);
        let code = got.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
        assert_eq!(format!("{}{code}: {}", got.outcome.name(), got.text), expected);
    }

    #[test]
    fn headers_hold_the_exit_code() {
        check(
            r#""Chunk ID: a\nWall time: 1.0 seconds\nProcess exited with code 1\nOriginal token count: 3\nOutput:\nno\n""#,
            "failed 1: no\n",
        );
        check(r#""Exit code: 0\nWall time: 0 seconds\nOutput:\nyes""#, "succeeded 0: yes");
        check(
            r#""Command: ls\nChunk ID: a\nProcess running with session ID 7\nOutput:\n""#,
            "running: ",
        );
    }

    #[test]
    fn old_outputs_are_json() {
        check(
            r#""{\"output\":\"no\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}""#,
            "failed 2: no",
        );
    }

    #[test]
    fn scripts_wrap_what_commands_say() {
        let list = r#"[{"type":"input_text","text":"Script completed\nWall time 0.3 seconds\nOutput:\n"},
            {"type":"input_text","text":"{\"chunk_id\":\"a\",\"exit_code\":1,\"output\":\"no\"}"}]"#;
        check(list, "failed 1: no");
        check(
            r#"[{"type":"input_text","text":"Script failed\nWall time 0.3 seconds\nOutput:\n"}]"#,
            "failed: ",
        );
    }

    #[test]
    fn a_script_fails_with_any_of_its_commands() {
        let head =
            r#"{"type":"input_text","text":"Script completed\nWall time 0.3 seconds\nOutput:\n"}"#;
        let part = |text: &str| format!(r#"{{"type":"input_text","text":{}}}"#, Value::from(text));
        let printed = |code: i32| format!(r#"{{"name":"a","exit_code":{code},"output":"no"}}"#);
        let chunk = r#"{"chunk_id":"a","exit_code":1,"output":"no"}"#;
        check(&format!("[{head},{}]", part(&printed(1))), &format!("failed 1: {}", printed(1)));
        check(&format!("[{head},{},{}]", part(chunk), part("more")), "failed 1: no\nmore");
        check(
            &format!("[{head},{},{}]", part(&printed(128)), part(&printed(0))),
            &format!("failed 128: {}\n{}", printed(128), printed(0)),
        );
        check(&format!("[{head},{}]", part(&printed(0))), &format!("succeeded 0: {}", printed(0)));
        // A script is completed whatever its commands do.
        check(&format!("[{head},{}]", part("failed to push")), "failed: failed to push");
        check(&format!("[{head},{}]", part("pushed")), "succeeded: pushed");
    }

    #[test]
    fn a_code_in_what_a_command_prints_is_not_its_own() {
        check(
            r#""Process exited with code 0\nOutput:\n{\"exit_code\":1,\"output\":\"no\"}""#,
            r#"succeeded 0: {"exit_code":1,"output":"no"}"#,
        );
    }

    #[test]
    fn plain_words_are_guessed() {
        check(r#""Plan updated""#, "succeeded: Plan updated");
        check(r#""aborted by user after 2.1s""#, "aborted: aborted by user after 2.1s");
        let stopped = "Wall time: 1.0 seconds\\naborted by user";
        check(&format!("\"{stopped}\""), "aborted: Wall time: 1.0 seconds\naborted by user");
        check(r#""Script terminated\nWall time 0.3 seconds\nOutput:\nno""#, "aborted: no");
        check(r#""exec_command failed for `x`""#, "failed: exec_command failed for `x`");
        check("{\"type\":\"input_text\",\"text\":\"a\"}", "succeeded: a");
        check("null", "succeeded: ");
    }

    #[test]
    fn a_broken_image_is_a_mark() {
        let image =
            r#"[{"type":"input_image","image_url":"data:image/png;base64,iVBOREDACTED=="}]"#;
        check(image, "succeeded: [image image/png, 9 bytes]");
    }

    #[test]
    fn an_event_of_its_own_is_trusted_more() {
        let end = CallEnd { outcome: Some(Outcome::Failed), exit_code: Some(3) };
        let got = read_output(Content::Text("Process running".into()), Some(end));
        assert_eq!((got.outcome, got.exit_code), (Outcome::Failed, Some(3)));
    }
}
