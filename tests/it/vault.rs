//! The vault: masked copies of what was read, which give the same entries again when a client has deleted its transcript.

use super::cli_schemas;
use super::input::{SESSION, claude};
use super::place::{Place, balanced, count, read, records};
use super::stub::Stub;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde_json::{Value, json};
use std::fs::File;
use std::time::Duration;

const SECRET: &str = "hunter2-of-the-roof";

fn keeping(mut place: Place) -> Place {
    place.set("ANNALIST__VAULT__ENABLED", "true");
    place
}

/// A place where nothing answers: for what asks no model.
fn offline() -> Place {
    keeping(Place::with_endpoint("http://127.0.0.1:9/v1"))
}

/// Words that hardly compress and are no secret, the same for the same `seed`.
fn words(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let letters = (0..5).map(|at| char::from(b'a' + ((state >> (at * 8)) % 26) as u8));
        text.extend(letters.chain([' ']));
    }
    text
}

/// A session of Claude Code in which a tool is called for each of `outputs`.
fn with_tool(session: &str, outputs: &[String]) -> String {
    let line = |at: usize, role: &str, content: Value| {
        let line = json!({
            "uuid": format!("{session}-{at}"), "sessionId": session, "type": role,
            "cwd": "/home/dev/roofs", "version": "2.1.0", "timestamp": "2026-11-01T10:00:00Z",
            "message": {"role": role, "content": content},
        });
        format!("{line}\n")
    };
    let mut text = line(0, "user", json!("Which roof is wet?"));
    for (at, output) in outputs.iter().enumerate() {
        let id = format!("toolu_{at}");
        let call =
            json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}]);
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": output}]);
        text += &line(2 * at + 1, "assistant", call);
        text += &line(2 * at + 2, "user", result);
    }
    text
}

/// The text of every chunk.
fn kept(place: &Place) -> Vec<String> {
    let database = place.sql();
    let mut statement = database.prepare("SELECT body FROM vault_chunks ORDER BY no").unwrap();
    let bodies = statement.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    let text = |body: Vec<u8>| String::from_utf8(decompress_to_vec_zlib(&body).unwrap()).unwrap();
    bodies.map(|body| text(body.unwrap())).collect()
}

fn copies(place: &Place) -> i64 {
    place.number("SELECT count(DISTINCT session_no) FROM vault")
}

fn enqueue(place: &Place, path: &str) -> Value {
    place.json(&["enqueue", path, "--flush", "--json"])
}

#[test]
fn nothing_is_kept_unless_the_settings_say_so() {
    let mut place = offline();
    place.unset("ANNALIST__VAULT__ENABLED");
    place.run(&["vault"]).refused(1, &["no store there yet"]);
    place.write("s.jsonl", claude(0..3));
    enqueue(&place, "s.jsonl");
    assert_eq!((copies(&place), kept(&place).len()), (0, 0));
    let report = place.json(&["vault", "--json"]);
    cli_schemas::check(&place, "vault", &report);
    assert_eq!((&report["enabled"], &report["clients"]), (&json!(false), &json!([])));
    let shown = place.run(&["vault"]);
    assert!(shown.stderr.contains("enabled = true"), "{}", shown.stderr);
    let nothing = place.run(&["replay", "vault", "--dry-run"]);
    assert_eq!(nothing.code, 0, "{}", nothing.stderr);
    assert!(nothing.stderr.contains("the vault is empty"), "{}", nothing.stderr);
}

