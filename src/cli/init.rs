//! `annalist init`: writes an annalist.toml with every key, and our hooks, tools and commands into client files.

use super::arguments::is_agreed;
use super::output::{self, Failure, Result};
use super::settings;
use crate::adapters::files;
use crate::agents::{CLIENTS, Client, Content, Merged, SETTINGS, changes, has_hook, has_plugin};
use crate::config::DEFAULT;
use crate::llm::prompt::write_built_in;
use crate::privacy::{Gate, Pii};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist init && annalist doctor       write annalist.toml, list the clients
                                         found here, check everything
  annalist init --prompts prompts        the built-in prompts, to edit them
  annalist init --claude-code            add our hooks, tools and commands to
                                         this project's .claude and .mcp.json
  annalist init --codex --gemini --user  for all projects of this user
  annalist init --claude-code --remove   remove them

The prompts extract.md, slice.md and retry.md extract records, consolidate.md compares records \
with memories. Keep those that you change and set `prompts` to their folder.

A client gets hooks that run `annalist hook`, the server `annalist mcp`, and the commands \
/memory-sync, /memory-search, /memory-reflect and /memory-init; Codex has no command files. \
Changes are shown before they are written; all other content keeps every byte, and a second run \
changes nothing.")]
pub(super) struct Args {
    /// Print annalist.toml instead of writing it
    #[arg(long, conflicts_with = "Clients")]
    print: bool,
    /// Set up the user's configuration instead of the project's
    #[arg(long, conflicts_with = "print")]
    user: bool,
    /// Write all built-in prompts to this folder instead; existing files are kept
    #[arg(long, value_name = "DIR", conflicts_with_all = ["print", "user", "Clients"])]
    prompts: Option<PathBuf>,
    #[command(flatten)]
    clients: Clients,
    /// Set up clients for this project (the default)
    #[arg(long, requires = "Clients", conflicts_with = "user")]
    project: bool,
    /// Remove annalist from the clients
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
    /// Set up opencode, with a plugin
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

pub(super) fn run(args: &Args) -> Result<()> {
    let chosen: Vec<_> = CLIENTS.iter().filter(|client| args.clients.has(client.flag)).collect();
    if !chosen.is_empty() {
        let Args { user, remove, yes, .. } = *args;
        return set_up(&SetUp { clients: chosen, user, remove, yes });
    }
    if let Some(folder) = &args.prompts {
        return write_prompts(folder);
    }
    if args.print {
        return output::line(DEFAULT.trim_end());
    }
    let path = match args.user {
        false => Some(PathBuf::from(settings::PROJECT_FILE)),
        true => settings::user_folder().map(|it| it.join(settings::FILE_NAME)),
    };
    let unset = "neither XDG_CONFIG_HOME nor HOME is set: use `annalist init --print`";
    let path = path.ok_or_else(|| Failure::usage(unset))?;
    list()?;
    if let Some(above) = settings::above().filter(|_| !args.user) {
        return Err(Failure::usage(format!(
            "{} already has the settings of this project and is unchanged: `annalist init --print` \
             shows the defaults, for a file of this folder's own",
            above.display()
        )));
    }
    let written = files::create(&path, DEFAULT).map_err(output::unwritable(&path))?;
    if !written {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path} already exists and is unchanged: `annalist init --print` shows the defaults"
        )));
    }
    output::line(&format!("wrote {}", path.display()))?;
    output::note("next: set base_url and model, then run `annalist doctor`");
    Ok(())
}

fn write_prompts(folder: &Path) -> Result<()> {
    let (written, there) = write_built_in(folder).map_err(output::unwritable(folder))?;
    for path in &there {
        output::note(&format!("{} already exists and is unchanged", path.display()));
    }
    for path in &written {
        output::line(&format!("wrote {}", path.display()))?;
    }
    let next = "set `prompts` in annalist.toml; `annalist test --prompt` measures extraction";
    output::note(&format!("next: {next}"));
    Ok(())
}

struct SetUp<'a> {
    clients: Vec<&'a Client>,
    /// True for the user's files instead of the project's.
    user: bool,
    remove: bool,
    yes: bool,
}

/// Change of a file; `after` is `None` for a deletion.
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

