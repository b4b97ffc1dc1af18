//! The queue as a person sees it and steers it. Jobs are handed over through the library; ages are far
//! from where their unit changes, so that what is printed does not depend on how fast the test runs.

use super::place::{Output, Place};
use annalist::now;
use annalist::{
    Branch, Claimed, Digest, Entry, EntryKind, Format, Job, JobId, Session, SliceId, Speaker,
    Timestamp,
};
use annalist::{ClaimRequest, Intake, JobEnding, OpenMode, Store};
use annalist::{Redacted, RedactionReport};
use serde_json::Value;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn words(text: &str) -> Redacted {
    Redacted::reopened(text.to_owned())
}

fn session(namespace: &str, name: &str) -> Session {
    Session {
        id: Session::id_of(namespace, Format::Codex, name),
        namespace: namespace.to_owned(),
        format: Format::Codex,
        native_id: words(name),
        path: format!("sessions/{name}.jsonl"),
        title: Some(words("Mending the roof")),
        cwd: None,
        parent: None,
        branches: None,
        started_at: Some(Timestamp(1_000)),
    }
}

fn entry(ordinal: u32) -> Entry {
    Entry {
        ordinal,
        line: ordinal + 1,
        native_id: None,
        speaker: Speaker::Person,
        kind: EntryKind::Prompt,
        branch: Branch::Active,
        text: words("the roof leaks"),
        tool: None,
        outcome: None,
        exit_code: None,
        at: None,
        skip: None,
    }
}

/// A job of two entries.
fn job(name: &str, n: u32) -> Job {
    Job {
        id: JobId(Digest::of(&["job", name])),
        slice: SliceId(Digest::of(&["slice", name])),
        index: n,
        first: (2 * n, 0),
        last: (2 * n + 1, 0),
        tokens: 1_234,
        cut: "{}".to_owned(),
        context: None,
    }
}

/// The first digits of the id of a job.
fn id(name: &str) -> String {
    job(name, 0).id.to_string()[..10].to_owned()
}

/// A queue of a place.
struct Queue {
    place: Place,
    store: Store,
    now: Timestamp,
}

impl Queue {
    fn new() -> Queue {
        let place = Place::new();
        let url = format!("sqlite:{}", place.database().display());
        Queue { place, store: Store::open(&url, OpenMode::Create).unwrap(), now: now() }
    }

    fn ago(&self, it: Duration) -> Timestamp {
        Timestamp(self.now.0 - i64::try_from(it.as_millis()).unwrap())
    }

    fn ahead(&self, it: Duration) -> Timestamp {
        Timestamp(self.now.0 + i64::try_from(it.as_millis()).unwrap())
    }

    async fn enqueue(&self, session: &Session, names: &[&str], gathers: bool, at: Timestamp) {
        let jobs: Vec<Job> = names.iter().zip(0..).map(|(name, n)| job(name, n)).collect();
        let known = 2 * jobs.len() as u32;
        let intake = Intake {
            session: session.clone(),
            growth: Default::default(),
            anew: None,
            goes_on: false,
            entries: (0..known).map(entry).collect(),
            known,
            jobs,
            gathering: None,
            priority: 0,
            document: None,
            findings: vec![],
            masked: RedactionReport::default(),
            remembered: None,
            at,
        };
        self.store.enqueue(intake).await.unwrap();
        if gathers && let Some(name) = names.last() {
            self.waits(name, "gathering", self.ahead(5 * MINUTE + MINUTE / 2), at);
        }
    }

    /// Makes a job wait.
    fn waits(&self, name: &str, reason: &str, until: Timestamp, since: Timestamp) {
        let sql = "UPDATE jobs SET state = 'waiting', reason = ?2, until = ?3, since = ?4,
                detail = iif(?2 = 'cap', 'limits.day_tokens_max is reached', NULL)
            WHERE lower(hex(id)) = ?1";
        let row = rusqlite::params![job(name, 0).id.to_string(), reason, until.0, since.0];
        assert_eq!(self.place.sql().execute(sql, row).unwrap(), 1);
    }

    async fn claim(&self, jobs_max: u32, at: Timestamp, until: Timestamp) -> Vec<Claimed> {
        let holder = "host-1-ab".to_owned();
        let claim = ClaimRequest { holder, jobs_max, until, attempts_max: 5, batch: None, now: at };
        self.store.claim(claim).await.unwrap().jobs
    }

    /// Runs a command in the place.
    #[track_caller]
    fn run(&self, args: &[&str]) -> Output {
        self.place.run(args)
    }

    fn worker(&self, id: &str, seen_at: Timestamp, stopped: Option<&str>) {
        let sql = "INSERT INTO workers (id, started_at, seen_at, stopped) VALUES (?1, ?2, ?3, ?4)";
        let row = rusqlite::params![id, self.ago(3 * HOUR + HOUR / 2).0, seen_at.0, stopped];
        self.place.sql().execute(sql, row).unwrap();
    }
}

