//! Parses one slice document into a session and its entries, or into a one-line error. The error
//! never repeats names or values of the document, which may be conversation text.

use super::document::{Rfc3339Time, SliceDocument, SliceEntry, schema};
use crate::domain::{EntryKind, HANDED_BYTES_MAX, Speaker};
use crate::transcripts::client_text::ClientText;
use crate::transcripts::json::repair_json;
use crate::transcripts::raw::{RawEntry, RawSession};
use crate::transcripts::text::clean;
use crate::transcripts::tools::{self, OpenCalls};
use jsonschema::error::{ValidationError, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Minimum similarity of a name to a known one for it to be suggested, 0 to 1.
const SIMILARITY_MIN: f64 = 0.7;
/// Names that other formats use, and the corresponding field or value.
const SYNONYMS: [(&[&str], &str); 10] = [
    (&["user", "human"], "person"),
    (&["ai", "agent", "model"], "assistant"),
    (&["system", "developer"], "client"),
    (&["function", "name"], "tool"),
    (&["role"], "speaker"),
    (&["content", "message"], "text"),
    (&["messages"], "entries"),
    (&["type"], "kind"),
    (&["timestamp", "time"], "at"),
    (&["error"], "failed"),
];

/// Session and entries of a slice document, before redaction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RawSlice {
    pub session: RawSession,
    /// One entry per entry of the document; lines are 1-based positions.
    pub entries: Vec<RawEntry>,
    /// Ordinal of the first entry; if `None`, the entries are appended.
    pub from: Option<u32>,
    pub closed: bool,
    /// Priority from -100 to 100.
    pub priority: Option<i32>,
    /// True if invalid bytes or escapes were replaced.
    pub repaired: bool,
}

/// Refusal of a slice document: one line without content of the document.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{path}: {problem}")]
pub(crate) struct SliceError {
    /// Path in the document, such as `entries[3].speaker`; `document` for the whole.
    pub(crate) path: String,
    problem: String,
    /// True if the document ends early and may still be being written.
    pub(super) unfinished: bool,
}

impl SliceError {
    fn new(path: &str, problem: impl Into<String>) -> SliceError {
        let path = if path.is_empty() { "document" } else { path };
        SliceError { path: path.to_owned(), problem: problem.into(), unfinished: false }
    }

    pub(super) fn unnamed() -> SliceError {
        SliceError::new("session", "is missing: expected the session's id")
    }
}

/// Reads one document; `session` overrides the document's id. Fails if the document violates
/// `schemas/slice.v1.json`, is longer than [`HANDED_BYTES_MAX`], or no session is named.
pub(crate) fn parse_slice(bytes: &[u8], session: Option<&str>) -> Result<RawSlice, SliceError> {
    let (document, repaired) = parse(bytes)?;
    let mut head = document.head();
    match session.filter(|session| !session.is_empty()) {
        Some(session) => head.native_id = session.to_owned(),
        None if head.native_id.is_empty() => return Err(SliceError::unnamed()),
        None => {}
    }
    let mut reader = EntryReader::default();
    let entries = (1..).zip(document.entries).map(|(line, entry)| reader.entry(entry, line));
    Ok(RawSlice {
        session: head,
        entries: entries.collect(),
        from: document.from,
        closed: document.closed,
        priority: document.priority,
        repaired,
    })
}

/// Parses a document and returns whether it was repaired. The session may be missing.
pub(super) fn parse(bytes: &[u8]) -> Result<(SliceDocument, bool), SliceError> {
    if bytes.len() > HANDED_BYTES_MAX {
        let problem = format!("expected at most {HANDED_BYTES_MAX} bytes, found more");
        return Err(SliceError::new("", problem));
    }
    // Some shells prepend a byte order mark to what they pipe.
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    let replaced = matches!(text, Cow::Owned(_));
    match parse_text(&text) {
        Ok(document) => Ok((document, replaced)),
        Err(error) => match repair_json(&text) {
            Some(repaired) => parse_text(&repaired).map(|document| (document, true)),
            None => Err(error),
        },
    }
}

