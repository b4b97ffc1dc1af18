//! What is forgotten is gone: from the tables, from the file's bytes, and from what rested on it.

use super::input::claude;
use super::judging::{BY_RULE, all, judge, opposed};
use super::place::{Place, count};
use super::stub::{Answer, Stub};
use serde_json::Value;
use std::collections::BTreeMap;

/// The shipped sessions, replayed and consolidated.
fn place() -> Place {
    let place = Place::with_examples();
    place.json(&["consolidate", "--json"]);
    place
}

/// The session of a namespace.
fn session(place: &Place, namespace: &str) -> String {
    let status = place.json(&["status", "--all", "--json"]);
    let all = status["sessions"].as_array().unwrap();
    let of = |it: &&Value| it["namespace"] == namespace;
    all.iter().find(of).unwrap()["session"].as_str().unwrap().to_owned()
}

/// Memories by namespace.
fn memories(place: &Place) -> BTreeMap<String, Vec<String>> {
    let database = place.sql();
    let sql = "SELECT namespace, body FROM memories ORDER BY id";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (namespace, body) in rows.unwrap().map(Result::unwrap) {
        all.entry(namespace).or_default().push(body);
    }
    all
}

/// Whether the store's files hold these bytes anywhere.
fn holds(place: &Place, words: &str) -> bool {
    let path = place.database();
    let beside =
        |end: &str| path.with_file_name(format!("{}{end}", path.file_name().unwrap().display()));
    let files = [path.clone(), beside("-wal"), beside("-shm")];
    let read = files.iter().filter(|file| file.exists()).map(|file| super::place::read(file));
    read.into_iter().any(|bytes| bytes.windows(words.len()).any(|at| at == words.as_bytes()))
}

#[test]
fn a_session_is_gone_with_all_that_was_made_of_it_and_nothing_else_is() {
    let place = place();
    let (id, before) = (session(&place, "home/dev/stocklist"), memories(&place));
    assert!(holds(&place, "Graz warehouse") && !before["home/dev/stocklist"].is_empty());
    let few = ["forget", "--session", &id[..3], "--dry-run"];
    place.run(&few).refused(2, &[&id[..3], "expected an ID prefix of at least 4"]);
    let dry = place.json(&["forget", "--session", &id, "--dry-run", "--json"]);
    assert!(!dry["memories"].as_array().unwrap().is_empty());
    assert_eq!(memories(&place), before, "a dry run erases nothing");
    place.run(&["forget", "--session", &id]).refused(2, &["no terminal to ask", "--yes"]);
    assert_eq!(memories(&place), before, "it asks before it erases");
    let done = place.json(&["forget", "--session", &id, "--yes", "--json"]);
    assert_eq!(count(&done, "/erased/sessions"), 1);
    assert_eq!(count(&done, "/erased/records"), dry["records"].as_array().unwrap().len() as u64);
    assert!(count(&done, "/proof/passages") > 10 && count(&done, "/proof/texts") > 10, "{done}");
    assert_eq!(done["proof"]["left"], serde_json::json!({}));
    assert!(!holds(&place, "Graz warehouse"), "not in a free page, not in the log");
    let mut others = before;
    others.remove("home/dev/stocklist");
    assert_eq!(memories(&place), others);
    place.run(&["forget", "--session", &id, "--yes"]).refused(2, &["no session begins with"]);
    let cards = place.json(&["records", "cards", "--json"]);
    assert_eq!(cards.as_array().unwrap().len(), 3);
    let forgot = place.number("SELECT count(*) FROM ledger WHERE deed = 'forget'");
    assert!(forgot > 0, "the ledger says that it was");
}

#[test]
fn a_preview_counts_what_the_erasure_erases() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..4));
    place.json(&["replay", "s.jsonl", "--json"]);
    place.json(&["consolidate", "--no-model", "--json"]);
    let id = session(&place, "home/dev/roofs");
    let forget = |last: &str| place.json(&["forget", "--session", &id, last, "--json"]);
    let told = place.run(&["forget", "--session", &id, "--dry-run"]).stdout;
    let (dry, done) = (forget("--dry-run"), forget("--yes"));
    assert_eq!(dry["erasable"], done["erased"]);
    let numbers = ["entries", "runs", "records", "answers", "jobs", "memories_gone"];
    assert!(numbers.iter().all(|it| count(&dry, &format!("/erasable/{it}")) > 0), "{dry}");
    assert!(told.contains("1 session, 8 entries, 4 records, "), "{told}");
}

