//! `annalist init`: an annalist.toml with every key; our hooks and tools in the files of Claude Code.

use super::arguments::is_agreed;
use super::output::{self, Failure};
use super::settings;
use crate::adapters::files;
use crate::agents::{Merged, changes, install, register, remove, unregister};
use crate::config::DEFAULT;
use crate::llm::prompt_files;
use crate::privacy::{Gate, Pii};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The file in the folder of the client.
const SETTINGS: &str = "settings.json";
/// The file with the servers of a project.
const SERVERS: &str = ".mcp.json";
/// The client's folder, in a project and in the user's home.
const CLIENT: &str = ".claude";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist init && annalist doctor       write annalist.toml, check everything
  annalist init --prompts prompts        the built-in prompts, to change them
  annalist init --claude-code            add our hooks to this project's
                                         .claude/settings.json, and our
                                         tools to its .mcp.json
  annalist init --claude-code --user     for all projects of this user
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
    user: bool,
    /// Write all built-in prompts into this folder instead; files that are there stay as they are
    #[arg(long, value_name = "DIR", conflicts_with_all = ["print", "user", "claude_code"])]
    prompts: Option<PathBuf>,
    /// Put our hooks into the settings of Claude Code, and our tools into the servers of the project
    #[arg(long)]
    claude_code: bool,
    /// Into those of the project, which is the default
    #[arg(long, requires = "claude_code", conflicts_with = "user")]
    project: bool,
    /// Take both out of them
    #[arg(long, requires = "claude_code")]
    remove: bool,
    /// Write without asking
    #[arg(long, requires = "claude_code")]
    yes: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.claude_code {
        return set_up_client(args);
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

/// A file of Claude Code in which we have a part.
struct ClientFile {
    path: PathBuf,
    /// Our part, in words.
    what: &'static str,
    add: fn(Option<&str>, &str) -> Merged,
    remove: fn(&str) -> Merged,
}

/// Adds our hooks to the settings of Claude Code and our server to its project, or removes them, after the person has
/// seen the change.
fn set_up_client(args: &Args) -> Result<ExitCode, Failure> {
    let hooks = |path| ClientFile { path, what: "hooks", add: install, remove };
    if args.user {
        let code = set_up(args, &hooks(of_user()?))?;
        let how = if args.remove { "remove" } else { "add" };
        let what = if args.remove { "" } else { " -- annalist mcp" };
        output::note(&format!(
            "tools for all projects: `claude mcp {how} --scope user annalist{what}`"
        ));
        return Ok(code);
    }
    let project = project()?;
    let code = set_up(args, &hooks(project.join(CLIENT).join(SETTINGS)))?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let path = project.join(SERVERS);
    set_up(args, &ClientFile { path, what: "tools", add: register, remove: unregister })
}

fn set_up(args: &Args, file: &ClientFile) -> Result<ExitCode, Failure> {
    let ClientFile { path, what, add, remove } = file;
    let name = path.display().to_string();
    let existing = files::read_if_there(path)
        .map_err(|error| Failure::failed(format!("{name}: cannot be read: {error}")))?;
    let merged = match (args.remove, &existing) {
        (false, existing) => add(existing.as_deref(), &settings::program()?),
        (true, Some(text)) => remove(text),
        (true, None) => Merged::Unchanged,
    };
    let after = match merged {
        Merged::Changed(after) => after,
        Merged::Unchanged => {
            let how = if args.remove { "holds none of our" } else { "has our" };
            output::line(&format!("{name} {how} {what}: nothing to change"))?;
            return Ok(ExitCode::SUCCESS);
        }
        Merged::Malformed(finding) => {
            return Err(Failure::failed(format!("{name}: {}", finding.detail)));
        }
    };
    let before = existing.as_deref().unwrap_or_default();
    output::line(&name)?;
    output::line(changes(before, &after, &Gate::new(&Pii::ALL)).as_str().trim_end())?;
    if !args.yes && !is_wanted(&name)? {
        output::note("nothing was written");
        return Ok(ExitCode::from(output::FAILED));
    }
    write(path, existing.as_deref(), &after)?;
    output::line(&format!("wrote {name}"))?;
    if !args.remove && *what == "hooks" {
        output::note("next: start a new session; `annalist context` shows what it begins with");
    }
    Ok(ExitCode::SUCCESS)
}

fn is_wanted(name: &str) -> Result<bool, Failure> {
    let refusal = format!(
        "{name} is left as it is: nobody is there to say yes; look at the lines above and add --yes"
    );
    is_agreed(&format!("write this to {name}?"), refusal)
}

/// Writes the settings, unless somebody changed them since they were shown.
fn write(path: &Path, before: Option<&str>, after: &str) -> Result<(), Failure> {
    let name = path.display();
    let failed = |error: io::Error| Failure::failed(format!("{name}: cannot be written: {error}"));
    let changed = || Failure::failed(format!("{name} was changed meanwhile and is left as it is"));
    let Some(before) = before else {
        let is_new = files::create(path, after).map_err(failed)?;
        return is_new.then_some(()).ok_or_else(changed);
    };
    if files::read_if_there(path).map_err(failed)?.as_deref() != Some(before) {
        return Err(changed());
    }
    files::replace(path, after).map_err(failed)
}

fn of_user() -> Result<PathBuf, Failure> {
    let named = settings::path_of("CLAUDE_CONFIG_DIR");
    let folder = named.or_else(|| settings::home().map(|home| home.join(CLIENT)));
    folder.map(|folder| folder.join(SETTINGS)).ok_or_else(|| {
        Failure::usage("neither CLAUDE_CONFIG_DIR nor HOME is set: use --project in a project")
    })
}

/// The project of this folder: the nearest above it with a `.claude` or a `.git`, the user's home left out, else this
/// one.
fn project() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::failed(format!("this folder cannot be found: {error}")))?;
    let home = settings::home();
    let above = here.ancestors().take_while(|folder| Some(*folder) != home.as_deref());
    let is_project = |folder: &&Path| [CLIENT, ".git"].iter().any(|it| folder.join(it).exists());
    Ok(above.into_iter().find(is_project).unwrap_or(&here).to_owned())
}
