//! Any OpenAI-compatible endpoint. One call is one request, except that fields which the endpoint refuses are
//! omitted at once and from then on. Retries are the caller's.

use super::error::{Failure, RequestContext};
use super::transport::{Transport, broken};
use super::wire::{Completion, QUIRKS_MAX, Quirks, body, quirk_of, usage_of};
use crate::adapters::http_client;
use crate::adapters::otel::{ChatSpan, Server};
use crate::domain::{
    ErrorKind, LanguageModel, ModelError, OutputMode, Reply, Request, Timestamp, Usage,
};
use crate::privacy::{Gate, Redacted};
use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tracing::Instrument;

/// Idle timeout of a connection; servers and load balancers close theirs after 60 s or more.
const IDLE_SECS: u64 = 50;

/// Address and timeouts of an endpoint.
#[derive(Clone)]
pub struct EndpointConfig {
    /// Usually ends in `/v1`; a trailing slash is removed.
    pub base_url: String,
    /// API key; `None` sends none. The environment's `OPENAI_API_KEY` is never read.
    pub api_key: Option<String>,
    /// Environment variable of the key, for the hint of an error.
    pub api_key_env: String,
    /// Settings that define the endpoint, such as a file, for the hint of an error.
    pub source: String,
    /// Connection timeout.
    pub connect_timeout: Duration,
    /// Maximum time without data from the endpoint, including the wait for the first byte.
    pub read_timeout: Duration,
    /// Timeout of a whole call.
    pub total_timeout: Duration,
}

impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointConfig")
            .field("base_url", &self.base_url)
            .field("api_key_env", &self.api_key_env)
            .finish_non_exhaustive()
    }
}

/// An OpenAI-compatible endpoint with its connection pool. Create one and share it by reference.
pub struct Endpoint {
    client: Client<OpenAIConfig>,
    host: String,
    server: Server,
    key: String,
    api_key_env: String,
    source: String,
    gate: Gate,
    quirks: Quirks,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.host)
    }
}

impl Endpoint {
    /// Creates the client; does not connect. `now` is only called for waits given as a date.
    ///
    /// # Errors
    /// `BadRequest` for an invalid address, `Unauthorised` for a key that cannot be sent, `Unavailable` if the
    /// machine's certificates cannot be read.
    pub fn new(
        config: EndpointConfig,
        gate: Gate,
        now: fn() -> Timestamp,
    ) -> Result<Endpoint, ModelError> {
        let base_url = config.base_url.trim().trim_end_matches('/');
        // Users copy the whole URL from a curl command.
        let base_url = base_url.strip_suffix("/chat/completions").unwrap_or(base_url);
        let url = reqwest::Url::parse(base_url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some((url, name)) = url.as_ref().and_then(|url| Some((url, url.host_str()?))) else {
            let detail = "`base_url` is not a URL: expected one such as https://host/v1";
            return Err(ModelError::new(ErrorKind::BadRequest, detail));
        };
        if url.query().is_some() || !url.username().is_empty() || url.password().is_some() {
            let detail = "`base_url` contains a query or a password: the request path is appended to it, and \
                          a key belongs in the variable that `api_key_env` names";
            return Err(ModelError::new(ErrorKind::BadRequest, detail));
        }
        let address = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server = Server { address, port: url.port_or_known_default().unwrap_or_default() };
        let host = match url.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        let key = config.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
        if key.is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            let detail = format!(
                "the key in {} contains characters that are not allowed in a key",
                config.api_key_env
            );
            return Err(ModelError::new(ErrorKind::Unauthorised, detail));
        }
        let http = client_of(&config, url).map_err(|_| {
            let detail = "cannot prepare HTTPS: the certificates of this machine cannot be read";
            ModelError::new(ErrorKind::Unavailable { wait: None }, detail)
        })?;
        let transport = Transport { http, keyed: key.is_some(), now };
        // Sets every field that async-openai would otherwise take from the environment.
        let openai = OpenAIConfig::new()
            .with_api_base(base_url)
            .with_api_key(key.unwrap_or_default())
            .with_org_id("")
            .with_project_id("");
        let (below, http) = (transport.clone(), transport.http);
        let service =
            tower::service_fn(move |factory: HttpRequestFactory| below.clone().send(factory));
        let client = Client::build(http, openai).with_http_service(service);
        let key = key.unwrap_or_default().to_owned();
        let (quirks, EndpointConfig { api_key_env, source, .. }) = (Quirks::default(), config);
        Ok(Endpoint { client, host, server, key, api_key_env, source, gate, quirks })
    }

    /// Sends `body`; returns the reply and the model name that the server reports.
    pub(super) async fn exchange(
        &self,
        body: impl Serialize,
    ) -> Result<(Reply, Option<String>), Failure> {
        let completion: Result<Completion, OpenAIError> =
            self.client.chat().create_byot(body).await;
        let completion = completion.map_err(failure_of)?;
        let model = completion.model_name();
        Ok((completion.into_reply(&self.gate)?, model))
    }

