//! What a perfect extraction of a conversation holds, and what it does not say.

use crate::domain::{ClaimKind, Finding, Severity};
use serde::Deserialize;

/// How much an item matters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Importance {
    /// What a colleague would be angry to miss.
    Core,
    /// What is good to have.
    Useful,
}

/// Something to be found.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize)]
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
    /// Of an attempt, whether it succeeded, where that is to be told right.
    #[serde(default)]
    pub succeeded: Option<bool>,
}

/// Something that is not to be said: it was never said, or is nobody's business.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize)]
pub struct Forbidden {
    /// Its name in the file.
    pub id: String,
    /// Groups of alternatives, as those of an [`Item`]. None: nothing says it.
    pub terms: Vec<Vec<String>>,
}

/// The gold of one conversation.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize)]
pub struct Gold {
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
            Ok(gold) => (Some(gold.lower()), Vec::new()),
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

    /// The same with its terms in lower case, as texts are when they are looked for.
    fn lower(mut self) -> Gold {
        let groups = self.items.iter_mut().map(|item| &mut item.terms);
        let groups = groups.chain(self.forbidden.iter_mut().map(|it| &mut it.terms));
        groups.flatten().flatten().for_each(|term| *term = term.to_lowercase());
        self
    }
}

/// Whether a text in lower case has one of each group; false where there is no group.
pub(super) fn meets(text: &str, terms: &[Vec<String>]) -> bool {
    !terms.is_empty()
        && terms.iter().all(|group| group.iter().any(|term| text.contains(term.as_str())))
}