#[test]
fn a_preview_of_a_large_memory_names_what_goes_without_its_plans() {
    let stub = judge(|_| all(&[]));
    let place = opposed(&stub);
    place.json(&BY_RULE);
    let id = |chosen: &str| {
        let all = place.json(&["memory", "list", "--json"]);
        let found = all.as_array().unwrap().iter().find(|it| it["claim"]["chosen"] == chosen);
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let [old, new] = ["Redis", "Postgres"].map(id);
    assert_eq!(place.run(&["memory", "supersede", &old, &new]).code, 0);
    let records = place.json(&["records", "--json"]);
    let is_new = |it: &&Value| it["claim"]["chosen"] == "Postgres";
    let session = records.as_array().unwrap().iter().find(is_new).unwrap()["session"].clone();
    let forget =
        |last| place.json(&["forget", "--session", session.as_str().unwrap(), last, "--json"]);
    let whole = forget("--dry-run");
    // A plan may be followed by blanks.
    place.sql().execute("UPDATE plans SET body = body || printf('%5000000s', '')", []).unwrap();
    let large = forget("--dry-run");
    assert_eq!([&whole["complete"], &large["complete"]], [true, false]);
    let states = |it: &Value| -> Vec<(Value, Value)> {
        let changes = it["memories"].as_array().unwrap().iter();
        changes.map(|it| (it["memory"].clone(), it["after"]["state"].clone())).collect()
    };
    let mut expected = vec![(Value::from(old), "active".into()), (new.into(), Value::Null)];
    expected.sort_by_key(|(id, _)| id.to_string());
    assert_eq!([states(&whole), states(&large)], [expected.clone(), expected]);
    let done = forget("--yes");
    assert_eq!([&whole["erasable"], &large["erasable"]], [&done["erased"]; 2]);
}

#[test]
fn a_transcript_that_still_lies_there_does_not_bring_it_back() {
    let place = place();
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let (from, cassette) = (examples.join("sessions"), examples.join("cassette"));
    let (from, cassette) = (from.to_str().unwrap(), cassette.to_str().unwrap());
    let id = session(&place, "home/dev/stocklist");
    let sessions =
        || place.json(&["status", "--all", "--json"])["sessions"].as_array().unwrap().len();
    let before = sessions();
    assert_eq!(place.run(&["forget", "--session", &id, "--yes"]).code, 0);
    assert_eq!(sessions(), before - 1);
    let again = place.run(&["replay", from, "--cassette", cassette]);
    assert_eq!((again.code, sessions()), (0, before - 1), "{}", again.stderr);
    assert!(
        again.stderr.contains("1 session erased by `annalist forget` and skipped"),
        "{}",
        again.stderr
    );
    let handed = place.json(&["enqueue", from, "--flush", "--json"]);
    assert_eq!((count(&handed, "/forgotten"), sessions()), (1, before - 1));
    let wanted = ["replay", from, "--cassette", cassette, "--also-forgotten"];
    assert_eq!(place.run(&wanted).code, 0);
    assert_eq!(sessions(), before, "a person wanted it back");
    assert_eq!(session(&place, "home/dev/stocklist"), id);
    let known = place.run(&["replay", from, "--cassette", cassette]);
    assert!(!known.stderr.contains("annalist forget"), "{}", known.stderr);
    assert_eq!(sessions(), before);
}

#[test]
fn a_forgotten_conversation_is_read_into_no_other_namespace() {
    let place = Place::new();
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let file = examples.join("sessions/openai-support-bot.json");
    let cassette = examples.join("cassette");
    let read = |more: &[&str]| {
        let begin = ["replay", file.to_str().unwrap(), "--cassette", cassette.to_str().unwrap()];
        place.run(&[&begin, more].concat())
    };
    let sessions =
        || place.json(&["status", "--all", "--json"])["sessions"].as_array().unwrap().len();
    assert_eq!(read(&["--namespace", "roofs"]).code, 0);
    let id = session(&place, "roofs");
    assert_eq!(place.run(&["forget", "--session", &id, "--yes"]).code, 0);
    for more in [&[][..], &["--namespace", "gutters"], &["--namespace", "roofs"]] {
        let again = read(more);
        assert_eq!((again.code, sessions()), (0, 0), "{more:?}: {}", again.stderr);
        assert!(again.stderr.contains("and skipped"), "{more:?}: {}", again.stderr);
    }
    let handed = place.json(&["enqueue", file.to_str().unwrap(), "--flush", "--json"]);
    assert_eq!((count(&handed, "/forgotten"), sessions()), (1, 0));
    assert_eq!(read(&["--namespace", "gutters", "--also-forgotten"]).code, 0);
    assert_eq!(sessions(), 1, "a person wanted it back");
    assert_eq!(read(&["--namespace", "gutters"]).code, 0);
    assert_eq!(sessions(), 1);
}

#[test]
fn a_document_of_a_forgotten_session_is_left_out() {
    let place = Place::new();
    let slice = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/slice.json");
    let slice = slice.to_str().unwrap();
    let first = place.json(&["enqueue", slice, "--flush", "--json"]);
    let session = first["sessions"][0]["session"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["forget", "--session", &session, "--yes"]).code, 0);
    let again = place.json(&["enqueue", slice, "--flush", "--json"]);
    assert_eq!((count(&again, "/forgotten"), count(&again, "/jobs")), (1, 0), "{again}");
    let wanted = place.json(&["enqueue", slice, "--flush", "--also-forgotten", "--json"]);
    assert_eq!((count(&wanted, "/forgotten"), count(&wanted, "/jobs")), (0, 1), "{wanted}");
}

