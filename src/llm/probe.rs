//! Finds out what an endpoint can do with a few small questions, for `annalist doctor` and for the first output mode. The
//! questions ask for one thing and force another, so that an endpoint that ignores the tool's name gives itself away.

use super::error::{Failure, RequestContext};
use super::openai::Endpoint;
use super::sse::{SseLines, StreamedReply};
use crate::domain::{ModelError, OutputMode, REPLY_BYTES_MAX, Reply};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Names of models that are listed; some routers have thousands.
const MODELS_MAX: usize = 1_000;
/// The longest answer, in tokens: a call of two words takes about 30, and reasoning models think first.
const ANSWER_TOKENS_MAX: u32 = 128;
/// The tool that the words suggest.
const SUGGESTED: &str = "note_colour";
/// The tool that is forced.
const FORCED: &str = "note_city";

const ASK: &str = "A red bus drove through Lisbon. Note the colour of the bus. Answer in JSON.";

/// The outcome of one question.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProbeCheck {
    /// True if it can.
    pub ok: bool,
    /// Result, for a person.
    pub detail: String,
    /// Duration, in milliseconds.
    pub millis: u64,
}

/// Abilities of an endpoint.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Probe {
    /// Answers a plain question. If not, nothing else was asked.
    pub reachable: ProbeCheck,
    /// Error of the plain question.
    pub error: Option<ModelError>,
    /// The models that it lists; none if it does not.
    pub models: Option<Vec<String>>,
    /// The model that it says it used.
    pub reply_model: Option<String>,
    /// Calls the tool that is named, though another fits better.
    pub forced_tool: ProbeCheck,
    /// Calls a tool when one is required.
    pub required_tool: ProbeCheck,
    /// Calls a tool of its own accord.
    pub offered_tool: ProbeCheck,
    /// Answers in JSON after a schema.
    pub json_schema: ProbeCheck,
    /// Answers with a JSON object.
    pub json_object: ProbeCheck,
    /// Takes a strict schema of a tool.
    pub strict: ProbeCheck,
    /// Streams calls.
    pub streaming: ProbeCheck,
    /// The best way to ask; none if it is not reachable.
    pub best: Option<OutputMode>,
}

/// Asks `endpoint` up to nine small questions, one after another: local servers answer one at a time.
pub(crate) async fn probe(endpoint: &Endpoint, model: &str) -> Probe {
    let ask = Prober { endpoint, model };
    let mut probe = Probe { models: ask.models().await, ..Probe::default() };
    probe.reachable = ask
        .check(OutputMode::Text, text_question(model), |reply, name| {
            probe.reply_model = name;
            let empty = reply.content.is_empty() && reply.refusal.is_none();
            Ok(if empty { "answered without words" } else { "answered" }.to_owned())
        })
        .await
        .unwrap_or_else(|(check, error)| {
            probe.error = Some(error);
            check
        });
    if !probe.reachable.ok {
        return probe;
    }
    probe.forced_tool =
        ask.tool(OutputMode::ForcedTool, forced_question(model), FORCED, "ignores the name").await;
    probe.strict =
        ask.tool(OutputMode::ForcedTool, strict_question(model), FORCED, "another tool").await;
    let required = required_question(model);
    probe.required_tool =
        ask.tool(OutputMode::RequiredTool, required, SUGGESTED, "another tool").await;
    let offered = offered_question(model);
    probe.offered_tool =
        ask.tool(OutputMode::OfferedTool, offered, SUGGESTED, "another tool").await;
    probe.json_schema =
        ask.json(OutputMode::JsonSchema, json_schema_question(model), Some("colour")).await;
    probe.json_object = ask.json(OutputMode::JsonObject, json_object_question(model), None).await;
    probe.streaming = ask.streaming().await;
    probe.best = Some(probe.best_rung());
    probe
}

impl Probe {
    fn best_rung(&self) -> OutputMode {
        let rungs = [
            (&self.forced_tool, OutputMode::ForcedTool),
            (&self.required_tool, OutputMode::RequiredTool),
            (&self.offered_tool, OutputMode::OfferedTool),
            (&self.json_schema, OutputMode::JsonSchema),
            (&self.json_object, OutputMode::JsonObject),
        ];
        rungs.iter().find(|(check, _)| check.ok).map_or(OutputMode::Text, |(_, rung)| *rung)
    }

    /// Every check by name, in the order in which they were made.
    pub(crate) fn checks(&self) -> [(&'static str, &ProbeCheck); 8] {
        [
            ("reachable", &self.reachable),
            ("forced_tool", &self.forced_tool),
            ("strict", &self.strict),
            ("required_tool", &self.required_tool),
            ("offered_tool", &self.offered_tool),
            ("json_schema", &self.json_schema),
            ("json_object", &self.json_object),
            ("streaming", &self.streaming),
        ]
    }
}

struct Prober<'a> {
    endpoint: &'a Endpoint,
    model: &'a str,
}

