//! The fields of Claude Code's records that are read; all others are passed over.

use crate::source::fields::{Content, Flag, Int, Obj, Str, TextOr};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What the first pass reads of a record.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) subtype: Str<'a>,
    #[serde(borrow)]
    pub(super) uuid: Str<'a>,
    #[serde(rename = "parentUuid", borrow)]
    pub(super) parent: Link<'a>,
    #[serde(rename = "logicalParentUuid", borrow)]
    pub(super) logical_parent: Str<'a>,
    #[serde(rename = "sessionId", borrow)]
    pub(super) session: Str<'a>,
    #[serde(rename = "session_id", borrow)]
    pub(super) session_too: Str<'a>,
    #[serde(rename = "agentId", borrow)]
    pub(super) agent: Str<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Str<'a>,
    #[serde(borrow)]
    pub(super) cwd: Str<'a>,
    #[serde(rename = "isSidechain")]
    pub(super) sidechain: Flag,
    #[serde(rename = "parent_tool_use_id", borrow)]
    pub(super) parent_tool: Str<'a>,
    #[serde(rename = "isMeta")]
    pub(super) meta: Flag,
    #[serde(rename = "isCompactSummary")]
    pub(super) compact: Flag,
    #[serde(borrow)]
    pub(super) origin: Obj<Origin<'a>>,
    #[serde(rename = "promptSource", borrow)]
    pub(super) prompt_source: Str<'a>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(rename = "toolUseResult")]
    pub(super) tool_result: Option<IgnoredAny>,
    /// The plan that the prompt is to carry out, with a cleared context.
    #[serde(rename = "planContent")]
    pub(super) plan: Option<IgnoredAny>,
    #[serde(borrow)]
    pub(super) operation: Str<'a>,
    #[serde(borrow)]
    pub(super) content: Str<'a>,
    #[serde(borrow)]
    pub(super) summary: Str<'a>,
    #[serde(rename = "leafUuid", borrow)]
    pub(super) leaf: Str<'a>,
    #[serde(rename = "aiTitle", borrow)]
    pub(super) ai_title: Str<'a>,
    #[serde(rename = "customTitle", borrow)]
    pub(super) custom_title: Str<'a>,
}

impl Head<'_> {
    /// Whether a sub-agent said it.
    pub(super) fn is_sidechain(&self) -> bool {
        self.sidechain.on() || self.parent_tool.some().is_some()
    }

    /// The session's id, whichever way it is spelt.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.session.some().or(self.session_too.some())
    }
}

/// What the second pass reads of a record.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Record<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) subtype: Str<'a>,
    #[serde(borrow)]
    pub(super) uuid: Str<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Str<'a>,
    #[serde(rename = "isSidechain")]
    pub(super) sidechain: Flag,
    #[serde(rename = "parent_tool_use_id", borrow)]
    pub(super) parent_tool: Str<'a>,
    #[serde(rename = "isMeta")]
    pub(super) meta: Flag,
    #[serde(rename = "isCompactSummary")]
    pub(super) compact: Flag,
    #[serde(rename = "isApiErrorMessage")]
    pub(super) api_error: Flag,
    #[serde(borrow)]
    pub(super) origin: Obj<Origin<'a>>,
    #[serde(rename = "promptSource", borrow)]
    pub(super) prompt_source: Str<'a>,
    #[serde(borrow)]
    pub(super) message: Message<'a>,
    #[serde(rename = "toolUseResult", borrow)]
    pub(super) tool_result: Twin<'a>,
    #[serde(borrow)]
    pub(super) attachment: Obj<Attachment<'a>>,
    #[serde(borrow)]
    pub(super) content: Str<'a>,
    #[serde(borrow)]
    pub(super) error: Obj<Failure<'a>>,
    #[serde(borrow)]
    pub(super) result: Str<'a>,
    pub(super) is_error: Flag,
    #[serde(rename = "prNumber")]
    pub(super) pr_number: Int,
    #[serde(rename = "prUrl", borrow)]
    pub(super) pr_url: Str<'a>,
}

impl Record<'_> {
    /// Whether a sub-agent said it.
    pub(super) fn is_sidechain(&self) -> bool {
        self.sidechain.on() || self.parent_tool.some().is_some()
    }
}

/// A link to another record: absent and null differ, for only null begins a tree.
#[derive(Debug, Default)]
pub(super) enum Link<'a> {
    /// The field is not there.
    #[default]
    Absent,
    /// The record begins a tree.
    Null,
    /// The record follows this one.
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

/// Who made a user record.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Origin<'a> {
    #[serde(borrow)]
    pub(super) kind: Str<'a>,
}

/// What went wrong, in a record of the client.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure<'a> {
    #[serde(borrow)]
    pub(super) message: Str<'a>,
    pub(super) status: Int,
}

/// Context that the client added, or a command that waited in the queue.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Attachment<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) prompt: Content<'a>,
    #[serde(rename = "commandMode", borrow)]
    pub(super) mode: Str<'a>,
    #[serde(borrow)]
    pub(super) filename: Str<'a>,
    #[serde(borrow)]
    pub(super) origin: Obj<Origin<'a>>,
}

/// A message as the API has it; old fixtures have a bare string.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) id: Str<'a>,
    pub(super) model: Str<'a>,
    pub(super) content: Content<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Message<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Message<'a>, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Fields<'a> {
            #[serde(borrow)]
            id: Str<'a>,
            #[serde(borrow)]
            model: Str<'a>,
            #[serde(borrow)]
            content: Content<'a>,
        }
        Ok(match TextOr::<Fields<'de>>::deserialize(deserializer)? {
            TextOr::None => Message::default(),
            TextOr::Text(text) => Message { content: Content::Text(text), ..Message::default() },
            TextOr::Fields(fields) => {
                Message { id: fields.id, model: fields.model, content: fields.content }
            }
        })
    }
}

/// The structured twin of a tool result.
pub(super) type Twin<'a> = TextOr<'a, TwinFields<'a>>;

/// The fields of a tool's structured answer that say how it ended, or what a person chose.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TwinFields<'a> {
    pub(super) interrupted: Flag,
    #[serde(rename = "isAsync")]
    pub(super) is_async: Flag,
    #[serde(rename = "backgroundTaskId", borrow)]
    pub(super) background: Str<'a>,
    #[serde(borrow)]
    pub(super) plan: Str<'a>,
    #[serde(borrow)]
    pub(super) answers: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) annotations: Option<&'a RawValue>,
}
