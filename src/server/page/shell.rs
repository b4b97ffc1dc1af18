//! Frame of every page: shared state, layout with navigation and notices, request parameters, and errors as pages.

use crate::domain::named;
use crate::memory_dir::SOURCE;
use crate::pipeline::{LookupError, SyncError, blocking};
use crate::server::error::ErrorLine;
pub(super) use crate::server::error::{ApiError, Result};
use crate::server::state::ServerState;
use crate::store::{IdPrefix, PrefixLookup};
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
    pub(super) state: Arc<ServerState>,
    /// Path and query, to return to.
    here: String,
    parameters: BTreeMap<String, String>,
    /// The plan that was just applied, while it can be undone.
    done: Option<String>,
}

impl FromRequestParts<Arc<ServerState>> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<ServerState>,
    ) -> Result<Visit, Infallible> {
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
            && let Ok(PrefixLookup::One(stored)) = state.store.plan_entry(prefix, 0).await
        {
            done = stored.undone_at.is_none().then(|| stored.id.to_string());
        }
        Ok(Visit { state: Arc::clone(state), here, parameters, done })
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
        let (csrf, here) = (self.state.csrf(), self.here.as_str());
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
    Ok(terminal::neutral(&page.map_err(|error| ApiError::failed(error.to_string()))?))
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

/// Refusals of the page, of one line each; [`show_errors`] renders them.
impl ApiError {
    pub(super) fn of_page(status: StatusCode, line: impl Into<String>) -> ApiError {
        ApiError::new(status, &line.into(), "", "")
    }

    pub(super) fn bad(line: impl Into<String>) -> ApiError {
        ApiError::of_page(StatusCode::BAD_REQUEST, line)
    }

    pub(super) fn failed(line: impl Into<String>) -> ApiError {
        ApiError::of_page(StatusCode::INTERNAL_SERVER_ERROR, line)
    }

    pub(super) fn busy(line: impl Into<String>) -> ApiError {
        ApiError::of_page(StatusCode::CONFLICT, line)
    }

    /// Error because another process holds the lease of a namespace.
    pub(super) fn leased(namespace: &str) -> ApiError {
        let why = "another process is changing its memory; try again";
        ApiError::busy(format!("namespace `{namespace}`: {why}"))
    }
}

impl From<SyncError> for ApiError {
    fn from(error: SyncError) -> ApiError {
        match error {
            SyncError::Busy(_) => ApiError::busy(error.to_string()),
            SyncError::Store(error) => error.into(),
            SyncError::Disk { .. } | SyncError::OtherNamespace { .. } => {
                ApiError::failed(error.to_string())
            }
        }
    }
}

impl From<LookupError> for ApiError {
    fn from(error: LookupError) -> ApiError {
        match error {
            LookupError::Name(line) => ApiError::bad(line),
            LookupError::Store(error) => error.into(),
        }
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
    let line = response.extensions_mut().remove::<ErrorLine>();
    let line = line.filter(|it| it.expected.is_empty() || by_browser);
    let Some(ErrorLine { what, expected, .. }) = line else { return response };
    let line = match status {
        _ if expected.is_empty() => what,
        StatusCode::NOT_FOUND => "there is no page at this address".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => {
            "this address does not take this kind of request".to_owned()
        }
        _ if status.is_server_error() => what,
        _ => format!("{what}: expected {expected}"),
    };
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
            Err(ApiError::of_page(StatusCode::NOT_FOUND, line))
        }
        PrefixLookup::Many(_) => {
            Err(ApiError::bad(format!("this id matches more than one {what}")))
        }
    }
}

/// Parses an id or its prefix; `what` names the object in the error.
pub(super) fn parsed<T: FromStr>(id: &str, what: &str) -> Result<T> {
    id.parse().map_err(|_| ApiError::bad(format!("expected the id of {what}")))
}
