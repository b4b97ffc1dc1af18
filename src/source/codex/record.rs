//! The fields of Codex's records that are read; all others are passed over.

use crate::source::fields::{Content, Flag, Int, Obj, Str, TextOr};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// A line: an envelope with a payload, or, before there were envelopes, the item itself.
#[derive(Debug, Deserialize)]
#[serde(bound = "'de: 'a, P: Deserialize<'de>")]
pub(super) struct Envelope<'a, P> {
    #[serde(default, rename = "type", borrow)]
    pub(super) kind: Str<'a>,
    #[serde(default, borrow)]
    pub(super) timestamp: Str<'a>,
    #[serde(default)]
    pub(super) ordinal: Int,
    #[serde(default = "none")]
    pub(super) payload: Option<Obj<P>>,
    #[serde(default, borrow)]
    pub(super) record_type: Str<'a>,
}

fn none<T>() -> Option<T> {
    None
}

impl<'a, P: Default + Deserialize<'a>> Envelope<'a, P> {
    /// The payload; where there is no envelope, the line itself is read as one.
    pub(super) fn open(&mut self, line: &'a str) -> serde_json::Result<P> {
        match &mut self.payload {
            Some(payload) => Ok(payload.0.take().unwrap_or_default()),
            None => serde_json::from_str(line),
        }
    }
}

/// What the first pass reads of a payload.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) id: Str<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Str<'a>,
    #[serde(borrow)]
    pub(super) cwd: Str<'a>,
    #[serde(borrow)]
    pub(super) source: TextOr<'a, Origin<'a>>,
    #[serde(borrow)]
    pub(super) forked_from_id: Str<'a>,
    #[serde(borrow)]
    pub(super) parent_thread_id: Str<'a>,
    pub(super) subagent_history_start_ordinal: Int,
    #[serde(borrow)]
    pub(super) thread_name: Str<'a>,
    #[serde(borrow)]
    pub(super) message: Str<'a>,
    #[serde(borrow)]
    pub(super) call_id: Str<'a>,
    pub(super) exit_code: Int,
    #[serde(borrow)]
    pub(super) status: Str<'a>,
    pub(super) success: Flag,
    #[serde(borrow)]
    pub(super) result: TextOr<'a, Ended>,
    pub(super) num_turns: Int,
}

/// How a session came to be, where that is more than a word.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Origin<'a> {
    #[serde(borrow)]
    pub(super) subagent: TextOr<'a, Subagent<'a>>,
}

/// What kind of sub-agent a session is of.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Subagent<'a> {
    #[serde(borrow)]
    pub(super) thread_spawn: Obj<Spawn<'a>>,
}

/// Who spawned a sub-agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Spawn<'a> {
    #[serde(borrow)]
    pub(super) parent_thread_id: Str<'a>,
}

/// How a call of another server ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ended {
    #[serde(rename = "Ok")]
    pub(super) well: Option<IgnoredAny>,
    #[serde(rename = "Err")]
    pub(super) badly: Option<IgnoredAny>,
}

/// What the second pass reads of a payload.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Payload<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) id: Str<'a>,
    #[serde(borrow)]
    pub(super) role: Str<'a>,
    #[serde(rename = "kind", borrow)]
    pub(super) sort: Str<'a>,
    #[serde(borrow)]
    pub(super) message: Str<'a>,
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    #[serde(borrow)]
    pub(super) images: Content<'a>,
    #[serde(borrow)]
    pub(super) local_images: Content<'a>,
    #[serde(borrow)]
    pub(super) name: Str<'a>,
    #[serde(borrow)]
    pub(super) call_id: Str<'a>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) action: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output: Content<'a>,
    #[serde(borrow)]
    pub(super) status: Str<'a>,
    #[serde(borrow)]
    pub(super) reason: Str<'a>,
    #[serde(borrow)]
    pub(super) error: TextOr<'a, Failure<'a>>,
    #[serde(borrow)]
    pub(super) review_output: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) user_facing_hint: Str<'a>,
    #[serde(borrow)]
    pub(super) author: Str<'a>,
    #[serde(borrow)]
    pub(super) revised_prompt: Str<'a>,
    #[serde(borrow)]
    pub(super) tools: Option<&'a RawValue>,
}

/// What went wrong.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure<'a> {
    #[serde(borrow)]
    pub(super) message: Str<'a>,
}
