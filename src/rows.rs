//! JSON rows of records, memories and hits, shared by the commands and the API.

use crate::domain::{
    Claim, ClaimKind, Digest, Evidence, Format, Match, Memory, MemoryId, MemoryState,
    PersonDecision, RecordId, RecordState, Speaker, Stage,
};
use crate::memory_dir::{CONFLICTS_WITH, source_tag, standing};
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

/// Defines a JSON object with the type and the value of each field, and `of`, which makes it.
macro_rules! json_row {
    ($(#[$doc:meta])* $vis:vis struct $name:ident $(<$a:lifetime>)? of $($it:ident: $source:ty),+ {
        $($(#[$field_doc:meta])* $field_vis:vis $field:ident: $type:ty = $value:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(schemars::JsonSchema, serde::Serialize)]
        $vis struct $name $(<$a>)? { $($(#[$field_doc])* $field_vis $field: $type,)* }

        impl $(<$a>)? $name $(<$a>)? {
            $vis fn of($($it: $source),+) -> Self {
                $name { $($field: $value,)* }
            }
        }
    };
}
pub(crate) use json_row;

json_row! {
    /// A record, as JSON and in a list.
    pub(crate) struct RecordRow<'a> of it: &'a StoredRecord {
        pub(crate) id: Digest = it.record.id.0,
        pub(crate) kind: ClaimKind = it.record.claim.kind(),
        pub(crate) claim: &'a Claim = &it.record.claim,
        pub(crate) state: RecordState = it.record.state,
        /// True if a rule made no memory of it, or a person set it aside by an undo.
        pub(crate) discarded: bool = it.is_discarded,
        reason: Option<&'a str> = it.record.reason.as_deref(),
        pub(crate) score: f64 = (it.record.score * 1000.0).round() / 1000.0,
        pub(crate) namespace: &'a str = &it.record.provenance.namespace,
        pub(crate) session: Digest = it.record.provenance.session.0,
        run: Digest = it.record.provenance.run.0,
        slice: Digest = it.record.provenance.slice.0,
        entries: (u32, u32) = it.record.provenance.entries,
        pub(crate) at: Option<String> = it.record.provenance.at.map(|at| at.to_string()),
        path: &'a str = &it.path,
        format: Format = it.format,
        model: &'a str = &it.model,
        prompt: PromptRow<'a> = PromptRow { id: &it.prompt.0, version: it.prompt.1 },
        extracted_at: String = it.extracted_at.to_string(),
        evidence: Vec<EvidenceRow<'a>> = it.record.evidence.iter().map(EvidenceRow::of).collect(),
        /// Kind in words.
        #[serde(skip)]
        pub(crate) kind_in_words: String = kind_in_words(&it.record.claim, it.record.is_noted()),
    }
}

#[derive(JsonSchema, Serialize)]
struct PromptRow<'a> {
    id: &'a str,
    version: u32,
}

json_row! {
    struct EvidenceRow<'a> of it: &'a Evidence {
        field: &'a str = &it.field,
        entry: u32 = it.ordinal,
        line: u32 = it.line,
        bytes: (usize, usize) = (it.bytes.start, it.bytes.end),
        speaker: Speaker = it.speaker,
        /// The person's name, where several people talk.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a Redacted> = it.name.as_ref(),
        found: Match = it.found,
        words: &'a Redacted = &it.words,
    }
}

json_row! {
    /// A memory, as JSON and in a list.
    pub(crate) struct MemoryRow<'a> of hit: &'a SearchHit, memory: &'a Memory {
        pub(crate) id: Digest = memory.id.0,
        pub(crate) namespace: &'a str = &memory.namespace,
        kind: ClaimKind = memory.claim.kind(),
        pub(crate) claim: &'a Claim = &memory.claim,
        stage: Stage = memory.stage,
        state: MemoryState = memory.state,
        /// State in a word or two, such as `done` or `withdrawn`.
        standing: &'static str = standing(memory),
        said_by: Speaker = memory.said_by,
        confirmed: bool = memory.confirmed,
        decided: Option<&'a PersonDecision> = memory.decided.as_ref(),
        pub(crate) edited: Option<&'a str> = memory.edited.as_deref(),
        pub(crate) valid_from: Option<String> = memory.valid_from.map(|at| at.to_string()),
        valid_until: Option<String> = memory.valid_until.map(|at| at.to_string()),
        superseded_by: Option<MemoryId> = memory.superseded_by,
        /// The memory that completed, settled or solved it.
        settled_by: Option<MemoryId> = memory.settler(),
        /// An active memory that contradicts it.
        conflicts_with: Option<MemoryId> = hit.conflicts_with,
        /// Mark of what may have ended it or made it obsolete, such as `possibly done by src-1a2b3c4d`.
        possibly: Option<&'a str> = hit.possibly.as_deref(),
        reason: Option<&'a str> = memory.reason.as_deref(),
        records: &'a [RecordId] = &memory.sources,
    }
}

impl<'a> MemoryRow<'a> {
    /// Row of the memory of a hit, if it has one.
    pub(crate) fn of_hit(hit: &'a SearchHit) -> Option<MemoryRow<'a>> {
        Some(MemoryRow::of(hit, hit.memory.as_ref()?))
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

json_row! {
    /// A hit, as JSON and as a line.
    pub(crate) struct SearchRow<'a> of hit: &'a SearchHit, query: &Query {
        /// Argument for `annalist why`; of a note its file and line.
        pub(crate) id: String = id(hit),
        pub(crate) at: Option<String> = hit.at().map(|at| at.to_string()),
        /// None for a note.
        pub(crate) kind: Option<ClaimKind> = hit.claim().map(|claim| claim.kind()),
        pub(crate) state: HitState = hit.state,
        superseded_by: Option<String> =
            hit.memory.as_ref().and_then(|memory| memory.superseded_by).map(source_tag),
        /// A later memory among the hits that may have put it out of date.
        outdated_by: Option<String> = hit.outdated_by().map(source_tag),
        /// An active memory that contradicts it.
        conflicts_with: Option<String> = hit.conflicts_with.map(source_tag),
        /// Mark of what may have ended it or made it obsolete, such as `possibly done by src-1a2b3c4d`.
        pub(crate) possibly: Option<&'a str> = hit.possibly.as_deref(),
        pub(crate) headline: Option<&'a str> = hit.claim().map(Claim::headline),
        /// A person's wording, or the words it rests on.
        pub(crate) words: &'a str = hit.words(query),
        /// True for a person's wording in the directory, which no transcript has.
        pub(crate) edited: bool = hit.edited().is_some(),
        /// True for an agent's note.
        pub(crate) noted: bool = hit.is_noted(),
        /// Outcome of an attempt.
        pub(crate) succeeded: Option<bool> = hit.claim().and_then(Claim::succeeded),
        pub(crate) said_by: Option<Speaker> = hit
            .shown_quote(query)
            .map(|it| it.speaker)
            .or(hit.edited().map(|_| Speaker::Person)),
        pub(crate) namespace: Option<&'a str> = hit.namespace(),
        session: Option<Digest> = hit.record().map(|it| it.record.provenance.session.0),
        record: Option<Digest> = hit.record().map(|it| it.record.id.0),
        /// The file and line in which it was said.
        pub(crate) path: Option<&'a str> = hit
            .record()
            .filter(|_| hit.edited().is_none())
            .map(|it| it.path.as_str())
            .or(hit.note().map(|note| note.path.as_str())),
        pub(crate) line: Option<u32> =
            hit.shown_quote(query).map(|it| it.line).or(hit.note().map(|note| note.line)),
        score: f64 = (hit.score * 1000.0).round() / 1000.0,
        /// A person's wording, or the claim.
        #[serde(skip)]
        pub(crate) wording: &'a str =
            hit.edited().or(hit.claim().map(Claim::headline)).unwrap_or(hit.words(query)),
        /// Kind and state in words.
        #[serde(skip)]
        pub(crate) kind_in_words: String =
            hit.claim().map_or("note".to_owned(), |it| kind_in_words(it, hit.is_noted())),
        #[serde(skip)]
        pub(crate) standing: String =
            hit.standing() + if hit.edited().is_some() { ", edited by a person" } else { "" },
    }
}

/// Digits of a short id; enough to look it up.
const ID_DIGITS: usize = 10;

fn id(hit: &SearchHit) -> String {
    match (hit.memory.as_ref(), hit.record(), hit.note()) {
        (Some(memory), _, _) => source_tag(memory.id),
        (None, Some(stored), _) => {
            truncate::chars(&stored.record.id.to_string(), ID_DIGITS).to_owned()
        }
        (None, None, Some(note)) => format!("{}:{}", note.path, note.line),
        (None, None, None) => String::new(),
    }
}
