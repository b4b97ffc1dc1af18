//! An answer as Claude Code wants it: JSON on standard output, words for a person on standard error, an
//! exit code. Where there is nothing to say, nothing is printed.

use super::{Answer, Event, Happened, Input, OVERRIDE, Say};
use crate::privacy::Redacted;
use serde::Serialize;

/// The exit code by which a prompt is not sent; the client shows standard error and leaves standard output
/// alone. It is never used before a compaction, which it would hold up.
pub const EXIT_BLOCKED: u8 = 2;
/// The longest text that the client takes from a hook, in UTF-16 units: of a longer one the agent
/// gets to see the first 2 KB.
pub const OUTPUT_UNITS_MAX: usize = 10_000;

/// What a hook prints and how it exits.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Output {
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
struct Told<'a> {
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
    /// `context` is the block that a session starts with; empty, nothing is said. `sync_command` is what is
    /// run to sync memory, without the session: `annalist memory sync`.
    pub fn of(answer: Answer, input: &Input, context: &Redacted, sync_command: &str) -> Output {
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
                print(&Told { system_message: Some(&words), ..Told::default() })
            }
        }
    }
}

/// The context of a session that starts.
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
    print(&Told { hook_specific_output: Some(specific), ..Told::default() })
}

/// Holds a prompt up. The exit code does it in every version of the client; the JSON is for programs
/// that run hooks in its manner and read that first.
fn block(reason: &str) -> Output {
    let told = Told { decision: Some("block"), reason: Some(reason), ..Told::default() };
    Output { stderr: Some(reason.to_owned()), exit: EXIT_BLOCKED, ..print(&told) }
}

fn print(told: &Told<'_>) -> Output {
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