#[test]
fn a_copy_is_masked_and_has_the_whole_of_what_tools_said() {
    let place = offline();
    let output = format!("{}\nexport DB_PASSWORD={SECRET}\n{}", words(1, 9_000), words(2, 9_000));
    let talk = with_tool("wet", &[output]).replace("is wet?", "is <private>Ada's</private> wet?");
    place.write("s.jsonl", talk);
    enqueue(&place, "s.jsonl");
    let kept = kept(&place).concat();
    assert!(!kept.contains(SECRET) && kept.contains("DB_PASSWORD"), "{kept}");
    assert!(kept.contains(words(1, 9_000).trim()) && kept.contains(words(2, 9_000).trim()));
    let stored = place.number("SELECT max(length(text)) FROM entries");
    assert!(stored < 2_000, "what the queue has of it is short: {stored}");
    assert_eq!(place.json(&["privacy", "check", "--json"])["findings"], json!([]));
    let report = place.json(&["vault", "--json"]);
    cli_schemas::check(&place, "vault", &report);
    assert_eq!(
        (count(&report, "/clients/0/sessions"), count(&report, "/clients/0/entries")),
        (1, 3)
    );
    assert!(count(&report, "/clients/0/bytes_before") > count(&report, "/bytes"), "{report}");
}

#[test]
fn a_session_that_grew_is_kept_by_its_growth_and_a_shorter_file_takes_nothing_away() {
    let place = offline();
    let outputs: Vec<String> = (0..12).map(|seed| words(seed, 60_000)).collect();
    place.write("s.jsonl", with_tool("long", &outputs[..8]));
    enqueue(&place, "s.jsonl");
    let first = kept(&place);
    assert!(first.len() > 1, "{}", first.len());
    enqueue(&place, "s.jsonl");
    assert_eq!(kept(&place), first, "nothing new");
    place.write("s.jsonl", with_tool("long", &outputs));
    enqueue(&place, "s.jsonl");
    let grown = kept(&place);
    assert_eq!(grown[..first.len() - 1], first[..first.len() - 1]);
    assert!(grown.concat().starts_with(&first.concat()));
    let lines = place.number("SELECT sum(entries) FROM vault");
    assert_eq!((grown.concat().lines().count(), lines), (25, 25), "each entry once");
    place.write("s.jsonl", with_tool("long", &outputs[..7]));
    enqueue(&place, "s.jsonl");
    assert_eq!(kept(&place), grown);
}

/// Replays a session, whose file is deleted, out of the vault.
fn deleted_by_the_client(mut place: Place, stub: &Stub) -> Place {
    let file = place.write("in/s.jsonl", claude(0..6));
    let first = place.json(&["replay", "in", "--json"]);
    let (before, asked) = (place.export(), stub.count());
    std::fs::remove_file(file).unwrap();
    assert_eq!(place.run(&["namespace", "move", "home/dev/roofs", "ours"]).code, 0);
    let again = place.json(&["replay", "vault", "--json"]);
    balanced(&again);
    assert_eq!((count(&again, "/calls"), stub.count()), (0, asked), "{again}");
    assert_eq!((count(&again, "/entries"), records(&again)), (12, records(&first)));
    assert_eq!(place.number("SELECT count(*) FROM sessions"), 1);
    place.run(&["init", "--prompts", "own"]);
    let prompt = String::from_utf8(read(&place.path("own/extract.md"))).unwrap();
    place.write("own/extract.md", format!("{prompt}\nA roof is a place.\n"));
    place.set("ANNALIST__PROMPTS", "own");
    let planned = place.json(&["replay", "vault", "--dry-run", "--json"]);
    assert_eq!(count(&planned, "/coverage/pending"), 12, "{planned}");
    let better = place.json(&["replay", "vault", "--json"]);
    balanced(&better);
    assert_eq!(stub.count(), 2 * asked, "every slice is asked about with the prompt of now");
    // The same claims with the same proof, of other runs.
    let claims = |lines: Vec<String>| {
        let mut claims: Vec<Value> = lines
            .iter()
            .map(|line| {
                let record: Value = serde_json::from_str(line).unwrap();
                json!([record["claim"], record["evidence"], record["path"], record["entries"]])
            })
            .collect();
        claims.sort_by_key(Value::to_string);
        claims
    };
    let current = |lines: Vec<String>| {
        lines.into_iter().filter(|it| !it.contains("\"replaced\"")).collect::<Vec<_>>()
    };
    assert_eq!(claims(current(place.export())), claims(before));
    place
}

