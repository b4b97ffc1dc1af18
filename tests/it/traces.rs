//! Traces as a collector gets them: every call is a span by the GenAI conventions, under its job where
//! there is one, and no words of a conversation are in any byte of it.
//! A target of its own, since the feature `otel` builds everything again.
#![cfg(test)]
#![expect(dead_code, reason = "the other target uses the rest of these modules")]

mod input;
mod place;
#[path = "../../src/store/fixture/server.rs"]
mod server;
mod stub;

use self::input::{claude, extracted};
use self::place::{Place, records};
use self::stub::{Answer, Ask, Stub, error};
use annalist::Gate;
use annalist::JobOutcome;
use annalist::extraction_tool;
use annalist::{Endpoint, EndpointConfig};
use annalist::{JobSpan, Traces, TracesConfig};
use annalist::{LanguageModel, Message, OutputMode, Request, Role, Timestamp};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;

/// A span as it came.
#[derive(Clone, Debug, Default)]
struct Span {
    name: String,
    id: Vec<u8>,
    parent: Vec<u8>,
    kind: u64,
    status: u64,
    events: usize,
    attributes: BTreeMap<String, String>,
}

/// OTLP's number for the kind of a span that asks somebody else.
const CLIENT: u64 = 3;
/// The same for one that works on what was queued.
const CONSUMER: u64 = 5;
/// OTLP's number for the status of what failed.
const FAILED: u64 = 2;

/// A collector, which keeps what it gets.
struct Collector {
    stub: Stub,
    got: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    fn new() -> Collector {
        let got = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&got);
        let stub = Stub::new(move |ask| {
            assert_eq!(ask.path, "/v1/traces");
            assert!(ask.head.contains("content-type: application/x-protobuf"), "{}", ask.head);
            keeps.lock().unwrap().push(ask.bytes.clone());
            Answer::Status(200, "", String::new())
        });
        Collector { stub, got }
    }

    fn url(&self) -> &str {
        self.stub.url().strip_suffix("/v1").unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        self.got.lock().unwrap().concat()
    }

    /// The names and attributes of the process, and its spans.
    fn spans(&self) -> (BTreeMap<String, String>, Vec<Span>) {
        let (mut resource, mut spans) = (BTreeMap::new(), Vec::new());
        // Messages one after the other are one message with all their parts.
        for traced in bytes_of(&self.bytes(), 1) {
            for of in bytes_of(&traced, 1) {
                resource.extend(attributes(&of, 1));
            }
            for scope in bytes_of(&traced, 2) {
                spans.extend(bytes_of(&scope, 2).iter().map(|span| read_span(span)));
            }
        }
        (resource, spans)
    }
}

/// One field of a protobuf message.
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a protobuf message, as far as OTLP uses them.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return number;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            wire => {
                let length = match wire {
                    1 => 8,
                    5 => 4,
                    2 => usize::try_from(varint(&mut bytes)).unwrap(),
                    other => panic!("wire type {other}"),
                };
                let (inside, rest) = bytes.split_at(length);
                bytes = rest;
                match wire {
                    1 => Field::Number(u64::from_le_bytes(inside.try_into().unwrap())),
                    _ => Field::Bytes(inside.to_vec()),
                }
            }
        };
        found.push((tag >> 3, field));
    }
    found
}

fn bytes_of(message: &[u8], number: u64) -> Vec<Vec<u8>> {
    let fields = fields(message).into_iter().filter(|(at, _)| *at == number);
    let bytes = fields.filter_map(|(_, field)| match field {
        Field::Bytes(bytes) => Some(bytes),
        Field::Number(_) => None,
    });
    bytes.collect()
}

fn number_of(message: &[u8], number: u64) -> u64 {
    let mut fields = fields(message).into_iter().filter(|(at, _)| *at == number);
    match fields.next() {
        Some((_, Field::Number(number))) => number,
        Some((_, Field::Bytes(_))) | None => 0,
    }
}

fn text_of(message: &[u8], number: u64) -> String {
    bytes_of(message, number).concat().try_into().unwrap()
}

fn attributes(message: &[u8], number: u64) -> BTreeMap<String, String> {
    let attribute = |bytes: &Vec<u8>| {
        let value = bytes_of(bytes, 2).concat();
        (text_of(bytes, 1), shown(&value))
    };
    bytes_of(message, number).iter().map(attribute).collect()
}

