//! State that all handlers share, and the caller of a request: authentication by API token, its namespace and rights.

use super::error::{ApiError, Result};
use super::intake::Intake;
use crate::adapters::memory_files::MemoryFolder;
use crate::adapters::process;
use crate::adapters::spool::Spool;
use crate::config::Config;
use crate::domain::{Digest, Timestamp};
use crate::pipeline::{
    Consolidator, DirSync, Directories, Embedder, Namespaces, namespace_of_folder,
    project_namespace,
};
use crate::privacy::Gate;
use crate::store::{Store, StoreError, TokenRight};
use crate::text::phrase::with_causes;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Project in whose folder the server was started.
pub(crate) struct Project {
    pub config: Config,
    pub gate: Gate,
    /// The folder and its parents, up to the project root.
    pub folders: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    pub clock: fn() -> Timestamp,
}

impl Project {
    /// Namespace of the settings, else of the nearest project folder in the store, else of the folder.
    pub(super) async fn namespace(&self, store: Option<&Store>) -> Result<String, StoreError> {
        let known = match store {
            Some(store) => {
                let namespaces = Namespaces { store, gate: &self.gate };
                let folders = self.folders.iter().map(PathBuf::as_path);
                project_namespace(namespaces, &self.config, folders).await?
            }
            None => self.config.namespace.clone(),
        };
        let folder = self.folders.first().map(|it| it.display().to_string()).unwrap_or_default();
        Ok(known.unwrap_or_else(|| namespace_of_folder(&folder, &self.gate)))
    }

    pub(super) fn directory(&self) -> io::Result<Option<MemoryFolder>> {
        let Some(folder) = self.folders.first() else { return Ok(None) };
        MemoryFolder::find_above(folder, self.home.as_deref())
    }
}

pub(crate) struct ServerState {
    pub project: Project,
    pub store: Store,
    /// Embedding model of searches, if the settings name one.
    pub embedder: Option<Arc<Embedder>>,
    pub intake: Intake,
    /// Transcripts that hooks handed over, if there is a folder for them.
    pub spool: Option<Spool>,
    /// Secret of this run in the page's address; `None` if there is no page.
    pub page_secret: Option<String>,
}

impl ServerState {
    /// Consolidation by rule.
    pub(super) fn consolidator(&self) -> Consolidator {
        let (store, clock) = (self.store.clone(), self.project.clock);
        let holder = process::name().to_owned();
        Consolidator { store, holder, clock, waits: true, adjudicator: None }
    }

    pub(super) fn directories(&self) -> Directories {
        let Project { config, gate, clock, .. } = &self.project;
        let (store, holder) = (self.store.clone(), process::name().to_owned());
        let dir_sync = DirSync { store, holder, clock: *clock, gate: gate.clone() };
        // An unreadable directory is treated as absent.
        let here = self.project.directory().ok().flatten();
        Directories { dir_sync, here, namespace: config.namespace.clone() }
    }
}

pub(crate) fn token_digest(token: &[u8]) -> Digest {
    Digest::of_bytes(token)
}

/// Authenticated holder of a token.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Name of the token.
    pub name: String,
    pub namespace: String,
    rights: Vec<TokenRight>,
}

impl Caller {
    /// # Errors
    /// If the token lacks the right.
    pub(super) fn may(&self, right: TokenRight) -> Result<()> {
        if self.rights.contains(&right) {
            return Ok(());
        }
        let name = right.name();
        let what = format!("token `{}` may not {name}", self.name);
        let expected = format!("a token created with `annalist token new NAME --can {name}`");
        Err(ApiError::new(StatusCode::FORBIDDEN, &what, "Authorization", &expected))
    }
}

/// Returns the token of an `Authorization` header. The scheme is case-insensitive.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

impl FromRequestParts<Arc<ServerState>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Caller> {
        let sent = parts.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let now = (state.project.clock)();
        let token = match sent.and_then(bearer) {
            // Digests are compared, so timing reveals nothing about the token.
            Some(secret) => state.store.token(token_digest(secret)).await?,
            None => None,
        };
        let Some(token) = token.filter(|token| token.is_valid(now)) else {
            let (what, expected) = ("no valid token", "Bearer TOKEN, from `annalist token new`");
            return Err(ApiError::new(StatusCode::UNAUTHORIZED, what, "Authorization", expected));
        };
        let today = now.midnight();
        if token.used_at != Some(today)
            && let Err(error) = state.store.use_token(token.name.clone(), today).await
        {
            // A read-only store still serves readers.
            tracing::warn!(error = with_causes(&error), "the use of a token cannot be recorded");
        }
        tracing::info!(token = token.name, "caller");
        Ok(Caller { name: token.name, namespace: token.namespace, rights: token.rights })
    }
}
