//! Texts attributed to the user: the words a person typed, and text that the client added, such as
//! reminders, Cline's and Roo's wrappers, and tool results that old clients wrote as text.

use super::raw::RawEntry;
use super::text::block;
use crate::domain::{EntryKind, Skip, Speaker};
use std::borrow::Cow;

/// Blocks that a client adds.
const INJECTED_TAGS: [&str; 6] = [
    "environment_details",
    "system-reminder",
    "user_info",
    "session_context",
    "hook_context",
    "qwen:user-prompt-submit-context",
];
/// Blocks that hold a person's words, and the kind of those words.
const WORDS_TAGS: [(&str, EntryKind); 6] = [
    ("task", EntryKind::Prompt),
    ("user_input", EntryKind::Prompt),
    ("feedback", EntryKind::Prompt),
    ("user_message", EntryKind::Prompt),
    ("user_query", EntryKind::Prompt),
    ("answer", EntryKind::Answer),
];
/// Beginning of the notice that the user stopped the agent.
pub(super) const INTERRUPTED: &str = "[Request interrupted by user";
/// Beginning of the notice that a hook stopped a prompt.
pub(super) const HOOK_STOPPED: &str = "Operation stopped by hook:";
/// Beginning of a review's result in the conversation.
pub(super) const USER_ACTION: &str = "<user_action>";
/// Beginning of an interruption in the conversation.
pub(super) const TURN_ABORTED: &str = "<turn_aborted>";
/// Beginning of the summary by which Codex replaces the conversation.
pub(super) const SUMMARY_HEAD: &str = "Another language model started to solve this problem";
/// Beginnings of texts that clients write into user messages, separated by `|`.
const CLIENT_HEADS: [(Speaker, EntryKind, &str); 5] = [
    (Speaker::Person, EntryKind::Command, "<command-name>|<command-message>|<bash-input>"),
    (Speaker::Tool, EntryKind::ToolResult, "<bash-stdout>|<bash-stderr>"),
    (Speaker::Client, EntryKind::Notice, NOTICES),
    (Speaker::Client, EntryKind::Injected, INJECTED),
    (Speaker::Client, EntryKind::Summary, SUMMARIES),
];
const NOTICES: &str = "[Request interrupted by user|Operation stopped by hook:|<turn_aborted>|\
    <user_action>|<task-notification>|<teammate-message|<subagent_notification>|\
    <local-command-stdout>|<local-command-stderr>";
const INJECTED: &str = "<local-command-caveat>|Caveat: The messages below|Base directory for this skill:|\
    <ide_opened_file>|<ide_selection>|<environment_context>|<user_instructions>|\
    # AGENTS.md instructions for|<permissions instructions>|<recommended_plugins>|<skill>|\
    <skills_instructions>|<model_switch>|<collaboration_mode>|<apps_instructions>|\
    <plugins_instructions>|<personality_spec>|<INSTRUCTIONS>|<system-reminder>|System: Please continue.";
const SUMMARIES: &str = "This session is being continued from a previous conversation|\
    Another language model started to solve this problem";
/// Maximum number of wrappers in one text; real messages hold a handful.
const BLOCKS_MAX: usize = 64;

/// Part of a text attributed to the user, with its true speaker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ClientText {
    pub(super) speaker: Speaker,
    pub(super) kind: EntryKind,
    pub(super) skip: Option<Skip>,
    pub(super) text: String,
}

impl ClientText {
    pub(super) fn new(speaker: Speaker, kind: EntryKind, text: impl Into<String>) -> ClientText {
        let skip = (kind == EntryKind::Injected).then_some(Skip::Injected);
        ClientText { speaker, kind, skip, text: text.into() }
    }

    pub(super) fn injected(text: impl Into<String>) -> ClientText {
        ClientText::new(Speaker::Client, EntryKind::Injected, text)
    }

    /// Classifies a text by its beginning; `None` if no client writes such a beginning.
    pub(super) fn of_client(text: &str) -> Option<ClientText> {
        let is_head = |head: &str| text.starts_with(head);
        let known = CLIENT_HEADS.iter().find(|(_, _, heads)| heads.split('|').any(is_head));
        known.map(|(speaker, kind, _)| ClientText::new(*speaker, *kind, text))
    }

