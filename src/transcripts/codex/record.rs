//! Fields read from Codex's records; others are ignored.

use crate::transcripts::fields::{Block, Content, Flag, Int, Obj, Str, TextOr};
use crate::transcripts::text::flatten;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// Line: an envelope with a payload, or, in old files, the item itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a, P: Default + Deserialize<'de>")]
pub(super) struct Envelope<'a, P> {
    #[serde(rename = "type")]
    pub(super) kind: Str<'a>,
    pub(super) timestamp: Str<'a>,
    pub(super) ordinal: Int,
    pub(super) payload: Option<Obj<P>>,
    pub(super) record_type: Str<'a>,
}

impl<'a, P: Default + Deserialize<'a>> Envelope<'a, P> {
    /// Takes the payload; a line without envelope is itself the payload.
    pub(super) fn open(&mut self, line: &'a str) -> serde_json::Result<P> {
        match &mut self.payload {
            Some(payload) => Ok(payload.0.take().unwrap_or_default()),
            None => serde_json::from_str(line),
        }
    }
}

/// Payload as the first pass reads it: its contents are not parsed.
pub(super) type Head<'a> = AnyPayload<'a, Option<&'a RawValue>>;
/// Payload as the second pass reads it.
pub(super) type Payload<'a> = AnyPayload<'a, Content<'a>>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a, C: Default + Deserialize<'de>"))]
pub(super) struct AnyPayload<'a, C> {
    #[serde(rename = "type")]
    pub(super) kind: Str<'a>,
    pub(super) id: Str<'a>,
    pub(super) timestamp: Str<'a>,
    pub(super) cwd: Str<'a>,
    pub(super) git: Value,
    /// Origin of the session, if it is structured.
    pub(super) source: Value,
    pub(super) forked_from_id: Str<'a>,
    pub(super) parent_thread_id: Str<'a>,
    /// Thread of a completed item.
    pub(super) thread_id: Str<'a>,
    pub(super) subagent_history_start_ordinal: Int,
    pub(super) thread_name: Str<'a>,
    pub(super) role: Str<'a>,
    #[serde(rename = "kind")]
    pub(super) message_kind: Str<'a>,
    pub(super) message: Str<'a>,
    pub(super) text: Str<'a>,
    pub(super) content: C,
    pub(super) images: C,
    pub(super) local_images: C,
    pub(super) name: Str<'a>,
    pub(super) namespace: Str<'a>,
    pub(super) call_id: Str<'a>,
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) action: Option<&'a RawValue>,
    pub(super) output: C,
    pub(super) exit_code: Int,
    pub(super) status: Str<'a>,
    pub(super) success: Flag,
    pub(super) result: TextOr<'a, McpResult>,
    pub(super) num_turns: Int,
    pub(super) reason: Str<'a>,
    pub(super) error: Value,
    pub(super) review_output: Option<&'a RawValue>,
    pub(super) user_facing_hint: Str<'a>,
    pub(super) author: Str<'a>,
    pub(super) revised_prompt: Str<'a>,
    pub(super) tools: Option<&'a RawValue>,
    pub(super) item: Obj<Box<Payload<'a>>>,
    pub(super) command: Option<&'a RawValue>,
}

impl<'a> Payload<'a> {
    /// Converts an event that newer clients write as a completed item to its older form, if it is of a known kind.
    pub(super) fn of_item(mut self) -> Payload<'a> {
        let kind = match self.kind.get() {
            "UserMessage" => "user_message",
            "AgentMessage" => "agent_message",
            "CommandExecution" => "exec_command_end",
            "FileChange" => "patch_apply_end",
            "McpToolCall" => "mcp_tool_call_end",
            "EnteredReviewMode" => "entered_review_mode",
            "ExitedReviewMode" => "exited_review_mode",
            "Plan" => "plan",
            _ => return self,
        };
        let mut content = std::mem::take(&mut self.content);
        if let Content::Blocks(blocks) = &mut content {
            // The item of the same message has its pictures apart from its text.
            let is_picture =
                |block: &mut Block<'_>| ["image", "local_image"].contains(&block.kind.get());
            self.images = Content::Blocks(blocks.extract_if(.., is_picture).collect());
        }
        let message = match flatten(content) {
            none if none.is_empty() => std::mem::take(&mut self.text),
            text => Str(Some(text.into())),
        };
        let call_id = std::mem::take(&mut self.id);
        Payload { kind: Str(Some(kind.into())), message, call_id, ..self }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct McpResult {
    #[serde(rename = "Ok")]
    pub(super) ok: Obj<McpOutput>,
    #[serde(rename = "Err")]
    pub(super) err: Option<IgnoredAny>,
}

/// Output of an MCP tool, which may itself be an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct McpOutput {
    #[serde(rename = "isError")]
    pub(super) is_error: Flag,
}
