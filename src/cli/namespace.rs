//! `annalist namespace`: lists and renames namespaces.

use super::arguments::{is_agreed, unknown_namespace};
use super::output::{self, Failure, Result, Row, count, counted, in_pages};
use super::settings;
use crate::adapters::{clock, process};
use crate::config::namespace_name;
use crate::privacy::Gate;
use crate::store::{HeldLease, LeaseRequest, NamespaceTotals, Store, StoreError};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

const FOLDERS_MAX: u32 = 8;

#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  annalist namespace list
  annalist namespace move app github.com/owner/app

A namespace is the project that a memory belongs to. Unless the settings name one, it is the \
repository of the conversation, by the name of its remote, such as `github.com/owner/app`; without \
a remote, or outside a repository, it is the path of the folder, such as \
`~/src/app`, or `srv/app` outside of the home folder.")]
pub(super) enum Command {
    /// List namespaces with their conversations, memories and folders
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Rename a namespace, or merge it into an existing one
    Move {
        /// Current name
        old: String,
        /// New name
        #[arg(value_parser = namespace_name)]
        new: String,
        /// Merge it into an existing namespace without asking
        #[arg(long)]
        yes: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A namespace that got another name, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct MovedNamespace<'a> {
    from: &'a str,
    to: &'a str,
}

impl Row for NamespaceTotals {
    const HEADER: &'static [&'static str] = &["namespace", "sessions", "memories", "folders"];

    fn cells(&self) -> Vec<String> {
        let (sessions, memories) = (count(self.sessions), count(self.memories));
        vec![self.namespace.clone(), sessions, memories, self.folders.join("\n")]
    }
}

pub(super) async fn run(command: &Command, file: Option<&Path>) -> Result<()> {
    let (config, store) = settings::existing_store(file)?;
    match command {
        Command::List { json } => {
            let all = store.namespace_totals(FOLDERS_MAX).await?;
            let none = "no namespaces: `annalist replay` creates one";
            in_pages(async { output::rows(&all, *json, none) }).await
        }
        Command::Move { old, new, yes, json } => {
            let gate = Gate::new(&config.pii);
            let new = gate.redact(new).as_str().to_owned();
            // A name as the shell expands it was possible once.
            let old = &match store.has_namespace(old).await? {
                true => old.clone(),
                false => namespace_name(old).map_err(Failure::usage)?,
            };
            let merged = rename(&store, old, &new, *yes).await?;
            if *json {
                output::json(&MovedNamespace { from: old, to: &new })?;
            } else if let Some([moved, there]) = merged {
                let joined = format!("{moved} joined its {there}");
                output::line(&format!("merged namespace `{old}` into `{new}`: {joined}"))?;
            } else {
                output::line(&format!("renamed namespace `{old}` to `{new}`"))?;
            }
            if config.namespace.as_ref() == Some(old) {
                let source = &config.source;
                output::note(&format!("{source}: namespace = \"{old}\": set it to \"{new}\""));
            }
            Ok(())
        }
    }
}

/// Warns if a namespace that a person named is new and differs only by case from another.
pub(super) async fn warn_of_twin(store: &Store, name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    if let Some(twin) = store.namespace_twin(name).await? {
        let what = format!("`{name}` is a new namespace, not `{twin}`: they differ by case");
        output::note(&output::warning(&what));
    }
    Ok(())
}

/// Renames a namespace. If the new one exists, merges them and returns what each of the two had, in words.
async fn rename(
    store: &Store,
    old: &str,
    new: &str,
    is_agreed_to: bool,
) -> Result<Option<[String; 2]>> {
    if old == new {
        return Err(Failure::usage(format!("`{new}`: expected a name other than `{old}`")));
    }
    let all = store.namespace_totals(FOLDERS_MAX).await?;
    let found = |name: &str| all.iter().find(|it| it.namespace == name);
    let Some(moved) = found(old) else { return Err(unknown_namespace(store, old).await?) };
    let held = |it: &NamespaceTotals| {
        format!("{} and {}", counted(it.sessions, "session"), counted(it.memories, "memory"))
    };
    let merged = found(new).map(|there| [held(moved), held(there)]);
    if let Some(there) = found(new).filter(|_| !is_agreed_to) {
        let held = counted(there.sessions, "session");
        let refusal = format!(
            "`{new}` already has {held}, and a merge cannot be undone: add --yes to merge them"
        );
        if !is_agreed(&format!("`{new}` already has {held}: merge both permanently?"), refusal)? {
            return Err(Failure::failed("nothing was moved"));
        }
    }
    let busy = || output::busy(&[old, new]);
    let from = hold(store, old).await?.ok_or_else(busy)?;
    let Some(to) = hold(store, new).await? else {
        from.release(None).await?;
        return Err(busy());
    };
    let done = store.move_namespace(&from.lease, &to.lease).await;
    // The move removed the old lease with its namespace.
    from.release(None).await?;
    to.release(None).await?;
    Ok(done.map(|()| merged)?)
}

async fn hold(store: &Store, namespace: &str) -> Result<Option<HeldLease>, StoreError> {
    let (holder, clock) = (process::name(), clock::now);
    store.hold_namespace(LeaseRequest { namespace, holder, clock, waits: false }).await
}
