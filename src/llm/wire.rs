//! Replies of servers. Every field is optional and of any type, because servers send all variants; a nonsensical
//! value reads as absent. async-openai's typed replies reject these.

use super::error::{Failure, ServerError};
use crate::domain::{ANSWER_BYTES_MAX, Call, Finish, Reply, Timestamp, Usage};
use crate::privacy::Gate;
use crate::text::truncate;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Maximum number of calls that are read; up to 64 have been seen, and only those of our tool matter.
const CALLS_MAX: usize = 128;

#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Completion(Value);

/// Items of a list; empty for any other value.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten().take(CALLS_MAX)
}

/// Text of a string or of a list of parts; empty for any other value.
fn text_of(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => items(value).filter_map(|part| part["text"].as_str()).collect(),
    }
}

/// Arguments as text: the string that the protocol prescribes, or the object that some servers send.
fn arguments_of(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_null() => String::new(),
        None => value.to_string(),
    }
}

fn finish_of(value: &Value) -> Finish {
    match text_of(value).as_str() {
        "function_call" => Finish::ToolCalls,
        "max_tokens" => Finish::Length,
        "end_turn" => Finish::Stop,
        other => Finish::of_name(other).unwrap_or(Finish::Other),
    }
}

pub(super) fn usage_of(counts: &Value) -> Usage {
    // A number that exceeds the store's columns counts as zero.
    let is_count = |number: &f64| (0.0..=f64::from(u32::MAX)).contains(number);
    let count = |value: &Value| value.as_f64().filter(is_count).map_or(0, |number| number as u64);
    let cached = count(&counts["prompt_tokens_details"]["cached_tokens"]);
    Usage {
        prompt_tokens: count(&counts["prompt_tokens"]),
        // DeepSeek's name for cached tokens.
        cached_tokens: cached.max(count(&counts["prompt_cache_hit_tokens"])),
        completion_tokens: count(&counts["completion_tokens"]),
    }
}

impl Completion {
    pub(super) fn model_name(&self) -> Option<String> {
        self.0["model"].as_str().map(str::to_owned)
    }

    /// The error in place of a reply. Its code is the status if it is a valid one.
    fn failure(&self) -> Option<Failure> {
        let error = &self.0["error"];
        let empty = error.as_str() == Some("") || error.as_object().is_some_and(Map::is_empty);
        if error.is_null() || empty {
            return None;
        }
        let said = serde_json::json!({ "error": error }).to_string();
        let said = Box::new(ServerError::of(said.as_bytes()));
        let code = said.code.parse().ok().filter(|code| (400..600).contains(code));
        let status = match code {
            Some(code) => code,
            None if said.text.contains("rate_limit") => 429,
            None if said.kind == "invalid_request_error" => 400,
            None => 500,
        };
        let wait = super::transport::wait_of(&Default::default(), &said.text, Timestamp(0));
        Some(Failure::Status { status, wait, said })
    }

    /// Converts to a redacted reply; fails if this is not a completion.
    pub(super) fn into_reply(self, gate: &Gate) -> Result<Reply, Failure> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        if self.0["choices"].is_null() {
            return Err(Failure::InvalidReply { what: "JSON that is not a completion" });
        }
        let none = Value::Null;
        let choice = items(&self.0["choices"]).find(|choice| choice.is_object()).unwrap_or(&none);
        let message = &choice["message"];
        let refusals = [&message["refusal"], &message["provider_specific_fields"]["refusal"]];
        let refusal = refusals.into_iter().map(text_of).find(|text| !text.trim().is_empty());
        let content = text_of(&message["content"]);
        let mut room = ANSWER_BYTES_MAX;
        Ok(Reply {
            calls: calls_of(message, gate, &mut room),
            content: gate.redact_json(take(without_thoughts(&content), &mut room)),
            refusal: refusal.map(|text| gate.redact(take(&text, &mut room))),
            finish: finish_of(&choice["finish_reason"]),
            usage: usage_of(&self.0["usage"]),
        })
    }
}

/// Prefix of `text` that fits into the remaining size of a reply.
fn take<'a>(text: &'a str, room: &mut usize) -> &'a str {
    let taken = truncate::bytes(text, *room);
    *room -= taken.len();
    taken
}

fn calls_of(message: &Value, gate: &Gate, room: &mut usize) -> Vec<Call> {
    let mut call = |function: &Value| Call {
        name: gate.redact(take(&text_of(&function["name"]), room)).as_str().to_owned(),
        arguments: gate.redact_json(take(&arguments_of(&function["arguments"]), room)),
    };
    let listed = items(&message["tool_calls"]).map(|call| &call["function"]);
    let calls: Vec<Call> = listed.filter(|function| function.is_object()).map(&mut call).collect();
    if !calls.is_empty() {
        return calls;
    }
    // The legacy field is used only if the new one is empty: llama-cpp-python sends both.
    let old = &message["function_call"];
    (!old["name"].is_null()).then(|| call(old)).into_iter().collect()
}

/// Content without the leading `<think>` block that some servers include. If the block is unclosed, the reply was
/// cut off before the answer.
fn without_thoughts(content: &str) -> &str {
    let Some(rest) = content.trim_start().strip_prefix("<think>") else { return content };
    rest.split_once("</think>").map_or("", |(_, answer)| answer.trim_start())
}

#[cfg(test)]
#[path = "wire_test.rs"]
mod tests;
