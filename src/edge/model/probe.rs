//! What an endpoint can do, found out with a few small questions: for `annalist doctor`, and for
//! beginning on the right rung.

use super::error::{Asked, Failure};
use super::openai::Endpoint;
use super::probe_asks::{self as asks, FORCED, SUGGESTED};
use super::sse::{Lines, Stream};
use crate::domain::{ModelError, REPLY_BYTES_MAX, Reply, Rung};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

/// Names of models that are listed; some routers have thousands.
const MODELS_MAX: usize = 1_000;

/// The outcome of one question.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Check {
    /// Whether it can.
    pub ok: bool,
    /// How it went, for a person.
    pub detail: String,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// What an endpoint can do.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Probe {
    /// Whether it answers a plain question. If not, nothing else was asked.
    pub reachable: Check,
    /// What stopped the plain question.
    pub error: Option<ModelError>,
    /// The models that it lists; none if it does not.
    pub models: Option<Vec<String>>,
    /// The model that it says it used.
    pub reply_model: Option<String>,
    /// Calls the tool that is named, though another fits better.
    pub forced_tool: Check,
    /// Calls a tool when one is required.
    pub required_tool: Check,
    /// Calls a tool of its own accord.
    pub offered_tool: Check,
    /// Answers in JSON after a schema.
    pub json_schema: Check,
    /// Answers with a JSON object.
    pub json_object: Check,
    /// Takes a strict schema of a tool.
    pub strict: Check,
    /// Streams calls.
    pub streaming: Check,
    /// The best way to ask; none if it is not reachable.
    pub best: Option<Rung>,
}

/// Asks `endpoint` up to nine small questions, one after another: local servers answer one at a time.
pub async fn probe(endpoint: &Endpoint, model: &str) -> Probe {
    let ask = Ask { endpoint, model };
    let mut probe = Probe { models: ask.models().await, ..Probe::default() };
    probe.reachable = ask
        .check(Rung::Text, asks::text(model), |reply, name| {
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
        ask.tool(Rung::ForcedTool, asks::forced(model), FORCED, "ignores the name").await;
    probe.strict = ask.tool(Rung::ForcedTool, asks::strict(model), FORCED, "another tool").await;
    let required = asks::required(model);
    probe.required_tool = ask.tool(Rung::RequiredTool, required, SUGGESTED, "another tool").await;
    let offered = asks::offered(model);
    probe.offered_tool = ask.tool(Rung::OfferedTool, offered, SUGGESTED, "another tool").await;
    probe.json_schema = ask.json(Rung::JsonSchema, asks::json_schema(model), Some("colour")).await;
    probe.json_object = ask.json(Rung::JsonObject, asks::json_object(model), None).await;
    probe.streaming = ask.streaming().await;
    probe.best = Some(probe.best_rung());
    probe
}

impl Probe {
    fn best_rung(&self) -> Rung {
        let rungs = [
            (&self.forced_tool, Rung::ForcedTool),
            (&self.required_tool, Rung::RequiredTool),
            (&self.offered_tool, Rung::OfferedTool),
            (&self.json_schema, Rung::JsonSchema),
            (&self.json_object, Rung::JsonObject),
        ];
        rungs.iter().find(|(check, _)| check.ok).map_or(Rung::Text, |(_, rung)| *rung)
    }

    /// Every check by name, in the order in which they were made.
    pub fn checks(&self) -> [(&'static str, &Check); 8] {
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

struct Ask<'a> {
    endpoint: &'a Endpoint,
    model: &'a str,
}

impl Ask<'_> {
    fn error(&self, rung: Rung, failure: Failure) -> ModelError {
        failure.into_error(&Asked { rung, model: self.model, ..self.endpoint.place() })
    }

    /// Asks once; `judge` says how the reply is, good or not.
    async fn check(
        &self,
        rung: Rung,
        body: Value,
        judge: impl FnOnce(Reply, Option<String>) -> Result<String, String>,
    ) -> Result<Check, (Check, ModelError)> {
        let began = Instant::now();
        let completion = self.endpoint.exchange(body).await;
        let millis = millis_since(began);
        let reply = completion.and_then(|completion| {
            let name = completion.model_name();
            Ok((completion.into_reply(self.endpoint.gate())?, name))
        });
        match reply {
            Ok((reply, name)) => Ok(match judge(reply, name) {
                Ok(detail) => Check { ok: true, detail, millis },
                Err(detail) => Check { ok: false, detail, millis },
            }),
            Err(failure) => {
                let error = self.error(rung, failure);
                Err((Check { ok: false, detail: error.to_string(), millis }, error))
            }
        }
    }

    async fn tool(&self, rung: Rung, body: Value, name: &str, other: &str) -> Check {
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

    async fn json(&self, rung: Rung, body: Value, field: Option<&str>) -> Check {
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

    async fn streaming(&self) -> Check {
        let began = Instant::now();
        let stream = self.stream().await;
        let millis = millis_since(began);
        let (ok, detail) = match stream {
            Err(failure) => (false, self.error(Rung::OfferedTool, failure).to_string()),
            Ok(stream) if stream.failed => (false, "an error inside the stream".to_owned()),
            Ok(stream) if stream.calls.is_empty() && stream.content.is_empty() => {
                (false, "an empty stream".to_owned())
            }
            Ok(stream) => {
                let end = if stream.done { "" } else { ", without [DONE] at the end" };
                (true, format!("{} events{end}", stream.events))
            }
        };
        Check { ok, detail, millis }
    }

    async fn stream(&self) -> Result<Stream, Failure> {
        let body = asks::streaming(self.model).to_string().into_bytes();
        let request = self.endpoint.plain("/chat/completions", Some(body))?;
        let mut response = self.endpoint.transport().open(request).await?;
        let (mut lines, mut stream, mut bytes) = (Lines::default(), Stream::default(), 0);
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