/// A value as a person would write it; a list in brackets.
fn shown(value: &[u8]) -> String {
    match fields(value).into_iter().next() {
        Some((1, Field::Bytes(text))) => String::from_utf8(text).unwrap(),
        Some((3, Field::Number(number))) => number.to_string(),
        Some((4, Field::Number(bits))) => f64::from_bits(bits).to_string(),
        Some((5, Field::Bytes(list))) => {
            let values: Vec<String> = bytes_of(&list, 1).iter().map(|it| shown(it)).collect();
            format!("[{}]", values.join(","))
        }
        Some((kind, _)) => panic!("a value of kind {kind}"),
        None => String::new(),
    }
}

fn read_span(span: &[u8]) -> Span {
    Span {
        name: text_of(span, 5),
        id: bytes_of(span, 2).concat(),
        parent: bytes_of(span, 4).concat(),
        kind: number_of(span, 6),
        status: number_of(&bytes_of(span, 15).concat(), 3),
        events: bytes_of(span, 11).len(),
        attributes: attributes(span, 9),
    }
}

#[track_caller]
fn holds(span: &Span, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        let found = span.attributes.get(*key).map(String::as_str);
        assert_eq!(found, Some(*value), "{key} in {span:#?}");
    }
}

/// A model that says the words back in an error first, then answers well.
fn echo_then_answer(ask: &Ask) -> Answer {
    match ask.number {
        1 => Answer::Status(500, "", ask.body.to_string()),
        _ => Answer::Call(extracted(ask.slice())),
    }
}

#[test]
fn every_call_is_a_span_and_no_words_leave() {
    let (collector, model) = (Collector::new(), Stub::new(echo_then_answer));
    let mut place = Place::with_endpoint(model.url());
    place.set("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    place.set("OTEL_SERVICE_NAME", "night-shift");
    place.set("ANNALIST__MODEL__TEMPERATURE", "0.2");
    place.write("s.jsonl", claude(0..4));
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    assert_eq!(records(&totals), 4, "{totals}");
    let (resource, spans) = collector.spans();
    assert_eq!(resource["service.name"], "night-shift");
    assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
    // A replay drains its jobs as a worker does: each has a span, and its calls have theirs.
    let (jobs, spans): (Vec<_>, Vec<_>) = spans.into_iter().partition(|span| span.name == "job");
    assert_eq!((jobs.len(), spans.len()), (4, model.count()), "{spans:#?}");
    let (address, port) = model.url().strip_prefix("http://").unwrap().split_once(':').unwrap();
    let asked = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "stub-1"),
        ("gen_ai.request.temperature", "0.2"),
        ("server.address", address),
        ("server.port", port.strip_suffix("/v1").unwrap()),
        ("annalist.rung", "forced_tool"),
    ];
    for span in &spans {
        holds(span, &asked);
        assert!(span.attributes["gen_ai.request.max_tokens"].parse::<u32>().unwrap() > 0);
        assert_eq!((span.name.as_str(), span.kind, span.events), ("chat stub-1", CLIENT, 0));
    }
    let (failed, well): (Vec<_>, Vec<_>) = spans.iter().partition(|span| span.status == FAILED);
    assert_eq!(failed.len(), 1);
    holds(failed[0], &[("error.type", "unavailable")]);
    for span in well {
        let answered = [
            ("gen_ai.response.model", "stub-1"),
            ("gen_ai.response.finish_reasons", "[tool_calls]"),
            ("gen_ai.usage.input_tokens", "100"),
            ("gen_ai.usage.output_tokens", "10"),
        ];
        holds(span, &answered);
        assert!(!span.attributes.contains_key("error.type"));
    }
    no_words_left(&collector);
}

/// Neither the conversation nor what the model made of it.
#[track_caller]
fn no_words_left(collector: &Collector) {
    let bytes = collector.bytes();
    let said = String::from_utf8_lossy(&bytes);
    assert!(said.contains("gen_ai.usage.input_tokens"), "names are looked for as they are sent");
    for words in ["weather station", "depot-", "ruins paper", "We chose", "transcript"] {
        assert!(!said.contains(words), "`{words}` left");
    }
}

