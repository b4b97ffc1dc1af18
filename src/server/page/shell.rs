//! Frame of every page: shared state, layout with navigation and notices, request parameters, and errors as pages.

use crate::adapters::process;
use crate::adapters::spool::Spool;
use crate::domain::Timestamp;
use crate::pipeline::{
    Consolidator, DirSync, Directories, Embedder, LookupError, SyncError, blocking,
};
use crate::server::state::ServerState;
use crate::store::{PrefixLookup, Store, StoreError};
use crate::text::terminal;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse, Redirect, Response};
use minijinja::{AutoEscape, Environment, Value, context};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::str::FromStr;
use std::sync::Arc;
use tokio::runtime::Handle;

const LAYOUT: &str = include_str!("templates/layout.html");
/// Macros shared by the templates.
const PARTS: &str = include_str!("templates/parts.html");
/// Query parameter with the id of the plan that was just applied.
const DONE: &str = "done";
/// Query parameter with a notice to show.
const TOLD: &str = "told";
/// Maximum page number of a list.
const PAGES_MAX: u32 = 100_000;

/// The store and the directories that the handlers read and change.
pub(super) struct Page {
    pub(super) store: Store,
    pub(super) consolidator: Consolidator,
    pub(super) directories: Directories,
    pub(super) embedder: Option<Arc<Embedder>>,
    pub(super) spool: Option<Spool>,
    pub(super) clock: fn() -> Timestamp,
    /// Secret of this run that grants access to the page.
    pub(super) token: String,
}

impl Page {
    pub(super) fn of(state: &ServerState) -> Page {
        let ServerState { project, store, .. } = state;
        let (clock, holder) = (project.clock, process::name().to_owned());
        Page {
            store: store.clone(),
            consolidator: Consolidator {
                store: store.clone(),
                holder: holder.clone(),
                clock,
                waits: true,
                adjudicator: None,
            },
            directories: Directories {
                dir_sync: DirSync {
                    store: store.clone(),
                    holder,
                    clock,
                    gate: project.gate.clone(),
                },
                // An unreadable directory is treated as absent.
                here: project.directory().ok().flatten(),
                namespace: project.config.namespace.clone(),
            },
            embedder: state.embedder.clone(),
            spool: state.spool.clone(),
            clock,
            token: state.page_secret.clone().unwrap_or_default(),
        }
    }
}

/// Runs blocking work on directories on a separate thread.
pub(super) async fn apart<T, F>(work: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let runtime = Handle::current();
    blocking(move || runtime.block_on(work())).await
}

/// Request for a page.
pub(super) struct Visit {
    pub(super) page: Arc<Page>,
    /// Path and query, to return to.
    here: String,
    parameters: BTreeMap<String, String>,
}

impl FromRequestParts<Arc<Page>> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, page: &Arc<Page>) -> Result<Visit, Infallible> {
        let parameters = parameters(&parts.uri);
        let of_page: Vec<String> = parameters
            .iter()
            .filter(|(name, _)| ![DONE, TOLD].contains(&name.as_str()))
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        let query = if of_page.is_empty() { "" } else { "?" };
        let here = format!("{}{query}{}", parts.uri.path(), of_page.join("&"));
        Ok(Visit { page: Arc::clone(page), here, parameters })
    }
}

impl Visit {
    /// Returns a parameter; `None` if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(|it| it.trim()).filter(|it| !it.is_empty())
    }

    /// Page number of a list, from 1.
    pub(super) fn number(&self) -> u32 {
        let number = self.get("page").and_then(|it| it.parse().ok());
        number.unwrap_or(1).clamp(1, PAGES_MAX)
    }

    /// Renders the page as HTML; the template names the values of `view` as `v`.
    pub(super) fn render(
        &self,
        title: &str,
        template: &str,
        view: Value,
    ) -> Result<Response, PageError> {
        let (csrf, here) = (self.page.csrf(), self.here.as_str());
        let values = context! { v => view, csrf => &csrf, here };
        let body = rendered(&format!("{PARTS}{template}"), values)?;
        let section = here.trim_start_matches('/');
        let section = section.split(['/', '?']).next().unwrap_or_default();
        let done = self.get(DONE).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let told = self.get(TOLD);
        let page = in_layout(body, context! { title, section, csrf, here, done, told })?;
        Ok(Html(page).into_response())
    }
}

