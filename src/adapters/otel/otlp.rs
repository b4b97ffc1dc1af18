//! Exports spans to a collector: OTLP over HTTP as protobuf, in batches from a separate thread, so
//! that calls never wait for it. Exports only the spans of this module, without their events.

use super::{CHAT, JOB};
use crate::adapters::http_client;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// Maximum wait for the last spans at exit.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(3);
/// Maximum duration of sending a batch, including retries; shorter than the wait at exit.
const SEND_WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum size of a collector's response, which is empty or the number of rejected spans.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
const PATH: &str = "/v1/traces";
const SERVICE: &str = "annalist";

const _: () = assert!(SEND_WAIT_MAX.as_millis() < FLUSH_WAIT_MAX.as_millis());

/// Destination of traces and service name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TracesConfig {
    /// Full URL, including the path.
    pub endpoint: String,
    /// Name of the service.
    pub service: String,
}

impl TracesConfig {
    /// Reads OpenTelemetry's environment variables through `var`. `None` if they name no collector
    /// or disable tracing. The libraries below read further variables for batching, sampling,
    /// resource attributes and headers with keys.
    ///
    /// # Errors
    /// One line about a variable with an unsupported value.
    pub fn of(var: impl Fn(&str) -> Option<String>) -> Result<Option<TracesConfig>, String> {
        let var = |name: &str| var(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
        let off = var("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"));
        if off || var("OTEL_TRACES_EXPORTER").is_some_and(|it| it == "none") {
            return Ok(None);
        }
        let of_traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        let of_all = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let (name, base, path) = match (var(of_traces), var(of_all)) {
            (Some(endpoint), _) => (of_traces, endpoint, ""),
            (None, Some(base)) => (of_all, base.trim_end_matches('/').to_owned(), PATH),
            (None, None) => return Ok(None),
        };
        let url = reqwest::Url::parse(&base).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(url) = url else {
            return Err(format!("{name}: expected an address like http://127.0.0.1:4318"));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!(
                "{name}: contains a user or a password: keys belong in OTEL_EXPORTER_OTLP_HEADERS"
            ));
        }
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if var(name).is_some_and(|protocol| protocol != "http/protobuf") {
                return Err(format!(
                    "{name}: only http/protobuf is supported, which collectors accept on port 4318"
                ));
            }
        }
        let service = var("OTEL_SERVICE_NAME").unwrap_or_else(|| SERVICE.to_owned());
        Ok(Some(TracesConfig { endpoint: base + path, service }))
    }
}

/// Running export of traces to a collector.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    refused: Arc<AtomicBool>,
}

impl Traces {
    /// Starts the export thread; does not connect yet.
    ///
    /// # Errors
    /// One line if this machine's certificates cannot be read.
    pub fn start(config: &TracesConfig) -> Result<Traces, String> {
        let refused = Arc::new(AtomicBool::new(false));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Sender::new(&config.endpoint, Arc::clone(&refused))?)
            .with_endpoint(&config.endpoint)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(SEND_WAIT_MAX)
            .build()
            .map_err(|error| error.to_string())?;
        let resource = Resource::builder()
            .with_service_name(config.service.clone())
            .with_attribute(opentelemetry::KeyValue::new(
                "service.version",
                env!("CARGO_PKG_VERSION"),
            ))
            .build();
        let provider =
            SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter);
        Ok(Traces { provider: provider.build(), refused })
    }

    /// Layer that exports the spans of this module.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            // Threads, lines and idle times are meaningless for asynchronous work.
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_level(false)
            .with_target(false)
            .with_context_activation(false)
            .with_filter(filter_fn(is_sent))
    }

    /// Exports what is left, for at most [`FLUSH_WAIT_MAX`]. Blocks: not for a runtime thread.
    ///
    /// # Errors
    /// One line if the collector did not accept them.
    pub fn flush(self) -> Result<(), String> {
        let ended = self.provider.shutdown_with_timeout(FLUSH_WAIT_MAX);
        // The provider's `Ok` only means that it tried.
        match ended {
            Ok(()) if !self.refused.load(Ordering::Relaxed) => Ok(()),
            Ok(()) => Err("the collector did not take them".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// True for spans of this module, whose fields are known to be safe to export.
fn is_sent(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && matches!(metadata.target(), CHAT | JOB)
}

/// HTTP client of the export thread: the one used for models, on its own runtime, which runs only
/// while sending.
struct Sender {
    http: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    /// True if the collector refused the last batch.
    refused: Arc<AtomicBool>,
}

impl Sender {
    fn new(endpoint: &str, refused: Arc<AtomicBool>) -> Result<Sender, String> {
        let url = reqwest::Url::parse(endpoint).map_err(|error| error.to_string())?;
        let http = http_client(&url)
            .timeout(SEND_WAIT_MAX)
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|_| "the certificates of this machine cannot be read".to_owned())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        Ok(Sender { http, runtime, refused })
    }

    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let mut response = self.http.execute(request.try_into()?).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err("the collector's answer is too long".into());
            }
            body.extend_from_slice(&chunk);
        }
        let mut answer = http::Response::new(Bytes::from(body));
        *answer.status_mut() = response.status();
        *answer.headers_mut() = std::mem::take(response.headers_mut());
        Ok(answer)
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

type Answered<'a> =
    Pin<Box<dyn Future<Output = Result<http::Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Sender {
    /// Blocks, on the thread dedicated to it.
    fn send_bytes<'a, 'b>(&'a self, request: http::Request<Bytes>) -> Answered<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let answer = self.runtime.block_on(self.send(request));
            let taken = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
            self.refused.store(!taken, Ordering::Relaxed);
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(set: &[(&str, &str)], expected: Result<Option<(&str, &str)>, &str>) {
        let var = |name: &str| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        match (TracesConfig::of(var), expected) {
            (Ok(config), Ok(expected)) => {
                let config = config.map(|config| (config.endpoint, config.service));
                let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
                assert_eq!(config, expected, "{set:?}");
            }
            (Err(line), Err(name)) => {
                assert!(line.starts_with(&format!("{name}: ")), "{line}");
                assert!(!line.contains("s3cret") && !line.contains('\n'), "{line}");
            }
            (config, expected) => panic!("{set:?}: {config:?}, not {expected:?}"),
        }
    }

    #[test]
    fn environment_names_the_collector_or_there_is_none() {
        const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        let here = Ok(Some(("http://here:4318/v1/traces", "annalist")));
        check(&[], Ok(None));
        check(&[(ALL, "")], Ok(None));
        check(&[(ALL, "http://here:4318")], here);
        check(&[(ALL, "http://here:4318/")], here);
        check(&[(ALL, "https://c/x")], Ok(Some(("https://c/x/v1/traces", "annalist"))));
        let named = [(TRACES, "http://t/y"), (ALL, "http://a"), ("OTEL_SERVICE_NAME", "night")];
        check(&named, Ok(Some(("http://t/y", "night"))));
        check(&[(ALL, "http://here:4318"), ("OTEL_SDK_DISABLED", "TRUE")], Ok(None));
        check(&[(ALL, "http://here:4318"), ("OTEL_SDK_DISABLED", "no")], here);
        check(&[(ALL, "http://here:4318"), ("OTEL_TRACES_EXPORTER", "none")], Ok(None));
        for wrong in ["here:4318", "ftp://here", "http://", "/v1", "http://me:s3cret@here"] {
            check(&[(ALL, wrong)], Err(ALL));
        }
        let grpc = "OTEL_EXPORTER_OTLP_PROTOCOL";
        check(&[(ALL, "http://here:4317"), (grpc, "grpc")], Err(grpc));
    }
}