fn parse_text(text: &str) -> Result<SliceDocument, SliceError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let problem = format!("expected one JSON object: {error}");
        SliceError { unfinished: error.is_eof(), ..SliceError::new("", problem) }
    })?;
    if let Some(validator) = VALIDATOR.as_ref()
        && let Some(error) = validator.iter_errors(&value).min_by_key(rank)
    {
        return Err(explain(&error, &value));
    }
    drop(value);
    // The parser keeps the last of two fields with one name, and takes 1.0 for a whole number.
    serde_json::from_str(text)
        .map_err(|_| SliceError::new("", "a field is given twice, or a number has a decimal point"))
}

/// Compiled once, because compiling costs more than a hundred validations.
static VALIDATOR: LazyLock<Option<jsonschema::Validator>> =
    LazyLock::new(|| jsonschema::options().should_validate_formats(true).build(schema()).ok());

/// Sort key of violations: unknown names first, since a misspelt field is also a missing one.
fn rank(error: &ValidationError<'_>) -> bool {
    !matches!(error.kind(), ValidationErrorKind::AdditionalProperties { .. })
}

/// Describes one violation: its path, and what the schema expects there.
#[expect(clippy::wildcard_enum_match_arm, reason = "another crate's enum, which grows")]
fn explain(error: &ValidationError<'_>, document: &Value) -> SliceError {
    let mut path = String::new();
    for segment in error.instance_path().segments() {
        match segment {
            LocationSegment::Property(name) if path.is_empty() => path.push_str(&name),
            LocationSegment::Property(name) => path.push_str(&format!(".{name}")),
            LocationSegment::Index(number) => path.push_str(&format!("[{number}]")),
        }
    }
    let schema = violated_schema(error);
    let instance = document.pointer(error.instance_path().as_str()).unwrap_or(&Value::Null);
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = schema.get("properties").and_then(Value::as_object);
            let known: Vec<&str> =
                known.into_iter().flat_map(|it| it.keys()).map(|it| &**it).collect();
            let name = unexpected.first().map(String::as_str).unwrap_or_default();
            let fields = instance.as_object().into_iter().flat_map(|fields| fields.keys());
            let number = fields.into_iter().position(|field| field == name).unwrap_or_default() + 1;
            let hint = hint(name, &known);
            SliceError::new(&path, format!("field {number} has an unknown name: {hint}"))
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let dot = if path.is_empty() { "" } else { "." };
            let wanted = wanted(&schema["properties"][name]);
            SliceError::new(&format!("{path}{dot}{name}"), format!("is missing: expected {wanted}"))
        }
        ValidationErrorKind::MinLength { .. } => {
            SliceError::new(&path, "is empty: expected text, or leave it out")
        }
        ValidationErrorKind::MaxLength { limit } => {
            let found = instance.as_str().map_or(0, |text| text.chars().count());
            SliceError::new(&path, format!("expected at most {limit} characters, found {found}"))
        }
        ValidationErrorKind::MaxItems { limit } => {
            let found = instance.as_array().map_or(0, Vec::len);
            SliceError::new(&path, format!("expected at most {limit} elements, found {found}"))
        }
        kind => {
            let names = constants(schema);
            if let (Some(name), false) = (instance.as_str(), names.is_empty()) {
                let hint = hint(name, &names);
                return SliceError::new(&path, format!("has an unknown name: {hint}"));
            }
            let is_range = matches!(kind.keyword(), "minimum" | "maximum" | "format");
            let found = if is_range { None } else { Some(type_name(kind_of(instance))) };
            let found = found.map(|found| format!(", found {found}")).unwrap_or_default();
            SliceError::new(&path, format!("expected {}{found}", wanted(schema)))
        }
    }
}

