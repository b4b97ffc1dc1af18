//! One slice document: its fields, their published schema, and the parser, which gives a session and
//! its entries or a one-line error. The error never repeats names or values of the document, which
//! may be conversation text.

use crate::domain::{EntryKind, HANDED_BYTES_MAX, Outcome, Speaker, Timestamp};
use crate::text::lenient_json::repaired;
use crate::transcripts::client_text::ClientText;
use crate::transcripts::raw::{RawEntry, RawSession, short_title};
use crate::transcripts::text::clean;
use crate::transcripts::tools::{self, OpenCalls};
use jsonschema::error::{ValidationError, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Maximum number of entries of a document; longer sessions are submitted in several.
pub(super) const ENTRIES_MAX: usize = 100_000;
/// Maximum ordinal of a document's first entry; leaves room for the ordinals of the rest.
const FROM_MAX: u32 = u32::MAX - 100_000;
/// Maximum length of an id, a name or a path, in characters: Linux's `PATH_MAX`.
const NAME_CHARS_MAX: usize = 4_096;
const PRIORITIES: (i32, i32) = (-100, 100);

const _: () = assert!(ENTRIES_MAX <= (u32::MAX - FROM_MAX) as usize);

/// What was said in a session, or what was said in it since the last document. Every document of a
/// session names it by the same id; its entries are appended in their order. Nothing but these fields
/// is allowed, at most 33554432 bytes, and the document is taken whole or refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Slice")]
pub(crate) struct SliceDocument {
    /// The id that the session has where it takes place, the same in every document of it. It may be
    /// left out only where it is given beside the document.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub session: Option<String>,
    /// Whose memory this becomes: a project, a person, an agent. Without it, the last name of `cwd`;
    /// one of the two is the same in every document of a session.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub namespace: Option<String>,
    /// What the session is called, for people.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub title: Option<String>,
    /// The folder that the agent works in.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub cwd: Option<String>,
    /// The id of the session that this one was forked from or works for.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub parent: Option<String>,
    /// When the session began.
    pub started_at: Option<Rfc3339Time>,
    /// How many entries of this session were handed over before this document, which is the number of
    /// its first entry, counted from 0. With it a document may be handed over twice: entries that are
    /// there already are not taken again. Without it the entries are appended.
    #[schemars(range(min = 0, max = FROM_MAX))]
    pub from: Option<u32>,
    /// Whether the session is over: nothing waits for more of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// How urgent it is; of what waits, the highest is worked on first. Without it 0.
    #[schemars(range(min = PRIORITIES.0, max = PRIORITIES.1))]
    pub priority: Option<i32>,
    /// What was said, in order; empty where a document only closes the session. One message may be
    /// several entries: its words, each call of a tool, each result.
    #[schemars(length(max = ENTRIES_MAX))]
    pub entries: Vec<SliceEntry>,
}

/// One thing that was said, called or answered.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SliceEntry {
    /// Who said it. It decides how far it is trusted: a decision that only a tool or the web speaks of
    /// is not believed.
    pub speaker: Speaker,
    /// What sort of thing it is. Without it, `prompt` of a person, `text` of the assistant,
    /// `tool_result` of a tool or the web, and `notice` of a client. A call of a tool is said by the
    /// assistant and needs `tool_call` here.
    pub kind: Option<EntryKind>,
    /// The words. Of a call, its command or its arguments as JSON; of a result, what the tool put out.
    pub text: String,
    /// When it was said.
    pub at: Option<Rfc3339Time>,
    /// The id that it has where it was said.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub id: Option<String>,
    /// The tool's name, of calls and results. A result may leave it out if its call is in the same
    /// document.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub tool: Option<String>,
    /// What joins a call with its result: the same in both.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub call_id: Option<String>,
    /// How the call of this result ended. Without it, `exit_code` tells, or what the tool put out where
    /// it is in a known form.
    pub outcome: Option<Outcome>,
    /// The exit code of the command that this is the result of.
    #[schemars(range(min = i32::MIN, max = i32::MAX))]
    pub exit_code: Option<i32>,
}

