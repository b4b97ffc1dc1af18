//! Texts attributed to the user: the words a person typed, and text that the client added, such as
//! reminders, Cline's and Roo's wrappers, and tool results that old clients wrote as text.

use super::json::JsonExt;
use super::raw::RawEntry;
use super::text::{between, block, push_piece};
use super::tools::{is_shell, outcome_of_code, outcome_of_shell, outcome_of_status};
use crate::domain::{EntryKind, Outcome, Skip, Speaker};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::LazyLock;

const INJECTED_TAGS: [&str; 7] = [
    "environment_details",
    "system-reminder",
    "user_info",
    "session_context",
    "hook_context",
    "qwen:user-prompt-submit-context",
    "mode_notice",
];
/// Tag and beginning of the instructions that Cline puts in front of the words with a command.
const INSTRUCTIONS: &str = "explicit_instructions";
const INSTRUCTIONS_START: &str = "<explicit_instructions type=\"";
/// Blocks that hold a person's words, and the kind of those words.
const WORDS_TAGS: [(&str, EntryKind); 6] = [
    ("task", EntryKind::Prompt),
    ("user_input", EntryKind::Prompt),
    ("feedback", EntryKind::Prompt),
    ("user_message", EntryKind::Prompt),
    ("user_query", EntryKind::Prompt),
    ("answer", EntryKind::Answer),
];
/// Cline's tools whose result is what a person said.
const ASKING_TOOLS: [&str; 7] = [
    "ask_followup_question", "attempt_completion", "plan_mode_respond", "act_mode_respond",
    "new_task", "condense", "report_bug",
];
/// Beginnings of the results by which Cline passes on a person's verdict on a call.
const VERDICTS: [&str; 2] = [
    "The user denied this operation and provided the following feedback:",
    "The user approved this operation and provided the following context:",
];
/// Beginnings of clients' sentences about a person's words in a tag.
const SENTENCES: [&str; 8] = [
    "User steering update:",
    "User hints:",
    "The user ",
    "[The user has switched to ACT MODE",
    "You seem to be having trouble proceeding.",
    "[TASK RESUMPTION]",
    "New instructions for task continuation:",
    "New message to respond to with plan_mode_respond tool",
];
/// Beginning of the result of a command that has not ended yet, and what is in front of a person's words at its end.
const STILL_RUNNING: &str = "Command is still running in ";
const SAID_MEANWHILE: &str = "\nThe user provided the following feedback:\n<feedback>\n";
/// Beginnings of results, and their outcome.
const OUTCOMES: [(&str, Outcome); 4] = [
    ("The user denied this operation", Outcome::Aborted),
    ("The tool execution failed with the following error:", Outcome::Failed),
    ("The content was successfully saved to ", Outcome::Succeeded),
    ("The user made the following updates to your content:", Outcome::Succeeded),
];
/// Words in front of the exit code at the beginning of a result.
const CODES: [&str; 3] = ["Exit code: ", "(exit code ", "with exit code "];
/// Frames in which OpenHands writes an example, the task and the results for models without tool calls.
const TASK: &str = "--------------------- NEW TASK DESCRIPTION ---------------------\n";
const TASK_END: &str = "\n--------------------- END OF NEW TASK DESCRIPTION";
const EXECUTED: &str = "EXECUTION RESULT of [";
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
/// [`CLIENT_HEADS`] one by one.
static HEADS: LazyLock<Vec<(Speaker, EntryKind, &str)>> = LazyLock::new(|| {
    let each = CLIENT_HEADS.iter().flat_map(|(speaker, kind, heads)| {
        heads.split('|').map(move |head| (*speaker, *kind, head))
    });
    each.collect()
});
const NOTICES: &str = "[Request interrupted by user|Operation stopped by hook:|<turn_aborted>|\
    <user_action>|<task-notification>|<agent-notification>|<bash-notification>|<teammate-message|<agent-message|\
    <cross-session-message|Another Claude session sent a message:\n<|<channel source=|<channel-message|\
    <github-webhook-activity>|<mcp-resource-update|<mcp-polling-update|<new-diagnostics>|\
    <subagent_notification>|<codex_delegation>|<local-command-stdout>|<local-command-stderr>|\
    User has manually exited Plan Mode.|Background execution update:\n<background_output>";
