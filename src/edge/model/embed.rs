//! Embeddings of the same endpoint: `POST {base_url}/embeddings`, one text a request.

use super::error::{Asked, Failure};
use super::openai::Endpoint;
use crate::domain::{Finish, ModelError, Reply, Request, Rung, Usage, Vector};
use crate::privacy::{Redacted, Woven};
use serde::Deserialize;
use serde_json::json;

/// As much of an answer as is used.
#[derive(Deserialize)]
struct Answer {
    data: Vec<Datum>,
    #[serde(default)]
    usage: Tokens,
}

#[derive(Deserialize)]
struct Datum {
    embedding: Vec<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    prompt_tokens: u64,
}

impl Endpoint {
    /// The vector of the request's text, as the content of a reply.
    pub(super) async fn embed(&self, request: &Request) -> Result<Reply, ModelError> {
        self.vector(request).await.map_err(|failure| {
            let model = request.model.as_str();
            failure.into_error(&Asked { rung: Rung::Text, model, ..self.place() })
        })
    }

    async fn vector(&self, request: &Request) -> Result<Reply, Failure> {
        let text: Vec<&str> = request.messages.iter().map(|it| it.content.as_str()).collect();
        let body = json!({
            "model": request.model, "input": text.join("\n"), "encoding_format": "float",
        });
        let asked = self.plain("/embeddings", Some(body.to_string().into_bytes()))?;
        let body = self.transport().fetch(asked).await?;
        let odd = Failure::Odd { what: "JSON that is no embedding" };
        let Ok(answer) = serde_json::from_slice::<Answer>(&body) else { return Err(odd) };
        let numbers = answer.data.into_iter().next().map(|it| it.embedding);
        let Some(vector) = numbers.and_then(|it| Vector::of(&it)) else { return Err(odd) };
        // Numbers of ours, and no words.
        let content = Redacted::weave(&[Woven::Label(&vector.to_text())]);
        let prompt_tokens = answer.usage.prompt_tokens;
        let usage = Usage { prompt_tokens, ..Usage::default() };
        Ok(Reply { calls: Vec::new(), content, refusal: None, finish: Finish::Stop, usage })
    }
}
