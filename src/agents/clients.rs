//! Supported clients: one table of their folders, files and event names, and of where and for how
//! long they keep transcripts; and the files that annalist owns in a client's folder: slash commands,
//! and opencode's plugin. A user's file of the same name is left alone.

use super::input::Event;
use super::servers::{register, register_in_codex, unregister, unregister_in_codex};
use super::settings::{HookSettings, Merged, install, quoted, remove};
use crate::text::front_matter;
use crate::text::lenient_json::decode;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Hook timeout in seconds. A hook takes milliseconds; the rest is margin for a busy machine.
const WAIT_SECS: u32 = 10;
pub(super) const COMMON_HOOKS: HookSettings =
    HookSettings { name: |event| Some(event.name()), timeout: |_| WAIT_SECS, comments: false };
/// Codex warns at each start of a longer timeout for the end of a session.
pub(super) const CODEX_HOOKS: HookSettings = HookSettings {
    timeout: |event| if event == Event::SessionEnd { 3 } else { WAIT_SECS },
    ..COMMON_HOOKS
};
/// Gemini CLI, and Qwen Code, which is derived from it, count milliseconds and read comments.
const QWEN_HOOKS: HookSettings =
    HookSettings { timeout: |_| WAIT_SECS * 1_000, comments: true, ..COMMON_HOOKS };
const GEMINI_HOOKS: HookSettings = HookSettings { name: Event::gemini_name, ..QWEN_HOOKS };

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: &'static str,
    /// Command-line flag, without dashes.
    pub(crate) flag: &'static str,
    /// Folder in a project.
    pub(crate) folder: &'static str,
    /// Folder in the user's home.
    pub(crate) home_folder: &'static str,
    /// Environment variable that overrides the home folder.
    pub(crate) variable: &'static str,
    /// Deletion of transcripts, if the client deletes any.
    pub(crate) deletion: Option<&'static Deletion>,
    /// Next step for the user.
    pub(crate) next: &'static str,
    contents: &'static [(&'static str, Content)],
    commands: Option<CommandForm>,
}

/// Clients, in the order in which they are listed.
pub(crate) const CLIENTS: &[Client] = &[
    Client {
        name: "Claude Code",
        flag: "claude-code",
        folder: ".claude",
        home_folder: ".claude",
        variable: "CLAUDE_CONFIG_DIR",
        deletion: Some(&CLAUDE_CODE_DELETION),
        next: "start a new session; `annalist context` shows its start block",
        contents: &[
            ("settings.json", Content::Hooks(&COMMON_HOOKS)),
            (".mcp.json", Content::ProjectServers),
        ],
        commands: Some(CommandForm::Markdown("$ARGUMENTS")),
    },
    Client {
        name: "Codex",
        flag: "codex",
        folder: ".codex",
        home_folder: ".codex",
        variable: "CODEX_HOME",
        deletion: None,
        next: "trust the project in Codex, and review its hooks with `/hooks`: others do not run",
        contents: &[
            ("hooks.json", Content::Hooks(&CODEX_HOOKS)),
            ("config.toml", Content::CodexServers),
        ],
        commands: None,
    },
    Client {
        name: "Gemini CLI",
        flag: "gemini",
        folder: ".gemini",
        home_folder: ".gemini",
        variable: "",
        deletion: Some(&GEMINI_CLI_DELETION),
        next: "start a new session; Gemini CLI runs hooks of a project only in trusted folders",
        contents: &[
            ("settings.json", Content::Hooks(&GEMINI_HOOKS)),
            ("settings.json", Content::Servers),
        ],
        commands: Some(CommandForm::Toml("{{args}}")),
    },
    Client {
        name: "Qwen Code",
        flag: "qwen",
        folder: ".qwen",
        home_folder: ".qwen",
        variable: "",
        deletion: None,
        next: "start a new session; `annalist context` shows its start block",
        contents: &[
            ("settings.json", Content::Hooks(&QWEN_HOOKS)),
            ("settings.json", Content::Servers),
        ],
        commands: Some(CommandForm::Markdown("{{args}}")),
    },
    Client {
        name: "opencode",
        flag: "opencode",
        folder: ".opencode",
        home_folder: ".config/opencode",
        variable: "",
        deletion: None,
        next: "start a new session; the plugin adds hooks, tools and commands",
        contents: &[("plugin/annalist.js", Content::OpencodePlugin)],
        commands: None,
    },
];

