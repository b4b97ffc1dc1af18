//! A model that is asked what records teach, as a process: asked once, checked by the host, on the bill, and forgotten
//! with what it was asked about.

use super::judging::{CHOICES, place, record, talk};
use super::place::{Place, count, read};
use super::stub::{Answer, Ask, Stub, error};
use serde_json::{Value, json};

pub(crate) const BY_MODEL: [&str; 5] = ["memory", "reflect", "--model", "stub-1", "--json"];
pub(crate) const BY_RULE: [&str; 3] = ["memory", "reflect", "--json"];

/// What both choices teach, in their words.
pub(crate) const LESSON: &str = "Redis was chosen over Postgres because the queue needs low latency, Postgres later because it must survive a restart.";

/// A server that extracts well, and looks back by `script`.
pub(crate) fn teacher(script: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Stub {
    Stub::new(move |ask| match ask.tool() {
        "write_reflection" => script(ask),
        _ => ask.good(),
    })
}

/// Two choices of a person in the project `roofs`.
pub(crate) fn chosen(stub: &Stub) -> Place {
    place(stub, &CHOICES.map(|words| ("user", words)))
}

pub(crate) fn lesson(category: &str, text: &str, records: &[&str]) -> Value {
    json!({"category": category, "lesson": text, "records": records})
}

pub(crate) fn lessons(entries: &[Value]) -> Answer {
    Answer::Call(json!({"lessons": entries}))
}

/// What a good model answers.
pub(crate) fn good(_: &Ask) -> Answer {
    lessons(&[lesson("architecture", LESSON, &["R1", "R2"])])
}

/// How many questions that are no session's there were.
pub(crate) fn paid(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM bills")
}

fn answers(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM journal WHERE reply LIKE '%\"lessons%'")
}

/// The texts of the first retrospective.
fn notes(told: &Value) -> Vec<&str> {
    let notes = told[0]["notes"].as_array().unwrap().iter();
    notes.map(|it| it["headline"].as_str().unwrap()).collect()
}

#[test]
fn no_model_writes_lessons_unless_one_is_named() {
    let stub = teacher(|_| panic!("nobody is to be asked"));
    let mut place = chosen(&stub);
    let told = place.json(&BY_RULE);
    assert_eq!(
        (&told[0]["namespace"], &told[0]["made"]),
        (&json!("home/dev/roofs"), &json!({"by": "rule"}))
    );
    assert_eq!(notes(&told), ["Postgres", "Redis"]);
    assert_eq!(count(&told[0], "/asked/questions"), 0);
    place.set("ANNALIST__CONSOLIDATE__MODEL", "stub-1");
    let output = place.run(&["memory", "reflect", "--no-model"]);
    assert!(output.code == 0 && output.stdout.contains("by rule"), "{}", output.stdout);
    place.run(&["memory", "reflect", "--model", "x", "--no-model"]).refused(2, &["--no-model"]);
    place.run(&["memory", "reflect", "--cassette", "nowhere"]).refused(2, &["nowhere"]);
    let none = place.run(&["memory", "reflect", "--no-model", "--since", "2030-01-01"]);
    assert!(none.code == 0 && none.stderr.contains("no records"), "{}", none.stderr);
}

#[test]
fn a_lesson_names_its_records_stands_on_the_bill_and_is_asked_for_once() {
    let stub = teacher(good);
    let mut place = chosen(&stub);
    let told = place.json(&BY_MODEL);
    assert_eq!(told[0]["made"], json!({"by": "model", "model": "stub-1"}));
    assert_eq!((notes(&told), &told[0]["findings"]), (vec![LESSON], &json!([])));
    let records = told[0]["notes"][0]["records"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    for record in records {
        place.json(&["why", record.as_str().unwrap(), "--json"]);
    }
    let found =
        ["/asked/records", "/asked/journaled", "/usage/calls"].map(|it| count(&told[0], it));
    assert_eq!((found, stub.count()), ([2, 0, 1], 3));
    // The setting names it as well as the flag, and the journal answers.
    place.set("ANNALIST__CONSOLIDATE__MODEL", "stub-1");
    let output = place.run(&["memory", "reflect"]);
    assert!(output.stdout.contains("by the model stub-1"), "{}", output.stdout);
    assert!(output.stdout.contains("must survive a restart."), "whole: {}", output.stdout);
    let line = "asked about 2 records in 1 question (1 from the journal): 0 calls";
    assert!(output.stderr.contains(line), "{}", output.stderr);
    assert_eq!((stub.count(), paid(&place)), (3, 1));
    let status = place.json(&["status", "--json"]);
    assert_eq!(count(&status, "/spent/calls"), 3);
    let bill = status["bill"].as_array().unwrap();
    let line = bill.iter().find(|it| it["for"] == "reflect").unwrap();
    assert_eq!((&line["namespace"], &line["calls"]), (&json!("home/dev/roofs"), &json!(1)));
    // What is new is another question.
    let more = "We chose tar over slate because the roof is flat.";
    place.write("t/s3.jsonl", talk("roofs", 9, ("user", more)));
    place.json(&["replay", "t", "--json"]);
    assert_eq!(count(&place.json(&BY_MODEL)[0], "/usage/calls"), 1);
}

#[test]
fn the_same_lessons_are_written_once_and_what_a_person_changed_stays() {
    let place = chosen(&teacher(good));
    place.run(&["memory", "init"]);
    place.json(&["memory", "sync", "--namespace", "home/dev/roofs", "--json"]);
    let args =
        ["memory", "reflect", "--write", "--namespace", "home/dev/roofs", "--model", "stub-1"];
    let retros = || {
        let files = place.files().into_iter();
        let retros = files.filter(|(path, _)| path.to_str().unwrap().ends_with("-retro.md"));
        retros.map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(place.run(&args).code, 0);
    let first = retros();
    assert!(place.run(&args).stderr.contains("is up to date"));
    assert_eq!(retros(), first);
    let text = &first[0].1;
    assert!(
        text.contains("Made from the records by the model stub-1.\n\n## Architecture\n- Redis")
    );
    assert_eq!(text.matches("<!-- @tag: record-").count(), 2, "{text}");
    let lint = place.json(&["memory", "lint", "--format", "json"]);
    assert_eq!(lint["errors"], 0, "{lint}");
    place.write(first[0].0.to_str().unwrap(), format!("{text}\nMine.\n"));
    assert_eq!(place.run(&args).code, 0);
    let now = retros();
    assert_eq!(now.len(), 2);
    assert!(now.iter().any(|(path, text)| *path == first[0].0 && text.ends_with("\nMine.\n")));
    // What was made of a record goes with it, in every file; what a person wrote beside it stays.
    let told = place.json(&BY_RULE);
    let record = told[0]["notes"][0]["records"][0].as_str().unwrap();
    let forgot = place.json(&["forget", "--record", record, "--yes", "--json"]);
    assert_eq!(forgot["proof"]["left"].get("files"), None, "{forgot}");
    for (path, text) in retros() {
        assert!(!text.contains("Redis") && !text.contains("@tag"), "{text}");
        assert_eq!(text.ends_with("\nMine.\n"), path == first[0].0);
    }
}

#[test]
fn only_standing_records_are_shown_and_nothing_private() {
    let stub = Stub::new(|ask| {
        if ask.tool() == "write_extracted" && ask.slice().contains("tar over slate") {
            return Answer::Call(json!({
                "decisions": [{"options": ["tar"], "chosen": "tar", "rationale": "see `roof/none.rs`"}],
                "discussions": [], "attempts": [], "requests": [],
            }));
        }
        match ask.tool() {
            "write_reflection" => {
                let shown = ask.said("<batch-").unwrap();
                assert!(shown.contains("low latency"), "{shown}");
                for other in ["restart", "none.rs", "ann@example.org", "hunter2hunter2"] {
                    assert!(!shown.contains(other), "{other}: {shown}");
                }
                lessons(&[])
            }
            _ => ask.good(),
        }
    });
    let place = Place::with_endpoint(stub.url());
    let said = [
        CHOICES[0],
        CHOICES[1],
        "We chose tar over slate because the roof is flat.",
        "We chose ann@example.org over <private>hunter2hunter2</private> because low latency pays.",
    ];
    for (day, words) in (1..).zip(said) {
        place.write(&format!("t/s{day}.jsonl"), talk("roofs", day, ("user", words)));
    }
    place.json(&["replay", "t", "--json"]);
    assert!(place.number("SELECT count(*) FROM records WHERE state = 'quarantined'") > 0);
    place.json(&["consolidate", "--json"]);
    let take_back = "UPDATE memories SET state = 'retracted',
        body = json_set(body, '$.state', 'retracted') WHERE body LIKE '%restart%'";
    assert_eq!(place.sql().execute(take_back, []).unwrap(), 1);
    let told = place.json(&BY_MODEL);
    assert_eq!((&told[0]["made"]["by"], &told[0]["notes"]), (&json!("model"), &json!([])));
    let by_rule = place.json(&BY_RULE);
    assert!(!notes(&by_rule).contains(&"Postgres"), "{by_rule}");
}

#[test]
fn each_namespace_is_looked_back_at_by_itself() {
    let stub = teacher(|ask| {
        let shown = ask.said("<batch-").unwrap();
        assert!(shown.contains("queue-of-roofs") != shown.contains("queue-of-cellars"), "{shown}");
        good(ask)
    });
    let place = Place::with_endpoint(stub.url());
    for (project, day) in [("roofs", 1), ("cellars", 11)] {
        for (n, words) in CHOICES.iter().enumerate() {
            let words = words.replace("queue", &format!("queue-of-{project}"));
            place.write(&format!("t/{project}{n}.jsonl"), talk(project, day + n, ("user", &words)));
        }
    }
    place.json(&["replay", "t", "--json"]);
    let told = place.json(&BY_MODEL);
    let names: Vec<&Value> = told.as_array().unwrap().iter().map(|it| &it["namespace"]).collect();
    assert_eq!(
        (names, paid(&place)),
        (vec![&json!("home/dev/cellars"), &json!("home/dev/roofs")], 2)
    );
    // A session goes with the answer that was shown its records, and with no other.
    let sessions = place.json(&["status", "--all", "--json"]);
    let of = |it: &&Value| it["namespace"] == "home/dev/roofs";
    let first = sessions["sessions"].as_array().unwrap().iter().find(of).unwrap();
    let first = first["session"].as_str().unwrap();
    assert_eq!(answers(&place), 2);
    let forgot = place.json(&["forget", "--session", first, "--yes", "--json"]);
    assert_eq!(forgot["proof"]["left"], json!({}), "{forgot}");
    assert_eq!((answers(&place), paid(&place)), (1, 2), "what was paid was paid");
    assert_eq!(place.number("SELECT count(DISTINCT digest) FROM answers_about"), 1);
}

#[test]
fn killed_after_an_answer_it_goes_on_from_it() {
    let stub = teacher(|ask| match ask.said("could not be used") {
        None => lessons(&[lesson("speed", LESSON, &["R1"])]),
        Some(_) if ask.number == 4 => Answer::Hold,
        Some(_) => good(ask),
    });
    let place = chosen(&stub);
    let running = place.start(&BY_MODEL);
    stub.until(4);
    running.kill();
    assert_eq!(paid(&place), 1, "the first answer was kept before it was read");
    place.sql().execute("UPDATE consolidating SET until = 0", []).unwrap();
    let told = place.json(&BY_MODEL);
    assert_eq!(told[0]["made"]["by"], "model");
    let found = [count(&told[0], "/asked/journaled"), count(&told[0], "/usage/calls")];
    assert_eq!((found, stub.count()), ([1, 1], 5));
}

#[test]
fn at_a_cap_and_without_an_endpoint_it_goes_by_rule_and_says_so() {
    let stub = teacher(|ask| match ask.number {
        3 => error(500, "server_error"),
        _ => good(ask),
    });
    let mut place = chosen(&stub);
    place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", "230");
    let by_rule = |place: &Place, words: [&str; 2]| {
        let output = place.run(&BY_MODEL);
        assert_eq!((output.code, &output.json()[0]["made"]["by"]), (0, &json!("rule")));
        assert_eq!(notes(&output.json()), ["Postgres", "Redis"]);
        let line = output.stderr.lines().find(|it| it.contains("is made by rule"));
        let line = line.unwrap_or_else(|| panic!("{}", output.stderr));
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    };
    by_rule(&place, ["cap-reached", "limits.day_tokens_max"]);
    place.unset("ANNALIST__LIMITS__DAY_TOKENS_MAX");
    place.set("ANNALIST__LIMITS__TRIES_MAX", "1");
    by_rule(&place, ["no-answer", "batch 1 of 1"]);
    assert_eq!(place.json(&BY_MODEL)[0]["made"]["by"], "model", "it is back");
}

#[test]
fn a_permanent_failure_ends_a_retrospective_with_one_line() {
    for (status, code, line) in
        [(401, "invalid_api_key", "api_key_env"), (404, "model_not_found", "annalist doctor")]
    {
        let place = chosen(&teacher(move |_| error(status, code)));
        let output = place.run(&BY_MODEL);
        output.refused(1, &[line, "--no-model", "roofs"]);
        assert_eq!(output.stdout, "");
        assert_eq!(place.json(&["memory", "reflect", "--no-model", "--json"])[0]["sessions"], 2);
    }
}

#[test]
fn recorded_answers_teach_without_an_endpoint() {
    let asked = chosen(&teacher(|_| lessons(&[])));
    asked.run(&["memory", "reflect", "--model", "recorded"]);
    let stub = teacher(|_| panic!("nobody is to be asked"));
    let recorded = chosen(&stub);
    let answer = json!({"lessons": [lesson("architecture", LESSON, &["R1", "R2"])]});
    record(&asked, &recorded, "write_reflection", &answer);
    let by_cassette = ["memory", "reflect", "--cassette", "cassette", "--json"];
    let told = recorded.json(&by_cassette);
    assert_eq!(told[0]["made"], json!({"by": "model", "model": "recorded"}));
    assert_eq!((notes(&told), count(&told[0], "/usage/calls")), (vec![LESSON], 0));
    // Another question than the recorded one has no answer.
    let other = CHOICES.map(|words| words.replace("queue", "mailbox"));
    let stale = place(&stub, &[("user", other[0].as_str()), ("user", other[1].as_str())]);
    stale.write("cassette/one.json", read(&recorded.path("cassette/one.json")));
    let output = stale.run(&by_cassette);
    assert_eq!((output.code, &output.json()[0]["made"]["by"]), (0, &json!("rule")));
    assert!(output.stderr.contains("stale"), "{}", output.stderr);
}
