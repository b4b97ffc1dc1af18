//! `annalist privacy check`, and canaries: words that are planted wherever words come in, and that no
//! exit may show.

use super::hand_over::until_handed_over;
use super::input::{claude, extracted};
use super::place::Place;
use super::stub::{Answer, Stub};
use serde_json::{Value, json};
use std::fs::File;
use std::sync::{Arc, Mutex};

/// Words that nothing may hold, in two halves, so that no scanner takes this file for a leak.
fn canaries() -> [String; 5] {
    [
        format!("{}{}", "glpat-", "Zk3qW9xT5vB7nM2pL8dR"),
        format!("{}{}", "lin_", "api_Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0Zx9Cv8Bn7Mq"),
        "staplecopperlantern42".to_owned(),
        "canary.person@corp-example.org".to_owned(),
        "the pay of the whole team".to_owned(),
    ]
}

/// A sentence with all of them.
fn planted() -> String {
    let [token, key, password, person, private] = canaries();
    format!(
        "Use {token} and {key}.\ndocker login -u bob -p {password}\nAsk {person} \
         <private>{private}</private> about it. "
    )
}

/// A transcript that holds them in what was said, in the folder and in its own name.
fn sow(place: &Place) -> String {
    let [token, _, _, person, _] = canaries();
    let words = |text: &str| Value::from(text).to_string().trim_matches('"').to_owned();
    let text = claude(0..3)
        .replace("Which store shall", &words(&format!("{}Which store shall", planted())))
        .replace("/home/dev/roofs", &format!("/home/{person}/{token}/roofs"));
    let path = format!("{person}-{token}/s.jsonl");
    place.write(&path, text);
    path
}

#[test]
fn canaries_reach_no_exit() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let stub = Stub::new(move |ask| {
        seen.lock().unwrap().push(String::from_utf8_lossy(&ask.bytes).into_owned());
        if ask.number == 1 {
            let body = json!({"error": {"message": planted(), "type": "x", "code": "invalid"}});
            return Answer::Status(400, "", body.to_string());
        }
        // A model may say what it was never told.
        let mut claims = extracted(ask.slice());
        for claim in claims["decisions"].as_array_mut().into_iter().flatten() {
            let why = format!("{} {}", claim["rationale"].as_str().unwrap(), planted());
            claim["rationale"] = why.into();
        }
        Answer::Call(claims)
    });
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__SLICE__TOKENS", "1000");
    place.set("ANNALIST_LOG", "trace");
    let path = sow(&place);
    place.write("hook.json", json!({"session_id": "s", "transcript_path": path}).to_string());
    let mut shown = Vec::new();
    for args in [
        &["replay", &path][..],
        &["replay", &path, "--json"],
        &["replay", "no-such-folder", &path, "--json"],
        &["enqueue", &path],
        &["worker", "--drain"],
        &["status", "--all"],
        &["status", "--json"],
        &["jobs", "list", "--json"],
        &["records"],
        &["records", "--json"],
        &["records", "export"],
        &["records", "runs", "--json"],
        &["consolidate", "--json"],
        &["memory", "init"],
        &["memory", "sync", "--json"],
        &["memory", "list", "--json"],
        &["context"],
        &["card", &path],
        &["privacy", "check"],
    ] {
        let output = place.run(args);
        shown.push((format!("{args:?}"), format!("{}{}", output.stdout, output.stderr)));
    }
    for event in ["session-start", "stop", "session-end"] {
        let mut command = place.command(&["hook", event]);
        let output = command.stdin(File::open(place.path("hook.json")).unwrap()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        shown.push((event.to_owned(), String::from_utf8_lossy(&text).into_owned()));
    }
    // Until then the spool names the transcript, whose path holds a canary.
    until_handed_over(&place);
    // The endpoint is asked for the model that was named, key or not; nothing else is to show it.
    let requests: Vec<String> = sent.lock().unwrap().drain(..).collect();
    let doctor = place.run(&["doctor", "--model", &canaries()[0]]);
    shown.push(("doctor".to_owned(), format!("{}{}", doctor.stdout, doctor.stderr)));
    shown.extend(requests.into_iter().map(|body| ("a request".to_owned(), body)));
    for (file, bytes) in place.files() {
        let name = file.display().to_string();
        if !name.ends_with("s.jsonl") && !name.ends_with("hook.json") {
            shown.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    assert!(shown.iter().any(|(place, _)| place.ends_with("annalist.db")));
    for (place, text) in shown {
        for canary in canaries() {
            // The command line of a test names the path itself.
            let place = place.split("glpat").next().unwrap_or_default();
            assert!(!text.contains(&canary), "`{canary}` in {place}: {text}");
        }
    }
    let checked = place.run(&["privacy", "check", "--json"]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    assert!(checked.json()["texts"].as_u64().unwrap() > 10);
}

#[test]
fn a_check_names_rule_and_place_and_never_the_value() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..2));
    place.json(&["replay", "s.jsonl", "--json"]);
    assert_eq!(place.run(&["privacy", "check"]).code, 0);
    let [token, ..] = canaries();
    place.sql().execute("UPDATE entries SET text = text || ?1", [&token]).unwrap();
    let found = place.run(&["privacy", "check", "--json"]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    let row = &found.json()["findings"][0];
    assert_eq!(
        (row["place"].as_str(), row["rule"].as_str()),
        (Some("entries.text"), Some("gitlab-token"))
    );
    let store = place.database().display().to_string();
    assert_eq!(place.run(&["privacy", "check", &store]).code, 1);
    assert!(!format!("{}{}", found.stdout, found.stderr).contains(&token));
}

#[test]
fn a_check_reads_a_directory_without_its_private_blocks() {
    let place = Place::new();
    assert_eq!(place.run(&["memory", "init"]).code, 0);
    let is_memory = |path: &std::path::Path| path.extension().is_some_and(|it| it == "md");
    let initial = place.files().into_iter().find(|(path, _)| is_memory(path)).unwrap().0;
    let file = initial.parent().unwrap().join("patterns.md");
    let memory = file.parent().unwrap().display().to_string();
    let write = |text: String| place.write(file.to_str().unwrap(), text);
    write(format!("# Patterns\n\n<private>\n{}\n</private>\n", canaries()[0]));
    assert_eq!(place.run(&["privacy", "check", &memory]).code, 0);
    write(format!("# Patterns\n\n- {}\n", canaries()[0]));
    let found = place.run(&["privacy", "check", &memory]);
    assert_eq!(found.code, 1);
    assert!(found.stdout.contains("patterns.md") && !found.stdout.contains(&canaries()[0]));
}

#[test]
fn a_key_in_the_place_of_a_variable_is_never_shown() {
    let mut place = Place::new();
    for key in [canaries()[0].clone(), "3f786850e387550fdab836ed7e6dc881de23001b".to_owned()] {
        place.set("ANNALIST__MODEL__API_KEY_ENV", &key);
        let output = place.run(&["doctor"]);
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(output.stderr.contains("looks like a key"), "{}", output.stderr);
        assert!(!format!("{}{}", output.stdout, output.stderr).contains(&key));
    }
}
