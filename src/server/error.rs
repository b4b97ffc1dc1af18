//! Request errors as JSON: the problem, its place and the expectation.

use crate::store::StoreError;
use crate::text::phrase::with_causes;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

/// `Retry-After` while the store is unavailable or the queue is full, in seconds.
const RETRY_SECS: u64 = 5;

/// Refusal or failure of a request.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct ApiError {
    #[serde(skip)]
    pub status: StatusCode,
    pub error: ErrorLine,
}

#[derive(Debug, JsonSchema, Serialize)]
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
        let (status, expected) = match error.is_transient() {
            true => (StatusCode::SERVICE_UNAVAILABLE, "try again"),
            false => (StatusCode::INTERNAL_SERVER_ERROR, "see the log of the server"),
        };
        ApiError::new(status, "the store failed", "the server", expected)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = (status, axum::Json(self)).into_response();
        let headers = response.headers_mut();
        if [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status) {
            headers.insert(RETRY_AFTER, RETRY_SECS.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
