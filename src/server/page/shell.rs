//! Frame of every page: shared state, layout with navigation and notices, request parameters, and errors as pages.

use crate::adapters::process;
use crate::adapters::spool::Spool;
use crate::config::Config;
use crate::domain::{Timestamp, named};
use crate::memory_dir::SOURCE;
use crate::pipeline::{
    Consolidator, DirSync, Directories, Embedder, LookupError, SyncError, blocking,
};
use crate::server::error::{ApiError, ErrorLine, with_retry};
use crate::server::state::ServerState;
use crate::store::{IdPrefix, PrefixLookup, Store, StoreError};
use crate::text::terminal;
use axum::body::Body;
use axum::extract::{FromRequestParts, Query, Request};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName,
    REFERER, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Redirect, Response};
use minijinja::{AutoEscape, Environment, HtmlEscape, Value, context};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::str::FromStr;
use std::sync::Arc;
use tokio::runtime::Handle;

pub(super) type Result<T, E = PageError> = std::result::Result<T, E>;

const LAYOUT: &str = include_str!("templates/layout.html");
/// Macros shared by the templates.
const PARTS: &str = include_str!("templates/parts.html");
/// Query parameter with the id of the plan that was just applied.
const DONE: &str = "done";
/// Query parameter with a [`Notice`].
const TOLD: &str = "told";

named! {
    /// Result of a form, in the words that the next page shows.
    pub(super) Notice {
        Changed = "Something changed: this is the updated plan.",
        InEffect = "The plan is in effect: nothing to redo.",
        NotRetried = "None of these jobs is left to retry.",
        Refused = "Refused: its records are set aside.",
        Retried = "The jobs will be retried.",
        Staged = "Its records are staged again. They become memory when you accept this plan.",
        Undone = "The plan is undone.",
        UndoneBefore = "This plan is already undone.",
    }
}

/// Security headers. The referrer policy is `same-origin` because `no-referrer` hides the origin of forms.
const RULES: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "same-origin"),
    (CACHE_CONTROL, "no-store"),
];
const PAGES_MAX: u32 = 100_000;

/// The store and the directories that the handlers read and change.
pub(super) struct Page {
    pub(super) config: Config,
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
            config: project.config.clone(),
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

pub(super) struct Visit {
    pub(super) page: Arc<Page>,
    /// Path and query, to return to.
    here: String,
    parameters: BTreeMap<String, String>,
    /// The plan that was just applied, while it can be undone.
    done: Option<String>,
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
        let mut done = None;
        if let Some(Ok(prefix)) = parameters.get(DONE).map(|it| it.parse::<IdPrefix>())
            && let Ok(PrefixLookup::One(stored)) = page.store.plan_entry(prefix, 0).await
        {
            done = stored.undone_at.is_none().then(|| stored.id.to_string());
        }
        Ok(Visit { page: Arc::clone(page), here, parameters, done })
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
    pub(super) fn render(&self, title: &str, template: &str, view: Value) -> Result<Response> {
        let (csrf, here) = (self.page.csrf(), self.here.as_str());
        let values = context! { v => view, csrf => &csrf, here };
        let body = rendered(&format!("{PARTS}{template}"), values)?;
        let section = here.trim_start_matches('/');
        let section = section.split(['/', '?']).next().unwrap_or_default();
        let done = self.done.as_deref();
        let told = self.get(TOLD).and_then(Notice::of_name).map(Notice::name);
        let page = in_layout(body, context! { title, section, csrf, here, done, told })?;
        Ok(Html(page).into_response())
    }
}

/// Parses the query of an address; a malformed one has no parameters.
pub(super) fn parameters(uri: &Uri) -> BTreeMap<String, String> {
    Query::try_from_uri(uri).map(|Query(all)| all).unwrap_or_default()
}

fn in_layout(body: String, values: Value) -> Result<String> {
    let body = Value::from_safe_string(body);
    rendered(&format!("{PARTS}{LAYOUT}"), context! { body, ..values })
}

/// Fills a template. Values are escaped, and invisible and bidirectional control characters are neutralised.
fn rendered(template: &str, values: Value) -> Result<String> {
    let mut engine = Environment::empty();
    engine.set_auto_escape_callback(|_| AutoEscape::Html);
    engine.add_filter("url", |text: String| encoded(&text));
    engine.add_filter("count", |list: Value| list.len());
    engine.add_filter("code", code);
    engine.add_filter("linked", linked);
    engine.add_filter("sentence", sentence);
    let page = engine.template_from_str(template).and_then(|it| it.render(values));
    Ok(terminal::neutral(&page.map_err(|error| PageError::failed(error.to_string()))?))
}

/// Begins a message with a capital letter.
fn sentence(text: String) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.collect::<String>() + letters.as_str()
}

