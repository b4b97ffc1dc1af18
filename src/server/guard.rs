//! Middleware for every request: checks of host and origin, and a request id for the logs.

use super::error::{ApiError, Result};
use super::intake::too_many;
use axum::Router;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tracing::Instrument;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Maximum length of an id set by a proxy.
const REQUEST_ID_BYTES_MAX: usize = 64;

/// Maximum number of request bodies in flight besides those of [`INTAKE`]; a quarter of the connections stays for other
/// requests.
const BODIES_MAX: usize = 64;
/// Paths whose bodies have slots of their own, which are taken only once the token is known.
const INTAKE: &str = "/v1/";

/// Host names under which clients may address the server. Requests from a web page that uses another name (DNS
/// rebinding) or has another origin are refused.
struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    fn has(&self, host: &str) -> bool {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.to_canonical().is_loopback())
            || self.0.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    fn check(&self, headers: &HeaderMap) -> Result<()> {
        let refused = |what: &str, place: &str, expected: &str| {
            Err(ApiError::new(StatusCode::FORBIDDEN, what, place, expected))
        };
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|it| it.parse::<Authority>().ok()),
            _ => None,
        };
        let Some(host) = host.filter(|host| self.has(host.host())) else {
            let expected = "localhost, 127.0.0.1, [::1] or a name that `--host` allows";
            return refused("a host name that this server does not accept", "Host", expected);
        };
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        match origin {
            Some(("http" | "https", own)) if own.eq_ignore_ascii_case(host.as_str()) => Ok(()),
            _ => refused("a request from another web page", "Origin", "this server's own page"),
        }
    }
}

/// Wraps `router`: checks each request, gives it an id and logs it without content. `hosts` are further names of the
/// server.
pub(super) fn guarded(router: Router, hosts: Vec<String>) -> Router {
    let (hosts, ids) = (Arc::new(AllowedHosts(hosts)), Arc::new(AtomicU64::new(1)));
    let uploads = Arc::new(Semaphore::new(BODIES_MAX));
    router.layer(from_fn(move |request: Request, next: Next| {
        let (hosts, ids, uploads) = (hosts.clone(), ids.clone(), uploads.clone());
        async move {
            let id = request_id(request.headers(), &ids);
            let span = tracing::info_span!("request", id = %id.to_str().unwrap_or_default());
            let mut response = async {
                let (method, begun) = (request.method().clone(), Instant::now());
                // Without the query, which may contain text of the user.
                let path = request.uri().path().to_owned();
                let slot = hosts.check(request.headers()).and_then(|()| upload(&request, &uploads));
                let response = match slot {
                    Ok(_slot) => next.run(request).await,
                    Err(error) => error.into_response(),
                };
                let (status, took) = (response.status().as_u16(), begun.elapsed());
                tracing::info!(%method, path, status, ms = took.as_millis() as u64, "answered");
                response
            }
            .instrument(span)
            .await;
            response.headers_mut().insert(REQUEST_ID, id);
            response
        }
    }))
}

/// Takes a slot if the request has a body that is not for the intake.
fn upload<'a>(request: &Request, slots: &'a Semaphore) -> Result<Option<SemaphorePermit<'a>>> {
    if request.body().is_end_stream() || request.uri().path().starts_with(INTAKE) {
        return Ok(None);
    }
    slots.try_acquire().map(Some).map_err(|_| too_many(BODIES_MAX, ""))
}

/// Returns the id set by a proxy, or the next one of this process.
fn request_id(headers: &HeaderMap, ids: &AtomicU64) -> HeaderValue {
    let is_plain = |value: &&HeaderValue| {
        let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        (1..=REQUEST_ID_BYTES_MAX).contains(&value.len()) && value.as_bytes().iter().all(letter)
    };
    let given = headers.get(&REQUEST_ID).filter(is_plain).cloned();
    given.unwrap_or_else(|| ids.fetch_add(1, Ordering::Relaxed).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(HeaderName, &'static str)], expected: bool) {
        let hosts = AllowedHosts(vec!["memory.example".to_owned()]);
        let pairs = headers.iter().cloned();
        let map = pairs.map(|(name, value)| (name, HeaderValue::from_static(value)));
        let mut all = HeaderMap::new();
        for (name, value) in map {
            all.append(name, value);
        }
        assert_eq!(hosts.check(&all).is_ok(), expected, "{headers:?}");
    }

    #[test]
    fn only_names_of_this_machine_and_allowed_ones_are_hosts() {
        for host in ["localhost", "LOCALHOST:4816", "127.0.0.1:1", "127.1.2.3", "[::1]:4816"] {
            check(&[(HOST, host)], true);
        }
        check(&[(HOST, "Memory.Example")], true);
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "a b", "localhost."]
        {
            check(&[(HOST, host)], false);
        }
        check(&[], false);
        check(&[(HOST, "localhost"), (HOST, "evil.example")], false);
    }

    #[test]
    fn another_web_page_is_refused() {
        let host = (HOST, "localhost:4816");
        check(&[host.clone(), (ORIGIN, "http://localhost:4816")], true);
        for origin in ["http://localhost:3000", "https://evil.example", "null", "file://", ""] {
            check(&[host.clone(), (ORIGIN, origin)], false);
        }
    }

    #[test]
    fn an_id_is_the_proxys_if_it_is_plain() {
        let ids = AtomicU64::new(7);
        let id = |given: &'static str| {
            let headers = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_static(given))]);
            request_id(&headers, &ids)
        };
        assert_eq!(id("a-1.b_2"), "a-1.b_2");
        assert_eq!(id("a b"), "7");
        assert_eq!(id(""), "8");
    }
}