/// annalist's part of a client's file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// Hooks in the user's settings.
    Hooks(&'static HookSettings),
    /// MCP server in the user's settings.
    Servers,
    /// MCP server in a file at a project's root, without a counterpart in the home.
    ProjectServers,
    /// MCP server in Codex's TOML settings.
    CodexServers,
    /// The plugin for opencode, a file of its own.
    OpencodePlugin,
    /// A slash command, a file of its own.
    Command(&'static Command, CommandForm),
}

impl Client {
    /// Returns annalist's parts with their paths in the client's folder.
    pub(crate) fn contents(&self) -> Vec<(String, Content)> {
        let settings = self.contents.iter().map(|(path, content)| ((*path).to_owned(), *content));
        let commands = self.commands.iter().flat_map(|form| {
            let path = |it: &Command| format!("commands/{}.{}", it.name, form.ending());
            COMMANDS.iter().map(move |it| (path(it), Content::Command(it, *form)))
        });
        settings.chain(commands).collect()
    }
}

impl Content {
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Content::Servers | Content::ProjectServers | Content::CodexServers)
    }

    /// Adds annalist's part, which runs `program`, to a file or to a new one.
    pub(crate) fn add(&self, existing: Option<&str>, program: &str) -> Merged {
        match self {
            Content::Hooks(hooks) => install(hooks, existing, program),
            Content::Servers => register(existing, true, program),
            Content::ProjectServers => register(existing, false, program),
            Content::CodexServers => register_in_codex(existing, program),
            Content::OpencodePlugin => own_file(existing, Some(&opencode_plugin(program))),
            Content::Command(command, form) => {
                own_file(existing, Some(&command_file(command, *form, program)))
            }
        }
    }

    pub(crate) fn remove(&self, existing: &str) -> Merged {
        match self {
            Content::Hooks(_) => remove(existing),
            Content::Servers | Content::ProjectServers => unregister(existing),
            Content::CodexServers => unregister_in_codex(existing),
            Content::OpencodePlugin | Content::Command(..) => own_file(Some(existing), None),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Deletion {
    /// Folder of the transcripts, relative to the client's folder.
    pub(crate) folder: &'static str,
    /// True for the path of a transcript in that folder.
    pub(crate) is_transcript: fn(&Path) -> bool,
    /// Hours from a transcript's last change to its deletion, given the text of the client's
    /// settings; `None` if none are deleted.
    pub(crate) hours: fn(&str) -> Option<u32>,
}

/// Name of the settings file of clients that delete transcripts.
pub(crate) const SETTINGS: &str = "settings.json";

const CLAUDE_CODE_DELETION: Deletion = Deletion {
    folder: "projects",
    is_transcript: |path| has_ending(path, &["jsonl"]),
    hours: |settings| {
        let (settings, _) = decode(settings, &["cleanupPeriodDays"]);
        let days = settings.get("cleanupPeriodDays").and_then(Value::as_u64);
        let days = days.map_or(DAYS_DEFAULT, |days| u32::try_from(days).unwrap_or(u32::MAX));
        Some(days.saturating_mul(24))
    },
};

const GEMINI_CLI_DELETION: Deletion = Deletion {
    folder: "tmp",
    is_transcript: |path| {
        let folder = path.parent().and_then(Path::file_name);
        has_ending(path, &["json", "jsonl"]) && folder.is_some_and(|name| name == "chats")
    },
    hours: gemini_cli_hours,
};

/// Default retention of Claude Code and Gemini CLI, in days.
const DAYS_DEFAULT: u32 = 30;

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|found| endings.iter().any(|ending| found == *ending))
}