#[test]
fn a_transcript_that_its_client_deleted_is_read_again_with_a_better_prompt() {
    let stub = Stub::good();
    let place = deleted_by_the_client(keeping(Place::with_endpoint(stub.url())), &stub);
    let lines = place.sql();
    let mut lines = lines.prepare("SELECT line FROM entries ORDER BY place").unwrap();
    let lines: Vec<i64> =
        lines.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(lines, (1..=12).collect::<Vec<_>>(), "lines are those of the file");
    place.write("vault/s.jsonl", claude(0..1));
    let folder = place.json(&["replay", "./vault", "--dry-run", "--json"]);
    assert_eq!(count(&folder, "/entries"), 2, "a folder of that name is a folder");
}

#[test]
fn copies_are_kept_on_a_server_too() {
    let stub = Stub::good();
    let Some(place) = keeping(Place::with_endpoint(stub.url())).on_server() else { return };
    let place = deleted_by_the_client(place, &stub);
    let report = place.json(&["vault", "--json"]);
    assert_eq!(count(&report, "/clients/0/entries"), 12, "{report}");
    assert_eq!(place.json(&["privacy", "check", "--json"])["findings"], json!([]));
    assert_eq!(place.run(&["forget", "--session", SESSION, "--yes"]).code, 0);
    assert_eq!(place.number("SELECT count(*) FROM vault_chunks"), 0);
}

#[test]
fn forgetting_leaves_no_byte_of_a_copy_and_all_of_the_others() {
    let place = offline();
    place.write("one.jsonl", with_tool("one", &[words(1, 5_000)]));
    let other = with_tool("other", &[words(2, 5_000)]);
    place.write("other.jsonl", other.replace("Which roof is wet?", "Count the slates."));
    enqueue(&place, ".");
    let body = |name: &str| -> Vec<u8> {
        let sql = "SELECT c.body FROM vault_chunks c JOIN vault v ON v.chunk_no = c.no
            JOIN sessions s ON s.no = v.session_no WHERE s.native_id = ?1";
        place.sql().query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    let (one, other) = (body("one"), body("other"));
    let holds = |bytes: &[u8]| {
        let bytes = &bytes[100..400];
        place.files().iter().any(|(_, file)| file.windows(bytes.len()).any(|it| it == bytes))
    };
    assert!(holds(&one) && holds(&other));
    let done = place.json(&["forget", "--session", "one", "--yes", "--json"]);
    assert_eq!(done["proof"]["left"], json!({}), "the proof reads copies too");
    assert!(!holds(&one) && holds(&other));
    assert_eq!(copies(&place), 1);
    place.run(&["vault", "--clear"]).refused(2, &["1 copy", "--yes"]);
    let reader = place.sql();
    reader.execute_batch("BEGIN; SELECT count(*) FROM entries").unwrap();
    for _ in ["the copies go", "their text is still there"] {
        let told = place.run(&["vault", "--clear", "--yes"]);
        assert!(told.code == 1 && told.stderr.contains("still contains erased"), "{}", told.stderr);
    }
    drop(reader);
    let cleared = place.json(&["vault", "--clear", "--yes", "--json"]);
    assert_eq!((count(&cleared, "/bytes"), copies(&place), holds(&other)), (0, 0, false));
    let again = place.run(&["vault", "--clear"]);
    assert_eq!((again.code, again.stderr.contains("no copies")), (0, true), "{}", again.stderr);
}

#[test]
fn copies_that_are_alike_share_their_chunks_until_the_last_of_them_goes() {
    let place = offline();
    let said = json!([{"role": "user", "content": words(1, 5_000)}]);
    place.write("s.json", said.to_string());
    for namespace in ["a", "b"] {
        place.json(&["enqueue", "s.json", "--flush", "--namespace", namespace, "--json"]);
    }
    assert_eq!((copies(&place), kept(&place).len()), (2, 1));
    assert_eq!(place.run(&["forget", "--namespace", "a", "--yes"]).code, 0);
    assert_eq!((copies(&place), kept(&place).len()), (1, 1));
    assert_eq!(place.run(&["forget", "--namespace", "b", "--yes"]).code, 0);
    assert_eq!((copies(&place), kept(&place).len()), (0, 0));
}

#[test]
fn beyond_the_bound_the_copies_that_were_read_longest_ago_go() {
    let mut place = offline();
    place.set("ANNALIST__VAULT__MAX_MB", "1");
    for (seed, name) in [(1, "one"), (2, "two"), (3, "three")] {
        let outputs: Vec<String> = (0..8).map(|at| words(seed * 100 + at, 80_000)).collect();
        place.write(&format!("{name}.jsonl"), with_tool(name, &outputs));
        let done = enqueue(&place, &format!("{name}.jsonl"));
        assert_eq!(count(&done, "/copies_evicted"), u64::from(name == "three"), "{done}");
    }
    let sql = "SELECT count(*) FROM sessions s WHERE s.native_id = 'one'
        AND EXISTS (SELECT 1 FROM vault v WHERE v.session_no = s.no)";
    assert_eq!((copies(&place), place.number(sql)), (2, 0));
    let bytes = place.number("SELECT sum(bytes) FROM vault_chunks");
    assert!(bytes <= 1024 * 1024, "{bytes}");
    let planned = place.run(&["vault"]);
    assert!(planned.stderr.contains("of at most 1.0 MB"), "{}", planned.stderr);
}

#[test]
fn a_copy_that_cannot_be_kept_loses_nothing_else_and_is_kept_by_the_next_reading() {
    let stub = Stub::good();
    let place = keeping(Place::with_endpoint(stub.url()));
    place.write("s.jsonl", claude(0..3));
    enqueue(&place, "s.jsonl");
    // As after a crash between the two.
    place.sql().execute_batch("DELETE FROM vault; DELETE FROM vault_chunks").unwrap();
    let refuse =
        "CREATE TRIGGER refuse BEFORE INSERT ON vault BEGIN SELECT RAISE(ABORT, 'no room'); END";
    place.sql().execute_batch(refuse).unwrap();
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&totals);
    assert_eq!((records(&totals), count(&totals, "/findings/vault-failed")), (3, 1), "{totals}");
    assert_eq!((copies(&place), kept(&place).len()), (0, 0));
    place.sql().execute_batch("DROP TRIGGER refuse").unwrap();
    let calls = stub.count();
    place.json(&["replay", "s.jsonl", "--json"]);
    assert_eq!((copies(&place), stub.count()), (1, calls));
}

