//! Workers while the world around them misbehaves: the disk fills, the clock jumps, the server restarts,
//! others begin at the same moment.

use super::handing::{ONE, in_store};
use super::input::claude;
use super::place::{ANNALIST, Place, count};
use super::server::say_left_out;
use super::stub::{Answer, Stub, error};
use annalist::Config;
use annalist::Gate;
use annalist::Timestamp;
use annalist::now;
use annalist::{Endpoint, EndpointConfig};
use annalist::{RunUntil, Tally, Worker, WorkerCounts, WorkerModel};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const DRAIN: [&str; 3] = ["worker", "--drain", "--json"];
const TALKS: usize = 6;

/// A worker whose store is on a disk of 4 MB: the disk is filled when the first line is read, and
/// emptied at the second. What was stored is found where a place has its store.
const ON_A_SMALL_DISK: &str = r#"
    set -e
    mkdir disk
    mount -t tmpfs -o size=4m none disk
    cp .annalist/annalist.db disk/
    mkfifo go
    ANNALIST__STORE__URL=sqlite:disk/annalist.db "$0" worker --drain --json & worker=$!
    read -r _ < go
    cat /dev/zero > disk/ballast 2> /dev/null || true
    echo filled > go
    read -r _ < go
    rm disk/ballast
    wait $worker
    cp disk/annalist.db* .annalist/
"#;

#[test]
fn a_full_disk_loses_no_answer_and_none_is_paid_for_twice() {
    let allowed = ["-rm", "mount", "-t", "tmpfs", "none", "/mnt"];
    if !Command::new("unshare").args(allowed).output().is_ok_and(|it| it.status.success()) {
        say_left_out("a full disk was not tried: `unshare -rm` may not mount one here");
        return;
    }
    let stub = Stub::new(|ask| if ask.number == 1 { Answer::Hold } else { ask.good() });
    let place = Place::with_worker(stub.url());
    let jobs = ONE.enqueue(&place, 0..TALKS);
    let mut command = place.program("unshare", &["-rm", "sh", "-c", ON_A_SMALL_DISK, ANNALIST]);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let running = place.start_program(command);
    stub.until(1);
    let go = place.path("go");
    place.write("go", "fill\n");
    assert_eq!(fs::read_to_string(&go).unwrap(), "filled\n");
    stub.release();
    while !running.said().contains("retried for") {
        std::thread::yield_now();
    }
    place.write("go", "empty\n");
    let output = running.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("is full"), "the cause: {}", output.stderr);
    assert_eq!(count(&output.json(), "/jobs/done"), jobs as u64);
    assert_eq!(stub.count(), jobs, "nothing is asked twice");
    place.is_whole(TALKS);
}

/// How far the clock of the test is ahead, in milliseconds.
static AHEAD: AtomicI64 = AtomicI64::new(0);
const HOUR: i64 = 3_600_000;

fn jumping() -> Timestamp {
    Timestamp(now().0 + AHEAD.load(Ordering::SeqCst))
}