fn endpoint(url: &str) -> Endpoint {
    let config = EndpointConfig {
        base_url: url.to_owned(),
        api_key: None,
        source: String::new(),
        api_key_env: String::new(),
        connect_timeout: Duration::from_secs(60),
        read_timeout: Duration::from_secs(60),
        total_timeout: Duration::from_secs(60),
    };
    Endpoint::new(config, Gate::new(&[]), || Timestamp(0)).unwrap()
}

fn request(words: &str) -> Request {
    let content = Gate::new(&[]).redact(words);
    Request {
        model: "stub-1".to_owned(),
        messages: vec![Message { role: Role::User, content }],
        rung: OutputMode::JsonSchema,
        tool: extraction_tool(),
        reply_tokens_max: 500,
        temperature: None,
        generation: 0,
    }
}

#[test]
fn calls_stand_under_their_job() {
    let (collector, model) = (Collector::new(), Stub::good());
    let set =
        |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| collector.url().to_owned());
    let traces = Traces::start(&TracesConfig::of(set).unwrap().unwrap()).unwrap();
    let heard = tracing_subscriber::registry().with(traces.layer());
    let endpoint = endpoint(model.url());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(heard, || {
        let (well, dead) = (JobSpan::begin("a1", 1), JobSpan::begin("b2", 3));
        let ask = async {
            tracing::error!(target: "annalist::chat", "an event: We chose depot-1");
            drop(tracing::error_span!("foreign", words = "We chose depot-1").entered());
            endpoint.call(&request("We chose depot-1")).await.unwrap();
            let given_up = request("We chose");
            let mut call = pin!(endpoint.call(&given_up));
            // Begun and given up, however fast the answer comes.
            poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
        };
        runtime.block_on(ask.instrument(well.span()));
        well.ended(JobOutcome::Done, None);
        dead.ended(JobOutcome::Dead, Some("malformed"));
    });
    traces.flush().unwrap();
    let (resource, spans) = collector.spans();
    assert_eq!(resource["service.name"], "annalist");
    let job = |id: &str| {
        let mut jobs = spans.iter().filter(|span| span.name == "job");
        jobs.find(|span| span.attributes["annalist.job.id"] == id).unwrap().clone()
    };
    let (well, dead) = (job("a1"), job("b2"));
    holds(&well, &[("annalist.job.attempt", "1"), ("annalist.job.outcome", "done")]);
    holds(&dead, &[("annalist.job.outcome", "dead"), ("error.type", "malformed")]);
    assert_eq!((well.kind, well.status, well.events), (CONSUMER, 0, 0));
    assert_eq!((dead.status, dead.parent.len()), (FAILED, 0));
    let calls: Vec<&Span> = spans.iter().filter(|span| span.kind == CLIENT).collect();
    assert_eq!(calls.len(), 2, "{spans:#?}");
    assert!(calls.iter().all(|call| call.parent == well.id), "{spans:#?}");
    holds(calls[0], &[("gen_ai.output.type", "json"), ("gen_ai.usage.input_tokens", "100")]);
    holds(calls[1], &[("error.type", "cancelled")]);
    no_words_left(&collector);
}

#[test]
fn nothing_is_sent_unasked() {
    let (collector, model) = (Collector::new(), Stub::good());
    let mut place = Place::with_endpoint(model.url());
    place.set("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    place.set("OTEL_SDK_DISABLED", "true");
    place.write("s.jsonl", claude(0..1));
    assert_eq!(place.run(&["replay", "s.jsonl"]).code, 0);
    assert_eq!(collector.stub.count(), 0);
}

#[test]
fn collector_that_is_of_no_use_harms_nothing() {
    let model = Stub::good();
    for collector in [Stub::new(|_| Answer::Hold), Stub::new(|_| error(503, "overloaded"))] {
        let mut place = Place::with_endpoint(model.url());
        place.set("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
        place.write("s.jsonl", claude(0..1));
        let output = place.run(&["replay", "s.jsonl"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(output.stderr.contains("the last traces were not sent"), "{}", output.stderr);
        assert!(collector.count() > 0);
    }
    let mut place = Place::with_endpoint(model.url());
    place.set("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318");
    let output = place.run(&["replay", "--help"]);
    assert_eq!(output.code, 0);
    let output = place.run(&["status"]);
    assert!(output.stderr.contains("no traces are sent: OTEL_EXPORTER_OTLP_ENDPOINT"));
}
