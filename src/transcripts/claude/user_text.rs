//! Texts of user records and their speakers: most `user` records were not typed by a person.

use crate::domain::{EntryKind, Speaker};
use crate::transcripts::client_text::{ClientText, accepted_plan};
use crate::transcripts::fields::{Block, Content};
use crate::transcripts::text::{clean, mark, push_piece};
use std::borrow::Cow;

/// Replacement for context blocks.
const CONTEXT: &str = "[context of the editor or of a hook]";

pub(super) fn read(text: &str) -> ClientText {
    let (rest, injected) = without_context(text);
    let text = rest.trim();
    if text.is_empty() && injected {
        return ClientText::injected(CONTEXT);
    }
    // Typed after `#`, for the client's memory.
    if let Some(rule) = text.strip_prefix("<user-memory-input>") {
        return prompt(rule.trim_end_matches("</user-memory-input>").trim());
    }
    ClientText::of_client(text).unwrap_or_else(|| prompt(text))
}

fn prompt(text: impl Into<String>) -> ClientText {
    ClientText::new(Speaker::Person, EntryKind::Prompt, text)
}

/// Removes leading context blocks that are closed; returns whether there were any.
fn without_context(text: &str) -> (&str, bool) {
    const BLOCKS: [&str; 6] = [
        "ide_opened_file", "ide_selection", "ide_diagnostics", "user-prompt-submit-hook",
        "local-command-caveat", "system_instruction",
    ];
    let mut rest = text.trim_start();
    let mut any = false;
    // Each iteration removes at least one byte.
    while let Some(tag) = BLOCKS.iter().find(|tag| rest.starts_with(&format!("<{tag}>")))
        && let Some((_, after)) = rest.split_once(&format!("</{tag}>"))
    {
        (rest, any) = (after.trim_start(), true);
    }
    (rest, any)
}

/// Reads every text of a user record's content; merges adjacent texts of one speaker and kind.
pub(super) fn read_all(content: Content<'_>) -> Vec<ClientText> {
    let mut all: Vec<ClientText> = Vec::new();
    let texts = match content {
        Content::None => Vec::new(),
        Content::Text(text) => vec![read(&clean(text))],
        Content::Blocks(blocks) => blocks.into_iter().filter_map(read_block).collect(),
    };
    let split = |text: ClientText| accepted_plan(&text.text).unwrap_or_else(|| vec![text]);
    for text in texts.into_iter().flat_map(split) {
        match all.last_mut() {
            Some(last) if (last.speaker, last.kind) == (text.speaker, text.kind) => {
                push_piece(&mut last.text, &text.text, "\n\n");
            }
            _ => all.push(text),
        }
    }
    all.retain(|text| !text.text.is_empty());
    all
}

fn read_block(block: Block<'_>) -> Option<ClientText> {
    match block.kind.get() {
        "image" | "document" => Some(prompt(mark(&block))),
        "text" => Some(read(&clean(block.text.0.unwrap_or(Cow::Borrowed(""))))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let content = Content::Text(Cow::Borrowed(text));
        let all = read_all(content);
        let shown: Vec<_> = all
            .iter()
            .map(|said| {
                let skip = said.skip.map_or("", |_| " skipped");
                format!("{} {}{skip}: {}", said.speaker.name(), said.kind.name(), said.text)
            })
            .collect();
        assert_eq!(shown.join(" | "), expected);
    }

    #[test]
    fn what_a_person_typed_is_a_prompt() {
        check(" make it so\n", "person prompt: make it so");
        check(
            "Implement the following plan:\n1",
            "person prompt: Implement the following plan:\n1",
        );
        check("<user-memory-input>use tabs</user-memory-input>", "person prompt: use tabs");
        for words in ["<div> is wrong here", "<system_instruction> is ignored, fix it"] {
            check(words, &format!("person prompt: {words}"));
        }
    }

    #[test]
    fn slash_commands_have_name_and_arguments() {
        let long = "<command-name>/review</command-name>\n <command-message>review</command-message>\n \
                    <command-args>12 now</command-args>";
        check(long, "person command: /review 12 now");
        let short = "<command-message>tidy</command-message>";
        check(short, "person command: /tidy");
    }

    #[test]
    fn shell_escapes_are_commands_and_their_output_is_a_tools() {
        check("<bash-input> ls -l</bash-input>", "person command: !ls -l");
        check("<bash-stdout>a</bash-stdout><bash-stderr>b</bash-stderr>", "tool tool_result: a\nb");
    }

    #[test]
    fn what_the_client_says_is_not_a_prompt() {
        check("[Request interrupted by user]", "client notice: [Request interrupted by user]");
        check("Operation stopped by hook: no", "client notice: Operation stopped by hook: no");
        check(
            "Caveat: The messages below x",
            "client injected skipped: Caveat: The messages below x",
        );
        check("<local-command-stdout>bye</local-command-stdout>", "client notice: bye");
        check(
            "Base directory for this skill: /x",
            "client injected skipped: Base directory for this skill: /x",
        );
    }

    #[test]
    fn what_other_agents_and_services_send_is_not_a_prompt() {
        for text in [
            "<agent-notification>\n<agent-id>a</agent-id>\n</agent-notification>",
            "<bash-notification>\n<status>x</status>\n</bash-notification>",
            "Another Claude session sent a message:\n<cross-session-message from=\"a\">x</cross-session-message>",
            "<channel source=\"ci\">failed</channel>",
            "<mcp-resource-update server=\"a\" uri=\"b\">x</mcp-resource-update>",
        ] {
            check(text, &format!("client notice: {text}"));
        }
        let asked = "Another Claude session sent a message: what is that?";
        check(asked, &format!("person prompt: {asked}"));
        let hook = "Stop hook feedback:\n- [lint]: no";
        check(hook, &format!("client injected skipped: {hook}"));
    }

    #[test]
    fn an_accepted_plan_is_the_agents_and_the_sentence_about_it_a_persons() {
        let plan = "Implement the following plan:\n\n# A\n\n\nIf you need specific details from before exiting plan mode, read: /x";
        check(plan, &format!("client injected skipped: {plan}"));
        let told = format!("{plan}\n\nUser feedback on this plan: use tabs");
        check(&told, &format!("client injected skipped: {plan} | person answer: use tabs"));
    }

    #[test]
    fn context_of_the_editor_is_taken_off_a_prompt() {
        let context = "<ide_opened_file>a.rs</ide_opened_file>";
        check(&format!("{context}\nrename it"), "person prompt: rename it");
        let instruction = "<system_instruction>\nRead it.\n</system_instruction>";
        check(&format!("{instruction}\n\nrename it"), "person prompt: rename it");
        check(context, "client injected skipped: [context of the editor or of a hook]");
    }

    #[test]
    fn a_reminder_alone_leaves_nothing() {
        check("<system-reminder>x</system-reminder>", "");
    }
}