const INJECTED: &str = "<local-command-caveat>|Caveat: The messages below|Base directory for this skill:|\
    <ide_opened_file>|<ide_selection>|<environment_context>|<user_instructions>|\
    # AGENTS.md instructions for|<permissions instructions>|<recommended_plugins>|<skill>|\
    <skills_instructions>|<model_switch>|<collaboration_mode>|<apps_instructions>|\
    <plugins_instructions>|<personality_spec>|<INSTRUCTIONS>|<system-reminder>|<state_snapshot>|System: Please continue.|\
    Stop hook feedback:\n|<session-start-hook>|<fork-boilerplate>|\
    [ERROR] You did not use a tool in your previous response!|[TASK RESUMPTION]|[Sliding window truncation:|\
    (The user did not provide a new message.|This is the Gemini CLI. We are setting up the context|\
    This is the Qwen Code. We are setting up the context|# task_progress\n|# task_progress List (|# task_progress RECOMMENDED|# task_progress CREATION REQUIRED|# task_progress UPDATE REQUIRED|# TODO LIST UPDATE REQUIRED|\
    # TODO LIST CREATION REQUIRED|# TODO LIST RECOMMENDED|# TODO LIST (Optional|Files attached by the user:\n|\
    The user has provided feedback on the results. Consider|The user provided additional content:|\
    [The user has switched to ACT MODE|<explicit_instructions>\nCRITICAL FILE STATE ALERT|\
    Here is the user's editor context as a JSON object|Here is a summary of changes in the user's editor context|\
    System: Potential loop detected.|- **Workspace Directories:**|\
    The user approved switching to act mode. Continue with the approved plan now.|\
    Skipping tool due to user rejecting a previous tool|Tool was interrupted and not executed due to|[Image: source: ";
/// Tags around command output.
const OUTPUTS: [&str; 4] =
    ["bash-stdout", "bash-stderr", "local-command-stdout", "local-command-stderr"];
/// Frame in which Gemini CLI passes on a command line that the user ran, and its output.
const RAN: &str = "I ran the following shell command:\n```sh\n";
const RAN_RESULT: &str = "\n```\n\nThis produced the following result:\n```\n";
const SUMMARIES: &str = "This session is being continued from a previous conversation|\
    Another language model started to solve this problem";
/// Beginning of the prompt that Claude Code writes for a plan accepted with a cleared context, its sentence after the
/// plan, and what is in front of the person's words about the plan.
const PLAN: &str = "Implement the following plan:\n";
const PLAN_END: &str = "\nIf you need specific details from before exiting plan mode";
const ABOUT_PLAN: &str = "\nUser feedback on this plan: ";
const PLAN_HINT: &str = "If this plan can be broken down";
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
        let known = HEADS.iter().find(|(_, _, head)| is_head(head));
        // Words may follow the mark of an image.
        let is_said = is_head("[Image: source: ") && !text.trim_end().ends_with(']');
        let known = known.filter(|_| !is_said);
        known.map(|(speaker, kind, _)| {
            let mut own = String::new();
            if *kind == EntryKind::Command {
                own = command(text);
            } else if is_head("<bash-std") || is_head("<local-command-std") {
                let outputs = OUTPUTS.iter().filter_map(|tag| between(text, tag));
                outputs.for_each(|output| push_piece(&mut own, output, "\n"));
            } else {
                text.clone_into(&mut own);
            }
            ClientText::new(*speaker, *kind, own)
        })
    }

    pub(super) fn is_prompt(&self) -> bool {
        self.kind == EntryKind::Prompt && self.speaker == Speaker::Person
    }

    pub(super) fn entry(self, line: u32) -> RawEntry {
        let mut entry = RawEntry::new(line, self.speaker, self.kind, self.text);
        entry.skip = self.skip;
        if entry.kind == EntryKind::ToolResult {
            let (head, own) = split_heading(&entry.text).unwrap_or(("[bash", ""));
            let tool = result_tool(head);
            (entry.outcome, entry.exit_code) = match cline_outcome(own) {
                (None, None) if is_shell(tool) => outcome_of_shell(own.trim_start()),
                told => told,
            };
            entry.tool = Some(tool.to_owned());
        }
        entry
    }
}

/// True if the whole text is a person's.
pub(super) fn is_prompt(text: &str) -> bool {
    split_message(text).iter().all(ClientText::is_prompt)
}

