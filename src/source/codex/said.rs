//! What a user item says: prompts are cut out of what an editor wraps around them, and context
//! that the client sends in the user's name is told apart.

use crate::domain::{EntryKind, Speaker};
use crate::source::said::Said;
use crate::source::text::between;

/// Where an editor puts the prompt itself.
const REQUEST: &str = "## My request for Codex:";
/// How a review's result comes back into the conversation.
pub(super) const USER_ACTION: &str = "<user_action>";
/// How an interruption is told to the model.
pub(super) const TURN_ABORTED: &str = "<turn_aborted>";
/// What a person ran in a shell of their own.
pub(super) const SHELL: &str = "<user_shell_command>";

/// Reads one text in the user's name.
pub(super) fn read(text: &str) -> Said {
    const INJECTED: [&str; 14] = [
        "<environment_context>",
        "# AGENTS.md instructions for",
        "<user_instructions>",
        "<permissions instructions>",
        "<recommended_plugins>",
        "<skill>",
        "<skills_instructions>",
        "<model_switch>",
        "<collaboration_mode>",
        "<apps_instructions>",
        "<plugins_instructions>",
        "<personality_spec>",
        "<INSTRUCTIONS>",
        "<system-reminder>",
    ];
    const NOTICES: [&str; 3] = ["<subagent_notification>", TURN_ABORTED, USER_ACTION];
    let text = text.trim();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    if starts(&INJECTED) {
        Said::injected(text)
    } else if starts(&NOTICES) {
        Said::new(Speaker::Client, EntryKind::Notice, text)
    } else if starts(&[SHELL]) {
        let command = between(text, "command").unwrap_or(text).trim();
        Said::new(Speaker::Person, EntryKind::Command, command)
    } else {
        Said::new(Speaker::Person, EntryKind::Prompt, request(text))
    }
}

/// The prompt inside an editor's wrapper.
fn request(text: &str) -> &str {
    let wrapped =
        text.starts_with("# Context from my IDE setup") || text.starts_with("# Files mentioned by");
    match text.split_once(REQUEST) {
        Some((_, request)) if wrapped => request.trim(),
        Some(_) | None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let said = read(text);
        let skip = said.skip.map_or("", |_| " skipped");
        let shown = format!("{} {}{skip}: {}", said.speaker.name(), said.kind.name(), said.text);
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_prompt_is_cut_out_of_its_wrapper() {
        let wrapped = "\n# Context from my IDE setup:\n## Open tabs\n- a.rs\n\n## My request for Codex:\nfix a.rs\n";
        check(wrapped, "person prompt: fix a.rs");
        check(
            "# Files mentioned by the user:\n- a\n",
            "person prompt: # Files mentioned by the user:\n- a",
        );
        check(
            "say ## My request for Codex: twice",
            "person prompt: say ## My request for Codex: twice",
        );
    }

    #[test]
    fn context_in_the_users_name_is_injected() {
        let text = "<environment_context>\n<cwd>/x</cwd>";
        check(text, &format!("client injected skipped: {text}"));
    }

    #[test]
    fn notices_and_shell_commands_are_told_apart() {
        check("<subagent_notification>x", "client notice: <subagent_notification>x");
        let shell = "<user_shell_command>\n<command>\nls\n</command>\n<result>a</result>";
        check(shell, "person command: ls");
    }
}
