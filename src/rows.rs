//! JSON rows of records, memories and hits, shared by the commands and the API.

use crate::domain::{
    Claim, ClaimKind, Digest, Format, Match, MemoryId, MemoryState, PersonDecision, Record,
    RecordId, RecordState, Speaker, Stage,
};
use crate::memory_dir::{CONFLICTS_WITH, source_tag};
use crate::pipeline::{HitState, SearchHit};
use crate::privacy::Redacted;
use crate::search::Query;
use crate::store::StoredRecord;
use crate::text::truncate;
use schemars::JsonSchema;
use serde::Serialize;

/// Kind of a claim in a list, with the outcome of an attempt, such as `attempt ✗`.
pub(crate) fn kind_in_words(claim: &Claim, is_noted: bool) -> String {
    let noted = if is_noted { "noted " } else { "" };
    format!("{noted}{}{}", claim.kind().name(), outcome(claim.succeeded()))
}

/// Mark of an attempt's outcome; empty for other claims.
pub(crate) fn outcome(succeeded: Option<bool>) -> &'static str {
    match succeeded {
        Some(true) => " ✓",
        Some(false) => " ✗",
        None => "",
    }
}

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
    /// Kind in words.
    #[serde(skip)]
    pub(crate) kind_in_words: String,
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
            kind_in_words: kind_in_words(claim, stored.record.is_noted()),
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
    /// State in a word or two, such as `done` or `withdrawn`.
    pub(crate) standing: &'static str,
    pub(crate) said_by: Speaker,
    pub(crate) confirmed: bool,
    pub(crate) decided: Option<&'a PersonDecision>,
    pub(crate) edited: Option<&'a str>,
    pub(crate) valid_from: Option<String>,
    pub(crate) valid_until: Option<String>,
    pub(crate) superseded_by: Option<MemoryId>,
    /// The memory that completed, settled or solved it.
    pub(crate) settled_by: Option<MemoryId>,
    /// An active memory that contradicts it.
    pub(crate) conflicts_with: Option<MemoryId>,
    /// Mark of what may have ended it or made it obsolete, such as `possibly done by src-1a2b3c4d`.
    pub(crate) possibly: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) records: &'a [RecordId],
}

impl<'a> MemoryRow<'a> {
    /// Row of the memory of a hit, if it has one.
    pub(crate) fn of(hit: &'a SearchHit) -> Option<MemoryRow<'a>> {
        let memory = hit.memory.as_ref()?;
        Some(MemoryRow {
            id: memory.id.0,
            namespace: &memory.namespace,
            kind: memory.claim.kind(),
            claim: &memory.claim,
            stage: memory.stage,
            state: memory.state,
            standing: memory.standing(),
            said_by: memory.said_by,
            confirmed: memory.confirmed,
            decided: memory.decided.as_ref(),
            edited: memory.edited.as_deref(),
            valid_from: memory.valid_from.map(|at| at.to_string()),
            valid_until: memory.valid_until.map(|at| at.to_string()),
            superseded_by: memory.superseded_by,
            settled_by: memory.settler(),
            conflicts_with: hit.conflicts_with,
            possibly: hit.possibly.as_deref(),
            reason: memory.reason.as_deref(),
            records: &memory.sources,
        })
    }

    /// State with the memories that ended it, contradict it or may have ended it.
    pub(crate) fn standing_in_words(&self) -> String {
        let with = self.conflicts_with.map(|it| format!(", {CONFLICTS_WITH} {}", source_tag(it)));
        let by = self.superseded_by.or(self.settled_by).filter(|by| by.0 != self.id);
        let by = by.map(|it| format!(" by {}", source_tag(it)));
        let possibly = self.possibly.map(|it| format!(", {it}"));
        [Some(self.standing.to_owned()), by, with, possibly].into_iter().flatten().collect()
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
    /// An active memory that contradicts it.
    pub(crate) conflicts_with: Option<String>,
    /// Mark of what may have ended it or made it obsolete, such as `possibly done by src-1a2b3c4d`.
    pub(crate) possibly: Option<&'a str>,
    pub(crate) headline: Option<&'a str>,
    /// A person's wording, or the words it rests on.
    pub(crate) words: &'a str,
    /// True for a person's wording in the directory, which no transcript has.
    pub(crate) edited: bool,
    /// True for an agent's note.
    pub(crate) noted: bool,
    /// Outcome of an attempt.
    pub(crate) succeeded: Option<bool>,
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
    /// Kind and state in words.
    #[serde(skip)]
    pub(crate) kind_in_words: String,
    #[serde(skip)]
    pub(crate) standing: String,
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
        let (edited, headline) = (hit.edited(), hit.claim().map(Claim::headline));
        let evidence = hit.quote(query).filter(|_| edited.is_none());
        let by_person = if edited.is_some() { ", edited by a person" } else { "" };
        let path = record.filter(|_| edited.is_none()).map(|it| it.path.as_str());
        let namespace = record.map(|stored| stored.record.provenance.namespace.as_str());
        SearchRow {
            id,
            at: hit.at().map(|at| at.to_string()),
            kind: hit.claim().map(|claim| claim.kind()),
            state: hit.state,
            superseded_by: memory.and_then(|memory| memory.superseded_by).map(source_tag),
            outdated_by: hit.outdated_by.map(source_tag),
            conflicts_with: hit.conflicts_with.map(source_tag),
            possibly: hit.possibly.as_deref(),
            headline,
            words: hit.words(query),
            edited: edited.is_some(),
            noted: hit.is_noted(),
            succeeded: hit.claim().and_then(Claim::succeeded),
            said_by: evidence.map(|it| it.speaker).or(edited.map(|_| Speaker::Person)),
            namespace: namespace.or(memory.map(|memory| memory.namespace.as_str())),
            session: record.map(|stored| stored.record.provenance.session.0),
            record: record.map(|stored| stored.record.id.0),
            path: path.or(note.map(|note| note.path.as_str())),
            line: evidence.map(|it| it.line).or(note.map(|note| note.line)),
            score: (hit.score * 1000.0).round() / 1000.0,
            kind_in_words: hit
                .claim()
                .map_or("note".to_owned(), |claim| kind_in_words(claim, hit.is_noted())),
            standing: hit.standing() + by_person,
            wording: edited.or(headline).unwrap_or(hit.words(query)),
        }
    }
}
