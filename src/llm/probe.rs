//! Probes an endpoint's capabilities with a few small questions, for `annalist doctor` and for the first output
//! mode. The questions ask for one thing and force another, to detect endpoints that ignore the tool's name.

use super::openai::Endpoint;
use crate::domain::{ModelError, OutputMode, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// Maximum number of models that are listed; some routers have thousands.
const MODELS_MAX: usize = 1_000;
/// Maximum length of a reply, in tokens: a call of two words takes about 30, and reasoning models think first.
const ANSWER_TOKENS_MAX: u32 = 128;
/// Tool that the question suggests.
const SUGGESTED: &str = "note_colour";
const FORCED: &str = "note_city";

const ASK: &str = "A red bus drove through Lisbon. Note the colour of the bus. Answer in JSON.";

/// Outcome of one question.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProbeCheck {
    pub ok: bool,
    /// Outcome, for the user.
    pub detail: String,
    pub millis: u64,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Probe {
    /// Answers a plain question. Otherwise no other question is asked.
    pub reachable: ProbeCheck,
    pub error: Option<ModelError>,
    /// Models that it lists; `None` if it lists none.
    pub models: Option<Vec<String>>,
    /// Model that it reports to have used.
    pub reply_model: Option<String>,
    /// Calls the forced tool, though another fits better.
    pub forced_tool: ProbeCheck,
    /// Calls a tool when one is required.
    pub required_tool: ProbeCheck,
    /// Calls an optional tool.
    pub offered_tool: ProbeCheck,
    /// Follows a JSON schema.
    pub json_schema: ProbeCheck,
    /// Answers with a JSON object.
    pub json_object: ProbeCheck,
    /// Accepts a strict tool schema.
    pub strict: ProbeCheck,
    /// Best output mode; `None` if not reachable.
    pub best: Option<OutputMode>,
}

/// Sends up to eight small requests in sequence, since local servers handle one at a time.
pub(crate) async fn probe(endpoint: &Endpoint, model: &str) -> Probe {
    let ask = Prober { endpoint, model };
    let mut probe = Probe { models: ask.models().await, ..Probe::default() };
    let plain = ask.check(OutputMode::Text, json!({}), |reply, name| {
        probe.reply_model = name;
        let empty = reply.content.is_empty() && reply.refusal.is_none();
        Ok(if empty { "answered without words" } else { "answered" })
    });
    (probe.reachable, probe.error) = plain.await;
    if !probe.reachable.ok {
        return probe;
    }
    let named = json!({"type": "function", "function": {"name": FORCED}});
    let colour = tool(SUGGESTED, "colour", None);
    // Two tools; the one that does not fit is forced.
    let forced = json!({"tools": [colour, tool(FORCED, "city", None)], "tool_choice": named});
    let strict = json!({"tools": [tool(FORCED, "city", Some(true))], "tool_choice": named});
    let required = json!({"tools": [colour], "tool_choice": "required"});
    let offered = json!({"tools": [colour], "tool_choice": "auto"});
    let format = json!({"name": SUGGESTED, "strict": true, "schema": schema("colour")});
    let json_schema = json!({"response_format": {"type": "json_schema", "json_schema": format}});
    let json_object = json!({"response_format": {"type": "json_object"}});
    probe.forced_tool = ask.tool(OutputMode::ForcedTool, forced, FORCED).await;
    probe.strict = ask.tool(OutputMode::ForcedTool, strict, FORCED).await;
    probe.required_tool = ask.tool(OutputMode::RequiredTool, required, SUGGESTED).await;
    probe.offered_tool = ask.tool(OutputMode::OfferedTool, offered, SUGGESTED).await;
    probe.json_schema = ask.json(OutputMode::JsonSchema, json_schema, Some("colour")).await;
    probe.json_object = ask.json(OutputMode::JsonObject, json_object, None).await;
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

    /// Every check by name, in the order in which they ran.
    pub(crate) fn checks(&self) -> [(&'static str, &ProbeCheck); 7] {
        [
            ("reachable", &self.reachable),
            ("forced_tool", &self.forced_tool),
            ("strict", &self.strict),
            ("required_tool", &self.required_tool),
            ("offered_tool", &self.offered_tool),
            ("json_schema", &self.json_schema),
            ("json_object", &self.json_object),
        ]
    }
}

struct Prober<'a> {
    endpoint: &'a Endpoint,
    model: &'a str,
}

impl Prober<'_> {
    /// Asks the question with these `fields`; `judge` evaluates the reply.
    async fn check(
        &self,
        rung: OutputMode,
        fields: Value,
        judge: impl FnOnce(Reply, Option<String>) -> Result<&'static str, &'static str>,
    ) -> (ProbeCheck, Option<ModelError>) {
        let mut body = Map::new();
        body.insert("model".to_owned(), self.model.into());
        body.insert("max_tokens".to_owned(), ANSWER_TOKENS_MAX.into());
        body.insert("messages".to_owned(), json!([{"role": "user", "content": ASK}]));
        body.extend(fields.as_object().cloned().unwrap_or_default());
        let began = Instant::now();
        let reply = self.endpoint.exchange(body).await;
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let check = |ok, detail: String| ProbeCheck { ok, detail, millis };
        match reply.map(|(reply, name)| judge(reply, name)) {
            Ok(Ok(detail)) => (check(true, detail.to_owned()), None),
            Ok(Err(detail)) => (check(false, detail.to_owned()), None),
            Err(failure) => {
                let error = self.endpoint.error(failure, rung, self.model);
                (check(false, error.to_string()), Some(error))
            }
        }
    }

    async fn tool(&self, rung: OutputMode, fields: Value, name: &str) -> ProbeCheck {
        let judge = |reply: Reply, _| {
            let call = reply.calls.first().ok_or("no call")?;
            if call.name != name {
                return Err("called another tool");
            }
            match serde_json::from_str::<Map<String, Value>>(call.arguments.as_str()) {
                Ok(_) => Ok("called"),
                Err(_) => Err("called with arguments that are no JSON object"),
            }
        };
        self.check(rung, fields, judge).await.0
    }

    async fn json(&self, rung: OutputMode, fields: Value, field: Option<&str>) -> ProbeCheck {
        let judge = |reply: Reply, _| {
            let map = serde_json::from_str::<Map<String, Value>>(reply.content.as_str().trim())
                .map_err(|_| "answered without JSON")?;
            let fits = field.is_none_or(|field| map.contains_key(field));
            if fits { Ok("answered in JSON") } else { Err("ignores the schema") }
        };
        self.check(rung, fields, judge).await.0
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
        let models: Models = self.endpoint.models().await?;
        Some(models.data.into_iter().map(|model| model.id).take(MODELS_MAX).collect())
    }
}

fn schema(field: &str) -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": [field],
        "properties": {field: {"type": "string"}},
    })
}

fn tool(name: &str, field: &str, strict: Option<bool>) -> Value {
    let description = format!("Notes the {field}.");
    let mut function =
        json!({"name": name, "description": description, "parameters": schema(field)});
    if let Some(strict) = strict {
        function["strict"] = strict.into();
    }
    json!({"type": "function", "function": function})
}