/// Subschema of a violation: the parent of its keyword.
fn violated_schema(error: &ValidationError<'_>) -> &'static Value {
    let keyword = error.schema_path().as_str();
    let parent = keyword.rsplit_once('/').map_or("", |(parent, _)| parent);
    schema().pointer(parent).unwrap_or(&Value::Null)
}

/// Suggests the known name that was probably meant, or lists all of them.
fn hint(name: &str, known: &[&str]) -> String {
    let name = name.to_ascii_lowercase();
    let is_synonym =
        |(others, own): &&(&[&str], &str)| others.contains(&name.as_str()) && known.contains(own);
    let similarity = |known: &&&str| strsim::jaro_winkler(&name, known);
    let nearest = known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let nearest = nearest.filter(|nearest| similarity(nearest) >= SIMILARITY_MIN).copied();
    match SYNONYMS.iter().find(is_synonym).map(|(_, own)| *own).or(nearest) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("expected one of {}", known.join(", ")),
    }
}

/// Names of an enumeration; empty for other schemas.
fn constants(schema: &Value) -> Vec<&str> {
    let schema = schema.pointer("/anyOf/0").unwrap_or(schema);
    let choices = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    choices.filter_map(|choice| choice["const"].as_str()).collect()
}

/// Describes the expected value.
fn wanted(schema: &Value) -> String {
    let names = constants(schema);
    if !names.is_empty() {
        return format!("one of {}", names.join(", "));
    }
    let kind = schema.pointer("/type/0").unwrap_or(&schema["type"]).as_str().unwrap_or_default();
    match (kind, schema.get("minimum"), schema.get("maximum")) {
        ("integer", Some(min), Some(max)) => format!("a whole number from {min} to {max}"),
        ("string", ..) if schema.get("format").is_some() => {
            "a time in RFC 3339 with its zone, such as 2026-11-21T09:00:00Z".to_owned()
        }
        _ => type_name(kind).to_owned(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn type_name(kind: &str) -> &str {
    match kind {
        "boolean" => "true or false",
        "string" => "text",
        "number" => "a number",
        "array" => "a list",
        "object" => "an object",
        kind => kind,
    }
}

/// Name for the tool of a call or result that gives none.
const UNNAMED_TOOL: &str = "tool";

/// Converts the entries of one session; results find their calls across documents.
#[derive(Default)]
pub(super) struct EntryReader {
    calls: OpenCalls<String>,
}

impl EntryReader {
    pub(super) fn entry(&mut self, entry: SliceEntry, line: u32) -> RawEntry {
        let kind = entry.kind.unwrap_or(match entry.speaker {
            Speaker::Person => EntryKind::Prompt,
            Speaker::Assistant => EntryKind::Text,
            Speaker::Tool | Speaker::Web => EntryKind::ToolResult,
            Speaker::Client => EntryKind::Notice,
        });
        let text = clean(Cow::Owned(entry.text));
        let mut raw = ClientText::new(entry.speaker, kind, text).entry(line);
        let call_id = entry.call_id.as_deref();
        raw.tool = entry.tool;
        (raw.outcome, raw.exit_code) = (entry.outcome, entry.exit_code);
        if kind == EntryKind::ToolCall {
            let name = raw.tool.get_or_insert_with(|| UNNAMED_TOOL.to_owned());
            call_id.into_iter().for_each(|id| self.calls.open(id, name.clone()));
        } else if kind == EntryKind::ToolResult {
            let called = call_id.and_then(|id| self.calls.close(id));
            let name = raw.tool.take().or(called).unwrap_or_else(|| UNNAMED_TOOL.to_owned());
            if raw.speaker == Speaker::Tool && tools::is_web(&name) {
                raw.speaker = Speaker::Web;
            }
            raw.tool = Some(name);
            let (outcome, code) = tools::outcome_of_output(&raw.text);
            let by_code = raw.exit_code.map(tools::outcome_of_code);
            raw.outcome = raw.outcome.or(by_code).or(outcome);
            raw.exit_code = raw.exit_code.or(code);
        }
        raw.native_id = entry.id;
        raw.call_id = entry.call_id;
        raw.at = entry.at.map(|Rfc3339Time(at)| at);
        raw
    }
}
