//! Read endpoints: the answers of `records`, `memory list`, `search`, `context` and `status`, in the token's
//! namespace; and the query parameters of all endpoints as types, which reject unknown parameters.

use super::error::{ApiError, Result};
use super::state::{Caller, ServerState};
use crate::adapters::clock;
use crate::context::{Block, Budget};
use crate::domain::{ClaimKind, Coverage, Format, RecordState, Severity, Timestamp};
use crate::pipeline::{HitState, ProjectDirectory, SearchRequest, blocking, marked, search};
use crate::rows::{MemoryRow, RecordRow, SearchRow, json_row};
use crate::search::Query;
use crate::store::{NamespaceSums, RecordFilter, SearchFilter, TokenRight};
use axum::Json;
use axum::extract::{FromRequestParts, Query as AxumQuery, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Part of a list.
#[derive(JsonSchema, Serialize)]
pub(super) struct Page<T> {
    pub items: Vec<T>,
    /// `skip` of the next part, if there is one.
    pub next: Option<u32>,
}

impl<T> Page<T> {
    /// Builds the page from `all`, which starts at the first item and may extend past the page.
    fn of<'i, I>(all: &'i [I], paging: &Paging, row: impl Fn(&'i I) -> T) -> Page<T> {
        let end = (paging.skip + paging.limit) as usize;
        let items = all.iter().take(end).skip(paging.skip as usize).map(row).collect();
        Page { items, next: (end < all.len()).then_some(paging.skip + paging.limit) }
    }
}

json_row! {
    /// State of a namespace.
    pub(super) struct NamespaceStatus of name: String, sums: NamespaceSums {
        namespace: String = name,
        sessions: u64 = sums.sessions,
        /// State of every entry; `pending` ones are in the queue.
        coverage: Coverage = sums.totals.coverage,
        records: BTreeMap<ClaimKind, u64> = sums.totals.staged,
        quarantined: u64 = sums.totals.quarantined,
        runs_failed: u64 = sums.runs_failed,
    }
}

type Shared = State<Arc<ServerState>>;

pub(super) async fn records(
    caller: Caller,
    State(state): Shared,
    Parameters(query): Parameters<RecordsQuery>,
) -> Result<Response> {
    caller.may(TokenRight::Read)?;
    let RecordsQuery { kind, state: record_state, since, limit, skip } = query;
    let paging = Paging::of(skip, limit)?;
    let time = |text: String| {
        let wrong = || refused("since: expected a time such as 2026-11-21T09:00:00Z");
        Timestamp::of_rfc3339(&text).ok_or_else(wrong)
    };
    let filter = RecordFilter {
        kind,
        since: since.map(time).transpose()?,
        namespace: Some(caller.namespace),
        states: record_state.into_iter().collect(),
        newest_first: true,
        limit: Some(paging.read()),
        ..RecordFilter::default()
    };
    let records = state.store.records(filter).await?;
    Ok(Json(Page::of(&records, &paging, RecordRow::of)).into_response())
}

pub(super) async fn memory(
    caller: Caller,
    State(state): Shared,
    Parameters(MemoryQuery { all, limit, skip }): Parameters<MemoryQuery>,
) -> Result<Response> {
    caller.may(TokenRight::Read)?;
    let paging = Paging::of(skip, limit)?;
    let memories = state.store.latest_memories(&caller.namespace, all, paging.read()).await?;
    let hits = marked(&state.store, memories, None, clock::now()).await?;
    let rows: Vec<MemoryRow<'_>> = hits.iter().filter_map(MemoryRow::of_hit).collect();
    Ok(Json(Page::of(&rows, &paging, |row| row)).into_response())
}

pub(super) async fn search_hits(
    caller: Caller,
    State(state): Shared,
    Parameters(query): Parameters<SearchQuery>,
) -> Result<Response> {
    caller.may(TokenRight::Read)?;
    let SearchQuery { query: words, kind, state: hit_state, open, limit } = query;
    let paging = Paging::of(None, limit)?;
    let query = Query::parse(&words).map_err(|why| refused(&format!("query: {why}")))?;
    let filter =
        SearchFilter { namespace: Some(caller.namespace), kind, open, ..SearchFilter::default() };
    let limit = paging.limit as usize;
    // An unreadable directory is treated as absent.
    let here = state.project.directory().ok().flatten();
    let mut request =
        SearchRequest { words, filter, state: hit_state, limit, here, ..SearchRequest::default() };
    if let Some(embedder) = &state.embedder
        && let Some(note) = embedder.prepare(&state.store, &mut request).await
    {
        tracing::info!(%note, "searched");
    }
    // Notes are files of one machine; agents there read them from their own directory.
    let hits = search(Some(&state.store), &request, Vec::new()).await?;
    let rows: Vec<SearchRow<'_>> = hits.iter().map(|hit| SearchRow::of(hit, &query)).collect();
    Ok(Json(rows).into_response())
}

pub(super) async fn context(
    caller: Caller,
    State(state): Shared,
    Parameters(ContextQuery { query, budget }): Parameters<ContextQuery>,
) -> Result<Json<Block>> {
    caller.may(TokenRight::Read)?;
    let own = state.project.namespace(Some(&state.store)).await?;
    if own != caller.namespace {
        let what = format!("no memory directory of `{}`", caller.namespace);
        let expected = format!("a token of `{own}`, the project of this server");
        return Err(ApiError::new(StatusCode::NOT_FOUND, &what, "Authorization", &expected));
    }
    let budget = match budget.as_deref().map(Budget::parse) {
        Some((_, findings)) if findings.iter().any(|it| it.severity > Severity::Info) => {
            return Err(refused(&format!("budget: expected {}", Budget::EXPECTED)));
        }
        Some((budget, _)) => Some(budget),
        None => None,
    };
    let block = blocking(move || {
        let Some(found) = state.project.directory()? else { return Ok(Block::default()) };
        let directory = ProjectDirectory::new(found);
        let budget = budget.unwrap_or_else(|| Budget::of(directory.settings.token_budget));
        let query = query.as_deref().filter(|words| !words.trim().is_empty());
        directory.block(query, &budget, &state.project.gate)
    });
    let block: Result<Block, std::io::Error> = block.await;
    block.map(Json).map_err(|error| {
        tracing::error!(%error, "the memory directory cannot be read");
        let what = "the memory directory cannot be read";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, what, "the server", "see its log")
    })
}

