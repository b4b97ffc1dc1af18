//! Gold: the statements that an extraction must and must not contain. Gold is redacted like transcripts, so that it
//! may be shown and matches redacted records.

use crate::domain::{Claim, ClaimKind, Finding, Severity, named};
use crate::privacy::Gate;
use crate::search::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

named! {
    /// Importance of an item.
    #[derive(JsonSchema)]
    pub(crate) Importance {
        /// A colleague would be angry to miss it.
        Core = "core",
        /// Good to have.
        Useful = "useful",
    }
}

named! {
    /// Reason why something must not be said.
    #[derive(Default, JsonSchema)]
    pub(crate) Why {
        /// Nobody said it.
        #[default]
        Invented = "invented",
        /// It is small talk.
        #[serde(alias = "small talk")]
        SmallTalk = "small-talk",
        /// A tracker holds it already.
        #[serde(alias = "tracker mirror")]
        Tracker = "tracker",
        /// It is private.
        #[serde(alias = "secret")]
        Private = "private",
        /// Text that addressed the model ordered it.
        Injected = "injected",
        /// It was considered, and never decided.
        #[serde(alias = "hypothetical taken as decision")]
        Hypothetical = "hypothetical",
        /// It was taken back.
        #[serde(alias = "superseded state presented as current")]
        Reversed = "reversed",
        /// It was claimed as done, and was not.
        Unfinished = "unfinished",
        /// It holds for the moment only.
        Transient = "transient",
    }
}

/// A statement that must be found.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `id`, `kind`, `importance` and `statement`"
)]
pub(crate) struct Item {
    /// Unique name in the file.
    pub id: String,
    /// Kind of record that says it.
    pub kind: ClaimKind,
    /// Importance.
    pub importance: Importance,
    /// The statement, in a sentence.
    pub statement: String,
    /// Groups of alternatives: a record must contain one of each group. Without groups the statement is compared.
    #[serde(default)]
    pub terms: Vec<Vec<String>>,
    /// Expected fields of a record, such as `chosen`. Without terms they decide, by similarity; with terms they only
    /// prefer one record to another.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Wanted>,
    /// Expected outcome of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
    /// Questions by which a search among the records must find it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
    /// Words of the transcript that say it; a run warns if no entry contains them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Position of the quote, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_hint: Option<String>,
}

impl Item {
    /// An item that matches this claim by its fields.
    pub(crate) fn of(id: String, claim: &Claim, quote: Option<String>) -> Item {
        let json = claim.to_json();
        // Texts and lists of texts; no outcome, nothing that is missing.
        let wanted = |value: &Value| serde_json::from_value(value.clone()).ok();
        let fields = json.as_object().into_iter().flatten();
        Item {
            id,
            kind: claim.kind(),
            importance: Importance::Useful,
            statement: claim.headline().to_owned(),
            terms: Vec::new(),
            fields: fields
                .filter_map(|(name, value)| Some((name.clone(), wanted(value)?)))
                .collect(),
            succeeded: json.get("succeeded").and_then(Value::as_bool),
            questions: Vec::new(),
            quote,
            entry_hint: None,
        }
    }
}

/// Expected text of a field.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "a text or a list of texts")]
pub(crate) enum Wanted {
    /// A text.
    Text(String),
    /// Texts in any order.
    Texts(Vec<String>),
}

/// Compared fields of a claim, with weights.
pub(crate) fn weights(kind: ClaimKind) -> &'static [(&'static str, u32)] {
    match kind {
        ClaimKind::Decision => &[("chosen", 4), ("rationale", 2), ("options", 1)],
        ClaimKind::Discussion => &[("topic", 2), ("points", 1)],
        ClaimKind::Attempt => &[("action", 2), ("result", 1)],
        ClaimKind::Request => &[("summary", 2), ("intent", 2), ("target", 1)],
    }
}

/// A statement that no record may make.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `id` and `terms`")]
pub(crate) struct Forbidden {
    /// Unique name in the file.
    pub id: String,
    /// Reason; `invented` by default.
    #[serde(default)]
    pub why: Why,
    /// The statement, in a sentence, for people.
    #[serde(default)]
    pub statement: String,
    /// Groups of alternatives, as in an item. They are never shown and do not pass the gate: a secret that the gate
    /// let through must be seen.
    pub terms: Vec<Vec<String>>,
}

