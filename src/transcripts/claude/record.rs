//! Fields read from Claude Code's records; others are ignored.

use crate::transcripts::fields::{Content, Flag, Int, Obj, Str, TextOr};
use crate::transcripts::json::JsonExt;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Record as the first pass reads it: without what its message says and its tool result.
pub(super) type Head<'a> = AnyRecord<'a, TextOr<'a, Unread<'a>>, Option<IgnoredAny>>;
/// Record as the second pass reads it.
pub(super) type Record<'a> = AnyRecord<'a, TextOr<'a, Message<'a>>, ToolUseResult<'a>>;

#[derive(Debug, Default, Deserialize)]
#[serde(
    default,
    rename_all = "camelCase",
    bound(deserialize = "'de: 'a, M: Default + Deserialize<'de>, T: Default + Deserialize<'de>")
)]
pub(super) struct AnyRecord<'a, M, T> {
    #[serde(rename = "type")]
    pub(super) kind: Str<'a>,
    pub(super) subtype: Str<'a>,
    pub(super) uuid: Str<'a>,
    pub(super) parent_uuid: Link<'a>,
    pub(super) logical_parent_uuid: Str<'a>,
    session_id: Str<'a>,
    #[serde(rename = "session_id")]
    session_snake: Str<'a>,
    pub(super) agent_id: Str<'a>,
    pub(super) timestamp: Str<'a>,
    pub(super) cwd: Str<'a>,
    pub(super) git_branch: Str<'a>,
    is_sidechain: Flag,
    #[serde(rename = "parent_tool_use_id")]
    parent_tool: Str<'a>,
    pub(super) is_meta: Flag,
    pub(super) is_compact_summary: Flag,
    pub(super) is_api_error_message: Flag,
    origin: Value,
    prompt_source: Str<'a>,
    pub(super) message: M,
    pub(super) tool_use_result: T,
    /// Plan that the prompt carries out with a cleared context.
    pub(super) plan_content: Option<IgnoredAny>,
    pub(super) operation: Str<'a>,
    pub(super) attachment: Obj<Attachment<'a>>,
    pub(super) content: Str<'a>,
    pub(super) error: Value,
    pub(super) result: Str<'a>,
    #[serde(rename = "is_error")]
    pub(super) is_error: Flag,
    pub(super) pr_number: Int,
    pub(super) pr_url: Str<'a>,
    pub(super) summary: Str<'a>,
    pub(super) leaf_uuid: Str<'a>,
    pub(super) ai_title: Str<'a>,
    pub(super) custom_title: Str<'a>,
}

impl<M, T> AnyRecord<'_, M, T> {
    pub(super) fn is_sidechain(&self) -> bool {
        self.is_sidechain.on() || self.parent_tool.some().is_some()
    }

    pub(super) fn session_id(&self) -> Option<&str> {
        self.session_id.some().or(self.session_snake.some())
    }

    /// True if the client made the record, not a person.
    pub(super) fn is_generated(&self) -> bool {
        is_generated(&self.origin) || self.prompt_source.is("system")
    }
}

/// True if an origin is not a person. Redacted names say nothing.
pub(super) fn is_generated(origin: &Value) -> bool {
    let name = origin.text("kind");
    let known = !name.is_empty() && !name.contains([' ', '[']) && name != "REDACTED";
    known && !["human", "user", "cli", "sdk", "typed", "queued"].contains(&name)
}

/// Link to another record. Absent and null differ: only null marks a root.
#[derive(Debug, Default)]
pub(super) enum Link<'a> {
    #[default]
    Absent,
    Null,
    To(Cow<'a, str>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Link<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Link<'a>, D::Error> {
        let text: Option<Str<'de>> = Option::deserialize(deserializer)?;
        Ok(match text {
            None => Link::Null,
            Some(Str(Some(text))) => Link::To(text),
            Some(Str(None)) => Link::Absent,
        })
    }
}

/// Context that the client added, or a queued command.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(super) struct Attachment<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Str<'a>,
    pub(super) prompt: Content<'a>,
    #[serde(rename = "commandMode")]
    pub(super) mode: Str<'a>,
    pub(super) filename: Str<'a>,
    pub(super) origin: Value,
}

/// Message in API form.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(super) struct Message<'a> {
    pub(super) id: Str<'a>,
    pub(super) model: Str<'a>,
    pub(super) content: Content<'a>,
}

/// Message whose content is not read yet.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(super) struct Unread<'a> {
    pub(super) content: Option<&'a RawValue>,
}

impl<'a> TextOr<'a, Message<'a>> {
    /// Returns the message, which is a bare string in old files.
    pub(super) fn message(self) -> Message<'a> {
        match self {
            TextOr::None => Message::default(),
            TextOr::Text(text) => Message { content: Content::Text(text), ..Message::default() },
            TextOr::Fields(message) => message,
        }
    }
}

pub(super) type ToolUseResult<'a> = TextOr<'a, ResultFields<'a>>;

/// Fields of a structured result that give its outcome or the user's choice.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(super) struct ResultFields<'a> {
    pub(super) interrupted: Flag,
    pub(super) is_async: Flag,
    pub(super) background_task_id: Str<'a>,
    /// Meaning of an exit code other than 0 that is no failure.
    pub(super) return_code_interpretation: Str<'a>,
    pub(super) plan: Str<'a>,
    pub(super) answers: Option<&'a RawValue>,
    pub(super) annotations: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(record: &str, generated: bool) {
        let head: Head<'_> = serde_json::from_str(record).unwrap();
        assert_eq!(head.is_generated(), generated);
    }

    #[test]
    fn origins_that_are_not_human_are_generated() {
        check(r#"{"origin":{"kind":"task-notification"}}"#, true);
        check(r#"{"promptSource":"system"}"#, true);
        check(r#"{"origin":{"kind":"human"},"promptSource":"typed"}"#, false);
        check("{}", false);
        check(r#"{"origin":{"kind":"[trimmed]"},"promptSource":"sdk"}"#, false);
    }
}
