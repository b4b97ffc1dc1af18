//! Everything that servers do wrong, through the whole command: what recovers is recovered, what does
//! not ends with its reason, and the totals balance every time.

use super::input::claude;
use super::place::{Output, Place, balanced, count, records};
use super::stub::{Answer, Stub, error};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// What a fault comes to when nothing else is ever answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lasting {
    /// It is no fault to us: put right, or waited for.
    Fine,
    /// Every slice fails for this reason.
    Dead(&'static str),
    /// The work stops with a line that says what mends it.
    Stops(&'static str),
}

use Lasting::{Dead, Fine, Stops};

/// Each fault when it lasts. Once, followed by a good answer, it is recovered from unless it lasts
/// by its nature: those are [`Stops`], a bad request, a refusal, and what is taken as it is.
const EXPECTED: &[(&str, Lasting)] = &[
    ("http_400", Dead("bad-request")),
    ("http_400_context", Dead("too-long")),
    ("http_401", Stops("key")),
    ("http_404", Stops("annalist doctor")),
    ("http_408", Dead("unavailable")),
    ("http_413", Dead("too-long")),
    ("http_422", Dead("bad-request")),
    ("http_429", Dead("rate-limited")),
    ("http_429_bare", Dead("rate-limited")),
    ("http_429_quota", Stops("no credit left")),
    ("http_429_date", Dead("rate-limited")),
    ("http_429_gateway", Dead("rate-limited")),
    ("http_429_cooldown", Dead("rate-limited")),
    ("http_500_validation", Dead("bad-request")),
    ("http_500", Dead("unavailable")),
    ("http_502", Dead("unavailable")),
    ("http_503", Dead("unavailable")),
    ("http_529", Dead("unavailable")),
    ("conn_close", Dead("unavailable")),
    ("drop_body", Dead("unavailable")),
    ("hang", Dead("unavailable")),
    ("stall_body", Dead("unavailable")),
    ("slow_body", Fine),
    ("trunc_args", Dead("cut-off")),
    ("wrong_tool", Fine),
    ("no_tool", Dead("no-call")),
    ("extra_field", Fine),
    ("wrong_type", Fine),
    ("missing_field", Fine),
    ("bad_enum", Fine),
    ("empty_args", Dead("no-call")),
    ("null_args", Dead("malformed")),
    ("args_object", Fine),
    ("args_twice", Fine),
    ("fenced", Fine),
    ("think", Fine),
    ("refusal", Dead("refused")),
    ("refusal_nested", Dead("refused")),
    ("content_filter", Dead("refused")),
    ("empty_choices", Dead("no-call")),
    ("null_message", Dead("no-call")),
    ("length", Dead("cut-off")),
    ("dup_calls", Fine),
    ("many_calls", Fine),
    ("stop_reason", Fine),
    ("legacy_call", Fine),
    ("no_ids", Fine),
    ("bad_utf8", Fine),
    ("lone_surrogate", Fine),
    ("nul_char", Fine),
    ("nan", Fine),
    ("dup_keys", Fine),
    ("deep_nest", Fine),
    ("big_body", Fine),
    ("empty_body", Dead("not-a-reply")),
    ("html_200", Dead("not-a-reply")),
    ("error_200", Dead("unavailable")),
    ("bad_json", Dead("not-a-reply")),
    ("sse_error", Fine),
    ("sse_no_done", Fine),
    ("sse_repeat", Fine),
    ("sse_odd", Fine),
];

/// Faults that are not asked about in the same words again: the next question is another one, and the
/// server begins it with the fault too; or it would be useless; or the wait is longer than ours.
const NOT_THE_SAME_AGAIN: [&str; 16] = [
    "http_400", "http_400_context", "http_413", "http_422", "http_500_validation",
    "http_429_cooldown", "no_tool", "empty_args", "null_args", "refusal", "refusal_nested",
    "content_filter", "empty_choices", "null_message", "trunc_args", "length",
];

/// The server that misbehaves on purpose; ends with the test.
pub(crate) struct Mock {
    child: Child,
    pub(crate) url: String,
}

impl Mock {
    /// Starts it; none where there is no binary.
    #[expect(clippy::print_stderr, reason = "says why nothing was tested")]
    pub(crate) fn start(arguments: &[&str]) -> Option<Mock> {
        let Some(binary) = std::env::var_os("ANNALIST_MOCKLLM") else {
            eprintln!("not tested: ANNALIST_MOCKLLM names no server");
            return None;
        };
        let mut command = Command::new(binary);
        command.args(["--port", "0", "--threads", "1"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, port) = line.split_once("127.0.0.1:").expect("the server says where it is");
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        Some(Mock { child, url: format!("http://127.0.0.1:{port}/v1") })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A session of one slice, asked about at `url` with short patience.
fn hasty(url: &str) -> Place {
    let mut place = Place::with_endpoint(url);
    place.set("ANNALIST__SLICE__TOKENS", "700");
    place.set("ANNALIST__LIMITS__TRIES_MAX", "2");
    place.set("ANNALIST__LIMITS__WAIT_SECS_MAX", "2");
    place.set("ANNALIST__MODEL__TIMEOUT_SECS", "1");
    place.write("s.jsonl", claude(0..2));
    place
}

fn replay(place: &Place) -> Output {
    place.run(&["replay", "s.jsonl", "--json"])
}

/// What is wrong with how a lasting fault ended, if anything is.
fn wrong(expected: Lasting, output: &Output) -> Option<String> {
    let totals = output.json();
    balanced(&totals);
    let failures = totals["failures"].as_object().unwrap();
    let failed = count(&totals, "/coverage/failed");
    let right = match expected {
        Fine => output.code == 0 && failed == 0,
        Dead(reason) => {
            let all = count(&totals, "/entries");
            output.code == 1 && failed == all && failures.keys().eq([reason])
        }
        Stops(line) => {
            let waits = count(&totals, "/coverage/pending") == count(&totals, "/entries");
            let said = output.stderr.lines().any(|it| it.contains("stopped:") && it.contains(line));
            output.code == 1 && waits && said
        }
    };
    (!right).then(|| format!("{expected:?}, found code {} {totals} {}", output.code, output.stderr))
}

/// Runs `check` for each fault, a few at once.
pub(crate) fn each_fault(check: impl Fn(&str, Lasting) -> Option<String> + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let problems = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    let Some((fault, expected)) = EXPECTED.get(at) else { return };
                    if let Some(problem) = check(fault, *expected) {
                        problems.lock().unwrap().push(format!("{fault}: {problem}"));
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn fault_that_lasts_ends_with_its_reason() {
    if Mock::start(&[]).is_none() {
        return;
    }
    each_fault(|fault, expected| {
        let arguments = [&format!("{fault}=1"), "200", "1"].map(str::to_owned);
        let [fault, slow, wait] = &arguments;
        let server =
            Mock::start(&["--fault", fault, "--slow-body-ms", slow, "--retry-after", wait])?;
        wrong(expected, &replay(&hasty(&server.url)))
    });
}

#[test]
fn fault_that_passes_is_recovered_from() {
    if Mock::start(&[]).is_none() {
        return;
    }
    each_fault(|fault, expected| {
        let script = format!("{fault},ok");
        let server = Mock::start(&["--script", &script, "--slow-body-ms", "200"])?;
        let mut place = hasty(&server.url);
        // The longest wait that is asked for is 5 s; nothing is waited for that long.
        place.set("ANNALIST__LIMITS__WAIT_SECS_MAX", "4");
        let output = replay(&place);
        let lasting = match expected {
            Stops(_) => expected,
            Dead(_) if NOT_THE_SAME_AGAIN.contains(&fault) => expected,
            Fine | Dead(_) => Fine,
        };
        wrong(lasting, &output)
    });
}

#[test]
fn every_fault_of_the_server_is_expected() {
    let Some(binary) = std::env::var_os("ANNALIST_MOCKLLM") else { return };
    let listed = Command::new(binary).arg("--list-faults").output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    for fault in listed.lines().filter_map(|line| line.split_whitespace().next()) {
        assert!(EXPECTED.iter().any(|(name, _)| *name == fault), "{fault} is not expected");
    }
}

#[test]
fn endpoint_that_asks_for_no_wait_for_ever_is_given_up() {
    for headers in ["retry-after: 0\r\n", "retry-after: Thu, 01 Jan 2026 00:00:00 GMT\r\n", ""] {
        let stub = Stub::new(move |_| Answer::Status(429, headers, String::new()));
        let mut place = hasty(stub.url());
        place.set("ANNALIST__LIMITS__WAIT_SECS_MAX", "1");
        let output = replay(&place);
        assert_eq!(wrong(Dead("rate-limited"), &output), None);
        assert!(output.stderr.contains("limits.wait_secs_max"), "{}", output.stderr);
        assert!(stub.count() < 10, "{} requests in a second", stub.count());
    }
}

#[test]
fn rate_limit_charges_no_try_and_is_waited_out() {
    let stub = Stub::new(|ask| match ask.number {
        1..=4 => Answer::Status(429, "retry-after: 0.06\r\n", String::new()),
        _ => ask.good(),
    });
    let place = hasty(stub.url());
    let totals = replay(&place);
    assert_eq!(wrong(Fine, &totals), None);
    assert_eq!(records(&totals.json()), 2);
    let status = place.json(&["status", "--json"]);
    let bill = status["bill"].as_array().unwrap().iter();
    let failed: Vec<u64> =
        bill.filter(|it| it["for"] == "failed").map(|it| count(it, "/calls")).collect();
    assert_eq!((failed, count(&status, "/spent/calls")), (vec![4], stub.count() as u64));
    assert!(place.run(&["status"]).stdout.contains("4 calls failed, counted at no cost"));
}

#[test]
fn failure_that_passes_is_tried_again_and_one_that_lasts_is_dead() {
    type Script = fn(usize) -> Answer;
    let scripts: [(Script, &str); 4] = [
        (|_| error(500, "server_error"), "unavailable"),
        (|_| Answer::Raw(Vec::new()), "unavailable"),
        (
            |_| Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choi".to_vec()),
            "unavailable",
        ),
        (|_| Answer::Status(200, "", "<html>".to_owned()), "not-a-reply"),
    ];
    for (script, kind) in scripts {
        let once = Stub::new(move |ask| if ask.number == 1 { script(1) } else { ask.good() });
        assert_eq!(wrong(Fine, &replay(&hasty(once.url()))), None);
        let always = Stub::new(move |ask| script(ask.number));
        let place = hasty(always.url());
        assert_eq!(wrong(Dead(kind), &replay(&place)), None);
        assert_eq!(always.count(), 2, "limits.tries_max");
    }
}

#[test]
fn a_permanent_failure_stops_with_the_command_that_fixes_it() {
    for (status, code, line) in [
        (401, "invalid_api_key", "api_key_env"),
        (404, "model_not_found", "annalist doctor"),
        (429, "insufficient_quota", "no credit left"),
    ] {
        let stub = Stub::new(move |_| error(status, code));
        let place = hasty(stub.url());
        place.write("s.jsonl", claude(0..30));
        assert_eq!(wrong(Stops(line), &replay(&place)), None);
        assert!(stub.count() <= 10, "{status}: {} requests", stub.count());
        let told = place.run(&["status"]);
        let stopped = told.stdout.lines().find(|it| it.starts_with("stopped ")).unwrap();
        assert_eq!((told.code, stopped.contains(line)), (1, true), "{stopped}");
        let again = place.run(&["replay", "s.jsonl"]).stdout;
        assert!(again.contains("   waiting "), "{again}");
    }
}

#[test]
fn what_stopped_a_replay_is_told_until_one_works() {
    let stub = Stub::new(|ask| match ask.number {
        1 => error(401, "invalid_api_key"),
        _ => ask.good(),
    });
    let place = hasty(stub.url());
    place.write("s.jsonl", claude(0..1));
    assert_eq!(wrong(Stops("key"), &replay(&place)), None);
    assert_eq!(place.run(&["status"]).code, 1);
    assert_eq!(wrong(Fine, &replay(&place)), None);
    assert_eq!(place.run(&["status"]).code, 0);
}

#[test]
fn key_is_sent_from_its_variable_and_kept_nowhere() {
    let key = "k-7f2c9a4e1b";
    let stub = Stub::new(move |ask| match ask.head.contains(&format!("bearer {key}")) {
        true => ask.good(),
        false => error(401, "invalid_api_key"),
    });
    let mut place = hasty(stub.url());
    place.set("ANNALIST__MODEL__API_KEY_ENV", "ROOF_KEY");
    place.set("ROOF_KEY", key);
    place.set("ANNALIST_LOG", "trace");
    let output = replay(&place);
    assert_eq!(wrong(Fine, &Output { stderr: String::new(), ..output }), None);
    for (path, bytes) in place.files() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(key), "the key in {}", path.display());
    }
    let output = replay(&place);
    assert!(!output.stderr.contains(key) && !output.stdout.contains(key), "the key in the log");
}

#[test]
fn words_of_a_conversation_are_in_no_log() {
    let stub = Stub::good();
    let mut place = hasty(stub.url());
    place.set("ANNALIST_LOG", "trace");
    let output = replay(&place);
    assert_eq!(output.code, 0);
    assert!(!output.stderr.is_empty());
    for words in ["weather station", "depot-1", "ruins paper"] {
        assert!(!output.stderr.contains(words), "`{words}` in the log");
    }
}

#[test]
fn answer_that_is_none_is_asked_for_again() {
    let message = |message: &str| {
        format!("{{\"choices\":[{{\"message\":{message},\"finish_reason\":\"stop\"}}]}}")
    };
    let call = |name: &str, arguments: &str| {
        message(&format!(
            "{{\"tool_calls\":[{{\"function\":{{\"name\":\"{name}\",\"arguments\":{arguments}}}}}]}}"
        ))
    };
    for (bad, why) in [
        (message("{\"content\":\"There is much to say about roofs.\"}"), "prose"),
        (message("null"), "no message"),
        ("{\"choices\":[]}".to_owned(), "no choices"),
        (call("write_extracted", "\"\""), "nothing handed over"),
        (call("write_extracted", "\"null\""), "null handed over"),
        (call("search_web", "\"{\\\"query\\\":1}\""), "another tool"),
        (call("write_extracted", "\"{\\\"decisions\\\":[{\\\"options\\\":[\\\"de\""), "cut"),
        (call("write_extracted", "\"{\\\"decisions\\\":[{\\\"chosen\\\":7}]}\""), "a wrong type"),
    ] {
        let stub = Stub::new(move |ask| match ask.number {
            1 => Answer::Status(200, "", bad.clone()),
            _ => ask.good(),
        });
        let place = hasty(stub.url());
        let output = replay(&place);
        assert_eq!(wrong(Fine, &output), None, "{why}");
        assert_eq!((records(&output.json()), stub.count()), (2, 2), "{why}");
        let again = replay(&place).json();
        assert_eq!((count(&again, "/calls"), stub.count()), (0, 2), "{why}");
    }
}

#[test]
fn endpoint_that_stays_down_ends_the_work_and_the_same_command_goes_on() {
    for status in [500, 429] {
        let headers = "retry-after: 3600\r\n";
        let stub = Stub::new(move |ask| match ask.number {
            ..=40 => Answer::Status(status, headers, String::new()),
            _ => ask.good(),
        });
        let mut place = hasty(stub.url());
        place.set("ANNALIST__MODEL__CONCURRENCY", "1");
        place.set("ANNALIST__SLICE__TOKENS", "400");
        place.write("s.jsonl", claude(0..40));
        let output = replay(&place);
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert!(output.stderr.contains("run the same command again"), "{}", output.stderr);
        balanced(&output.json());
        assert!(count(&output.json(), "/coverage/pending") > 0, "{}", output.stdout);
        assert!(output.stderr.contains("3600 s"), "the wait that is asked for: {}", output.stderr);
        assert!(output.stderr.contains("0 s of waiting"), "{}", output.stderr);
        let asked = stub.count();
        assert!(asked <= 8, "{status}: {asked} requests");
        // It comes back: what failed and what waited is asked about.
        while stub.count() < 40 {
            knock(&stub);
        }
        let whole = replay(&place);
        assert_eq!(wrong(Fine, &whole), None);
        assert_eq!(records(&whole.json()), 40);
    }
}

/// A request of nobody's.
fn knock(stub: &Stub) {
    use std::io::{Read, Write};
    let host = stub.url().trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.write_all(b"GET /v1 HTTP/1.1\r\ncontent-length: 0\r\n\r\n").unwrap();
    stream.read_exact(&mut [0]).unwrap();
}