#[test]
fn a_record_is_gone_with_its_memory_and_its_session_stays() {
    let place = place();
    let records = place.json(&["records", "--namespace", "home/dev/ledger", "--json"]);
    let record = records[0]["id"].as_str().unwrap();
    let before = memories(&place)["home/dev/ledger"].len();
    let shown = place.run(&["forget", "--record", &record[..12], "--yes"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("erased: 1 record\n"), "{}", shown.stdout);
    assert_eq!(memories(&place)["home/dev/ledger"].len(), before - 1);
    let left = place.json(&["records", "--namespace", "home/dev/ledger", "--json"]);
    assert_eq!(left.as_array().unwrap().len(), records.as_array().unwrap().len() - 1);
    assert_eq!(
        place.json(&["consolidate", "--json"]),
        Value::Array(vec![]),
        "it does not come back"
    );
    session(&place, "home/dev/ledger");
}

#[test]
fn a_namespace_is_gone_whole_also_where_its_plan_was_undone() {
    let place = place();
    let log = place.json(&["consolidate", "log", "--namespace", "home/dev/ledger", "--json"]);
    let plan = log[0]["plan"].as_str().unwrap();
    place.json(&["consolidate", "--undo", plan, "--json"]);
    assert!(holds(&place, "FOR UPDATE SKIP LOCKED"));
    place.json(&["forget", "--namespace", "home/dev/ledger", "--yes", "--json"]);
    assert!(!holds(&place, "FOR UPDATE SKIP LOCKED"));
    assert_eq!(memories(&place).len(), 2);
    let again = place.run(&["forget", "--namespace", "home/dev/ledger", "--yes"]);
    assert!(again.code == 0 && again.stderr.contains("nothing to forget"), "{}", again.stderr);
    place.run(&["forget"]).refused(2, &["--session"]);
    let typo = ["forget", "--namespace", "home/dev/stocklit", "--yes"];
    place.run(&typo).refused(2, &["`home/dev/stocklit`", "nearest: `home/dev/stocklist`"]);
}

#[test]
fn the_directory_of_the_folder_forgets_too() {
    let place = place();
    place.run(&["memory", "init"]);
    place.json(&["memory", "sync", "--namespace", "home/dev/stocklist", "--json"]);
    let words = |place: &Place| {
        let files = place.files().into_iter();
        let texts = files.filter(|(path, _)| path.extension().is_some_and(|it| it == "md"));
        texts.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect::<String>()
    };
    assert!(words(&place).contains("Graz warehouse"));
    let mut place = place;
    place.set("ANNALIST__NAMESPACE", "home/dev/stocklist");
    let done = place.run(&["forget", "--session", &session(&place, "home/dev/stocklist"), "--yes"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("none left"), "{}", done.stdout);
    assert!(!done.stderr.contains("elsewhere"), "{}", done.stderr);
    assert!(!done.stderr.contains("git"), "{}", done.stderr);
    assert!(!words(&place).contains("Graz warehouse"));
    assert!(!holds(&place, "Graz warehouse"));
}

#[test]
fn that_commits_still_hold_the_text_is_said_where_git_tracks_the_directory() {
    let mut place = place();
    place.set("ANNALIST__NAMESPACE", "home/dev/stocklist");
    place.run(&["memory", "init"]);
    place.json(&["memory", "sync", "--json"]);
    // An index of version 4 shortens names, so that any folder may be in it.
    place.write(".git/index", b"DIRC\0\0\0\x04");
    let done = place.run(&["forget", "--session", &session(&place, "home/dev/stocklist"), "--yes"]);
    let said = "is in a git repository: earlier commits and clones still contain the text";
    assert!(done.code == 0 && done.stderr.contains(said), "{}", done.stderr);
}

#[test]
fn a_directory_that_is_no_longer_there_and_a_published_block_keep_no_word() {
    let mut place = place();
    place.set("ANNALIST__NAMESPACE", "home/dev/stocklist");
    place.run(&["memory", "init"]);
    place.json(&["memory", "sync", "--json"]);
    place.run(&["publish"]);
    let folder = place.path(".claude");
    std::fs::rename(&folder, place.path("away")).unwrap();
    let id = session(&place, "home/dev/stocklist");
    let done = place.json(&["forget", "--session", &id, "--yes", "--json"]);
    assert_eq!(done["proof"]["left"], serde_json::json!({}), "{done}");
    assert!(!holds(&place, "Graz warehouse"));
}

#[test]
fn a_published_block_that_holds_erased_words_is_told() {
    let mut place = place();
    place.set("ANNALIST__NAMESPACE", "home/dev/stocklist");
    place.run(&["memory", "init"]);
    place.json(&["memory", "sync", "--json"]);
    place.run(&["publish"]);
    let block = std::fs::read_to_string(place.path("AGENTS.md")).unwrap();
    assert!(block.contains("src-"), "{block}");
    let id = session(&place, "home/dev/stocklist");
    let done = place.run(&["forget", "--session", &id, "--yes"]);
    let told = "AGENTS.md contains some: `annalist publish AGENTS.md` renews a published block";
    assert!(done.stderr.contains(told), "{}{}", done.stdout, done.stderr);
}

#[test]
fn a_clients_own_name_of_a_session_is_known() {
    let place = place();
    let native = |namespace: &str| {
        let sql = "SELECT native_id FROM sessions WHERE namespace = ?1";
        let name: String = place.sql().query_row(sql, [namespace], |row| row.get(0)).unwrap();
        name
    };
    let done =
        place.json(&["forget", "--session", &native("home/dev/stocklist"), "--yes", "--json"]);
    assert_eq!(count(&done, "/erased/sessions"), 1);
    assert!(!holds(&place, "Graz warehouse"));
}

#[test]
fn an_older_checkout_of_the_directory_brings_nothing_back() {
    let mut place = place();
    place.run(&["memory", "init"]);
    place.set("ANNALIST__NAMESPACE", "home/dev/stocklist");
    place.json(&["memory", "sync", "--json"]);
    let folder = place.path(".claude/memory");
    let files = || {
        let all = place.files().into_iter();
        all.filter(|(path, _)| path.extension().is_some_and(|it| it == "md")).collect::<Vec<_>>()
    };
    let before = files();
    // An entry that was moved into a file of a person's.
    let entry = before.iter().find_map(|(_, bytes)| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let at = text.find("<!-- @tag: src-")?;
        let start = text[..at].rfind("\n- ")? + 1;
        Some(text[start..].lines().take_while(|it| !it.is_empty()).collect::<Vec<_>>().join("\n"))
    });
    let entry = entry.unwrap();
    place.write(".claude/memory/mine.md", format!("# Mine\n\n{entry}\n\n- my own\n"));
    let id = session(&place, "home/dev/stocklist");
    let done = place.json(&["forget", "--session", &id, "--yes", "--json"]);
    assert_eq!(done["proof"]["left"], serde_json::json!({}), "{done}");
    let after = files();
    let mine = std::fs::read_to_string(folder.join("mine.md")).unwrap();
    assert!(mine.contains("- my own") && !mine.contains("src-"), "{mine}");
    for (path, bytes) in &before {
        place.write(path.to_str().unwrap(), bytes);
    }
    place.json(&["memory", "sync", "--json"]);
    let words = |files: &[(std::path::PathBuf, Vec<u8>)]| -> String {
        files
            .iter()
            .map(|(path, bytes)| format!("{path:?} {}", String::from_utf8_lossy(bytes)))
            .collect()
    };
    assert!(!words(&files()).contains("src-"), "{}", words(&files()));
    assert!(!words(&files()).to_lowercase().contains("graz"), "{}", words(&files()));
    assert_eq!(files().len(), after.len());
}

#[test]
fn an_answer_under_way_while_its_conversation_is_forgotten_is_billed_and_not_kept() {
    let stub = Stub::new(|_| Answer::Hold);
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..4));
    let replay = place.start(&["replay", "s.jsonl"]);
    stub.until(1);
    let id = place.sql().query_row("SELECT lower(hex(id)) FROM sessions", [], |row| row.get(0));
    let id: String = id.unwrap();
    let asked = "SELECT count(*) FROM jobs WHERE state = 'leased'";
    stub.until_that(|| place.number(asked) > 0);
    let forget = place.run(&["forget", "--session", &id, "--yes"]);
    assert_eq!(forget.code, 0, "{}", forget.stderr);
    stub.release();
    let output = replay.wait();
    assert!(output.stderr.contains("1 session erased by `annalist forget`"), "{}", output.stderr);
    assert!(!output.stderr.contains("error:"), "{}", output.stderr);
    assert_eq!(place.number("SELECT count(*) FROM journal"), 0);
    assert!(!holds(&place, "cellar-"), "{}", output.stderr);
    let billed = "SELECT count(*) FROM bills WHERE purpose = 'extract'";
    assert!(place.number(billed) > 0, "it was paid for");
}