    /// The reply to a request for the list of models.
    pub(super) async fn models(&self) -> Result<Value, Failure> {
        self.client.models().list_byot().await.map_err(failure_of)
    }

    /// True if the server responds, even with a refusal.
    pub(crate) async fn responds(&self) -> bool {
        !matches!(self.models().await, Err(Failure::Transport { .. }))
    }

    pub(super) fn error(&self, failure: Failure, rung: OutputMode, model: &str) -> ModelError {
        let Endpoint { host, key, api_key_env, source, gate, .. } = self;
        let model = gate.redact(model);
        let model = model.as_str();
        failure.into_error(&RequestContext { rung, model, host, key, api_key_env, source, gate })
    }

    /// Sends the request, again without each field that the endpoint turns out to refuse.
    async fn ask(&self, request: &Request) -> Result<(Reply, Option<String>), ModelError> {
        let mut failure = Failure::Transport { what: "not asked", is_sent: false };
        for _ in 0..=QUIRKS_MAX {
            let known = self.quirks.known();
            failure = match self.exchange(body(request, known)).await {
                Ok((reply, model)) => {
                    log_reply(request, &reply);
                    return Ok((reply, model));
                }
                Err(failure) => failure,
            };
            let Failure::Status { status, said, .. } = &failure else { break };
            let Some(quirk) = quirk_of(*status, said) else { break };
            if !self.quirks.learn(quirk, known) {
                break;
            }
            tracing::info!(host = self.host, quirk = ?quirk, "endpoint rejects a field; omitted");
        }
        if let Failure::Status { said, .. } = &mut failure {
            said.clear_echo(request);
        }
        Err(self.error(failure, request.rung, &request.model))
    }
}

impl LanguageModel for Endpoint {
    async fn call(&self, request: &Request) -> Result<Reply, ModelError> {
        let chat = ChatSpan::begin(request, &self.server);
        match self.ask(request).instrument(chat.span()).await {
            Ok((reply, model)) => {
                chat.answered(&reply, model.as_deref());
                Ok(reply)
            }
            Err(error) => {
                chat.failed(&error.kind);
                Err(error)
            }
        }
    }
}

fn failure_of(error: OpenAIError) -> Failure {
    let what = "the request could not be sent";
    let unsent = Failure::Transport { what, is_sent: false };
    match error {
        OpenAIError::Boxed(failure) => failure.downcast().map_or(unsent, |failure| *failure),
        OpenAIError::JSONDeserialize(..) => Failure::InvalidReply { what: "odd JSON" },
        OpenAIError::Reqwest(error) => broken(&error),
        OpenAIError::ApiError(_)
        | OpenAIError::FileSaveError(_)
        | OpenAIError::FileReadError(_)
        | OpenAIError::StreamError(_)
        | OpenAIError::InvalidArgument(_) => unsent,
    }
}

/// Logs counts only. A failure is logged where it is handled.
fn log_reply(request: &Request, reply: &Reply) {
    let Usage { prompt_tokens, cached_tokens, completion_tokens } = reply.usage;
    // The user may have configured the key as the model.
    let model = Gate::new(&[]).redact(&request.model);
    tracing::debug!(
        model = model.as_str(),
        rung = request.rung.name(),
        calls = reply.calls.len(),
        finish = reply.finish.name(),
        prompt_tokens,
        cached_tokens,
        completion_tokens,
        "reply"
    );
}

fn client_of(
    config: &EndpointConfig,
    url: &reqwest::Url,
) -> Result<reqwest::Client, reqwest::Error> {
    http_client(url)
        .connect_timeout(config.connect_timeout)
        .read_timeout(config.read_timeout)
        .timeout(config.total_timeout)
        .pool_idle_timeout(Duration::from_secs(IDLE_SECS))
        .pool_max_idle_per_host(usize::MAX)
        .tcp_nodelay(true)
        .build()
}

/// One vector per text of the call, in order.
#[derive(Clone, Debug)]
pub(crate) struct Embeddings {
    pub vectors: Vec<Vec<f32>>,
    pub usage: Usage,
}