/// Parses the query of an address; a malformed one has no parameters.
pub(super) fn parameters(uri: &Uri) -> BTreeMap<String, String> {
    Query::try_from_uri(uri).map(|Query(all)| all).unwrap_or_default()
}

fn in_layout(body: String, values: Value) -> Result<String, PageError> {
    let body = Value::from_safe_string(body);
    rendered(&format!("{PARTS}{LAYOUT}"), context! { body, ..values })
}

/// Fills a template. Values are escaped, and invisible and bidirectional control characters are neutralised.
fn rendered(template: &str, values: Value) -> Result<String, PageError> {
    let mut engine = Environment::empty();
    engine.set_auto_escape_callback(|_| AutoEscape::Html);
    engine.add_filter("url", |text: String| encoded(&text));
    engine.add_filter("count", |list: Value| list.len());
    let page = engine.template_from_str(template).and_then(|it| it.render(values));
    Ok(terminal::neutral(&page.map_err(|error| PageError::failed(error.to_string()))?))
}

pub(super) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Redirects to `back` after a plan was applied, with an offer to undo it.
pub(super) fn went_on(back: &str, plan: &str) -> Response {
    with_parameter(back, DONE, plan)
}

/// Redirects to `back` with a notice.
pub(super) fn telling(back: &str, line: &str) -> Response {
    with_parameter(back, TOLD, line)
}

fn with_parameter(back: &str, name: &str, value: &str) -> Response {
    let mark = if back.contains('?') { '&' } else { '?' };
    Redirect::to(&format!("{back}{mark}{name}={}", encoded(value))).into_response()
}

/// Error page with a status and one line.
#[derive(Debug)]
pub(super) struct PageError {
    status: StatusCode,
    line: String,
}

impl PageError {
    pub(super) fn refused(status: StatusCode, line: impl Into<String>) -> PageError {
        PageError { status, line: line.into() }
    }

    pub(super) fn bad(line: impl Into<String>) -> PageError {
        PageError::refused(StatusCode::BAD_REQUEST, line)
    }

    pub(super) fn failed(line: impl Into<String>) -> PageError {
        PageError::refused(StatusCode::INTERNAL_SERVER_ERROR, line)
    }

    pub(super) fn busy(line: impl Into<String>) -> PageError {
        PageError::refused(StatusCode::CONFLICT, line)
    }

    /// Error because another process holds the lease of a namespace.
    pub(super) fn leased(namespace: &str) -> PageError {
        let why = "another process is changing its memory; try again";
        PageError::busy(format!("namespace `{namespace}`: {why}"))
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> PageError {
        PageError::failed(error.to_string())
    }
}

impl From<SyncError> for PageError {
    fn from(error: SyncError) -> PageError {
        let status = match error {
            SyncError::Busy(_) => StatusCode::CONFLICT,
            SyncError::Store(_) | SyncError::Disk { .. } | SyncError::OtherNamespace { .. } => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        PageError::refused(status, error.to_string())
    }
}

impl From<LookupError> for PageError {
    fn from(error: LookupError) -> PageError {
        match error {
            LookupError::Id { .. } => PageError::bad(error.to_string()),
            LookupError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let PageError { status, line } = self;
        let title = status.canonical_reason().unwrap_or("Error");
        let body = "<h1>{{ title }}</h1><p>{{ line }}</p>";
        let page = rendered(body, context! { title, line })
            .and_then(|body| in_layout(body, context! { title, section => "error" }));
        match page {
            Ok(page) => (status, Html(page)).into_response(),
            Err(_) => status.into_response(),
        }
    }
}

/// Unwraps the one match of an id prefix, or explains the problem.
pub(super) fn one<T>(found: PrefixLookup<T>, what: &str) -> Result<T, PageError> {
    match found {
        PrefixLookup::One(one) => Ok(*one),
        PrefixLookup::None => {
            let line = format!("no such {what}; it may have been forgotten");
            Err(PageError::refused(StatusCode::NOT_FOUND, line))
        }
        PrefixLookup::Many(_) => {
            Err(PageError::bad(format!("this id matches more than one {what}")))
        }
    }
}

/// Parses an id or its prefix; `what` names the object in the error.
pub(super) fn parsed<T: FromStr>(id: &str, what: &str) -> Result<T, PageError> {
    id.parse().map_err(|_| PageError::bad(format!("expected the id of {what}")))
}
