use super::checker_test::{self as checker, Samples};
use super::*;
use crate::adapters::http_server::HttpListener;
use crate::domain::{
    ClaimKind, Coverage, ErrorKind, JobState, RecordState, Timestamp, Usage, Wait,
};
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A worker's counters and health, and pages that show them.
struct Shown {
    meters: Arc<Meters>,
    health: Arc<Health>,
}

impl Shown {
    fn new() -> Shown {
        Shown {
            meters: Arc::new(Meters::new("1.2.3", Timestamp(1_500))),
            health: Arc::new(Health::default()),
        }
    }

    fn panel<F>(&self, ask: impl Fn() -> F + Send + Sync + 'static) -> StatusPages
    where
        F: Future<Output = Result<Snapshot, &'static str>> + Send + 'static,
    {
        StatusPages::new(Arc::clone(&self.meters), Arc::clone(&self.health), ask)
    }
}

fn snapshot() -> Snapshot {
    let ready = Jobs { jobs: 7, oldest: Some(Duration::from_secs(90)) };
    Snapshot {
        jobs: BTreeMap::from([(JobState::Ready, ready)]),
        waiting: BTreeMap::from([(Wait::Cap, 3)]),
        coverage: Coverage { extracted: 5, failed: 1, ..Coverage::default() },
    }
}

/// Server on a free port, on the runtime of the test.
async fn serve(panel: StatusPages) -> SocketAddr {
    let listener = HttpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let addr = listener.addr();
    tokio::spawn(listener.serve(panel.router(), CancellationToken::new()));
    addr
}

/// Sends bytes and reads until the server closes the connection.
async fn send(addr: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    // The server may close early, with a reset.
    let _ = stream.write_all(bytes).await;
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8(said).unwrap()
}

async fn get(addr: SocketAddr, path: &str) -> (u16, String) {
    let said = send(
        addr,
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes(),
    )
    .await;
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    (status(head), body.to_owned())
}

fn status(said: &str) -> u16 {
    said.strip_prefix("HTTP/1.1 ").unwrap().split(' ').next().unwrap().parse().unwrap()
}

async fn scrape(addr: SocketAddr) -> Samples {
    let (status, page) = get(addr, "/metrics").await;
    assert_eq!(status, 200);
    checker::check(&page).unwrap()
}

#[track_caller]
fn holds(samples: &Samples, series: &str, value: f64) {
    assert_eq!(samples.get(series), Some(&value), "{series} in {samples:#?}");
}

#[tokio::test]
async fn page_shows_what_was_counted_and_what_is_stored() {
    let shown = Shown::new();
    let addr = serve(shown.panel(|| async { Ok(snapshot()) })).await;
    let before = scrape(addr).await;
    holds(&before, "annalist_outcomes_total{outcome=\"dead\"}", 0.0);
    holds(&before, "annalist_calls_total{result=\"unavailable\"}", 0.0);
    holds(&before, "annalist_last_successful_call_timestamp_seconds", 0.0);

    let meters = &shown.meters;
    meters.claimed(4);
    meters.expired(2);
    meters.ended(Outcome::Done);
    meters.limited(16);
    meters.enqueued(9);
    meters.store_failed();
    meters.retried(&ErrorKind::RateLimited { wait: None });
    meters.stored(ClaimKind::Decision, RecordState::Staged, 2);
    meters.stored(ClaimKind::Decision, RecordState::Replaced, 5);
    meters.stored(ClaimKind::Attempt, RecordState::Quarantined, 1);
    let usage = Usage { prompt_tokens: 100, cached_tokens: 40, completion_tokens: 10 };
    meters.call().answered(usage, 2_500_000, Timestamp(60_250));
    meters.call().failed(&ErrorKind::TooLong);
    drop(meters.call());
    let under_way = meters.call();
    let samples = scrape(addr).await;
    for (series, value) in [
        ("annalist_build_info{version=\"1.2.3\"}", 1.0),
        ("annalist_start_time_seconds", 1.5),
        ("annalist_claims_total", 4.0),
        ("annalist_outcomes_total{outcome=\"done\"}", 1.0),
        ("annalist_leases_expired_total", 2.0),
        ("annalist_concurrency_limit", 16.0),
        ("annalist_slices_enqueued_total", 9.0),
        ("annalist_store_errors_total", 1.0),
        ("annalist_retries_total{kind=\"rate-limited\"}", 1.0),
        ("annalist_records_total{kind=\"decision\",state=\"staged\"}", 2.0),
        ("annalist_records_total{kind=\"attempt\",state=\"quarantined\"}", 1.0),
        ("annalist_tokens_total{sort=\"sent\"}", 100.0),
        ("annalist_tokens_total{sort=\"cached\"}", 40.0),
        ("annalist_tokens_total{sort=\"answered\"}", 10.0),
        ("annalist_cost_usd_total", 2.5),
        ("annalist_calls_total{result=\"ok\"}", 1.0),
        ("annalist_calls_total{result=\"too-long\"}", 1.0),
        ("annalist_calls_total{result=\"cancelled\"}", 1.0),
        ("annalist_call_duration_seconds_count", 3.0),
        ("annalist_calls_in_flight", 1.0),
        ("annalist_last_successful_call_timestamp_seconds", 60.25),
        ("annalist_store_up", 1.0),
        ("annalist_jobs{state=\"ready\"}", 7.0),
        ("annalist_jobs{state=\"dead\"}", 0.0),
        ("annalist_oldest_job_age_seconds{state=\"ready\"}", 90.0),
        ("annalist_oldest_job_age_seconds{state=\"dead\"}", 0.0),
        ("annalist_waiting_jobs{reason=\"cap\"}", 3.0),
        ("annalist_waiting_jobs{reason=\"gathering\"}", 0.0),
        ("annalist_entries{state=\"extracted\"}", 5.0),
        ("annalist_entries{state=\"pending\"}", 0.0),
    ] {
        holds(&samples, series, value);
    }
    drop(under_way);
}

#[tokio::test(start_paused = true)]
async fn call_counts_in_the_bucket_of_its_time() {
    let shown = Shown::new();
    let call = shown.meters.call();
    tokio::time::advance(Duration::from_millis(2_600)).await;
    call.failed(&ErrorKind::TooLong);
    let page = shown.panel(|| async { Ok(snapshot()) }).metrics().await.unwrap();
    let samples = checker::check(&page).unwrap();
    holds(&samples, "annalist_call_duration_seconds_bucket{le=\"2.5\"}", 0.0);
    holds(&samples, "annalist_call_duration_seconds_bucket{le=\"5.0\"}", 1.0);
    holds(&samples, "annalist_call_duration_seconds_sum", 2.6);
}

#[tokio::test]
async fn the_table_names_every_series_and_no_other() {
    let page = Shown::new().panel(|| async { Ok(snapshot()) }).metrics().await.unwrap();
    let name = |series: &str| series.split(['{', ' ']).next().unwrap().to_owned();
    let histogram = |name: String| match name.strip_prefix("annalist_call_duration_seconds_") {
        Some(_) => "annalist_call_duration_seconds".to_owned(),
        None => name,
    };
    let samples = checker::check(&page).unwrap();
    let shown: BTreeSet<String> = samples.keys().map(|key| histogram(name(key))).collect();
    let table = include_str!("../../../docs/metrics.md");
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `annalist_").map(|it| format!("annalist_{it}")));
    let told: BTreeSet<String> = rows.map(|row| name(row.split('`').next().unwrap())).collect();
    assert_eq!(shown, told);
}

#[tokio::test]
async fn health_is_a_word_or_a_reason() {
    let shown = Shown::new();
    let addr = serve(shown.panel(|| async { Ok(snapshot()) })).await;
    assert_eq!(get(addr, "/healthz").await, (200, "ok\n".to_owned()));
    shown.health.ill("the key in MY_KEY\nis refused");
    assert_eq!(get(addr, "/healthz").await, (503, "the key in MY_KEY is refused\n".to_owned()));
    shown.health.ill(&"ä".repeat(400));
    assert_eq!(get(addr, "/healthz").await.1.len(), 301);
}

#[tokio::test]
async fn only_two_pages_are_read() {
    let addr = serve(Shown::new().panel(|| async { Ok(snapshot()) })).await;
    for (line, expected) in [
        ("GET /metrics?x=1", 200),
        ("HEAD /metrics", 200),
        ("HEAD /healthz", 200),
        ("GET /", 404),
        ("GET /metrics/", 404),
        ("POST /metrics", 405),
        ("DELETE /healthz", 405),
        ("BREW /metrics", 405),
    ] {
        let said = send(
            addr,
            format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes(),
        )
        .await;
        assert_eq!(status(&said), expected, "{line}");
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert_eq!(body.is_empty(), expected != 200 || line.starts_with("HEAD"), "{line}: {said}");
        assert_eq!(head.contains("allow: GET,HEAD"), expected == 405, "{line}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn page_comes_without_a_store_that_fails_or_hangs() {
    let shown = Shown::new();
    let asked = Arc::new(AtomicU32::new(0));
    let asks = Arc::clone(&asked);
    let panel = shown.panel(move || {
        let number = asks.fetch_add(1, Ordering::SeqCst);
        async move {
            match number {
                0 => Err("gone"),
                1 => pending().await,
                _ => Ok(snapshot()),
            }
        }
    });
    for (up, secs) in [(0.0, 0), (0.0, 2), (1.0, 0)] {
        let begun = Instant::now();
        let samples = checker::check(&panel.metrics().await.unwrap()).unwrap();
        assert_eq!(begun.elapsed().as_secs(), secs);
        holds(&samples, "annalist_store_up", up);
        holds(&samples, "annalist_claims_total", 0.0);
        assert_eq!(samples.contains_key("annalist_jobs{state=\"ready\"}"), up == 1.0);
        tokio::time::advance(SNAPSHOT_KEPT).await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_readers_ask_the_store_once_in_a_while() {
    let asked = Arc::new(AtomicU32::new(0));
    let asks = Arc::clone(&asked);
    let panel = Arc::new(Shown::new().panel(move || {
        asks.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(snapshot())
        }
    }));
    for second in 1..=3 {
        let mut readers = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let panel = Arc::clone(&panel);
            readers.spawn(async move { panel.metrics().await.unwrap() });
        }
        assert!(readers.join_all().await.iter().all(|page| page.contains("annalist_store_up 1")));
        assert_eq!(asked.load(Ordering::SeqCst), second);
        tokio::time::advance(SNAPSHOT_KEPT).await;
    }
}

#[tokio::test]
async fn page_that_waits_for_the_store_keeps_nobody_else_waiting() {
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (at, on) = (Arc::clone(&asked), Arc::clone(&go_on));
    let addr = serve(Shown::new().panel(move || {
        let (at, on) = (Arc::clone(&at), Arc::clone(&on));
        async move {
            at.notify_one();
            on.notified().await;
            Ok(snapshot())
        }
    }))
    .await;
    let slow = tokio::spawn(scrape(addr));
    asked.notified().await;
    assert_eq!(get(addr, "/healthz").await.0, 200);
    assert!(!slow.is_finished());
    go_on.notify_one();
    slow.await.unwrap();
}

#[tokio::test]
async fn a_hundred_scrapes_at_once_are_all_answered() {
    let addr = serve(Shown::new().panel(|| async { Ok(snapshot()) })).await;
    let mut scrapes = tokio::task::JoinSet::new();
    for _ in 0..100 {
        scrapes.spawn(scrape(addr));
    }
    for samples in scrapes.join_all().await {
        holds(&samples, "annalist_jobs{state=\"ready\"}", 7.0);
    }
}