/// Parses a server's reply leniently; an error unless each of the `count` texts has a vector.
fn embeddings_of(reply: &Value, count: usize) -> Result<Embeddings, Failure> {
    let what = "not every text got a vector: the model is probably not an embedding model";
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (at, item) in reply["data"].as_array().into_iter().flatten().enumerate() {
        let index = item["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let numbers = item["embedding"].as_array().into_iter().flatten();
        let vector: Option<Vec<f32>> =
            numbers.map(|number| number.as_f64().map(|it| it as f32)).collect();
        if let Some(place) = vectors.get_mut(index.unwrap_or(at)) {
            *place = vector.filter(|it| !it.is_empty());
        }
    }
    let vectors: Option<Vec<Vec<f32>>> = vectors.into_iter().collect();
    let vectors = vectors.ok_or(Failure::InvalidReply { what })?;
    Ok(Embeddings { vectors, usage: usage_of(&reply["usage"]) })
}

impl Endpoint {
    /// Requests the vectors of `texts` from `model`.
    pub(crate) async fn embed(
        &self,
        model: &str,
        texts: &[Redacted],
    ) -> Result<Embeddings, ModelError> {
        let input: Vec<&str> = texts.iter().map(Redacted::as_str).collect();
        let body = json!({"model": model, "input": input, "encoding_format": "float"});
        let reply: Result<Value, OpenAIError> = self.client.embeddings().create_byot(body).await;
        let embeddings =
            reply.map_err(failure_of).and_then(|reply| embeddings_of(&reply, texts.len()));
        embeddings.map_err(|failure| self.error(failure, OutputMode::Text, model))
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::request_tests::question;
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn config(base_url: &str, api_key: &str) -> EndpointConfig {
        EndpointConfig {
            source: "settings".to_owned(),
            base_url: base_url.to_owned(),
            api_key: Some(api_key.to_owned()),
            api_key_env: "MY_KEY".to_owned(),
            connect_timeout: Duration::from_secs(1),
            read_timeout: Duration::from_secs(1),
            total_timeout: Duration::from_secs(1),
        }
    }

    #[track_caller]
    fn check(base_url: &str, api_key: &str, expected: Result<&str, ErrorKind>) {
        let made = Endpoint::new(config(base_url, api_key), Gate::new(&[]), || Timestamp(0));
        let made = made.map(|endpoint| endpoint.host).map_err(|error| error.kind);
        assert_eq!(made, expected.map(str::to_owned), "{base_url}");
    }

    #[test]
    fn address_is_read_once() {
        check("http://localhost:8080/v1/", "", Ok("localhost:8080"));
        check(" https://api.example.org/v1", "abc", Ok("api.example.org"));
        check("http://here/v1/chat/completions", "", Ok("here"));
        check("http://me:secret@here/v1", "", Err(ErrorKind::BadRequest));
        check("http://here/v1?api-version=1", "", Err(ErrorKind::BadRequest));
        for wrong in ["", "api.example.org", "ftp://x/v1", "http://"] {
            check(wrong, "", Err(ErrorKind::BadRequest));
        }
    }

    #[test]
    fn key_that_cannot_be_sent_is_refused_and_no_key_is_shown() {
        check("http://localhost/v1", "a\nb", Err(ErrorKind::Unauthorised));
        check("http://localhost/v1", "ключ", Err(ErrorKind::Unauthorised));
        check("http://localhost/v1", " abc \n", Ok("localhost"));
        let shown = format!("{:?}", config("http://localhost/v1", "abc123"));
        assert!(!shown.contains("abc123"), "{shown}");
    }

    /// Answers one request with an empty completion and returns what was sent.
    fn answer_once(listener: &TcpListener) -> String {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut sent, mut piece) = (Vec::new(), [0; 4096]);
        while !sent.ends_with(b"}") {
            let count = stream.read(&mut piece).unwrap();
            assert_ne!(count, 0, "the request ended early");
            sent.extend_from_slice(&piece[..count]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{\"choices\":[]}").unwrap();
        String::from_utf8(sent).unwrap().to_lowercase()
    }

    #[track_caller]
    fn check_sent(api_key: &str, authorization: Option<&str>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let config = EndpointConfig {
            read_timeout: Duration::from_secs(60),
            total_timeout: Duration::from_secs(60),
            ..config(&base_url, api_key)
        };
        let endpoint = Endpoint::new(config, Gate::new(&[]), || Timestamp(0)).unwrap();
        let server = std::thread::spawn(move || answer_once(&listener));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let reply = runtime.block_on(endpoint.call(&question(OutputMode::ForcedTool)));
        assert!(reply.is_ok_and(|reply| reply.calls.is_empty()));
        let sent = server.join().unwrap();
        assert!(sent.starts_with("post /v1/chat/completions http/1.1"), "{sent}");
        let header = sent.lines().find_map(|line| line.strip_prefix("authorization: "));
        assert_eq!(header, authorization);
        assert!(!sent.contains("openai-organization") && !sent.contains("openai-project"));
    }

    #[test]
    fn only_the_key_that_was_given_is_sent() {
        check_sent("abc", Some("bearer abc"));
        check_sent("", None);
    }
}

#[cfg(test)]
mod embedding_tests {
    use super::*;

    fn vectors(reply: Value, count: usize) -> Option<Vec<Vec<f32>>> {
        embeddings_of(&reply, count).ok().map(|it| it.vectors)
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
