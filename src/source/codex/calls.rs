//! Tool calls of Codex as words: a command as it was typed, a patch as it was sent, a plan as its
//! steps; anything else as its arguments.

use crate::source::fields::{Content, Str};
use crate::source::text::{flatten, push_piece};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The text of a value that may be a string; other values are their JSON.
pub(super) fn text_of(value: &RawValue) -> Cow<'_, str> {
    match serde_json::from_str::<Str<'_>>(value.get()) {
        Ok(Str(Some(text))) => text,
        Ok(Str(None)) | Err(_) => Cow::Borrowed(value.get()),
    }
}

/// The words of a call of `name` with `arguments`, which are JSON unless they are broken.
pub(super) fn render(name: &str, arguments: &str) -> String {
    let words = match name {
        "exec_command" | "shell" | "local_shell" | "shell_command" | "container.exec" => {
            command(arguments)
        }
        "update_plan" => plan(arguments),
        "write_stdin" => stdin(arguments),
        "apply_patch" => patch(arguments),
        _ => None,
    };
    words.filter(|words| !words.is_empty()).unwrap_or_else(|| arguments.to_owned())
}

fn command(arguments: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Arguments<'a> {
        #[serde(borrow)]
        cmd: Str<'a>,
        #[serde(borrow)]
        command: Content<'a>,
    }
    let arguments: Arguments<'_> = serde_json::from_str(arguments).ok()?;
    match (arguments.cmd.0, arguments.command) {
        (Some(cmd), _) => Some(cmd.into_owned()),
        (None, Content::Blocks(words)) => {
            let words: Vec<_> = words.iter().map(|word| word.text.get()).collect();
            Some(match words.as_slice() {
                [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => {
                    (*script).to_owned()
                }
                words => words.join(" "),
            })
        }
        (None, content) => Some(flatten(content)),
    }
}

fn plan(arguments: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Step {
        step: String,
        status: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Arguments {
        explanation: Option<String>,
        plan: Vec<Step>,
    }
    let arguments: Arguments = serde_json::from_str(arguments).ok()?;
    let mut words = arguments.explanation.unwrap_or_default();
    for step in &arguments.plan {
        push_piece(&mut words, &format!("- {} ({})", step.step, step.status), "\n");
    }
    Some(words)
}

fn stdin(arguments: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Arguments<'a> {
        session_id: u64,
        #[serde(borrow)]
        chars: Str<'a>,
    }
    let arguments: Arguments<'_> = serde_json::from_str(arguments).ok()?;
    let chars = arguments.chars.get();
    Some(match chars.is_empty() {
        true => format!("[waits for session {}]", arguments.session_id),
        false => format!("[to session {}] {chars}", arguments.session_id),
    })
}

fn patch(arguments: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Arguments {
        input: String,
    }
    serde_json::from_str::<Arguments>(arguments).ok().map(|arguments| arguments.input)
}

/// What a search of the web or a local shell item asks for.
pub(super) fn action(action: Option<&RawValue>) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Action<'a> {
        #[serde(borrow)]
        query: Str<'a>,
        #[serde(borrow)]
        url: Str<'a>,
        #[serde(borrow)]
        pattern: Str<'a>,
    }
    let Some(action) = action else { return String::new() };
    let Ok(fields) = serde_json::from_str::<Action<'_>>(action.get()) else {
        return action.get().to_owned();
    };
    let mut words = String::new();
    for piece in [fields.query.get(), fields.url.get(), fields.pattern.get()] {
        push_piece(&mut words, piece, " ");
    }
    match words.is_empty() {
        true => command(action.get()).filter(|words| !words.is_empty()).unwrap_or_default(),
        false => words,
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
