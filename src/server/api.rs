//! Version 1 of the API: conversations in, records and memories out, all in the namespace of the token; and its OpenAPI
//! document, generated from the types that the handlers read and write.

use super::error::{ApiError, Result};
use super::intake::too_large;
use super::reading::{
    self, ContextQuery, MemoryQuery, NamespaceStatus, Page, Parameters, RecordsQuery, SearchQuery,
    SlicesQuery, StatusQuery, TranscriptQuery,
};
use super::state::{Caller, ServerState};
use crate::context::Block;
use crate::domain::Format;
use crate::pipeline::{EnqueueOptions, IntakeReport};
use crate::rows::{MemoryRow, RecordRow, SearchRow};
use crate::store::TokenRight;
use crate::transcripts::slice_schema;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};

/// Maximum size of the slice documents of one request.
const SLICES_BYTES_MAX: u64 = 64 * 1024 * 1024;
const TRANSCRIPT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Cached, because it is served without authentication.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi().to_string());
/// `expected` of the error for an unknown path.
const OPERATIONS: &str = "an operation of /v1/openapi.json";
/// Maximum length of a stored file name, in characters.
const NAME_LETTERS_MAX: usize = 200;

/// Routes of the API in addition to `others`.
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
}

/// Refuses all paths and methods that `router` has no handler for.
pub(super) fn closed(router: Router) -> Router {
    let refused = |status, what| async move { ApiError::new(status, what, "path", OPERATIONS) };
    router
        .method_not_allowed_fallback(move || {
            refused(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        })
        .fallback(move || refused(StatusCode::NOT_FOUND, "no such operation"))
}

type Accepted = (StatusCode, Json<IntakeReport>);

async fn slices(
    caller: Caller,
    State(state): State<Arc<ServerState>>,
    Parameters(SlicesQuery { flush }): Parameters<SlicesQuery>,
    request: Request,
) -> Result<Accepted> {
    let how = EnqueueOptions { flush, format: Some(Format::Slice), ..EnqueueOptions::default() };
    let name = format!("http:{}", caller.name);
    taken(&state, &caller, HandedBody { request, name, bytes_max: SLICES_BYTES_MAX, how }).await
}

async fn transcripts(
    caller: Caller,
    State(state): State<Arc<ServerState>>,
    Parameters(TranscriptQuery { name, format, flush }): Parameters<TranscriptQuery>,
    request: Request,
) -> Result<Accepted> {
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

async fn taken(state: &ServerState, caller: &Caller, handed: HandedBody) -> Result<Accepted> {
    caller.may(TokenRight::Write)?;
    let HandedBody { request, name, bytes_max, how } = handed;
    state.intake.check_room().await?;
    let (parts, body) = request.into_parts();
    check_head(&parts.headers, bytes_max)?;
    let upload = state.intake.receive(&caller.name, body, bytes_max).await?;
    let how = EnqueueOptions { namespace: Some(caller.namespace.clone()), ..how };
    let report = state.intake.enqueue(upload, name, how).await?;
    Ok((StatusCode::ACCEPTED, Json(report)))
}

/// Refuses an unusable body before it is read.
fn check_head(headers: &HeaderMap, bytes_max: u64) -> Result<()> {
    let is_coded = |it: &&HeaderValue| !it.as_bytes().eq_ignore_ascii_case(b"identity");
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(is_coded) {
        let what = format!("encoding {encoding:?}");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(ApiError::new(status, &what, "Content-Encoding", "a body without encoding"));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    match length.is_some_and(|length: u64| bytes_max < length) {
        true => Err(too_large(bytes_max)),
        false => Ok(()),
    }
}

/// Builds the document that `/v1/openapi.json` serves.
pub(crate) fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut types = settings.into_generator();
    let paths = paths(&mut types);
    let mut schemas = Map::new();
    schemas.insert("SliceDocument".to_owned(), slice_schema().clone());
    schemas.extend(types.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "annalist",
            "version": "1",
            "description": "Conversations in, records and memories out. Everything is in the namespace of the token.",
        },
        "servers": [{"url": "http://127.0.0.1:4816"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

/// Operation with the fields of `P` as parameters, `body` by media type as the request if it has one, and `A` as the answer.
fn operation<P: JsonSchema, A: JsonSchema>(
    types: &mut SchemaGenerator,
    summary: &str,
    body: Option<Value>,
) -> Value {
    let content = |schema| json!({"application/json": {"schema": schema}});
    let answer = content(types.subschema_for::<A>());
    let error = content(types.subschema_for::<ApiError>());
    let (method, status, description) = match body {
        Some(_) => ("post", "202", "Accepted and stored"),
        None => ("get", "200", "The answer"),
    };
    let refused = "Refused or failed: what, where, and what was expected";
    let mut operation = json!({
        "summary": summary,
        "parameters": parameters::<P>(),
        "responses": {
            status: {"description": description, "content": answer},
            "default": {"description": refused, "content": error},
        },
    });
    if let Some(body) = body {
        let too_large = "The body or each of its documents is too large";
        operation["responses"]["413"] = json!({"description": too_large, "content": error});
        operation["requestBody"] = json!({"required": true, "content": body});
    }
    json!({ method: operation })
}

fn paths(it: &mut SchemaGenerator) -> Value {
    type Records = Page<RecordRow<'static>>;
    type Memories = Page<MemoryRow<'static>>;
    type Hits = Vec<SearchRow<'static>>;
    let slices = "Send slice documents, one or one per line (token: write)";
    let transcript = "Send a transcript in any supported format (token: write)";
    let records = "List records, newest first (token: read)";
    let memory = "List memories, newest first (token: read)";
    let search = "Search records and memories, best match first (token: read)";
    let context = "The start block of a session in the server's project (token: read)";
    let status = "Totals of the states of all entries in the namespace (token: read)";
    let document = json!({"schema": {"$ref": "#/components/schemas/SliceDocument"}});
    let bytes = json!({"schema": {}});
    let documents = json!({"application/json": document, "application/jsonl": bytes});
    let file = json!({"application/octet-stream": bytes});
    json!({
        "/v1/slices": operation::<SlicesQuery, IntakeReport>(it, slices, Some(documents)),
        "/v1/transcripts": operation::<TranscriptQuery, IntakeReport>(it, transcript, Some(file)),
        "/v1/records": operation::<RecordsQuery, Records>(it, records, None),
        "/v1/memory": operation::<MemoryQuery, Memories>(it, memory, None),
        "/v1/search": operation::<SearchQuery, Hits>(it, search, None),
        "/v1/context": operation::<ContextQuery, Block>(it, context, None),
        "/v1/status": operation::<StatusQuery, NamespaceStatus>(it, status, None),
    })
}

/// Returns the fields of `T` as query parameters.
fn parameters<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let fields = schema["properties"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let parameters = fields.into_iter().map(|(name, mut schema)| {
        let description = schema.as_object_mut().and_then(|it| it.remove("description"));
        json!({"name": name, "in": "query", "description": description, "schema": schema})
    });
    parameters.collect()
}