#[test]
fn reading_a_copy_again_masks_what_the_gate_has_learned_and_keeps_what_was_told_of_the_transcript()
{
    let stub = Stub::good();
    let mut place = keeping(Place::with_endpoint(stub.url()));
    place.set("ANNALIST__PRIVACY__PII", "phone");
    let said = format!("Write to ada@roofs.example. export DB_PASSWORD={SECRET}");
    place.write("s.jsonl", with_tool("wet", &[said]) + "not JSON\n");
    place.json(&["replay", "s.jsonl", "--json"]);
    assert!(kept(&place).concat().contains("ada@roofs.example"));
    let told = |place: &Place| {
        let session = place.run(&["status", "--json"]).json()["sessions"][0].clone();
        (session["masked"].clone(), session["findings"].clone())
    };
    let before = told(&place);
    assert_ne!(before, (json!({}), json!([])));
    place.unset("ANNALIST__PRIVACY__PII");
    place.json(&["replay", "vault", "--json"]);
    let kept = kept(&place).concat();
    assert!(!kept.contains("ada@roofs.example") && kept.contains("Write to"), "{kept}");
    assert_eq!(told(&place), before);
}

#[test]
fn what_is_handed_over_document_by_document_is_one_copy() {
    let place = offline();
    let slice = |from: usize, to: usize| {
        let said = |at: usize| {
            json!({"speaker": "tool", "kind": "tool_result", "tool": "Bash",
                "text": format!("{at}: {}", words(at as u64, 3_000))})
        };
        let entries: Vec<Value> = (from..to).map(said).collect();
        json!({"session": "handed", "namespace": "ours", "from": from, "entries": entries})
            .to_string()
    };
    place.write("one.json", slice(0, 2));
    place.write("two.json", slice(2, 5));
    for name in ["one.json", "two.json", "two.json"] {
        let done = enqueue(&place, name);
        assert_eq!(done["problems"], json!([]));
    }
    let kept = kept(&place).concat();
    let lines: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<&Value> = lines.iter().map(|line| &line["line"]).collect();
    assert_eq!(numbers, [&json!(1), &json!(2), &json!(3), &json!(4), &json!(5)]);
    assert!(kept.contains(words(4, 3_000).trim()));
    let planned = place.json(&["replay", "vault", "--dry-run", "--json"]);
    assert_eq!((count(&planned, "/sessions"), count(&planned, "/entries")), (1, 5), "{planned}");
}