/// Contents of `gold.json`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `must` and `must_not`")]
pub(crate) struct Gold {
    /// Statements that must be found.
    #[serde(rename = "must")]
    pub items: Vec<Item>,
    /// Statements that no record may make.
    #[serde(default, rename = "must_not")]
    pub forbidden: Vec<Forbidden>,
    /// Schema, for editors.
    #[serde(default, rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Name of the transcript, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// Conversation of the transcript, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Value>,
    /// Notes, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Language of the conversation, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Minimum similarity of a record and an item without terms, from 0 to 1; 0.5 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
}

impl Gold {
    /// Parses a gold file and redacts it.
    pub(crate) fn read(text: &str, gate: &Gate) -> Result<Gold, Finding> {
        // The message may quote the file.
        let bad = |line: usize, what: &str| {
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            let detail = gate.redact(what).as_str().to_owned();
            Finding::new(Severity::Error, "bad-gold", line, detail)
        };
        let parsed = serde_json::from_str::<Gold>(text.strip_prefix('\u{feff}').unwrap_or(text));
        let mut gold = parsed.map_err(|error| {
            let (line, column, whole) = (error.line(), error.column(), error.to_string());
            let place = format!(" at line {line} column {column}");
            let what = whole.strip_suffix(&place).unwrap_or(&whole);
            bad(line, &format!("column {column}: {what}"))
        })?;
        gold.redact(gate);
        if let Some(problem) = gold.problem() {
            return Err(bad(0, &problem));
        }
        let groups = gold.items.iter_mut().map(|item| &mut item.terms);
        let groups = groups.chain(gold.forbidden.iter_mut().map(|it| &mut it.terms));
        groups.flatten().flatten().for_each(|term| *term = term.to_lowercase());
        Ok(gold)
    }

    /// Redacts everything but the terms of forbidden statements.
    fn redact(&mut self, gate: &Gate) {
        let pass = |text: &mut String| *text = gate.redact(text).as_str().to_owned();
        for item in &mut self.items {
            [&mut item.id, &mut item.statement].into_iter().for_each(pass);
            item.terms.iter_mut().flatten().chain(&mut item.questions).for_each(pass);
            item.quote.iter_mut().chain(&mut item.entry_hint).for_each(pass);
            for wanted in item.fields.values_mut() {
                match wanted {
                    Wanted::Text(text) => pass(text),
                    Wanted::Texts(texts) => texts.iter_mut().for_each(pass),
                }
            }
        }
        for it in &mut self.forbidden {
            [&mut it.id, &mut it.statement].into_iter().for_each(pass);
        }
    }

    fn problem(&self) -> Option<String> {
        let similarity = self.similarity.filter(|it| !(0.0..=1.0).contains(it));
        if let Some(it) = similarity {
            return Some(format!("similarity {it}: expected a number from 0 to 1"));
        }
        duplicate("must", self.items.iter().map(|it| &it.id))
            .or_else(|| duplicate("must_not", self.forbidden.iter().map(|it| &it.id)))
            .or_else(|| self.items.iter().find_map(item_problem))
            .or_else(|| self.forbidden.iter().find_map(|it| terms_problem(&it.id, &it.terms)))
    }
}

fn duplicate<'i>(list: &str, mut ids: impl Iterator<Item = &'i String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let id = ids.find(|id| !seen.insert(*id))?;
    Some(format!("{list}: duplicate id {id}: expected unique ids"))
}

fn item_problem(item: &Item) -> Option<String> {
    let (id, kind) = (&item.id, item.kind);
    if item.succeeded.is_some() && kind != ClaimKind::Attempt {
        let kind = kind.name();
        return Some(format!(
            "{id}: succeeded: expected only for an attempt, and this is a {kind}"
        ));
    }
    let known: Vec<&str> = weights(kind).iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = item.fields.keys().find(|name| !known.contains(&name.as_str())) {
        let (kind, known) = (kind.name(), known.join(", "));
        return Some(format!("{id}: fields.{unknown}: expected one of {known} for a {kind}"));
    }
    if let Some(question) = item.questions.iter().find(|it| Query::of(it).is_empty()) {
        return Some(format!(
            "{id}: questions: `{question}` has no words to search for: name what it is about"
        ));
    }
    terms_problem(id, &item.terms)
}

/// A group that nothing matches, or a term that everything contains.
fn terms_problem(id: &str, groups: &[Vec<String>]) -> Option<String> {
    if let Some(at) = groups.iter().position(Vec::is_empty) {
        return Some(format!("{id}: terms[{at}]: is empty: expected at least one alternative"));
    }
    let blank = |group: &Vec<String>| group.iter().any(|term| term.trim().is_empty());
    let at = groups.iter().position(blank)?;
    Some(format!("{id}: terms[{at}]: has an empty term, or one that is private: expected words"))
}

#[cfg(test)]
#[path = "gold_tests.rs"]
mod tests;
