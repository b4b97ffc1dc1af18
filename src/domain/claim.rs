//! Claims as a model submits them: the tool's argument and its four kinds of claim. The published
//! schema is generated from these types; a model supplies no ids, times or provenance. A record is a
//! claim with provenance and evidence, which the host adds.

use super::entry::named;
use super::{Digest, RecordId, RunId, SessionId, SliceId, Speaker, Timestamp};
use crate::privacy::Redacted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What happened in a slice of a conversation. Every list may be empty.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WriteExtracted {
    /// Judgements made: what was chosen, among what, and why.
    pub decisions: Vec<Decision>,
    /// Topics that were debated, settled or still open.
    pub discussions: Vec<Discussion>,
    /// Things that were tried, and how they ended.
    pub attempts: Vec<Attempt>,
    /// What the person asked for.
    #[serde(rename = "requests")]
    pub requests: Vec<PersonRequest>,
}

/// A judgement made during the slice.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The alternatives that were considered.
    pub options: Vec<String>,
    /// What was picked.
    pub chosen: String,
    /// Why: a reason of design, policy, process or approach.
    pub rationale: String,
}

/// A topic that was debated.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Discussion {
    /// What was debated.
    pub topic: String,
    /// The considerations that were raised.
    pub points: Vec<String>,
}

/// Something that was tried.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// What was tried.
    pub action: String,
    /// What came of it; for a partial success, which part.
    pub result: String,
    /// True only for a full success; a partial success is false.
    pub succeeded: bool,
}

/// What a person asked for.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PersonRequest {
    /// What the person wants.
    pub intent: String,
    /// The file, module or feature it is about, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The request in one line.
    pub summary: String,
}

named! {
    /// The four kinds of claim, and of record.
    #[derive(JsonSchema)]
    pub ClaimKind {
        /// See [`Decision`].
        Decision = "decision",
        /// See [`Discussion`].
        Discussion = "discussion",
        /// See [`Attempt`].
        Attempt = "attempt",
        /// See [`PersonRequest`].
        Request = "request",
    }
}

/// One claim, unproven.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Claim {
    /// A judgement.
    Decision(Decision),
    /// A debate.
    Discussion(Discussion),
    /// A try.
    Attempt(Attempt),
    /// A wish.
    Request(PersonRequest),
}

/// The fields of all kinds, read in one pass: a derived `untagged` reads the claims of a large store several times.
#[derive(Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct ClaimFields {
    options: Option<Vec<String>>,
    chosen: Option<String>,
    rationale: Option<String>,
    topic: Option<String>,
    points: Option<Vec<String>>,
    action: Option<String>,
    result: Option<String>,
    succeeded: Option<bool>,
    intent: Option<String>,
    target: Option<String>,
    summary: Option<String>,
}

impl<'de> Deserialize<'de> for Claim {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Claim, D::Error> {
        let mut it = ClaimFields::deserialize(deserializer)?;
        let heads = (it.chosen.take(), it.topic.take(), it.action.take(), it.intent.take());
        let claim = match heads {
            (Some(chosen), None, None, None) => {
                let rest = it.options.take().zip(it.rationale.take());
                rest.map(|(options, rationale)| {
                    Claim::Decision(Decision { options, chosen, rationale })
                })
            }
            (None, Some(topic), None, None) => {
                it.points.take().map(|points| Claim::Discussion(Discussion { topic, points }))
            }
            (None, None, Some(action), None) => {
                let rest = it.result.take().zip(it.succeeded.take());
                rest.map(|(result, succeeded)| {
                    Claim::Attempt(Attempt { action, result, succeeded })
                })
            }
            (None, None, None, Some(intent)) => {
                let target = it.target.take();
                it.summary
                    .take()
                    .map(|summary| Claim::Request(PersonRequest { intent, target, summary }))
            }
            _ => None,
        };
        let wrong = || serde::de::Error::custom("the fields are not those of one kind of claim");
        claim.filter(|_| it == ClaimFields::default()).ok_or_else(wrong)
    }
}

