//! Checks an answer: good claims are kept one by one, and all that is wrong with the others is said
//! at once. What a model has no business to send is dropped and reported.

mod explain;
mod tally;
mod tidy;

use super::schema::full;
use crate::domain::{Attempt, CLAIMS_MAX, Claim, Decision, Discussion, Finding, PersonRequest};
use crate::tool::Repair;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tally::Tally;

/// Problems that are put into words; a complaint with more would be longer than the answer.
const PROBLEMS_MAX: usize = 40;

/// The four lists, in the order of the schema.
const LISTS: [&str; 4] = ["decisions", "discussions", "attempts", "requests"];

/// Reads `text` as the object with the four lists; null if there is none in it.
pub fn decode(text: &str) -> (Value, Vec<Repair>) {
    crate::tool::decode(text, &LISTS)
}

/// Compiled once: that costs more than a hundred checks.
static VALIDATOR: LazyLock<Option<jsonschema::Validator>> =
    LazyLock::new(|| jsonschema::draft202012::new(&full()).ok());

/// An answer that was looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// The claims that are good, decisions first; each once, at most [`CLAIMS_MAX`].
    pub claims: Vec<Claim>,
    /// What is wrong with the others: a path and what was expected, no words of any conversation.
    pub problems: Vec<String>,
    /// What was dropped, cut or missing.
    pub findings: Vec<Finding>,
    /// Whether it is the object that was asked for: at least one of its lists is there.
    pub shaped: bool,
}

/// Looks at an answer. Whatever it is, this gives what can be used of it.
pub fn validate(value: Value) -> Checked {
    let Value::Object(mut root) = value else {
        let found = explain::kind(&value);
        let problem = format!("the whole: expected an object with four lists; found {found}");
        return Checked { problems: vec![problem], ..Checked::default() };
    };
    if !LISTS.iter().any(|list| root.get(*list).is_some_and(|list| !list.is_null())) {
        let problem = "the whole: none of the four lists is there".to_owned();
        return Checked { problems: vec![problem], ..Checked::default() };
    }
    let mut tally = Tally::default();
    tidy::tidy(&mut root, &mut tally);
    let mut checked = Checked { shaped: true, ..Checked::default() };
    let value = Value::Object(root);
    let broken = problems(&value, &mut checked.problems);
    if let Value::Object(root) = value {
        checked.claims = claims(root, &broken, &mut tally);
    }
    checked.findings = tally.into_findings();
    checked
}

/// Where an element stands: its list and its place there.
type Place = (String, usize);

/// Puts everything that is wrong into words, and says which elements are broken.
fn problems(value: &Value, into: &mut Vec<String>) -> BTreeSet<Place> {
    let mut broken = BTreeSet::new();
    let Some(validator) = VALIDATOR.as_ref() else { return broken };
    if validator.is_valid(value) {
        return broken;
    }
    for error in validator.iter_errors(value) {
        let (place, problem) = explain::explain(&error);
        broken.extend(place);
        if into.len() < PROBLEMS_MAX {
            into.push(problem);
        }
    }
    broken
}

/// The claims of all lists but the broken ones, each once.
fn claims(root: Map<String, Value>, broken: &BTreeSet<Place>, tally: &mut Tally) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (list, value) in root {
        let Value::Array(elements) = value else { continue };
        for (n, element) in elements.into_iter().enumerate() {
            if !broken.is_empty() && broken.contains(&(list.clone(), n)) {
                continue;
            }
            let Some(claim) = claim(&list, element) else { continue };
            if claims.contains(&claim) {
                tally.count("duplicate-claim", &list, n);
            } else if claims.len() == CLAIMS_MAX {
                tally.count("too-many-claims", &list, n);
            } else {
                claims.push(claim);
            }
        }
    }
    claims.sort_by_key(Claim::kind);
    claims
}

/// One element as a claim. None only if the schema let through what the type refuses.
fn claim(list: &str, element: Value) -> Option<Claim> {
    fn read<T: DeserializeOwned>(element: Value) -> Option<T> {
        serde_json::from_value(element).ok()
    }
    match list {
        "decisions" => read::<Decision>(element).map(Claim::Decision),
        "discussions" => read::<Discussion>(element).map(Claim::Discussion),
        "attempts" => read::<Attempt>(element).map(Claim::Attempt),
        "requests" => read::<PersonRequest>(element).map(Claim::Request),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