fn gemini_cli_hours(settings: &str) -> Option<u32> {
    let (settings, _) = decode(settings, &["general"]);
    let retention = settings.get("general")?.get("sessionRetention")?;
    retention.get("enabled")?.as_bool().filter(|enabled| *enabled)?;
    let Some(age) = retention.get("maxAge").and_then(Value::as_str) else {
        // Sessions may then be limited by number, which gives no time.
        return retention.get("maxCount").is_none().then_some(DAYS_DEFAULT * 24);
    };
    let unit = age.chars().last()?;
    let number: u32 = age.strip_suffix(unit)?.parse().ok()?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        'm' => 30 * 24,
        _ => return None,
    };
    Some(number.saturating_mul(hours))
}

/// Line that identifies a file made by annalist.
const MARK: &str = "Made by `annalist init`, which updates and removes it.";
#[derive(Debug)]
pub(crate) struct Command {
    name: &'static str,
    /// File of the plugin for Claude Code, from which those of other clients are made.
    text: &'static str,
}

const COMMANDS: &[Command] = &[
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
    fn ending(self) -> &'static str {
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

fn command_file(command: &Command, form: CommandForm, program: &str) -> String {
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

fn opencode_plugin(program: &str) -> String {
    let command = |it: &Command| {
        let template = it.prompt("$ARGUMENTS", program);
        (it.name.to_owned(), json!({"description": it.description(), "template": template}))
    };
    let commands: Map<String, Value> = COMMANDS.iter().map(command).collect();
    include_str!("opencode.js")
        .replace("\"MARK\"", MARK)
        .replace("\"PROGRAM\"", &Value::from(program).to_string())
        .replace("\"COMMANDS\"", &format!("{:#}", Value::from(commands)))
}

/// Creates, updates or removes a file that annalist owns.
fn own_file(existing: Option<&str>, text: Option<&str>) -> Merged {
    match (existing, text) {
        (Some(existing), _) if !existing.contains(MARK) => Merged::NotOurs,
        _ if existing == text => Merged::Unchanged,
        (_, Some(text)) => Merged::Changed(text.to_owned()),
        (_, None) => Merged::Removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(client: &Deletion, settings: &str, expected: Option<u32>) {
        assert_eq!((client.hours)(settings), expected, "{settings}");
    }

    #[test]
    fn a_transcript_is_kept_for_as_long_as_the_settings_say() {
        check(&CLAUDE_CODE_DELETION, "", Some(720));
        check(&CLAUDE_CODE_DELETION, r#"{"model": "opus"}"#, Some(720));
        check(&CLAUDE_CODE_DELETION, r#"{"cleanupPeriodDays": 7}"#, Some(168));
        check(&CLAUDE_CODE_DELETION, r#"{"cleanupPeriodDays": 99999999999}"#, Some(u32::MAX));
        check(&GEMINI_CLI_DELETION, "", None);
        let with = |inner: &str| format!(r#"{{"general": {{"sessionRetention": {{{inner}}}}}}}"#);
        check(&GEMINI_CLI_DELETION, &with(r#""enabled": false, "maxAge": "7d""#), None);
        check(
            &GEMINI_CLI_DELETION,
            &with("\"enabled\": true, // on\n\"maxAge\": \"7d\""),
            Some(168),
        );
        check(&GEMINI_CLI_DELETION, &with(r#""enabled": true, "maxAge": "36h""#), Some(36));
        check(&GEMINI_CLI_DELETION, &with(r#""enabled": true, "maxAge": "soon""#), None);
        check(&GEMINI_CLI_DELETION, &with(r#""enabled": true"#), Some(720));
        check(&GEMINI_CLI_DELETION, &with(r#""enabled": true, "maxCount": 50"#), None);
    }

    #[test]
    fn a_transcript_is_known_by_its_place() {
        let is = |client: &Deletion, path: &str| (client.is_transcript)(Path::new(path));
        assert!(is(&CLAUDE_CODE_DELETION, "projects/-home-dev/a/subagents/agent-1.jsonl"));
        assert!(!is(&CLAUDE_CODE_DELETION, "projects/-home-dev/memory/MEMORY.md"));
        assert!(is(&GEMINI_CLI_DELETION, "tmp/1f/chats/session-2026-11-01.json"));
        assert!(!is(&GEMINI_CLI_DELETION, "tmp/1f/logs.json"));
    }

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
