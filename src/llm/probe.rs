//! Probes an endpoint's capabilities with a few small questions, for `annalist doctor` and for the first output
//! mode. The questions ask for one thing and force another, to detect endpoints that ignore the tool's name.

use super::openai::Endpoint;
use crate::domain::{ModelError, OutputMode, Reply};
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

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProbeCheck {
    pub ok: bool,
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
    /// The other questions by name, in the order in which they were asked.
    pub checks: Vec<(&'static str, ProbeCheck)>,
    /// Best output mode; `None` if not reachable.
    pub best: Option<OutputMode>,
}

/// Reply that a question asks for.
#[derive(Clone, Copy)]
enum Wanted {
    /// A call of this tool.
    Call(&'static str),
    /// A JSON object, with this field if one is named.
    Json(Option<&'static str>),
}

/// Sends up to eight small requests in sequence, since local servers handle one at a time. Calls `seen` after each
/// check, first when it is known whether the endpoint is reachable.
pub(crate) async fn probe(endpoint: &Endpoint, model: &str, mut seen: impl FnMut(&Probe)) -> Probe {
    let ask = Prober { endpoint, model };
    let mut probe = Probe { models: ask.models().await, ..Probe::default() };
    let plain = ask.check(OutputMode::Text, json!({}), |reply, name| {
        probe.reply_model = name;
        let empty = reply.content.is_empty() && reply.refusal.is_none();
        Ok(if empty { "answered without words" } else { "answered" })
    });
    (probe.reachable, probe.error) = plain.await;
    seen(&probe);
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
    // The best output mode first; `strict` is none of its own.
    for (name, rung, fields, wanted) in [
        ("forced_tool", OutputMode::ForcedTool, forced, Wanted::Call(FORCED)),
        ("strict", OutputMode::ForcedTool, strict, Wanted::Call(FORCED)),
        ("required_tool", OutputMode::RequiredTool, required, Wanted::Call(SUGGESTED)),
        ("offered_tool", OutputMode::OfferedTool, offered, Wanted::Call(SUGGESTED)),
        ("json_schema", OutputMode::JsonSchema, json_schema, Wanted::Json(Some("colour"))),
        ("json_object", OutputMode::JsonObject, json_object, Wanted::Json(None)),
    ] {
        let (check, _) = ask.check(rung, fields, |reply, _| judged(&reply, wanted)).await;
        if check.ok && name != "strict" {
            probe.best.get_or_insert(rung);
        }
        probe.checks.push((name, check));
        seen(&probe);
    }
    probe.best.get_or_insert(OutputMode::Text);
    probe
}

fn judged(reply: &Reply, wanted: Wanted) -> Result<&'static str, &'static str> {
    let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text);
    match wanted {
        Wanted::Call(name) => {
            let call = reply.calls.first().ok_or("no call")?;
            if call.name != name {
                return Err("called another tool");
            }
            let arguments = object(call.arguments.as_str());
            arguments.map_err(|_| "called with arguments that are not a JSON object")?;
            Ok("called")
        }
        Wanted::Json(field) => {
            let content = object(reply.content.as_str().trim());
            let content = content.map_err(|_| "answered without JSON")?;
            let fits = field.is_none_or(|field| content.contains_key(field));
            if fits { Ok("answered in JSON") } else { Err("ignores the schema") }
        }
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

    async fn models(&self) -> Option<Vec<String>> {
        let listed = self.endpoint.models().await.ok()?;
        let models = listed["data"].as_array()?.iter();
        let mut ids: Vec<String> =
            models.map(|model| Some(model["id"].as_str()?.to_owned())).collect::<Option<_>>()?;
        ids.truncate(MODELS_MAX);
        Some(ids)
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
