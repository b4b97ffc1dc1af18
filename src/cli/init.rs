//! `annalist init`: writes an annalist.toml with every key, and our hooks, tools and commands into client files.

use super::clients::{self, SetUp};
use super::output::{self, Failure};
use super::settings;
use crate::adapters::files;
use crate::agents::CLIENTS;
use crate::config::DEFAULT;
use crate::llm::prompt_files;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist init && annalist doctor       write annalist.toml, list the clients
                                         that are here, check everything
  annalist init --prompts prompts        the built-in prompts, to change them
  annalist init --claude-code            add our hooks, tools and commands to
                                         this project's .claude and .mcp.json
  annalist init --codex --gemini --user  for all projects of this user
  annalist init --claude-code --remove   remove them again

Of the prompts, extract.md, slice.md and retry.md ask about slices, consolidate.md how records stand to \
memories, reflect.md what records teach. Keep those that you change and set `prompts` to their folder.

A client gets hooks that `annalist hook` answers, the server of `annalist mcp`, and the commands \
/memory-sync, /memory-search, /memory-reflect and /memory-init; Codex has no files for commands. Changes are shown \
before they are written; what is not ours keeps every byte, and doing it twice changes nothing.")]
pub(super) struct Args {
    /// Print it instead of writing it
    #[arg(long, conflicts_with = "Clients")]
    print: bool,
    /// Write it into the user's configuration folder instead of this one
    #[arg(long, conflicts_with = "print")]
    user: bool,
    /// Write all built-in prompts into this folder instead; files that are there stay as they are
    #[arg(long, value_name = "DIR", conflicts_with_all = ["print", "user", "Clients"])]
    prompts: Option<PathBuf>,
    #[command(flatten)]
    clients: Clients,
    /// Set up clients for this project, which is the default
    #[arg(long, requires = "Clients", conflicts_with = "user")]
    project: bool,
    /// Remove our parts from clients
    #[arg(long, requires = "Clients")]
    remove: bool,
    /// Write without asking
    #[arg(long, requires = "Clients")]
    yes: bool,
}

#[derive(Debug, clap::Args)]
#[group(multiple = true)]
struct Clients {
    /// Set up Claude Code
    #[arg(long)]
    claude_code: bool,
    /// Set up Codex
    #[arg(long)]
    codex: bool,
    /// Set up Gemini CLI
    #[arg(long)]
    gemini: bool,
    /// Set up Qwen Code
    #[arg(long)]
    qwen: bool,
    /// Set up opencode, by a plugin
    #[arg(long)]
    opencode: bool,
}

impl Clients {
    fn has(&self, flag: &str) -> bool {
        let Clients { claude_code, codex, gemini, qwen, opencode } = self;
        let named = [
            ("claude-code", claude_code),
            ("codex", codex),
            ("gemini", gemini),
            ("qwen", qwen),
            ("opencode", opencode),
        ];
        named.contains(&(flag, &true))
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let chosen: Vec<_> = CLIENTS.iter().filter(|client| args.clients.has(client.flag)).collect();
    if !chosen.is_empty() {
        let Args { user, remove, yes, .. } = *args;
        return clients::set_up(&SetUp { clients: chosen, user, remove, yes });
    }
    if let Some(folder) = &args.prompts {
        return write_prompts(folder);
    }
    if args.print {
        output::line(DEFAULT.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = match args.user {
        false => PathBuf::from(settings::PROJECT_FILE),
        true => {
            settings::user_folder().map(|it| it.join(settings::FILE_NAME)).ok_or_else(|| {
                Failure::usage(
                    "neither XDG_CONFIG_HOME nor HOME is set: use `annalist init --print`",
                )
            })?
        }
    };
    clients::list()?;
    let written = files::create(&path, DEFAULT).map_err(|error| {
        Failure::failed(format!("{}: cannot be written: {error}", path.display()))
    })?;
    if !written {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path} is there already and is left as it is: `annalist init --print` shows the defaults"
        )));
    }
    output::line(&format!("wrote {}", path.display()))?;
    output::note("next: set base_url and model, then `annalist doctor`");
    Ok(ExitCode::SUCCESS)
}

fn write_prompts(folder: &Path) -> Result<ExitCode, Failure> {
    let (written, there) = prompt_files::write_built_in(folder).map_err(|error| {
        Failure::failed(format!("{}: cannot be written: {error}", folder.display()))
    })?;
    for path in &there {
        output::note(&format!("{} is there already and is left as it is", path.display()));
    }
    for path in &written {
        output::line(&format!("wrote {}", path.display()))?;
    }
    output::note(
        "next: set `prompts` in annalist.toml; `annalist test --prompt` measures a change of extraction",
    );
    Ok(ExitCode::SUCCESS)
}
