//! The tool and its answer: finds the answer in a reply and checks it. Keeps each valid claim, and reports all problems
//! of the others at once. Fields that a model must not send are dropped and reported.

use crate::domain::{
    Attempt, CLAIM_BYTES_MAX, CLAIMS_MAX, Call, Claim, Decision, Discussion, Finding, Finish,
    OutputMode, PersonRequest, Reply, Severity, ToolSpec, WriteExtracted,
};
use crate::llm::tool::{full_of, schema_files_of, wire_of};
use crate::text::lenient_json::{self, Repair};
use crate::text::phrase::in_one_line;
use crate::text::truncate::bytes;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

pub(crate) const TOOL_NAME: &str = "write_extracted";
/// The version of the published schema; part of a run's id. A breaking change makes the next one,
/// and readers keep the old.
pub(crate) const SCHEMA_VERSION: u32 = 1;
/// Description of the tool for the model.
const TOOL_DESCRIPTION: &str = "Hands over what happened in the slice: decisions, discussions, attempts and requests. \
     Call it once; every list may be empty.";
/// Maximum number of calls read from one reply; 64 were seen in one.
const CALLS_MAX: usize = 64;
/// Maximum number of reported problems; a complaint with more would be longer than the answer.
const PROBLEMS_MAX: usize = 40;

/// Makes the tool as it is offered to a model.
pub fn tool() -> Arc<ToolSpec> {
    let schema = wire_of::<WriteExtracted>();
    Arc::new(ToolSpec::new(TOOL_NAME, TOOL_DESCRIPTION.to_owned(), schema))
}

/// Names and contents of the files published in `schemas/`.
pub(crate) fn schema_files() -> Vec<(String, String)> {
    schema_files_of::<WriteExtracted>(TOOL_NAME, SCHEMA_VERSION)
}

/// The answer in a reply.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Valid claims, each once.
    pub(super) claims: Vec<Claim>,
    /// Problems of the others.
    pub(super) problems: Vec<String>,
    /// Corrections.
    pub(super) findings: Vec<Finding>,
    /// True if it has the requested object.
    pub(super) shaped: bool,
    /// True if it was truncated.
    pub(super) cut: bool,
    /// True if the model refused.
    pub(super) refused: bool,
    /// True if any part looks like an attempt to answer.
    pub(super) tried: bool,
}

impl Answer {
    /// Reads `reply`: tool calls, else JSON in the text; without a tool in the mode, the text first.
    pub(super) fn read(reply: &Reply, rung: OutputMode) -> Answer {
        let mut answer = Answer::default();
        if rung.is_tool() {
            answer.read_calls(&reply.calls);
            if !answer.shaped {
                answer.read_words(reply);
                if answer.shaped {
                    answer.note("found-in-text", "the answer was in the text, not in a tool call");
                }
            }
        } else {
            answer.read_words(reply);
            if !answer.shaped {
                answer.read_calls(&reply.calls);
            }
        }
        answer.cut |= !answer.shaped && reply.finish == Finish::Length;
        let has_refusal = reply.refusal.as_ref().is_some_and(|words| !words.is_empty());
        let filtered = reply.finish == Finish::ContentFilter;
        answer.refused = !answer.shaped && (has_refusal || filtered);
        answer
    }

    fn read_calls(&mut self, calls: &[Call]) {
        let mut used = 0_usize;
        for call in calls.iter().take(CALLS_MAX) {
            let ours = call.name == TOOL_NAME;
            let (value, repairs) = decode(call.arguments.as_str());
            if value.is_null() {
                // Some models call a tool without arguments to say nothing.
                self.tried |= ours && !call.arguments.as_str().trim().is_empty();
                continue;
            }
            let is_empty = value.as_object().is_some_and(Map::is_empty);
            if ours && is_empty && !breaks_off(&repairs) {
                // Models that leave out empty lists mean four of them.
                self.note("empty-arguments", "an empty object, read as four empty lists");
                (self.tried, self.shaped) = (true, true);
                continue;
            }
            let checked = validate(value);
            if !ours {
                // Servers and models confuse names; arguments that fit can only be meant for ours.
                if !checked.shaped || !checked.problems.is_empty() {
                    continue;
                }
                self.note("wrong-tool", "the answer came under another tool's name");
            }
            used += usize::from(checked.shaped);
            self.add(checked, &repairs);
        }
        if used > 1 {
            self.note("several-calls", "more than one call of the tool, joined");
        }
        if calls.len() > CALLS_MAX {
            self.note("too-many-calls", "more calls than are read");
        }
    }

