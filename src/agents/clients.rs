//! Supported clients: one table of their folders, files and event names.

use super::codex_servers;
use super::commands::{COMMANDS, Command, CommandForm, command_file, opencode_plugin, own_file};
use super::input::Event;
use super::mcp_servers::{register, unregister};
use super::retention::{self, Deletion};
use super::settings::{HookSettings, Merged, install, remove};

/// Hook timeout in seconds. A hook takes milliseconds; the rest is margin for a busy machine.
const WAIT_SECS: u32 = 10;
pub(super) const COMMON_HOOKS: HookSettings =
    HookSettings { name: |event| Some(event.name()), timeout: WAIT_SECS };
/// Gemini CLI, and Qwen Code, which is derived from it, count milliseconds.
const QWEN_HOOKS: HookSettings = HookSettings { timeout: WAIT_SECS * 1_000, ..COMMON_HOOKS };
const GEMINI_HOOKS: HookSettings = HookSettings { name: Event::gemini_name, ..QWEN_HOOKS };

/// Client that runs annalist.
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
            COMMANDS.iter().map(|command| {
                let path = format!("commands/{}.{}", command.name, form.ending());
                (path, Content::Command(command, *form))
            })
        });
        settings.chain(commands).collect()
    }
}

impl Content {
    /// Adds annalist's part, which runs `program`, to a file or to a new one.
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

    /// Removes annalist's part.
    pub(crate) fn remove(&self, existing: &str) -> Merged {
        match self {
            Content::Hooks(_) => remove(existing),
            Content::Servers | Content::ProjectServers => unregister(existing),
            Content::CodexServers => codex_servers::unregister(existing),
            Content::OpencodePlugin | Content::Command(..) => own_file(Some(existing), None),
        }
    }
}