pub(super) fn split_message(text: &str) -> Vec<ClientText> {
    let (own, mut injected) = cut_injected(text);
    let is_command = own.trim_start().starts_with(INSTRUCTIONS_START);
    let cut = is_command.then(|| cut(&own, INSTRUCTIONS, &mut injected)).flatten();
    let own = cut.map_or(own, Cow::Owned);
    let mut out = Vec::new();
    let start = own.trim_start();
    if let Some(plan) = accepted_plan(&own) {
        out.extend(plan);
    } else if start.starts_with("Here's a running example")
        && let Some((example, rest)) = start.split_once(TASK)
    {
        let (task, end) = rest.rsplit_once(TASK_END).unwrap_or((rest, ""));
        injected.extend([example, end]);
        out.push(ClientText::new(Speaker::Person, EntryKind::Prompt, task));
    } else if let Some((command, result)) = shell_run(start) {
        out.push(ClientText::new(Speaker::Person, EntryKind::Command, format!("!{command}")));
        out.push(ClientText::new(Speaker::Tool, EntryKind::ToolResult, result));
    } else if let Some((result, words)) = said_meanwhile(&own) {
        out.push(ClientText::new(Speaker::Tool, EntryKind::ToolResult, result));
        out.push(words);
    } else if begins_as_wrapper(&own) {
        unwrap(&own, Speaker::Client, &mut out);
    } else if let Some(text) = ClientText::of_client(start.trim_end()) {
        out.push(text);
    } else if split_heading(&own).is_some() {
        out.push(ClientText::new(Speaker::Tool, EntryKind::ToolResult, own.trim()));
    } else if !own.trim().is_empty() {
        // Blank lines behind a block of the client are the client's.
        let own = own.trim_start_matches(|it| !injected.is_empty() && matches!(it, '\r' | '\n'));
        out.push(ClientText::new(Speaker::Person, EntryKind::Prompt, own));
    }
    if !injected.trim().is_empty() {
        out.push(ClientText::injected(injected.trim()));
    }
    out
}

/// Splits the client's prompt for an accepted plan into the plan, which the agent wrote, and the person's words about it.
pub(super) fn accepted_plan(text: &str) -> Option<Vec<ClientText>> {
    let text = text.trim();
    let (_, rest) = text.starts_with(PLAN).then(|| text.rsplit_once(PLAN_END)).flatten()?;
    let (_, after) = rest.split_once('\n').unwrap_or_default();
    let (hint, told) = after.split_once(ABOUT_PLAN).unwrap_or((after, ""));
    let is_hint = hint.trim().is_empty() || hint.trim_start().starts_with(PLAN_HINT);
    let (kind, words) = match is_hint {
        true => (EntryKind::Answer, told.trim()),
        false => (EntryKind::Prompt, after.trim()),
    };
    let plan = text.strip_suffix(words)?.trim_end();
    let plan = plan.strip_suffix(ABOUT_PLAN.trim()).unwrap_or(plan).trim_end();
    let said = (!words.is_empty()).then(|| ClientText::new(Speaker::Person, kind, words));
    Some([ClientText::injected(plan)].into_iter().chain(said).collect())
}

/// Command line that a user ran, and its output.
fn shell_run(text: &str) -> Option<(&str, &str)> {
    let (command, result) = text.strip_prefix(RAN)?.split_once(RAN_RESULT)?;
    Some((command, result.trim_end().strip_suffix("\n```").unwrap_or(result)))
}

/// Splits the result of a command that still runs from what a person says about it.
fn said_meanwhile(text: &str) -> Option<(&str, ClientText)> {
    let own = split_heading(text).map_or(text, |(_, own)| own);
    let told = text.trim_end().strip_suffix("\n</feedback>")?;
    let (result, words) = told.rsplit_once(SAID_MEANWHILE)?;
    let words = ClientText::new(Speaker::Person, EntryKind::Prompt, words.trim());
    own.trim_start().starts_with(STILL_RUNNING).then_some((result.trim_end(), words))
}

/// Removes text that the client added to a tool's result.
pub(super) fn own_result(text: &str) -> Cow<'_, str> {
    cut_injected(text).0
}

/// Splits the result of one of Cline's tools, into which Cline puts a person's answer or refusal,
/// into the result proper and those words.
pub(super) fn split_cline_result<'t>(tool: &str, text: &'t str) -> (Cow<'t, str>, Vec<ClientText>) {
    let own = own_result(text);
    if let Some((rest, words)) = split_roo_result(&own) {
        return (Cow::Owned(rest), vec![words]);
    }
    if let Some((rest, words)) = said_meanwhile(&own) {
        return (Cow::Owned(rest.to_owned()), vec![words]);
    }
    if !holds_words(tool, &own) {
        return (own, Vec::new());
    }
    let mut parts = Vec::new();
    unwrap(&own, Speaker::Tool, &mut parts);
    let (words, frames): (Vec<ClientText>, Vec<ClientText>) =
        parts.into_iter().partition(|part| part.speaker == Speaker::Person);
    let frames: Vec<String> = frames.into_iter().map(|part| part.text).collect();
    (Cow::Owned(frames.join("\n")), words)
}

