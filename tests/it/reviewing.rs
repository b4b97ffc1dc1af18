//! `annalist test review` as a person has it: on a terminal, one question after another; and what it takes away.

use super::place::{ANNALIST, Output, Place, read, walk};
use super::stub::{Answer, Stub};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// What is asked of a new recording, and of what no request asks for.
const NEW: &str = "accept, reject, skip or quit? [a/r/s/q]";
const OLD: &str = "take away, keep or quit? [t/k/q]";
/// Cases of one slice each.
const CASES: [&str; 3] = ["lock-file-retry", "quick-question", "what-if"];

/// A model that answers with one request and nothing else; what it is about is its to say.
fn says(what: &'static str) -> Stub {
    Stub::new(move |_| {
        let request = json!({"intent": what, "target": null, "summary": what});
        let none = Value::Array(Vec::new());
        Answer::Call(json!({
            "decisions": none, "discussions": none, "attempts": none, "requests": [request],
        }))
    })
}

/// Copies of the cases, asked of a model from now on.
fn with(stub: &Stub) -> Place {
    let mut place = Place::new();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases");
    for name in CASES {
        walk(&shipped.join(name), &mut |path| {
            let inside = path.strip_prefix(&shipped).unwrap();
            place.write(&format!("cases/{}", inside.display()), read(path));
        });
    }
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    place.set("ANNALIST__MODEL__MODEL", "stub-1");
    place
}

fn record(place: &Place, more: &[&str]) {
    let recorded = place.run(&[&["test", "cases", "--record", "--json"], more].concat());
    assert!(recorded.stderr.contains("to review"), "{}", recorded.stderr);
}

/// Makes a prompt in `own` that differs from the built-in one.
fn own_prompt(place: &Place) {
    place.run(&["init", "--prompts", "own"]);
    let prompt = String::from_utf8(read(&place.path("own/extract.md"))).unwrap();
    let changed = prompt.replace("Short, factual", "Brief, factual");
    assert_ne!(changed, prompt);
    place.write("own/extract.md", changed);
}

/// The requests that the cassette of a case answers, and in which file.
fn kept(place: &Place, case: &str) -> BTreeMap<String, String> {
    let mut kept = BTreeMap::new();
    let folder = place.path(&format!("cases/{case}/cassette"));
    walk(&folder, &mut |path| {
        let file: Value = serde_json::from_slice(&read(path)).unwrap();
        for exchange in file["exchanges"].as_array().unwrap() {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let digest = exchange["request"]["digest"].as_str().unwrap().to_owned();
            assert_eq!(kept.insert(digest, name), None, "answered twice");
        }
    });
    kept
}

fn waiting(place: &Place) -> Vec<&'static str> {
    let waits =
        |case: &&str| place.path(&format!("cases/{case}/cassette.new/stub-1.json")).exists();
    CASES.into_iter().filter(waits).collect()
}

/// A review on a terminal where somebody types `lines` and then leaves; none where there is no `script`.
#[expect(clippy::print_stderr, reason = "says why nothing was tested")]
fn typed(place: &Place, more: &str, lines: &str) -> Option<Output> {
    let review = format!("'{ANNALIST}' test review cases {more}");
    let mut script = place.program("script", &["-qec", &review, "/dev/null"]);
    script.env("SHELL", "/bin/sh").env("TERM", "dumb");
    let script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut script) = script else {
        eprintln!("not tested: nothing here gives a process a terminal (script of util-linux)");
        return None;
    };
    // Dropped at once: the end of the input is the end of what is typed.
    script.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ended = script.wait_with_output().unwrap();
    let (code, stdout) = (ended.status.code().unwrap(), String::from_utf8(ended.stdout).unwrap());
    Some(Output { code, stdout, stderr: String::new() })
}

