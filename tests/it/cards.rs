//! Memory cards, against the cases that lie beside the project.

use super::input::claude;
use super::place::Place;
use super::shared::{beside, json_of};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

/// The card of a session as the golden file has it.
fn card_of(session: &Value, args: &[&str]) -> Value {
    let place = Place::new();
    place.write("session.json", session.to_string());
    let check = place.run(&["card", "--check", "session.json"]);
    assert_eq!(check.code, 0, "{}", check.stdout);
    place.json(&[&["card", "--format=json", "session.json"], args].concat())
}

fn cases() -> Vec<Value> {
    let Some(golden) = beside("golden") else { return Vec::new() };
    json_of(&golden.join("memory_cards.json"))["cases"].as_array().unwrap().clone()
}

/// What the gate takes out of the one case that holds an address, of which its golden card was made
/// without.
const UNMASKED: &str = "quickstart_session";

#[test]
fn cards_are_what_the_golden_cases_say() {
    for case in cases() {
        let card = card_of(&case["input"], &[]);
        let mut expected = case["recommended"].clone();
        if case["name"] == UNMASKED {
            expected["summary_bullets"][2] = "[user] Production cluster, notify <EMAIL>".into();
            let words = expected["keywords"].as_array_mut().unwrap();
            words.retain(|word| word != "example");
        }
        assert_eq!(card, expected, "{}", case["name"]);
    }
}

/// Six of the seven fields of the example are printed by the template's rule; the seventh holds words
/// that were used once before others that were used twice, which no count can give.
#[test]
fn the_complete_example_is_met_but_for_its_keywords() {
    let Some(case) = cases().into_iter().find(|case| case["name"] == "seed_complete_example")
    else {
        return;
    };
    let printed = &case["seed_printed"];
    let differing = |ellipsis: &str| -> Vec<String> {
        let card = card_of(&case["input"], &[ellipsis]);
        let fields = card.as_object().unwrap().iter();
        fields
            .filter(|(name, own)| printed[name.as_str()] != **own)
            .map(|it| it.0.clone())
            .collect()
    };
    assert_eq!(differing("--ellipsis=template"), ["keywords"]);
    // Its item of `todos` ends in the mark of a cut though nothing was cut.
    assert_eq!(differing("--ellipsis=cut"), ["todos", "keywords"]);
    let card = card_of(&case["input"], &[]);
    let both = card["keywords"].as_array().unwrap().iter();
    let both = both.filter(|word| printed["keywords"].as_array().unwrap().contains(word));
    assert_eq!(both.count(), 7);
}

/// A session in our own words.
fn session(texts: &[(&str, &str)]) -> String {
    let message = |(role, text): &(&str, &str)| json!({"role": role, "content": text});
    json!({"session_id": "s-1", "messages": texts.iter().map(message).collect::<Vec<_>>()})
        .to_string()
}

#[test]
fn a_card_counts_every_role_if_it_is_asked_to() {
    let place = Place::new();
    let roles = [("tool", "exit 0"), ("system", "Be brief."), ("user", "Which roof?")];
    place.write("session.json", session(&roles));
    let messages: Vec<Value> =
        roles.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
    place.write("chat.json", Value::from(messages).to_string());
    let bullets = |args: &[&str]| place.json(&[&["card", "--format=json"], args].concat());
    for (file, usual) in [
        ("session.json", json!(["[system] Be brief.", "[user] Which roof?"])),
        ("chat.json", json!(["[user] Which roof?"])),
    ] {
        assert_eq!(bullets(&[file])["summary_bullets"], usual, "{file}");
        let all = json!(["[tool] exit 0", "[system] Be brief.", "[user] Which roof?"]);
        assert_eq!(bullets(&[file, "--all-roles"])["summary_bullets"], all, "{file}");
    }
}