/// JSON object with a status in the first line of one of Roo's results.
fn roo_status(result: &str) -> Option<Value> {
    let first = result.lines().next().filter(|line| line.starts_with('{'))?;
    let status: Value = serde_json::from_str(first).ok()?;
    matches!(status.text("status"), "denied" | "approved" | "error").then_some(status)
}

/// Takes the person's words out of Roo's status.
fn split_roo_result(result: &str) -> Option<(String, ClientText)> {
    let mut status = roo_status(result)?;
    let is_denied = status["status"] == "denied";
    let kind = if is_denied { EntryKind::Rejection } else { EntryKind::Prompt };
    let words = status.as_object_mut()?.shift_remove("feedback")?;
    let words = words.as_str().map(str::trim).filter(|words| !words.is_empty())?;
    let words = ClientText::new(Speaker::Person, kind, words);
    let rest = result.split_once('\n').map_or("", |(_, rest)| rest);
    Some((format!("{status}\n{rest}").trim_end().to_owned(), words))
}

/// Outcome and exit code at the beginning of the result of one of Cline's tools.
pub(super) fn cline_outcome(result: &str) -> (Option<Outcome>, Option<i32>) {
    let own = split_heading(result).map_or(result, |(_, own)| own).trim_start();
    let mut head = own.lines().take(2).filter(|_| own.starts_with("Command "));
    let code = head.find_map(|line| {
        let told = CODES.iter().find_map(|words| Some(line.split_once(words)?.1))?;
        told.trim_end_matches(['.', ')', ' ']).parse().ok()
    });
    let known = OUTCOMES.iter().find(|(head, _)| own.starts_with(head));
    let status = || outcome_of_status(roo_status(own)?.text("status"));
    let outcome = known.map(|(_, outcome)| *outcome).or_else(status);
    (outcome.or(code.map(outcome_of_code)), code)
}

/// Tools that ask a person, in lower case and without `_`.
const QUESTION_TOOLS: [&str; 5] =
    ["askuser", "askuserquestion", "requestuserinput", "askquestions", "question"];
/// Sentences by which clients pass on an answer, and the end of one of them.
const ANSWERS: [&str; 8] = [
    "User has answered your questions:",
    "Your questions have been answered:",
    "User has provided the following answers:",
    "User selected:",
    "User responded:",
    "User response:",
    "User responses:",
    "User wrote:",
];
/// Beginning of what Copilot CLI tells the agent if it runs alone.
const NOBODY: &str = "The user is not available to respond";
/// Beginning of the names of the tools of a client that runs Claude Code.
const CONDUCTOR: &str = "mcp__conductor__";
const ANSWERS_END: &str = ". You can now continue";
const PLAN_TOOL: &str = "exitplanmode";
const APPROVALS: [&str; 2] = ["User has approved your plan", "Plan approved"];
/// Sentences by which clients pass on the reason for a refusal.
const REASONS: [&str; 3] = [
    "The user rejected permission to use this specific tool call with the following feedback:",
    "The user rejected this tool call. User feedback:",
    "Plan rejected. User feedback:",
];

/// A person's words in the result of a tool: an answer to the agent's question, the verdict on its
/// plan, or the reason for a refusal.
pub(super) fn persons_words(
    tool: &str,
    result: &str,
    outcome: Option<Outcome>,
) -> Option<(EntryKind, String)> {
    let tool = tool.strip_prefix(CONDUCTOR).unwrap_or(tool);
    let tool = tool.to_ascii_lowercase().replace('_', "");
    let after = |heads: &[&str]| heads.iter().find_map(|head| result.trim().strip_prefix(head));
    let has_failed = matches!(outcome, Some(Outcome::Failed | Outcome::Aborted));
    if has_failed || tool == PLAN_TOOL {
        if let Some(reason) = after(&REASONS) {
            let reason = reason.split("\n\n").next().unwrap_or(reason);
            return Some((EntryKind::Rejection, reason.trim().to_owned()));
        }
        let is_approved = !has_failed && after(&APPROVALS).is_some();
        return is_approved.then(|| (EntryKind::Answer, "[plan approved]".to_owned()));
    }
    if !QUESTION_TOOLS.contains(&tool.as_str()) {
        return None;
    }
    let told =
        after(&ANSWERS).map(|told| told.split(ANSWERS_END).next().unwrap_or(told).to_owned());
    let words =
        told.or_else(|| answers(&serde_json::from_str::<Value>(result).ok()?["answers"]))?;
    let words = Some(words.trim()).filter(|it| !it.is_empty() && !it.starts_with(NOBODY))?;
    Some((EntryKind::Answer, words.to_owned()))
}