impl Claim {
    /// Outcome of an attempt.
    pub(crate) fn succeeded(&self) -> Option<bool> {
        match self {
            Claim::Attempt(attempt) => Some(attempt.succeeded),
            Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_) => None,
        }
    }

    /// Returns the kind of the claim.
    pub fn kind(&self) -> ClaimKind {
        match self {
            Claim::Decision(_) => ClaimKind::Decision,
            Claim::Discussion(_) => ClaimKind::Discussion,
            Claim::Attempt(_) => ClaimKind::Attempt,
            Claim::Request(_) => ClaimKind::Request,
        }
    }

    /// Returns every string with the name of its field, such as `options[1]`.
    pub fn strings(&self) -> Vec<(String, &str)> {
        let none: &[String] = &[];
        let (fields, list, items) = match self {
            Claim::Decision(it) => (
                vec![("chosen", &it.chosen), ("rationale", &it.rationale)],
                "options",
                &*it.options,
            ),
            Claim::Discussion(it) => (vec![("topic", &it.topic)], "points", &*it.points),
            Claim::Attempt(it) => (vec![("action", &it.action), ("result", &it.result)], "", none),
            Claim::Request(it) => {
                let mut fields = vec![("intent", &it.intent)];
                fields.extend(it.target.as_ref().map(|text| ("target", text)));
                fields.push(("summary", &it.summary));
                (fields, "", none)
            }
        };
        let fields = fields.into_iter().map(|(name, text)| (name.to_owned(), text.as_str()));
        let numbered = items.iter().enumerate();
        fields.chain(numbered.map(|(n, item)| (format!("{list}[{n}]"), item.as_str()))).collect()
    }

    /// Applies `change` to every string.
    pub fn map(mut self, change: &dyn Fn(&str) -> String) -> Claim {
        let apply = |text: &mut String| *text = change(text);
        match &mut self {
            Claim::Decision(it) => {
                it.options.iter_mut().chain([&mut it.chosen, &mut it.rationale]).for_each(apply);
            }
            Claim::Discussion(it) => it.points.iter_mut().chain([&mut it.topic]).for_each(apply),
            Claim::Attempt(it) => [&mut it.action, &mut it.result].into_iter().for_each(apply),
            Claim::Request(it) => {
                it.target.iter_mut().chain([&mut it.intent, &mut it.summary]).for_each(apply);
            }
        }
        self
    }

    /// Returns the string that best identifies the claim in a list.
    pub fn headline(&self) -> &str {
        match self {
            Claim::Decision(it) => &it.chosen,
            Claim::Discussion(it) => &it.topic,
            Claim::Attempt(it) => &it.action,
            Claim::Request(it) => &it.summary,
        }
    }

    /// Returns a claim of this kind that says only `words`.
    pub(crate) fn in_words(&self, words: &str) -> Claim {
        let words = words.to_owned();
        match self {
            Claim::Decision(_) => {
                Claim::Decision(Decision { chosen: words, ..Decision::default() })
            }
            Claim::Discussion(_) => {
                Claim::Discussion(Discussion { topic: words, ..Discussion::default() })
            }
            Claim::Attempt(it) => {
                let succeeded = it.succeeded;
                Claim::Attempt(Attempt { action: words, succeeded, ..Attempt::default() })
            }
            Claim::Request(_) => {
                Claim::Request(PersonRequest { summary: words, ..PersonRequest::default() })
            }
        }
    }

    /// Returns the claim as JSON, with fields in schema order.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

named! {
    /// Method by which a piece of evidence was found.
    #[derive(JsonSchema)]
    pub Match {
        /// The very words.
        Exact = "exact",
        /// The words after folding case, blanks, quotes and dashes.
        Folded = "folded",
        /// Enough of the claim's rare words, near one another.
        Overlap = "overlap",
        /// An identifier, a path, a number or a quote of the claim.
        Literal = "literal",
        /// An agent handed the words over as a note; nobody was asked about them.
        Noted = "noted",
    }
}

