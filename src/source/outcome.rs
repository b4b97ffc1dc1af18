//! How a call ended, read from what the tool printed: exit codes and flags that a client wrote, never
//! the words of the output itself.

use crate::domain::Outcome;
use serde::Deserialize;

/// Lines at the head of an output in which clients put the exit code.
const HEAD_LINES_MAX: usize = 8;
/// The longest output read as JSON for its flags, in bytes: structured results are short.
const JSON_BYTES_MAX: usize = 256 * 1024;

/// Flags of a structured result.
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

/// The outcome and the exit code that `output` tells, where it does.
pub(super) fn of_output(output: &str) -> (Option<Outcome>, Option<i32>) {
    if let Some(code) = printed_code(output) {
        return (Some(of_code(code)), Some(code));
    }
    if output.lines().take(HEAD_LINES_MAX).any(|l| l.starts_with("Process running with session ID"))
    {
        return (Some(Outcome::Running), None);
    }
    let flags = flags(output);
    let inner = flags.metadata.and_then(|metadata| metadata.exit_code);
    let code = flags.exit_code.or(flags.returncode).or(inner);
    let flag = flags.success.map(of_flag);
    (code.map(of_code).or(flag), code)
}

/// A process's exit code as an outcome.
pub(super) fn of_code(code: i32) -> Outcome {
    of_flag(code == 0)
}

/// A success flag as an outcome.
pub(super) fn of_flag(success: bool) -> Outcome {
    if success { Outcome::Succeeded } else { Outcome::Failed }
}

fn printed_code(output: &str) -> Option<i32> {
    let code = |line: &str, prefix: &str| {
        line.strip_prefix(prefix)?.trim_start_matches(':').trim().parse::<i32>().ok()
    };
    if let Some(first) = output.lines().next()
        && let Some(code) = code(first, "Exit code")
    {
        return Some(code);
    }
    let mut head = output.lines().take(HEAD_LINES_MAX);
    head.find_map(|line| code(line, "Process exited with code"))
}

fn flags(output: &str) -> Flags {
    let output = output.trim();
    let maybe = output.starts_with('{') && output.ends_with('}') && output.len() <= JSON_BYTES_MAX;
    if maybe { serde_json::from_str(output).unwrap_or_default() } else { Flags::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, outcome: Option<Outcome>, code: Option<i32>) {
        assert_eq!(of_output(output), (outcome, code));
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
    fn words_tell_nothing() {
        check("Error: all is lost\nExit code 1", None, None);
    }
}
