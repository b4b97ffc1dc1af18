//! Classifies an error response. The body is dropped: an error holds codes, names and the server's message, masked,
//! but never a body.

use crate::domain::{ErrorKind, ModelError, OutputMode, Request};
use crate::privacy::Gate;
use crate::text::lenient_json::decode;
use crate::text::truncate;
use regex::Regex;
use serde_json::Value;
use std::time::Duration;

/// Maximum bytes of an error body that are read; servers echo whole requests.
pub(super) const ERROR_BYTES_MAX: usize = 64 * 1024;
const CODE_CHARS_MAX: usize = 64;
/// Maximum characters of the server's message that are shown.
const SENTENCE_CHARS_MAX: usize = 240;
/// Maximum nesting of errors: a gateway's, its upstream's, and the upstream's of that.
const WRAPPERS_MAX: u32 = 4;
/// Consecutive words that a message and a request do not share by chance.
const ECHO_WORDS: usize = 5;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ServerError {
    /// The whole body, in lower case.
    pub(super) text: String,
    pub(super) code: String,
    pub(super) kind: String,
    pub(super) param: String,
    /// True for an error in JSON whose message is the empty string.
    pub(super) has_empty_message: bool,
    /// Message, unmasked; may be empty.
    pub(super) sentence: String,
}

impl ServerError {
    /// Parses the shapes of OpenAI, vLLM (flat), FastAPI (`detail`), Google (a list), text and HTML.
    pub(super) fn of(body: &[u8]) -> ServerError {
        let body = body.get(..ERROR_BYTES_MAX).unwrap_or(body);
        let said = String::from_utf8_lossy(body);
        let text = said.to_lowercase();
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            // The only useful text of a web page is its title.
            let title = || said.split_once("<title>")?.1.split('<').next();
            let is_page = said.trim_start().starts_with('<');
            let sentence = if is_page { title().unwrap_or_default() } else { &*said };
            return ServerError { sentence: sentence.to_owned(), text, ..ServerError::default() };
        };
        let root = value.get(0).unwrap_or(&value);
        let error = root.get("error").filter(|error| error.is_object()).unwrap_or(root);
        // Servers send a number, a string or null.
        let name = |key: &str| {
            let text = error[key].as_str().map(str::to_owned);
            let text = text.or_else(|| error[key].as_number().map(ToString::to_string));
            code_of(&text.unwrap_or_default())
        };
        ServerError {
            text: complaints(&value).unwrap_or(text),
            code: name("code"),
            kind: name("type"),
            param: name("param"),
            has_empty_message: error["message"].as_str() == Some(""),
            sentence: sentence_of(&value, WRAPPERS_MAX).unwrap_or_default(),
        }
    }

    /// Clears the message if it repeats words of the request.
    pub(super) fn clear_echo(&mut self, request: &Request) {
        let words: Vec<&str> = self.sentence.split_whitespace().collect();
        let is_said = |words: &[&str]| {
            let words = words.join(" ");
            request.messages.iter().any(|message| message.content.as_str().contains(&words))
        };
        if words.windows(ECHO_WORDS).any(is_said) {
            self.sentence.clear();
        }
    }

    /// The message for display: masked, one line, bounded.
    fn shown(&self, gate: &Gate, key: &str) -> String {
        let masked = gate.redact(&without_key(&self.sentence, key));
        let words: Vec<&str> = masked
            .as_str()
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|word| !word.is_empty())
            .collect();
        let line = words.join(" ");
        let head = truncate::chars(&line, SENTENCE_CHARS_MAX);
        let end = if head.len() < line.len() { "…" } else { "" };
        format!("{}{end}", head.trim_end_matches('.'))
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.names(TOO_LONG)
    }

    /// Returns whether the error contains one of `words`, which `|` separates.
    fn names(&self, words: &str) -> bool {
        words.split('|').any(|word| {
            self.text.contains(word) || self.code.contains(word) || self.kind.contains(word)
        })
    }
}

/// FastAPI's validation errors without `input`, which echoes the request.
fn complaints(value: &Value) -> Option<String> {
    let parts = |detail: &Value| {
        ["loc", "msg", "type"].map(|key| detail.get(key).map(Value::to_string).unwrap_or_default())
    };
    let details = value.get("detail")?.as_array()?;
    Some(details.iter().flat_map(parts).collect::<String>().to_lowercase())
}