#[test]
fn an_erasure_that_was_interrupted_or_has_a_reader_beside_it_is_finished_later() {
    let place = place();
    let (id, words) = (session(&place, "home/dev/stocklist"), "Graz warehouse");
    let reader = place.sql();
    reader.execute_batch("BEGIN; SELECT count(*) FROM entries").unwrap();
    let output = place.run(&["forget", "--session", &id, "--yes"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("still contains erased text"), "{}", output.stderr);
    assert!(output.stdout.contains("none left in its tables"), "{}", output.stdout);
    assert!(holds(&place, words));
    drop(reader);
    let status = place.run(&["status"]);
    assert_eq!(status.code, 1);
    assert!(status.stderr.contains("an erasure was interrupted"), "{}", status.stderr);
    // As if it was killed before the file was rewritten.
    let output = place.run(&["forget", "--session", &id, "--yes"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("an interrupted erasure was finished"), "{}", output.stderr);
    assert!(!holds(&place, words), "not in a free page, not in the log");
    assert_eq!(place.run(&["status"]).code, 0);
    place.run(&["forget", "--session", &id, "--yes"]).refused(2, &["no session begins with"]);
    let pending = "INSERT INTO scrubs (namespace) VALUES ('home/dev/stocklist')";
    for command in [&["consolidate"][..], &["vault", "--clear", "--yes"]] {
        place.sql().execute(pending, []).unwrap();
        let output = place.run(command);
        assert!(output.stderr.contains("an interrupted erasure was finished"), "{command:?}");
        assert_eq!(place.number("SELECT count(*) FROM scrubs"), 0);
    }
}

#[test]
fn a_copied_project_is_cleaned_and_the_one_it_was_copied_from_is_not() {
    let place = place();
    let (namespace, words) = ("home/dev/stocklist", "Graz warehouse");
    assert_eq!(place.run(&["memory", "init"]).code, 0);
    assert_eq!(place.run(&["memory", "sync", "--namespace", namespace]).code, 0);
    let files = |place: &Place| {
        let mut texts = String::new();
        let folder = place.path(".annalist").parent().unwrap().to_owned();
        super::place::walk(&folder, &mut |path| {
            if path.extension().is_some_and(|end| end == "md") {
                texts.push_str(&String::from_utf8(super::place::read(path)).unwrap());
            }
        });
        texts
    };
    let before = files(&place);
    assert!(before.contains(words), "{before}");
    for is_synced in [false, true] {
        let copy = place.copied();
        if is_synced {
            assert_eq!(copy.run(&["memory", "sync", "--namespace", namespace]).code, 0);
        }
        let id = session(&copy, namespace);
        let output = copy.run(&["forget", "--session", &id, "--yes"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(output.stdout.contains(": none left"), "{}", output.stdout);
        assert!(!files(&copy).contains(words) && !holds(&copy, words), "{}", output.stderr);
        assert_eq!(files(&place), before);
    }
    assert!(!session(&place, namespace).is_empty());
}