/// Of everything something: dead, at a cap, leased, ready, gathering and cancelled.
async fn full() -> Queue {
    let queue = Queue::new();
    let roof = session("roofs", "rollout-one");
    let long_ago = queue.ago(50 * HOUR);
    let names = ["dead-1", "dead-2", "cap-1", "cap-2", "leased", "off", "ready"];
    queue.enqueue(&roof, &names, false, long_ago).await;
    let jobs = queue.claim(5, queue.ago(3 * HOUR), queue.ahead(3 * MINUTE + MINUTE / 2)).await;
    for claimed in &jobs[..2] {
        let dead = JobEnding::Dead {
            kind: "refused".to_owned(),
            detail: "the model would not answer".to_owned(),
            asking: Digest::of(&["asking"]),
        };
        let at = queue.ago(150 * MINUTE);
        queue.store.finish(claimed.lease, None, dead, at).await.unwrap();
    }
    for name in ["cap-1", "cap-2"] {
        queue.waits(name, "cap", queue.ahead(5 * HOUR + HOUR / 2), queue.ago(2 * HOUR));
    }
    queue.store.cancel(vec![job("off", 0).id], queue.ago(HOUR)).await.unwrap();
    queue
        .enqueue(&session("walls", "rollout-two"), &["gathers"], true, queue.ago(90 * MINUTE))
        .await;
    queue
}

/// What is printed, without moments.
fn timeless(text: &str) -> String {
    let moment = regex::Regex::new(r"\d{4}-\d\d-\d\dT[0-9:.]+Z").unwrap();
    let heard = regex::Regex::new(r"last seen \d+ s ago").unwrap();
    heard.replace_all(&moment.replace_all(text, "(moment)"), "last seen lately").into_owned()
}