/// Innermost message of an error: gateways embed their upstream's error in their own message, as JSON or as a
/// Python `repr`.
fn sentence_of(value: &Value, wrappers_max: u32) -> Option<String> {
    if let Some(text) = value.as_str() {
        let inner = text.find('{').filter(|_| wrappers_max > 0).and_then(|at| {
            let (inner, _) = decode(&text[at..], &["error", "message", "detail"]);
            sentence_of(&inner, wrappers_max - 1)
        });
        return inner.or_else(|| Some(text.to_owned()));
    }
    let value = value.get(0).unwrap_or(value);
    let fields = ["error", "message", "detail", "msg"].into_iter();
    fields.filter_map(|key| value.get(key)).find_map(|it| sentence_of(it, wrappers_max))
}

/// Letters, digits, `_`, `.` and `-` of a code.
fn code_of(text: &str) -> String {
    let lawful = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    text.chars().filter(lawful).collect::<String>().to_ascii_lowercase()
}

/// Masks the key of the settings, which servers echo in any case. A short one is a word, such as `ollama`.
fn without_key(text: &str, key: &str) -> String {
    const KEY_BYTES_MIN: usize = 8;
    let known = Regex::new(&format!("(?i){}", regex::escape(key)));
    match known.ok().filter(|_| KEY_BYTES_MIN <= key.len()) {
        Some(known) => known.replace_all(text, "<SECRET>").into_owned(),
        None => text.to_owned(),
    }
}

/// Body of a server that is no model's, and so charges nothing.
pub(super) const WEB_PAGE: &str = "a web page";

/// Failure of a call, without the request.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Failure {
    /// The server returned an error; an in-band error has the status that its code names.
    #[error("status {status}")]
    Status { status: u16, wait: Option<Duration>, said: Box<ServerError> },
    /// `is_sent`: the server may have processed the request.
    #[error("{what}")]
    Transport { what: &'static str, is_sent: bool },
    /// The response was not a valid reply.
    #[error("{what}")]
    InvalidReply { what: &'static str },
}

/// Request and endpoint, for the hint of an error.
#[derive(Clone, Copy)]
pub(super) struct RequestContext<'a> {
    pub(super) rung: OutputMode,
    pub(super) model: &'a str,
    pub(super) host: &'a str,
    /// API key, which the error must not repeat.
    pub(super) key: &'a str,
    pub(super) api_key_env: &'a str,
    /// Settings that define the endpoint.
    pub(super) source: &'a str,
    pub(super) gate: &'a Gate,
}

impl Failure {
    pub(super) fn into_error(self, asked: &RequestContext<'_>) -> ModelError {
        let RequestContext { host, source, rung, .. } = *asked;
        let unavailable = ErrorKind::Unavailable { wait: None };
        let is_unanswered = match &self {
            Failure::Transport { is_sent, .. } => *is_sent,
            Failure::InvalidReply { what } => *what != WEB_PAGE,
            Failure::Status { .. } => false,
        };
        let (kind, detail) = match self {
            Failure::Transport { what, .. } => {
                (unavailable, format!("{host}: {what} (settings: {source})"))
            }
            Failure::InvalidReply { what } => {
                let check = "check `base_url`, which usually ends in /v1, in";
                (ErrorKind::NotAReply, format!("{host} answered 200 with {what}; {check} {source}"))
            }
            Failure::Status { status, wait, said } => {
                let kind = kind_of(status, wait, &said, rung);
                let detail = detail_of(&kind, status, &said, asked);
                (kind, detail)
            }
        };
        ModelError { is_unanswered, ..ModelError::new(kind, detail) }
    }
}

/// Determines the kind, by codes first, then by words.
pub(super) fn kind_of(
    status: u16,
    wait: Option<Duration>,
    said: &ServerError,
    rung: OutputMode,
) -> ErrorKind {
    let client_error = matches!(status, 400 | 422);
    if status == 402 || said.names(QUOTA) {
        return ErrorKind::QuotaExhausted;
    }
    if matches!(status, 401 | 403) || said.names(BAD_KEY) {
        return ErrorKind::Unauthorised;
    }
    if status == 413
        || (client_error || status == 500) && said.is_too_long()
        || status == 429 && said.names("request too large")
    {
        return ErrorKind::TooLong;
    }
    if status == 429 {
        return ErrorKind::RateLimited { wait };
    }
    let about_mode = is_about_output_mode(said, rung);
    if matches!(status, 300..=399 | 404 | 405 | 410) {
        // A router that finds no provider for the tool returns 404.
        let is_mode = about_mode && status == 404;
        return if is_mode { ErrorKind::Unsupported } else { ErrorKind::NotFound };
    }
    if client_error && said.names(NO_MODEL) {
        return ErrorKind::NotFound;
    }
    let mute = status == 500 && said.has_empty_message && rung == OutputMode::RequiredTool;
    let wrong = client_error || status == 501 || status == 500 && said.names(VALIDATION);
    if mute || wrong && about_mode {
        return ErrorKind::Unsupported;
    }
    let down = matches!(status, 408 | 409 | 425) || !(400..500).contains(&status);
    if wrong || !down { ErrorKind::BadRequest } else { ErrorKind::Unavailable { wait } }
}

