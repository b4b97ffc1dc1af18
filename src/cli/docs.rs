//! Generated pages: `docs/commands.md` from clap's definitions, `docs/configuration.md` from config.toml.

use super::output::{self, Failure};
use crate::config::DEFAULT;
use clap::{Arg, ArgAction, Command};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist man | man -l -
  annalist man memory sync > annalist-memory-sync.1")]
pub(super) struct ManArgs {
    /// The command; without one the page of the tool
    command: Vec<String>,
}

pub(super) fn man(args: &ManArgs, mut whole: Command) -> Result<ExitCode, Failure> {
    whole.build();
    let mut found = &whole;
    for name in &args.command {
        found = found.find_subcommand(name).ok_or_else(|| {
            Failure::usage(format!("no command `{name}`: `annalist --help` lists them"))
        })?;
    }
    let title = found.get_display_name().unwrap_or("annalist").to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(found.clone()).title(title).render(&mut page)?;
    output::bytes(&page)
}

/// Generated pages by file name.
pub(super) fn pages(whole: Command) -> [(&'static str, String); 2] {
    [("commands.md", commands(whole)), ("configuration.md", configuration())]
}

fn commands(whole: Command) -> String {
    let mut whole = whole.disable_help_flag(true).disable_help_subcommand(true);
    whole.build();
    let mut page =
        "# Commands\n\nGenerated from the program by `annalist schema --write`.\n".to_owned();
    page.push_str("`annalist COMMAND --help` prints the same.\n");
    let globals = whole.get_arguments().filter(|arg| arg.is_global_set()).map(argument);
    page.push_str(&format!(
        "\nEvery command takes:\n\n{}\n",
        globals.collect::<Vec<_>>().join("\n")
    ));
    let shown = whole.get_subcommands().filter(|it| !it.is_hide_set());
    shown.for_each(|command| section(command, 2, &mut page));
    page
}

fn section(command: &Command, depth: usize, page: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    page.push_str(&format!(
        "\n{} {name}\n\n{about}.\n\n```text\n{usage}\n```\n",
        "#".repeat(depth)
    ));
    let own = command.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
    let own: Vec<String> = own.map(argument).collect();
    if !own.is_empty() {
        page.push_str(&format!("\n{}\n", own.join("\n")));
    }
    if let Some(after) = command.get_after_help() {
        page.push_str(&format!("\n```text\n{}\n```\n", after.to_string().trim_end()));
    }
    let below = command.get_subcommands().filter(|it| it.get_name() != "help" && !it.is_hide_set());
    below.for_each(|it| section(it, depth + 1, page));
}

/// Formats a flag or an argument with its values and its default.
fn argument(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let value = value.unwrap_or_else(|| arg.get_id().as_str().to_uppercase());
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let name = match arg.get_long() {
        Some(long) if takes_value => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None => value,
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let hidden = |value: &clap::builder::PossibleValue| value.is_hide_set();
    let values: Vec<String> = match takes_value {
        true => arg
            .get_possible_values()
            .into_iter()
            .filter(|it| !hidden(it))
            .map(|it| format!("`{}`", it.get_name()))
            .collect(),
        false => Vec::new(),
    };
    let values =
        if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|it| it.to_string_lossy().into_owned()).collect();
    let default = match takes_value && !defaults.is_empty() {
        true => format!(" Default: `{}`.", defaults.join(", ")),
        false => String::new(),
    };
    format!("- `{name}`: {help}{values}.{default}")
}

/// Generates the page on settings: how they and the store are found, then every key.
fn configuration() -> String {
    let header = "\
# Configuration

Generated from `config.toml` by `annalist schema --write`. `annalist init` writes an `annalist.toml` with
every key; a file need not have all of them.

## Where the settings come from

1. `--config FILE`, if it is given.
2. The nearest `annalist.toml` or `.annalist/config.toml`, from the current folder up to the root of the
   repository. Outside of a repository the search ends at the user's home, and at a folder of another owner.
   In the current folder a `config.toml` counts too, if it is ours: at least one of its top-level keys is known,
   and every other one is at most a misspelling of a known one. The `config.toml` of another tool is left alone.
3. The user's `$XDG_CONFIG_HOME/annalist/config.toml` (`~/.config/annalist/config.toml`).
4. The defaults below.

Environment variables such as `ANNALIST__MODEL__BASE_URL` override the file, flags override both.

## Where the store is

1. `store.url`, or `ANNALIST__STORE__URL`. A relative path in the settings file of a project begins in the
   project's folder.
2. `annalist.db` in the nearest `.annalist` folder, from the current folder up, as above; or in the `.annalist`
   beside the project's settings file.
3. `.annalist/annalist.db` at the root of the repository. A new `.annalist` has a `.gitignore` with `*`.
4. Outside of a project: `$XDG_DATA_HOME/annalist/annalist.db` (`~/.local/share/annalist/annalist.db`).

`annalist status` and `annalist doctor` say which settings and which store they use.
";
    let mut page = format!("{header}\n## Keys\n");
    let mut section = String::new();
    let mut comment: Vec<&str> = Vec::new();
    for line in DEFAULT.lines() {
        if let Some(text) = line.strip_prefix('#') {
            comment.push(text.trim());
        } else if let Some(name) = line.strip_prefix('[') {
            name.trim_end_matches(']').clone_into(&mut section);
            page.push_str(&format!("\n### [{section}]\n"));
            comment.clear();
        } else if let Some((key, value)) = line.split_once(" = ") {
            let key = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
            page.push_str(&format!("\n**`{key}`**, default `{value}`\n"));
            if !comment.is_empty() {
                page.push_str(&format!("\n{}\n", comment.join("\n")));
            }
            comment.clear();
        } else {
            // The comment at the top describes the whole file.
            comment.clear();
        }
    }
    page
}
