//! Request bodies, without the fields that the endpoint refused, and replies of servers. async-openai's types support
//! neither: its request has no tools for the JSON modes, and its reply rejects much of what servers send, so its
//! `byot` calls take these values. Every field of a reply is optional and of any type; a nonsensical value is absent.

use super::error::{Failure, ServerError};
use crate::domain::{
    ANSWER_BYTES_MAX, Call, Finish, Message, OutputMode, Reply, Request, Timestamp, ToolSpec, Usage,
};
use crate::privacy::Gate;
use crate::text::truncate;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU8, Ordering};

/// Body of `request`. Tool and rules precede the slice, so that the provider's prompt cache hits.
pub(super) fn body(request: &Request, quirks: QuirkSet) -> Value {
    let tool = &*request.tool;
    let strict = !quirks.has(Quirk::NoStrict);
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);
    put("model", request.model.as_str().into());
    match request.rung {
        OutputMode::ForcedTool => {
            put("tools", tools(tool, strict));
            put("tool_choice", json!({"type": "function", "function": {"name": tool.name}}));
        }
        OutputMode::RequiredTool => {
            put("tools", tools(tool, false));
            put("tool_choice", "required".into());
        }
        OutputMode::OfferedTool => {
            put("tools", tools(tool, false));
            put("tool_choice", "auto".into());
        }
        OutputMode::JsonSchema => {
            let schema = with_strict(json!({"name": tool.name}), strict, "schema", tool);
            put("response_format", json!({"type": "json_schema", "json_schema": schema}));
        }
        OutputMode::JsonObject => {
            put("response_format", json!({"type": "json_object"}));
        }
        OutputMode::Text => {}
    }
    let one_call = matches!(request.rung, OutputMode::ForcedTool | OutputMode::RequiredTool);
    if one_call && !quirks.has(Quirk::NoParallel) {
        put("parallel_tool_calls", false.into());
    }
    let completion = quirks.has(Quirk::CompletionTokens);
    let tokens = if completion { "max_completion_tokens" } else { "max_tokens" };
    put(tokens, request.reply_tokens_max.into());
    if let Some(temperature) = request.temperature.filter(|_| !quirks.has(Quirk::NoTemperature)) {
        // Via the shortest decimal: 0.2 as `f32` widens to 0.20000000298.
        put("temperature", temperature.to_string().parse::<f64>().unwrap_or_default().into());
    }
    let message = |it: &Message| json!({"role": it.role.name(), "content": it.content.as_str()});
    put("messages", request.messages.iter().map(message).collect());
    Value::Object(body)
}

fn tools(tool: &ToolSpec, strict: bool) -> Value {
    let function = json!({"name": tool.name, "description": tool.description});
    let function = with_strict(function, strict, "parameters", tool);
    json!([{"type": "function", "function": function}])
}

