//! A model that is asked what no rule decides about memory, as a process: asked once, checked by the host, on the
//! bill, and forgotten with what it was asked about.

use super::place::{Place, count};
use super::stub::{Answer, Ask, Stub};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

pub(crate) const BY_MODEL: [&str; 4] = ["consolidate", "--model", "stub-1", "--json"];
pub(crate) const BY_RULE: [&str; 2] = ["consolidate", "--json"];

/// A choice that a person made, and another one, days later, without a word of a change.
pub(crate) const CHOICES: [&str; 2] = [
    "We chose Redis over Postgres because the queue needs low latency.",
    "We chose Postgres over Redis because the queue must survive a restart.",
];

/// A conversation of one line, said on a day of May 2026 in a project of this name.
pub(crate) fn talk(project: &str, day: usize, (side, words): (&str, &str)) -> String {
    let line = json!({
        "parentUuid": null, "isSidechain": false, "userType": "external",
        "cwd": format!("/home/dev/{project}"), "version": "2.1.0",
        "sessionId": format!("7b0c5a52-0d3e-4d3c-9a57-{project:0<8.8}{day:04}").replace(|c: char| !c.is_ascii_hexdigit() && c != '-', "0"),
        "type": side, "message": {"role": side, "content": words},
        "uuid": format!("{day:08x}-abcd-4bcd-8bcd-000000000000"),
        "timestamp": format!("2026-05-{day:02}T09:00:00.000Z"),
    });
    format!("{line}\n")
}

/// A place whose endpoint is `stub`, with what these people said in the project `roofs`, one conversation a day.
pub(crate) fn place(stub: &Stub, said: &[(&str, &str)]) -> Place {
    let place = Place::with_endpoint(stub.url());
    for (day, said) in (1..).zip(said) {
        place.write(&format!("t/s{day}.jsonl"), talk("roofs", day, *said));
    }
    let totals = place.json(&["replay", "t", "--json"]);
    assert_eq!(count(&totals, "/records/decisions"), said.len() as u64, "{totals}");
    place
}

/// Two choices of a person that contradict one another.
pub(crate) fn opposed(stub: &Stub) -> Place {
    place(stub, &CHOICES.map(|words| ("user", words)))
}

