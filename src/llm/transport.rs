//! One HTTP attempt: sends, reads the body within its bound, and passes on only JSON. Runs below async-openai, so
//! that reply text never reaches its errors or its log.

use super::error::{ERROR_BYTES_MAX, Failure, ServerError};
use super::wait::wait_of;
use crate::domain::{REPLY_BYTES_MAX, Timestamp};
use crate::text::lenient_json::decode;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use reqwest::header::AUTHORIZATION;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Maximum bytes reserved for a body in advance, since `Content-Length` is only a claim.
const RESERVE_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of error causes that are inspected.
const CAUSES_MAX: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Transport {
    pub(super) http: reqwest::Client,
    /// True if a key is sent. Otherwise the header is removed, since some servers reject an empty one.
    pub(super) keyed: bool,
    pub(super) now: fn() -> Timestamp,
}

impl Transport {
    /// The service that async-openai calls.
    pub(super) async fn send(
        self,
        factory: HttpRequestFactory,
    ) -> Result<reqwest::Response, OpenAIError> {
        let request = factory.build().await?;
        let body = self.fetch(request).await;
        let body = body.map_err(|failure| OpenAIError::Boxed(failure.into()))?;
        Ok(http::Response::new(body).into())
    }

    /// Body of a successful response, validated as complete JSON.
    async fn fetch(&self, request: reqwest::Request) -> Result<Vec<u8>, Failure> {
        let response = self.open(request).await?;
        let body = read(response, REPLY_BYTES_MAX).await?;
        if body.is_empty() {
            return Err(Failure::InvalidReply { what: "no body" });
        }
        let body = String::from_utf8(body)
            .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned());
        match serde_json::from_str::<IgnoredAny>(&body) {
            // Only lone surrogates make it invalid; the rest of the reply is still usable.
            Ok(_) if serde_json::from_str::<Value>(&body).is_err() => {
                Ok(decode(&body, &["choices", "error", "data"]).0.to_string().into_bytes())
            }
            Ok(_) => Ok(body.into_bytes()),
            Err(_) => {
                let html = body.trim_start().starts_with('<');
                Err(Failure::InvalidReply { what: if html { "a web page" } else { "broken JSON" } })
            }
        }
    }

    /// Sends the request; returns a successful response with its body unread.
    async fn open(&self, mut request: reqwest::Request) -> Result<reqwest::Response, Failure> {
        if !self.keyed {
            request.headers_mut().remove(AUTHORIZATION);
        }
        let response = self.http.execute(request).await.map_err(|error| broken(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        // The status is known, so a truncated body is still useful.
        let body = read(response, ERROR_BYTES_MAX).await.unwrap_or_default();
        let said = Box::new(ServerError::of(&body));
        let wait = wait_of(&headers, &said.text, (self.now)());
        Err(Failure::Status { status: status.as_u16(), wait, said })
    }
}

/// Reads the body. Beyond `bytes_max` an error's body is truncated and a reply's is an error.
async fn read(mut response: reqwest::Response, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let success = response.status().is_success();
    let claimed = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(claimed.unwrap_or(0).min(RESERVE_BYTES_MAX));
    while let Some(chunk) = response.chunk().await.map_err(|error| broken(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() > bytes_max {
            if success {
                return Err(Failure::InvalidReply { what: "a body beyond the bound of 32 MiB" });
            }
            body.truncate(bytes_max);
            break;
        }
    }
    Ok(body)
}

pub(super) fn broken(error: &reqwest::Error) -> Failure {
    let what = if error.is_timeout() {
        "timed out"
    } else if error.is_connect() {
        why_not_connected(error)
    } else if error.is_body() || error.is_decode() {
        "the connection broke inside the body"
    } else {
        "the connection broke before an answer came"
    };
    Failure::Transport { what }
}

fn why_not_connected(error: &reqwest::Error) -> &'static str {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    for _ in 0..CAUSES_MAX {
        let Some(error) = cause else { break };
        let text = error.to_string();
        if text.contains("certificate") {
            return "the server's certificate is not trusted on this machine";
        }
        if text.contains("dns error") || text.contains("lookup address") {
            return "no such host is known; correct `base_url`";
        }
        if text.contains("InvalidContentType") {
            return "the server speaks no TLS at that port; begin `base_url` with http://";
        }
        cause = error.source();
    }
    "could not connect; start the server or correct `base_url`"
}

const _: () = assert!(ERROR_BYTES_MAX < REPLY_BYTES_MAX && REPLY_BYTES_MAX == 32 * 1024 * 1024);