/// Adds the tool's schema to `object` under `key`, and `strict` if it is true.
fn with_strict(mut object: Value, strict: bool, key: &str, tool: &ToolSpec) -> Value {
    if strict {
        object["strict"] = true.into();
    }
    object[key] = tool.parameters.clone();
    object
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Quirk {
    /// Requires `max_completion_tokens` instead of `max_tokens`.
    CompletionTokens = 1,
    /// Refuses `parallel_tool_calls`.
    NoParallel = 2,
    /// Refuses any temperature but its default.
    NoTemperature = 4,
    /// Refuses `strict`.
    NoStrict = 8,
}

/// Number of quirks, and so the maximum number of times that one request is sent again for them.
pub(super) const QUIRKS_MAX: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Quirks(AtomicU8);

impl Quirks {
    pub(super) fn known(&self) -> QuirkSet {
        QuirkSet(self.0.load(Ordering::Relaxed))
    }

    /// Records a quirk; true if a request sent with `before` is worth sending again.
    pub(super) fn learn(&self, quirk: Quirk, before: QuirkSet) -> bool {
        self.0.fetch_or(quirk as u8, Ordering::Relaxed);
        !before.has(quirk)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuirkSet(u8);

impl QuirkSet {
    pub(super) fn has(self, quirk: Quirk) -> bool {
        self.0 & quirk as u8 != 0
    }
}

/// The quirk that a refusal (400 or 422) reveals.
pub(super) fn quirk_of(status: u16, said: &ServerError) -> Option<Quirk> {
    // A length error also names `max_tokens`, but omitting that would not help.
    if !matches!(status, 400 | 422) || said.is_too_long() {
        return None;
    }
    let about = |name: &str| said.param.contains(name) || said.text.contains(name);
    let refused = ["unsupported", "unrecognized", "not support", "unknown", "unexpected", "extra"];
    let refused = refused.iter().any(|word| said.text.contains(word) || said.code.contains(word));
    let fields = [
        ("max_tokens", Quirk::CompletionTokens),
        ("parallel_tool_calls", Quirk::NoParallel),
        ("temperature", Quirk::NoTemperature),
        ("strict", Quirk::NoStrict),
    ];
    let (name, quirk) = fields.into_iter().find(|(name, _)| about(name)).filter(|_| refused)?;
    // An error about a schema that violates strict mode also says `strict`.
    (name != "strict" || !about("schema")).then_some(quirk)
}

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

#[cfg(test)]
pub(super) mod request_tests {
    use super::*;
    use crate::domain::{Message, Role};
    use crate::privacy::Gate;
    use std::sync::Arc;

    /// A small request in the output mode `rung`.
    pub(crate) fn question(rung: OutputMode) -> Request {
        let says = |role, text: &str| Message { role, content: Gate::new(&[]).redact(text) };
        let parameters = json!({
            "type": "object", "additionalProperties": false, "required": ["points"],
            "properties": {"points": {"type": "array", "items": {"type": "string"}}},
        });
        Request {
            model: "small".to_owned(),
            messages: vec![
                says(Role::System, "Answer in JSON."),
                says(Role::User, "We chose the blue door because the red one sticks."),
            ],
            rung,
            tool: Arc::new(ToolSpec::new("write_points", "Writes points.".to_owned(), parameters)),
            reply_tokens_max: 500,
            temperature: Some(0.5),
            generation: 0,
        }
    }

    #[track_caller]
    fn check(rung: OutputMode, known: QuirkSet, expected: &[(&str, Value)]) {
        let request = question(rung);
        let sent = body(&request, known);
        for (pointer, value) in expected {
            let found = sent.pointer(pointer).cloned().unwrap_or(Value::Null);
            assert_eq!(&found, value, "{pointer} on {}", rung.name());
        }
        assert_eq!(sent["model"], "small");
        assert_eq!(sent["messages"][1]["role"], "user");
    }

    #[test]
    fn each_rung_asks_in_its_own_way() {
        let (known, none) = (QuirkSet::default(), Value::Null);
        let name = json!({"type": "function", "function": {"name": "write_points"}});
        check(
            OutputMode::ForcedTool,
            known,
            &[
                ("/tool_choice", name),
                ("/tools/0/function/strict", json!(true)),
                ("/tools/0/function/parameters/type", json!("object")),
                ("/parallel_tool_calls", json!(false)),
                ("/max_tokens", json!(500)),
                ("/temperature", json!(0.5)),
            ],
        );
        check(
            OutputMode::RequiredTool,
            known,
            &[("/tool_choice", json!("required")), ("/tools/0/function/strict", none.clone())],
        );
        check(
            OutputMode::OfferedTool,
            known,
            &[("/tool_choice", json!("auto")), ("/parallel_tool_calls", none.clone())],
        );
        check(
            OutputMode::JsonSchema,
            known,
            &[
                ("/tools", none.clone()),
                ("/response_format/json_schema/strict", json!(true)),
                ("/response_format/json_schema/schema/type", json!("object")),
            ],
        );
        check(OutputMode::JsonObject, known, &[("/response_format/type", json!("json_object"))]);
        check(OutputMode::Text, known, &[("/response_format", none.clone()), ("/tools", none)]);
    }

    #[test]
    fn what_was_refused_is_left_out() {
        let quirks = Quirks::default();
        for quirk in
            [Quirk::CompletionTokens, Quirk::NoParallel, Quirk::NoTemperature, Quirk::NoStrict]
        {
            quirks.learn(quirk, QuirkSet::default());
        }
        check(
            OutputMode::ForcedTool,
            quirks.known(),
            &[
                ("/max_tokens", Value::Null),
                ("/max_completion_tokens", json!(500)),
                ("/parallel_tool_calls", Value::Null),
                ("/temperature", Value::Null),
                ("/tools/0/function/strict", Value::Null),
            ],
        );
    }
}

#[cfg(test)]
mod quirk_tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: Option<Quirk>) {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        assert_eq!(quirk_of(400, &ServerError::of(body.as_bytes())), expected, "{message}");
        assert_eq!(quirk_of(500, &ServerError::of(body.as_bytes())), None, "only refusals teach");
    }

    #[test]
    fn a_refused_field_is_named_once() {
        check(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
            Some(Quirk::CompletionTokens),
        );
        check("Unrecognized request argument supplied: strict", Some(Quirk::NoStrict));
        check("unknown field: parallel_tool_calls", Some(Quirk::NoParallel));
        check(
            "Unsupported value: 'temperature' does not support 0.2 with this model.",
            Some(Quirk::NoTemperature),
        );
        check("Context length exceeded: max_tokens above it is not supported", None);
        check("max_tokens is too large: 9000. This model has at most 4096.", None);
        check("Invalid schema for function 'f': strict needs additionalProperties", None);
        check("only 'auto' is supported for tool_choice", None);
    }

    #[test]
    fn what_is_known_is_not_learned_again() {
        let quirks = Quirks::default();
        assert!(quirks.learn(Quirk::NoStrict, quirks.known()));
        assert!(!quirks.learn(Quirk::NoStrict, quirks.known()));
        assert!(quirks.known().has(Quirk::NoStrict) && !quirks.known().has(Quirk::NoParallel));
    }
}
