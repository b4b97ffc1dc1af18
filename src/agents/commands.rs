//! Files that annalist owns in a client's folder: slash commands, and opencode's plugin. A user's
//! file of the same name is left alone.

use super::settings::{Merged, quoted};
use crate::text::front_matter;
use serde_json::{Map, Value, json};

/// Line that identifies a file made by annalist.
const MARK: &str = "Made by `annalist init`, which updates and removes it.";
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// File of the plugin for Claude Code, from which those of other clients are made.
    text: &'static str,
}

pub(crate) const COMMANDS: &[Command] = &[
    command("memory-sync", include_str!("../../plugins/claude-code/commands/memory-sync.md")),
    command("memory-search", include_str!("../../plugins/claude-code/commands/memory-search.md")),
    command("memory-reflect", include_str!("../../plugins/claude-code/commands/memory-reflect.md")),
    command("memory-init", include_str!("../../plugins/claude-code/commands/memory-init.md")),
];

const fn command(name: &'static str, text: &'static str) -> Command {
    Command { name, text }
}

/// File format of a client's slash commands, with its placeholder for arguments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CommandForm {
    Markdown(&'static str),
    Toml(&'static str),
}

impl CommandForm {
    pub(super) fn ending(self) -> &'static str {
        match self {
            CommandForm::Markdown(_) => "md",
            CommandForm::Toml(_) => "toml",
        }
    }
}

impl Command {
    fn description(&self) -> &str {
        let front = front_matter::split(self.text).map_or("", |(front, _)| front);
        let description = front_matter::pairs(front).find(|(key, _)| *key == "description");
        description.map_or("", |(_, value)| value.trim_matches('"'))
    }

    /// Prompt for a client with this placeholder for arguments, in which `program` is run.
    fn prompt(&self, arguments: &str, program: &str) -> String {
        let prompt = front_matter::split(self.text).map_or("", |(_, prompt)| prompt).trim();
        let prompt = prompt.replace("`annalist ", &format!("`{} ", quoted(program)));
        prompt.replace("$ARGUMENTS", arguments)
    }
}

/// Contents of a slash command's file.
pub(crate) fn command_file(command: &Command, form: CommandForm, program: &str) -> String {
    let description = command.description();
    match form {
        CommandForm::Markdown(arguments) => {
            let prompt = command.prompt(arguments, program);
            format!("---\ndescription: \"{description}\"\n# {MARK}\n---\n\n{prompt}\n")
        }
        CommandForm::Toml(arguments) => {
            let text = |text: String| toml::Value::String(text).to_string();
            let prompt = text(command.prompt(arguments, program) + "\n");
            format!("# {MARK}\ndescription = {}\nprompt = {prompt}\n", text(description.into()))
        }
    }
}

/// Source of opencode's plugin.
pub(super) fn opencode_plugin(program: &str) -> String {
    let commands: Map<String, Value> = COMMANDS
        .iter()
        .map(|command| {
            let template = command.prompt("$ARGUMENTS", program);
            let value = json!({"description": command.description(), "template": template});
            (command.name.to_owned(), value)
        })
        .collect();
    include_str!("opencode.js")
        .replace("\"MARK\"", MARK)
        .replace("\"PROGRAM\"", &Value::from(program).to_string())
        .replace("\"COMMANDS\"", &format!("{:#}", Value::from(commands)))
}

/// Creates, updates or removes a file that annalist owns.
pub(super) fn own_file(existing: Option<&str>, text: Option<&str>) -> Merged {
    match (existing, text) {
        (Some(existing), _) if !existing.contains(MARK) => Merged::NotOurs,
        (existing, Some(text)) if existing == Some(text) => Merged::Unchanged,
        (_, Some(text)) => Merged::Changed(text.to_owned()),
        (Some(_), None) => Merged::Removed,
        (None, None) => Merged::Unchanged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_what_their_clients_read() {
        for command in COMMANDS {
            let text = command_file(command, CommandForm::Toml("{{args}}"), "/my tools/annalist");
            let table: toml::Table = toml::from_str(&text).unwrap();
            let prompt = table["prompt"].as_str().unwrap();
            assert!(prompt.contains("`'/my tools/annalist' ") && !prompt.contains("`annalist "));
            assert_eq!(table["description"].as_str(), Some(command.description()));
            let text = command_file(command, CommandForm::Markdown("$ARGUMENTS"), "annalist");
            let (head, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n\n").unwrap();
            assert!(head.starts_with("description: \"") && body.contains("`annalist "), "{text}");
            assert_eq!(body.contains("$ARGUMENTS"), command.text.contains("$ARGUMENTS"));
        }
    }

    #[test]
    fn a_file_of_ours_is_updated_and_removed_and_one_of_a_person_stays() {
        let text = opencode_plugin("annalist");
        assert!(!text.contains("\"COMMANDS\"") && text.contains("const program = \"annalist\""));
        assert_eq!(own_file(None, Some(&text)), Merged::Changed(text.clone()));
        assert_eq!(own_file(Some(&text), Some(&text)), Merged::Unchanged);
        let older = text.replace("annalist\"", "/old/annalist\"");
        assert_eq!(own_file(Some(&older), Some(&text)), Merged::Changed(text.clone()));
        assert_eq!(own_file(Some(&older), None), Merged::Removed);
        for text in [Some(text.as_str()), None] {
            assert_eq!(own_file(Some("export const Theirs = 1\n"), text), Merged::NotOurs);
        }
        assert_eq!(own_file(None, None), Merged::Unchanged);
    }
}
