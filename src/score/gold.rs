//! What a perfect extraction of a conversation holds, and what it does not say.

use super::similar::field_names;
use crate::domain::{ClaimKind, Finding, Severity, named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
pub struct Item {
    /// Its name in the file.
    pub id: String,
    /// What kind of record says it.
    pub kind: ClaimKind,
    /// How much it matters.
    pub importance: Importance,
    /// It, in a sentence.
    pub statement: String,
    /// Groups of alternatives: a text says it that has one of each group. None: the statement counts.
    #[serde(default)]
    pub terms: Vec<Vec<String>>,
    /// What the fields of a record are to say, such as `chosen` and `options`. Without terms they decide, by how
    /// alike the fields are that are named; with terms they only prefer one record to another.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Wanted>,
    /// Of an attempt, whether it succeeded, where that is to be told right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
    /// The words of the transcript that say it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Where they stand, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_hint: Option<String>,
}

/// What a field is to say.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Wanted {
    /// A text.
    Text(String),
    /// Some texts, in any order.
    Texts(Vec<String>),
}

/// Something that is not to be said: it was never said, or is nobody's business.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Forbidden {
    /// Its name in the file.
    pub id: String,
    /// Why it is not to be said; invented where it is left out.
    #[serde(default = "invented")]
    pub why: Why,
    /// It, in a sentence, for people.
    #[serde(default)]
    pub statement: String,
    /// Groups of alternatives, as those of an [`Item`]. None: nothing says it.
    pub terms: Vec<Vec<String>>,
}

/// The gold of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Gold {
    /// The language of the conversation, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How alike a record and an item without terms are at least, from 0 to 1; half where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// What is to be found.
    #[serde(rename = "must")]
    pub items: Vec<Item>,
    /// What is not to be said.
    #[serde(default, rename = "must_not")]
    pub forbidden: Vec<Forbidden>,
}

impl Gold {
    /// Reads a gold file; none if it is none, and then the finding, with the rule `bad-gold`, says where.
    pub fn read(text: &str) -> (Option<Gold>, Vec<Finding>) {
        match serde_json::from_str::<Gold>(text) {
            Ok(gold) => match gold.wrong() {
                None => (Some(gold.lower()), Vec::new()),
                Some(wrong) => (None, vec![Finding::new(Severity::Error, "bad-gold", 0, wrong)]),
            },
            Err(error) => {
                let detail = format!(
                    "expected gold with `must` and `must_not`, found something else at column {}",
                    error.column()
                );
                let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
                (None, vec![Finding::new(Severity::Error, "bad-gold", line, detail)])
            }
        }
    }

    /// What cannot be meant so.
    fn wrong(&self) -> Option<String> {
        let similarity = self.similarity.filter(|it| !(0.0..=1.0).contains(it));
        if let Some(it) = similarity {
            return Some(format!("similarity {it}: expected a number from 0 to 1"));
        }
        self.items.iter().find_map(|item| {
            let known: Vec<&str> = field_names(item.kind).collect();
            let unknown = item.fields.keys().find(|name| !known.contains(&name.as_str()))?;
            let (id, kind, known) = (&item.id, item.kind.name(), known.join(", "));
            Some(format!("{id}: fields.{unknown}: expected one of {known} for a {kind}"))
        })
    }

    /// The same with its terms in lower case, as texts are when they are looked for.
    fn lower(mut self) -> Gold {
        let groups = self.items.iter_mut().map(|item| &mut item.terms);
        let groups = groups.chain(self.forbidden.iter_mut().map(|it| &mut it.terms));
        groups.flatten().flatten().for_each(|term| *term = term.to_lowercase());
        self
    }
}

fn invented() -> Why {
    Why::Invented
}
