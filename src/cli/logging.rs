//! Logs on stderr, and traces to a collector with the feature `otel`, both enabled by the environment.

use crate::adapters::otel::CHAT;
#[cfg(feature = "otel")]
use crate::adapters::otel::{Traces, TracesConfig};
#[cfg(feature = "otel")]
use crate::cli::output::note;
use crate::llm;
use std::io::IsTerminal;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

#[must_use = "the last traces are sent by `end`"]
pub(super) struct Telemetry {
    #[cfg(feature = "otel")]
    traces: Option<Traces>,
}

impl Telemetry {
    /// Starts logs on stderr if `ANNALIST_LOG` is set, as JSON lines if `ANNALIST_LOG_FORMAT` is `json`, and traces if
    /// OpenTelemetry's variables name a collector.
    pub(super) fn start() -> Telemetry {
        let layers = logs().into_iter();
        #[cfg(feature = "otel")]
        let traces = traces();
        #[cfg(feature = "otel")]
        let layers = layers.chain(traces.iter().map(|it| it.layer().boxed()));
        let layers: Vec<BoxedLayer> = layers.collect();
        if !layers.is_empty() {
            let allowed = filter_fn(|meta| may_be_logged(meta.target(), meta.module_path()));
            // Fails only if a subscriber is already set; this is the only one.
            let _ = tracing_subscriber::registry().with(layers).with(allowed).try_init();
        }
        Telemetry {
            #[cfg(feature = "otel")]
            traces,
        }
    }

    /// Sends the remaining traces; a failure is only noted.
    pub(super) fn end(self) {
        #[cfg(feature = "otel")]
        if let Some(Err(reason)) = self.traces.map(|it| it.flush()) {
            note(&format!("the last traces were not sent: {reason}"));
        }
    }
}

/// Starts tracing; a failure is only noted.
#[cfg(feature = "otel")]
fn traces() -> Option<Traces> {
    let started =
        TracesConfig::of(text).and_then(|config| config.as_ref().map(Traces::start).transpose());
    started.unwrap_or_else(|reason| {
        note(&format!("no traces are sent: {reason}"));
        None
    })
}

fn text(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|value| value.into_string().ok())
}

fn logs() -> Option<BoxedLayer> {
    let filter = EnvFilter::new(text("ANNALIST_LOG")?);
    // The span of a call repeats its event.
    let filter = filter.and(filter_fn(|meta| meta.target() != CHAT));
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let in_colours =
        std::io::stderr().is_terminal() && text("NO_COLOR").is_none_or(|it| it.is_empty());
    let logs = logs.with_ansi(in_colours);
    let as_json = text("ANNALIST_LOG_FORMAT").is_some_and(|it| it.eq_ignore_ascii_case("json"));
    Some(match as_json {
        true => logs.json().with_filter(filter).boxed(),
        false => logs.with_filter(filter).boxed(),
    })
}

/// Crates that log the text of conversations.
const NEVER_LOGGED: [&str; 2] = [llm::NEVER_LOGGED, "async_nats"];

/// True if an event may be logged at all. Separate from the user's filter, in which a more specific
/// directive such as `async_openai::client=trace` would win.
fn may_be_logged(target: &str, module: Option<&str>) -> bool {
    let never = |path: &str| {
        let name = path.split("::").next();
        NEVER_LOGGED.iter().any(|it| name == Some(*it))
    };
    !never(target) && !module.is_some_and(never)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_log_words_are_not_logged() {
        assert!(!may_be_logged("async_openai", None));
        assert!(!may_be_logged("async_openai::client", None));
        assert!(!may_be_logged("wire", Some("async_openai::client")));
        assert!(!may_be_logged("async_nats::connection", None));
        assert!(may_be_logged("annalist::adapters::nats", None));
        assert!(may_be_logged("annalist::pipeline", Some("annalist::pipeline")));
        assert!(may_be_logged("async_openai_else", None));
    }
}
