//! `annalist init --claude-code`: our hooks in the settings of Claude Code, shown before anything is written.

use super::init::Args;
use super::output::{self, Failure};
use super::settings;
use crate::adapters::files;
use crate::agents::{Merged, changes, install, remove};
use crate::privacy::{Gate, Pii};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The file in the folder of the client.
const SETTINGS: &str = "settings.json";
/// The client's folder, in a project and in the user's home.
const CLIENT: &str = ".claude";

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let path = if args.user { of_user()? } else { of_project()? };
    let name = path.display().to_string();
    let existing = files::read_if_there(&path)
        .map_err(|error| Failure::failed(format!("{name}: cannot be read: {error}")))?;
    let merged = match (args.remove, &existing) {
        (false, existing) => install(existing.as_deref(), &settings::program()?),
        (true, Some(text)) => remove(text),
        (true, None) => Merged::Unchanged,
    };
    let after = match merged {
        Merged::Changed(after) => after,
        Merged::Unchanged => {
            let how = if args.remove { "holds no hook of ours" } else { "has our hooks already" };
            output::line(&format!("{name} {how}: nothing to change"))?;
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
    write(&path, existing.as_deref(), &after)?;
    output::line(&format!("wrote {name}"))?;
    if !args.remove {
        output::note("next: start a new session; `annalist context` shows what it begins with");
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the person.
fn is_wanted(name: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "{name} is left as it is: nobody is there to say yes; look at the lines above and add --yes"
        )));
    }
    output::note(&format!("write this to {name}? [y/N]"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
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

/// The client's settings for all projects.
fn of_user() -> Result<PathBuf, Failure> {
    let named = settings::path_of("CLAUDE_CONFIG_DIR");
    let folder = named.or_else(|| settings::home().map(|home| home.join(CLIENT)));
    folder.map(|folder| folder.join(SETTINGS)).ok_or_else(|| {
        Failure::usage("neither CLAUDE_CONFIG_DIR nor HOME is set: use --project in a project")
    })
}

/// The client's settings for the project of this folder: the nearest above it with a `.claude` or a `.git`,
/// the user's home left out, else this one.
fn of_project() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::failed(format!("this folder cannot be found: {error}")))?;
    let home = settings::home();
    let above = here.ancestors().take_while(|folder| Some(*folder) != home.as_deref());
    let is_project = |folder: &&Path| [CLIENT, ".git"].iter().any(|it| folder.join(it).exists());
    let project = above.into_iter().find(is_project).unwrap_or(&here);
    Ok(project.join(CLIENT).join(SETTINGS))
}
