//! Search with the ranking of the command line. The script requests the same page on each input.

use super::shell::{Result, Visit};
use super::views::{address, cut, day, speaker, tone};
use crate::domain::ClaimKind;
use crate::pipeline::{HitState, SearchHit, SearchRequest, search};
use crate::rows::SearchRow;
use crate::search::Query;
use crate::store::SearchFilter;
use axum::response::Response;
use minijinja::{Value, context};

const HITS_MAX: usize = 40;
/// Query parameter of a search as one types.
const LIVE: &str = "live";

pub(super) fn hit_view(hit: &SearchHit, query: &Query) -> Value {
    let evidence = hit.shown_quote(query);
    let quote = hit.record().zip(evidence);
    let words = cut(hit.words(query));
    let row = SearchRow::of(hit, query);
    context! {
        memory => hit.memory.as_ref().map(|it| it.id.to_string()),
        // Entry with the quote.
        address => quote.map(|(it, words)| address(it.record.provenance.session, words.ordinal)),
        kind => row.kind_in_words,
        state => row.standing,
        tone => match hit.state {
            HitState::Conflicting | HitState::Discarded | HitState::Quarantined => "bad",
            HitState::Current
            | HitState::Completed
            | HitState::Superseded
            | HitState::Retracted
            | HitState::Staged
            | HitState::Note => hit.memory.as_ref().map_or("", tone),
        },
        day => day(hit.at()),
        headline => hit.claim().map_or_else(|| words.clone(), |it| cut(it.headline())),
        words,
        said_by => evidence.map(|it| speaker(it.speaker)),
        place => row.path.zip(row.line).map(|(path, line)| format!("{path}:{line}")),
    }
}

pub(super) async fn show(visit: Visit) -> Result<Response> {
    let words = visit.get("q").unwrap_or_default();
    let query = Query::of(words);
    let kind = visit.get("kind").and_then(ClaimKind::of_name);
    let namespace = visit.get("namespace");
    let open = visit.get("open").is_some();
    let problem = Query::parse(words).err();
    let is_asked = !words.is_empty() || kind.is_some() || open;
    let store = &visit.state.store;
    let (mut note, mut hits) = (None, Vec::new());
    if is_asked && problem.is_none() {
        let namespace = namespace.map(str::to_owned);
        let filter = SearchFilter { namespace, kind, open, ..SearchFilter::default() };
        let words = words.to_owned();
        let (here, limit) = (visit.state.directories().here.clone(), HITS_MAX + 1);
        let mut request = SearchRequest { words, filter, limit, here, ..SearchRequest::default() };
        // The model is not called at every keystroke.
        if let Some(embedder) = visit.state.embedder.as_ref().filter(|_| visit.get(LIVE).is_none())
        {
            note = embedder.prepare(store, &mut request).await;
        }
        let mut notes = Vec::new();
        if !request.excludes_notes() {
            notes = visit.state.directories().notes().await?;
        }
        hits = search(Some(store), &request, notes).await?;
    }
    let is_more = hits.len() > HITS_MAX;
    hits.truncate(HITS_MAX);
    let view = context! {
        is_more,
        hits => hits.iter().map(|hit| hit_view(hit, &query)).collect::<Value>(),
        words,
        namespace,
        kind => kind.map(ClaimKind::name),
        kinds => ClaimKind::ALL.iter().map(|it| it.name()).collect::<Value>(),
        open,
        projects => store.namespaces().await?,
        is_asked,
        // Reason why there is nothing to search for.
        problem,
        // Notice of the embedding model.
        note,
    };
    visit.render("Search", include_str!("templates/search.html"), view)
}
