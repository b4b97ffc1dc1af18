//! `annalist init`: an annalist.toml with every key; our hooks in the settings of Claude Code.

use super::output::{self, Failure};
use super::{claude_code, settings};
use crate::adapters::files;
use crate::config::DEFAULT;
use crate::llm::prompt_files;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist init && annalist doctor       an annalist.toml here, then check everything
  annalist init --prompts prompts        the built-in prompts as files, to change them
  annalist init --claude-code            add our hooks to this project's
                                         .claude/settings.json
  annalist init --claude-code --user     to ~/.claude/settings.json, for all projects
  annalist init --claude-code --remove   remove them again

Of the prompts, extract.md, slice.md and retry.md ask about slices, consolidate.md how records stand to \
memories, reflect.md what records teach. Keep those that you change and set `prompts` to their folder.

Settings of Claude Code are shown before they are written; what is not ours keeps every byte, and doing \
it twice changes nothing.")]
pub(super) struct Args {
    /// Print it instead of writing it
    #[arg(long, conflicts_with = "claude_code")]
    print: bool,
    /// Write it into the user's configuration folder instead of this one
    #[arg(long, conflicts_with = "print")]
    pub(super) user: bool,
    /// Write all built-in prompts into this folder instead; files that are there stay as they are
    #[arg(long, value_name = "DIR", conflicts_with_all = ["print", "user", "claude_code"])]
    prompts: Option<PathBuf>,
    /// Put our hooks into the settings of Claude Code
    #[arg(long)]
    pub(super) claude_code: bool,
    /// Into those of the project, which is the default
    #[arg(long, requires = "claude_code", conflicts_with = "user")]
    pub(super) project: bool,
    /// Take our hooks out of them
    #[arg(long, requires = "claude_code")]
    pub(super) remove: bool,
    /// Write without asking
    #[arg(long, requires = "claude_code")]
    pub(super) yes: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.claude_code {
        return claude_code::run(args);
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