const QUOTA: &str =
    "insufficient_quota|billing_hard_limit|insufficient_balance|credit balance is too";
/// Words of a refused key, which some servers and gateways report as a 400 or a 500.
const BAD_KEY: &str = "\
    api key not valid|api_key_invalid|invalid_api_key|invalid x-api-key|incorrect api key|\
    invalid api key|authentication_error|authenticationerror";
const TOO_LONG: &str = "\
    context_length|exceed_context_size|contextwindowexceeded|context length|context window|\
    context size|prompt is too long|input is too long|too many tokens|reduce the length|\
    string_above_max_length";
const NO_MODEL: &str = "invalid model name|model_not_found|no such model";
/// Words of a bad request that is reported as a 500.
const VALIDATION: &str = "\
    validation error|pydantic|literal_error|input should be|only text and json_object|\
    unsupported tool_choice|requires --jinja|failed to parse grammar";
/// Words about the output mode. Such a refusal may not occur in the next mode.
const OUTPUT_MODE_WORDS: &str = "\
    tool_choice|tool choice|tool use|tool call|'tools'|`tools`|tools |tools[|: tools|\
    function call|function_|response_format|json_schema|json schema|json_object|strict|\
    parallel_tool_calls|grammar";

fn is_about_output_mode(said: &ServerError, rung: OutputMode) -> bool {
    let param = ["tool", "response_format", "parallel"];
    let named =
        said.names(OUTPUT_MODE_WORDS) || param.iter().any(|word| said.param.starts_with(word));
    // Text mode uses no special fields, so its refusal has another cause.
    rung != OutputMode::Text && (named || said.names("invalid schema|$ref"))
}