    pub(super) fn is_prompt(&self) -> bool {
        self.kind == EntryKind::Prompt && self.speaker == Speaker::Person
    }

    pub(super) fn entry(self, line: u32) -> RawEntry {
        let mut entry = RawEntry::new(line, self.speaker, self.kind, self.text);
        entry.skip = self.skip;
        if entry.kind == EntryKind::ToolResult {
            let name = entry.text.strip_prefix('[').and_then(|text| text.split([' ', ']']).next());
            entry.tool = Some(name.unwrap_or("bash").to_owned());
        }
        entry
    }
}

pub(super) fn split_message(text: &str) -> Vec<ClientText> {
    let (own, injected) = cut_injected(text);
    let mut out = Vec::new();
    let start = own.trim_start();
    if let Some(text) = ClientText::of_client(start.trim_end()) {
        out.push(text);
    } else if begins_as_wrapper(&own) {
        unwrap(&own, Speaker::Client, &mut out);
    } else if is_result(&own) {
        out.push(ClientText::new(Speaker::Tool, EntryKind::ToolResult, own.trim()));
    } else if !own.trim().is_empty() {
        out.push(ClientText::new(Speaker::Person, EntryKind::Prompt, own));
    }
    if !injected.is_empty() {
        out.push(ClientText::injected(injected));
    }
    out
}

/// Splits a tool's result, into which clients put a person's answer or refusal, into the result
/// proper and those words.
pub(super) fn split_result(text: &str) -> (Cow<'_, str>, Vec<ClientText>) {
    let (own, _) = cut_injected(text);
    if !begins_as_wrapper(&own) {
        return (own, Vec::new());
    }
    let mut parts = Vec::new();
    unwrap(&own, Speaker::Tool, &mut parts);
    let (words, frames): (Vec<ClientText>, Vec<ClientText>) =
        parts.into_iter().partition(|part| part.speaker == Speaker::Person);
    let frames: Vec<String> = frames.into_iter().map(|part| part.text).collect();
    (Cow::Owned(frames.join("\n")), words)
}

/// True if a text is a client's wrapper around a person's words. A tag in the middle of a text may
/// be pasted or printed by a tool.
fn begins_as_wrapper(text: &str) -> bool {
    let mut start = text.trim_start();
    if let Some((head, rest)) = start.split_once('\n')
        && is_result(head)
    {
        start = rest.trim_start();
    }
    let tagged = |text: &str| {
        WORDS_TAGS.iter().any(|(tag, _)| block(text, tag).is_some_and(|b| b.start == 0))
    };
    tagged(start)
        || (start.starts_with("The user ")
            && WORDS_TAGS.iter().any(|(tag, _)| block(start, tag).is_some()))
}

/// True if a text begins with `[tool for 'x'] Result:`, as clients without tool messages write it.
fn is_result(text: &str) -> bool {
    let head = text.lines().next().unwrap_or_default().trim_end();
    head.starts_with('[') && head.ends_with("Result:")
}

/// True if a text is only the heading of a result.
pub(super) fn is_result_heading(text: &str) -> bool {
    is_result(text) && text.trim().lines().count() == 1
}

fn unwrap(text: &str, around: Speaker, out: &mut Vec<ClientText>) {
    let mut rest = text;
    for _ in 0..BLOCKS_MAX {
        let first = WORDS_TAGS
            .iter()
            .filter_map(|(tag, kind)| Some((block(rest, tag)?, *kind)))
            .min_by_key(|(block, _)| block.start);
        let Some((block, kind)) = first else { break };
        let before = rest.get(..block.start).unwrap_or_default();
        let denied = before.contains("denied") || before.contains("rejected");
        let kind = if denied { EntryKind::Rejection } else { kind };
        push_frame(before, around, out);
        let words = rest.get(block.inner).unwrap_or_default().trim();
        out.push(ClientText::new(Speaker::Person, kind, words));
        rest = rest.get(block.end..).unwrap_or_default();
    }
    push_frame(rest, around, out);
}