/// A server that extracts well, and judges by `script`.
pub(crate) fn judge(script: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Stub {
    Stub::new(move |ask| match ask.tool() {
        "write_consolidated" => script(ask),
        _ => ask.good(),
    })
}

/// One entry of an answer.
pub(crate) fn says(
    record: &str,
    disposition: &str,
    target: Option<&str>,
    evidence: Option<&str>,
) -> Value {
    json!({"record": record, "disposition": disposition, "target": target, "evidence": evidence})
}

pub(crate) fn all(entries: &[Value]) -> Answer {
    Answer::Call(json!({"dispositions": entries}))
}

/// Finds in every record the words of a change, whether there are any or not.
fn replaces(ask: &Ask) -> Answer {
    let batch = ask.batch();
    let records = batch.iter().filter(|it| it["id"].as_str().unwrap().starts_with('R'));
    let entries = records.map(|it| {
        let words = it["words"][0].as_str();
        says(it["id"].as_str().unwrap(), "supersede", it["may_touch"][0].as_str(), words)
    });
    all(&entries.collect::<Vec<_>>())
}

/// How many questions about memory there were.
fn judged(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM bills")
}

pub(crate) fn states(place: &Place) -> Vec<String> {
    let database = place.sql();
    let sql =
        "SELECT json_extract(body, '$.claim.chosen') || ' ' || state FROM memories ORDER BY 1";
    let mut statement = database.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[track_caller]
pub(crate) fn check(told: &Value, expected: &[&str]) {
    let operations = told[0]["plan"]["operations"].as_array().unwrap();
    let told: Vec<String> = operations
        .iter()
        .map(|it| {
            let (name, rule) = (&it["disposition"]["name"], &it["rule"]);
            format!("{} {}", name.as_str().unwrap(), rule.as_str().unwrap())
        })
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn no_model_is_asked_where_the_settings_say_so() {
    let stub = judge(|_| panic!("nobody is to be asked"));
    let place = opposed(&stub);
    let told = place.json(&BY_RULE);
    check(&told, &["add new", "conflict reversal"]);
    assert_eq!(told[0]["left_open"].as_array().unwrap().len(), 1);
    assert_eq!(count(&told[0], "/asked/questions"), 0);
    let place = opposed(&stub);
    let mut place = place;
    place.set("ANNALIST__CONSOLIDATE__MODEL", "stub-1");
    let output = place.run(&["consolidate", "--no-model"]);
    assert!(output.stderr.contains("1 pair left open"), "{}", output.stderr);
    assert!(output.stdout.contains("by rule: reversal"), "{}", output.stdout);
}

#[test]
fn a_verdict_decides_and_stands_on_the_bill_and_nothing_is_asked_twice() {
    let stub = judge(replaces);
    let place = opposed(&stub);
    let (extracted, asked) = (stub.count(), |place: &Place| place.json(&BY_MODEL));
    let dry = place.run(&["consolidate", "--model", "stub-1", "--dry-run"]);
    assert_eq!((dry.code, stub.count()), (0, extracted + 1), "{}", dry.stderr);
    assert!(
        dry.stdout.contains("by the model: the record's words state a change"),
        "{}",
        dry.stdout
    );
    assert!(
        dry.stderr
            .contains("asked about 1 pair of 2 records in 1 question: 1 call, 100 tokens sent"),
        "{}",
        dry.stderr
    );
    assert!(states(&place).is_empty(), "a dry run changes nothing");
    let told = asked(&place);
    check(&told, &["add new", "supersede judged-replaced"]);
    let found = [
        count(&told[0], "/asked/pairs"),
        count(&told[0], "/asked/journaled"),
        count(&told[0], "/usage/calls"),
    ];
    assert_eq!((found, stub.count()), ([1, 1, 0], extracted + 1), "the dry run paid for it");
    assert_eq!(told[0]["left_open"], json!([]));
    assert_eq!(states(&place), ["Postgres active", "Redis superseded"]);
    assert_eq!(asked(&place), json!([]));
    assert_eq!(stub.count(), extracted + 1);
    let status = place.json(&["status", "--json"]);
    assert_eq!(count(&status, "/spent/calls"), stub.count() as u64);
    assert_eq!(count(&status, "/spent/sent"), 100 * stub.count() as u64);
    let line =
        status["bill"].as_array().unwrap().iter().find(|it| it["for"] == "consolidate").unwrap();
    assert_eq!(
        [&line["namespace"], &line["calls"], &line["answered"]],
        [&json!("home/dev/roofs"), &json!(1), &json!(10)]
    );
    let shown = place.run(&["status"]);
    assert!(shown.stdout.contains("of these 1 call to consolidate"), "{}", shown.stdout);
}

#[test]
fn later_sessions_of_one_plan_are_asked_about_in_the_state_that_earlier_verdicts_left() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&shown);
    let stub = judge(move |ask| {
        let batch = ask.batch();
        let said =
            |it: &Value| it["claim"]["chosen"].as_str().or(it["says"].as_str()).map(str::to_owned);
        let of =
            |letter| batch.iter().filter(move |it| it["id"].as_str().unwrap().starts_with(letter));
        asked.lock().unwrap().push(of('M').filter_map(said).collect::<Vec<_>>());
        let entries = of('R').map(|it| match said(it).as_deref() {
            Some("Postgres") => says(
                it["id"].as_str().unwrap(),
                "supersede",
                it["may_touch"][0].as_str(),
                it["words"][0].as_str(),
            ),
            _ => says(it["id"].as_str().unwrap(), "add", None, None),
        });
        all(&entries.collect::<Vec<_>>())
    });
    let trees = ["alder", "beech", "cedar", "elder", "hazel", "larch", "maple", "olive", "rowan"];
    let others = trees.map(|it| format!("We chose {it} over palm because the {it} is hardy."));
    let said = CHOICES.into_iter().chain(others.iter().map(String::as_str));
    let place = place(&stub, &said.map(|words| ("user", words)).collect::<Vec<_>>());
    assert_eq!(place.run(&BY_MODEL).code, 0);
    let shown = shown.lock().unwrap();
    let [first, second] = &shown[..] else { panic!("{shown:?}") };
    let has = |it: &Vec<String>, name: &str| it.iter().any(|said| said == name);
    assert!(has(first, "Redis"), "{shown:?}");
    assert!(has(second, "Postgres") && !has(second, "Redis"), "{shown:?}");
}

#[test]
fn an_open_pair_is_adjudicated_later_and_the_verdict_can_be_undone() {
    let stub = judge(replaces);
    let place = opposed(&stub);
    check(&place.json(&BY_RULE), &["add new", "conflict reversal"]);
    assert_eq!(states(&place), ["Postgres active", "Redis active"]);
    let told = place.json(&BY_MODEL);
    check(&told, &["settle judged-replaced"]);
    assert_eq!(states(&place), ["Postgres active", "Redis superseded"]);
    assert_eq!((place.json(&BY_MODEL), judged(&place)), (json!([]), 1));
    let plan = told[0]["plan"]["id"].as_str().unwrap();
    place.json(&["consolidate", "--undo", plan, "--json"]);
    assert_eq!(states(&place), ["Postgres active", "Redis active"]);
    assert_eq!((place.json(&BY_MODEL), judged(&place)), (json!([]), 1), "it is remembered");
    let redo: Vec<&str> = BY_MODEL.iter().copied().chain(["--redo", plan]).collect();
    check(&place.json(&redo), &["settle judged-replaced"]);
    assert_eq!(
        (states(&place)[1].as_str(), judged(&place)),
        ("Redis superseded", 1),
        "the journal answers"
    );
}

#[test]
fn a_pair_from_before_this_was_kept_is_asked_about_too() {
    let stub = judge(replaces);
    let place = opposed(&stub);
    place.json(&BY_RULE);
    let told = "SELECT count(*) FROM contradictions WHERE ended_no IS NULL AND one < other
        AND other IN (SELECT id FROM memories)";
    assert_eq!(place.number(told), 1);
    let back = "DROP INDEX dispositions_undone; ALTER TABLE dispositions DROP COLUMN undone_no;
        DROP TABLE open_pairs; DROP TABLE answers_about; DROP TABLE bills;
        DROP TABLE batch_jobs; ALTER TABLE runs DROP COLUMN prompt_digest;
        DROP TABLE memory_indexes; DROP TABLE memory_keys;
        DROP INDEX records_waiting; ALTER TABLE records DROP COLUMN settled;
        DROP INDEX jobs_by_place; DROP TABLE scrubs; DROP TABLE search; DROP TABLE unsearched; DROP TABLE tokens; DROP TABLE vectors; DROP TABLE vault; DROP TABLE vault_chunks; DROP TABLE contradictions; ALTER TABLE sessions DROP COLUMN branches; DROP INDEX records_replaced;
        DROP TABLE namespace_moves; DROP INDEX sessions_by_native_id; DROP INDEX sessions_by_namespace;
        DROP INDEX memories_by_section; DROP INDEX memories_unlisted; DROP INDEX memories_by_successor;
        DROP INDEX memories_open; DROP INDEX records_by_time;
        DROP INDEX journal_of_run; ALTER TABLE memories DROP COLUMN successor;
        ALTER TABLE memories DROP COLUMN section; ALTER TABLE memories DROP COLUMN since;
        DROP INDEX ledger_forgotten; PRAGMA user_version = 6";
    place.sql().execute_batch(back).unwrap();
    let settled = place.json(&BY_MODEL);
    check(&settled, &["settle judged-replaced"]);
    let ended = "SELECT count(*) FROM contradictions WHERE ended_no IS NOT NULL";
    assert_eq!((place.number(told), place.number(ended)), (0, 1));
    let plan = settled[0]["plan"]["id"].as_str().unwrap();
    assert_eq!(place.run(&["consolidate", "--undo", plan]).code, 0);
    assert_eq!((place.number(told), place.number(ended)), (1, 0));
}

#[test]
fn an_answer_that_is_kept_is_not_paid_again_where_applying_failed() {
    let stub = judge(replaces);
    let place = opposed(&stub);
    let refuse =
        "CREATE TRIGGER refuse BEFORE INSERT ON plans BEGIN SELECT RAISE(ABORT, 'no room'); END";
    place.sql().execute_batch(refuse).unwrap();
    let output = place.run(&BY_MODEL);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(states(&place).is_empty());
    let seen = stub.count();
    place.sql().execute_batch("DROP TRIGGER refuse").unwrap();
    let told = place.json(&BY_MODEL);
    check(&told, &["add new", "supersede judged-replaced"]);
    assert_eq!((count(&told[0], "/usage/calls"), stub.count()), (0, seen));
    assert_eq!(judged(&place), 1);
}

#[test]
fn killed_in_the_midst_of_asking_it_goes_on_from_the_last_answer() {
    let stub = judge(|ask| match ask.said("could not be used") {
        None => all(&[says("R9", "add", None, None)]),
        Some(_) if ask.number == 4 => Answer::Hold,
        Some(_) => replaces(ask),
    });
    let place = opposed(&stub);
    let running = place.start(&BY_MODEL);
    stub.until(4);
    running.kill();
    assert_eq!(judged(&place), 1, "the first answer was kept before it was read");
    let ahead = "SELECT k.until - j.at FROM consolidating k, journal j ORDER BY j.at DESC LIMIT 1";
    assert!(place.number(ahead) < 60_000, "who dies asking holds nobody up for long");
    place.sql().execute("UPDATE consolidating SET until = 0", []).unwrap();
    let told = place.json(&BY_MODEL);
    check(&told, &["add new", "supersede judged-replaced"]);
    let found = [count(&told[0], "/asked/journaled"), count(&told[0], "/usage/calls")];
    assert_eq!((found, stub.count()), ([1, 1], 5));
}

#[test]
fn at_a_cap_pairs_wait_and_go_on_when_it_was_raised() {
    let stub = judge(replaces);
    let mut place = opposed(&stub);
    for key in ["NAMESPACE_DAY_TOKENS_MAX", "DAY_TOKENS_MAX"] {
        let name = format!("ANNALIST__LIMITS__{key}");
        place.set(&name, "230");
        let output = place.run(&BY_MODEL);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let key = format!("limits.{}", key.to_lowercase());
        assert!(
            output.stderr.contains("cap-reached") && output.stderr.contains(&key),
            "{}",
            output.stderr
        );
        assert_eq!(output.json()[0]["left_open"].as_array().unwrap().len(), 1);
        place.unset(&name);
    }
    assert_eq!((states(&place).len(), judged(&place)), (2, 0), "by rule everything works");
    check(&place.json(&BY_MODEL), &["settle judged-replaced"]);
    // What was paid counts for whoever begins now: 330 tokens by now, and no question is as short as 100.
    place.write(
        "t/s3.jsonl",
        talk("roofs", 9, ("user", "We chose tar over slate because the roof is flat.")),
    );
    place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", "331");
    let output = place.run(&["replay", "t", "--json"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("limits.day_tokens_max"), "{}", output.stderr);
}

/// Two choices, in a place whose settings leave it to the model that extracts.
fn opposed_by_default(stub: &Stub) -> Place {
    let mut place = opposed(stub);
    place.set("ANNALIST__CONSOLIDATE__MODEL", "auto");
    place
}

#[test]
fn the_model_that_extracts_is_asked_and_a_dry_run_prices_it_and_asks_nothing() {
    let stub = judge(replaces);
    let mut place = opposed_by_default(&stub);
    place.set("ANNALIST__MODEL__USD_PER_MILLION_SENT", "1000");
    let extracted = stub.count();
    let dry = &place.json(&["consolidate", "--dry-run", "--json"])[0];
    assert_eq!((count(dry, "/asked/pairs"), count(dry, "/asked/questions")), (1, 1), "{dry}");
    assert!(
        dry["asked"]["estimated"] == true && dry["usage"]["cost"].as_f64() > Some(0.1),
        "{dry}"
    );
    assert_eq!((stub.count(), judged(&place)), (extracted, 0));
    let told = place.json(&BY_RULE);
    check(&told, &["add new", "supersede judged-replaced"]);
    assert_eq!((count(&told[0], "/asked/records"), count(&told[0], "/asked/refused")), (2, 0));
    assert_eq!(judged(&place), 1);
    let mut replay = vec!["replay", "t", "--dry-run", "--json", "--model", "another"];
    let later = count(&place.json(&replay), "/tokens/consolidation");
    place.set("ANNALIST__CONSOLIDATE__MODEL", "");
    replay.push("--retry-failed");
    assert!(later > 0 && count(&place.json(&replay), "/tokens/consolidation") == 0);
}

#[test]
fn without_the_model_that_extracts_consolidation_goes_by_rule_and_asks_later() {
    for (status, code) in [(401, "invalid_api_key"), (404, "model_not_found")] {
        let stub = judge(move |_| super::stub::error(status, code));
        let place = opposed_by_default(&stub);
        let output = place.run(&BY_RULE);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(output.stderr.matches("by-rule").count(), 1, "{}", output.stderr);
        check(&output.json(), &["add new", "conflict reversal"]);
    }
    let stub = judge(replaces);
    let mut place = opposed_by_default(&stub);
    // The port of the discard protocol: nobody listens.
    let gone = "http://127.0.0.1:9/v1";
    place.set("ANNALIST__MODEL__BASE_URL", gone);
    let output = place.run(&BY_RULE);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stderr.contains(&format!("no model answers at {gone}; ")), "{}", output.stderr);
    check(&output.json(), &["add new", "conflict reversal"]);
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    check(&place.json(&BY_RULE), &["settle judged-replaced"]);
}

#[test]
fn answers_that_were_paid_for_count_while_the_model_is_away() {
    let stub = judge(replaces);
    let mut place = opposed_by_default(&stub);
    // Its answer is journaled, and applying it fails.
    place.json(&["consolidate", "--model", "stub-1", "--dry-run", "--json"]);
    place.set("ANNALIST__MODEL__BASE_URL", "http://127.0.0.1:9/v1");
    let output = place.run(&BY_RULE);
    check(&output.json(), &["add new", "supersede judged-replaced"]);
    assert_eq!(judged(&place), 1, "{}", output.stderr);
}

#[test]
fn a_cap_holds_for_adjudication() {
    let stub = judge(|_| panic!("no call fits below the cap"));
    let mut place = opposed_by_default(&stub);
    place.set("ANNALIST__MODEL__USD_PER_MILLION_SENT", "1000");
    place.set("ANNALIST__LIMITS__DAY_USD_MAX", "0.01");
    let output = place.run(&BY_RULE);
    assert!(output.stderr.contains("cap-reached"), "{}", output.stderr);
    check(&output.json(), &["add new", "conflict reversal"]);
    assert_eq!(judged(&place), 0);
}

#[test]
fn a_permanent_failure_is_one_line_and_nothing_is_applied() {
    for (status, code, line) in
        [(401, "invalid_api_key", "api_key_env"), (404, "model_not_found", "annalist doctor")]
    {
        let stub = judge(move |_| super::stub::error(status, code));
        let place = opposed(&stub);
        let output = place.run(&BY_MODEL);
        output.refused(1, &[line, "nothing was applied", "--no-model"]);
        assert!(states(&place).is_empty());
        check(
            &place.json(&["consolidate", "--no-model", "--json"]),
            &["add new", "conflict reversal"],
        );
    }
    let place = Place::with_examples();
    place.run(&["consolidate", "--model", "x", "--no-model"]).refused(2, &["--no-model"]);
    place.run(&["consolidate", "--undo", "aa", "--model", "x"]).refused(2, &["--undo"]);
    place.run(&["consolidate", "--cassette", "nowhere"]).refused(2, &["nowhere"]);
}

#[test]
fn an_endpoint_that_is_away_leaves_pairs_open_until_it_is_back() {
    let stub = judge(|ask| match ask.number {
        3 | 4 => super::stub::error(500, "server_error"),
        _ => replaces(ask),
    });
    let mut place = opposed(&stub);
    place.set("ANNALIST__LIMITS__TRIES_MAX", "1");
    let output = place.run(&BY_MODEL);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stderr.contains("no-answer") && output.stderr.contains("1 pair left open"),
        "{}",
        output.stderr
    );
    check(&output.json(), &["add new", "conflict reversal"]);
    // Away again, it is told by which rule the pair was left open.
    let up = place.run(&["consolidate", "--model", "stub-2", "--json"]);
    assert_eq!(up.json()[0]["left_open"][0]["rule"], "reversal", "{}", up.stderr);
    check(&place.json(&BY_MODEL), &["settle judged-replaced"]);
}

