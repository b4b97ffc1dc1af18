//! What a perfect extraction of a conversation holds, and what it does not say. Gold passes the gate as transcripts do,
//! so that it can be shown, and meets records that passed it.

use super::similar::field_names;
use crate::domain::{ClaimKind, Finding, Severity, named};
use crate::privacy::Gate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

named! {
    /// How much an item matters.
    #[derive(JsonSchema)]
    Importance {
        /// What a colleague would be angry to miss.
        Core = "core",
        /// What is good to have.
        Useful = "useful",
    }
}

named! {
    /// Why something is not to be said.
    #[derive(JsonSchema)]
    Why {
        /// Nobody said it.
        Invented = "invented",
        /// It is small talk.
        #[serde(alias = "small talk")]
        SmallTalk = "small-talk",
        /// A tracker holds it already.
        #[serde(alias = "tracker mirror")]
        Tracker = "tracker",
        /// It is nobody's business.
        #[serde(alias = "secret")]
        Private = "private",
        /// Text that addressed the model ordered it.
        Injected = "injected",
        /// It was weighed, and never decided.
        #[serde(alias = "hypothetical taken as decision")]
        Hypothetical = "hypothetical",
        /// It was taken back.
        #[serde(alias = "superseded state presented as current")]
        Reversed = "reversed",
        /// It was claimed as done, and was not.
        Unfinished = "unfinished",
        /// It holds for the moment only, such as the step that is being taken.
        Transient = "transient",
    }
}

/// Something to be found.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `id`, `kind`, `importance` and `statement`"
)]
pub struct Item {
    /// Its name in the file, which no other item has.
    pub id: String,
    /// What kind of record says it.
    pub kind: ClaimKind,
    /// How much it matters.
    pub importance: Importance,
    /// It, in a sentence.
    pub statement: String,
    /// Groups of alternatives, none of them empty: a text says it that has one of each group. None: the statement counts.
    #[serde(default)]
    pub terms: Vec<Vec<String>>,
    /// What the fields of a record are to say, such as `chosen` and `options`. Without terms they decide, by how
    /// alike the fields are that are named; with terms they only prefer one record to another.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Wanted>,
    /// Of an attempt, whether it succeeded, where that is to be told right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
    /// The words of the transcript that say it, for people; a run warns of those that are in none of its entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Where they stand, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_hint: Option<String>,
}

/// What a field is to say.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "a text or a list of texts")]
pub enum Wanted {
    /// A text.
    Text(String),
    /// Some texts, in any order.
    Texts(Vec<String>),
}

/// Something that is not to be said: it was never said, or is nobody's business.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `id` and `terms`")]
pub struct Forbidden {
    /// Its name in the file, which no other of these has.
    pub id: String,
    /// Why it is not to be said; invented where it is left out.
    #[serde(default = "invented")]
    pub why: Why,
    /// It, in a sentence, for people.
    #[serde(default)]
    pub statement: String,
    /// Groups of alternatives, as those of an [`Item`]. None: nothing says it. They are never shown, and looked for as
    /// they are: a secret that is not to be said must be seen if the gate lets it through.
    pub terms: Vec<Vec<String>>,
}

/// The gold of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `must` and `must_not`")]
pub struct Gold {
    /// What is to be found.
    #[serde(rename = "must")]
    pub items: Vec<Item>,
    /// What is not to be said.
    #[serde(default, rename = "must_not")]
    pub forbidden: Vec<Forbidden>,
    /// The schema that an editor helps with.
    #[serde(default, rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// In a suite, the transcript by its way in `transcripts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// In a suite, which conversation of the transcript, by its id or its number in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Value>,
    /// What else is to be said of it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The language of the conversation, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How alike a record and an item without terms are at least, from 0 to 1; half where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
}

