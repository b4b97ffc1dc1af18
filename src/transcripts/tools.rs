//! Tool calls and results: open calls, tools with web content, outcomes in printed output.

use super::marks::{NameMap, name_of};
use crate::domain::Outcome;
use serde::Deserialize;

/// Parts of the names of tools that return content written by strangers.
const WEB: [&str; 9] = [
    "web_search", "websearch", "web_fetch", "webfetch", "fetch_url", "browser", "google_search",
    "tether", "tavily",
];
/// MCP servers that read only this machine.
const LOCAL: [&str; 6] = ["ide", "filesystem", "git", "serena", "memory", "sequential"];

/// True if a tool's results are content of the web or of another service.
pub(super) fn is_web(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if let Some(server) = name.strip_prefix("mcp__") {
        let local = LOCAL.iter().any(|local| server.starts_with(local));
        return !local || server.starts_with("github") || server.starts_with("gitlab");
    }
    let own = name == "web" || name.starts_with("web.") || name.starts_with("web_");
    own || WEB.iter().any(|part| name.contains(part))
}

const SHELLS: [&str; 17] = [
    "bash", "sh", "shell", "powershell", "terminal", "exec", "exec_command", "local_shell",
    "container.exec", "run_command", "run_commands", "run_shell_command", "run_terminal_cmd",
    "execute_command", "execute_bash", "run_in_terminal", "cmd",
];

/// True if a tool's calls are command lines.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name.to_ascii_lowercase().as_str())
}

/// Maximum number of calls that wait for their result; at one more, all of them are forgotten.
const CALLS_MAX: usize = 4096;

/// Tool calls whose results have not been read yet, by id.
#[derive(Debug, Default)]
pub(super) struct OpenCalls<V>(NameMap<V>);

impl<V> OpenCalls<V> {
    pub(super) fn open(&mut self, call_id: &str, call: V) {
        if CALLS_MAX <= self.0.len() {
            self.0.clear();
        }
        self.0.insert(name_of(call_id), call);
    }

    pub(super) fn get(&self, call_id: &str) -> Option<&V> {
        self.0.get(&name_of(call_id))
    }

    pub(super) fn close(&mut self, call_id: &str) -> Option<V> {
        self.0.remove(&name_of(call_id))
    }
}

/// Number of leading output lines that may hold the exit code.
const HEAD_LINES_MAX: usize = 8;
/// Number of last lines that clients may add to an output.
const FOOTER_LINES_MAX: usize = 6;
/// Maximum size of an output that is read as JSON: structured results are short.
const JSON_BYTES_MAX: usize = 256 * 1024;

/// Outcome fields of a structured result.
#[derive(Default, Deserialize)]
struct Flags {
    success: Option<bool>,
    exit_code: Option<i32>,
    returncode: Option<i32>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    exit_code: Option<i32>,
}

/// Outcome and exit code, taken from what the client added to `output`, not from the tool's text.
pub(super) fn outcome_of_output(output: &str) -> (Option<Outcome>, Option<i32>) {
    if let Some(code) = printed_code(output) {
        return (Some(outcome_of_code(code)), Some(code));
    }
    if output.lines().take(HEAD_LINES_MAX).any(|l| l.starts_with("Process running with session ID"))
    {
        return (Some(Outcome::Running), None);
    }
    let flags = flags(output);
    let inner = flags.metadata.and_then(|metadata| metadata.exit_code);
    let code = flags.exit_code.or(flags.returncode).or(inner);
    let flag = flags.success.map(outcome_of_flag);
    (code.map(outcome_of_code).or(flag), code)
}

/// Outcome and exit code of a shell's output, which may state them at its end.
pub(super) fn outcome_of_shell(output: &str) -> (Option<Outcome>, Option<i32>) {
    let (outcome, code) = outcome_of_output(output);
    let code = code.or_else(|| trailing_code(output));
    (outcome_of_stop(output).or(outcome).or(code.map(outcome_of_code)), code)
}

pub(super) fn outcome_of_code(code: i32) -> Outcome {
    outcome_of_flag(code == 0)
}

pub(super) fn outcome_of_flag(success: bool) -> Outcome {
    if success { Outcome::Succeeded } else { Outcome::Failed }
}

/// Outcome for a client's status string.
pub(super) fn outcome_of_status(status: &str) -> Option<Outcome> {
    Some(match status {
        "success" | "succeeded" | "completed" | "ok" | "done" => Outcome::Succeeded,
        "error" | "failed" | "failure" | "timeout" => Outcome::Failed,
        "cancelled" | "canceled" | "aborted" | "rejected" | "denied" | "declined" => {
            Outcome::Aborted
        }
        "running" | "pending" | "executing" | "scheduled" | "in_progress" | "validating"
        | "awaiting_approval" => Outcome::Running,
        _ => return None,
    })
}

const EXITED: &str = "Command exited with code ";
/// Beginnings of the lines that clients write after a command's exit code.
const FOOTERS: [&str; 5] =
    ["Signal:", "Background PIDs:", "Process Group PGID:", "</untrusted_context>", "\\n"];