impl Match {
    /// The way in which the evidence was found, for people.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Match::Exact => "word for word",
            Match::Folded => "word for word except for case and punctuation",
            Match::Literal => "by a name or number",
            Match::Overlap => "by shared words",
            Match::Noted => "as a note",
        }
    }
}

/// Words of one entry that a claim rests on.
#[derive(schemars::JsonSchema, Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The field it supports, such as `options[1]`.
    pub field: String,
    /// The entry's ordinal in its session.
    pub ordinal: u32,
    /// The line of the file.
    pub line: u32,
    /// Bytes of the entry's text.
    pub bytes: Range<usize>,
    /// Author of the entry.
    pub speaker: Speaker,
    /// The person's name, where several people talk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Redacted>,
    /// Method by which it was found.
    pub found: Match,
    /// The words, copied from the slice.
    pub words: Redacted,
}

/// Origin of a record. Set by the host, never by a model.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Provenance {
    /// Namespace.
    pub namespace: String,
    /// The conversation.
    pub session: SessionId,
    /// Slice that the model read.
    pub slice: SliceId,
    /// Extraction that produced it.
    pub run: RunId,
    /// Lowest and highest ordinal of the slice.
    pub entries: (u32, u32),
    /// Time of the first entry that it rests on.
    pub at: Option<Timestamp>,
}

named! {
    /// State of a record.
    #[derive(JsonSchema)]
    pub RecordState {
        /// Proven; stays so when consolidation makes a memory of it.
        Staged = "staged",
        /// Not proven; kept with the reason, never consolidated.
        Quarantined = "quarantined",
        /// A newer run of the same entries took its place.
        Replaced = "replaced",
    }
}

named! {
    /// Result of a run.
    #[derive(schemars::JsonSchema)]
    pub RunState {
        /// With an extraction, be it empty.
        Done = "done",
        /// Without one, for a reason that is kept.
        Failed = "failed",
    }
}

/// A claim with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Digest of run, kind and body.
    pub id: RecordId,
    /// The claim.
    pub claim: Claim,
    /// Origin.
    pub provenance: Provenance,
    /// Words that it rests on.
    pub evidence: Vec<Evidence>,
    /// Share of the claim found in the slice, 0 to 1.
    pub score: f64,
    /// Staged or quarantined.
    pub state: RecordState,
    /// Reason for quarantine: the rule, the place, and the literal that was not found, if any. It
    /// comes from the claim, so it must not be logged.
    pub reason: Option<String>,
}

impl Record {
    /// The id of `claim` as `run` made it.
    pub fn id_of(run: RunId, claim: &Claim) -> RecordId {
        let body = claim.to_json().to_string();
        RecordId(Digest::of(&["record", &run.to_string(), claim.kind().name(), &body]))
    }

    /// True for an agent's note, which is nobody else's words.
    pub(crate) fn is_noted(&self) -> bool {
        !self.evidence.is_empty() && self.evidence.iter().all(|it| it.found == Match::Noted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_by_the_fields_of_its_kind() {
        for (json, kind) in [
            (r#"{"options":["a"],"chosen":"a","rationale":""}"#, ClaimKind::Decision),
            (r#"{"topic":"a","points":[]}"#, ClaimKind::Discussion),
            (r#"{"action":"a","result":"b","succeeded":true}"#, ClaimKind::Attempt),
            (r#"{"intent":"a","summary":"b"}"#, ClaimKind::Request),
            (r#"{"intent":"a","target":"c","summary":"b"}"#, ClaimKind::Request),
        ] {
            let claim: Claim = serde_json::from_str(json).unwrap();
            assert_eq!((claim.kind(), claim.to_json().to_string()), (kind, json.to_owned()));
        }
        for json in [
            "{}",
            r#"{"topic":"a"}"#,
            r#"{"topic":"a","points":[],"target":"b"}"#,
            r#"{"topic":"a","points":[],"intent":"a","summary":"b"}"#,
            r#"{"topic":"a","points":[],"also":"b"}"#,
            r#"{"topic":"a","points":[],"summary":"b"}"#,
        ] {
            assert!(serde_json::from_str::<Claim>(json).is_err(), "{json}");
        }
    }
}