#[test]
fn a_session_is_forgotten_with_the_answers_about_it_and_no_others() {
    let stub = judge(|ask| {
        let words = ask.batch()[1]["words"][0].as_str().unwrap().to_owned();
        let mut entry = says("R1", "supersede", Some("M1"), Some(&words));
        entry["note"] = json!(format!("odd words about {words}"));
        all(&[entry])
    });
    let place = Place::with_endpoint(stub.url());
    for (project, day) in [("roofs", 1), ("cellars", 11)] {
        for (n, words) in CHOICES.iter().enumerate() {
            let words = words.replace("queue", &format!("queue-of-{project}"));
            place.write(&format!("t/{project}{n}.jsonl"), talk(project, day + n, ("user", &words)));
        }
    }
    place.json(&["replay", "t", "--json"]);
    // The plan of one namespace is never applied: what it was asked is known all the same.
    place.json(&[
        "consolidate", "--namespace", "home/dev/roofs", "--model", "stub-1", "--dry-run", "--json",
    ]);
    place.json(&["consolidate", "--namespace", "home/dev/cellars", "--model", "stub-1", "--json"]);
    let about =
        |place: &Place| place.number("SELECT count(*) FROM journal WHERE reply LIKE '%odd words%'");
    assert_eq!((about(&place), judged(&place)), (2, 2));
    let sessions = place.json(&["status", "--all", "--json"]);
    let first = |namespace: &str| {
        let of = |it: &&Value| it["namespace"] == namespace;
        sessions["sessions"].as_array().unwrap().iter().find(of).unwrap()["session"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (namespace, left) in [("home/dev/roofs", 1), ("home/dev/cellars", 0)] {
        let told = place.json(&["forget", "--session", &first(namespace), "--yes", "--json"]);
        assert_eq!(told["proof"]["left"], json!({}), "{told}");
        assert_eq!(about(&place), left, "{namespace}");
        assert_eq!(place.number("SELECT count(DISTINCT digest) FROM answers_about"), left);
    }
    assert_eq!(judged(&place), 2, "what was paid was paid");
    assert_eq!(place.number("SELECT count(*) FROM open_pairs WHERE settled_no IS NULL"), 0);
}

#[test]
fn the_worker_and_the_sync_follow_the_setting() {
    let stub = judge(replaces);
    let mut place = Place::with_endpoint(stub.url());
    for (day, words) in (1..).zip(CHOICES) {
        place.write(&format!("t/s{day}.jsonl"), talk("roofs", day, ("user", words)));
    }
    place.set("ANNALIST__CONSOLIDATE__MODEL", "stub-1");
    place.set("ANNALIST__CONSOLIDATE__RECORDS", "1");
    place.json(&["enqueue", "t", "--flush", "--json"]);
    place.json(&["worker", "--drain", "--json"]);
    assert_eq!(
        (states(&place), judged(&place)),
        (vec!["Postgres active".into(), "Redis superseded".into()], 1)
    );
    let synced = opposed(&stub);
    synced.run(&["memory", "init"]);
    let told = synced
        .json(&["memory", "sync", "--namespace", "home/dev/roofs", "--model", "stub-1", "--json"]);
    check(&told["plans"], &["add new", "supersede judged-replaced"]);
    // A model that a person must see to keeps memory waiting, and jobs go on.
    let away = judge(|_| super::stub::error(401, "invalid_api_key"));
    place.set("ANNALIST__MODEL__BASE_URL", away.url());
    place.write("t/s3.jsonl", talk("roofs", 5, ("user", CHOICES[0])));
    place.write(
        "t/s4.jsonl",
        talk("roofs", 6, ("user", "We chose tar over slate because the roof is flat.")),
    );
    place.set("ANNALIST__CONSOLIDATE__COOL_DOWN_SECS", "0");
    place.json(&["enqueue", "t", "--flush", "--json"]);
    let output = place.run(&["worker", "--drain", "--json"]);
    assert_eq!(count(&output.json(), "/jobs/done"), 2, "{}", output.stderr);
    let waits = !output.stderr.contains("no memory is created until then");
    assert_eq!((output.code, waits), (1, false), "{}", output.stderr);
}

/// Writes a cassette with one answer of `tool`, to the last question that was put to a model in the place `asked`.
pub(crate) fn record(asked: &Place, place: &Place, tool: &str, arguments: &Value) {
    let sql = "SELECT lower(hex(digest)) FROM journal WHERE reply LIKE '%' || ?1 || '%'";
    let digest: String = asked.sql().query_row(sql, [tool], |row| row.get(0)).unwrap();
    let reply = json!({"calls": [{"name": tool, "arguments": arguments}]});
    let exchange = json!({"request": {"digest": digest, "model": "recorded"}, "reply": reply});
    let file = json!({"origin": "hand-written", "exchanges": [exchange]});
    place.write("cassette/one.json", file.to_string());
}

#[test]
fn recorded_answers_judge_without_an_endpoint() {
    let asked = opposed(&judge(|_| all(&[])));
    asked.run(&["consolidate", "--model", "recorded"]);
    let stub = judge(|_| panic!("nobody is to be asked"));
    let place = opposed(&stub);
    let verdict = json!({"dispositions": [says("R1", "conflict", Some("M1"), None)]});
    record(&asked, &place, "write_consolidated", &verdict);
    let by_cassette = ["consolidate", "--cassette", "cassette", "--json"];
    let told = place.json(&by_cassette);
    check(&told, &["add new", "conflict judged-conflict"]);
    assert_eq!(count(&told[0], "/usage/calls"), 0);
    assert_eq!((told[0]["left_open"].clone(), judged(&place)), (json!([]), 0));
    assert_eq!(place.json(&by_cassette), json!([]));
    // Another question than the recorded one has no answer; it stays open, and is said.
    let stale = place_with_other(&stub);
    stale.write("cassette/one.json", super::place::read(&place.path("cassette/one.json")));
    let output = stale.run(&by_cassette);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stderr.contains("no-answer") && output.stderr.contains("stale"),
        "{}",
        output.stderr
    );
    check(&output.json(), &["add new", "conflict reversal"]);
}

fn place_with_other(stub: &Stub) -> Place {
    let other = CHOICES.map(|words| words.replace("queue", "mailbox"));
    place(stub, &[("user", other[0].as_str()), ("user", other[1].as_str())])
}