fn set_up(wanted: &SetUp<'_>) -> Result<()> {
    let mut all = Vec::new();
    for client in &wanted.clients {
        if !wanted.remove && has_plugin_of(client, wanted.user)? {
            let of = if wanted.user { " --user" } else { "" };
            output::line(&format!(
                "{} {PLUGIN}: nothing to add; `annalist init --{}{of} --remove` removes what was added",
                client.name, client.flag
            ))?;
            continue;
        }
        let changes = changes_of(client, wanted)?;
        if let Some(path) = hooks_beside(client, wanted.user)?.filter(|_| !wanted.remove) {
            note_hooks_beside(client, wanted.user, &path);
        }
        if changes.is_empty() {
            let how = if wanted.remove { "is not set up" } else { "is already set up" };
            output::line(&format!("{} {how}: nothing to change", client.name))?;
        }
        all.extend(changes);
    }
    all.iter().try_for_each(show)?;
    if all.is_empty() {
        return Ok(());
    }
    if !wanted.yes && !is_wanted(&all)? {
        output::note("nothing was written");
        return output::fail_if(true);
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
    Ok(())
}

fn changes_of(client: &Client, wanted: &SetUp<'_>) -> Result<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    let is_beside = !wanted.remove && !wanted.user && hooks_beside(client, false)?.is_some();
    for (path, content) in contents(client, wanted.user)? {
        if is_beside && has_hooks(content) {
            continue;
        }
        if !changes.iter().any(|it| it.path == path) {
            let before =
                files::read_if_exists(&path).map_err(output::unreadable(path.display()))?;
            changes.push(Change { path: path.clone(), after: before.clone(), before });
        }
        let Some(change) = changes.iter_mut().find(|it| it.path == path) else { continue };
        let name = path.display();
        let merged = match (wanted.remove, &change.after) {
            (false, existing) => content.add(existing.as_deref(), &settings::program()?),
            (true, Some(text)) => content.remove(text),
            (true, None) => Merged::Unchanged,
        };
        let is_removal = wanted.remove && matches!(content, Content::Hooks(_));
        let changed = if let Merged::Changed(text) = &merged { Some(text) } else { None };
        if is_removal && changed.or(change.after.as_ref()).is_some_and(|text| has_hook(text)) {
            output::note(&format!(
                "{name}: a hook that runs annalist among other things is unchanged: delete it \
                 there if nothing needs it"
            ));
        }
        match merged {
            Merged::Unchanged => {}
            Merged::Changed(text) => {
                // Without our part, as we create it: whether it existed before is unknown.
                let is_bare = wanted.remove && ["", "{}\n"].contains(&text.as_str());
                change.after = (!is_bare).then_some(text);
            }
            Merged::Removed => change.after = None,
            Merged::NotOurs if !wanted.remove && matches!(content, Content::OpencodePlugin) => {
                let problem = "is not ours and is unchanged: move it to set up";
                return Err(Failure::failed(format!("{name} {problem} {}", client.name)));
            }
            Merged::NotOurs => output::note(&match (content.is_server(), wanted.remove) {
                (true, false) => format!(
                    "{name}: the server `annalist` has another command, or none, and is \
                     unchanged: rename it there unless it runs annalist"
                ),
                (true, true) => format!(
                    "{name}: the server `annalist` contains what you added and is unchanged: \
                     delete it there if nothing needs it"
                ),
                (false, _) => format!("{name} is not ours and is unchanged"),
            }),
            Merged::Malformed(finding) => {
                return Err(Failure::failed(format!("{name}: {}", finding.detail)));
            }
        }
    }
    changes.retain(|it| it.before != it.after);
    Ok(changes)
}

const PLUGIN: &str = "runs annalist as a plugin";

/// True if Claude Code's settings enable the plugin, which has its own hooks, tools and commands: those of the project
/// and the user, or with `user`, those of the user alone.
fn has_plugin_of(client: &Client, user: bool) -> Result<bool> {
    if client.flag != "claude-code" {
        return Ok(false);
    }
    let here = project()?.join(client.folder);
    let own = folder_of_user(client).ok().map(|folder| folder.join(SETTINGS));
    let here = [here.join("settings.local.json"), here.join(SETTINGS)];
    // The nearest file that names it decides.
    let mut all = here.into_iter().filter(|_| !user).chain(own);
    let named = all.find_map(|path| has_plugin(&files::read_if_exists(&path).ok()??));
    Ok(named == Some(true))
}

fn has_hooks(content: Content) -> bool {
    matches!(content, Content::Hooks(_) | Content::OpencodePlugin)
}

/// Clients that run a command once if both of their files have it.
const RUN_ONCE: [&str; 2] = ["claude-code", "qwen"];

/// File with annalist's hooks beside those asked for: the user's for a project, the project's for the user. `None` if the
/// client would not run both.
fn hooks_beside(client: &Client, user: bool) -> Result<Option<PathBuf>> {
    let here = project()?.join(client.folder);
    let Some(own) = folder_of_user(client).ok().filter(|own| *own != here) else {
        return Ok(None);
    };
    let folder = if user { here } else { own };
    let all = client.contents().into_iter().filter(|(_, content)| has_hooks(*content));
    let mut files = all.map(|(path, content)| (folder.join(path), content));
    Ok(files.find_map(|(path, content)| {
        let text = files::read_if_exists(&path).ok()??;
        let is_plugin = matches!(content, Content::OpencodePlugin);
        let is_ours =
            if is_plugin { content.remove(&text) == Merged::Removed } else { has_hook(&text) };
        let is_once = RUN_ONCE.contains(&client.flag)
            && settings::program().is_ok_and(|it| text.contains(&format!("\"{it} hook ")));
        (is_ours && !is_once).then_some(path)
    }))
}

fn note_hooks_beside(client: &Client, user: bool, path: &Path) {
    let (flag, of) = (client.flag, if user { "" } else { " --user" });
    let added = if user { "" } else { ", so none are added here" };
    output::note(&format!(
        "{} has hooks of annalist, and two sets would send everything twice{added}: \
         `annalist init --{flag}{of} --remove` removes them",
        path.display()
    ));
}

fn contents(client: &Client, user: bool) -> Result<Vec<(PathBuf, Content)>> {
    let root = project()?;
    let folder = if user { folder_of_user(client)? } else { root.join(client.folder) };
    let mut found = Vec::new();
    for (path, content) in client.contents() {
        let of_project = matches!(content, Content::ProjectServers);
        if of_project && user {
            output::note(
                "tools for all projects: `claude mcp add --scope user annalist -- annalist mcp`, or \
                 `remove` in place of `add`",
            );
        } else {
            let place = if of_project { &root } else { &folder };
            found.push((place.join(path), content));
        }
    }
    Ok(found)
}

fn show(change: &Change) -> Result<()> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let lines = changes(&text(&change.before), &text(&change.after), &Gate::new(&Pii::ALL));
    output::line(&change.path.display().to_string())?;
    output::line(lines.as_str().trim_end())
}

