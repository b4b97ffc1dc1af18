//! What a tool answered and how its call ended, in the forms that Codex has had over time.

use crate::domain::Outcome;
use crate::source::fields::{Content, Int, Obj, Str};
use crate::source::outcome;
use crate::source::text::flatten;
use serde::Deserialize;

/// How a call ended, from an event of its own; more reliable than the text.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct End {
    pub(super) outcome: Option<Outcome>,
    pub(super) exit_code: Option<i32>,
}

/// A tool's answer, read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Output {
    pub(super) text: String,
    pub(super) outcome: Outcome,
    pub(super) exit_code: Option<i32>,
    /// Whether a person refused the call.
    pub(super) refused: bool,
}

/// Reads `content`, and trusts `end` where it is given.
pub(super) fn read(content: Content<'_>, end: Option<End>) -> Output {
    let text = flatten(content);
    let mut found = End::default();
    let text = unwrap(text, &mut found);
    let refused = text.contains("rejected by user") && text.len() < REFUSAL_BYTES_MAX;
    let end = end.unwrap_or_default();
    let exit_code = end.exit_code.or(found.exit_code);
    let outcome = end.outcome.or(found.outcome).unwrap_or_else(|| guess(&text, refused));
    let outcome = match (outcome, exit_code) {
        (Outcome::Succeeded, Some(code)) if code != 0 => Outcome::Failed,
        (outcome, _) => outcome,
    };
    Output { text, outcome, exit_code, refused }
}

/// A refusal is short; longer outputs only mention one.
const REFUSAL_BYTES_MAX: usize = 400;
/// Lines of a header before the output itself.
const HEADER_LINES_MAX: usize = 8;
/// Wrappers inside one another: a script's header around a command's JSON.
const WRAPPERS_MAX: usize = 3;

/// Takes header and JSON off an output.
fn unwrap(mut text: String, found: &mut End) -> String {
    for _ in 0..WRAPPERS_MAX {
        match json(&text, found).or_else(|| header(&text, found)) {
            Some(inner) => text = inner,
            None => break,
        }
    }
    text
}

/// `{"output":…,"metadata":{"exit_code":…}}`, and what scripts get of a command.
fn json(text: &str, found: &mut End) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata {
        exit_code: Int,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        output: Str<'a>,
        metadata: Obj<Metadata>,
        exit_code: Int,
        session_id: Int,
        #[serde(borrow)]
        chunk_id: Str<'a>,
    }
    if !text.starts_with('{') || !text.contains("\"output\"") {
        return None;
    }
    let wrapped: Wrapped<'_> = serde_json::from_str(text.trim_end()).ok()?;
    let known = wrapped.metadata.0.is_some() || wrapped.chunk_id.some().is_some();
    let output = wrapped.output.0.filter(|_| known)?;
    let code = wrapped.metadata.0.and_then(|metadata| metadata.exit_code.0);
    match code.or(wrapped.exit_code.0) {
        Some(code) => ended(code, found),
        None if wrapped.session_id.0.is_some() => found.outcome = Some(Outcome::Running),
        None => {}
    }
    Some(crate::source::text::clean(output))
}

/// Lines such as `Process exited with code 1` up to `Output:`.
fn header(text: &str, found: &mut End) -> Option<String> {
    let first = text.lines().next()?;
    const STARTS: [&str; 6] =
        ["Chunk ID:", "Command:", "Exit code:", "Script ", "Wall time", "Process "];
    if !STARTS.iter().any(|start| first.starts_with(start)) {
        return None;
    }
    let mut end = End::default();
    let mut used = 0;
    for line in text.split_inclusive('\n').take(HEADER_LINES_MAX) {
        used += line.len();
        let line = line.trim();
        if line == "Output:" {
            *found = End {
                outcome: end.outcome.or(found.outcome),
                exit_code: end.exit_code.or(found.exit_code),
            };
            let rest = text.get(used..).unwrap_or_default();
            return Some(rest.strip_prefix('\n').unwrap_or(rest).to_owned());
        }
        header_line(line, &mut end);
    }
    None
}

fn header_line(line: &str, end: &mut End) {
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
    } else if line.starts_with("Script completed") {
        end.outcome = Some(Outcome::Succeeded);
    }
}

fn ended(code: i64, end: &mut End) {
    end.exit_code = i32::try_from(code).ok();
    end.outcome = Some(outcome::of_flag(code == 0));
}

/// How a call ended that says so only in words.
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
    match () {
        () if refused || starts(&aborted) => Outcome::Aborted,
        () if starts(&failed) || text.contains("failed in sandbox") => Outcome::Failed,
        () => Outcome::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, expected: &str) {
        let got = read(serde_json::from_str(output).unwrap(), None);
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
    fn plain_words_are_guessed() {
        check(r#""Plan updated""#, "succeeded: Plan updated");
        check(r#""aborted by user after 2.1s""#, "aborted: aborted by user after 2.1s");
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
        let end = End { outcome: Some(Outcome::Failed), exit_code: Some(3) };
        let got = read(Content::Text("Process running".into()), Some(end));
        assert_eq!((got.outcome, got.exit_code), (Outcome::Failed, Some(3)));
    }
}
