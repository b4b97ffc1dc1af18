//! The clients that we set up: one table of their folders, files, and names of events.

use super::codex_servers;
use super::commands::{COMMANDS, Command, CommandForm, command_file, opencode_plugin, own_file};
use super::input::Event;
use super::mcp_servers::{register, unregister};
use super::retention::{self, Deletion};
use super::settings::{HookSettings, Merged, install, remove};

/// Seconds that a client waits for a hook of ours. One takes milliseconds; this is for a busy machine.
const WAIT_SECS: u32 = 10;
pub(super) const COMMON_HOOKS: HookSettings =
    HookSettings { name: |event| Some(event.name()), timeout: WAIT_SECS };
/// Gemini CLI, and Qwen Code after it, count milliseconds.
const QWEN_HOOKS: HookSettings = HookSettings { timeout: WAIT_SECS * 1_000, ..COMMON_HOOKS };
const GEMINI_HOOKS: HookSettings = HookSettings { name: Event::gemini_name, ..QWEN_HOOKS };

/// A client that runs us.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: &'static str,
    /// Its flag, without dashes.
    pub(crate) flag: &'static str,
    /// Its folder in a project.
    pub(crate) folder: &'static str,
    /// Its folder in the user's home.
    pub(crate) home_folder: &'static str,
    /// Variable with its folder in place of the one in the home.
    pub(crate) variable: &'static str,
    /// Deletion of its transcripts, if it deletes any.
    pub(crate) deletion: Option<&'static Deletion>,
    /// The next step of the person.
    pub(crate) next: &'static str,
    contents: &'static [(&'static str, Content)],
    commands: Option<CommandForm>,
}

/// The clients, in the order in which they are listed.
pub(crate) const CLIENTS: &[Client] = &[
    Client {
        name: "Claude Code",
        flag: "claude-code",
        folder: ".claude",
        home_folder: ".claude",
        variable: "CLAUDE_CONFIG_DIR",
        deletion: Some(&retention::CLAUDE_CODE),
        next: "start a new session; `annalist context` shows what it begins with",
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
        next: "trust the project in Codex, and review the hooks there with `/hooks`: it runs no others",
        contents: &[
            ("hooks.json", Content::Hooks(&COMMON_HOOKS)),
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
        deletion: Some(&retention::GEMINI_CLI),
        next: "start a new session; in folders that are not trusted Gemini CLI runs no hooks of a project",
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
        next: "start a new session; `annalist context` shows what it begins with",
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
        next: "start a new session; the plugin brings hooks, tools and commands",
        contents: &[("plugin/annalist.js", Content::OpencodePlugin)],
        commands: None,
    },
];

/// Our part of a client's file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// Our hooks among a person's settings.
    Hooks(&'static HookSettings),
    /// Our server among a person's settings.
    Servers,
    /// The same in a file at the root of a project, which has no counterpart in the home.
    ProjectServers,
    /// The same in TOML.
    CodexServers,
    /// A plugin of our own.
    OpencodePlugin,
    /// A slash command of our own.
    Command(&'static Command, CommandForm),
}

impl Client {
    /// Our parts of its files, by their paths in its folder.
    pub(crate) fn contents(&self) -> Vec<(String, Content)> {
        let settings = self.contents.iter().map(|(path, content)| ((*path).to_owned(), *content));
        let commands = self.commands.iter().flat_map(|form| {
            COMMANDS.iter().map(|command| {
                let path = format!("commands/{}.{}", command.name, form.ending());
                (path, Content::Command(command, *form))
            })
        });
        settings.chain(commands).collect()
    }
}

impl Content {
    /// Adds our part to a file, or to a new one; it runs `program`.
    pub(crate) fn add(&self, existing: Option<&str>, program: &str) -> Merged {
        match self {
            Content::Hooks(hooks) => install(hooks, existing, program),
            Content::Servers | Content::ProjectServers => register(existing, program),
            Content::CodexServers => codex_servers::register(existing, program),
            Content::OpencodePlugin => own_file(existing, Some(&opencode_plugin(program))),
            Content::Command(command, form) => {
                own_file(existing, Some(&command_file(command, *form, program)))
            }
        }
    }

    /// Removes our part.
    pub(crate) fn remove(&self, existing: &str) -> Merged {
        match self {
            Content::Hooks(_) => remove(existing),
            Content::Servers | Content::ProjectServers => unregister(existing),
            Content::CodexServers => codex_servers::unregister(existing),
            Content::OpencodePlugin | Content::Command(..) => own_file(Some(existing), None),
        }
    }
}