impl Gold {
    /// Reads a gold file, with what the gate leaves of it; none if it is none, and then the finding, with the rule
    /// `bad-gold`, says where.
    pub fn read(text: &str, gate: &Gate) -> (Option<Gold>, Vec<Finding>) {
        // A message may quote the file.
        let bad = |line: usize, what: &str| {
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            let detail = gate.redact(what).as_str().to_owned();
            (None, vec![Finding::new(Severity::Error, "bad-gold", line, detail)])
        };
        match serde_json::from_str::<Gold>(text.strip_prefix('\u{feff}').unwrap_or(text)) {
            Ok(gold) => {
                let gold = gold.gated(gate);
                match gold.wrong() {
                    None => (Some(gold.lower()), Vec::new()),
                    Some(wrong) => bad(0, &wrong),
                }
            }
            Err(error) => {
                let (line, column, whole) = (error.line(), error.column(), error.to_string());
                let place = format!(" at line {line} column {column}");
                let what = whole.strip_suffix(&place).unwrap_or(&whole);
                bad(line, &format!("column {column}: {what}"))
            }
        }
    }

    /// What the gate leaves of it; terms of what is not to be said stay as they are.
    fn gated(mut self, gate: &Gate) -> Gold {
        let pass = |text: &mut String| *text = gate.redact(text).as_str().to_owned();
        for item in &mut self.items {
            [&mut item.id, &mut item.statement].into_iter().for_each(pass);
            item.terms.iter_mut().flatten().for_each(pass);
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
        self
    }

    /// What cannot be meant so.
    fn wrong(&self) -> Option<String> {
        let similarity = self.similarity.filter(|it| !(0.0..=1.0).contains(it));
        if let Some(it) = similarity {
            return Some(format!("similarity {it}: expected a number from 0 to 1"));
        }
        let ids = self.items.iter().map(|it| &it.id);
        let forbidden = self.forbidden.iter().map(|it| &it.id);
        twice("must", ids)
            .or_else(|| twice("must_not", forbidden))
            .or_else(|| self.items.iter().find_map(wrong_item))
            .or_else(|| self.forbidden.iter().find_map(|it| wrong_terms(&it.id, &it.terms)))
    }

    /// The same with its terms in lower case, as texts are when they are looked for.
    fn lower(mut self) -> Gold {
        let groups = self.items.iter_mut().map(|item| &mut item.terms);
        let groups = groups.chain(self.forbidden.iter_mut().map(|it| &mut it.terms));
        groups.flatten().flatten().for_each(|term| *term = term.to_lowercase());
        self
    }
}

/// An id that stands for two things; a report could not say which is meant.
fn twice<'i>(list: &str, mut ids: impl Iterator<Item = &'i String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let id = ids.find(|id| !seen.insert(*id))?;
    Some(format!("{list}: two are called {id}: expected an id for each"))
}

fn wrong_item(item: &Item) -> Option<String> {
    let (id, kind) = (&item.id, item.kind);
    if item.succeeded.is_some() && kind != ClaimKind::Attempt {
        let kind = kind.name();
        return Some(format!("{id}: succeeded: expected of an attempt only, and this is a {kind}"));
    }
    let known: Vec<&str> = field_names(kind).collect();
    if let Some(unknown) = item.fields.keys().find(|name| !known.contains(&name.as_str())) {
        let (kind, known) = (kind.name(), known.join(", "));
        return Some(format!("{id}: fields.{unknown}: expected one of {known} for a {kind}"));
    }
    wrong_terms(id, &item.terms)
}

/// A group that nothing can meet, and a term that everything has.
fn wrong_terms(id: &str, groups: &[Vec<String>]) -> Option<String> {
    let empty = groups.iter().position(Vec::is_empty);
    if let Some(at) = empty {
        return Some(format!("{id}: terms[{at}]: is empty: expected one alternative at least"));
    }
    let blank = |group: &Vec<String>| group.iter().any(|term| term.trim().is_empty());
    let at = groups.iter().position(blank)?;
    Some(format!("{id}: terms[{at}]: has an empty term, or one that is private: expected words"))
}

fn invented() -> Why {
    Why::Invented
}

#[cfg(test)]
#[path = "gold_tests.rs"]
mod tests;
