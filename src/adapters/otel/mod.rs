//! Trace spans for a job and for each model call in it, named after OpenTelemetry's GenAI semantic
//! conventions. They contain ids, names, counts and kinds, never a prompt or a reply. They are
//! exported only with the feature `otel`, and cost almost nothing without a subscriber.

#[cfg(feature = "otel")]
mod otlp;

#[cfg(feature = "otel")]
pub use otlp::{Traces, TracesConfig};

use super::metrics::Outcome;
use crate::domain::{ErrorKind, Finish, OutputMode, Reply, Request, Usage};
use std::fmt;
use tracing::Span;
use tracing::field::Empty;

/// Target of spans around a model call. Logs omit them, because the events inside suffice.
pub(crate) const CHAT: &str = "annalist::chat";
pub(crate) const JOB: &str = "annalist::job";
/// Maximum length of a model name in bytes. A server's name for its model is arbitrary text;
/// anything longer is not a name.
const MODEL_BYTES_MAX: usize = 128;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Server {
    pub address: String,
    pub port: u16,
}

/// Work on one claimed job, from claim to outcome.
#[derive(Debug)]
#[must_use = "the span ends when this is dropped"]
pub struct JobSpan(Span);

impl JobSpan {
    /// Starts the span for a job and its attempt, 1-based.
    pub fn begin(id: impl fmt::Display, attempt: u32) -> JobSpan {
        // At error level, so that every log line of a job names it.
        JobSpan(tracing::error_span!(
            target: JOB,
            parent: None,
            "job",
            otel.kind = "consumer",
            annalist.job.id = %id,
            annalist.job.attempt = i64::from(attempt),
            annalist.job.outcome = Empty,
            "error.type" = Empty,
            otel.status_code = Empty,
        ))
    }

    /// Returns the span, for instrumenting every await: `work.instrument(job.span())`.
    pub fn span(&self) -> Span {
        self.0.clone()
    }

    /// Ends with `outcome` and the kind of the error, if any.
    pub fn ended(self, outcome: Outcome, error: Option<&str>) {
        self.0.record("annalist.job.outcome", outcome.name());
        if let Some(error) = error {
            failed(&self.0, error);
        }
    }
}

/// Model call. Counts as cancelled if dropped without a result.
#[derive(Debug)]
#[must_use = "the span ends when this is dropped"]
pub(crate) struct ChatSpan {
    span: Span,
    ended: bool,
}

impl ChatSpan {
    pub(crate) fn begin(request: &Request, server: &Server) -> ChatSpan {
        let Request { model, rung, reply_tokens_max, temperature, .. } = request;
        let json = matches!(rung, OutputMode::JsonSchema | OutputMode::JsonObject);
        let span = tracing::info_span!(
            target: CHAT,
            "chat",
            otel.name = %format_args!("chat {model}"),
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            // The API dialect, whichever server implements it.
            gen_ai.provider.name = "openai",
            gen_ai.request.model = model,
            gen_ai.request.max_tokens = i64::from(*reply_tokens_max),
            gen_ai.request.temperature = temperature.map(short),
            "gen_ai.output.type" = json.then_some("json"),
            server.address = server.address,
            server.port = i64::from(server.port),
            annalist.rung = rung.name(),
            gen_ai.response.model = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            "error.type" = Empty,
            otel.status_code = Empty,
        );
        ChatSpan { span, ended: false }
    }

    /// Returns the span, for instrumenting the call.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Ends with the reply's usage and finish reason; `model` is the server's name for it.
    pub(crate) fn answered(mut self, reply: &Reply, model: Option<&str>) {
        self.ended = true;
        let Usage { prompt_tokens, cached_tokens, completion_tokens } = reply.usage;
        if let Some(model) = model.filter(|model| is_name(model)) {
            self.span.record("gen_ai.response.model", model);
        }
        // All zeros come from a server that does not count.
        if reply.usage != Usage::default() {
            self.span.record("gen_ai.usage.input_tokens", signed(prompt_tokens));
            self.span.record("gen_ai.usage.cache_read.input_tokens", signed(cached_tokens));
            self.span.record("gen_ai.usage.output_tokens", signed(completion_tokens));
        }
        finished(&self.span, reply.finish);
    }

    pub(crate) fn failed(mut self, kind: &ErrorKind) {
        self.ended = true;
        failed(&self.span, kind.name());
    }
}

impl Drop for ChatSpan {
    fn drop(&mut self) {
        if !self.ended {
            failed(&self.span, ErrorKind::Cancelled.name());
        }
    }
}

fn failed(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "error");
}

/// The conventions require a list, which `tracing` fields do not support.
#[cfg(feature = "otel")]
fn finished(span: &Span, finish: Finish) {
    use opentelemetry::{Array, StringValue, Value};
    use tracing_opentelemetry::OpenTelemetrySpanExt;
    let reasons = vec![StringValue::from(finish.name())];
    span.set_attribute("gen_ai.response.finish_reasons", Value::Array(Array::String(reasons)));
}

#[cfg(not(feature = "otel"))]
fn finished(_span: &Span, _finish: Finish) {}

/// True if a text can be a model name: no blanks, so not a sentence.
fn is_name(model: &str) -> bool {
    let lawful = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/@+".contains(&b);
    (1..=MODEL_BYTES_MAX).contains(&model.len()) && model.bytes().all(lawful)
}

/// Converts 0.2 to 0.2, not to 0.20000000298.
fn short(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| f64::from(number))
}

/// Attributes support signed integers only.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_of_a_server_is_a_name_or_nothing() {
        for name in ["gpt-4o-2024-08-06", "org/model:7b@q4", "stub_1", "m+n"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(MODEL_BYTES_MAX + 1);
        for none in ["", "We chose the blue boat", "line\nline", "größer", "{\"a\"}", &long] {
            assert!(!is_name(none), "{none}");
        }
    }

    #[test]
    fn temperature_is_as_it_was_written() {
        assert_eq!((short(0.2), short(0.0), short(1.0)), (0.2, 0.0, 1.0));
    }
}
