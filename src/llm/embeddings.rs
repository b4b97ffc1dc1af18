//! Embeddings: vectors of texts, which let a search match paraphrases.

use super::error::Failure;
use super::openai::Endpoint;
use super::wire::usage_of;
use crate::domain::{ModelError, OutputMode, Usage};
use crate::privacy::Redacted;
use serde::Deserialize;
use serde_json::{Value, json};

/// Reply of a server, parsed as leniently as a completion.
#[derive(Deserialize)]
#[serde(transparent)]
struct EmbeddingsReply(Value);

/// One vector per text of the call, in order.
#[derive(Clone, Debug)]
pub(crate) struct Embeddings {
    pub vectors: Vec<Vec<f32>>,
    pub usage: Usage,
}

impl EmbeddingsReply {
    /// Returns the vectors; an error unless each of the `count` texts has one.
    fn into_embeddings(self, count: usize) -> Result<Embeddings, Failure> {
        let odd = Failure::InvalidReply {
            what: "no vector for each text: the model makes no embeddings",
        };
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
        for (at, item) in self.0["data"].as_array().into_iter().flatten().enumerate() {
            let index = item["index"].as_u64().and_then(|index| usize::try_from(index).ok());
            let numbers = item["embedding"].as_array().into_iter().flatten();
            let vector: Option<Vec<f32>> =
                numbers.map(|number| number.as_f64().map(|it| it as f32)).collect();
            if let Some(place) = vectors.get_mut(index.unwrap_or(at)) {
                *place = vector.filter(|it| !it.is_empty());
            }
        }
        let vectors: Option<Vec<Vec<f32>>> = vectors.into_iter().collect();
        Ok(Embeddings { vectors: vectors.ok_or(odd)?, usage: usage_of(&self.0["usage"]) })
    }
}

impl Endpoint {
    /// Requests the vectors of `texts` from `model`.
    ///
    /// # Errors
    /// Those of a language model call.
    pub(crate) async fn embed(
        &self,
        model: &str,
        texts: &[Redacted],
    ) -> Result<Embeddings, ModelError> {
        let input: Vec<&str> = texts.iter().map(Redacted::as_str).collect();
        let body = json!({"model": model, "input": input, "encoding_format": "float"});
        let reply: Result<EmbeddingsReply, Failure> = self.exchange_embeddings(body).await;
        let embeddings = reply.and_then(|reply| reply.into_embeddings(texts.len()));
        embeddings.map_err(|failure| self.error(failure, OutputMode::Text, model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(reply: Value, count: usize) -> Option<Vec<Vec<f32>>> {
        EmbeddingsReply(reply).into_embeddings(count).ok().map(|it| it.vectors)
    }

    #[test]
    fn each_text_has_the_vector_of_its_index() {
        let reply = json!({"data": [
            {"index": 1, "embedding": [0.5, 1]}, {"index": 0, "embedding": [2.0, 0.0]},
        ]});
        assert_eq!(vectors(reply, 2), Some(vec![vec![2.0, 0.0], vec![0.5, 1.0]]));
        let unnumbered = json!({"data": [{"embedding": [1]}, {"embedding": [2]}]});
        assert_eq!(vectors(unnumbered, 2), Some(vec![vec![1.0], vec![2.0]]));
    }

    #[test]
    fn a_reply_without_a_vector_for_each_text_is_refused() {
        for reply in [
            json!({}),
            json!({"data": []}),
            json!({"data": [{"index": 7, "embedding": [1.0]}]}),
            json!({"data": [{"index": 0, "embedding": []}]}),
            json!({"data": [{"index": 0, "embedding": ["a"]}]}),
            json!({"data": [{"index": 0, "embedding": "AACAPw=="}]}),
        ] {
            assert_eq!(vectors(reply.clone(), 1), None, "{reply}");
        }
    }
}
