//! Row of a search hit.

use crate::domain::{Claim, ClaimKind, Digest, Speaker, shown_words};
use crate::memory_dir::source_tag;
use crate::pipeline::{HitState, SearchHit};
use crate::search::Query;
use crate::text::truncate;
use schemars::JsonSchema;
use serde::Serialize;

/// Digits of a short id; enough to look it up.
const ID_DIGITS: usize = 10;

/// A hit, as JSON and as a line.
#[derive(JsonSchema, Serialize)]
pub(crate) struct SearchRow<'a> {
    /// Argument for `annalist why`; of a note its file and line.
    pub(crate) id: String,
    pub(crate) at: Option<String>,
    /// None for a note.
    pub(crate) kind: Option<ClaimKind>,
    pub(crate) state: HitState,
    pub(crate) superseded_by: Option<String>,
    /// A later memory among the hits that may have put it out of date.
    pub(crate) outdated_by: Option<String>,
    /// Mark of what may have ended it while it is open, such as `possibly done by src-1a2b3c4d`.
    pub(crate) possibly: Option<&'a str>,
    pub(crate) headline: Option<&'a str>,
    /// A person's wording, or the words it rests on.
    pub(crate) words: &'a str,
    pub(crate) said_by: Option<Speaker>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) session: Option<Digest>,
    pub(crate) record: Option<Digest>,
    /// The file and line in which it was said.
    pub(crate) path: Option<&'a str>,
    pub(crate) line: Option<u32>,
    pub(crate) score: f64,
    /// A person's wording, or the claim.
    #[serde(skip)]
    pub(crate) wording: &'a str,
    #[serde(skip)]
    pub(crate) is_failed: bool,
    /// True for an agent's note.
    #[serde(skip)]
    pub(crate) is_noted: bool,
}

impl<'a> SearchRow<'a> {
    pub(crate) fn of(hit: &'a SearchHit, query: &Query) -> SearchRow<'a> {
        let (record, note, memory) = (hit.record(), hit.note(), hit.memory.as_ref());
        let id = match (memory, record, note) {
            (Some(memory), _, _) => source_tag(memory.id),
            (None, Some(stored), _) => {
                truncate::chars(&stored.record.id.to_string(), ID_DIGITS).to_owned()
            }
            (None, None, Some(note)) => format!("{}:{}", note.path, note.line),
            (None, None, None) => String::new(),
        };
        let (evidence, headline) = (hit.quote(query), hit.claim().map(|claim| claim.headline()));
        let edited = memory.filter(|memory| memory.edited.is_some());
        let edited = edited.map(|it| shown_words(it.edited.as_deref(), &it.claim));
        let namespace = record.map(|stored| stored.record.provenance.namespace.as_str());
        SearchRow {
            id,
            at: hit.at().map(|at| at.to_string()),
            kind: hit.claim().map(|claim| claim.kind()),
            state: hit.state,
            superseded_by: memory.and_then(|memory| memory.superseded_by).map(source_tag),
            outdated_by: hit.outdated_by.map(source_tag),
            possibly: hit.possibly.as_deref(),
            headline,
            words: hit.words(query),
            said_by: evidence.map(|it| it.speaker),
            namespace: namespace.or(memory.map(|memory| memory.namespace.as_str())),
            session: record.map(|stored| stored.record.provenance.session.0),
            record: record.map(|stored| stored.record.id.0),
            path: record.map(|it| it.path.as_str()).or(note.map(|note| note.path.as_str())),
            line: evidence.map(|it| it.line).or(note.map(|note| note.line)),
            score: (hit.score * 1000.0).round() / 1000.0,
            is_failed: matches!(hit.claim(), Some(Claim::Attempt(it)) if !it.succeeded),
            is_noted: hit.is_noted(),
            wording: edited.or(headline).unwrap_or(hit.words(query)),
        }
    }
}