/// Makes code of what is between backticks.
fn code(text: String) -> Value {
    let parts = text.split('`').map(HtmlEscape).enumerate();
    let parts = parts.map(|(at, it)| match at % 2 {
        0 => it.to_string(),
        _ => format!("<code>{it}</code>"),
    });
    Value::from_safe_string(parts.collect())
}

/// Makes links of the tags of memories.
fn linked(text: String) -> Value {
    let word = |word: &str| {
        let tag = word.trim_end_matches([' ', ',', ';']);
        let (escaped, rest) = (HtmlEscape(tag), &word[tag.len()..]);
        match tag.starts_with(SOURCE) {
            true => format!("<a href=\"/memory/{escaped}\">{escaped}</a>{rest}"),
            false => format!("{escaped}{rest}"),
        }
    };
    Value::from_safe_string(text.split_inclusive(' ').map(word).collect())
}

pub(super) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Redirects to `back` after a plan was applied, with an offer to undo it.
pub(super) fn went_on(back: &str, plan: &str) -> Response {
    with_parameter(back, DONE, plan)
}

pub(super) fn telling(back: &str, notice: Notice) -> Response {
    with_parameter(back, TOLD, notice.name())
}

fn with_parameter(back: &str, name: &str, value: &str) -> Response {
    let mark = if back.contains('?') { '&' } else { '?' };
    Redirect::to(&format!("{back}{mark}{name}={}", encoded(value))).into_response()
}

/// Error page with a status and one line; [`show_errors`] renders it.
#[derive(Clone, Debug)]
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
        let ApiError { status, error } = error.into();
        PageError::refused(status, error.what)
    }
}

impl From<SyncError> for PageError {
    fn from(error: SyncError) -> PageError {
        match error {
            SyncError::Busy(_) => PageError::busy(error.to_string()),
            SyncError::Store(error) => error.into(),
            SyncError::Disk { .. } | SyncError::OtherNamespace { .. } => {
                PageError::failed(error.to_string())
            }
        }
    }
}

impl From<LookupError> for PageError {
    fn from(error: LookupError) -> PageError {
        match error {
            LookupError::Name(line) => PageError::bad(line),
            LookupError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = with_retry(self.status.into_response());
        response.extensions_mut().insert(self);
        response
    }
}

/// Middleware that renders the errors of pages, and for browsers those of other addresses but the interfaces.
pub(in crate::server) async fn show_errors(request: Request, next: Next) -> Response {
    let of_program = ["v1", "mcp"].contains(&request.uri().path().split('/').nth(1).unwrap_or(""));
    let accepted = request.headers().get(ACCEPT).and_then(|it| it.to_str().ok());
    let by_browser = !of_program && accepted.is_some_and(|it| it.contains("text/html"));
    let back = referer(request.headers());
    let mut response = next.run(request).await;
    let status = response.status();
    let of_page = response.extensions_mut().remove::<PageError>().map(|it| it.line);
    let of_other = response.extensions_mut().remove::<ErrorLine>().filter(|_| by_browser);
    let of_other = of_other.map(|ErrorLine { what, expected, .. }| match status {
        StatusCode::NOT_FOUND => "there is no page at this address".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => {
            "this address does not take this kind of request".to_owned()
        }
        _ => format!("{what}: expected {expected}"),
    });
    let Some(line) = of_page.or(of_other) else { return response };
    let title = status.canonical_reason().unwrap_or("Error");
    let body = "<h1>{{ title }}</h1><p>{{ line|sentence|code }}</p>\
        {% if back %}<p><a href=\"{{ back }}\">Back</a></p>{% endif %}";
    let page = rendered(body, context! { title, line, back })
        .and_then(|body| in_layout(body, context! { title, section => "error" }));
    if let Ok(page) = page {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, html);
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = Body::from(page);
    }
    secured(response)
}

pub(super) fn secured(mut response: Response) -> Response {
    for (name, value) in RULES {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Path and query of the page that a form was on; browsers name no other site's.
fn referer(headers: &HeaderMap) -> Option<String> {
    let from: Uri = headers.get(REFERER)?.to_str().ok()?.parse().ok()?;
    let own = headers.get(HOST)?.to_str().ok()?;
    let path = from.path_and_query().map(ToString::to_string);
    path.filter(|path| {
        from.authority().is_some_and(|it| it.as_str() == own) && !path.starts_with("//")
    })
}

/// Unwraps the one match of an id prefix, or explains the problem.
pub(super) fn one<T>(found: PrefixLookup<T>, what: &str) -> Result<T> {
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
pub(super) fn parsed<T: FromStr>(id: &str, what: &str) -> Result<T> {
    id.parse().map_err(|_| PageError::bad(format!("expected the id of {what}")))
}