#[test]
fn on_a_terminal_each_recording_is_asked_about_and_becomes_what_is_said() {
    let stub = says("Keep the lock file.");
    let place = with(&stub);
    record(&place, &[]);
    let before = kept(&place, "lock-file-retry");
    // What is not understood is asked again.
    let Some(ended) = typed(&place, "", "what?\na\nReject\ns\n") else { return };
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    assert_eq!(ended.stdout.matches(NEW).count(), 4, "{}", ended.stdout);
    for told in ["lock-file-retry · stub-1 (1 of 3)", "what-if · stub-1 (3 of 3)", "adds 1 answer"]
    {
        assert!(ended.stdout.contains(told), "{told}: {}", ended.stdout);
    }
    assert!(ended.stdout.contains("1 accepted, 1 rejected, 1 left"), "{}", ended.stdout);
    assert_eq!(waiting(&place), ["what-if"]);
    let after = kept(&place, "lock-file-retry");
    assert!(before.iter().all(|it| after.get(it.0) == Some(it.1)), "what was accepted stays");
    assert_eq!(after.len(), before.len() + 1);
    assert_eq!(kept(&place, "quick-question").len(), 1, "rejected");
}

#[test]
fn who_quits_or_leaves_has_decided_nothing_more() {
    let stub = says("Keep the lock file.");
    let place = with(&stub);
    record(&place, &[]);
    let before = place.files();
    for lines in ["q\n", "", "no\nyes\n"] {
        let Some(ended) = typed(&place, "", lines) else { return };
        assert_eq!(ended.code, 0, "{}", ended.stdout);
        assert!(ended.stdout.contains("0 accepted, 0 rejected, 3 left"), "{}", ended.stdout);
        assert_eq!((place.files(), waiting(&place).len()), (before.clone(), 3));
    }
    let Some(ended) = typed(&place, "", "r\nq\n") else { return };
    assert!(ended.stdout.contains("0 accepted, 1 rejected, 2 left"), "{}", ended.stdout);
    assert_eq!(waiting(&place), CASES[1..]);
}

#[test]
fn accepting_takes_no_answer_to_another_prompt_away() {
    let stub = says("Keep the lock file.");
    let place = with(&stub);
    record(&place, &["--model", "stub-1"]);
    place.run(&["test", "review", "cases", "--accept"]);
    let first = kept(&place, "what-if");
    own_prompt(&place);
    record(&place, &["--prompt", "own"]);
    let accepted = place.run(&["test", "review", "cases", "--prompt", "own", "--accept"]);
    assert_eq!(accepted.code, 0, "{}{}", accepted.stdout, accepted.stderr);
    let told = "adds 1 answer, replaces 0; 0 as before, 2 of other requests stay";
    assert!(accepted.stdout.contains(told), "{}", accepted.stdout);
    let both = kept(&place, "what-if");
    assert_eq!(both.len(), first.len() + 1);
    assert!(first.iter().all(|it| both.get(it.0) == Some(it.1)));
    // The settings' prompt does not ask for it; who looks with the other one sees that it is used.
    let run = place.run(&["test", "cases/what-if"]);
    assert!(run.stderr.contains("what-if: 1 recording of another prompt"), "{}", run.stderr);
    assert!(!run.stderr.contains("no request asks"), "{}", run.stderr);
    let pruned = place.run(&["test", "review", "cases", "--prompt", "own", "--prune"]);
    assert!(pruned.stderr.contains("nothing waits"), "{}{}", pruned.stdout, pruned.stderr);
    let named = place.run(&["test", "cases/what-if", "--prompt", "own", "--model", "stub-1"]);
    assert!(!named.stderr.contains("no request asks"), "{}", named.stderr);
}

