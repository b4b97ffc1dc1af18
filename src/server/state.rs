//! State that all handlers share.

use super::intake::Intake;
use crate::config::Config;
use crate::domain::Timestamp;
use crate::pipeline::{Embedder, Namespaces, namespace_of_folder, project_namespace};
use crate::privacy::Gate;
use crate::store::{Store, StoreError};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) struct ServerState {
    pub config: Config,
    pub store: Store,
    pub gate: Gate,
    /// Embedding model of searches, if the settings name one.
    pub embedder: Option<Arc<Embedder>>,
    pub intake: Intake,
    pub clock: fn() -> Timestamp,
    /// Folder in which the server was started and its parents, up to the project root.
    pub folders: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    /// Secret of this run in the page's address; `None` if there is no page.
    pub page_secret: Option<String>,
}

impl ServerState {
    /// Returns the namespace of the folder in which the server was started.
    pub(super) async fn namespace(&self) -> Result<String, StoreError> {
        let folders = self.folders.iter().map(PathBuf::as_path);
        let (store, gate, clock) = (&self.store, &self.gate, Some(self.clock));
        let namespaces = Namespaces { store, gate, clock };
        let known = project_namespace(namespaces, &self.config, folders).await?;
        let folder = self.folders.first().map(|it| it.display().to_string()).unwrap_or_default();
        Ok(known.unwrap_or_else(|| namespace_of_folder(&folder, &self.gate)))
    }
}
