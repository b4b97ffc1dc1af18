//! `annalist serve` and `annalist token`, as other machines use them.

use super::place::{Place, count};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// A server under way; killed when it is dropped.
struct Served {
    child: Child,
    /// Address of the intake, without `/v1`.
    url: String,
    /// Lines that it said at its start.
    said: Vec<String>,
    /// Lines after those.
    log: Lines<BufReader<ChildStderr>>,
    client: Client,
}

impl Served {
    async fn start(place: &Place, args: &[&str]) -> Served {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listen = ["serve", "--listen", "127.0.0.1:0"];
        let mut command = Command::from(place.command(&[&listen, args].concat()));
        let mut child = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        while !said.last().is_some_and(|line: &String| line.contains("page")) {
            said.push(lines.next_line().await.unwrap().unwrap());
        }
        let url = said[0].strip_prefix("API at ").unwrap().strip_suffix("/v1").unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        Served { child, url: url.to_owned(), said, log: lines, client }
    }

    fn ask(&self, method: Method, path: &str, token: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        request.header("authorization", format!("Bearer {token}"))
    }

    async fn post(&self, path: &str, token: &str, body: impl Into<reqwest::Body>) -> Response {
        self.ask(Method::POST, path, token).body(body).send().await.unwrap()
    }

    async fn taken(&self, path: &str, token: &str, body: impl Into<reqwest::Body>) -> Value {
        let response = self.post(path, token, body).await;
        assert_eq!(response.status(), 202);
        serde_json::from_str(&response.text().await.unwrap()).unwrap()
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// A new token of the namespace `roofs`.
fn token(place: &Place, name: &str, can: &str) -> String {
    let args = ["token", "new", name, "--namespace", "roofs", "--can", can, "--json"];
    place.json(&args)["token"].as_str().unwrap().to_owned()
}

/// A slice document of one session.
fn document(session: &str, words: &str) -> Value {
    json!({"session": session, "namespace": "theirs", "closed": true, "entries": [
        {"speaker": "person", "text": format!("{words}: use slate, not tin")},
        {"speaker": "assistant", "text": "Slate it is."},
    ]})
}

/// A line of Claude Code's.
const CLAUDE_CODE: &str = r#"{"type":"user","sessionId":"s","uuid":"u","timestamp":"2026-01-01T00:00:00Z","cwd":"/w","version":"2.1.0","message":{"role":"user","content":"Use slate"}}"#;

/// The line of an error: status, and what is wrong where.
async fn refusal(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    let error = &body["error"];
    assert!(error["expected"].is_string(), "{body}");
    (status, format!("{}: {}", error["where"].as_str().unwrap(), error["what"].as_str().unwrap()))
}

#[test]
fn what_is_sent_again_is_answered_with_the_same_jobs() {
    let mut place = Place::new();
    place.set("ANNALIST__SLICE__TOKENS", "1000");
    let token = token(&place, "laptop", "write");
    let lines = ["one", "two", "one"].map(|it| document(it, it).to_string()).join("\n");
    let talk = super::input::claude(0..20);
    let jobs = |it: &Value| -> Vec<Value> {
        it["sessions"].as_array().unwrap().iter().map(|it| it["job_ids"].clone()).collect()
    };
    run(async {
        let served = Served::start(&place, &[]).await;
        for (path, sent) in [("/v1/slices", lines), ("/v1/transcripts?name=t.jsonl", talk)] {
            let first = served.taken(path, &token, sent.clone()).await;
            let again = served.taken(path, &token, sent).await;
            assert_eq!(jobs(&first), jobs(&again), "{path}");
            assert!(count(&first, "/jobs") > 1 && count(&first, "/known") == 0, "{first}");
            assert_eq!(count(&first, "/jobs"), count(&again, "/known"), "{again}");
            assert_eq!([count(&again, "/jobs"), count(&again, "/entries")], [0, 0], "{again}");
        }
    });
}

#[test]
fn documents_are_taken_in_once_and_in_the_namespace_of_the_token() {
    let place = Place::new();
    let token = token(&place, "laptop", "write");
    let lines = ["one", "two", "one"].map(|it| document(it, it).to_string()).join("\n");
    let taken = run(async {
        let served = Served::start(&place, &[]).await;
        let taken = served.taken("/v1/slices", &token, lines.clone()).await;
        assert_eq!([count(&taken, "/jobs"), count(&taken, "/entries")], [2, 4], "{taken}");
        assert_eq!(count(&taken, "/documents_known"), 1, "{taken}");
        let again = served.taken("/v1/slices", &token, lines).await;
        assert_eq!([count(&again, "/jobs"), count(&again, "/documents_known")], [0, 3], "{again}");
        taken
    });
    let sessions = taken["sessions"].as_array().unwrap();
    let mut sent: Vec<&Value> =
        sessions.iter().flat_map(|it| it["job_ids"].as_array()).flatten().collect();
    let jobs = place.json(&["jobs", "--json"]);
    let mut queued: Vec<&Value> = jobs.as_array().unwrap().iter().map(|job| &job["job"]).collect();
    sent.sort_by_key(ToString::to_string);
    queued.sort_by_key(ToString::to_string);
    assert_eq!(sent, queued);
    let wrong = "SELECT count(*) FROM sessions WHERE namespace <> 'roofs' OR path <> 'http:laptop'";
    assert_eq!(place.number(wrong), 0);
    let speakers = "SELECT count(DISTINCT speaker) FROM entries";
    assert_eq!(place.number(speakers), 2, "the token is no speaker");
}

#[test]
fn a_transcript_is_read_as_its_file_is() {
    let (there, here) = (Place::new(), Place::new());
    let file = format!("{}/examples/sessions", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_dir(file).unwrap().map(|it| it.unwrap().path()).min().unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let enqueued = here.json(&["enqueue", file.to_str().unwrap(), "--json"]);
    let token = token(&there, "laptop", "write");
    run(async {
        let served = Served::start(&there, &[]).await;
        let path = format!("/v1/transcripts?name=/home/me/{name}");
        let bytes = std::fs::read(&file).unwrap();
        let taken = served.taken(&path, &token, bytes.clone()).await;
        for number in ["/entries", "/jobs"] {
            assert_eq!(count(&taken, number), count(&enqueued, number), "{number}: {taken}");
        }
        assert!(0 < count(&taken, "/entries"), "{taken}");
        assert_eq!(taken["sessions"][0]["path"], format!("http:laptop/{name}"));
        let again = served.taken(&path, &token, bytes).await;
        assert_eq!([count(&again, "/jobs"), count(&again, "/entries")], [0, 0], "{again}");
    });
}

#[test]
fn a_line_that_cannot_be_read_is_told_to_the_sender_and_by_enqueue() {
    let place = Place::new();
    let token = token(&place, "laptop", "write");
    let text = format!("{CLAUDE_CODE}\n{{broken\n{}\n", CLAUDE_CODE.replace(r#""u""#, r#""v""#));
    place.write("s.jsonl", &text);
    let bad = |report: &Value| {
        let [place] = report["places"].as_array().unwrap().as_slice() else { panic!("{report}") };
        [&place["path"], &place["line"], &place["rule"]].map(Value::clone)
    };
    let taken = run(async {
        let served = Served::start(&place, &[]).await;
        served.taken("/v1/transcripts?name=s.jsonl", &token, text).await
    });
    assert_eq!(bad(&taken), [json!("http:laptop/s.jsonl"), json!(2), json!("bad-line")]);
    let read = place.run(&["enqueue", "s.jsonl", "--json"]);
    assert_eq!(bad(&read.json()), [json!("s.jsonl"), json!(2), json!("bad-line")]);
    let told = place.run(&["enqueue", "s.jsonl"]).stderr;
    assert!(told.contains("s.jsonl:2: bad-line"), "{told}");
}

#[test]
fn what_is_accepted_outlives_the_server() {
    let place = Place::new();
    let token = token(&place, "laptop", "write");
    run(async {
        let mut served = Served::start(&place, &[]).await;
        served.taken("/v1/slices", &token, document("one", "one").to_string()).await;
        served.child.start_kill().unwrap();
        served.child.wait().await.unwrap();
    });
    assert_eq!(place.number("SELECT count(*) FROM jobs"), 1);
}

#[test]
fn a_request_without_a_valid_token_or_its_right_is_refused() {
    let place = Place::new();
    let [reads, writes, gone, late] =
        [("reads", "read"), ("writes", "write"), ("gone", "write"), ("late", "read,write")]
            .map(|(name, can)| token(&place, name, can));
    place.sql().execute("UPDATE tokens SET expires_at = 1 WHERE name = 'late'", []).unwrap();
    run(async {
        let served = Served::start(&place, &[]).await;
        let body = document("one", "one").to_string();
        let status =
            async |token: &str| refusal(served.post("/v1/slices", token, body.clone()).await).await;
        served.taken("/v1/slices", &gone, body.clone()).await;
        assert_eq!(place.run(&["token", "revoke", "gone"]).code, 0);
        for invalid in ["", "x", &gone, &late] {
            let (code, line) = status(invalid).await;
            assert_eq!((code, line.as_str()), (401, "Authorization: no valid token"));
        }
        let (code, line) = status(&reads).await;
        assert_eq!((code, line.as_str()), (403, "Authorization: token `reads` may not write"));
        let bare = served.client.post(format!("{}/v1/slices", served.url)).send().await.unwrap();
        assert_eq!(
            (bare.status().as_u16(), &bare.headers()["www-authenticate"]),
            (401, &"Bearer".parse().unwrap())
        );
        let lower = served.client.post(format!("{}/v1/slices", served.url)).body(body.clone());
        let lower = lower.header("authorization", format!("bearer {writes}"));
        assert_eq!(lower.send().await.unwrap().status(), 202, "a scheme has no case");
        let rebound =
            served.ask(Method::POST, "/v1/slices", &writes).header("host", "evil.example");
        assert_eq!(refusal(rebound.send().await.unwrap()).await.0, 403);
        let page =
            served.ask(Method::POST, "/v1/slices", &writes).header("origin", "http://localhost:1");
        assert_eq!(refusal(page.send().await.unwrap()).await.0, 403);
    });
}

#[test]
fn a_body_that_cannot_be_used_is_refused_in_one_line() {
    let place = Place::new();
    let token = token(&place, "laptop", "write");
    run(async {
        let served = Served::start(&place, &[]).await;
        let no_role = json!({"session": "one", "entries": [{"text": "x"}]}).to_string();
        for (path, body, code, words) in [
            ("/v1/slices", "not JSON", 400, "body: "),
            ("/v1/slices", &no_role, 400, "entries[0]"),
            ("/v1/transcripts", "\0\u{1}\u{2}", 400, "body: "),
            ("/v1/slices", "", 400, "nothing in it"),
            ("/v1/slices", "{\"session\": \"s\", \"entries\": []}", 400, "entries: none"),
            ("/v1/transcripts?format=codex", CLAUDE_CODE, 400, "it looks like claude-code"),
            ("/v1/slices?flash=1", "{}", 400, "query: "),
            ("/v1/transcripts?format=word", "{}", 400, "query: "),
        ] {
            let (status, line) = refusal(served.post(path, &token, body.to_owned()).await).await;
            assert_eq!(status, code, "{path}: {line}");
            assert!(line.contains(words) && !line.contains('\n'), "{path}: {line}");
        }
        let request = |path: &str| served.ask(Method::POST, path, &token);
        let zipped = request("/v1/slices").header("content-encoding", "gzip").body("x");
        assert_eq!(refusal(zipped.send().await.unwrap()).await.0, 415);
        let plain = request("/v1/slices").header("content-encoding", "Identity").body("x");
        assert_eq!(refusal(plain.send().await.unwrap()).await.0, 400);
        let unnamed = document("one", "one").to_string().replace("session", "sessions");
        let (_, line) = refusal(served.post("/v1/slices", &token, unnamed).await).await;
        assert!(!line.contains("--"), "a flag of a command: {line}");
        let cut = format!("{}\n{{\"session\": \"two\", \"ent", document("zero", "zero"));
        let taken = served.taken("/v1/slices", &token, cut).await;
        let problem = taken["problems"][0]["problem"].as_str().unwrap();
        assert!(problem.starts_with("line 2: document: ") && problem.contains("EOF"), "{problem}");
        let mixed = format!("{}\n{no_role}\n", document("one", "one"));
        let taken = served.taken("/v1/slices", &token, mixed).await;
        assert_eq!(count(&taken, "/jobs"), 1, "{taken}");
        assert!(
            taken["problems"][0]["problem"].as_str().unwrap().starts_with("line 2: entries[0]")
        );
    });
    assert_eq!(place.number("SELECT count(*) FROM jobs"), 2);
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let place = Place::new();
    let token = token(&place, "laptop", "write");
    run(async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let served = Served::start(&place, &[]).await;
        let host = served.url.strip_prefix("http://").unwrap();
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        let head = format!(
            "POST /v1/slices HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-length: 99999999999\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        assert!(said.starts_with("HTTP/1.1 413 ") && said.contains("it is too large"), "{said}");
    });
}

#[test]
fn a_document_that_is_too_large_is_refused_as_a_body_that_is() {
    let place = Place::new();
    let token = token(&place, "laptop", "write");
    let large = document("large", &"x".repeat(32 * 1024 * 1024)).to_string();
    run(async {
        let served = Served::start(&place, &[]).await;
        let refused = refusal(served.post("/v1/slices", &token, large.clone()).await).await;
        let line = "body: document: expected at most 33554432 bytes, found more";
        assert_eq!(refused, (413, line.to_owned()));
        let (status, line) =
            refusal(served.post("/v1/slices", &token, format!("{{}}\n{large}")).await).await;
        assert_eq!((status, line.ends_with("(and 1 more)")), (400, true), "{line}");
        let mixed = format!("{}\n{large}", document("one", "one"));
        let taken = served.taken("/v1/slices", &token, mixed).await;
        assert_eq!(count(&taken, "/jobs"), 1, "{taken}");
        let problem = taken["problems"][0]["problem"].as_str().unwrap();
        assert!(problem.starts_with("line 2: document: expected at most"), "{problem}");
    });
}

#[test]
fn slow_uploads_of_one_sender_leave_room_for_those_of_others() {
    let place = Place::new();
    let [other, token] = ["desk", "laptop"].map(|name| token(&place, name, "write"));
    run(async {
        use tokio::io::AsyncWriteExt;
        let served = Served::start(&place, &[]).await;
        let host = served.url.strip_prefix("http://").unwrap();
        let head = format!(
            "POST /v1/slices HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-length: 60000000\r\n\r\nx"
        );
        let mut slow = Vec::new();
        for _ in 0..200 {
            let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            slow.push(stream);
        }
        let refused = loop {
            let response = served.post("/v1/slices", &token, document("one", "one").to_string());
            let response = response.await;
            if response.status() != 202 {
                break response;
            }
        };
        assert_eq!(refused.headers()["retry-after"], "5");
        let line = "body: 32 bodies of this token are in progress";
        assert_eq!(refusal(refused).await, (429, line.to_owned()));
        served.taken("/v1/slices", &other, document("two", "two").to_string()).await;
        let well = served.ask(Method::GET, "/healthz", "").send().await.unwrap();
        assert_eq!(well.status(), 200);
    });
}

#[test]
fn the_log_of_a_failure_has_its_cause_and_no_colours() {
    let mut place = Place::new();
    place.set("ANNALIST_LOG", "error");
    let token = token(&place, "laptop", "read");
    run(async {
        let mut served = Served::start(&place, &[]).await;
        place.sql().execute("ALTER TABLE memories RENAME TO lost", []).unwrap();
        let failed = served.ask(Method::GET, "/v1/memory", &token).send().await.unwrap();
        let (status, line) = refusal(failed).await;
        assert_eq!(
            (status, line.contains("the store failed: the database")),
            (500, true),
            "{line}"
        );
        let line = served.log.next_line().await.unwrap().unwrap();
        assert!(line.contains("no such table"), "{line}");
        assert!(!line.contains('\u{1b}'), "{line:?}");
    });
}

#[test]
fn a_host_that_can_never_match_is_refused() {
    let place = Place::new();
    for host in ["memory.example:443", "http://x y/", "", "*", "a/b", "::1"] {
        place
            .run(&["serve", "--host", host])
            .refused(2, &["--host", "without scheme, port or path"]);
    }
}

#[test]
fn what_is_not_there_is_refused_as_everything_else() {
    let place = Place::new();
    run(async {
        let served = Served::start(&place, &[]).await;
        let unknown = served.ask(Method::GET, "/v1/nothing", "").send().await.unwrap();
        assert_eq!(refusal(unknown).await, (404, "path: no such operation".to_owned()));
        let method = served.ask(Method::DELETE, "/v1/slices", "").send().await.unwrap();
        assert_eq!(method.headers()["allow"], "POST");
        assert_eq!(refusal(method).await, (405, "path: method not allowed".to_owned()));
        let elsewhere = served.ask(Method::GET, "/nothing", "").send().await.unwrap();
        assert_eq!(refusal(elsewhere).await.0, 404);
        let method = served.ask(Method::POST, "/healthz", "").send().await.unwrap();
        assert_eq!(refusal(method).await.0, 405);
    });
}

#[test]
fn a_long_queue_takes_in_nothing_until_it_is_shorter() {
    let mut place = Place::new();
    place.set("ANNALIST__QUEUE__INTAKE_JOBS_MAX", "1");
    let token = token(&place, "laptop", "write");
    run(async {
        let served = Served::start(&place, &[]).await;
        served.taken("/v1/slices", &token, document("one", "one").to_string()).await;
        // The length is counted once a second.
        let refused = loop {
            let response =
                served.post("/v1/slices", &token, document("two", "two").to_string()).await;
            if response.status() != 202 {
                break response;
            }
        };
        assert_eq!(refused.headers()["retry-after"], "5");
        let (status, line) = refusal(refused).await;
        assert_eq!(status, 429);
        assert!(line.starts_with("the queue: ") && line.ends_with(" jobs are waiting"), "{line}");
    });
}

#[test]
fn a_request_has_an_id_and_the_listener_shows_metrics() {
    let place = Place::new();
    let token = token(&place, "laptop", "write");
    run(async {
        let served = Served::start(&place, &[]).await;
        served.taken("/v1/slices", &token, document("one", "one").to_string()).await;
        let page = served.ask(Method::GET, "/metrics", "").header("x-request-id", "mine-7");
        let page = page.send().await.unwrap();
        assert_eq!(page.headers()["x-request-id"], "mine-7");
        let text = page.text().await.unwrap();
        assert!(text.contains("annalist_slices_enqueued_total 1\n"), "{text}");
        let well = served.ask(Method::GET, "/healthz", "").send().await.unwrap();
        assert_eq!(
            (well.status().as_u16(), well.headers().contains_key("x-request-id")),
            (200, true)
        );
    });
}

#[test]
fn a_token_is_shown_once_and_stored_as_a_hash() {
    let place = Place::new();
    let secret = token(&place, "laptop", "write,read");
    let other = place.run(&[
        "token", "new", "phone", "--namespace", "roofs", "--can", "read", "--expires", "90d",
    ]);
    assert_eq!(other.stdout.trim().len(), 64);
    let listed = place.json(&["token", "list", "--json"]);
    assert_eq!(listed[0]["can"], json!(["read", "write"]));
    assert_eq!((&listed[0]["used_on"], &listed[0]["valid"]), (&Value::Null, &json!(true)));
    assert!(listed[1]["expires_at"].is_string(), "{listed}");
    let texts = [listed.to_string(), place.run(&["token", "list"]).stdout];
    assert!(texts.iter().all(|text| !text.contains(&secret)), "{texts:?}");
    for (path, bytes) in place.files() {
        assert!(!bytes.windows(secret.len()).any(|it| it == secret.as_bytes()), "{path:?}");
    }
    place
        .run(&["token", "new", "laptop", "--namespace", "x", "--can", "read"])
        .refused(2, &["`laptop`", "choose another"]);
    place.run(&["token", "new", "a/b", "--namespace", "x", "--can", "read"]).refused(2, &["a/b"]);
    place
        .run(&["token", "new", "a", "--namespace", "x", "--can", "read", "--expires", "2001-01-01"])
        .refused(2, &["in the future"]);
    for namespace in ["", "  ", "a\nb"] {
        place
            .run(&["token", "new", "a", "--namespace", namespace, "--can", "read"])
            .refused(2, &["--namespace", "expected a name on one line"]);
    }
    place.run(&["token", "revoke", "tablet"]).refused(2, &["`tablet`", "token list"]);
}

#[test]
fn the_name_of_a_revoked_token_is_free_again() {
    let place = Place::new();
    let secrets = [(); 3].map(|()| {
        let secret = token(&place, "laptop", "write");
        assert_eq!(place.run(&["token", "revoke", "laptop"]).code, 0);
        secret
    });
    let new = token(&place, "laptop", "read");
    place
        .run(&["token", "new", "laptop", "--namespace", "x", "--can", "read"])
        .refused(2, &["`laptop`", "choose another"]);
    let listed = place.json(&["token", "list", "--json"]);
    let valid: Vec<_> = listed.as_array().unwrap().iter().map(|it| &it["valid"]).collect();
    assert_eq!(valid, [true, false, false, false], "{listed}");
    assert!(listed.as_array().unwrap().iter().all(|it| it["name"] == "laptop"), "{listed}");
    run(async {
        let served = Served::start(&place, &[]).await;
        let status = async |token: &str| {
            served.ask(Method::GET, "/v1/status", token).send().await.unwrap().status().as_u16()
        };
        for revoked in &secrets {
            assert_eq!(status(revoked).await, 401);
        }
        assert_eq!(status(&new).await, 200);
    });
}

#[test]
fn a_token_that_expired_is_listed_as_such() {
    let place = Place::new();
    token(&place, "phone", "read");
    place.sql().execute("UPDATE tokens SET expires_at = 86400000", []).unwrap();
    let listed = place.run(&["token", "list"]).stdout;
    assert!(listed.contains("expired 1970-01-02"), "{listed}");
    assert_eq!(place.json(&["token", "list", "--json"])[0]["valid"], false);
}

#[test]
fn beyond_this_machine_a_proxy_is_asked_for_and_there_is_no_page() {
    let place = Place::new();
    place
        .run(&["serve", "--listen", "0.0.0.0:0"])
        .refused(2, &["0.0.0.0:0", "127.0.0.1", "--behind-proxy", "page"]);
    run(async {
        let served = Served::start(&place, &["--behind-proxy", "--host", "memory.example"]).await;
        assert_eq!(served.said[1], "no page: it is served on this machine only");
        let of_proxy = served.ask(Method::GET, "/healthz", "").header("host", "memory.example");
        assert_eq!(of_proxy.send().await.unwrap().status(), 200);
        let page = served.ask(Method::GET, "/", "").send().await.unwrap();
        assert_eq!(page.status(), 404);
    });
}

/// Checks a value against a schema of the API's document.
#[track_caller]
fn keeps_to(document: &Value, schema: &Value, value: &Value, what: &str) {
    let whole = json!({"allOf": [schema], "components": document["components"]});
    let validator = jsonschema::validator_for(&whole).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{what}: {problems:?}");
}

#[test]
fn every_operation_answers_as_the_document_says() {
    let mut place = Place::with_examples();
    place.json(&super::judging::BY_RULE);
    let published = format!("{}/schemas/openapi.v1.json", env!("CARGO_MANIFEST_DIR"));
    let published: Value = serde_json::from_slice(&std::fs::read(published).unwrap()).unwrap();
    let listed = place.json(&["records", "--json"]);
    let namespace = listed[0]["namespace"].as_str().unwrap().to_owned();
    place.set("ANNALIST__NAMESPACE", &namespace);
    let args = ["token", "new", "all", "--namespace", &namespace, "--can", "read,write", "--json"];
    let token = place.json(&args)["token"].as_str().unwrap().to_owned();
    run(async {
        let served = Served::start(&place, &[]).await;
        let get = async |path: &str, token: &str| {
            let response = served.ask(Method::GET, path, token).send().await.unwrap();
            let status = response.status().as_u16();
            (status, serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap())
        };
        let (_, document) = get("/v1/openapi.json", "").await;
        assert_eq!(document, published);
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let responses = &operation["responses"];
                let error = &responses["default"]["content"]["application/json"]["schema"];
                let send = async |token: &str, query: &str| {
                    let method = method.to_uppercase().parse().unwrap();
                    let path = format!("{path}{query}");
                    let body = document_of("one").to_string();
                    let request = served.ask(method, &path, token).body(body);
                    let response = request.send().await.unwrap();
                    let status = response.status().as_u16();
                    let text = response.text().await.unwrap();
                    (status, serde_json::from_str::<Value>(&text).unwrap())
                };
                let (status, answer) = send(&token, "").await;
                let good = &responses[status.to_string()]["content"]["application/json"];
                assert!(good.is_object(), "{method} {path}: {status}: {answer}");
                keeps_to(&document, &good["schema"], &answer, path);
                for (token, query, expected) in [("x", "", 401), (&token, "?unknown=1", 400)] {
                    let (status, answer) = send(token, query).await;
                    assert_eq!(status, expected, "{method} {path}{query}: {answer}");
                    keeps_to(&document, error, &answer, path);
                }
            }
        }
    });
}

fn document_of(session: &str) -> Value {
    document(session, session)
}

#[test]
fn what_is_read_is_what_the_commands_answer_and_of_no_other_namespace() {
    let mut place = Place::with_examples();
    place.json(&super::judging::BY_RULE);
    let listed = place.json(&["records", "--json"]);
    let namespace = listed[0]["namespace"].as_str().unwrap().to_owned();
    place.set("ANNALIST__NAMESPACE", &namespace);
    let reader = |name: &str, namespace: &str| {
        let args = ["token", "new", name, "--namespace", namespace, "--can", "read", "--json"];
        place.json(&args)["token"].as_str().unwrap().to_owned()
    };
    let (own, other) = (reader("own", &namespace), reader("other", "nobody"));
    let records = place.json(&["records", "--namespace", &namespace, "--json"]);
    let sessions = format!("SELECT count(*) FROM sessions WHERE namespace = '{namespace}'");
    let sessions = place.number(&sessions);
    let hits = place.json(&["search", "--namespace", &namespace, "--json"]);
    let memories = place.json(&["memory", "list", "--namespace", &namespace, "--json"]);
    run(async {
        let served = Served::start(&place, &[]).await;
        let get = async |path: &str, token: &str| -> Value {
            let response = served.ask(Method::GET, path, token).send().await.unwrap();
            serde_json::from_str(&response.text().await.unwrap()).unwrap()
        };
        assert_eq!(get("/v1/records", &own).await["items"], records);
        assert_eq!(get("/v1/search?limit=10", &own).await, hits);
        let told = get("/v1/memory", &own).await;
        assert_eq!(told["items"].as_array().unwrap().len(), memories.as_array().unwrap().len());
        // Part by part it is the same list.
        let all = told["items"].as_array().unwrap();
        for (skip, memory) in all.iter().enumerate() {
            let part = get(&format!("/v1/memory?limit=1&skip={skip}"), &own).await;
            let next = (skip + 1 < all.len()).then_some(skip + 1);
            assert_eq!(part, json!({"items": [memory], "next": next}));
        }
        let status = get("/v1/status", &own).await;
        assert_eq!(count(&status, "/sessions"), sessions as u64);
        let staged = status["records"].as_object().unwrap().values();
        let staged: u64 = staged.map(|of_kind| of_kind.as_u64().unwrap()).sum();
        assert_eq!(
            staged + count(&status, "/quarantined"),
            records.as_array().unwrap().len() as u64
        );
        assert_eq!(count(&status, "/runs_failed"), 0);
        for path in ["/v1/records", "/v1/memory"] {
            assert_eq!(get(path, &other).await, json!({"items": [], "next": null}), "{path}");
        }
        assert_eq!(get("/v1/search", &other).await, json!([]));
        assert_eq!(count(&get("/v1/status", &other).await, "/sessions"), 0);
        let hidden = get("/v1/context", &other).await;
        assert_eq!(hidden["error"]["what"], "no memory directory of `nobody`");
        // Parts follow one another.
        let all = records.as_array().unwrap();
        let first = get("/v1/records?limit=1", &own).await;
        assert_eq!((&first["items"][0], &first["next"]), (&all[0], &json!(1)));
        let second = get("/v1/records?limit=1&skip=1", &own).await;
        assert_eq!(second["items"][0], all[1]);
        let last = get(&format!("/v1/records?skip={}", all.len() - 1), &own).await;
        assert_eq!((&last["items"][0], &last["next"]), (&all[all.len() - 1], &Value::Null));
        let bad = get("/v1/records?limit=0", &own).await;
        assert_eq!(bad["error"]["what"], "limit: expected 1 to 1000");
        let long = get(&format!("/v1/search?query={}", "a+".repeat(4_000)), &own).await;
        let limit = get("/v1/records?limit=many", &own).await;
        assert_eq!(limit["error"]["what"], "limit: expected a whole number");
        assert_eq!(long["error"]["what"], "query: 8000 letters: expected at most 4000");
    });
}

#[test]
fn a_token_follows_its_namespace_when_that_is_moved() {
    let place = Place::new();
    let token = token(&place, "laptop", "write");
    run(async {
        let served = Served::start(&place, &[]).await;
        served.taken("/v1/slices", &token, document_of("one").to_string()).await;
        assert_eq!(place.run(&["namespace", "move", "roofs", "walls"]).code, 0);
        served.taken("/v1/slices", &token, document_of("two").to_string()).await;
        let again = served.taken("/v1/slices", &token, document_of("one").to_string()).await;
        assert_eq!(count(&again, "/documents_known"), 1, "{again}");
    });
    assert_eq!(place.number("SELECT count(*) FROM sessions WHERE namespace = 'walls'"), 2);
    assert_eq!(place.number("SELECT count(*) FROM sessions"), 2);
}

/// Hands a conversation over whose folder is the server's, with a token for the last component of the folder's path.
fn hands_over_a_folder_of_the_server(place: &Place) {
    let here = place.path("").canonicalize().unwrap();
    let name = here.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(place.run(&["memory", "init"]).code, 0);
    let new = ["token", "new", "laptop", "--namespace", &name, "--can", "write,read", "--json"];
    let token = place.json(&new)["token"].as_str().unwrap().to_owned();
    let before = place.json(&["namespace", "list", "--json"]);
    let mut sent = document("theirs", "theirs");
    sent["cwd"] = json!(here);
    run(async {
        let served = Served::start(place, &["--mcp"]).await;
        served.taken("/v1/slices", &token, sent.to_string()).await;
        let context = served.ask(Method::GET, "/v1/context", &token).send().await.unwrap();
        assert_eq!(refusal(context).await.0, 404);
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}});
        let request = served.ask(Method::POST, "/mcp", &token);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("content-type", "application/json").body(hello.to_string());
        assert_eq!(request.send().await.unwrap().status(), 403);
    });
    let tokens = place.json(&["token", "list", "--json"]);
    assert_eq!(tokens[0]["namespace"], name, "{tokens}");
    let after = place.json(&["namespace", "list", "--json"]);
    let mut after = after.as_array().unwrap().clone();
    after.retain(|it| it["namespace"] != name);
    assert_eq!(json!(after), before);
}

#[test]
fn a_folder_that_a_conversation_over_http_names_gives_its_token_no_other_namespace() {
    let empty = Place::new();
    hands_over_a_folder_of_the_server(&empty);
    let place = Place::with_endpoint("http://127.0.0.1:9/v1");
    let here = json!(place.path("").canonicalize().unwrap()).to_string();
    place.write("own.jsonl", CLAUDE_CODE.replace("\"/w\"", &here));
    place.json(&["enqueue", "own.jsonl", "--flush", "--json"]);
    hands_over_a_folder_of_the_server(&place);
}
