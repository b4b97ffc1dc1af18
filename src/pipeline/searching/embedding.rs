//! Embeddings for search: of stored texts that have none yet, and of the query.

use super::super::budget::{Budget, CapOwner, RateLimit, cost};
use super::super::model_client::plausible;
use super::super::retrying_store::{RetryPolicy, RetryingStore};
use super::hit::{QueryVector, SearchRequest};
use crate::config::{Config, Price};
use crate::domain::{Digest, Purpose, RequestDigest, Timestamp, Usage, estimate_tokens};
use crate::llm::Endpoint;
use crate::privacy::{Gate, Redacted};
use crate::store::{
    Bill, CallEnd, Charge, EmbeddedTexts, Store, StoreError, UnembeddedText, Vector,
};
use tokio_util::sync::CancellationToken;

const TEXTS_AT_ONCE: usize = 64;
/// Maximum number of texts that one search embeds; the next search continues.
const TEXTS_MAX: u32 = 2_048;

/// An embedding model with its price and caps.
pub(crate) struct Embedder {
    endpoint: Endpoint,
    model: String,
    budget: Budget,
    rate_limit: RateLimit,
    price: Price,
    gate: Gate,
    clock: fn() -> Timestamp,
}

struct Called {
    /// Digest of the model and the texts.
    asked: RequestDigest,
    vectors: Vec<Option<Vector>>,
    bill: Bill,
}

/// One-line reason why a search uses words alone.
#[derive(Debug)]
struct NoVectors(String);

impl From<StoreError> for NoVectors {
    fn from(error: StoreError) -> NoVectors {
        NoVectors(error.to_string())
    }
}

impl Embedder {
    /// Returns the embedder of the settings; `None` if they name no model.
    pub(crate) fn new(
        endpoint: Endpoint,
        config: &Config,
        clock: fn() -> Timestamp,
    ) -> Option<Embedder> {
        let model = config.search.embeddings.clone()?;
        let price = config.model.price_of(&model).unwrap_or_default();
        let (budget, gate) = (Budget::new(&config.limits, price), Gate::new(&config.pii));
        let rate_limit = RateLimit::of(config, clock);
        Some(Embedder { endpoint, model, budget, rate_limit, price, gate, clock })
    }

    /// Embeds new texts and the words of `request`. Returns a notice for the user if texts are left for the next search
    /// or if this one uses words alone.
    pub(crate) async fn prepare(
        &self,
        store: &Store,
        request: &mut SearchRequest,
    ) -> Option<String> {
        if request.words.trim().is_empty() {
            return None;
        }
        match self.embed_all(store, request).await {
            Ok(true) => Some("some records have no vector yet: search again".to_owned()),
            Ok(false) => None,
            Err(NoVectors(why)) => Some(format!("searched by words alone: {why}")),
        }
    }

    /// Returns true if texts are left for the next search.
    async fn embed_all(
        &self,
        store: &Store,
        request: &mut SearchRequest,
    ) -> Result<bool, NoVectors> {
        let namespace = request.filter.namespace.clone().unwrap_or_default();
        let missing = store
            .unembedded_texts(&self.model, request.filter.namespace.clone(), TEXTS_MAX)
            .await?;
        for texts in missing.chunks(TEXTS_AT_ONCE) {
            self.embed(store, &namespace, texts).await?;
        }
        let words = [self.gate.redact(&request.words)];
        let Called { asked, vectors, bill } = self.call(store, &namespace, &words).await?;
        let (model, at) = (self.model.clone(), (self.clock)());
        let paid = EmbeddedTexts { asked, model, vectors: Vec::new(), bill, at };
        store.keep_vectors(paid).await?;
        let vector = vectors.into_iter().next().flatten();
        request.vector = vector.map(|vector| QueryVector { model: self.model.clone(), vector });
        Ok(TEXTS_MAX as usize <= missing.len())
    }

    async fn embed(
        &self,
        store: &Store,
        namespace: &str,
        texts: &[UnembeddedText],
    ) -> Result<(), NoVectors> {
        let said: Vec<Redacted> = texts.iter().map(|it| self.gate.redact(&it.text)).collect();
        let Called { asked, vectors, bill } = self.call(store, namespace, &said).await?;
        // An empty vector is near nothing, and keeps the text from being embedded again.
        let vectors = texts.iter().cloned().zip(vectors);
        let vectors = vectors.map(|(text, vector)| (text, vector.unwrap_or_default())).collect();
        let (model, at) = (self.model.clone(), (self.clock)());
        Ok(store.keep_vectors(EmbeddedTexts { asked, model, vectors, bill, at }).await?)
    }

    /// Calls the model once, under the caps.
    async fn call(
        &self,
        store: &Store,
        namespace: &str,
        texts: &[Redacted],
    ) -> Result<Called, NoVectors> {
        let store = RetryingStore::new(store.clone(), RetryPolicy::none());
        let sent: u64 = texts.iter().map(|it| u64::from(estimate_tokens(it.as_str()))).sum();
        let worst = Usage { prompt_tokens: sent + sent / 3, ..Usage::default() };
        let owner = CapOwner { namespace, session: None };
        let reserved = self.budget.reserve(&store, owner, worst, (self.clock)()).await?;
        let reserved = reserved.map_err(|reached| NoVectors(reached.to_string()))?;
        // Never cancelled: Ctrl-C ends the search, and the reservation then counts as spent.
        self.rate_limit.draw(&store, sent, &CancellationToken::new()).await?;
        let called = self.endpoint.embed(&self.model, texts).await;
        let tokens = called.as_ref().map_or(0, |it| plausible(it.usage.prompt_tokens, sent));
        let usage = Usage { prompt_tokens: tokens, ..Usage::default() };
        self.rate_limit.settle(&store, sent, Some(tokens)).await?;
        let cost_micros = cost(usage, self.price);
        let end = match &called {
            Ok(_) => CallEnd::Paid(Charge { tokens, micros: cost_micros }),
            Err(error) if error.is_unanswered => CallEnd::Unanswered,
            Err(_) => CallEnd::Failed,
        };
        self.budget.settle(&store, reserved, end).await?;
        let called = called.map_err(|error| NoVectors(error.to_string()))?;
        let (namespace, purpose) = (namespace.to_owned(), Purpose::Search);
        let texts = texts.iter().map(Redacted::as_str).chain([self.model.as_str()]);
        Ok(Called {
            asked: RequestDigest(Digest::of(&texts.collect::<Vec<_>>())),
            vectors: called.vectors.iter().map(|numbers| Vector::of(numbers)).collect(),
            bill: Bill { namespace, purpose, usage, cost_micros, about: Vec::new() },
        })
    }
}
