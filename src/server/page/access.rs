//! Access to the page: a secret of this run in the printed address, then a cookie. Changes need our origin and a CSRF
//! token.

use super::shell::{ApiError, Result, parameters, secured};
use crate::domain::Digest;
use crate::server::state::ServerState;
use axum::extract::{Form, FromRequest, Request, State};
use axum::http::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Query parameter of the printed address.
pub(super) const TOKEN: &str = "token";
const CSRF: &str = "csrf";

impl ServerState {
    /// Secret of this run; there is no page without one.
    fn secret(&self) -> &str {
        self.page_secret.as_deref().unwrap_or_default()
    }

    pub(super) fn csrf(&self) -> String {
        Digest::of(&["page-form", self.secret()]).to_string()
    }

    fn cookie(&self) -> String {
        Digest::of(&["page-cookie", self.secret()]).to_string()
    }
}

/// Name of the cookie: browsers send it to all ports of a host, and each may have a server.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|it| Authority::try_from(it.as_bytes()).ok());
    format!("annalist-{}", host.and_then(|it| it.port_u16()).unwrap_or_default())
}

/// Compares hashes, so that timing reveals nothing.
fn is_same(one: &str, other: &str) -> bool {
    blake3::hash(one.as_bytes()) == blake3::hash(other.as_bytes())
}

/// Middleware that admits only requests with access to the page.
pub(super) async fn guard(
    State(state): State<Arc<ServerState>>,
    request: Request,
    next: Next,
) -> Response {
    secured(match refusal(&state, &request) {
        Some(refused) => refused,
        None => next.run(request).await,
    })
}

fn unknown() -> Response {
    let line = "open the address that `annalist serve` printed: it has the secret of this run";
    ApiError::of_page(StatusCode::UNAUTHORIZED, line).into_response()
}

fn refusal(state: &ServerState, request: &Request) -> Option<Response> {
    // They hold no data, and the page of a refusal needs them.
    if ["/style.css", "/script.js"].contains(&request.uri().path()) {
        return None;
    }
    if request.method() == Method::GET
        && let Some(token) = parameters(request.uri()).get(TOKEN)
    {
        let is_ours = is_same(token, state.secret());
        return Some(if is_ours { entered(state, request) } else { unknown() });
    }
    let cookies = request.headers().get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let mut pairs = cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    let (own_name, own) = (cookie_name(request.headers()), state.cookie());
    let is_known = pairs.any(|(name, value)| name == own_name && is_same(value, &own));
    (!is_known).then(unknown)
}

/// Exchanges the secret in the address for a cookie.
fn entered(state: &ServerState, request: &Request) -> Response {
    let (name, value) = (cookie_name(request.headers()), state.cookie());
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict");
    (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, request.uri().path().to_owned())])
        .into_response()
}

/// Submitted form whose origin and CSRF token were checked.
pub(super) struct Posted {
    pub(super) state: Arc<ServerState>,
    fields: BTreeMap<String, String>,
}

impl Posted {
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Path to return to: the form's `back` if it is local, else `otherwise`.
    pub(super) fn back<'a>(&'a self, otherwise: &'a str) -> &'a str {
        let back = self.field("back");
        let is_ours = back.starts_with('/')
            && !back.starts_with("//")
            && back.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if is_ours { back } else { otherwise }
    }
}

impl FromRequest<Arc<ServerState>> for Posted {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<ServerState>) -> Result<Posted> {
        // If the header is present, its value was checked before.
        let has_origin = request.headers().contains_key(ORIGIN);
        let form = Form::<BTreeMap<String, String>>::from_request(request, state).await;
        let Form(fields) = form.map_err(|_| ApiError::bad("not a form of this page"))?;
        let posted = Posted { state: Arc::clone(state), fields };
        let refused = |line| Err(ApiError::of_page(StatusCode::FORBIDDEN, line));
        match posted.field(CSRF) {
            _ if !has_origin => refused("the header Origin is missing; nothing was changed"),
            "" => refused("not a form of this page; nothing was changed"),
            csrf if is_same(csrf, &posted.state.csrf()) => Ok(posted),
            _ => refused("this form is from another run of `annalist serve`: reload the page"),
        }
    }
}