    fn read_words(&mut self, reply: &Reply) {
        let (value, repairs) = decode(reply.content.as_str());
        if value.is_null() {
            return;
        }
        let checked = validate(value);
        // Other JSON in the middle of text is not the answer.
        let meant = checked.shaped || reply.content.as_str().trim_start().starts_with('{');
        if meant && (checked.shaped || self.problems.is_empty()) {
            self.add(checked, &repairs);
        }
    }

    fn add(&mut self, checked: Checked, repairs: &[Repair]) {
        self.tried = true;
        if checked.shaped && !self.shaped {
            // Problems of parts that were not the answer no longer matter.
            self.problems.clear();
        }
        if checked.shaped || !self.shaped {
            self.problems.extend(checked.problems);
        }
        self.shaped |= checked.shaped;
        self.cut |= breaks_off(repairs);
        let repairs = repairs.iter().map(|repair| repair.finding());
        for finding in repairs.chain(checked.findings) {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
        if join(&mut self.claims, checked.claims) > 0 {
            self.note("too-many-claims", "claims beyond the most that are kept, dropped");
        }
    }

    fn note(&mut self, rule: &'static str, detail: &str) {
        if !self.findings.iter().any(|finding| finding.rule == rule) {
            self.findings.push(Finding::new(Severity::Warning, rule, 0, detail));
        }
    }
}

/// Adds new claims, up to [`CLAIMS_MAX`]; returns the number of claims beyond it.
pub(super) fn join(claims: &mut Vec<Claim>, more: Vec<Claim>) -> usize {
    let mut dropped = 0;
    for claim in more {
        if claims.contains(&claim) {
            continue;
        }
        if claims.len() == CLAIMS_MAX {
            dropped += 1;
        } else {
            claims.push(claim);
        }
    }
    dropped
}

/// The four lists, in the order of the schema.
const LISTS: [&str; 4] = ["decisions", "discussions", "attempts", "requests"];
/// The fields of an element of each list.
const FIELDS: [(&str, &[&str]); 4] = [
    ("decisions", &["options", "chosen", "rationale"]),
    ("discussions", &["topic", "points"]),
    ("attempts", &["action", "result", "succeeded"]),
    ("requests", &["intent", "target", "summary"]),
];
/// Maximum number of options or points of one claim; a model that lists more repeats itself.
const ITEMS_MAX: usize = 100;
/// Fields whose text is one line.
const ONE_LINE: [&str; 3] = ["intent", "target", "summary"];
/// Field names under which models try to give provenance.
const PROVENANCE: &str = "\
    source sources source_ref source_refs session session_id segment_id provenance \
    evidence citation citations entry entries entry_id entry_index index range line id \
    timestamp timestamps time date created_at";

/// Reads `text` as the object with the four lists; null if it contains none.
pub fn decode(text: &str) -> (Value, Vec<Repair>) {
    lenient_json::decode(text, &LISTS)
}

fn breaks_off(repairs: &[Repair]) -> bool {
    repairs.iter().any(|it| matches!(it, Repair::Cut | Repair::Broken))
}

/// Compiled once, since that costs more than a hundred checks.
static VALIDATOR: LazyLock<Option<jsonschema::Validator>> =
    LazyLock::new(|| jsonschema::draft202012::new(&full_of::<WriteExtracted>()).ok());

/// A checked answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// Valid claims, decisions first; each once, at most [`CLAIMS_MAX`].
    pub claims: Vec<Claim>,
    /// Problems of the others: a path and the expected value, no text of a conversation.
    pub problems: Vec<String>,
    /// Parts that were dropped, cut or missing.
    pub findings: Vec<Finding>,
    /// True if it is the requested object: at least one of its lists is present.
    pub shaped: bool,
}