#[tokio::test]
async fn jobs_are_listed_with_what_they_wait_for() {
    let queue = full().await;
    let listed = queue.run(&["jobs"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    insta::assert_snapshot!("jobs", listed.stdout);
    assert_eq!(queue.run(&["jobs", "list"]).stdout, listed.stdout);
    let json = queue.place.json(&["jobs", "--json"]);
    let states: Vec<&str> =
        json.as_array().unwrap().iter().map(|it| it["state"].as_str().unwrap()).collect();
    let expected = ["dead", "dead", "waiting", "waiting", "leased", "ready", "waiting"];
    assert_eq!(states, expected);
    let count = |args: &[&str]| {
        let all = [&["jobs"], args, &["--json"]].concat();
        queue.place.json(&all).as_array().unwrap().len()
    };
    assert_eq!(count(&["--state", "dead", "--state", "cancelled"]), 3);
    assert_eq!((count(&["--namespace", "walls"]), count(&["--limit", "2"])), (1, 2));
    assert_eq!(count(&["--state", "done"]), 0);
    let short = queue.run(&["jobs", "--limit", "2"]);
    assert_eq!(short.stdout.lines().count(), 3, "{}", short.stdout);
    let none = queue.run(&["jobs", "--namespace", "cellars"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.contains("annalist jobs"), "{}", none.stderr);
}

#[tokio::test]
async fn named_jobs_are_listed_in_any_state_with_their_errors() {
    let queue = full().await;
    let [dead, off] = [id("dead-1"), id("off")];
    let shown = queue.run(&["jobs", &dead, &off]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    insta::assert_snapshot!("job", timeless(&shown.stdout));
    let states = queue.place.json(&["jobs", "list", &off, &dead, "--json"]);
    assert_eq!((&states[0]["state"], &states[1]["state"]), (&"cancelled".into(), &"dead".into()));
    queue.run(&["jobs", &dead, "--state", "dead"]).refused(2, &["--state"]);
}

#[tokio::test]
async fn status_shows_the_queue_and_what_needs_a_person() {
    let queue = full().await;
    queue.worker("host-1-ab", queue.ago(Duration::from_secs(5)), None);
    queue.worker("host-2-cd", queue.ago(150 * MINUTE), Some("export OPENAI_KEY: it is not set"));
    let status = queue.run(&["status"]);
    assert_eq!(status.code, 1, "{}", status.stderr);
    insta::assert_snapshot!("status", timeless(&status.stdout));
    let json = queue.place.json_with(1, &["status", "--json"]);
    let jobs = &json["queue"]["jobs"];
    let counts = ["waiting", "ready", "leased", "dead", "cancelled"].map(|name| jobs[name].clone());
    assert_eq!(counts, [3, 1, 1, 2, 1].map(Value::from));
    assert_eq!(json["queue"]["dead"][0]["retry"], "annalist jobs retry --all-dead --kind refused");
    assert_eq!(json["coverage"]["pending"], 10, "those of open jobs");
    let retry = queue.run(&["jobs", "retry", "--all-dead", "--kind", "refused"]);
    assert_eq!(retry.stdout, "ready 2 (2 refused)\n");
    assert_eq!(queue.run(&["status"]).code, 1, "a worker has stopped");
    queue.place.sql().execute("DELETE FROM workers WHERE stopped IS NOT NULL", []).unwrap();
    let mended = queue.run(&["status"]);
    assert_eq!(mended.code, 0, "{}", mended.stdout);
    assert!(mended.stdout.contains("accounted for or in the queue"), "{}", mended.stdout);
    queue.place.sql().execute("DELETE FROM workers", []).unwrap();
    let stuck = queue.run(&["status"]);
    assert!(
        stuck.code == 1 && stuck.stdout.contains("stuck 3 jobs ready for 2 d"),
        "{}",
        stuck.stdout
    );
}

#[tokio::test]
async fn status_of_a_store_without_a_queue_says_nothing_of_one() {
    let queue = Queue::new();
    let status = queue.run(&["status"]);
    assert_eq!(status.code, 0, "{}", status.stderr);
    for word in ["QUEUE", "worker", "jobs", "PENDING", "pending"] {
        assert!(!status.stdout.contains(word), "{}", status.stdout);
    }
    let none = queue.run(&["jobs"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.contains("annalist status"), "{}", none.stderr);
    let retry = queue.run(&["jobs", "retry", "--all-dead"]);
    assert!(retry.code == 0 && retry.stderr.contains("no dead jobs"), "{}", retry.stderr);
}

#[tokio::test]
async fn orders_say_what_was_done_and_why_the_rest_was_left() {
    let queue = full().await;
    let told = |args: &[&str]| {
        let output = queue.run(&[&["jobs"], args].concat());
        assert_eq!(output.stderr, "");
        (output.code, output.stdout)
    };
    let [dead, leased, ready, off] = ["dead-1", "leased", "ready", "off"].map(id);
    let line = |text: &str| format!("{text}\n");
    let (code, said) = told(&["drop", &dead, &leased]);
    let first = line(&format!("dropped {dead} (was dead, refused)"));
    let left = format!(
        "unchanged {leased}: it is still leased: run `annalist jobs cancel {leased}` first"
    );
    assert_eq!((code, said), (1, first + &line(&left)));
    let (code, said) = told(&["retry", &ready, &leased, &off]);
    let left = format!(
        "unchanged {ready}: it is already ready\n\
         unchanged {leased}: it is already leased: a worker is processing it\n"
    );
    assert_eq!((code, said), (0, left + &line(&format!("ready {off} (was cancelled)"))));
    assert_eq!(told(&["cancel", &leased]), (0, line(&format!("cancelled {leased} (was leased)"))));
    let again = line(&format!("unchanged {leased}: it is already cancelled"));
    assert_eq!(told(&["cancel", &leased, &leased]), (0, again));
    assert_eq!(told(&["drop", "--all-cancelled"]), (0, line("dropped 1 (1 cancelled)")));
    let dead = id("dead-2");
    let left =
        format!("unchanged {dead}: it is already dead: `annalist jobs drop {dead}` deletes it");
    assert_eq!(told(&["cancel", &dead]), (1, line(&left)));
    let none = queue.run(&["jobs", "retry", "--all-dead", "--kind", "malformed"]);
    assert!(none.code == 0 && none.stderr.contains("dead: 1 refused"), "{}", none.stderr);
    let json = queue.place.json(&["jobs", "retry", "--all-dead", "--json"]);
    assert_eq!((&json[0]["was"], &json[0]["done"]), (&"dead".into(), &true.into()));
}

#[tokio::test]
async fn an_invalid_order_is_one_line_and_changes_nothing() {
    let queue = full().await;
    let good = id("dead-1");
    for verb in ["list", "retry", "cancel", "drop"] {
        queue.run(&["jobs", verb, "xyz"]).refused(2, &["xyz", "hex digits"]);
        queue.run(&["jobs", verb, "ffffffffff"]).refused(2, &["no job", "annalist jobs"]);
    }
    queue.run(&["jobs", "retry", &good, "ffffffffff"]).refused(2, &["no job"]);
    // Of eight ids two begin with the same digit, or all differ; names are made until two do.
    let many: Vec<String> = (0..40).map(|n| format!("n{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    queue.enqueue(&session("roofs", "rollout-many"), &many, false, queue.now).await;
    queue.run(&["jobs", "cancel", &id("n0")[..1]]).refused(2, &["more than one job"]);
    queue.run(&["jobs", "--session", "zz"]).refused(2, &["zz"]);
    for (args, expected) in [
        (&["--state", "redy"][..], "ready"),
        (&["--state", "daed"], "cancelled"),
        (&["retry"], "--all-dead"),
        (&["retry", "--all-dead", "ab"], "--all-dead"),
        (&["retry", "ab", "--kind", "refused"], "--all-dead"),
        (&["drop"], "--all-cancelled"),
        (&["drop", "--all-dead", "--all-cancelled"], "--all-cancelled"),
        (&["cancel"], "ID"),
        (&["lsit"], "hex digits"),
    ] {
        let output = queue.run(&[&["jobs"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}");
        assert!(output.stderr.contains(expected), "{args:?}: {}", output.stderr);
    }
    let shown = queue.place.json(&["jobs", &good, "--json"]);
    assert_eq!(shown[0]["state"], "dead", "nothing was done");
}