#[test]
fn an_answer_that_is_replaced_is_shown_and_what_waits_already_goes_on_waiting() {
    let (one, other) = (says("Keep the lock file."), says("Throw it away."));
    let mut place = with(&one);
    record(&place, &[]);
    place.run(&["test", "review", "cases", "--accept"]);
    let before = kept(&place, "what-if");
    place.set("ANNALIST__MODEL__BASE_URL", other.url());
    place.set("ANNALIST__STORE__URL", "sqlite:other.db");
    record(&place, &[]);
    let file = place.path("cases/what-if/cassette/stub-1.json");
    assert!(!String::from_utf8(read(&file)).unwrap().contains("Throw"));
    own_prompt(&place);
    record(&place, &["--prompt", "own"]);
    let accepted = place.run(&["test", "review", "cases/what-if", "--accept"]).stdout;
    assert!(accepted.contains("adds 1 answer, replaces 1; 0 as before, 1 of other"), "{accepted}");
    let digest = before.iter().find(|it| it.1 == "stub-1").unwrap().0;
    let line = format!("replaced cassette/stub-1.json {}", &digest[..12]);
    assert!(accepted.contains(&line), "{line}: {accepted}");
    let after = kept(&place, "what-if");
    assert!(before.keys().all(|digest| after.contains_key(digest)), "{after:?}");
    assert_eq!(after.len(), before.len() + 1, "what waited for the other prompt is there too");
    assert!(String::from_utf8(read(&file)).unwrap().contains("Throw"));
}

#[test]
fn what_no_request_asks_for_is_told_and_taken_away_when_somebody_says_so() {
    let stub = says("Keep the lock file.");
    let place = with(&stub);
    record(&place, &[]);
    place.run(&["test", "review", "cases", "--accept"]);
    let quiet = place.run(&["test", "cases"]);
    assert!(!quiet.stderr.contains("no request asks"), "both models are asked: {}", quiet.stderr);
    let first = kept(&place, "quick-question");
    let path = "cases/quick-question/transcript.txt";
    let transcript = String::from_utf8(read(&place.path(path))).unwrap();
    place.write(path, format!("{transcript}\nUser: And thanks again for the quick answer.\n"));
    let stale = place.run(&["test", "cases/quick-question"]);
    let line = "quick-question: 2 recordings that no request asks for any more";
    assert!(stale.stderr.contains(line), "{}", stale.stderr);
    let pruned = place.run(&["test", "review", "cases", "--prune"]);
    assert!(pruned.stderr.contains("kept: the case is stale"), "{}", pruned.stderr);
    assert_eq!(kept(&place, "quick-question"), first);

    record(&place, &["--model", "stub-1"]);
    place.write("cases/quick-question/case.toml", "about = \"x\"\nmodel = \"stub-1\"\n");
    let listed = place.run(&["test", "review", "cases", "--list"]).stdout;
    assert_eq!(listed.matches("\tunused\t").count(), 2, "{listed}");
    // Of the case that changed there is a new recording; once it is accepted the old ones are of no use.
    let Some(ended) = typed(&place, "", "a\nk\n") else { return };
    assert_eq!(ended.stdout.matches(OLD).count(), 1, "{}", ended.stdout);
    assert!(
        ended.stdout.contains("adds 1 answer, replaces 0; 0 as before, 2 of other"),
        "{}",
        ended.stdout
    );
    assert_eq!(kept(&place, "quick-question").len(), 3);
    let run = place.run(&["test", "cases/quick-question", "--json"]);
    assert!(run.stderr.contains(line), "{}", run.stderr);
    let Some(ended) = typed(&place, "", "t\n") else { return };
    assert!(ended.stdout.contains("0 left; 2 unused recordings taken away"), "{}", ended.stdout);
    let left = kept(&place, "quick-question");
    assert!(left.len() == 1 && left.keys().all(|digest| !first.contains_key(digest)), "{left:?}");
    let rest = place.run(&["test", "review", "cases"]);
    assert!(rest.code == 0 && rest.stderr.contains("nothing waits"), "{}", rest.stderr);
}

