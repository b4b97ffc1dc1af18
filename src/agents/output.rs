//! Output of a hook for Claude Code: JSON on standard output, text for a person on standard error, an exit
//! code; nothing if there is nothing to say.

use super::decide::{Answer, Say};
use super::input::{Event, Happened, Input, OVERRIDE};
use crate::privacy::Redacted;
use serde::Serialize;

/// Exit code that blocks a prompt; the client shows standard error. Never used before a compaction.
pub(crate) const EXIT_BLOCKED: u8 = 2;
/// Maximum text that the client takes from a hook, in UTF-16 units; it cuts a longer one to 2 KB.
pub const OUTPUT_UNITS_MAX: usize = 10_000;

/// Output and exit code of a hook.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Output {
    /// For standard output, without a line end.
    pub stdout: Option<String>,
    /// For standard error, without a line end.
    pub stderr: Option<String>,
    /// The exit code.
    pub exit: u8,
}

/// Standard output: what `UserPromptSubmit` and `SessionStart` may say, and every event.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Specific<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: &'static str,
    additional_context: &'a str,
}

impl Output {
    /// The output for `answer`.
    ///
    /// `context` is the start block, or empty; `sync_command` is `annalist memory sync` without the session.
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
            Say::Context => start(context.as_str(), input.happened),
            Say::Sync { percent } => adds(&sync_words(percent, &command), input.happened),
            Say::Block { percent, hard_percent } => {
                block(&block_words(percent, hard_percent, &command))
            }
            Say::Warn => {
                let words = format!(
                    "annalist: the conversation is being compacted and memory was not synced in \
                     this session. What was said is kept in the transcript; `{command}` brings it \
                     into memory."
                );
                print(&Response { system_message: Some(&words), ..Response::default() })
            }
        }
    }
}

fn start(context: &str, happened: Happened) -> Output {
    let units = context.encode_utf16().count();
    if OUTPUT_UNITS_MAX < units {
        let words = format!(
            "annalist: the context has {units} UTF-16 units and the client takes {OUTPUT_UNITS_MAX}; \
             nothing was said, for it would be cut anywhere. Give it a smaller budget."
        );
        return Output { stderr: Some(words), ..Output::default() };
    }
    if context.is_empty() { Output::default() } else { adds(context, happened) }
}

/// Adds `words` to what the agent sees.
fn adds(words: &str, happened: Happened) -> Output {
    let specific = match happened.event() {
        event @ (Event::SessionStart | Event::UserPromptSubmit) => {
            Specific { hook_event_name: event.name(), additional_context: words }
        }
        // These take none, and the client reports what it does not know.
        Event::PreCompact | Event::SessionEnd | Event::Stop => return Output::default(),
    };
    print(&Response { hook_specific_output: Some(specific), ..Response::default() })
}

/// Blocks a prompt: by exit code for every version of the client, by JSON for programs like it.
fn block(reason: &str) -> Output {
    let told = Response { decision: Some("block"), reason: Some(reason), ..Response::default() };
    Output { stderr: Some(reason.to_owned()), exit: EXIT_BLOCKED, ..print(&told) }
}

fn print(told: &Response<'_>) -> Output {
    Output { stdout: serde_json::to_string(told).ok(), ..Output::default() }
}

fn sync_words(percent: Option<u32>, command: &str) -> String {
    let share = percent.map_or_else(String::new, |percent| {
        format!("{percent} % of the context window is in use. ")
    });
    format!(
        "annalist: {share}Before you answer, run `{command}`: it brings what was said so far into \
         this project's memory. Do not ask for leave and do not write memory files yourself. Mention \
         it only if it fails, then go on with the request."
    )
}

fn block_words(percent: u32, hard_percent: u32, command: &str) -> String {
    format!(
        "annalist: this prompt was not sent. {percent} % of the context window is in use, and memory \
         was not synced since it passed {hard_percent} %. Run `{command}` (here: `! {command}`) and \
         send the prompt again, or begin it with `{OVERRIDE}` to go on without."
    )
}
