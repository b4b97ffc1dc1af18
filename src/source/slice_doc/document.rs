//! The document's fields, in the words of whoever writes one: the published schema is made of this.

use crate::domain::{EntryKind, Outcome, Speaker, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Entries of one document. Sessions of a few thousand entries were seen; a longer one is handed over
/// in several documents.
pub const HANDED_ENTRIES_MAX: usize = 100_000;
/// The greatest number of a document's first entry: those behind it have numbers too.
pub(super) const FROM_MAX: u32 = u32::MAX - 100_000;
/// The longest id, name or path, in characters: the longest path of Linux.
pub(super) const NAME_CHARS_MAX: usize = 4_096;
/// The least and the greatest priority.
pub(super) const PRIORITIES: (i32, i32) = (-100, 100);

const _: () = assert!(HANDED_ENTRIES_MAX <= (u32::MAX - FROM_MAX) as usize);

/// What was said in a session, or what was said in it since the last document. Every document of a
/// session names it by the same id; its entries are appended in their order. Nothing but these fields
/// is allowed, at most 33554432 bytes, and the document is taken whole or refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Slice")]
pub struct SliceDocument {
    /// The id that the session has where it takes place, the same in every document of it. It may be
    /// left out only where it is given beside the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub session: Option<String>,
    /// Whose memory this becomes: a project, a person, an agent. Without it, the last name of `cwd`;
    /// one of the two is the same in every document of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub namespace: Option<String>,
    /// What the session is called, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub title: Option<String>,
    /// The folder that the agent works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub cwd: Option<String>,
    /// The id of the session that this one was forked from or works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub parent: Option<String>,
    /// When the session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Moment>,
    /// How many entries of this session were handed over before this document, which is the number of
    /// its first entry, counted from 0. With it a document may be handed over twice: entries that are
    /// there already are not taken again. Without it the entries are appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = FROM_MAX))]
    pub from: Option<u32>,
    /// Whether the session is over: nothing waits for more of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub closed: bool,
    /// How urgent it is; of what waits, the highest is worked on first. Without it 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = PRIORITIES.0, max = PRIORITIES.1))]
    pub priority: Option<i32>,
    /// What was said, in order; empty where a document only closes the session. One message may be
    /// several entries: its words, each call of a tool, each result.
    #[schemars(length(max = HANDED_ENTRIES_MAX))]
    pub entries: Vec<SliceEntry>,
}

/// One thing that was said, called or answered.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SliceEntry {
    /// Who said it. It decides how far it is trusted: a decision that only a tool or the web speaks of
    /// is not believed.
    pub speaker: Speaker,
    /// What sort of thing it is. Without it, `prompt` of a person, `text` of the assistant,
    /// `tool_result` of a tool or the web, and `notice` of a client. A call of a tool is said by the
    /// assistant and needs `tool_call` here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
    /// The words. Of a call, its command or its arguments as JSON; of a result, what the tool put out.
    pub text: String,
    /// When it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// The id that it has where it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub id: Option<String>,
    /// The tool's name, of calls and results. A result may leave it out if its call is in the same
    /// document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub tool: Option<String>,
    /// What joins a call with its result: the same in both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub call_id: Option<String>,
    /// How the call of this result ended. Without it, `exit_code` tells, or what the tool put out where
    /// it is in a known form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The exit code of the command that this is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = i32::MIN, max = i32::MAX))]
    pub exit_code: Option<i32>,
}

impl SliceEntry {
    /// An entry with nothing but words, of the kind that `speaker` mostly says.
    pub fn new(speaker: Speaker, text: impl Into<String>) -> SliceEntry {
        SliceEntry {
            speaker,
            kind: None,
            text: text.into(),
            at: None,
            id: None,
            tool: None,
            call_id: None,
            outcome: None,
            exit_code: None,
        }
    }

    fn fits(&self) -> bool {
        [&self.id, &self.tool, &self.call_id].into_iter().flatten().all(|name| is_name(name))
    }
}

impl SliceDocument {
    /// Whether every bound is kept that the types do not keep by themselves.
    pub(super) fn fits(&self) -> bool {
        let names = [&self.session, &self.namespace, &self.title, &self.cwd, &self.parent];
        let (least, greatest) = PRIORITIES;
        self.entries.len() <= HANDED_ENTRIES_MAX
            && self.from.is_none_or(|from| from <= FROM_MAX)
            && self.priority.is_none_or(|priority| (least..=greatest).contains(&priority))
            && names.into_iter().flatten().all(|name| is_name(name))
            && self.entries.iter().all(SliceEntry::fits)
    }
}

fn is_name(text: &str) -> bool {
    let short = text.len() <= NAME_CHARS_MAX || text.chars().count() <= NAME_CHARS_MAX;
    !text.is_empty() && short
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A time as RFC 3339 writes it, with its zone: `2026-11-21T09:00:00Z`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct Moment(pub Timestamp);

impl TryFrom<Cow<'_, str>> for Moment {
    type Error = &'static str;

    fn try_from(text: Cow<'_, str>) -> Result<Moment, &'static str> {
        Timestamp::of_rfc3339(&text).map(Moment).ok_or("expected a time in RFC 3339")
    }
}

impl From<Moment> for String {
    fn from(moment: Moment) -> String {
        moment.0.to_string()
    }
}

impl JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}