impl Prober<'_> {
    fn error(&self, rung: OutputMode, failure: Failure) -> ModelError {
        failure.into_error(&RequestContext { rung, model: self.model, ..self.endpoint.place() })
    }

    /// Asks once; `judge` says how the reply is, good or not.
    async fn check(
        &self,
        rung: OutputMode,
        body: Value,
        judge: impl FnOnce(Reply, Option<String>) -> Result<String, String>,
    ) -> Result<ProbeCheck, (ProbeCheck, ModelError)> {
        let began = Instant::now();
        let completion = self.endpoint.exchange(body).await;
        let millis = millis_since(began);
        let reply = completion.and_then(|completion| {
            let name = completion.model_name();
            Ok((completion.into_reply(self.endpoint.gate())?, name))
        });
        match reply {
            Ok((reply, name)) => Ok(match judge(reply, name) {
                Ok(detail) => ProbeCheck { ok: true, detail, millis },
                Err(detail) => ProbeCheck { ok: false, detail, millis },
            }),
            Err(failure) => {
                let error = self.error(rung, failure);
                Err((ProbeCheck { ok: false, detail: error.to_string(), millis }, error))
            }
        }
    }

    async fn tool(&self, rung: OutputMode, body: Value, name: &str, other: &str) -> ProbeCheck {
        let judge = |reply: Reply, _| {
            let Some(call) = reply.calls.first() else { return Err("no call".to_owned()) };
            if call.name != name {
                return Err(format!("called wrongly: {other}"));
            }
            match serde_json::from_str::<Value>(call.arguments.as_str()) {
                Ok(Value::Object(_)) => Ok("called".to_owned()),
                Ok(_) | Err(_) => Err("called with arguments that are no JSON object".to_owned()),
            }
        };
        self.check(rung, body, judge).await.unwrap_or_else(|(check, _)| check)
    }

    async fn json(&self, rung: OutputMode, body: Value, field: Option<&str>) -> ProbeCheck {
        let judge =
            |reply: Reply, _| match serde_json::from_str::<Value>(reply.content.as_str().trim()) {
                Ok(Value::Object(map)) => match field {
                    Some(field) if !map.contains_key(field) => Err("ignores the schema".to_owned()),
                    Some(_) | None => Ok("answered in JSON".to_owned()),
                },
                Ok(_) | Err(_) => Err("answered without JSON".to_owned()),
            };
        self.check(rung, body, judge).await.unwrap_or_else(|(check, _)| check)
    }

    async fn models(&self) -> Option<Vec<String>> {
        #[derive(Deserialize)]
        struct Model {
            id: String,
        }
        #[derive(Deserialize)]
        struct Models {
            data: Vec<Model>,
        }
        let request = self.endpoint.plain("/models", None).ok()?;
        let body = self.endpoint.transport().fetch(request).await.ok()?;
        let models: Models = serde_json::from_slice(&body).ok()?;
        Some(models.data.into_iter().map(|model| model.id).take(MODELS_MAX).collect())
    }

    async fn streaming(&self) -> ProbeCheck {
        let began = Instant::now();
        let stream = self.stream().await;
        let millis = millis_since(began);
        let (ok, detail) = match stream {
            Err(failure) => (false, self.error(OutputMode::OfferedTool, failure).to_string()),
            Ok(stream) if stream.failed => (false, "an error inside the stream".to_owned()),
            Ok(stream) if stream.calls.is_empty() && stream.content.is_empty() => {
                (false, "an empty stream".to_owned())
            }
            Ok(stream) => {
                let end = if stream.done { "" } else { ", without [DONE] at the end" };
                (true, format!("{} events{end}", stream.events))
            }
        };
        ProbeCheck { ok, detail, millis }
    }

    async fn stream(&self) -> Result<StreamedReply, Failure> {
        let body = streaming_question(self.model).to_string().into_bytes();
        let request = self.endpoint.plain("/chat/completions", Some(body))?;
        let mut response = self.endpoint.transport().open(request).await?;
        let (mut lines, mut stream, mut bytes) = (SseLines::default(), StreamedReply::default(), 0);
        let next = |error: reqwest::Error| super::transport::broken(&error);
        while let Some(chunk) = response.chunk().await.map_err(next)? {
            lines.push(&chunk).iter().for_each(|payload| stream.push(payload));
            bytes += chunk.len();
            if bytes > REPLY_BYTES_MAX {
                return Err(Failure::Odd { what: "a stream beyond the bound of 32 MiB" });
            }
        }
        lines.finish().iter().for_each(|payload| stream.push(payload));
        Ok(stream)
    }
}

fn millis_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A question without any tool.
fn text_question(model: &str) -> Value {
    json!({
        "model": model, "max_tokens": ANSWER_TOKENS_MAX,
        "messages": [{"role": "user", "content": ASK}],
    })
}

fn with(model: &str, fields: Value) -> Value {
    let mut body = text_question(model);
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
fn forced_question(model: &str) -> Value {
    let choice = json!({"type": "function", "function": {"name": FORCED}});
    let tools = [tool(SUGGESTED, "colour", false), tool(FORCED, "city", false)];
    with(model, json!({"tools": tools, "tool_choice": choice}))
}

/// One forced tool with a strict schema.
fn strict_question(model: &str) -> Value {
    let choice = json!({"type": "function", "function": {"name": FORCED}});
    with(model, json!({"tools": [tool(FORCED, "city", true)], "tool_choice": choice}))
}

/// One tool, and some tool is required.
fn required_question(model: &str) -> Value {
    with(model, json!({"tools": [tool(SUGGESTED, "colour", false)], "tool_choice": "required"}))
}

/// One tool, and the model may call it.
fn offered_question(model: &str) -> Value {
    with(model, json!({"tools": [tool(SUGGESTED, "colour", false)], "tool_choice": "auto"}))
}

/// JSON after a schema.
fn json_schema_question(model: &str) -> Value {
    let schema = json!({"name": SUGGESTED, "strict": true, "schema": schema("colour")});
    with(model, json!({"response_format": {"type": "json_schema", "json_schema": schema}}))
}

/// Any JSON object.
fn json_object_question(model: &str) -> Value {
    with(model, json!({"response_format": {"type": "json_object"}}))
}

/// The required tool as a stream.
fn streaming_question(model: &str) -> Value {
    let mut body = offered_question(model);
    if let Some(body) = body.as_object_mut() {
        body.insert("stream".to_owned(), json!(true));
    }
    body
}