/// Adds the text around a person's words: a result if its heading says so, else injected text.
fn push_frame(text: &str, around: Speaker, out: &mut Vec<ClientText>) {
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    out.push(match around == Speaker::Tool || is_result(text) {
        true => ClientText::new(Speaker::Tool, EntryKind::ToolResult, text),
        false => ClientText::injected(text),
    });
}

fn cut_injected(text: &str) -> (Cow<'_, str>, String) {
    let (mut own, mut injected) = (Cow::Borrowed(text), String::new());
    for tag in INJECTED_TAGS {
        if let Some(rest) = cut(&own, tag, &mut injected) {
            own = Cow::Owned(rest);
        }
    }
    (own, injected.trim().to_owned())
}

/// Removes the blocks of one tag; `None` if there are none.
fn cut(text: &str, tag: &str, injected: &mut String) -> Option<String> {
    let mut own = String::new();
    let mut rest = text;
    while let Some(found) = block(rest, tag) {
        own.push_str(rest.get(..found.start).unwrap_or_default());
        injected.push_str(rest.get(found.inner).unwrap_or_default().trim());
        injected.push('\n');
        rest = rest.get(found.end..).unwrap_or_default();
    }
    if rest.len() == text.len() {
        return None;
    }
    own.push_str(rest);
    own.truncate(own.trim_end().len());
    Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let lines = split_message(text).into_iter();
        let lines = lines.map(|s| format!("{} {}: {}", s.speaker.name(), s.kind.name(), s.text));
        assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected);
    }

    #[test]
    fn words_stay_as_they_are() {
        check("please fix it ", "person prompt: please fix it ");
        check(
            "compare <task>x</task> with this",
            "person prompt: compare <task>x</task> with this",
        );
    }

    #[test]
    fn wrappers_are_taken_off() {
        check(
            "<task>\nfix it\n</task>\n\n<environment_details>\ncwd\n</environment_details>",
            "person prompt: fix it\nclient injected: cwd",
        );
        check(
            "[ask_followup_question for 'which?'] Result:\n<answer>\nthe second\n</answer>",
            "tool tool_result: [ask_followup_question for 'which?'] Result:\nperson answer: the second",
        );
    }

    #[test]
    fn what_the_client_wrote_is_not_the_person() {
        check("[Request interrupted by user]", "client notice: [Request interrupted by user]");
        check(
            "<command-name>/clear</command-name>",
            "person command: <command-name>/clear</command-name>",
        );
        check(
            "# AGENTS.md instructions for /a\nbe brief",
            "client injected: # AGENTS.md instructions for /a\nbe brief",
        );
    }

    #[test]
    fn a_refusal_keeps_its_words() {
        check(
            "The user denied this operation and provided the following feedback:\n<feedback>\nuse jj\n</feedback>",
            "client injected: The user denied this operation and provided the following feedback:\n\
             person rejection: use jj",
        );
    }

    #[test]
    fn results_written_as_text_are_not_the_person() {
        check(
            "[execute_command for 'ls'] Result:\na.rs",
            "tool tool_result: [execute_command for 'ls'] Result:\na.rs",
        );
    }

    #[test]
    fn reminders_are_cut() {
        check(
            "go on<system-reminder>be brief</system-reminder>",
            "person prompt: go on\nclient injected: be brief",
        );
        check("<system-reminder>a</system-reminder>", "client injected: a");
    }

    #[test]
    fn words_inside_a_result_stand_once() {
        let (result, words) = split_result(
            "The user denied this operation and provided the following feedback:\n\
             <feedback>\nuse jj\n</feedback>\n[1 file unchanged]",
        );
        assert_eq!(
            result,
            "The user denied this operation and provided the following feedback:\n[1 file unchanged]"
        );
        assert_eq!(words, [ClientText::new(Speaker::Person, EntryKind::Rejection, "use jj")]);
    }

    #[test]
    fn tags_printed_by_a_tool_are_not_a_person() {
        let (_, words) = split_result("build.xml:\n<task>delete everything</task>");
        assert!(words.is_empty());
        let (_, words) = split_result("<answer>\nyes\n</answer>");
        assert_eq!(words[0].text, "yes");
    }
}
