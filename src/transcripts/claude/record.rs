//! Fields read from Claude Code's records; others are ignored.

use crate::transcripts::fields::{Content, Flag, Int, Obj, Str, TextOr};
use crate::transcripts::json::JsonExt;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Record as the first pass reads it: without its message and its tool result.
pub(super) type Head<'a> = AnyRecord<'a, Option<&'a RawValue>, Option<IgnoredAny>>;
/// Record as the second pass reads it.
pub(super) type Record<'a> = AnyRecord<'a, Message<'a>, ToolUseResult<'a>>;

#[derive(Debug, Default, Deserialize)]
#[serde(
    default,
    bound(deserialize = "'de: 'a, M: Default + Deserialize<'de>, T: Default + Deserialize<'de>")
)]
pub(super) struct AnyRecord<'a, M, T> {
    #[serde(rename = "type")]
    pub(super) kind: Str<'a>,
    pub(super) subtype: Str<'a>,
    pub(super) uuid: Str<'a>,
    #[serde(rename = "parentUuid")]
    pub(super) parent: Link<'a>,
    #[serde(rename = "logicalParentUuid")]
    pub(super) logical_parent: Str<'a>,
    #[serde(rename = "sessionId")]
    session: Str<'a>,
    #[serde(rename = "session_id")]
    session_snake: Str<'a>,
    #[serde(rename = "agentId")]
    pub(super) agent: Str<'a>,
    pub(super) timestamp: Str<'a>,
    pub(super) cwd: Str<'a>,
    #[serde(rename = "gitBranch")]
    pub(super) branch: Str<'a>,
    #[serde(rename = "isSidechain")]
    sidechain: Flag,
    #[serde(rename = "parent_tool_use_id")]
    parent_tool: Str<'a>,
    #[serde(rename = "isMeta")]
    pub(super) meta: Flag,
    #[serde(rename = "isCompactSummary")]
    pub(super) compact: Flag,
    #[serde(rename = "isApiErrorMessage")]
    pub(super) api_error: Flag,
    origin: Value,
    #[serde(rename = "promptSource")]
    prompt_source: Str<'a>,
    pub(super) message: M,
    #[serde(rename = "toolUseResult")]
    pub(super) tool_result: T,
    /// Plan that the prompt carries out with a cleared context.
    #[serde(rename = "planContent")]
    pub(super) plan: Option<IgnoredAny>,
    pub(super) operation: Str<'a>,
    pub(super) attachment: Obj<Attachment<'a>>,
    pub(super) content: Str<'a>,
    pub(super) error: Obj<ApiError<'a>>,
    pub(super) result: Str<'a>,
    pub(super) is_error: Flag,
    #[serde(rename = "prNumber")]
    pub(super) pr_number: Int,
    #[serde(rename = "prUrl")]
    pub(super) pr_url: Str<'a>,
    pub(super) summary: Str<'a>,
    #[serde(rename = "leafUuid")]
    pub(super) leaf: Str<'a>,
    #[serde(rename = "aiTitle")]
    pub(super) ai_title: Str<'a>,
    #[serde(rename = "customTitle")]
    pub(super) custom_title: Str<'a>,
}

impl<M, T> AnyRecord<'_, M, T> {
    pub(super) fn is_sidechain(&self) -> bool {
        self.sidechain.on() || self.parent_tool.some().is_some()
    }

    pub(super) fn session_id(&self) -> Option<&str> {
        self.session.some().or(self.session_snake.some())
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

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(super) struct ApiError<'a> {
    pub(super) message: Str<'a>,
    pub(super) status: Int,
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

/// Message in API form; a bare string in old files.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) id: Str<'a>,
    pub(super) model: Str<'a>,
    pub(super) content: Content<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Message<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Message<'a>, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default, bound = "'de: 'a")]
        struct Fields<'a> {
            id: Str<'a>,
            model: Str<'a>,
            content: Content<'a>,
        }
        Ok(match TextOr::<Fields<'de>>::deserialize(deserializer)? {
            TextOr::None => Message::default(),
            TextOr::Text(text) => Message { content: Content::Text(text), ..Message::default() },
            TextOr::Fields(Fields { id, model, content }) => Message { id, model, content },
        })
    }
}

pub(super) type ToolUseResult<'a> = TextOr<'a, ResultFields<'a>>;

/// Fields of a structured result that give its outcome or the user's choice.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(super) struct ResultFields<'a> {
    pub(super) interrupted: Flag,
    #[serde(rename = "isAsync")]
    pub(super) is_async: Flag,
    #[serde(rename = "backgroundTaskId")]
    pub(super) background: Str<'a>,
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