/// Checks an answer. Returns the usable parts of any value.
pub fn validate(value: Value) -> Checked {
    let unshaped = |problem| Checked { problems: vec![problem], ..Checked::default() };
    let found = kind(&value);
    let Value::Object(mut root) = value else {
        return unshaped(format!("the answer: expected an object with four lists; found {found}"));
    };
    if !LISTS.iter().any(|list| root.get(*list).is_some_and(|list| !list.is_null())) {
        return unshaped("the answer: none of the four lists is present".to_owned());
    }
    let mut tally = Tally::default();
    tidy(&mut root, &mut tally);
    let mut checked = Checked { shaped: true, ..Checked::default() };
    let value = Value::Object(root);
    let broken = problems(&value, &mut checked.problems);
    if let Value::Object(root) = value {
        checked.claims = claims(root, &broken, &mut tally);
    }
    checked.findings = tally.into_findings();
    checked
}

/// Position of an element: its list and its index there.
type ElementPosition = (String, usize);

/// Describes every problem, and returns the broken elements.
fn problems(value: &Value, into: &mut Vec<String>) -> BTreeSet<ElementPosition> {
    let mut broken = BTreeSet::new();
    let Some(validator) = VALIDATOR.as_ref() else { return broken };
    if validator.is_valid(value) {
        return broken;
    }
    for error in validator.iter_errors(value) {
        let (place, problem) = explain(&error);
        broken.extend(place);
        if into.len() < PROBLEMS_MAX {
            into.push(problem);
        }
    }
    broken
}

/// The claims of all lists but the broken ones, each once.
fn claims(
    root: Map<String, Value>,
    broken: &BTreeSet<ElementPosition>,
    tally: &mut Tally,
) -> Vec<Claim> {
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

/// Parses one element as a claim; `None` only if the schema accepts what the type refuses.
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

/// Normalises the whole answer in place.
fn tidy(root: &mut Map<String, Value>, tally: &mut Tally) {
    root.retain(|key, _| keep(key, &LISTS, tally, || "the whole".to_owned()));
    for (list, fields) in FIELDS {
        match root.get_mut(list) {
            None | Some(Value::Null) => {
                tally.at("missing-array", || list.to_owned());
                root.insert(list.to_owned(), Value::Array(Vec::new()));
            }
            Some(Value::Array(elements)) => {
                for n in CLAIMS_MAX..elements.len() {
                    tally.count("too-many-claims", list, n);
                }
                elements.truncate(CLAIMS_MAX);
                for (n, element) in elements.iter_mut().enumerate() {
                    if let Value::Object(element) = element {
                        tidy_element(element, fields, tally, &|| format!("{list}[{n}]"));
                    }
                }
            }
            Some(Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_)) => {}
        }
    }
}