/// Answers by the name of the question; some clients only number the questions.
fn answers(json: &Value) -> Option<String> {
    let mut all = String::new();
    for (question, answer) in json.as_object()? {
        let answer = if answer.has("answers") { &answer["answers"] } else { answer };
        let many: Vec<&str> = answer.list().iter().filter_map(Value::as_str).collect();
        let answer = answer.as_str().map_or_else(|| many.join(", "), str::to_owned);
        let is_number = question.bytes().all(|byte| byte.is_ascii_digit());
        let line = if is_number { answer } else { format!("{question}: {answer}") };
        push_piece(&mut all, &line, "\n");
    }
    Some(all)
}

/// True if a user's text is written as Cline writes it: in a wrapper, or with the environment.
pub(super) fn is_of_cline(text: &str) -> bool {
    is_wrapper(text.trim_start()) || block(text, INJECTED_TAGS[0]).is_some()
}

/// True if a text is a client's wrapper around a person's words. A tag in the middle of a text may
/// be pasted or printed by a tool.
fn begins_as_wrapper(text: &str) -> bool {
    match split_heading(text) {
        Some((head, result)) => holds_words(result_tool(head), result),
        None => is_wrapper(text.trim_start()),
    }
}

/// True if the result of one of Cline's tools holds a person's words. Any tool may print the tags.
fn holds_words(tool: &str, result: &str) -> bool {
    let result = result.trim_start();
    let is_verdict = VERDICTS.iter().any(|head| {
        let rest = result.strip_prefix(head).unwrap_or_default().trim_start();
        block(rest, "feedback").is_some_and(|block| block.start == 0)
    });
    is_verdict || ASKING_TOOLS.contains(&tool) && is_wrapper(result)
}

/// True if a text is a person's words in a tag, or begins with the client's sentence about them.
fn is_wrapper(start: &str) -> bool {
    let has_sentence = SENTENCES.iter().any(|it| start.starts_with(it));
    let is_framed = |(tag, _): &(&str, EntryKind)| {
        let before = block(start, tag).and_then(|block| start.get(..block.start));
        before
            .is_some_and(|it| it.is_empty() || has_sentence && it.trim_end().ends_with([':', '.']))
    };
    WORDS_TAGS.iter().any(is_framed)
}

/// Splits a result that a client wrote as text after its heading: `[tool for 'x'] Result:`, in which
/// the argument may have several lines, or `EXECUTION RESULT of [tool]:`.
fn split_heading(text: &str) -> Option<(&str, &str)> {
    const RESULT: &str = "] Result:";
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix(EXECUTED) {
        let own = rest.split_once("]:")?.1;
        let is_heading = own.is_empty() || own.starts_with(['\n', '\r']);
        return is_heading.then(|| text.split_at_checked(text.len() - own.len()))?;
    }
    let is_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    let rest = text.strip_prefix('[')?.trim_start_matches(is_name);
    let end = if rest.starts_with(" for '") { "'] Result:" } else { RESULT };
    let is_tool = !text.starts_with("[]") && (end != RESULT || rest.starts_with(RESULT));
    text.match_indices(end).filter(|_| is_tool).find_map(|(at, _)| {
        let rest = text.get(at + end.len()..)?;
        // Only the result `Done` is on the same line.
        let rest = rest.strip_prefix(" Done").unwrap_or(rest).trim_start_matches([' ', '\r']);
        let is_end = rest.is_empty() || rest.starts_with('\n');
        is_end.then(|| text.split_at_checked(text.len() - rest.len()))?
    })
}

/// Name of the tool in the heading of a result.
fn result_tool(head: &str) -> &str {
    let name = head.strip_prefix(EXECUTED).or_else(|| head.strip_prefix('['));
    name.and_then(|name| name.split([' ', ']']).next()).unwrap_or_default()
}

/// True if a text is only the heading of a result.
pub(super) fn is_result_heading(text: &str) -> bool {
    split_heading(text).is_some_and(|(_, own)| own.trim().is_empty())
}

