//! Version 1 of the API: conversations in, records and memories out, all in the namespace of the token.

use super::access::Caller;
use super::error::ApiError;
use super::intake::receive;
use super::openapi::openapi;
use super::query::{Parameters, SlicesQuery, TranscriptQuery};
use super::reading;
use super::state::ServerState;
use crate::domain::Format;
use crate::pipeline::{EnqueueOptions, IntakeReport};
use crate::store::TokenRight;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use std::sync::{Arc, LazyLock};

/// Maximum size of the slice documents of one request.
const SLICES_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum size of a transcript.
const TRANSCRIPT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Cached, because it is served without authentication.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi().to_string());
/// `expected` of the error for an unknown path.
const OPERATIONS: &str = "an operation of /v1/openapi.json";
/// Maximum length of a stored file name, in characters.
const NAME_LETTERS_MAX: usize = 200;

/// Routes of the API in addition to `others`; all other paths are refused.
pub(super) fn router(state: Arc<ServerState>, others: Router) -> Router {
    Router::new()
        .route("/v1/slices", post(slices))
        .route("/v1/transcripts", post(transcripts))
        .route("/v1/records", get(reading::records))
        .route("/v1/memory", get(reading::memory))
        .route("/v1/search", get(reading::search_hits))
        .route("/v1/context", get(reading::context))
        .route("/v1/status", get(reading::status))
        .route(
            "/v1/openapi.json",
            get(async || ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str())),
        )
        .with_state(state)
        .merge(others)
        .method_not_allowed_fallback(async || {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", "path", OPERATIONS)
        })
        .fallback(async || {
            ApiError::new(StatusCode::NOT_FOUND, "no such operation", "path", OPERATIONS)
        })
}

type Accepted = (StatusCode, Json<IntakeReport>);

async fn slices(
    caller: Caller,
    State(state): State<Arc<ServerState>>,
    Parameters(SlicesQuery { flush }): Parameters<SlicesQuery>,
    request: Request,
) -> Result<Accepted, ApiError> {
    let how = EnqueueOptions { flush, format: Some(Format::Slice), ..EnqueueOptions::default() };
    let name = format!("http:{}", caller.name);
    taken(&state, &caller, HandedBody { request, name, bytes_max: SLICES_BYTES_MAX, how }).await
}

async fn transcripts(
    caller: Caller,
    State(state): State<Arc<ServerState>>,
    Parameters(TranscriptQuery { name, format, flush }): Parameters<TranscriptQuery>,
    request: Request,
) -> Result<Accepted, ApiError> {
    let file = name.as_deref().map(file_name).unwrap_or_default();
    let how = EnqueueOptions { flush, format, ..EnqueueOptions::default() };
    let name =
        format!("http:{}/{}", caller.name, if file.is_empty() { "transcript" } else { &file });
    taken(&state, &caller, HandedBody { request, name, bytes_max: TRANSCRIPT_BYTES_MAX, how }).await
}

/// Returns the last component of a path, without control characters.
fn file_name(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.chars().filter(|letter| !letter.is_control()).take(NAME_LETTERS_MAX).collect()
}

/// Body to enqueue, and the name of the token that sent it, which is independent of the speakers.
struct HandedBody {
    request: Request,
    name: String,
    bytes_max: u64,
    how: EnqueueOptions,
}

async fn taken(
    state: &ServerState,
    caller: &Caller,
    handed: HandedBody,
) -> Result<Accepted, ApiError> {
    caller.may(TokenRight::Write)?;
    let HandedBody { request, name, bytes_max, how } = handed;
    state.intake.check_room().await?;
    let (parts, body) = request.into_parts();
    check_head(&parts.headers, bytes_max)?;
    let upload = receive(body, bytes_max).await?;
    let how = EnqueueOptions { namespace: Some(caller.namespace.clone()), ..how };
    let report = state.intake.enqueue(upload, name, how).await?;
    Ok((StatusCode::ACCEPTED, Json(report)))
}

/// Refuses an unusable body before it is read.
fn check_head(headers: &HeaderMap, bytes_max: u64) -> Result<(), ApiError> {
    let is_coded = |it: &&HeaderValue| !it.as_bytes().eq_ignore_ascii_case(b"identity");
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(is_coded) {
        let what = format!("encoding {encoding:?}");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(ApiError::new(status, &what, "Content-Encoding", "a body without encoding"));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| bytes_max < length) {
        let (what, expected) = ("it is too large", format!("at most {bytes_max} bytes"));
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, what, "body", &expected));
    }
    Ok(())
}
