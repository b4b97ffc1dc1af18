//! Workers as processes: what they do with jobs, with each other's, and with those of the dead.

use super::handing::{Handed, ONE, in_store};
use super::input::claude;
use super::place::{Place, count};
use super::stub::{Answer, Ask, Stub};
use std::sync::{Arc, Mutex};

/// Works until nothing is left.
const DRAIN: [&str; 3] = ["worker", "--drain", "--json"];
/// Talks that are handed over; each is a slice or two.
const TALKS: usize = 6;

#[test]
fn waiting_jobs_are_extracted_once() {
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    let jobs = ONE.enqueue(&place, 0..TALKS);
    let output = place.run(&["worker", "--drain"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains(&format!("jobs done    {jobs}")), "{}", output.stdout);
    assert!(output.stderr.contains("nothing is left to do"), "{}", output.stderr);
    assert_eq!((stub.count(), place.jobs_in("done")), (jobs, jobs as i64));
    place.is_whole(TALKS);
    let again = place.json(&DRAIN);
    assert_eq!((count(&again, "/jobs/claimed"), stub.count()), (0, jobs));
    assert_eq!(place.number("SELECT count(*) FROM workers"), 0, "who ends well leaves");
}

#[test]
fn a_drain_does_not_leave_slices_that_wait_for_more() {
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    place.write("s.jsonl", claude(0..1));
    let queued = place.json(&["enqueue", "s.jsonl", "--json"]);
    assert!(queued["sessions"][0]["gathers_until"].is_number(), "{queued}");
    let summary = place.json(&DRAIN);
    assert_eq!((count(&summary, "/jobs/done"), count(&summary, "/left/gathering")), (1, 0));
    assert_eq!(place.jobs_in("done"), 1);
    place.write("s.jsonl", claude(0..2));
    place.json(&["enqueue", "s.jsonl", "--json"]);
    assert_eq!(count(&place.json(&DRAIN), "/jobs/done"), 1, "what follows is a slice of its own");
}

#[test]
fn one_job_is_one_job() {
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    let once = ["worker", "--once", "--json"];
    assert_eq!(count(&place.json(&once), "/jobs/claimed"), 0);
    let jobs = ONE.enqueue(&place, 0..TALKS);
    let summary = place.json(&once);
    assert_eq!((count(&summary, "/jobs/done"), stub.count()), (1, 1));
    assert_eq!(place.jobs_in("ready"), jobs as i64 - 1);
}

#[test]
fn slices_that_a_replay_extracted_are_not_asked_about_again() {
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    place.write("s.jsonl", claude(0..2));
    place.json(&["replay", "s.jsonl", "--json"]);
    let asked = stub.count();
    let again = "DELETE FROM jobs; INSERT OR IGNORE INTO lanes (namespace) VALUES ('roofs');
        INSERT INTO jobs (id, session_no, lane, state, priority, since, enqueued_at, slice,
            slice_index, first_ordinal, first_part, last_ordinal, last_part, tokens, cut)
        SELECT id, session_no, 1, 'ready', 0, 0, 0, slice, slice_index, first_ordinal, first_part,
            last_ordinal, last_part, 9,
            json_array(slice_index, json_array(json_array(first_ordinal, last_ordinal)))
        FROM runs WHERE first_part + last_part = 0 AND last_ordinal = first_ordinal + 1";
    place.sql().execute_batch(again).unwrap();
    let jobs = place.jobs_in("ready") as u64;
    let summary = place.json(&DRAIN);
    assert!(jobs > 0);
    assert_eq!((count(&summary, "/jobs/known"), stub.count()), (jobs, asked));
}

#[test]
fn a_worker_that_lost_its_lease_writes_nothing_and_journals_the_answer() {
    let stub = Stub::new(|ask| if ask.number == 1 { Answer::Hold } else { ask.good() });
    let place = Place::with_worker(stub.url());
    ONE.enqueue(&place, 0..1);
    let late = place.start(&DRAIN);
    stub.until(1);
    // It hears nothing and says nothing, as on a machine that sleeps.
    late.signal("STOP");
    let summary = place.json(&DRAIN);
    assert!(count(&summary, "/jobs/expired") > 0, "{summary}");
    place.is_whole(1);
    let export = place.export();
    late.signal("CONT");
    stub.release();
    let output = late.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
    let summary = output.json();
    assert_eq!(count(&summary, "/jobs/lost"), 1, "{summary}");
    assert_eq!(count(&summary, "/jobs/staged"), 0, "{summary}");
    assert_eq!(place.export(), export);
}

#[test]
fn jobs_of_a_killed_worker_are_waited_for_and_done() {
    let stub = Stub::new(|ask| if ask.number <= 2 { Answer::Hold } else { ask.good() });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "2");
    let jobs = ONE.enqueue(&place, 0..TALKS);
    let killed = place.start(&DRAIN);
    stub.until(2);
    killed.kill();
    assert_eq!(place.jobs_in("leased"), 2);
    let summary = place.json(&DRAIN);
    // On a machine that is busy enough a lease of a living worker runs out, too.
    let expired = count(&summary, "/jobs/expired");
    assert!(expired >= 2, "{summary}");
    let asked = stub.count() as u64;
    assert!(asked <= jobs as u64 + expired, "only what was under way is asked again: {asked}");
    place.is_whole(TALKS);
}

