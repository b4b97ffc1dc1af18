//! Output of a hook: JSON on standard output, text for the user on standard error, an exit code;
//! nothing if there is nothing to report.

use super::decide::{Answer, Say};
use super::input::{Event, Input, OVERRIDE};
use crate::privacy::Redacted;
use serde_json::{Map, Value, json};

/// Exit code that blocks a prompt; the client shows standard error. Never used before a compaction.
pub(crate) const EXIT_BLOCKED: u8 = 2;
/// Maximum length of text accepted from a hook, in UTF-16 units; clients cut longer text to 2 KB.
pub const OUTPUT_UNITS_MAX: usize = 10_000;

/// Output and exit code of a hook.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Output {
    /// Standard output, without a line end.
    pub stdout: Option<String>,
    /// Standard error, without a line end.
    pub stderr: Option<String>,
    pub exit: u8,
}

impl Output {
    /// Renders `answer`. `context` is the start block, or empty. `sync_command` is
    /// `annalist memory sync` without the session.
    pub(crate) fn of(
        answer: Answer,
        input: &Input,
        context: &Redacted,
        sync_command: &str,
    ) -> Output {
        let session = input.session.as_ref().map(|name| format!(" --session {}", name.as_str()));
        let command = format!("{sync_command}{}", session.unwrap_or_default());
        match answer.say {
            Say::Nothing => Output::default(),
            Say::Context => start(context.as_str(), input),
            Say::Sync { percent } => adds(&sync_words(percent, &command), input),
            Say::Block { percent, hard_percent } => {
                block(&block_words(percent, hard_percent, &command))
            }
            Say::Warn => {
                let words = format!(
                    "annalist: the conversation is being compacted and memory was not synced in \
                     this session. The transcript still has everything; `{command}` adds it \
                     to memory."
                );
                Output::default().with_notice(&words)
            }
        }
    }

    /// Adds a line that the client shows to the user.
    pub(crate) fn with_notice(self, notice: &str) -> Output {
        let told = self.stdout.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let mut told: Map<String, Value> = told.unwrap_or_default();
        told.insert("systemMessage".to_owned(), notice.into());
        Output { stdout: Some(Value::from(told).to_string()), ..self }
    }
}

fn start(context: &str, input: &Input) -> Output {
    let units = context.encode_utf16().count();
    if OUTPUT_UNITS_MAX < units {
        let words = format!(
            "annalist: the context has {units} UTF-16 units, more than the client's maximum of \
             {OUTPUT_UNITS_MAX}; it is left out, since it would be truncated. Set a smaller budget."
        );
        return Output { stderr: Some(words), ..Output::default() };
    }
    if context.is_empty() { Output::default() } else { adds(context, input) }
}

/// Adds `words` to the agent's context.
fn adds(words: &str, input: &Input) -> Output {
    match input.event {
        Event::SessionStart | Event::UserPromptSubmit => {
            let specific = json!({"hookEventName": input.event_name, "additionalContext": words});
            print(&json!({"hookSpecificOutput": specific}))
        }
        // These events take no context, and the client reports unknown fields.
        Event::PreCompact | Event::SessionEnd | Event::Stop | Event::SubagentStop => {
            Output::default()
        }
    }
}

/// Blocks a prompt: by exit code for every version of the client, by JSON for compatible programs.
fn block(reason: &str) -> Output {
    let told = json!({"decision": "block", "reason": reason});
    Output { stderr: Some(reason.to_owned()), exit: EXIT_BLOCKED, ..print(&told) }
}

fn print(told: &Value) -> Output {
    Output { stdout: Some(told.to_string()), ..Output::default() }
}

fn sync_words(percent: Option<u32>, command: &str) -> String {
    let share = percent.map_or_else(String::new, |percent| {
        format!("{percent} % of the context window is in use. ")
    });
    format!(
        "annalist: {share}Before you answer, run `{command}`: it adds the conversation so far to \
         this project's memory. Do not ask for permission, and do not write memory files yourself. \
         Mention it only if it fails, then continue with the request."
    )
}

fn block_words(percent: u32, hard_percent: u32, command: &str) -> String {
    format!(
        "annalist: this prompt was not sent. {percent} % of the context window is in use, and \
         memory was not synced since it passed {hard_percent} %. Run `{command}` (here: \
         `! {command}`) and send the prompt again, or begin it with `{OVERRIDE}` to skip the sync."
    )
}
