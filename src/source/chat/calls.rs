//! Tool calls: which block is one, and what it asks for in one text.

use crate::source::json::Json;

/// Tools whose one argument worth reading is a command line.
const SHELLS: [&str; 17] = [
    "bash",
    "sh",
    "shell",
    "powershell",
    "terminal",
    "exec",
    "exec_command",
    "local_shell",
    "container.exec",
    "run_command",
    "run_commands",
    "run_shell_command",
    "run_terminal_cmd",
    "execute_command",
    "execute_bash",
    "run_in_terminal",
    "cmd",
];

/// What a content block is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Block {
    Call,
    Result,
    Words,
}

/// Tells calls and results from words.
pub(super) fn of_block(part: &Json<'_>) -> Block {
    match part.first_text(&["type"]).unwrap_or_default() {
        "tool_use" | "server_tool_use" | "mcp_tool_use" | "tool_call" | "toolCall"
        | "function_call" | "tool-call" => Block::Call,
        "tool_result" | "toolResult" | "tool-result" | "function_call_output" => Block::Result,
        kind if kind.ends_with("_tool_result") => Block::Result,
        _ => Block::Words,
    }
}

/// A call in one text: the command of a shell, else its arguments as JSON without spaces; arguments
/// that are not JSON stay as they are.
pub(super) fn text(name: &str, arguments: &Json<'_>) -> String {
    let inner = arguments.text().and_then(owned);
    let arguments = inner.as_ref().unwrap_or(arguments);
    let name = name.to_ascii_lowercase();
    if SHELLS.contains(&name.as_str())
        && let Some(command) = command(arguments)
    {
        return command;
    }
    match arguments {
        Json::Text(text) => text.to_string(),
        Json::Null => String::new(),
        Json::Bool(_) | Json::Number(_) | Json::List(_) | Json::Map(_) => arguments.compact(),
    }
}

fn command(arguments: &Json<'_>) -> Option<String> {
    let joined = |list: &Json<'_>, with: &str| {
        let words: Option<Vec<&str>> = list.list().iter().map(Json::text).collect();
        words.filter(|words| !words.is_empty()).map(|words| words.join(with))
    };
    let one = arguments.first_text(&["command", "cmd", "script"]).map(str::to_owned);
    let listed =
        || joined(arguments.get("command"), " ").or_else(|| joined(arguments.get("cmd"), " "));
    one.or_else(listed).or_else(|| joined(arguments.get("commands"), "\n"))
}

/// JSON that stands inside a string, if it is an object or a list.
pub(super) fn owned(text: &str) -> Option<Json<'static>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut store = String::new();
    Json::parse(text, &mut store).ok().map(|json| json.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: &str) {
        let mut store = String::new();
        assert_eq!(text(name, &Json::parse(arguments, &mut store).unwrap()), expected);
    }

    #[test]
    fn shells_show_their_command() {
        check("Bash", r#"{"command":"ls","description":"d"}"#, "ls");
        check("shell", r#"{"command":["bash","-lc","ls"]}"#, "bash -lc ls");
        check("run_commands", r#"{"commands":["a","b"]}"#, "a\nb");
        check("bash", r#""{\"command\":\"ls\"}""#, "ls");
    }

    #[test]
    fn others_show_their_arguments() {
        check(
            "str_replace_editor",
            r#"{"command": "view", "path": "a"}"#,
            r#"{"command":"view","path":"a"}"#,
        );
        check("f", r#""{ \"a\": 1 }""#, r#"{"a":1}"#);
        check("f", r#""{ broken""#, "{ broken");
        check("f", "null", "");
    }
}
