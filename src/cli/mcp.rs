//! `annalist mcp`: serves the project's memory to an agent over the Model Context Protocol.

use super::model_args::embedder;
use super::output::Failure;
use super::settings;
use crate::adapters::clock;
use crate::privacy::Gate;
use crate::server::mcp::{Server, serve};
use crate::store::StoreErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  claude mcp add annalist -- annalist mcp   Claude Code
  codex mcp add annalist -- annalist mcp    Codex

The client starts it in the folder of the project and speaks to it over standard input and output. Tools: search, \
why, context, history, open_items, note. All but note only read; a note is kept as said by the agent, and becomes no \
memory by itself. Nothing of another namespace is shown, unless mcp.namespaces of the settings names it.")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    settings::runtime()?.block_on(serve(server(file)?)).map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Creates the server for the project of this folder.
pub(super) fn server(file: Option<&Path>) -> Result<Server, Failure> {
    let config = settings::load(file)?;
    let embedder = embedder(&config)?;
    let gate = Gate::new(&config.pii);
    let of_store = config.clone();
    let open = move |how| match settings::store_of(&of_store, how) {
        Ok(store) => Ok(Some(store)),
        Err(error) if error.kind == StoreErrorKind::Missing => Ok(None),
        Err(error) => Err(error),
    };
    Ok(Server {
        config,
        folders: settings::project_folders(),
        home: settings::home(),
        open: Arc::new(open),
        store: OnceLock::new(),
        gate,
        embedder,
        clock: clock::now,
    })
}
