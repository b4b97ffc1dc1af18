//! Every fault between client and server, once each, against a server that injects it. Runs if
//! `ANNALIST_MOCKLLM` names the server's binary.

use super::openai::{Endpoint, EndpointConfig};
use super::probe::probe;
use super::wire::request_tests::question;
use crate::domain::{ErrorKind, LanguageModel, ModelError, OutputMode, Reply, Request, Timestamp};
use crate::privacy::Gate;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The clock of the fault table: waits that are given as a date are long past.
const LATE: Timestamp = Timestamp(4_000_000_000_000);

/// Outcome of each fault. `call(n)` is a tool call with JSON arguments, `cut(n)` one without.
const EXPECTED: &[(&str, &str)] = &[
    ("http_400", "bad-request"),
    ("http_400_context", "too-long"),
    ("http_401", "unauthorised"),
    ("http_404", "not-found"),
    ("http_408", "unavailable"),
    ("http_413", "too-long"),
    ("http_422", "unsupported"),
    ("http_429", "rate-limited 1000 ms"),
    ("http_429_bare", "rate-limited"),
    ("http_429_quota", "quota-exhausted"),
    ("http_429_date", "rate-limited 0 ms"),
    ("http_429_gateway", "rate-limited 1000 ms"),
    ("http_429_cooldown", "rate-limited 5000 ms"),
    ("http_500_validation", "unsupported"),
    ("http_500", "unavailable"),
    ("http_502", "unavailable"),
    ("http_503", "unavailable 1000 ms"),
    ("http_529", "unavailable"),
    ("conn_close", "unavailable"),
    ("drop_body", "unavailable"),
    ("hang", "unavailable"),
    ("stall_body", "unavailable"),
    ("slow_body", "call(1) tool_calls"),
    ("trunc_args", "cut(1) tool_calls"),
    ("wrong_tool", "call(1) tool_calls"),
    ("no_tool", "words stop"),
    ("extra_field", "call(1) tool_calls"),
    ("wrong_type", "call(1) tool_calls"),
    ("missing_field", "call(1) tool_calls"),
    ("bad_enum", "call(1) tool_calls"),
    ("empty_args", "cut(1) tool_calls"),
    ("null_args", "call(1) tool_calls"),
    ("args_object", "call(1) tool_calls"),
    ("args_twice", "call(1) tool_calls"),
    ("fenced", "words stop"),
    ("think", "call(1) tool_calls"),
    ("refusal", "refused stop"),
    ("refusal_nested", "refused stop"),
    ("content_filter", "nothing content_filter"),
    ("empty_choices", "nothing other"),
    ("null_message", "nothing tool_calls"),
    ("length", "cut(1) length"),
    ("dup_calls", "call(2) tool_calls"),
    ("many_calls", "call(64) tool_calls"),
    ("stop_reason", "call(1) stop"),
    ("legacy_call", "call(1) tool_calls"),
    ("no_ids", "call(1) tool_calls"),
    ("bad_utf8", "call(1) tool_calls"),
    ("lone_surrogate", "cut(1) tool_calls"),
    ("nul_char", "call(1) tool_calls"),
    ("nan", "cut(1) tool_calls"),
    ("dup_keys", "call(1) tool_calls"),
    ("deep_nest", "cut(1) tool_calls"),
    ("big_body", "call(1) tool_calls"),
    ("empty_body", "not-a-reply"),
    ("html_200", "not-a-reply"),
    ("error_200", "unavailable"),
    ("bad_json", "not-a-reply"),
    ("sse_error", "call(1) tool_calls"),
    ("sse_no_done", "call(1) tool_calls"),
    ("sse_repeat", "call(1) tool_calls"),
    ("sse_odd", "call(1) tool_calls"),
];

/// A running server; killed when dropped.
struct Server {
    child: Child,
    port: String,
}

