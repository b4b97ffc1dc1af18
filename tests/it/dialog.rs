//! What a prompt is told of a dialog: the published cases, and the command.

use super::place::{Place, read};
use super::shared::beside;
use annalist::{Gate, Pii};
use serde_json::{Value, json};

const HEADER: &str = "DIALOG_SUMMARY (last few turns):";

fn cases(name: &str) -> Option<Vec<Value>> {
    let golden: Value =
        serde_json::from_slice(&read(&beside("golden")?.join("memory_lite.json"))).unwrap();
    Some(golden[name].as_array().unwrap().clone())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Words or a quarter of the characters of the whole block.
fn tokens(block: &str) -> u64 {
    block.split_whitespace().count().max(block.chars().count().div_ceil(4)) as u64
}

/// The block of a case where nothing needs to go: every field behind the gate.
fn whole(turns: &[Value], gate: &Gate) -> String {
    let mut lines = Vec::new();
    for (number, turn) in (1..).zip(turns) {
        let [intent, action] =
            ["user_intent", "action_taken"].map(|name| gate.redact(text(&turn[name])));
        let mut line = format!("  Turn {number}: User {}, I {}.", intent.as_str(), action.as_str());
        let pending: Vec<String> = turn["pending_items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| gate.redact(text(item)).as_str().to_owned())
            .collect();
        if !pending.is_empty() {
            line.push_str(&format!(" Pending: {}", pending.join(", ")));
        }
        lines.push(line);
    }
    if lines.is_empty() { String::new() } else { format!("{HEADER}\n{}", lines.join("\n")) }
}

#[test]
fn published_dialogs_come_out_as_decided() {
    let Some(cases) = cases("dialog") else { return };
    let (gate, place) = (Gate::new(&Pii::ALL), Place::new());
    for case in &cases {
        let most = case["config"]["max_tokens"].as_u64().unwrap_or(500);
        let turns = case["turns"].as_array().unwrap();
        place.write("turns.json", json!({ "turns": turns }).to_string());
        let printed =
            place.json(&["dialog", "turns.json", "--max-tokens", &most.to_string(), "--json"]);
        let block = text(&printed[0]["block"]);
        let all = whole(turns, &gate);
        assert!(tokens(block) <= most, "{}: {block}", case["name"]);
        assert_eq!(printed[0]["tokens"], tokens(block), "{}", case["name"]);
        if tokens(&all) <= most {
            assert_eq!(block, all, "{}", case["name"]);
            // What was printed there by the first program to do it, with every field filtered.
            assert_eq!(block, text(&case["upstream"]["prompt_block"]), "{}", case["name"]);
        } else {
            // The newest stay: as many of the last lines as fit.
            let lines: Vec<&str> = block.lines().skip(1).collect();
            let last: Vec<&str> = all.lines().skip(1 + turns.len() - lines.len()).collect();
            assert_eq!(lines, last, "{}", case["name"]);
            assert_eq!(printed[0]["evicted"], turns.len() - lines.len(), "{}", case["name"]);
            let more = all.lines().skip(turns.len() - lines.len());
            let more = format!("{HEADER}\n{}", more.collect::<Vec<_>>().join("\n"));
            assert!(tokens(&more) > most, "{}: one more would fit", case["name"]);
        }
    }
}

#[test]
fn published_turns_get_the_words_that_were_decided() {
    let Some(cases) = cases("helpers") else { return };
    let mut place = Place::new();
    place.set("ANNALIST__DIALOG__TURNS", &cases.len().to_string());
    let turn = |case: &Value| json!({"user_input": case["user_input"], "output": case["output"]});
    let turns: Vec<Value> = cases.iter().map(turn).collect();
    place.write("turns.json", json!({ "turns": turns }).to_string());
    let printed = place.json(&["dialog", "turns.json", "--json", "--max-tokens", "9999"]);
    let turns = printed[0]["turns"].as_array().unwrap();
    assert_eq!(turns.len(), cases.len());
    for (case, turn) in cases.iter().zip(turns) {
        let expected = &case["seed_code"];
        // With the route in it, the sentence is the one of the published example.
        let intent = match text(&expected["intent"]) {
            "asked about query" => "asked about calendar query",
            other => other,
        };
        assert_eq!(turn["user_intent"], intent);
        assert_eq!(turn["action_taken"], expected["action"]);
        assert_eq!(turn["pending_items"], expected["pending"]);
    }
}

#[test]
fn a_routed_turn_needs_its_input_and_may_lack_the_rest() {
    let place = Place::new();
    let turns = json!({"turns": [
        {"user_input": "Termin löschen", "output": {"route": "calendar", "intent": "termin_löschen",
            "requires_confirmation": true, "ask_user": false, "question": "x", "slots": {"a": 1}}},
        {"user_input": "Danke!", "output": {}},
        {"output": {"route": "calendar"}},
    ]});
    place.write("turns.json", turns.to_string());
    let told = place.run(&["dialog", "turns.json"]);
    assert_eq!(
        told.stdout,
        format!(
            "{HEADER}\n  Turn 1: User requested calendar termin_löschen, I asked for clarification. \
             Pending: waiting for confirmation\n  Turn 2: User casual chat, I asked for clarification.\n"
        )
    );
    assert!(told.code == 1 && told.stderr.contains("user_input"), "{}", told.stderr);
}

#[test]
fn permission_is_told_from_a_question_in_the_language_of_the_conversation() {
    let place = Place::new();
    place.write("t.txt", "user: Räum auf\nassistant: Gut. Soll ich alles löschen?\n");
    let told = place.run(&["dialog", "t.txt"]).stdout;
    assert!(told.ends_with("Pending: waiting for confirmation\n"), "{told}");
}

#[test]
fn personal_data_of_every_published_case_stays_out_of_the_block() {
    let Some(cases) = cases("pii") else { return };
    let (gate, place) = (Gate::new(&Pii::ALL), Place::new());
    for case in &cases {
        let said = text(&case["input"]);
        let turn = |pending: &[&str]| json!({"user_intent": said, "action_taken": said, "pending_items": pending});
        let turns = json!({"turns": [turn(&[]), turn(&[said])]});
        place.write("turns.json", turns.to_string());
        let printed = place.json(&["dialog", "turns.json", "--json"]);
        let block = text(&printed[0]["block"]);
        assert_eq!(gate.redact(block).as_str(), block, "{said}");
        let one_line: Vec<&str> = text(&case["recommended"]["text"]).split_whitespace().collect();
        let clean = one_line.join(" ");
        assert!(block.contains(&clean), "{clean}: {block}");
    }
}

/// A dialog in Turkish with one turn too many.
fn transcript(turns: usize) -> String {
    let turn = |n| {
        format!(
            "user: {n}. toplantıyı ada{n}@example.com ile iptal et\nassistant: Onaylıyor musunuz?\n"
        )
    };
    (1..=turns).map(turn).collect()
}

#[test]
fn a_transcript_is_summarised_by_its_last_turns() {
    let place = Place::new();
    place.write("t.txt", transcript(7));
    let printed = place.run(&["dialog", "t.txt"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = printed.stdout.lines().collect();
    assert_eq!((lines[0], lines.len()), (HEADER, 6));
    assert_eq!(
        lines[5],
        "  Turn 7: User requested: 7. toplantıyı <EMAIL> ile iptal et, I responded with chat. \
         Pending: waiting for confirmation"
    );
    let small = place.json(&["dialog", "t.txt", "--max-tokens", "60", "--json"]);
    assert_eq!((&small[0]["evicted"], &small[0]["shortened"]), (&json!(6), &json!(false)));
    let tiny = place.json(&["dialog", "t.txt", "--max-tokens", "20", "--json"]);
    assert_eq!(tiny[0]["shortened"], true, "{tiny}");
    assert!(tiny[0]["tokens"].as_u64().unwrap() <= 20);
    assert_eq!(place.run(&["dialog", "t.txt", "--max-tokens", "3"]).stdout, "");
}

#[test]
fn the_table_tells_of_every_turn() {
    let place = Place::new();
    place.write("t.txt", transcript(7));
    let table = place.run(&["dialog", "t.txt", "--check", "--max-tokens", "60"]).stdout;
    let of = |state: &str| table.lines().filter(|line| line.contains(state)).count();
    assert_eq!((of(" evicted "), of(" shown "), of("Turn 7:")), (6, 1, 1), "{table}");
    assert!(table.ends_with("7 turns, 1 shown, 6 evicted; 38 of at most 60 tokens\n"), "{table}");
    let table = place.run(&["dialog", "t.txt", "--check", "--max-tokens", "30"]).stdout;
    assert!(table.contains(" shortened "), "{table}");
}

#[test]
fn settings_bound_the_summary_and_choose_what_is_masked() {
    let mut place = Place::new();
    place.write("t.txt", transcript(4));
    place.set("ANNALIST__DIALOG__TURNS", "2");
    place.set("ANNALIST__PRIVACY__PII", "phone");
    let lines = place.run(&["dialog", "t.txt"]).stdout;
    assert_eq!(lines.lines().count(), 3, "{lines}");
    assert!(lines.contains("ada4@example.com"), "{lines}");
    place.set("ANNALIST__PRIVACY__PII", "phone, fone");
    place.run(&["dialog", "t.txt"]).refused(2, &["`fone` is not a kind of personal data", "email"]);
    place.unset("ANNALIST__PRIVACY__PII");
    place.set("ANNALIST__DIALOG__TOKENS", "3");
    place.run(&["dialog", "t.txt"]).refused(2, &["dialog.tokens", "at least 20"]);
}

#[test]
fn a_file_without_a_dialog_is_reported() {
    let place = Place::new();
    place.write("notes.md", "# Notes\n\nNothing was said.\n");
    place.run(&["dialog", "notes.md"]).refused(1, &["notes.md", "user_intent"]);
    place.write("nothing.json", "");
    let nothing = place.run(&["dialog", "nothing.json"]);
    assert_eq!(
        (nothing.code, nothing.stderr.as_str()),
        (1, "error: nothing.json: the file is empty\n")
    );
    place.run(&["dialog", "missing.json"]).refused(1, &["missing.json", "cannot be read"]);
    place.write(
        "turns.json",
        r#"{"turns": [{"user_intent": "x", "action_taken": "y"}, {"a@b.org": 1}]}"#,
    );
    let half = place.run(&["dialog", "turns.json"]);
    assert_eq!((half.code, half.stdout.lines().count()), (1, 2), "{}", half.stderr);
    assert!(
        half.stderr.contains("bad-turn") && !half.stderr.contains("a@b.org"),
        "{}",
        half.stderr
    );
    place.write("private.md", "---\nprivate: true\n---\nuser: hi\nassistant: hi\n");
    let private = place.run(&["dialog", "private.md"]);
    assert_eq!((private.code, private.stdout.as_str()), (0, ""), "{}", private.stderr);
    place.write("empty.json", r#"{"turns": []}"#);
    let empty = place.run(&["dialog", "empty.json"]);
    assert_eq!(
        (empty.code, empty.stdout.as_str(), empty.stderr.as_str()),
        (0, "", "no turns to show\n")
    );
}
