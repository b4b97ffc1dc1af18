//! State that all handlers share.

use super::intake::Intake;
use crate::config::Config;
use crate::domain::Timestamp;
use crate::privacy::Gate;
use crate::store::Store;
use std::path::PathBuf;

/// Settings, store and place of a server.
pub(crate) struct ServerState {
    pub config: Config,
    pub store: Store,
    pub gate: Gate,
    pub intake: Intake,
    pub clock: fn() -> Timestamp,
    /// The folder in which the server was started and those above it, up to the root of the project.
    pub folders: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    /// Secret of this run, which the page's address has; `None` if there is no page.
    pub page_secret: Option<String>,
}
