//! Read endpoints: the answers of `records`, `memory list`, `search`, `context` and `status`, in the token's
//! namespace.

use super::access::Caller;
use super::error::ApiError;
use super::query::{
    ContextQuery, MemoryQuery, Paging, Parameters, RecordsQuery, SearchQuery, refused,
};
use super::state::ServerState;
use crate::adapters::memory_files::MemoryFolder;
use crate::context::{Block, Budget};
use crate::domain::{ClaimKind, Coverage, Severity, Timestamp};
use crate::pipeline::blocking;
use crate::pipeline::{ProjectDirectory, SearchRequest, search};
use crate::rows::{MemoryRow, RecordRow, SearchRow};
use crate::search::Query;
use crate::store::{NamespaceSums, RecordFilter, SearchFilter, SessionTotals, TokenRight};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
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

/// State of a namespace.
#[derive(JsonSchema, Serialize)]
pub(super) struct NamespaceStatus {
    namespace: String,
    sessions: u64,
    /// State of every entry; `pending` ones are in the queue.
    coverage: Coverage,
    records: BTreeMap<ClaimKind, u64>,
    quarantined: u64,
    runs_failed: u64,
}

type Shared = State<Arc<ServerState>>;

pub(super) async fn records(
    caller: Caller,
    State(state): Shared,
    Parameters(query): Parameters<RecordsQuery>,
) -> Result<Response, ApiError> {
    caller.may(TokenRight::Read)?;
    let RecordsQuery { kind, state: record_state, since, limit, skip } = query;
    let paging = Paging::of(skip, limit)?;
    let since = match since {
        Some(text) => Some(
            Timestamp::of_rfc3339(&text)
                .ok_or_else(|| refused("since: expected a time such as 2026-11-21T09:00:00Z"))?,
        ),
        None => None,
    };
    let filter = RecordFilter {
        kind,
        since,
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
) -> Result<Response, ApiError> {
    caller.may(TokenRight::Read)?;
    let paging = Paging::of(skip, limit)?;
    let memories = state.store.latest_memories(&caller.namespace, all, paging.read()).await?;
    Ok(Json(Page::of(&memories, &paging, MemoryRow::of)).into_response())
}

pub(super) async fn search_hits(
    caller: Caller,
    State(state): Shared,
    Parameters(query): Parameters<SearchQuery>,
) -> Result<Response, ApiError> {
    caller.may(TokenRight::Read)?;
    let SearchQuery { query: words, kind, state: hit_state, open, limit } = query;
    let paging = Paging::of(None, limit)?;
    let query = Query::of(&words);
    if query.is_empty() && !words.trim().is_empty() {
        return Err(refused("query: too common to search for: use a rarer word"));
    }
    let filter =
        SearchFilter { namespace: Some(caller.namespace), kind, open, ..SearchFilter::default() };
    let limit = paging.limit as usize;
    let mut request =
        SearchRequest { words, filter, state: hit_state, limit, ..SearchRequest::default() };
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
) -> Result<Json<Block>, ApiError> {
    caller.may(TokenRight::Read)?;
    let own = state.namespace().await?;
    if own != caller.namespace {
        let what = format!("no memory directory of `{}`", caller.namespace);
        let expected = format!("a token of `{own}`, the project of this server");
        return Err(ApiError::new(StatusCode::NOT_FOUND, &what, "Authorization", &expected));
    }
    let budget = match budget.as_deref().map(Budget::parse) {
        Some((_, findings)) if findings.iter().any(|it| it.severity > Severity::Info) => {
            let expected = "economy, light, standard, detailed or a number of tokens";
            return Err(refused(&format!("budget: expected {expected}")));
        }
        Some((budget, _)) => Some(budget),
        None => None,
    };
    let block = blocking(move || {
        let folder = state.folders.first().cloned().unwrap_or_default();
        let Some(found) = MemoryFolder::find_above(&folder, state.home.as_deref())? else {
            return Ok(Block::default());
        };
        let directory = ProjectDirectory::new(found);
        let budget = budget.unwrap_or_else(|| Budget::of(directory.settings.token_budget));
        let query = query.as_deref().filter(|words| !words.trim().is_empty());
        directory.block(query, &budget, &state.gate)
    });
    let block: Result<Block, std::io::Error> = block.await;
    block.map(Json).map_err(|error| {
        tracing::error!(%error, "the memory directory cannot be read");
        let (status, what) =
            (StatusCode::INTERNAL_SERVER_ERROR, "the memory directory cannot be read");
        ApiError::new(status, what, "the server", "see its log")
    })
}

pub(super) async fn status(
    caller: Caller,
    State(state): Shared,
) -> Result<Json<NamespaceStatus>, ApiError> {
    caller.may(TokenRight::Read)?;
    let NamespaceSums { sessions, totals, runs_failed } =
        state.store.namespace_sums(&caller.namespace).await?;
    let SessionTotals { coverage, staged: records, quarantined, .. } = totals;
    let namespace = caller.namespace;
    let status =
        NamespaceStatus { namespace, sessions, coverage, records, quarantined, runs_failed };
    Ok(Json(status))
}