#[test]
fn a_card_is_printed_as_yaml_or_as_json() {
    let place = Place::new();
    let text = json!({"session_id": "s-1", "messages": [
        {"role": "user", "content": "Which roof? ask \"Ada\" at ada@example.com",
            "timestamp": "2026-05-04T06:00:00Z"},
        {"role": "assistant", "content": "I decided: the roof in Oslo. You must paint it."},
    ]});
    place.write("s.json", text.to_string());
    let output = place.run(&["card", "s.json"]);
    assert_eq!(output.stderr, "");
    let page = "# Memory Card for Session: s-1\n\
        # Generated: 2026-05-04T06:00:00Z\n\
        # Algorithm: v1.0\n\n\
        title: \"Which roof? ask \\\"Ada\\\" at <EMAIL>\"\n\n\
        summary_bullets:\n  - \"[user] Which roof? ask \\\"Ada\\\" at <EMAIL>\"\n  \
        - \"[assistant] I decided: the roof in Oslo. You must paint it.\"\n\n\
        decisions:\n  - \"I decided: the roof in Oslo. You must paint it.\"\n\n\
        todos:\n  - \"You must paint it.\"\n\n\
        entities:\n  - \"Ada\"\n  - \"Oslo\"\n\n\
        keywords:\n  - \"decided\"\n  - \"paint\"\n\n\
        notable_quotes:\n  - \"Which roof? ask \\\"Ada\\\" at <EMAIL>\"\n";
    assert_eq!(output.stdout, page);
    let twice = place.run(&["card", "s.json", "./s.json"]).stdout;
    assert_eq!(twice, format!("{page}---\n{page}"));
    let card = place.json(&["card", "--format", "json", "s.json"]);
    let names: Vec<&String> = card.as_object().unwrap().keys().collect();
    let seven = "title summary_bullets decisions todos entities keywords notable_quotes";
    assert_eq!(names, seven.split(' ').collect::<Vec<_>>());
    assert_eq!(card["entities"], json!(["Ada", "Oslo"]));
    let template = place.json(&["card", "--format=json", "--ellipsis=template", "s.json"]);
    assert_eq!(template["todos"], json!(["You must paint it..."]));
}