#[test]
fn status_says_what_was_never_read_and_what_will_be_deleted_soon() {
    let place = offline();
    let days_ago = |name: &str, text: &str, days: u64| {
        let path = place.write(&format!("home/{name}"), text);
        let file = File::options().write(true).open(path).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - Duration::from_secs(days * 24 * 60 * 60)).unwrap();
    };
    days_ago(".claude/projects/-home-dev/one.jsonl", &with_tool("one", &[]), 29);
    days_ago(".claude/projects/-home-dev/two.jsonl", &with_tool("two", &[]), 29);
    days_ago(".claude/projects/-home-dev/new.jsonl", &with_tool("new", &[]), 1);
    days_ago(".claude/projects/-home-dev/memory/MEMORY.md", "# Notes", 29);
    days_ago(".gemini/tmp/1f/chats/session-1.json", "{}", 6);
    enqueue(&place, "home/.claude/projects/-home-dev/one.jsonl");
    let unread = |place: &Place| place.run(&["status", "--json"]).json()["unread"].clone();
    let report = unread(&place);
    assert_eq!(
        (count(&report, "/transcripts"), count(&report, "/deleted_soon")),
        (3, 1),
        "{report}"
    );
    let shown = place.run(&["status"]).stdout;
    let line = "3 sessions, 1 of them will be deleted within 3 days: `annalist enqueue ";
    assert!(shown.contains(line), "{shown}");
    place.write("home/.claude/settings.json", r#"{"cleanupPeriodDays": 365}"#);
    let gemini = r#"{"general": {"sessionRetention": {"enabled": true, "maxAge": "1w"}}}"#;
    place.write("home/.gemini/settings.json", gemini);
    assert_eq!(count(&unread(&place), "/deleted_soon"), 1, "that of Gemini CLI");
    enqueue(&place, "home/.claude/projects");
    assert_eq!(count(&unread(&place), "/transcripts"), 1);
}

#[test]
fn status_calls_unread_only_what_this_store_would_read() {
    let place = offline();
    let transcript = |name: &str, folder: &str| {
        let text = with_tool(name, &[]).replace("/home/dev/roofs", folder);
        let folder = folder.replace('/', "-");
        place.write(&format!("home/.claude/projects/{folder}/{name}.jsonl"), text)
    };
    let [other, own] = ["home/other", "here"].map(|it| place.path(it).display().to_string());
    place.write("home/other/.annalist/annalist.db", "");
    transcript("theirs", &other);
    let unread = |place: &Place| place.run(&["status", "--json"]).json()["unread"].clone();
    place.write("s.jsonl", with_tool("s", &[]));
    enqueue(&place, "s.jsonl");
    assert_eq!(count(&unread(&place), "/transcripts"), 0, "of a project with its own store");
    let ours = transcript("ours", &own).display().to_string();
    let report = unread(&place);
    assert_eq!(count(&report, "/transcripts"), 1, "{report}");
    let folder = report["folders"][0].as_str().unwrap();
    assert!(ours.starts_with(folder) && !folder.ends_with("projects"), "{report}");
    place.json(&["enqueue", folder, "--json"]);
    assert_eq!(count(&unread(&place), "/transcripts"), 0);
    assert_eq!(place.run(&["forget", "--session", "ours", "--yes"]).code, 0);
    assert_eq!(count(&unread(&place), "/transcripts"), 0, "forgotten");
}
