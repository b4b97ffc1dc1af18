//! Search with the ranking of the command line. The script requests the same page on each input.

use super::shell::{PageError, Visit};
use super::views::{address, cut, day, speaker};
use crate::domain::ClaimKind;
use crate::pipeline::{HitState, SearchHit, SearchRequest, search};
use crate::search::Query;
use crate::store::SearchFilter;
use axum::response::Response;
use serde::Serialize;

/// Maximum hits on the page.
const HITS_MAX: usize = 40;
/// Query parameter of a search as one types.
const LIVE: &str = "live";

#[derive(Serialize)]
struct SearchView {
    words: String,
    namespace: Option<String>,
    kind: Option<&'static str>,
    kinds: Vec<&'static str>,
    open: bool,
    projects: Vec<String>,
    hits: Vec<HitView>,
    is_asked: bool,
    /// True if the words occur in every text.
    is_common: bool,
    /// Notice of the embedding model.
    note: Option<String>,
}

#[derive(Serialize)]
pub(super) struct HitView {
    memory: Option<String>,
    /// Address of the entry with its quote.
    address: Option<String>,
    pub(super) kind: &'static str,
    state: &'static str,
    tone: &'static str,
    day: String,
    headline: String,
    words: String,
    said_by: Option<&'static str>,
    place: Option<String>,
    pub(super) namespace: Option<String>,
}

impl HitView {
    pub(super) fn of(hit: &SearchHit, query: &Query) -> HitView {
        let (record, note, memory) = (hit.record(), hit.note(), hit.memory.as_ref());
        let evidence = hit.quote(query);
        let namespace = record.map(|it| &it.record.provenance.namespace);
        let place = record.zip(evidence).map(|(it, words)| format!("{}:{}", it.path, words.line));
        let headline = hit.claim().map(|it| cut(it.headline()));
        let words = cut(hit.words(query));
        HitView {
            memory: memory.map(|it| it.id.to_string()),
            address: record
                .zip(evidence)
                .map(|(it, words)| address(it.record.provenance.session, words.ordinal)),
            kind: hit.claim().map_or("note", |it| it.kind().name()),
            state: hit.state.name(),
            tone: match hit.state {
                HitState::Current | HitState::Completed => "good",
                HitState::Staged | HitState::Note => "",
                HitState::Conflicting
                | HitState::Superseded
                | HitState::Retracted
                | HitState::Discarded
                | HitState::Quarantined => "bad",
            },
            day: day(hit.at()),
            headline: headline.unwrap_or_else(|| words.clone()),
            words,
            said_by: evidence.map(|it| speaker(it.speaker)),
            place: place.or_else(|| note.map(|it| format!("{}:{}", it.path, it.line))),
            namespace: namespace.or(memory.map(|it| &it.namespace)).cloned(),
        }
    }
}

pub(super) async fn show(visit: Visit) -> Result<Response, PageError> {
    let words = visit.get("q").unwrap_or_default().to_owned();
    let query = Query::of(&words);
    let kind = visit.get("kind").and_then(ClaimKind::of_name);
    let namespace = visit.get("namespace").map(str::to_owned);
    let open = visit.get("open").is_some();
    let is_common = query.is_empty() && !words.is_empty();
    let is_asked = !words.is_empty() || kind.is_some() || open;
    let store = &visit.page.store;
    let mut note = None;
    let hits = if is_asked && !is_common {
        let filter =
            SearchFilter { namespace: namespace.clone(), kind, open, ..SearchFilter::default() };
        let words = words.clone();
        let mut request =
            SearchRequest { words, filter, limit: HITS_MAX, ..SearchRequest::default() };
        // The model is not called at every keystroke.
        if let Some(embedder) = visit.page.embedder.as_ref().filter(|_| visit.get(LIVE).is_none()) {
            note = embedder.prepare(store, &mut request).await;
        }
        let notes = match request.excludes_notes() {
            true => Vec::new(),
            false => visit.page.directories.notes().await?,
        };
        search(Some(store), &request, notes).await?
    } else {
        Vec::new()
    };
    let view = SearchView {
        hits: hits.iter().map(|hit| HitView::of(hit, &query)).collect(),
        words,
        namespace,
        kind: kind.map(ClaimKind::name),
        kinds: ClaimKind::ALL.iter().map(|it| it.name()).collect(),
        open,
        projects: store.namespaces().await?,
        is_asked,
        is_common,
        note,
    };
    visit.render("Search", include_str!("templates/search.html"), view)
}