pub(super) async fn status(
    caller: Caller,
    State(state): Shared,
    Parameters(StatusQuery {}): Parameters<StatusQuery>,
) -> Result<Json<NamespaceStatus>> {
    caller.may(TokenRight::Read)?;
    let sums = state.store.namespace_sums(&caller.namespace).await?;
    Ok(Json(NamespaceStatus::of(caller.namespace, sums)))
}

const ITEMS: u32 = 100;
const ITEMS_MAX: u32 = 1_000;
const SKIP_MAX: u32 = 10_000;

/// Prefix of the messages about parameters.
const NOT_READ: &str = "Failed to deserialize query string: ";
/// Messages of the parser about a value, and ours.
const PARSER_MESSAGES: [(&str, &str); 5] = [
    ("cannot parse integer from empty string", "expected a whole number"),
    ("invalid digit found in string", "expected a whole number"),
    ("number too large to fit in target type", "expected a smaller number"),
    ("provided string was not `true` or `false`", "expected true or false"),
    ("unknown field", "unknown parameter"),
];

pub(super) struct Parameters<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Parameters<T>> {
        let query = AxumQuery::<T>::try_from_uri(&parts.uri);
        query.map(|it| Parameters(it.0)).map_err(|error| {
            let text = error.body_text();
            let mut line = text.strip_prefix(NOT_READ).unwrap_or(&text).to_owned();
            for (of_parser, ours) in PARSER_MESSAGES {
                line = line.replace(of_parser, ours);
            }
            refused(&line)
        })
    }
}

fn refused(what: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, what, "query", "the parameters of /v1/openapi.json")
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusQuery {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SlicesQuery {
    /// The last entries do not wait for more
    #[serde(default)]
    pub flush: bool,
}

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

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextQuery {
    /// Prefer entries with these words
    pub query: Option<String>,
    /// Maximum length: economy, light, standard, detailed or a number of tokens
    pub budget: Option<String>,
}

struct Paging {
    skip: u32,
    limit: u32,
}

impl Paging {
    fn of(skip: Option<u32>, limit: Option<u32>) -> Result<Paging> {
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
    fn read(&self) -> u32 {
        self.skip + self.limit + 1
    }
}
