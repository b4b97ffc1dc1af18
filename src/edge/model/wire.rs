//! What servers send for a reply. Nothing is required and every kind of value is taken in every
//! place, because all of it has been seen; what makes no sense reads as absent.

use super::error::{Failure, Said};
use super::escape::undone;
use super::still_json::still_json;
use crate::domain::{Call, Finish, Reply, Timestamp, Usage};
use crate::privacy::Gate;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// Calls read of one reply; 64 were seen, and only ours counts.
const CALLS_MAX: usize = 128;

/// An object, or nothing where something else stands.
pub(super) struct Obj<T>(pub(super) Option<T>);

/// A list, or an empty one where something else stands.
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for Obj<T> {
    fn default() -> Obj<T> {
        Obj(None)
    }
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(Vec::new())
    }
}

macro_rules! nothing_for {
    ($($visit:ident: $value:ty),*) => { $(
        fn $visit<E>(self, _: $value) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    )* };
}

struct ObjVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjVisitor<T> {
    type Value = Obj<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Obj<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|value| Obj(Some(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Obj<T>, A::Error> {
        IgnoredAny::deserialize(SeqAccessDeserializer::new(seq)).map(|_| Obj(None))
    }

    nothing_for!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<Obj<T>, E> {
        Ok(Obj(None))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Obj<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Obj<T>, D::Error> {
        deserializer.deserialize_any(ObjVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<List<T>, A::Error> {
        IgnoredAny::deserialize(MapAccessDeserializer::new(map)).map(|_| List::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
        let mut items = Vec::new();
        // The list ends with the body, whose size is bounded.
        while items.len() < CALLS_MAX {
            match seq.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(List(items)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(List(items))
    }

    nothing_for!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<List<T>, E> {
        Ok(List::default())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<List<T>, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

/// Any value, kept as it was written until somebody knows what it should be.
type Any = Option<Box<RawValue>>;

/// A reply of a server, or one event of a stream.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Completion {
    pub(super) model: Any,
    pub(super) error: Any,
    pub(super) choices: Option<List<Obj<Choice>>>,
    pub(super) usage: Obj<Counts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    pub(super) message: Obj<Message>,
    pub(super) delta: Obj<Message>,
    pub(super) finish_reason: Any,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) content: Any,
    pub(super) refusal: Any,
    pub(super) tool_calls: List<Obj<ToolCall>>,
    pub(super) function_call: Obj<Function>,
    pub(super) provider_specific_fields: Obj<Specific>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Specific {
    pub(super) refusal: Any,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    pub(super) index: Any,
    pub(super) function: Obj<Function>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Function {
    pub(super) name: Any,
    pub(super) arguments: Any,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    prompt_tokens: Any,
    completion_tokens: Any,
    prompt_tokens_details: Obj<Details>,
    /// DeepSeek's name for what came from the cache.
    prompt_cache_hit_tokens: Any,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    cached_tokens: Any,
}

fn parse<T: DeserializeOwned>(raw: &Any) -> Option<T> {
    serde_json::from_str(raw.as_ref()?.get()).ok()
}

/// The text of a string, of a list of parts, or nothing.
pub(super) fn text_of(raw: &Any) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Part {
        text: Any,
    }
    if let Some(text) = parse::<String>(raw) {
        return text;
    }
    let parts: List<Obj<Part>> = parse(raw).unwrap_or_default();
    let texts = parts.0.iter().filter_map(|part| parse::<String>(&part.0.as_ref()?.text));
    texts.collect()
}

/// Arguments as text: the string that the protocol asks for, or the object that some servers send.
pub(super) fn arguments_of(raw: &Any) -> String {
    match raw {
        Some(raw) => {
            let text = serde_json::from_str::<String>(raw.get());
            // A lone surrogate is no text; what it stands in is still worth reading.
            text.unwrap_or_else(|_| raw.get().trim_matches('"').to_owned())
        }
        None => String::new(),
    }
}

/// An index, if there is one.
pub(super) fn index_of(raw: &Any) -> Option<usize> {
    parse(raw)
}

/// The finish reason.
pub(super) fn finish_of(raw: &Any) -> Finish {
    match text_of(raw).as_str() {
        "function_call" => Finish::ToolCalls,
        "max_tokens" => Finish::Length,
        "end_turn" => Finish::Stop,
        other => Finish::of_name(other).unwrap_or(Finish::Other),
    }
}

impl Counts {
    fn usage(&self) -> Usage {
        let count = |raw: &Any| {
            let number: f64 = parse(raw).unwrap_or_default();
            if number.is_finite() && number > 0.0 { number as u64 } else { 0 }
        };
        let details = self.prompt_tokens_details.0.as_ref();
        let cached = details.map_or(0, |details| count(&details.cached_tokens));
        Usage {
            prompt_tokens: count(&self.prompt_tokens),
            cached_tokens: cached.max(count(&self.prompt_cache_hit_tokens)),
            completion_tokens: count(&self.completion_tokens),
        }
    }
}

impl Completion {
    /// The name of the model that the server says it used.
    pub(super) fn model_name(&self) -> Option<String> {
        parse(&self.model)
    }

    /// The error that stands where a reply should; its code tells the status if it is one.
    pub(super) fn failure(&self) -> Option<Failure> {
        let error =
            self.error.as_ref().filter(|raw| !matches!(raw.get(), "null" | "{}" | "\"\""))?;
        let said = Box::new(Said::of(format!("{{\"error\":{}}}", error.get()).as_bytes()));
        let code = said.code.parse().ok().filter(|code| (400..600).contains(code));
        let status = match code {
            Some(code) => code,
            None if said.text.contains("rate_limit") => 429,
            None if said.kind == "invalid_request_error" => 400,
            None => 500,
        };
        let wait = super::wait::wait_of(&Default::default(), &said.text, Timestamp(0));
        Some(Failure::Status { status, wait, said })
    }

    /// The reply, everything in it behind the gate; a failure if this is no reply at all.
    pub(super) fn into_reply(self, gate: &Gate) -> Result<Reply, Failure> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let Some(choices) = self.choices else {
            return Err(Failure::Odd { what: "JSON that is no completion" });
        };
        let usage = self.usage.0.map(|counts| counts.usage()).unwrap_or_default();
        let choice = choices.0.into_iter().find_map(|choice| choice.0).unwrap_or_default();
        let message = choice.message.0.unwrap_or_default();
        let calls = calls_of(&message, gate);
        let content = text_of(&message.content);
        let nested = message.provider_specific_fields.0.unwrap_or_default();
        let refusal = [message.refusal, nested.refusal];
        let refusal = refusal.iter().map(text_of).find(|text| !text.trim().is_empty());
        Ok(Reply {
            calls,
            content: gate.redact(&undone(without_thoughts(&content))),
            refusal: refusal.map(|text| gate.redact(&text)),
            finish: finish_of(&choice.finish_reason),
            usage,
        })
    }
}

fn calls_of(message: &Message, gate: &Gate) -> Vec<Call> {
    let call = |function: &Function| Call {
        name: gate.redact(&text_of(&function.name)).as_str().to_owned(),
        arguments: still_json(&undone(&arguments_of(&function.arguments)), |text| {
            gate.redact(text)
        }),
    };
    let listed = message.tool_calls.0.iter().filter_map(|call| call.0.as_ref());
    let calls: Vec<Call> = listed.filter_map(|c| c.function.0.as_ref()).map(call).collect();
    if !calls.is_empty() {
        return calls;
    }
    // The old field counts only where the new one is empty: llama-cpp-python sends both.
    message.function_call.0.iter().filter(|function| function.name.is_some()).map(call).collect()
}

/// Content without the `<think>` block that some servers leave at its beginning. An unclosed block
/// was cut off before the answer began.
pub(super) fn without_thoughts(content: &str) -> &str {
    let Some(rest) = content.trim_start().strip_prefix("<think>") else { return content };
    rest.split_once("</think>").map_or("", |(_, answer)| answer.trim_start())
}

#[cfg(test)]
#[path = "wire_test.rs"]
mod tests;
