//! Frame of every page: layout with navigation and notices, request parameters, and errors as pages.

use super::opened::Page;
use crate::pipeline::{LookupError, SyncError};
use crate::store::{PrefixLookup, StoreError};
use crate::text::terminal;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse, Redirect, Response};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, context};
use serde::Serialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

const LAYOUT: &str = include_str!("templates/layout.html");
/// Macros shared by the templates.
const PARTS: &str = include_str!("templates/parts.html");
/// Query parameter with the id of the plan that was just applied.
const DONE: &str = "done";
/// Query parameter with a notice to show.
const TOLD: &str = "told";
/// Maximum page number of a list.
const PAGES_MAX: u32 = 100_000;

/// Request for a page.
pub(super) struct Visit {
    pub(super) page: Arc<Page>,
    /// Path and query, to return to.
    pub(super) here: String,
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

    /// Renders the page as HTML.
    pub(super) fn render(
        &self,
        title: &str,
        template: &str,
        view: impl Serialize,
    ) -> Result<Response, PageError> {
        let csrf = self.page.csrf();
        let body = rendered(
            &format!("{PARTS}{template}"),
            context! {
                v => Value::from(Serde(view)), csrf => csrf.as_str(), here => self.here.as_str()
            },
        )?;
        let section = self.here.trim_start_matches('/');
        let section = section.split(['/', '?']).next().unwrap_or_default();
        let done = self.get(DONE).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let page = rendered(
            &format!("{PARTS}{LAYOUT}"),
            context! {
                title => title, section => section, body => Value::from_safe_string(body),
                csrf => csrf, here => self.here.as_str(), done => done, told => self.get(TOLD),
            },
        )?;
        Ok(Html(page).into_response())
    }
}

/// Parses the query of an address; a malformed one has no parameters.
pub(super) fn parameters(uri: &Uri) -> BTreeMap<String, String> {
    Query::try_from_uri(uri).map(|Query(all)| all).unwrap_or_default()
}

/// Fills a template. Values are escaped, and invisible and bidirectional control characters are neutralised.
pub(super) fn rendered(template: &str, values: Value) -> Result<String, PageError> {
    let mut engine = Environment::empty();
    engine.set_auto_escape_callback(|_| AutoEscape::Html);
    engine.add_filter("url", |text: String| encoded(&text));
    engine.add_filter("count", |list: Value| list.len());
    let page = engine.template_from_str(template).and_then(|it| it.render(values));
    Ok(terminal::neutral(&page.map_err(|error| PageError::failed(error.to_string()))?))
}

/// Percent-encodes a text for a part of an address.
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

    pub(super) fn missing(what: &str) -> PageError {
        let line = format!("no such {what}; it may have been forgotten");
        PageError::refused(StatusCode::NOT_FOUND, line)
    }

    pub(super) fn unknown() -> PageError {
        let line = "open the address that `annalist serve` printed: it has the secret of this run";
        PageError::refused(StatusCode::UNAUTHORIZED, line)
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> PageError {
        PageError::failed(error.to_string())
    }
}

impl From<SyncError> for PageError {
    fn from(error: SyncError) -> PageError {
        match error {
            error @ SyncError::Busy(_) => PageError::busy(error.to_string()),
            error @ (SyncError::Store(_)
            | SyncError::Disk { .. }
            | SyncError::OtherNamespace { .. }) => PageError::failed(error.to_string()),
        }
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
        let page =
            rendered(body, context! { title => title, line => line.as_str() }).and_then(|body| {
                let body = Value::from_safe_string(body);
                rendered(
                    &format!("{PARTS}{LAYOUT}"),
                    context! { title => title, body => body, section => "error" },
                )
            });
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
        PrefixLookup::None => Err(PageError::missing(what)),
        PrefixLookup::Many(_) => {
            Err(PageError::bad(format!("this id matches more than one {what}")))
        }
    }
}