#[test]
fn killed_at_any_moment_nothing_is_lost_and_nothing_done_twice() {
    let stub = Stub::good();
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__QUEUE__ATTEMPTS_MAX", "50");
    place.set("ANNALIST__QUEUE__LEASE_SECS", "1");
    place.set("ANNALIST__MODEL__CONCURRENCY", "2");
    let jobs = ONE.enqueue(&place, 0..TALKS);
    let mut kills = 0;
    for last in 1..jobs {
        let running = place.start(&DRAIN);
        stub.until_count(last);
        running.kill();
        kills += 1;
    }
    place.json(&DRAIN);
    assert!(stub.count() <= jobs + 2 * kills, "{} requests, {kills} kills", stub.count());
    place.is_whole(TALKS);
    let journaled = place.number("SELECT count(*) FROM journal");
    let billed = place.number("SELECT sum(calls) FROM runs");
    assert_eq!(billed, journaled, "every answer that is kept is on the bill, once");
}

#[test]
fn two_workers_share_the_work() {
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    let jobs = ONE.enqueue(&place, 0..40) as u64;
    let done = std::thread::scope(|scope| {
        let works = || count(&place.json(&DRAIN), "/jobs/done");
        let (one, two) = (scope.spawn(works), scope.spawn(works));
        one.join().unwrap() + two.join().unwrap()
    });
    assert_eq!((done, stub.count() as u64), (jobs, jobs));
    place.is_whole(40);
}

/// The roofs that were asked about, in order.
fn listening() -> (Arc<Mutex<Vec<usize>>>, Stub) {
    let asked: Arc<Mutex<Vec<usize>>> = Arc::default();
    let heard = Arc::clone(&asked);
    let stub = Stub::new(move |ask: &Ask| {
        let roof = ask.slice().split("on roof ").nth(1).and_then(|rest| rest.split(' ').next());
        heard.lock().unwrap().push(roof.unwrap().parse().unwrap());
        ask.good()
    });
    (asked, stub)
}

#[test]
fn a_noisy_namespace_starves_no_other_and_what_is_urgent_goes_first() {
    let (asked, stub) = listening();
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    ONE.enqueue(&place, 0..20);
    Handed { name: "urgent", priority: 9, ..ONE }.enqueue(&place, 30..31);
    Handed { namespace: "quiet", name: "q", ..ONE }.enqueue(&place, 40..41);
    place.json(&DRAIN);
    let asked = asked.lock().unwrap();
    assert!(asked[..6].contains(&40), "another namespace waits for its turn only: {asked:?}");
    assert!(asked[..6].contains(&30), "priority goes before age: {asked:?}");
    let noisy: Vec<usize> = asked.iter().copied().filter(|roof| *roof < 20).collect();
    assert!(noisy.is_sorted(), "the oldest first: {noisy:?}");
}

#[test]
fn a_job_that_cannot_be_read_is_dead_and_its_entries_are_failed() {
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    ONE.enqueue(&place, 0..1);
    place.sql().execute_batch("UPDATE jobs SET cut = '[0,[[77]]]'").unwrap();
    let summary = place.json_with(1, &DRAIN);
    assert_eq!(count(&summary, "/jobs/dead"), place.jobs_in("dead") as u64);
    assert!(summary["jobs"]["failures"]["unreadable"].is_array(), "{summary}");
    let status = place.json_with(1, &["status", "--json"]);
    assert_eq!(status["sessions"][0]["coverage"]["failed"], 2, "{status}");
}

#[test]
fn running_workers_are_listed() {
    let stub = Stub::new(|_| Answer::Hold);
    let place = Place::with_worker(stub.url());
    ONE.enqueue(&place, 0..1);
    let running = place.start(&["worker"]);
    stub.until(1);
    let workers = in_store(&place, |store| async move { store.workers().await.unwrap() });
    assert_eq!((workers.len(), &workers[0].stopped), (1, &None));
    let holder = place.sql().query_row("SELECT holder FROM jobs", [], |row| row.get(0));
    assert_eq!(holder, Ok(workers[0].id.clone()));
    stub.release();
    running.signal("TERM");
    assert_eq!(running.wait().code, 0);
    assert!(in_store(&place, |store| async move { store.workers().await.unwrap() }).is_empty());
}

#[test]
fn answers_from_a_cassette_are_not_called_calls() {
    let (place, root) = (Place::new(), env!("CARGO_MANIFEST_DIR"));
    let session = format!("{root}/examples/sessions/plain-retro.txt");
    assert_eq!(place.run(&["enqueue", &session, "--flush"]).code, 0);
    let cassette = format!("{root}/examples/cassette");
    let done = place.run(&["worker", "--drain", "--cassette", &cassette]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("answers recorded  1"), "{}", done.stdout);
    assert!(!done.stdout.contains("calls"), "{}", done.stdout);
}