impl SliceDocument {
    /// Header of the session; its id may be empty.
    pub(super) fn head(&self) -> RawSession {
        RawSession {
            native_id: self.session.clone().unwrap_or_default(),
            namespace: self.namespace.clone(),
            title: self.title.as_deref().map(short_title),
            cwd: self.cwd.clone(),
            parent: self.parent.clone(),
            branches: None,
            started_at: self.started_at.map(|Rfc3339Time(at)| at),
        }
    }
}

/// Time in RFC 3339 with its zone: `2026-11-21T09:00:00Z`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize)]
#[serde(try_from = "Cow<'_, str>")]
pub(crate) struct Rfc3339Time(pub Timestamp);

impl TryFrom<Cow<'_, str>> for Rfc3339Time {
    type Error = &'static str;

    fn try_from(text: Cow<'_, str>) -> Result<Rfc3339Time, &'static str> {
        Timestamp::of_rfc3339(&text).map(Rfc3339Time).ok_or("expected a time in RFC 3339")
    }
}

impl JsonSchema for Rfc3339Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Rfc3339Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// File name in `schemas/`. A breaking change makes the next version; readers keep this one.
const NAME: &str = "slice.v1.json";

/// Joins the lines of descriptions, and removes formats that only Rust knows.
#[derive(Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(Value::String(words)) = schema.get_mut("description") {
            *words = words.replace('\n', " ");
        }
        if schema.get("format").is_some_and(|format| format != "date-time") {
            schema.remove("format");
        }
    }
}

pub(crate) fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let settings =
            SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let generator = settings.with_transform(Tidy).into_generator();
        generator.into_root_schema_for::<SliceDocument>().to_value()
    });
    &SCHEMA
}

/// Name and content of the published file.
pub(crate) fn schema_file() -> (String, String) {
    let content = serde_json::to_string_pretty(schema()).unwrap_or_default();
    (NAME.to_owned(), content + "\n")
}

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
    let mut calls = OpenCalls::default();
    let entries = (1..).zip(document.entries).map(|(line, entry)| entry.read(line, &mut calls));
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
        Err(error) => match repaired(&text) {
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
    // The parent of the keyword that is violated.
    let keyword = error.schema_path().as_str();
    let parent = keyword.rsplit_once('/').map_or("", |(parent, _)| parent);
    let rule = schema().pointer(parent).unwrap_or(&Value::Null);
    let instance = document.pointer(error.instance_path().as_str()).unwrap_or(&Value::Null);
    let problem = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = rule["properties"].as_object().into_iter().flat_map(|it| it.keys());
            let known: Vec<&str> = known.map(String::as_str).collect();
            let name = unexpected.first().map(String::as_str).unwrap_or_default();
            let mut fields = instance.as_object().into_iter().flat_map(|fields| fields.keys());
            let number = fields.position(|field| field == name).unwrap_or_default() + 1;
            format!("field {number} has an unknown name: {}", hint(name, &known))
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(name);
            format!("is missing: expected {}", wanted(&rule["properties"][name]))
        }
        ValidationErrorKind::MinLength { .. } => {
            "is empty: expected text, or leave it out".to_owned()
        }
        ValidationErrorKind::MaxLength { limit } => {
            let found = instance.as_str().map_or(0, |text| text.chars().count());
            format!("expected at most {limit} characters, found {found}")
        }
        ValidationErrorKind::MaxItems { limit } => {
            let found = instance.as_array().map_or(0, Vec::len);
            format!("expected at most {limit} elements, found {found}")
        }
        kind => match (instance.as_str(), constants(rule)) {
            (Some(name), names) if !names.is_empty() => {
                format!("has an unknown name: {}", hint(name, &names))
            }
            _ if matches!(kind.keyword(), "minimum" | "maximum" | "format") => {
                format!("expected {}", wanted(rule))
            }
            _ => format!("expected {}, found {}", wanted(rule), type_name(kind_of(instance))),
        },
    };
    SliceError::new(&path, problem)
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

impl SliceEntry {
    /// Converts an entry of a session with these open calls.
    pub(super) fn read(self, line: u32, calls: &mut OpenCalls<String>) -> RawEntry {
        let entry = self;
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
            call_id.into_iter().for_each(|id| calls.open(id, name.clone()));
        } else if kind == EntryKind::ToolResult {
            let called = call_id.and_then(|id| calls.close(id));
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