#[test]
fn a_changed_prompt_is_compared_with_what_was_accepted_for_the_old_one() {
    let (stub, worse) = (says("Keep the lock file."), says("Paint the shed."));
    let mut place = with(&stub);
    record(&place, &[]);
    place.run(&["test", "review", "cases", "--accept"]);
    own_prompt(&place);
    place.set("ANNALIST__MODEL__BASE_URL", worse.url());
    record(&place, &["--prompt", "own"]);
    let look = |more: &[&str]| {
        let shown = place.run(&[&["test", "review", "cases/what-if", "--prune"], more].concat());
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        shown.stdout
    };
    for more in [&["--prompt", "own"][..], &[]] {
        let shown = look(more);
        for told in ["- request Keep the lock file.", "+ request Paint the shed."] {
            assert!(shown.contains(told), "{told} {more:?}: {shown}");
        }
        assert!(!shown.contains("stale →"), "{shown}");
        let other = shown.contains("recorded with another prompt");
        assert_eq!(other, more.is_empty(), "{shown}");
    }
    // Another transcript has no answer that could be compared with.
    let path = "cases/what-if/transcript.txt";
    let transcript = String::from_utf8(read(&place.path(path))).unwrap();
    place.write(path, format!("{transcript}\nUser: And thanks again.\n"));
    let shown = look(&[]);
    assert!(!shown.contains("- request Keep"), "{shown}");
}

#[test]
fn a_case_that_passed_with_the_old_prompt_and_fails_with_the_new_one_is_worse() {
    let stub = says("Paint the shed.");
    let place = with(&stub);
    own_prompt(&place);
    let hand_written = ["--model", "hand-written", "--prompt", "own"];
    record(&place, &hand_written);
    let shown =
        place.run(&["test", "review", "cases/lock-file-retry", "--prompt", "own", "--prune"]);
    assert!(shown.stdout.contains("worse lock-file-retry  passed → failed"), "{}", shown.stdout);
    assert!(shown.stdout.contains("missed now"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("nothing is worse"), "{}", shown.stdout);
}

#[test]
fn what_was_accepted_and_what_other_prompts_ask_for_is_taken_away_only_if_somebody_says_so() {
    let stub = says("Keep the lock file.");
    let place = with(&stub);
    own_prompt(&place);
    let first = kept(&place, "what-if");
    let both = ["--model", "mock-a", "--model", "mock-b", "--prompt", "own"];
    let recorded = place.run(&[&["test", "cases", "--record", "--json"], &both[..]].concat());
    let command = "annalist test review cases --prompt own";
    assert!(recorded.stderr.contains(command), "{}", recorded.stderr);
    let accepted = place.run(&["test", "review", "cases", "--accept", "--prune"]);
    assert!(accepted.stdout.contains("6 accepted, 0 rejected, 0 left\n"), "{}", accepted.stdout);
    let all = kept(&place, "what-if");
    assert_eq!(all.len(), first.len() + 2);
    // Later they are told apart, and stay.
    let pruned = place.run(&["test", "review", "cases", "--prune"]);
    assert!(pruned.stderr.contains("6 recordings of other prompts stay"), "{}", pruned.stderr);
    let listed = place.run(&["test", "review", "cases", "--list"]).stdout;
    assert_eq!(
        (listed.matches("\tother-prompt\t").count(), listed.matches("\tunused\t").count()),
        (6, 0)
    );
    assert_eq!(kept(&place, "what-if"), all);
    let named = ["test", "review", "cases", "--prune", "--other-prompts"];
    let stays = place.run(&[&named[..], &["--prompt", "own"]].concat());
    assert!(stays.stderr.contains("nothing waits"), "{}", stays.stderr);
    let gone = place.run(&named);
    assert!(gone.stdout.contains("6 unused recordings taken away"), "{}", gone.stdout);
    assert_eq!(kept(&place, "what-if"), first);
}

#[test]
fn a_question_that_two_runs_have_at_the_same_time_is_asked_and_paid_for_once() {
    let stub = Stub::new(|_| Answer::Hold);
    let place = with(&stub);
    let run = |cases: &[&str]| {
        let all = [&["test"], cases, &["--record", "--json", "--concurrency", "2"]].concat();
        let mut run = place.command(&all);
        run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut first = run(&["cases/quick-question"]);
    stub.until_count(1);
    // What it has alone is asked meanwhile.
    let mut second = run(&["cases/quick-question", "cases/what-if"]);
    stub.until_count(2);
    stub.release();
    for run in [&mut first, &mut second] {
        run.wait().unwrap();
    }
    assert_eq!(stub.count(), 2);
    assert_eq!(waiting(&place), ["quick-question", "what-if"]);
}