fn is_wanted(changes: &[Change]) -> Result<bool> {
    let names = output::commas(changes.iter().map(|it| it.path.display().to_string()));
    let refusal = format!(
        "{names} not changed: no terminal to confirm on; review the lines above and add --yes"
    );
    is_agreed(&format!("change {names} as shown?"), refusal)
}

/// Writes a file unless it changed after it was shown.
pub(super) fn write(change: &Change) -> Result<()> {
    let Change { path, before, after } = change;
    let name = path.display();
    let failed = output::unwritable(path);
    let what = if path.is_symlink() && !path.exists() {
        "is a link that leads nowhere"
    } else {
        "changed in the meantime"
    };
    let changed = || Failure::failed(format!("{name} {what}; not overwritten"));
    if files::read_if_exists(path).map_err(&failed)? != *before {
        return Err(changed());
    }
    match after {
        Some(after) if before.is_none() => {
            let is_new = files::create(path, after).map_err(&failed)?;
            is_new.then_some(()).ok_or_else(changed)
        }
        Some(after) => files::replace(path, after).map_err(failed),
        None => {
            files::remove_if_exists(path).map_err(failed)?;
            // Folders that are empty now go too, but not the project or the home.
            let (here, home) = (std::env::current_dir().unwrap_or_default(), settings::home());
            let is_clients = |it: &&Path| !here.starts_with(it) && Some(*it) != home.as_deref();
            let folders = path.ancestors().skip(1).take_while(is_clients);
            folders.map(std::fs::remove_dir).take_while(Result::is_ok).for_each(drop);
            Ok(())
        }
    }
}

fn list() -> Result<()> {
    let root = project()?;
    for client in CLIENTS {
        let own = folder_of_user(client).ok().filter(|it| it.is_dir());
        // `annalist memory init` makes the folder for the memory directory alone.
        let is_used = |folder: &PathBuf| {
            let mut names = std::fs::read_dir(folder).into_iter().flatten().flatten();
            names.any(|it| it.file_name() != "memory")
        };
        let here = || Some(root.join(client.folder)).filter(is_used);
        let Some(folder) = own.or_else(here) else { continue };
        let is_set_up = |user: bool| {
            let wanted = SetUp { clients: Vec::new(), user, remove: false, yes: false };
            changes_of(client, &wanted).is_ok_and(|changes| changes.is_empty())
        };
        let missing = format!("`annalist init --{}` adds hooks and tools", client.flag);
        let state = match is_set_up(false) || is_set_up(true) {
            _ if has_plugin_of(client, false)? => PLUGIN,
            true => "is set up",
            false => &missing,
        };
        output::line(&format!("{} ({}): {state}", client.name, folder.display()))?;
    }
    Ok(())
}

pub(super) fn folder_of_user(client: &Client) -> Result<PathBuf> {
    let named = settings::path_of(client.variable);
    let folder = named.or_else(|| settings::home().map(|home| home.join(client.home_folder)));
    folder.ok_or_else(|| Failure::usage("HOME is not set: use --project in a project"))
}

/// Project of this folder: the nearest folder upwards with a client folder or a `.git`, excluding the user's home;
/// else this one.
fn project() -> Result<PathBuf> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::failed(format!("cannot find the current folder: {error}")))?;
    let home = settings::home();
    let above = here.ancestors().take_while(|folder| Some(*folder) != home.as_deref());
    let is_project = |folder: &&Path| {
        let mut marks = CLIENTS.iter().map(|client| client.folder).chain([".git"]);
        marks.any(|mark| folder.join(mark).exists())
    };
    Ok(above.into_iter().find(is_project).unwrap_or(&here).to_owned())
}
