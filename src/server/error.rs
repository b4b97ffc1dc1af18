//! Request errors as JSON: the problem, its place and the expectation.

use crate::store::StoreError;
use crate::text::phrase::with_causes;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) type Result<T, E = ApiError> = std::result::Result<T, E>;

/// `Retry-After` while the store is unavailable or the queue is full, in seconds.
const RETRY_SECS: u64 = 5;

/// Refusal or failure of a request.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct ApiError {
    #[serde(skip)]
    pub status: StatusCode,
    pub error: ErrorLine,
}

#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct ErrorLine {
    /// Problem, in words.
    pub what: String,
    /// Header, parameter or line with the problem.
    pub r#where: String,
    /// Expectation that was not met.
    pub expected: String,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, what: &str, place: &str, expected: &str) -> ApiError {
        let [what, r#where, expected] = [what, place, expected].map(str::to_owned);
        ApiError { status, error: ErrorLine { what, r#where, expected } }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        tracing::error!(error = with_causes(&error), "the store failed a request");
        let is_read_only = error.kind.is_read_only();
        let (status, expected) = match error.is_transient() || is_read_only {
            true => (StatusCode::SERVICE_UNAVAILABLE, "try again"),
            false => (StatusCode::INTERNAL_SERVER_ERROR, "see the log of the server"),
        };
        let what = format!("the store failed: {}", error.kind);
        ApiError::new(status, &what, "the server", expected)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, line) = (self.status, self.error.clone());
        let mut response = (status, axum::Json(self)).into_response();
        response.extensions_mut().insert(line);
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, RETRY_SECS.into());
            }
            _ => {}
        }
        response
    }
}