#[test]
fn any_transcript_has_a_card_and_standard_input_too() {
    let place = Place::new();
    place.write("claude.jsonl", claude(0..3));
    place.write("plain.txt", "user: Fix the roof\nassistant: We settled on slate.\n");
    place.write("folder/chat.json", r#"[{"role":"user","content":"Fix the door"}]"#);
    place.write("folder/notes.md", "nothing of the kind");
    let output = place.run(&["card", "--format=json", "claude.jsonl", "plain.txt", "folder"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let cards: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cards.len(), 3);
    assert_eq!(cards[0]["decisions"], json!([]), "nobody says `chose` among the phrases");
    assert_eq!(cards[1]["decisions"], json!(["We settled on slate."]));
    assert_eq!(cards[2]["title"], "Fix the door");
    let mut child = place.command(&["card", "-"]);
    child.stdin(Stdio::from(File::open(place.path("plain.txt")).unwrap()));
    let printed = child.output().unwrap().stdout;
    assert!(String::from_utf8(printed).unwrap().contains("title: \"Fix the roof\""));
}

#[test]
fn an_unreadable_file_is_one_line_and_does_not_stop_the_others() {
    let place = Place::new();
    place.write("good.json", session(&[("user", "Fix the roof")]));
    place.write("bad.json", "{\"a\": 1}");
    place.write("worse.json", "{\"messages\": [1, 2]}");
    place.write("empty.json", "");
    place.write("broken.json", "{\"messages\": [{\"ro");
    for (name, words) in [
        ("bad.json", "expected"),
        ("worse.json", "could be read"),
        ("empty.json", "empty"),
        ("gone.json", "cannot be read"),
        ("broken.json", "not a known transcript format"),
    ] {
        let output = place.run(&["card", name, "good.json"]);
        output.refused(1, &[name, words]);
        assert!(output.stdout.contains("Fix the roof"), "{name}");
    }
    place.run(&["card", "-"]).refused(2, &["standard input", "empty"]);
    place.run(&["card", "-", "-"]).refused(2, &["standard input"]);
}

#[test]
fn a_checklist_is_a_table_and_a_card_that_breaks_it_fails() {
    let place = Place::new();
    place.write("s.json", session(&[("user", "Fix the roof before it rains")]));
    let output = place.run(&["card", "--check", "s.json"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let rows = output.stdout.lines().filter(|line| line.trim_start().starts_with("ok ")).count();
    assert_eq!(rows, 7, "{}", output.stdout);
    let mut card = place.json(&["card", "--format=json", "s.json"]);
    place.write("card.json", card.to_string());
    assert_eq!(place.run(&["card", "--check", "card.json"]).code, 0);
    card["title"] = "write to ada@example.com".into();
    card["todos"] = json!(["a", "b", "c", "d"]);
    place.write("card.json", card.to_string());
    let output = place.run(&["card", "--check", "card.json"]);
    assert_eq!(output.code, 1);
    for words in ["todos: expected at most 3 items, found 4", "title: the gate would mask"] {
        assert!(output.stdout.contains(words), "{}", output.stdout);
    }
}

#[test]
fn every_transcript_beside_the_project_has_a_card_that_passes_its_checklist() {
    let Some(transcripts) = beside("transcripts") else { return };
    let place = Place::new();
    let folder = transcripts.to_str().unwrap();
    let output = place.run(&["card", "--check", folder]);
    assert!(!output.stdout.contains("FAILED"), "{}", output.stdout);
    let [one, other] = [(); 2].map(|()| place.run(&["card", folder]).stdout);
    assert!(one == other && one.contains("\n---\n"), "the same bytes");
}

#[test]
fn a_session_in_the_store_has_the_card_and_the_dialog_of_its_transcript() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let (sessions, cassette) = (root.join("sessions"), root.join("cassette"));
    let (sessions, cassette) = (sessions.to_str().unwrap(), cassette.to_str().unwrap());
    let place = Place::new();
    place.json(&["replay", sessions, "--cassette", cassette, "--json"]);
    let status = place.json(&["status", "--json"]);
    let listed = status["sessions"].as_array().unwrap();
    assert_eq!(listed.len(), 4);
    for session in listed {
        let (id, path) = (session["session"].as_str().unwrap(), session["path"].as_str().unwrap());
        let card = place.run(&["card", "--session", id]);
        // Named as a transcript: a file of messages is otherwise taken for a session as JSON.
        let format = session["format"].as_str().unwrap();
        let of_file = place.run(&["card", path, "--from", format]).stdout;
        assert_eq!((card.code, &card.stdout), (0, &of_file), "{path}");
        let seen = |args: &[&str]| place.json(&[&["conversation", "--json"], args].concat());
        assert_eq!(seen(&["--session", id]), seen(&["--format", format, path]), "{path}");
        let told = place.run(&["dialog", "--session", &id[..8]]);
        assert_eq!(told.code, 0, "{}", told.stderr);
        assert!(told.stdout.starts_with("DIALOG_SUMMARY (last few turns):"), "{}", told.stdout);
        let turns = |args: &[&str]| place.json(args)[0]["turns"].as_array().map(Vec::len);
        let of_file = turns(&["dialog", path, "--json"]);
        assert_eq!(turns(&["dialog", "--session", id, "--json"]), of_file, "{path}");
    }
    place.run(&["card", "--session", "0000"]).refused(2, &["no session begins with `0000`"]);
    place.run(&["dialog"]).refused(2, &["<FILE>"]);
}

#[test]
fn a_card_and_its_warnings_hide_secrets_in_paths_and_obey_no_override() {
    let place = Place::new();
    let key = format!("ghp_{}", "Q9w8E7r6T5".repeat(4).split_at(36).0);
    let said = json!([{"role": "user", "content": "Which\u{202e} roof?"}]);
    let text = json!({"session_id": "s\u{202e}1", "messages": said}).to_string();
    place.write(&format!("{key}/s.json"), &text);
    let page = place.run(&["card", &format!("{key}/s.json")]);
    assert!(page.code == 0 && !page.stdout.contains('\u{202e}'), "{}", page.stdout);
    assert!(page.stdout.contains("Session: s1\n") && page.stdout.contains("\\u202e roof"));
    let transcript = claude(0..1) + "{\"type\": \"user\"\n";
    place.write(&format!("{key}/t.jsonl"), transcript);
    for name in ["t.jsonl", "none.jsonl"] {
        let told = place.run(&["card", &format!("{key}/{name}")]).stderr;
        assert!(told.contains(name) && !told.contains(&key), "{told}");
    }
}
