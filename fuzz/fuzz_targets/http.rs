//! Law: whatever a client sends to the page, to `/v1` or to `/mcp`, the server answers, and never with a fault of its own.
#![no_main]

use arbitrary::Arbitrary;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

/// Maximum size of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Places; those that end in `?` or `/` go on with the text of the input.
const PLACES: [&str; 21] = [
    "/?", "/memory?", "/memory/", "/review?", "/verdict", "/search?q=a&", "/session?", "/session/", "/run/", "/plans?",
    "/plans/", "/plans/next", "/forget?", "/v1/slices?", "/v1/transcripts?", "/v1/records?", "/v1/memory?", "/v1/search?",
    "/v1/context?", "/v1/status", "/mcp",
];
const MEDIA: [&str; 4] =
    ["application/json", "application/x-www-form-urlencoded", "application/x-ndjson", "text/plain"];

#[derive(Arbitrary, Debug)]
struct Sent<'a> {
    place: u8,
    media: u8,
    is_post: bool,
    rest: &'a str,
    body: &'a [u8],
}

/// A server with a store of its own, in a folder that outlives the process.
struct Served {
    runtime: Runtime,
    router: axum::Router,
    cookie: HeaderValue,
}

thread_local! {
    static SERVED: RefCell<Option<Served>> = const { RefCell::new(None) };
}

impl Served {
    fn new() -> Served {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let settings = folder.join("annalist.toml");
        let store = format!("sqlite://{}", folder.join("fuzz.db").display());
        std::fs::write(&settings, format!("[store]\nurl = {store:?}\n")).expect("settings");
        std::env::set_current_dir(&folder).expect("the folder");
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let router = runtime.block_on(annalist::router_for_fuzzing(&settings));
        let first = Request::get("/?token=fuzz").header("host", "localhost");
        let first = router.clone().oneshot(first.body(Body::empty()).expect("a request"));
        let response = runtime.block_on(first).expect("an answer");
        let cookie = response.headers()["set-cookie"].clone();
        Served { runtime, router, cookie }
    }
}

/// `text` as a part of an address, with its parameters.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'=' | b'&' | b'%' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().take(200).map(escape).collect()
}

fuzz_target!(|sent: Sent<'_>| {
    let place = PLACES[usize::from(sent.place) % PLACES.len()];
    let rest = if place.ends_with(['?', '/']) { escaped(sent.rest) } else { String::new() };
    SERVED.with_borrow_mut(|served| {
        let Served { runtime, router, cookie } = served.get_or_insert_with(Served::new);
        let request = Request::builder()
            .method(if sent.is_post { Method::POST } else { Method::GET })
            .uri(format!("{place}{rest}"))
            .header("host", "localhost")
            .header("origin", "http://localhost")
            .header("authorization", "Bearer fuzz")
            .header("cookie", &*cookie)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", MEDIA[usize::from(sent.media) % MEDIA.len()])
            .body(Body::from(sent.body.to_vec()));
        // What is no address reaches no server.
        let Ok(request) = request else { return };
        let (status, body) = runtime.block_on(async {
            let response = router.clone().oneshot(request).await.expect("an answer");
            let status = response.status();
            (status, to_bytes(response.into_body(), ANSWER_BYTES_MAX).await.expect("a whole answer"))
        });
        // A queue that is full is no fault.
        let is_fault = status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE;
        assert!(!is_fault, "{place}{rest}: {}", String::from_utf8_lossy(&body));
    });
});