fn detail_of(
    kind: &ErrorKind,
    status: u16,
    said: &ServerError,
    asked: &RequestContext<'_>,
) -> String {
    let RequestContext { rung, model, host, key, api_key_env, source, gate } = *asked;
    let mut detail = format!("{host} answered {status}");
    for (label, code) in [("code", &said.code), ("type", &said.kind)] {
        if !code.is_empty() {
            let code = without_key(code, &code_of(key));
            let code = truncate::chars(&code, CODE_CHARS_MAX);
            detail.push_str(&format!(", {label} {code}"));
        }
    }
    let sentence = said.shown(gate, key);
    if !sentence.is_empty() {
        detail.push_str(&format!(": \"{sentence}\""));
    }
    let hint = match kind {
        ErrorKind::Unauthorised if api_key_env.is_empty() => {
            format!("; set `api_key_env` in {source} to the variable that holds the key")
        }
        ErrorKind::Unauthorised => {
            format!("; check the key in the variable {api_key_env} (settings: {source})")
        }
        ErrorKind::NotFound => format!(
            "; check `model` ({model}) and `base_url`, which usually ends in /v1, in \
             {source}: `annalist doctor` lists the models"
        ),
        ErrorKind::QuotaExhausted => {
            format!("; the account has no credit left: top it up, or change `base_url` in {source}")
        }
        ErrorKind::Unsupported => {
            format!(" to {} with model {model} (settings: {source})", rung.name())
        }
        ErrorKind::TooLong => format!(" for model {model}; lower `slice.tokens` in {source}"),
        ErrorKind::BadRequest => format!(" for model {model}; check `[model]` in {source}"),
        ErrorKind::RateLimited { .. } => {
            format!("; set `limits.requests_per_minute` in {source} to what the account allows")
        }
        ErrorKind::Unavailable { .. } => format!("; try again later (settings: {source})"),
        ErrorKind::NotAReply | ErrorKind::Stale | ErrorKind::Cancelled => String::new(),
    };
    detail + &hint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(rung: OutputMode, gate: &Gate) -> RequestContext<'_> {
        RequestContext {
            rung,
            model: "small",
            host: "here:1",
            key: "My-Plain_Gateway.Key",
            api_key_env: "MY_KEY",
            source: "annalist.toml",
            gate,
        }
    }

    #[track_caller]
    fn check(status: u16, body: &str, expected: ErrorKind) {
        check_on(OutputMode::ForcedTool, status, body, expected);
    }

    #[track_caller]
    fn check_on(rung: OutputMode, status: u16, body: &str, expected: ErrorKind) {
        let wait = Some(Duration::from_secs(9));
        let said = Box::new(ServerError::of(body.as_bytes()));
        let gate = Gate::new(&[]);
        let asked = context(rung, &gate);
        let error = Failure::Status { status, wait, said }.into_error(&asked);
        assert_eq!(error.kind, expected, "{status} {body}");
        assert!(error.detail.contains(&status.to_string()));
    }

    const WAIT: Option<Duration> = Some(Duration::from_secs(9));

    #[test]
    fn status_alone_tells() {
        check(401, "", ErrorKind::Unauthorised);
        check(403, "<html>hush</html>", ErrorKind::Unauthorised);
        check(402, "", ErrorKind::QuotaExhausted);
        check(404, "{\"detail\":\"Not Found\"}", ErrorKind::NotFound);
        check(405, "", ErrorKind::NotFound);
        check(301, "", ErrorKind::NotFound);
        check(413, "<html>", ErrorKind::TooLong);
        check(418, "hush", ErrorKind::BadRequest);
        check(429, "hush", ErrorKind::RateLimited { wait: WAIT });
        for status in [408, 409, 425, 500, 502, 503, 504, 529] {
            check(status, "hush", ErrorKind::Unavailable { wait: WAIT });
        }
    }

    #[test]
    fn quota_is_not_a_rate() {
        let body = r#"{"error":{"message":"hush","type":"insufficient_quota","code":null}}"#;
        check(429, body, ErrorKind::QuotaExhausted);
        check(
            429,
            r#"{"error":{"code":429,"message":"hush"}}"#,
            ErrorKind::RateLimited { wait: WAIT },
        );
    }

    #[test]
    fn refused_key_has_many_wordings() {
        let google = r#"[{"error":{"code":400,"message":"API key not valid. Please hush."}}]"#;
        check(400, google, ErrorKind::Unauthorised);
        let python = r#"{"error":{"message":"x - {'type': 'error', 'error': {'type': 'authentication_error', 'message': 'hush'}}"}}"#;
        check(500, python, ErrorKind::Unauthorised);
    }

    #[test]
    fn too_long_has_many_wordings() {
        for body in [
            r#"{"error":{"message":"hush","code":"context_length_exceeded"}}"#,
            r#"{"error":{"code":400,"message":"hush","type":"exceed_context_size_error"}}"#,
            r#"{"error":{"message":"litellm.ContextWindowExceededError: hush"}}"#,
            r#"{"detail":"This model's maximum context length is 10 tokens, hush"}"#,
            r#"[{"error":{"message":"prompt is too long: hush"}}]"#,
        ] {
            check(400, body, ErrorKind::TooLong);
        }
        check(429, r#"{"error":{"message":"Request too large for x"}}"#, ErrorKind::TooLong);
    }

    #[test]
    fn refused_way_of_asking_is_unsupported() {
        let message = |text: &str| serde_json::json!({"error": {"message": text}}).to_string();
        let flat = r#"{"object":"error","message":"hush","param":"tool_choice","code":400}"#;
        check(400, flat, ErrorKind::Unsupported);
        check(400, &message("'response_format' hush"), ErrorKind::Unsupported);
        check(400, &message("Unsupported $ref #"), ErrorKind::Unsupported);
        check(404, &message("No endpoints found that support tool use"), ErrorKind::Unsupported);
        check(500, &message("tools param requires --jinja flag"), ErrorKind::Unsupported);
        check(500, &message("pydantic: tool_choice: Input should be x"), ErrorKind::Unsupported);
        let fast_api = r#"{"detail":[{"loc":["body","tool_choice"],"msg":"Input should be"}]}"#;
        check(422, fast_api, ErrorKind::Unsupported);
        check_on(OutputMode::Text, 422, fast_api, ErrorKind::BadRequest);
        check_on(OutputMode::RequiredTool, 500, &message(""), ErrorKind::Unsupported);
        check(500, &message(""), ErrorKind::Unavailable { wait: WAIT });
    }

    #[test]
    fn other_refusals_stay_wrong() {
        let message = |text: &str| serde_json::json!({"error": {"message": text}}).to_string();
        check(400, &message("Invalid messages[1].content, hush"), ErrorKind::BadRequest);
        check(422, "hush", ErrorKind::BadRequest);
        let echo = r#"{"detail":[{"loc":["body","role"],"msg":"hm","input":"tool_choice"}]}"#;
        check(422, echo, ErrorKind::BadRequest);
        check(500, &message("1 validation error: role: hush"), ErrorKind::BadRequest);
        check(400, &message("Invalid model name passed in"), ErrorKind::NotFound);
    }

    #[test]
    fn error_names_what_mends_it() {
        let gate = Gate::new(&[]);
        let asked = context(OutputMode::Text, &gate);
        let of = |status, body: &str| {
            let said = Box::new(ServerError::of(body.as_bytes()));
            Failure::Status { status, wait: None, said }.into_error(&asked).detail
        };
        assert!(of(401, "").contains("MY_KEY"));
        assert!(of(404, "").contains("/v1") && of(404, "").contains("small"));
        let code = r#"{"error":{"code":"a b<c>_1","type":"x/y"}}"#;
        assert!(
            of(429, code).starts_with("here:1 answered 429, code abc_1, type xy; set `limits.")
        );
        let invalid = Failure::InvalidReply { what: WEB_PAGE }.into_error(&asked).detail;
        let all = [400, 401, 402, 404, 413, 422, 429, 500, 503].map(|status| of(status, ""));
        for detail in all.into_iter().chain([invalid]) {
            assert_eq!(detail.matches("; ").count(), 1, "one mend: {detail}");
            assert!(detail.contains("annalist.toml"), "the settings: {detail}");
        }
    }

    #[track_caller]
    fn check_sentence(body: &str, expected: &str) {
        let sentence = ServerError::of(body.as_bytes()).shown(&Gate::new(&[]), "");
        assert_eq!(sentence, expected, "{body}");
    }

    #[test]
    fn error_carries_the_sentence_of_the_server() {
        check_sentence(r#"{"error":{"message":"No such thing.","code":1}}"#, "No such thing");
        check_sentence(r#"{"error":"model 'x' not found"}"#, "model 'x' not found");
        check_sentence(
            r#"{"detail":[{"loc":["a"],"msg":"Field required","input":"w"}]}"#,
            "Field required",
        );
        check_sentence(
            "Client sent an HTTP request to an HTTPS server.\n",
            "Client sent an HTTP request to an HTTPS server",
        );
        check_sentence("<html><head><title>502 Bad Gateway</title></head><p>x", "502 Bad Gateway");
        check_sentence("<html>x", "");
        check_sentence("", "");
    }

    #[test]
    fn sentence_of_a_gateway_is_that_of_its_upstream() {
        let json = r#"{"error":{"message":"litellm.BadRequestError: OpenAIException - {\"error\":{\"message\":\"too hot\",\"code\":null}}"}}"#;
        check_sentence(json, "too hot");
        let python = r#"{"error":{"message":"litellm.APIError: Error code: 400 - {'error': {'message': 'too hot', 'code': None}}"}}"#;
        check_sentence(python, "too hot");
        check_sentence(r#"{"error":"{\"message\":\"too hot\"}"}"#, "too hot");
        check_sentence(r#"{"error":{"message":"in {braces} only"}}"#, "in {braces} only");
    }

    #[test]
    fn key_of_the_settings_is_never_repeated() {
        let gate = Gate::new(&[]);
        let asked = context(OutputMode::Text, &gate);
        let long = "x".repeat(50);
        for body in [
            r#"{"error":{"message":"no budget: My-Plain_Gateway.Key","code":"my-plain_gateway.key"}}"#,
            "refused: MY-PLAIN_GATEWAY.KEY",
            &format!(
                r#"{{"error":{{"code":"{long} My-Plain_Gateway.Key","type":"My-Plain_Gateway.Key"}}}}"#
            ),
        ] {
            let said = Box::new(ServerError::of(body.as_bytes()));
            let detail =
                Failure::Status { status: 400, wait: None, said }.into_error(&asked).detail;
            assert!(!detail.to_lowercase().contains("my-plain"), "{detail}");
        }
        assert_eq!(without_key("no ollama here", "ollama"), "no ollama here");
    }

    #[test]
    fn sentence_is_masked_and_bounded() {
        let key = format!("sk-proj-{}", "a1B2c3D4".repeat(6));
        let said = ServerError::of(format!("Incorrect API key provided: {key}").as_bytes());
        assert!(!said.shown(&Gate::new(&[]), "").contains(&key));
        let said = ServerError::of("word ".repeat(1_000).as_bytes());
        assert!(said.shown(&Gate::new(&[]), "").chars().count() <= SENTENCE_CHARS_MAX + 1);
    }
}