/// Exit code at the end of a command's output, where some clients write it, or in its first line.
pub(super) fn trailing_code(output: &str) -> Option<i32> {
    let number = |at: usize| {
        let rest = output.get(at..)?;
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '-').unwrap_or(rest.len());
        let footer = rest.get(end..)?.trim_start_matches('.').trim_start();
        let is_last = footer.is_empty() || FOOTERS.iter().any(|it| footer.starts_with(it));
        rest.get(..end)?.parse::<i32>().ok().filter(|_| is_last)
    };
    // `<exited with exit code 1>` or `[Command finished with exit code 1]`
    let last = output.trim_end().rsplit('\n').next();
    let tag = last.and_then(|line| line.strip_prefix(['<', '['])?.strip_suffix(['>', ']']));
    let tagged = tag.and_then(|tag| tag.rsplit_once(" exit code ")?.1.parse().ok());
    // `Command exited with code 1.` or `[Command exited with code 1]`
    let first = output.strip_prefix('[').unwrap_or(output).strip_prefix(EXITED);
    let first =
        first.and_then(|it| it.split_once(['.', ']']).filter(|(_, rest)| rest.starts_with('\n')));
    let first = first.and_then(|(code, _)| code.parse().ok());
    tagged.or(first).or_else(|| {
        ["Exit Code: ", EXITED].iter().find_map(|head| number(output.rfind(head)? + head.len()))
    })
}

/// Beginnings of the line by which clients say that a command did not run to its end.
const STOPPED: [&str; 8] = [
    "Command terminated by signal",
    "Command was cancelled",
    "Command was automatically cancelled",
    "Command timed out after",
    "Command aborted",
    "User aborted the command",
    "shell tool terminated command",
    "bash tool terminated command",
];
const IN_BACKGROUND: [&str; 6] = [
    "Command moved to background", "Background command started", "Background shell started.",
    "Command is still running in ", "<command started in ", "<command with shellId: ",
];
/// Line behind a command's exit code that names the signal which ended it, and the exit code of one that did not start.
const SIGNAL: &str = "Signal: ";
const NO_CODE: &str = "Exit Code: (none)";

/// Beginnings of the errors of calls that were not allowed to run.
const DENIED: [&str; 14] = [
    "Permission to use ",
    "Permission for this action was denied",
    "Permission denied because no interactive user response",
    "Permission denied and could not request permission from user",
    "This command requires approval",
    "Claude requested permissions to ",
    "PreToolUse:",
    "Tool execution blocked:",
    "Tool approval requires an interactive session",
    "User denied the tool execution",
    "User rejected the tool call",
    "Operation aborted",
    "[Operation Cancelled]",
    "The user rejected this tool call",
];
/// Beginnings of results by which clients say that a hook or the user prevented a call, as if it had succeeded.
const PREVENTED: [&str; 6] = [
    "Command blocked by PreToolUse hook:",
    "Tool call blocked by PreToolUse hook:",
    "Plan rejected. No feedback provided.",
    "User cancelled the plan approval dialog.",
    "User dismissed ask_user dialog without answering.",
    "User cancelled entering Plan Mode.",
];

/// True if a result with this outcome is that of a call which never ran.
pub(super) fn never_ran(result: &str, outcome: Option<Outcome>) -> bool {
    let mut frames = ["{\"error\":\"", "<tool_use_error>", "Error: "].iter();
    let bare = frames.find_map(|head| result.strip_prefix(head)).unwrap_or(result);
    let begins = |heads: &[&str]| heads.iter().any(|head| bare.starts_with(head));
    let is_error = outcome == Some(Outcome::Failed);
    begins(&PREVENTED)
        || is_error
            && (begins(&DENIED)
                || bare.contains(" was blocked. For security, Claude Code may only"))
}

/// Outcome of a command that did not run to its end, from its output's first and last line.
pub(super) fn outcome_of_stop(output: &str) -> Option<Outcome> {
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let last = lines.rfind(|line| !line.starts_with("</")).unwrap_or(first);
    let begins =
        |heads: &[&str]| heads.iter().any(|it| first.starts_with(it) || last.starts_with(it));
    let mut footer = output.trim_end().rsplit('\n').take(FOOTER_LINES_MAX);
    let is_killed = footer.clone().any(|line| {
        line.strip_prefix(SIGNAL)
            .is_some_and(|it| it.trim_end().parse::<u32>().is_ok_and(|it| it > 0))
    });
    if begins(&STOPPED) || is_killed {
        return Some(Outcome::Aborted);
    }
    let is_promoted =
        first.starts_with("Foreground command ") && first.contains(" promoted to background");
    if begins(&IN_BACKGROUND) || is_promoted {
        return Some(Outcome::Running);
    }
    footer.any(|line| line == NO_CODE).then_some(Outcome::Failed)
}

fn printed_code(output: &str) -> Option<i32> {
    let code = |line: &str, prefix: &str| {
        line.strip_prefix(prefix)?.trim_start_matches(':').trim().parse::<i32>().ok()
    };
    let first = output.lines().next().and_then(|line| code(line, "Exit code"));
    let mut head = output.lines().take(HEAD_LINES_MAX);
    first.or_else(|| head.find_map(|line| code(line, "Process exited with code")))
}