fn tidy_element(
    element: &mut Map<String, Value>,
    fields: &[&str],
    tally: &mut Tally,
    place: &dyn Fn() -> String,
) {
    element.retain(|key, _| keep(key, fields, tally, place));
    for (key, value) in element.iter_mut() {
        match value {
            Value::String(text) => {
                if ONE_LINE.contains(&key.as_str()) {
                    *text = in_one_line(text);
                }
                tidy_text(text, tally, place);
                if text.is_empty() && key == "target" {
                    *value = Value::Null;
                }
            }
            Value::Array(items) => {
                if items.len() > ITEMS_MAX {
                    tally.at("too-many-items", place);
                    items.truncate(ITEMS_MAX);
                }
                for item in items.iter_mut() {
                    if let Value::String(text) = item {
                        tidy_text(text, tally, place);
                    }
                }
                for _ in items.extract_if(.., |item| item.as_str() == Some("")) {
                    tally.at("empty-item", place);
                }
            }
            Value::Object(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }
}

/// True if `key` is one of `known`; counts it if not.
fn keep(key: &str, known: &[&str], tally: &mut Tally, place: impl Fn() -> String) -> bool {
    if known.contains(&key) {
        return true;
    }
    let ours = PROVENANCE.split(' ').any(|name| name.eq_ignore_ascii_case(key));
    tally.at(if ours { "model-provenance" } else { "unknown-field" }, place);
    false
}

fn tidy_text(text: &mut String, tally: &mut Tally, place: &dyn Fn() -> String) {
    if text.trim().len() < text.len() {
        *text = text.trim().to_owned();
    }
    if text.len() > CLAIM_BYTES_MAX {
        *text = bytes(text, CLAIM_BYTES_MAX).trim_end().to_owned();
        tally.at("cut-string", place);
    }
}

/// Severity and description of each rule.
const RULES: [(&str, Severity, &str); 8] = [
    ("unknown-field", Severity::Warning, "fields that the schema does not have, dropped"),
    ("model-provenance", Severity::Warning, "fields that only annalist may fill, dropped"),
    ("missing-array", Severity::Warning, "missing lists, read as empty"),
    ("empty-item", Severity::Info, "items without words in a list of texts, dropped"),
    ("too-many-items", Severity::Warning, "lists of options or points that are too long, cut"),
    ("cut-string", Severity::Warning, "texts that are too long, cut"),
    ("too-many-claims", Severity::Warning, "claims beyond the most that are kept, dropped"),
    ("duplicate-claim", Severity::Info, "duplicate claims, kept once"),
];

/// Counts by rule, in the order in which the rules first fired.
#[derive(Default)]
struct Tally(Vec<(&'static str, u64, String)>);

impl Tally {
    /// Counts `rule` at element `n` of `list`.
    fn count(&mut self, rule: &'static str, list: &str, n: usize) {
        self.at(rule, || format!("{list}[{n}]"));
    }

    /// Counts `rule`; only the first place is kept.
    fn at(&mut self, rule: &'static str, place: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|(known, ..)| *known == rule) {
            Some((_, count, _)) => *count += 1,
            None => self.0.push((rule, 1, place())),
        }
    }

    fn into_findings(self) -> Vec<Finding> {
        let finding = |(rule, count, place): (&'static str, u64, String)| {
            let known = RULES.iter().find(|(name, ..)| *name == rule);
            let (severity, detail) = known.map_or((Severity::Warning, rule), |it| (it.1, it.2));
            Finding::new(severity, rule, 0, format!("{count} {detail}; first at {place}"))
        };
        self.0.into_iter().map(finding).collect()
    }
}

/// Returns the broken element and the problem.
fn explain(error: &ValidationError<'_>) -> (Option<ElementPosition>, String) {
    let (mut path, mut field, mut place) = (String::new(), String::new(), None);
    for segment in error.instance_path().segments() {
        match segment {
            LocationSegment::Property(name) => {
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(&name);
                field = name.into_owned();
            }
            LocationSegment::Index(n) => {
                place.get_or_insert_with(|| (path.clone(), n));
                path.push_str(&format!("[{n}]"));
            }
        }
    }
    let wanted = match &place {
        Some(_) if path.contains('.') && path.ends_with(']') => "a string".to_owned(),
        Some(_) if path.contains('.') => expected(&field).to_owned(),
        Some((list, _)) => format!("an object with {}", element(list)),
        None => "a list".to_owned(),
    };
    let problem = problem_of(error, &path, &wanted);
    (place, problem)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "another crate's enum, which grows")]
fn problem_of(error: &ValidationError<'_>, path: &str, wanted: &str) -> String {
    let found = kind(error.instance());
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!("{path}.{name}: missing; expected {}", expected(name))
        }
        ValidationErrorKind::Type { .. } => format!("{path}: expected {wanted}; found {found}"),
        ValidationErrorKind::MinLength { .. } => format!("{path}: empty; expected {wanted}"),
        _ => format!("{path}: does not fit the schema ({})", error.kind().keyword()),
    }
}

fn expected(field: &str) -> &'static str {
    match field {
        "options" | "points" => "a list of strings",
        "succeeded" => {
            "true or false (a partial success is false; say in `result` which part worked)"
        }
        "target" => "a string or null",
        _ => "a string",
    }
}

fn element(list: &str) -> &'static str {
    match list {
        "decisions" => "`options`, `chosen` and `rationale`",
        "discussions" => "`topic` and `points`",
        "attempts" => "`action`, `result` and `succeeded`",
        _ => "`intent`, `target` and `summary`",
    }
}

/// JSON type of a value, in words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
