//! Query parameters as types. Unknown parameters are refused.

use super::error::ApiError;
use crate::domain::{ClaimKind, Format, RecordState};
use crate::pipeline::HitState;
use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Default page size.
pub(super) const ITEMS: u32 = 100;
/// Maximum page size.
pub(super) const ITEMS_MAX: u32 = 1_000;
/// Maximum offset of a page.
const SKIP_MAX: u32 = 10_000;

/// Extracts the parameters of a request.
pub(super) struct Parameters<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Parameters<T>, ApiError> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(parameters)) => Ok(Parameters(parameters)),
            Err(error) => Err(refused(&error.body_text())),
        }
    }
}

pub(super) fn refused(what: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, what, "query", "the parameters of /v1/openapi.json")
}

/// Parameters of slices.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SlicesQuery {
    /// The last entries do not wait for more
    #[serde(default)]
    pub flush: bool,
}

/// Parameters of a transcript.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TranscriptQuery {
    /// Name of its file, which helps to tell its format
    pub name: Option<String>,
    /// Its format; detected otherwise
    pub format: Option<Format>,
    /// The last entries do not wait for more
    #[serde(default)]
    pub flush: bool,
}

/// Parameters of records.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordsQuery {
    /// Only this kind
    pub kind: Option<ClaimKind>,
    /// Only this state, instead of staged and quarantined
    pub state: Option<RecordState>,
    /// Only what was said then or later, in RFC 3339
    pub since: Option<String>,
    /// At most so many
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// Leave out so many, the newest
    #[schemars(range(max = 10000))]
    pub skip: Option<u32>,
}

/// Parameters of memories.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryQuery {
    /// Superseded and retracted ones too
    #[serde(default)]
    pub all: bool,
    /// At most so many
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// Leave out so many, the newest
    #[schemars(range(max = 10000))]
    pub skip: Option<u32>,
}

/// Parameters of a search.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchQuery {
    /// Words in any case, form and order; without any the newest are listed
    #[serde(default)]
    pub query: String,
    /// Only this kind
    pub kind: Option<ClaimKind>,
    /// Only this state
    pub state: Option<HitState>,
    /// Only what is open: requests, questions, failures
    #[serde(default)]
    pub open: bool,
    /// At most so many
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
}

/// Parameters of a block of context.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextQuery {
    /// Prefer entries with these words
    pub query: Option<String>,
    /// Maximum length: economy, light, standard, detailed or a number of tokens
    pub budget: Option<String>,
}

/// Bounds of a page.
pub(super) struct Paging {
    pub skip: u32,
    pub limit: u32,
}

impl Paging {
    pub(super) fn of(skip: Option<u32>, limit: Option<u32>) -> Result<Paging, ApiError> {
        let paging = Paging { skip: skip.unwrap_or(0), limit: limit.unwrap_or(ITEMS) };
        if !(1..=ITEMS_MAX).contains(&paging.limit) {
            return Err(refused(&format!("limit: expected 1 to {ITEMS_MAX}")));
        }
        if SKIP_MAX < paging.skip {
            return Err(refused(&format!("skip: expected at most {SKIP_MAX}")));
        }
        Ok(paging)
    }

    /// Number of items to read: up to the end of the page, and one more to detect a next page.
    pub(super) fn read(&self) -> u32 {
        self.skip + self.limit + 1
    }
}