fn flags(output: &str) -> Flags {
    let output = output.trim();
    let maybe = output.starts_with('{') && output.ends_with('}') && output.len() <= JSON_BYTES_MAX;
    if maybe { serde_json::from_str(output).unwrap_or_default() } else { Flags::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_is_known_by_name() {
        assert!(is_web("browser.search") && is_web("WebFetch") && is_web("web.run"));
        assert!(!is_web("Bash") && !is_web("webpack_build"));
    }

    #[test]
    fn other_services_are_not_this_machine() {
        assert!(is_web("mcp__linear__get") && is_web("mcp__github__get"));
        assert!(is_web("mcp__tavily__find") && !is_web("mcp__ide__getDiagnostics"));
    }
}

#[cfg(test)]
mod outcome_tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, outcome: Option<Outcome>, code: Option<i32>) {
        assert_eq!(outcome_of_output(output), (outcome, code));
    }

    #[test]
    fn clients_print_exit_codes_at_the_head() {
        check("Exit code 2\nno such file", Some(Outcome::Failed), Some(2));
        check("Chunk ID: 1\nProcess exited with code 0\nok", Some(Outcome::Succeeded), Some(0));
        check("Process running with session ID 7\n", Some(Outcome::Running), None);
    }

    #[test]
    fn structured_results_have_flags() {
        check(r#"{"output":"x","metadata":{"exit_code":1}}"#, Some(Outcome::Failed), Some(1));
        check(r#"{"query":"q","success":true}"#, Some(Outcome::Succeeded), None);
        check(r#"{"success":"maybe"}"#, None, None);
    }

    #[test]
    fn some_clients_print_exit_codes_at_the_end() {
        let gemini = "Output: FAIL\nExit Code: 1\nProcess Group PGID: 7\n</untrusted_context>";
        assert_eq!(trailing_code(gemini), Some(1));
        assert_eq!(trailing_code("no such file\n\nCommand exited with code 2"), Some(2));
        assert_eq!(trailing_code("Exit Code: 1 is what the manual says"), None);
        assert_eq!(trailing_code("FAIL\n<exited with exit code 1>"), Some(1));
        assert_eq!(trailing_code("FAIL\n[Command finished with exit code 1]"), Some(1));
        assert_eq!(trailing_code("FAIL\n<shellId: 0 completed with exit code 2>\n"), Some(2));
        assert_eq!(trailing_code("Process completed with exit code 1"), None);
        assert_eq!(trailing_code("Command exited with code 2.\nFAIL"), Some(2));
        assert_eq!(trailing_code("[Command exited with code 1]\nFAIL"), Some(1));
    }

    #[test]
    fn a_command_that_was_stopped_did_not_succeed() {
        for (output, outcome) in [
            ("Command timed out after 5ms before it could complete.", Some(Outcome::Aborted)),
            ("FAIL\n\nCommand timed out after 5 seconds", Some(Outcome::Aborted)),
            (
                "a\n<shell_metadata>\nshell tool terminated command after exceeding timeout 9 ms.\n</shell_metadata>",
                Some(Outcome::Aborted),
            ),
            ("Command moved to background (PID: 7).", Some(Outcome::Running)),
            ("<command started in background with shellId: 0>", Some(Outcome::Running)),
            ("a\n<command with shellId: 0 is still running after 30 s.>", Some(Outcome::Running)),
            ("Command is still running in the user's terminal.\nok", Some(Outcome::Running)),
            ("Background shell started.\nid: bg_1", Some(Outcome::Running)),
            (
                "Foreground command \"npm test\" promoted to background as bg_2.",
                Some(Outcome::Running),
            ),
            (
                "Output: a\nExit Code: (none)\nSignal: 15\nBackground PIDs: (none)",
                Some(Outcome::Aborted),
            ),
            ("Error: spawn ENOENT\nExit Code: (none)\nSignal: (none)", Some(Outcome::Failed)),
            ("Signal: strong\nb", None),
            ("a\nthe Command timed out after all\nb", None),
            ("", None),
        ] {
            assert_eq!(outcome_of_stop(output), outcome, "{output}");
        }
    }

    #[test]
    fn a_call_that_was_denied_never_ran() {
        let failed = Some(Outcome::Failed);
        for result in [
            "Permission to use Bash with command ls has been denied.",
            "Error: This command requires approval",
            "{\"error\":\"Tool approval requires an interactive session\"}",
            "ls in '/etc' was blocked. For security, Claude Code may only list files in /w.",
        ] {
            assert!(never_ran(result, failed), "{result}");
            assert!(!never_ran(result, Some(Outcome::Succeeded)), "a tool may print it: {result}");
        }
        let prevented = "Command blocked by PreToolUse hook: No touching. Command: touch a";
        assert!(never_ran(prevented, Some(Outcome::Succeeded)));
        assert!(!never_ran("ls: cannot open directory: Permission denied", failed));
    }

    #[test]
    fn words_tell_nothing() {
        check("Error: all is lost\nExit code 1", None, None);
    }
}