/// Slash command as `/name arguments`, or a shell's command line after `!`.
fn command(text: &str) -> String {
    if let Some(line) = text.strip_prefix("<bash-input>") {
        return format!("!{}", line.split("</bash-input>").next().unwrap_or(line).trim());
    }
    let tag = |tag| between(text, tag).map(str::trim).unwrap_or_default();
    let name = Some(tag("command-name")).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| tag("command-message"));
    let slash = if name.is_empty() || name.starts_with('/') { "" } else { "/" };
    format!("{slash}{name} {}", tag("command-args")).trim().to_owned()
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
    out.push(match around == Speaker::Tool || split_heading(text).is_some() {
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
    (own, injected)
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
    fn blank_lines_between_context_and_a_prompt_are_the_clients() {
        let expected = "person prompt:   why?\nclient injected: ADR-1";
        check("<hook_context>ADR-1</hook_context>\n\n  why?", expected);
        check("\n  why?", "person prompt: \n  why?");
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
    fn instructions_for_the_list_of_tasks_are_the_clients() {
        for head in [
            "# TODO LIST UPDATE REQUIRED - You MUST include it.",
            "# TODO LIST CREATION REQUIRED - ACT MODE ACTIVATED",
            "# task_progress RECOMMENDED",
            "# task_progress\n\nYou've made 11 API requests without it.",
        ] {
            check(
                &format!("\n\n\t\t\t{head}\n\n- [ ] a\n"),
                &format!("client injected: {head}\n\n- [ ] a"),
            );
        }
        check("# TODO LIST\n- [ ] a", "person prompt: # TODO LIST\n- [ ] a");
    }

    #[test]
    fn the_heading_of_a_result_has_an_argument_of_several_lines() {
        let head = "[ask_followup_question for '## Plan\n\n1. [x] Result: none\n2. Ship?'] Result:";
        check(
            &format!(
                "{head}\n<answer>\nproceed\n</answer>\n\n<file_content path=\"a\">\nb\n</file_content>"
            ),
            &format!(
                "tool tool_result: {head}\nperson answer: proceed\n\
                 client injected: <file_content path=\"a\">\nb\n</file_content>"
            ),
        );
        let run = "[execute_command for 'cat <<E\na\nE'] Result:\n<task>printed</task>";
        check(run, &format!("tool tool_result: {run}"));
        let switched = "[plan_mode_respond] Result:\n[The user has switched to ACT MODE, so you may now proceed.]";
        check(
            &format!(
                "{switched}\n\nThe user also provided the following message:\n<user_message>\ngo\n</user_message>"
            ),
            &format!(
                "tool tool_result: {switched}\n\nThe user also provided the following message:\nperson prompt: go"
            ),
        );
        for said in ["[ ] a\n[x] Result: b", "[link](a) Result:\nb", "[\"a\"] Result:\nb"] {
            check(said, &format!("person prompt: {said}"));
        }
    }

    #[test]
    fn results_for_models_without_tool_calls_are_not_the_person() {
        check(
            "EXECUTION RESULT of [terminal]:\n[a] b\n[Command finished with exit code 2]",
            "tool tool_result: EXECUTION RESULT of [terminal]:\n[a] b\n[Command finished with exit code 2]",
        );
        let results = split_message(
            "EXECUTION RESULT of [terminal]:\nFAIL\n[Command finished with exit code 2]",
        );
        let entry = results.into_iter().next().unwrap().entry(1);
        assert_eq!((entry.tool.as_deref(), entry.exit_code), (Some("terminal"), Some(2)));
        assert_eq!(entry.outcome, Some(Outcome::Failed));
        check(
            "Here's a running example of how to use the tools.\n\nUSER: EXECUTION RESULT of [x]:\n\n\
             --------------------- NEW TASK DESCRIPTION ---------------------\nfix it\n\
             --------------------- END OF NEW TASK DESCRIPTION ---------------------\n\nPLEASE follow the format!",
            "person prompt: fix it\nclient injected: Here's a running example of how to use the tools.\n\n\
             USER: EXECUTION RESULT of [x]:\n\n ---------------------\n\nPLEASE follow the format!",
        );
    }

    #[test]
    fn a_command_that_a_person_ran_is_not_its_output() {
        check(
            "I ran the following shell command:\n```sh\nmake\n```\n\n\
             This produced the following result:\n```\n[lint] ok\n```",
            "person command: !make\ntool tool_result: [lint] ok",
        );
        check(
            "I ran the following shell command: make",
            "person prompt: I ran the following shell command: make",
        );
    }

    #[test]
    fn what_the_client_wrote_is_not_the_person() {
        check("[Request interrupted by user]", "client notice: [Request interrupted by user]");
        check("<command-name>/clear</command-name>", "person command: /clear");
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
    fn instructions_around_a_persons_words_are_the_clients() {
        check(
            "<explicit_instructions type=\"new_task\">\nUse tabs.\n</explicit_instructions>\n<task>\nfix it\n</task>",
            "person prompt: fix it\nclient injected: Use tabs.",
        );
        check(
            "<explicit_instructions type=\"x\">b</explicit_instructions>\nfix it<user_info>a</user_info>",
            "person prompt: fix it\nclient injected: a\nb",
        );
        let quoted =
            "what does <explicit_instructions type=\"x\">Use tabs.</explicit_instructions> do?";
        check(quoted, &format!("person prompt: {quoted}"));
        let printed = "<explicit_instructions>\nUse tabs.\n</explicit_instructions>";
        assert_eq!(own_result(printed), printed);
        check(
            "User steering update:\n<user_input>\nuse tabs\n</user_input>\nInternal instruction: Re-evaluate.",
            "client injected: User steering update:\nperson prompt: use tabs\n\
             client injected: Internal instruction: Re-evaluate.",
        );
        check(
            "User hints:\n<user_input>\n- use tabs\n</user_input>\n\nInternal instruction: Re-evaluate.",
            "client injected: User hints:\nperson prompt: - use tabs\n\
             client injected: Internal instruction: Re-evaluate.",
        );
    }

    #[test]
    fn what_a_person_says_about_a_running_command_is_no_output() {
        let running = "Command is still running in the user's terminal.\nHere's the output so far:\n\
            <task>log</task>";
        let said = "The user provided the following feedback:\n<feedback>\nstop it\n</feedback>";
        let words = [ClientText::new(Speaker::Person, EntryKind::Prompt, "stop it")];
        for gap in ["\n\n", "\n"] {
            let text = format!("{running}{gap}{said}");
            let (result, found) = split_cline_result("execute_command", &text);
            assert_eq!((&*result, &*found), (running, &words[..]));
        }
        let head = "[execute_command for 'x'] Result:\n";
        check(
            &format!("{head}{running}\n\n{said}"),
            &format!("tool tool_result: {head}{running}\nperson prompt: stop it"),
        );
        let printed = format!("{running}\n{said}\n\nYou will be updated on the terminal status.");
        assert!(split_cline_result("execute_command", &printed).1.is_empty());
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
        let (result, words) = split_cline_result(
            "execute_command",
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
    fn words_in_a_verdict_of_roo_stand_once() {
        let (result, words) = split_cline_result(
            "apply_diff",
            "{\"status\":\"approved\",\"feedback\":\"and test it\"}\n\ndone",
        );
        assert_eq!(result, "{\"status\":\"approved\"}\n\ndone");
        assert_eq!(words, [ClientText::new(Speaker::Person, EntryKind::Prompt, "and test it")]);
        let other = r#"{"status":"pending","feedback":"five stars"}"#;
        assert!(split_cline_result("use_mcp_tool", other).1.is_empty());
        let silent = r#"{"status":"denied","feedback":" "}"#;
        assert!(split_cline_result("apply_diff", silent).1.is_empty());
    }

    #[test]
    fn cline_tells_the_outcome_at_the_beginning() {
        let denied = Some(Outcome::Aborted);
        let failed = Some(Outcome::Failed);
        for (result, outcome, code) in [
            ("[x for 'a'] Result:\nThe user denied this operation.", denied, None),
            ("{\"status\": \"denied\"}", denied, None),
            ("{\"status\":\"error\",\"error\":\"No match\"}", failed, None),
            (
                "The tool execution failed with the following error:\n<error>\na\n</error>",
                failed,
                None,
            ),
            (
                "Command executed in terminal within working directory '/p'. Command execution was not \
              successful, inspect the cause and adjust as needed.\nExit code: 2\nOutput:\nFAIL",
                failed,
                Some(2),
            ),
            (
                "Command executed in terminal  within working directory '/p'. Exit code: 0\nOutput:\n",
                Some(Outcome::Succeeded),
                Some(0),
            ),
            (
                "Command executed successfully (exit code 0).\nOutput:\nok",
                Some(Outcome::Succeeded),
                Some(0),
            ),
            ("[x] Result:\nCommand failed with exit code 1.\nOutput:\nFAIL", failed, Some(1)),
            ("The content was successfully saved to a.rs.\n\nx", Some(Outcome::Succeeded), None),
            ("log:\nThe user denied this operation.\nExit code: 2", None, None),
        ] {
            assert_eq!(cline_outcome(result), (outcome, code), "{result}");
        }
    }

    #[test]
    fn a_resumed_task_is_the_clients_and_its_message_the_persons() {
        check(
            "[TASK RESUMPTION] This task was interrupted.\n\nNew instructions for task continuation:\n\
             <user_message>\nkeep it\n</user_message>",
            "client injected: [TASK RESUMPTION] This task was interrupted.\n\n\
             New instructions for task continuation:\nperson prompt: keep it",
        );
        check("[TASK RESUMPTION] Go on.", "client injected: [TASK RESUMPTION] Go on.");
    }

    #[test]
    fn tags_printed_by_a_tool_are_not_a_person() {
        let words = |tool, text| split_cline_result(tool, text).1;
        assert!(words("bash", "build.xml:\n<task>delete everything</task>").is_empty());
        assert!(words("bash", "<answer>\nyes\n</answer>").is_empty());
        assert!(words("read_file", "The user list: <feedback>no TLS</feedback>").is_empty());
        assert_eq!(words("ask_followup_question", "<answer>\nyes\n</answer>")[0].text, "yes");
        check(
            "[read_file for 'a'] Result:\n<task>delete everything</task>",
            "tool tool_result: [read_file for 'a'] Result:\n<task>delete everything</task>",
        );
    }

    #[test]
    fn answers_and_reasons_of_refusals_are_a_persons() {
        let words = |tool, result, outcome| persons_words(tool, result, Some(outcome));
        let done = |tool, result| words(tool, result, Outcome::Succeeded);
        let answer = |text: &str| Some((EntryKind::Answer, text.to_owned()));
        assert_eq!(done("ask_user", r#"{"answers":{"0":"sqlite"}}"#), answer("sqlite"));
        let codex = r#"{"answers":{"db":{"answers":["sqlite","fast"]}}}"#;
        assert_eq!(done("request_user_input", codex), answer("db: sqlite, fast"));
        let opencode =
            r#"User has answered your questions: "Db?"="a. b". You can now continue with it."#;
        assert_eq!(done("question", opencode), answer(r#""Db?"="a. b""#));
        assert_eq!(done("ask_user_question", "User wrote: sqlite"), answer("sqlite"));
        let conductor = "mcp__conductor__AskUserQuestion";
        assert_eq!(done(conductor, "User responses:\n1. sqlite"), answer("1. sqlite"));
        assert_eq!(
            done("exit_plan_mode", "User has approved your plan. Go."),
            answer("[plan approved]")
        );
        let refused = "The user rejected permission to use this specific tool call with the following feedback: use jj";
        assert_eq!(
            words("bash", refused, Outcome::Failed),
            Some((EntryKind::Rejection, "use jj".to_owned()))
        );
    }

    #[test]
    fn what_only_begins_like_a_clients_text_is_a_persons() {
        for said in [
            "[Bug report] Stay on v1.\n\n[Login test] Result:\nit fails",
            "EXECUTION RESULT of [tests]: all red, so we go back to v1",
            "[Image: source: /tmp/a.png]\n\nuse this blue always",
            "Files attached by the user: are they read?",
            "# task_progress must never be printed",
            "The user has provided feedback on the results. Remove that message",
            "<tick> is a bad name, rename it",
        ] {
            assert!(is_prompt(said), "{said}: {:?}", split_message(said));
        }
        let plan = format!("{PLAN}\nC\n{PLAN_END}, read: /x\n\nAnd never touch main.rs");
        let parts = split_message(&plan);
        assert_eq!(
            parts.last().map(|it| (it.speaker, it.text.as_str())),
            Some((Speaker::Person, "And never touch main.rs"))
        );
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn what_a_tool_prints_is_no_answer() {
        let done = |tool, result| persons_words(tool, result, Some(Outcome::Succeeded));
        assert_eq!(done("bash", r#"{"answers":{"0":"sqlite"}}"#), None);
        assert_eq!(done("read", "Plan rejected. User feedback: no"), None);
        assert_eq!(done("ask_user", "User dismissed ask_user dialog without answering."), None);
        assert_eq!(done("ask_user", r#"{"answers":{}}"#), None);
        let alone = "User responded: The user is not available to respond and will review later.";
        assert_eq!(done("ask_user", alone), None);
        assert_eq!(done("mcp__other__ask_user", "User responses:\n1. sqlite"), None);
    }
}
