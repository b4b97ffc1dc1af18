//! Fields of a slice document, and their published schema.

use crate::domain::{EntryKind, Outcome, Speaker, Timestamp};
use crate::transcripts::raw::{RawSession, short_title};
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
/// Minimum and maximum priority.
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
    #[serde(default, skip_serializing_if = "is_false")]
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

fn is_false(value: &bool) -> bool {
    !value
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

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let generator = settings.with_transform(Tidy).into_generator();
    generator.into_root_schema_for::<SliceDocument>().to_value()
});

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
    &SCHEMA
}

/// Name and content of the published file.
pub(crate) fn schema_file() -> (String, String) {
    let content = serde_json::to_string_pretty(schema()).unwrap_or_default();
    (NAME.to_owned(), content + "\n")
}
