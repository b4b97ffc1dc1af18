//! JSON rows of records, memories and hits, shared by the commands and the API.

use crate::domain::{
    Claim, ClaimKind, Digest, Format, Match, Memory, MemoryId, MemoryState, PersonDecision, Record,
    RecordId, RecordState, Speaker, Stage, shown_words,
};
use crate::memory_dir::source_tag;
use crate::pipeline::{HitState, SearchHit};
use crate::privacy::Redacted;
use crate::search::Query;
use crate::store::StoredRecord;
use crate::text::truncate;
use schemars::JsonSchema;
use serde::Serialize;

/// A record, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
pub(crate) struct RecordRow<'a> {
    pub(crate) id: Digest,
    pub(crate) kind: ClaimKind,
    pub(crate) claim: &'a Claim,
    pub(crate) state: RecordState,
    pub(crate) reason: Option<&'a str>,
    pub(crate) score: f64,
    pub(crate) namespace: &'a str,
    pub(crate) session: Digest,
    pub(crate) run: Digest,
    pub(crate) slice: Digest,
    pub(crate) entries: (u32, u32),
    pub(crate) at: Option<String>,
    pub(crate) path: &'a str,
    pub(crate) format: Format,
    pub(crate) model: &'a str,
    pub(crate) prompt: PromptRow<'a>,
    pub(crate) extracted_at: String,
    pub(crate) evidence: Vec<EvidenceRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct PromptRow<'a> {
    id: &'a str,
    version: u32,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct EvidenceRow<'a> {
    field: &'a str,
    entry: u32,
    line: u32,
    bytes: (usize, usize),
    speaker: Speaker,
    /// The person's name, where several people talk.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a Redacted>,
    found: Match,
    words: &'a Redacted,
}

impl<'a> RecordRow<'a> {
    pub(crate) fn of(stored: &'a StoredRecord) -> RecordRow<'a> {
        let Record { id, claim, provenance, evidence, score, state, reason } = &stored.record;
        let evidence = evidence.iter().map(|it| EvidenceRow {
            field: &it.field,
            entry: it.ordinal,
            line: it.line,
            bytes: (it.bytes.start, it.bytes.end),
            speaker: it.speaker,
            name: it.name.as_ref(),
            found: it.found,
            words: &it.words,
        });
        RecordRow {
            id: id.0,
            kind: claim.kind(),
            claim,
            state: *state,
            reason: reason.as_deref(),
            score: (score * 1000.0).round() / 1000.0,
            namespace: &provenance.namespace,
            session: provenance.session.0,
            run: provenance.run.0,
            slice: provenance.slice.0,
            entries: provenance.entries,
            at: provenance.at.map(|at| at.to_string()),
            path: &stored.path,
            format: stored.format,
            model: &stored.model,
            prompt: PromptRow { id: &stored.prompt.0, version: stored.prompt.1 },
            extracted_at: stored.extracted_at.to_string(),
            evidence: evidence.collect(),
        }
    }
}

/// A memory, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
pub(crate) struct MemoryRow<'a> {
    pub(crate) id: Digest,
    pub(crate) namespace: &'a str,
    pub(crate) kind: ClaimKind,
    pub(crate) claim: &'a Claim,
    pub(crate) stage: Stage,
    pub(crate) state: MemoryState,
    pub(crate) said_by: Speaker,
    pub(crate) confirmed: bool,
    pub(crate) decided: Option<&'a PersonDecision>,
    pub(crate) edited: Option<&'a str>,
    pub(crate) valid_from: Option<String>,
    pub(crate) valid_until: Option<String>,
    pub(crate) superseded_by: Option<MemoryId>,
    /// The memory that completed, settled or solved it.
    pub(crate) settled_by: Option<MemoryId>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) records: &'a [RecordId],
}

impl<'a> MemoryRow<'a> {
    pub(crate) fn of(memory: &'a Memory) -> MemoryRow<'a> {
        MemoryRow {
            id: memory.id.0,
            namespace: &memory.namespace,
            kind: memory.claim.kind(),
            claim: &memory.claim,
            stage: memory.stage,
            state: memory.state,
            said_by: memory.said_by,
            confirmed: memory.confirmed,
            decided: memory.decided.as_ref(),
            edited: memory.edited.as_deref(),
            valid_from: memory.valid_from.map(|at| at.to_string()),
            valid_until: memory.valid_until.map(|at| at.to_string()),
            superseded_by: memory.superseded_by,
            settled_by: memory.settler(),
            reason: memory.reason.as_deref(),
            records: &memory.sources,
        }
    }
}

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