#[test]
fn a_clock_that_jumps_under_a_worker_makes_it_neither_wait_nor_ask_twice() {
    let stub = Stub::new(|ask| {
        let (ahead, answer) = match ask.number {
            // It shall come back in a second; that second lies in the future soon.
            2 => (Some(HOUR), error(503, "overloaded")),
            3 => (Some(0), ask.good()),
            4 => (Some(-HOUR), ask.good()),
            5 => (Some(2 * HOUR), ask.good()),
            _ => (None, ask.good()),
        };
        if let Some(ahead) = ahead {
            AHEAD.store(ahead, Ordering::SeqCst);
        }
        answer
    });
    let place = Place::with_worker(stub.url());
    let jobs = ONE.enqueue(&place, 0..TALKS);
    let settings = [
        ("ANNALIST__QUEUE__LEASE_SECS", "2"),
        ("ANNALIST__MODEL__CONCURRENCY", "1"),
        ("ANNALIST__MODEL__BASE_URL", stub.url()),
        // An hour later the records have waited long enough to be consolidated, or not: questions about them do not count.
        ("ANNALIST__CONSOLIDATE__MODEL", ""),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = Config::load(None, &settings).unwrap();
    let endpoint = EndpointConfig {
        base_url: config.model.base_url.clone(),
        api_key: None,
        source: String::new(),
        api_key_env: String::new(),
        connect_timeout: config.model.connect_timeout,
        read_timeout: config.model.timeout,
        total_timeout: config.model.timeout,
    };
    let endpoint = Endpoint::new(endpoint, Gate::new(&[]), jumping).unwrap();
    let report = in_store(&place, |store| {
        let consumer = Worker {
            config,
            model: WorkerModel::Endpoint(Box::new(endpoint)),
            model_name: "stub-1".to_owned(),
            store,
            id: "the only one".to_owned(),
            until: RunUntil::Drained,
            closing: CancellationToken::new(),
            feeding: Weak::new(),
            tally: Arc::new(Tally::default()),
            counts: Arc::new(WorkerCounts::default()),
            tell: |_| {},
            clock: jumping,
        };
        async { tokio::time::timeout(Duration::from_secs(60), consumer.run()).await }
    });
    report.expect("it waited for a time that lay an hour ahead").unwrap();
    assert_eq!(stub.count(), jobs + 1, "only what had no answer was asked again");
    assert_eq!(place.jobs_in("done"), jobs as i64);
    place.is_whole(TALKS);
}

/// Two workers begin at once where there is no store yet; then there is work for both.
fn begins_twice(mut place: Place, stub: &Stub) {
    // On a busy machine a worker may rest for longer than the short lease of other tests.
    place.set("ANNALIST__QUEUE__LEASE_SECS", "60");
    std::thread::scope(|scope| {
        let begin = || place.run(&DRAIN);
        let both = [scope.spawn(begin), scope.spawn(begin)];
        for output in both.map(|it| it.join().unwrap()) {
            assert_eq!(output.code, 0, "{}", output.stderr);
            assert_eq!(count(&output.json(), "/jobs/claimed"), 0);
        }
    });
    place.write("s.jsonl", claude(0..TALKS));
    let enqueued = place.json(&["enqueue", "s.jsonl", "--flush", "--json"]);
    std::thread::scope(|scope| {
        let work = || count(&place.json(&DRAIN), "/jobs/done");
        let both = [scope.spawn(work), scope.spawn(work)];
        let done: u64 = both.map(|it| it.join().unwrap()).iter().sum();
        assert_eq!(done, count(&enqueued, "/jobs"));
    });
    assert_eq!(stub.count() as u64, count(&enqueued, "/jobs"));
    let staged = place.export().iter().filter(|it| it.contains(r#""state":"staged""#)).count();
    assert_eq!(staged, TALKS);
}

#[test]
fn workers_that_begin_at_once_on_an_empty_file_share_one_store() {
    let stub = Stub::good();
    begins_twice(Place::with_worker(stub.url()), &stub);
}

#[test]
fn workers_that_begin_at_once_on_an_empty_server_share_one_store() {
    let stub = Stub::good();
    let Some(place) = Place::with_worker(stub.url()).on_server() else { return };
    begins_twice(place, &stub);
}

#[test]
fn a_server_whose_connections_end_under_a_worker_costs_no_answer() {
    let stub = Stub::new(|ask| if ask.number == 1 { Answer::Hold } else { ask.good() });
    let Some(place) = Place::with_worker(stub.url()).on_server() else { return };
    place.write("s.jsonl", claude(0..TALKS));
    let enqueued = place.json(&["enqueue", "s.jsonl", "--flush", "--json"]);
    let running = place.start(&DRAIN);
    stub.until(1);
    place.cut_connections();
    stub.release();
    let output = running.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(count(&output.json(), "/jobs/done"), count(&enqueued, "/jobs"));
    assert_eq!(stub.count() as u64, count(&enqueued, "/jobs"), "nothing is asked twice");
}
