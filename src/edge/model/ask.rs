//! A request as it goes over the wire, borrowed from our own and written once.

use super::quirks::{Known, Quirk};
use crate::domain::{Message, Request, Rung, ToolSpec};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A request without the fields that the endpoint refused before.
pub(super) struct Ask<'a> {
    /// What is asked.
    pub(super) request: &'a Request,
    /// What is left out.
    pub(super) known: Known,
}

impl Serialize for Ask<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (request, tool) = (self.request, &*self.request.tool);
        let strict = !self.known.has(Quirk::NoStrict);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &request.model)?;
        // The tool and the rules stand before the slice, so that a provider's prompt cache hits.
        match request.rung {
            Rung::ForcedTool => {
                map.serialize_entry("tools", &[Tool { tool, strict }])?;
                map.serialize_entry("tool_choice", &Named::function(tool.name))?;
            }
            Rung::RequiredTool => {
                map.serialize_entry("tools", &[Tool { tool, strict: false }])?;
                map.serialize_entry("tool_choice", "required")?;
            }
            Rung::OfferedTool => {
                map.serialize_entry("tools", &[Tool { tool, strict: false }])?;
                map.serialize_entry("tool_choice", "auto")?;
            }
            Rung::JsonSchema => map.serialize_entry("response_format", &Format { tool, strict })?,
            Rung::JsonObject => {
                map.serialize_entry("response_format", &Kind { kind: "json_object" })?;
            }
            Rung::Text => {}
        }
        let one_call = matches!(request.rung, Rung::ForcedTool | Rung::RequiredTool);
        if one_call && !self.known.has(Quirk::NoParallel) {
            map.serialize_entry("parallel_tool_calls", &false)?;
        }
        let completion = self.known.has(Quirk::CompletionTokens);
        let tokens = if completion { "max_completion_tokens" } else { "max_tokens" };
        map.serialize_entry(tokens, &request.reply_tokens_max)?;
        if let Some(temperature) = request.temperature
            && !self.known.has(Quirk::NoTemperature)
        {
            map.serialize_entry("temperature", &temperature)?;
        }
        map.serialize_entry("messages", &Messages(&request.messages))?;
        map.end()
    }
}

struct Messages<'a>(&'a [Message]);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Said<'a> {
            role: &'static str,
            content: &'a str,
        }
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for message in self.0 {
            let content = message.content.as_str();
            seq.serialize_element(&Said { role: message.role.name(), content })?;
        }
        seq.end()
    }
}

struct Tool<'a> {
    tool: &'a ToolSpec,
    strict: bool,
}

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            strict: bool,
            parameters: &'a Value,
        }
        let Tool { tool, strict } = *self;
        let function = Function {
            name: tool.name,
            description: &tool.description,
            strict,
            parameters: &tool.parameters,
        };
        Typed { kind: "function", function }.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Typed<T> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: T,
}

#[derive(Serialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

impl Named<'_> {
    fn function(name: &str) -> Typed<Named<'_>> {
        Typed { kind: "function", function: Named { name } }
    }
}

struct Format<'a> {
    tool: &'a ToolSpec,
    strict: bool,
}

impl Serialize for Format<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Schema<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            strict: bool,
            schema: &'a Value,
        }
        let Format { tool, strict } = *self;
        let schema = Schema { name: tool.name, strict, schema: &tool.parameters };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "json_schema")?;
        map.serialize_entry("json_schema", &schema)?;
        map.end()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::quirks::Quirks;
    use super::*;
    use crate::domain::Role;
    use crate::privacy::Gate;
    use serde_json::json;
    use std::sync::Arc;

    /// A small question on `rung`.
    pub(in super::super) fn question(rung: Rung) -> Request {
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
    fn check(rung: Rung, known: Known, expected: &[(&str, Value)]) {
        let request = question(rung);
        let sent = serde_json::to_value(Ask { request: &request, known }).unwrap();
        for (pointer, value) in expected {
            let found = sent.pointer(pointer).cloned().unwrap_or(Value::Null);
            assert_eq!(&found, value, "{pointer} on {}", rung.name());
        }
        assert_eq!(sent["model"], "small");
        assert_eq!(sent["messages"][1]["role"], "user");
    }

    #[test]
    fn each_rung_asks_in_its_own_way() {
        let (known, none) = (Known::default(), Value::Null);
        let name = json!({"type": "function", "function": {"name": "write_points"}});
        check(
            Rung::ForcedTool,
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
            Rung::RequiredTool,
            known,
            &[("/tool_choice", json!("required")), ("/tools/0/function/strict", none.clone())],
        );
        check(
            Rung::OfferedTool,
            known,
            &[("/tool_choice", json!("auto")), ("/parallel_tool_calls", none.clone())],
        );
        check(
            Rung::JsonSchema,
            known,
            &[
                ("/tools", none.clone()),
                ("/response_format/json_schema/strict", json!(true)),
                ("/response_format/json_schema/schema/type", json!("object")),
            ],
        );
        check(Rung::JsonObject, known, &[("/response_format/type", json!("json_object"))]);
        check(Rung::Text, known, &[("/response_format", none.clone()), ("/tools", none)]);
    }

    #[test]
    fn what_was_refused_is_left_out() {
        let quirks = Quirks::default();
        for quirk in
            [Quirk::CompletionTokens, Quirk::NoParallel, Quirk::NoTemperature, Quirk::NoStrict]
        {
            quirks.learn(quirk, Known::default());
        }
        check(
            Rung::ForcedTool,
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
