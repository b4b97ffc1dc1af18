//! The small questions of a probe. They ask for one thing and force another, so that an endpoint which
//! ignores the name of the tool gives itself away.

use serde_json::{Value, json};

/// The longest answer, in tokens: a call of two words takes about 30, and reasoning models think first.
const ANSWER_TOKENS_MAX: u32 = 128;
/// The tool that the words suggest.
pub(super) const SUGGESTED: &str = "note_colour";
/// The tool that is forced.
pub(super) const FORCED: &str = "note_city";

const ASK: &str = "A red bus drove through Lisbon. Note the colour of the bus. Answer in JSON.";

/// A question without any tool.
pub(super) fn text(model: &str) -> Value {
    json!({
        "model": model, "max_tokens": ANSWER_TOKENS_MAX,
        "messages": [{"role": "user", "content": ASK}],
    })
}

fn with(model: &str, fields: Value) -> Value {
    let mut body = text(model);
    if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
        body.extend(fields);
    }
    body
}

fn schema(field: &str) -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": [field],
        "properties": {field: {"type": "string"}},
    })
}

fn tool(name: &str, field: &str, strict: bool) -> Value {
    let description = format!("Notes the {field}.");
    let parameters = schema(field);
    let mut function = json!({"name": name, "description": description, "parameters": parameters});
    if let (true, Some(function)) = (strict, function.as_object_mut()) {
        function.insert("strict".to_owned(), json!(true));
    }
    json!({"type": "function", "function": function})
}

/// Two tools, of which the one that does not fit is forced.
pub(super) fn forced(model: &str) -> Value {
    let choice = json!({"type": "function", "function": {"name": FORCED}});
    let tools = [tool(SUGGESTED, "colour", false), tool(FORCED, "city", false)];
    with(model, json!({"tools": tools, "tool_choice": choice}))
}

/// One forced tool with a strict schema.
pub(super) fn strict(model: &str) -> Value {
    let choice = json!({"type": "function", "function": {"name": FORCED}});
    with(model, json!({"tools": [tool(FORCED, "city", true)], "tool_choice": choice}))
}

/// One tool, and some tool is required.
pub(super) fn required(model: &str) -> Value {
    with(model, json!({"tools": [tool(SUGGESTED, "colour", false)], "tool_choice": "required"}))
}

/// One tool, and the model may call it.
pub(super) fn offered(model: &str) -> Value {
    with(model, json!({"tools": [tool(SUGGESTED, "colour", false)], "tool_choice": "auto"}))
}

/// JSON after a schema.
pub(super) fn json_schema(model: &str) -> Value {
    let schema = json!({"name": SUGGESTED, "strict": true, "schema": schema("colour")});
    with(model, json!({"response_format": {"type": "json_schema", "json_schema": schema}}))
}

/// Any JSON object.
pub(super) fn json_object(model: &str) -> Value {
    with(model, json!({"response_format": {"type": "json_object"}}))
}

/// The required tool as a stream.
pub(super) fn streaming(model: &str) -> Value {
    let mut body = offered(model);
    if let Some(body) = body.as_object_mut() {
        body.insert("stream".to_owned(), json!(true));
    }
    body
}
