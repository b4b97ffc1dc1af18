//! What a reply hands over: the calls of a tool, or JSON in its words, as entries of the one list that was asked for.

use crate::domain::{Finding, Reply, Rung, Severity};
use crate::privacy::Redacted;
use crate::tool::decode;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Calls of one reply that are read.
const CALLS_MAX: usize = 16;
/// Entries of one answer that are read: more than anybody asks for.
const ENTRIES_MAX: usize = 200;

/// What an answer comes to.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// Whether the object that was asked for was there.
    pub(super) shaped: bool,
    pub(super) entries: Vec<Value>,
    pub(super) findings: Vec<Finding>,
}

/// Reads `reply`: the calls of `tool`, or JSON in its words, known by its `list`.
pub(super) fn read(reply: &Reply, rung: Rung, (tool, list): (&str, &str)) -> Handed {
    let calls = reply.calls.iter().take(CALLS_MAX).filter(|call| call.name == tool);
    let called: Vec<&Redacted> = calls.map(|call| &call.arguments).collect();
    let mut handed = Handed::default();
    for text in called {
        handed.add(text, list);
    }
    if !handed.shaped {
        handed.add(&reply.content, list);
        if handed.shaped && rung.is_tool() {
            handed.note("found-in-text", "the answer stood in the words, not in a call");
        }
    }
    handed
}

impl Handed {
    fn add(&mut self, text: &Redacted, list: &str) {
        let (value, repairs) = decode(text.as_str(), &[list]);
        let Value::Object(mut object) = value else { return };
        let Some(Value::Array(entries)) = object.remove(list) else { return };
        self.shaped = true;
        self.findings.extend(repairs.into_iter().map(|repair| repair.finding()));
        let room = ENTRIES_MAX.saturating_sub(self.entries.len());
        self.entries.extend(entries.into_iter().take(room));
    }

    pub(super) fn note(&mut self, rule: &'static str, detail: impl Into<String>) {
        self.findings.push(Finding::new(Severity::Warning, rule, 0, detail));
    }

    /// An entry without what a model has no business to send; none if it has another shape.
    pub(super) fn entry<T: DeserializeOwned>(
        &mut self,
        entry: Value,
        fields: &[&str],
    ) -> Option<T> {
        let Value::Object(object) = entry else { return None };
        let (known, other): (Map<String, Value>, Map<String, Value>) =
            object.into_iter().partition(|(key, _)| fields.contains(&key.as_str()));
        if !other.is_empty() {
            self.note("unknown-field", "fields that were not asked for, dropped");
        }
        serde_json::from_value(Value::Object(known)).ok()
    }
}

/// The place, from 0, of what a batch calls `R1` and so on.
pub(super) fn place(id: &str) -> Option<usize> {
    let number: usize = id.trim().strip_prefix(['R', 'r'])?.parse().ok()?;
    number.checked_sub(1)
}
