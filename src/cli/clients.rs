//! Client setup: finds clients of this user and project, and shows changes to their files before writing.

use super::arguments::is_agreed;
use super::output::{self, Failure};
use super::settings;
use crate::adapters::files;
use crate::agents::{CLIENTS, Client, Content, Merged, changes};
use crate::privacy::{Gate, Pii};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Clients to set up, with options.
#[derive(Debug)]
pub(super) struct SetUp<'a> {
    pub(super) clients: Vec<&'a Client>,
    /// True for the user's files instead of the project's.
    pub(super) user: bool,
    pub(super) remove: bool,
    /// True to write without confirmation.
    pub(super) yes: bool,
}

/// Change of a file; `after` is `None` for a deletion.
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// Adds our parts to client files, or removes them, after the user has confirmed the changes.
pub(super) fn set_up(wanted: &SetUp<'_>) -> Result<ExitCode, Failure> {
    let mut all = Vec::new();
    for client in &wanted.clients {
        let changes = changes_of(client, wanted)?;
        if changes.is_empty() {
            let how = if wanted.remove { "has nothing of annalist" } else { "has all of annalist" };
            output::line(&format!("{} {how}: nothing to change", client.name))?;
        }
        all.extend(changes);
    }
    for change in &all {
        show(change)?;
    }
    if all.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if !wanted.yes && !is_wanted(&all)? {
        output::note("nothing was written");
        return Ok(ExitCode::from(output::FAILED));
    }
    for change in &all {
        write(change)?;
        let what = if change.after.is_some() { "wrote" } else { "removed" };
        output::line(&format!("{what} {}", change.path.display()))?;
    }
    for client in &wanted.clients {
        if !wanted.remove {
            output::note(&format!("{}: {}", client.name, client.next));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the changes of a client's files, each file once.
fn changes_of(client: &Client, wanted: &SetUp<'_>) -> Result<Vec<Change>, Failure> {
    let mut changes: Vec<Change> = Vec::new();
    for (path, content) in contents(client, wanted.user)? {
        if !changes.iter().any(|it| it.path == path) {
            let before = read(&path)?;
            changes.push(Change { path: path.clone(), after: before.clone(), before });
        }
        let Some(change) = changes.iter_mut().find(|it| it.path == path) else { continue };
        let name = path.display();
        let merged = match (wanted.remove, &change.after) {
            (false, existing) => content.add(existing.as_deref(), &settings::program()?),
            (true, Some(text)) => content.remove(text),
            (true, None) => Merged::Unchanged,
        };
        match merged {
            Merged::Unchanged => {}
            // Deletes a file that is empty without our part.
            Merged::Changed(text) => {
                change.after =
                    Some(text).filter(|it| !wanted.remove || !["", "{}"].contains(&it.trim()));
            }
            Merged::Removed => change.after = None,
            Merged::NotOurs => output::note(&format!("{name} is not ours and is left as it is")),
            Merged::Malformed(finding) => {
                return Err(Failure::failed(format!("{name}: {}", finding.detail)));
            }
        }
    }
    changes.retain(|it| it.before != it.after);
    Ok(changes)
}

/// Our parts of a client's files, for the project or the user.
fn contents(client: &Client, user: bool) -> Result<Vec<(PathBuf, Content)>, Failure> {
    let root = project()?;
    let folder = if user { folder_of_user(client)? } else { root.join(client.folder) };
    let mut found = Vec::new();
    for (path, content) in client.contents() {
        match content {
            Content::ProjectServers if user => output::note(
                "tools for all projects: `claude mcp add --scope user annalist -- annalist mcp`, or \
                 `remove` in place of `add`",
            ),
            Content::ProjectServers => found.push((root.join(path), content)),
            Content::Hooks(_)
            | Content::Servers
            | Content::CodexServers
            | Content::OpencodePlugin
            | Content::Command(..) => found.push((folder.join(path), content)),
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    files::read_if_exists(path)
        .map_err(|error| Failure::failed(format!("{}: cannot be read: {error}", path.display())))
}

fn show(change: &Change) -> Result<(), Failure> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let lines = changes(&text(&change.before), &text(&change.after), &Gate::new(&Pii::ALL));
    output::line(&change.path.display().to_string())?;
    output::line(lines.as_str().trim_end())
}

fn is_wanted(changes: &[Change]) -> Result<bool, Failure> {
    let names: Vec<String> = changes.iter().map(|it| it.path.display().to_string()).collect();
    let names = names.join(", ");
    let refusal = format!(
        "left as they are: {names}: nobody is there to say yes; look at the lines above and add --yes"
    );
    is_agreed(&format!("change {names} as shown?"), refusal)
}

/// Writes a file unless it changed after it was shown.
pub(super) fn write(change: &Change) -> Result<(), Failure> {
    let Change { path, before, after } = change;
    let name = path.display();
    let failed = |error: io::Error| Failure::failed(format!("{name}: cannot be written: {error}"));
    let changed = || Failure::failed(format!("{name} was changed meanwhile and is left as it is"));
    if files::read_if_exists(path).map_err(failed)? != *before {
        return Err(changed());
    }
    match after {
        Some(after) if before.is_none() => {
            let is_new = files::create(path, after).map_err(failed)?;
            is_new.then_some(()).ok_or_else(changed)
        }
        Some(after) => files::replace(path, after).map_err(failed),
        None => {
            files::remove_if_exists(path).map_err(failed)?;
            // Removes the folder too if it is empty.
            path.parent().map_or(Ok(()), std::fs::remove_dir).or(Ok(()))
        }
    }
}

/// Lists the installed clients of the user and the project, with their setup commands.
pub(super) fn list() -> Result<(), Failure> {
    let root = project()?;
    for client in CLIENTS {
        let own = folder_of_user(client).ok().into_iter();
        let mut folders = own.chain([root.join(client.folder)]).filter(|it| it.is_dir());
        let Some(folder) = folders.next() else { continue };
        let is_set_up = |user: bool| {
            let wanted = SetUp { clients: Vec::new(), user, remove: false, yes: false };
            changes_of(client, &wanted).is_ok_and(|changes| changes.is_empty())
        };
        let state = match is_set_up(false) || is_set_up(true) {
            true => "is set up".to_owned(),
            false => format!("`annalist init --{}` adds hooks and tools", client.flag),
        };
        output::line(&format!("{} ({}): {state}", client.name, folder.display()))?;
    }
    Ok(())
}

pub(super) fn folder_of_user(client: &Client) -> Result<PathBuf, Failure> {
    let named = settings::path_of(client.variable);
    let folder = named.or_else(|| settings::home().map(|home| home.join(client.home_folder)));
    folder.ok_or_else(|| Failure::usage("HOME is not set: use --project in a project"))
}

/// Project of this folder: the nearest folder upwards with a client folder or a `.git`, excluding the user's home;
/// else this one.
fn project() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::failed(format!("this folder cannot be found: {error}")))?;
    let home = settings::home();
    let above = here.ancestors().take_while(|folder| Some(*folder) != home.as_deref());
    let is_project = |folder: &&Path| {
        let mut marks = CLIENTS.iter().map(|client| client.folder).chain([".git"]);
        marks.any(|mark| folder.join(mark).exists())
    };
    Ok(above.into_iter().find(is_project).unwrap_or(&here).to_owned())
}