impl Server {
    /// Starts the server with `arguments`; `None` without a binary.
    #[expect(clippy::print_stderr, reason = "says why nothing was tested")]
    fn start(arguments: &[&str]) -> Option<Server> {
        let Some(binary) = std::env::var_os("ANNALIST_MOCKLLM") else {
            eprintln!("not tested: ANNALIST_MOCKLLM names no server");
            return None;
        };
        let mut command = Command::new(binary);
        command.args(["--port", "0"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let digits = |c: &char| c.is_ascii_digit();
        let (_, port) = line.split_once("127.0.0.1:").unwrap_or(("", &line));
        Some(Server { port: port.chars().take_while(digits).collect(), child })
    }

    fn endpoint(&self, timeout: Duration) -> Endpoint {
        let config = EndpointConfig {
            base_url: format!("http://127.0.0.1:{}/v1/", self.port),
            api_key: Some("key".to_owned()),
            source: String::new(),
            api_key_env: "MY_KEY".to_owned(),
            connect_timeout: timeout,
            read_timeout: timeout,
            total_timeout: timeout * 2,
        };
        Endpoint::new(config, Gate::new(&[]), || LATE).unwrap()
    }

    fn patient(&self) -> Endpoint {
        self.endpoint(Duration::from_secs(60))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn outcome(reply: &Result<Reply, ModelError>) -> String {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            return match error.kind {
                ErrorKind::RateLimited { wait: Some(wait) }
                | ErrorKind::Unavailable { wait: Some(wait) } => {
                    format!("{} {} ms", error.kind.name(), wait.as_millis())
                }
                ErrorKind::RateLimited { wait: None }
                | ErrorKind::Unavailable { wait: None }
                | ErrorKind::NotAReply
                | ErrorKind::QuotaExhausted
                | ErrorKind::TooLong
                | ErrorKind::Unsupported
                | ErrorKind::Unauthorised
                | ErrorKind::NotFound
                | ErrorKind::BadRequest
                | ErrorKind::Stale
                | ErrorKind::Cancelled => error.kind.name().to_owned(),
            };
        }
    };
    let whole = reply
        .calls
        .iter()
        .all(|call| serde_json::from_str::<serde_json::Value>(call.arguments.as_str()).is_ok());
    let said = match reply.calls.len() {
        0 if reply.refusal.is_some() => "refused".to_owned(),
        0 if reply.content.is_empty() => "nothing".to_owned(),
        0 => "words".to_owned(),
        count if whole => format!("call({count})"),
        count => format!("cut({count})"),
    };
    format!("{said} {}", reply.finish.name())
}

fn faulty(fault: &str) -> Request {
    Request { model: format!("mock/fault={fault}"), ..question(OutputMode::ForcedTool) }
}

#[tokio::test]
async fn every_fault_has_its_outcome() {
    let Some(server) = Server::start(&["--slow-body-ms", "200"]) else { return };
    let (patient, hasty) = (server.patient(), server.endpoint(Duration::from_millis(300)));
    let mut wrong = Vec::new();
    for (fault, expected) in EXPECTED {
        let silent = matches!(*fault, "hang" | "stall_body");
        let endpoint = if silent { &hasty } else { &patient };
        let reply = endpoint.call(&faulty(fault)).await;
        let found = outcome(&reply);
        if found != *expected {
            wrong.push(format!("{fault}: expected {expected}, found {found} {reply:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_fault_of_the_server_is_expected() {
    let Some(binary) = std::env::var_os("ANNALIST_MOCKLLM") else { return };
    let listed = Command::new(binary).arg("--list-faults").output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    for fault in listed.lines().filter_map(|line| line.split_whitespace().next()) {
        let known = EXPECTED.iter().any(|(name, _)| *name == fault.trim_end_matches(':'));
        assert!(known, "{fault} has no expected outcome");
    }
}

#[tokio::test]
async fn refused_fields_are_left_out_and_refused_ways_are_unsupported() {
    let fields = "max_tokens,parallel_tool_calls,temperature,strict";
    for (refused, rung, expected) in [
        (fields, OutputMode::ForcedTool, "call(1) tool_calls"),
        ("tool_choice_named", OutputMode::ForcedTool, "unsupported"),
        ("tool_choice_named", OutputMode::RequiredTool, "call(1) tool_calls"),
        ("tool_choice_required", OutputMode::RequiredTool, "unsupported"),
        ("tools", OutputMode::OfferedTool, "unsupported"),
        ("json_schema", OutputMode::JsonSchema, "unsupported"),
        ("json_schema", OutputMode::JsonObject, "words stop"),
        ("response_format", OutputMode::JsonObject, "unsupported"),
    ] {
        let Some(server) = Server::start(&["--reject", refused]) else { return };
        let reply = server.patient().call(&question(rung)).await;
        assert_eq!(outcome(&reply), expected, "{refused} {reply:?}");
    }
}

#[tokio::test]
async fn probe_finds_the_best_rung() {
    for (refused, best) in [
        ("", OutputMode::ForcedTool),
        ("tool_choice_named", OutputMode::RequiredTool),
        ("tool_choice", OutputMode::JsonSchema),
        ("tools,json_schema", OutputMode::JsonObject),
        ("tools,response_format", OutputMode::Text),
    ] {
        let Some(server) = Server::start(&["--reject", refused]) else { return };
        let found = probe(&server.patient(), "mock-small", |_| {}).await;
        assert_eq!(found.best, Some(best), "{refused} {found:#?}");
        assert!(found.models.is_some_and(|names| names.len() == 3));
        assert_eq!(found.reply_model.as_deref(), Some("mock-small"));
    }
}

#[tokio::test]
async fn wrong_key_names_its_variable() {
    let Some(server) = Server::start(&["--api-key", "other"]) else { return };
    let found = probe(&server.patient(), "mock-small", |_| {}).await;
    assert!(!found.reachable.ok && found.best.is_none());
    let error = found.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Unauthorised);
    assert!(error.detail.contains("MY_KEY"), "{}", error.detail);
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let config = EndpointConfig {
        // Port 9 is the discard service, which nothing runs.
        base_url: "http://127.0.0.1:9/v1".to_owned(),
        api_key: None,
        source: String::new(),
        api_key_env: String::new(),
        connect_timeout: Duration::from_secs(5),
        read_timeout: Duration::from_secs(5),
        total_timeout: Duration::from_secs(5),
    };
    let endpoint = Endpoint::new(config, Gate::new(&[]), || LATE).unwrap();
    let reply = endpoint.call(&question(OutputMode::Text)).await;
    assert_eq!(outcome(&reply), "unavailable");
    assert!(reply.unwrap_err().detail.contains("127.0.0.1:9"));
}
