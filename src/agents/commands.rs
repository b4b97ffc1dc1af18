//! Files that annalist owns in a client's folder: slash commands, and opencode's plugin. A user's
//! file of the same name is left alone.

use super::settings::{Merged, quoted};
use serde_json::{Map, Value, json};

/// Line that identifies a file made by annalist.
const MARK: &str = "Made by `annalist init`, which updates and removes it.";
/// Placeholder for a command's arguments.
const ARGUMENTS: &str = "ARGUMENTS";
/// Placeholder for the program that runs annalist.
const PROGRAM: &str = "PROGRAM";

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    description: &'static str,
    prompt: &'static str,
}

pub(crate) const COMMANDS: &[Command] = &[
    Command {
        name: "memory-sync",
        description: "Add this session so far to the project's memory",
        prompt: "\
Add this session so far to the project's memory: run `PROGRAM memory sync`, with the `--session` that annalist
named for this session if it named one. Do not write memory files yourself.

Then say in one or two sentences what was added or changed. If the command fails, show what it printed.",
    },
    Command {
        name: "memory-search",
        description: "Search this project's memory: decisions, requests, attempts",
        prompt: "\
Search this project's memory for: ARGUMENTS

Run `PROGRAM search WORDS` with a few words that describe it best; `--open`, `--failed` and `--since 7d` narrow it down.
`PROGRAM why ID` shows the quotes that support a hit.

Answer only from the output, with the ids, and say what is superseded or contradicted. If nothing is found, say so.",
    },
    Command {
        name: "memory-reflect",
        description: "Look back at how the work went, and draw lessons",
        prompt: "\
Look back at how the work went. ARGUMENTS

Run `PROGRAM memory reflect`, with `--since DATE` if a time is named. Sum up the result and the lessons that
hold in a few lines. Ask whether to keep it; if so, run the same command with `--write`.",
    },
    Command {
        name: "memory-init",
        description: "Set up this project's memory",
        prompt: "\
Set up this project's memory:

1. Run `PROGRAM memory init`.
2. Read the README and the files that describe the architecture, and fill in product-context.md in the memory directory:
   overview, architecture, constraints, non-goals. Write only what the files or I say; ask about what is missing.
3. Run `PROGRAM doctor`, and list what is left to do, one line each.",
    },
];

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
    fn prompt(&self, arguments: &str, program: &str) -> String {
        self.prompt.replace(PROGRAM, &quoted(program)).replace(ARGUMENTS, arguments)
    }
}

/// Contents of a slash command's file.
pub(crate) fn command_file(command: &Command, form: CommandForm, program: &str) -> String {
    let description = command.description;
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
            let value = json!({"description": command.description, "template": template});
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
            assert!(prompt.contains("`'/my tools/annalist' ") && !prompt.contains(PROGRAM));
            assert_eq!(table["description"].as_str(), Some(command.description));
            let text = command_file(command, CommandForm::Markdown("$ARGUMENTS"), "annalist");
            let (head, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n\n").unwrap();
            assert!(head.starts_with("description: \"") && body.contains("`annalist "), "{text}");
            assert_eq!(body.contains("$ARGUMENTS"), command.prompt.contains(ARGUMENTS));
        }
    }

    #[test]
    fn the_plugin_for_marketplaces_has_the_same_commands() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/plugins/claude-code/commands/");
        for command in COMMANDS {
            let text = command_file(command, CommandForm::Markdown("$ARGUMENTS"), "annalist");
            let published = std::fs::read_to_string(format!("{folder}{}.md", command.name));
            assert_eq!(published.unwrap(), text.replace(&format!("# {MARK}\n"), ""));
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
