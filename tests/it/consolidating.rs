//! From staged records to memory and back, as a process.

use super::judging::{BY_RULE, opposed, states};
use super::place::Place;
use super::stub::{Answer, Stub};
use serde_json::{Value, json};

fn memories(place: &Place) -> Vec<String> {
    let database = place.sql();
    let mut statement = database.prepare("SELECT body FROM memories ORDER BY id").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn every_record_is_dealt_with_once_and_a_second_run_has_nothing_to_do() {
    let place = Place::with_examples();
    let staged = place.json(&["records", "--state", "staged", "--json"]).as_array().unwrap().len();
    let dry = place.json(&["consolidate", "--dry-run", "--json"]);
    assert!(memories(&place).is_empty(), "a dry run changes nothing");
    let done = place.json(&["consolidate", "--json"]);
    assert_eq!(dry, done, "what was announced is what was done");
    let operations = |told: &Value| told["plan"]["operations"].as_array().unwrap().len();
    assert_eq!(done.as_array().unwrap().iter().map(operations).sum::<usize>(), staged);
    let kept = memories(&place);
    assert!(!kept.is_empty());
    assert_eq!(place.json(&["consolidate", "--json"]), Value::Array(vec![]));
    assert_eq!(memories(&place), kept);
    let again = place.run(&["consolidate"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
    assert!(again.stderr.contains("nothing to consolidate"), "{}", again.stderr);
}

/// The numbers before a word in a text.
fn numbers(text: &str, word: &str) -> usize {
    let number = |it: &str| it.split_whitespace().next_back()?.parse::<usize>().ok();
    let parts: Vec<&str> = text.split(word).collect();
    parts.iter().rev().skip(1).filter_map(|it| number(it)).sum()
}

#[test]
fn new_memories_are_summed_up_and_open_pairs_are_those_of_the_review() {
    let place = Place::with_examples();
    let staged = place.json(&["records", "--state", "staged", "--json"]).as_array().unwrap().len();
    let dry = place.run(&["consolidate", "--dry-run"]);
    let done = place.run(&["consolidate"]);
    for printed in [&dry.stdout, &done.stdout] {
        let lines: Vec<&str> = printed.lines().collect();
        let listed: Vec<usize> =
            (0..lines.len()).filter(|at| lines[*at].ends_with("by rule: new")).collect();
        assert_eq!(numbers(printed, " new  --json") + listed.len(), staged, "{printed}");
        assert!(listed.iter().all(|at| lines[at + 1].contains("→")), "{printed}");
        let words = |at: usize, from| lines[at].split_once(from)?.1.split("  by ").next();
        for at in listed {
            let kind = lines[at].split_whitespace().nth(1).unwrap();
            assert_ne!(words(at, kind), words(at + 1, ":"), "what settled it: {printed}");
        }
    }
    let review = place.run(&["memory", "review"]).stderr;
    let pairs = numbers(&review, " pairs left open or contradictory");
    let open = place.json(&["open", "--all", "--json"]);
    let open = open.as_array().unwrap();
    let limit =
        open.iter().find(|it| it["headline"].as_str().unwrap().contains("log_only")).unwrap();
    assert!(limit["possibly"].as_str().unwrap().contains("possibly done by src-"), "{limit}");
    let open = open.len();
    assert_eq!(numbers(&review, " open requests, questions and failures"), open, "{review}");
    for told in [&dry.stderr, &done.stderr] {
        assert_eq!(numbers(&told.replace("pairs", "pair"), " pair left open"), pairs, "{told}");
        // Several namespaces need the advice once.
        assert_eq!(told.matches("`annalist memory review` asks you").count(), 1, "{told}");
    }
}

#[test]
fn plans_are_undone_and_made_again_to_the_same_bytes() {
    let place = Place::with_examples();
    place.json(&["consolidate", "--json"]);
    let kept = memories(&place);
    let log = place.json(&["consolidate", "log", "--json"]);
    for plan in log.as_array().unwrap().iter().rev() {
        place.json(&["consolidate", "--undo", plan["plan"].as_str().unwrap(), "--json"]);
    }
    assert!(memories(&place).is_empty());
    assert_eq!(place.json(&["consolidate", "--json"]), Value::Array(vec![]), "it is remembered");
    let staged = place.json(&["records", "--state", "staged", "--json"]);
    let staged = staged.as_array().unwrap();
    assert!(staged.iter().all(|it| it["discarded"] == true));
    let shown = place.run(&["records", "show", staged[0]["id"].as_str().unwrap()]).stdout;
    assert!(shown.contains("  discarded, score "), "{shown}");
    let listed = place.run(&["records", "--state", "staged"]);
    assert!(listed.stderr.contains(&format!("{} discarded: ", staged.len())), "{}", listed.stderr);
    for plan in log.as_array().unwrap() {
        place.json(&["consolidate", "--redo", plan["plan"].as_str().unwrap(), "--json"]);
    }
    assert_eq!(memories(&place), kept);
    let again = place.json(&["consolidate", "log", "--json"]);
    let again = again.as_array().unwrap();
    assert_eq!(again.len(), log.as_array().unwrap().len(), "each plan once");
    assert!(again.iter().all(|it| it["undone_at"].is_null()));
    place.run(&["consolidate", "--undo", "0000"]).refused(2, &["no plan begins with `0000`"]);
    let other = place.json(&["consolidate", "log", "--namespace", "none", "--json"]);
    assert_eq!(other, Value::Array(vec![]));
}

#[test]
fn one_namespace_alone_is_consolidated_if_it_is_named() {
    let place = Place::with_examples();
    let done = place.json(&["consolidate", "--namespace", "home/dev/ledger", "--json"]);
    assert_eq!(done.as_array().unwrap().len(), 1);
    let all = memories(&place);
    assert!(all.iter().all(|body| body.contains("\"namespace\":\"home/dev/ledger\"")));
    let shown = place.run(&["consolidate", "--dry-run"]);
    assert!(shown.stdout.contains("stocklist") && !shown.stdout.contains("/ledger "));
    assert!(shown.stderr.contains("nothing was changed"), "{}", shown.stderr);
}

#[test]
fn a_worker_consolidates_where_enough_records_wait_and_not_where_too_few_do() {
    let root = env!("CARGO_MANIFEST_DIR");
    let (sessions, cassette) =
        (format!("{root}/examples/sessions"), format!("{root}/examples/cassette"));
    let drained = |settings: [&str; 3]| {
        let mut place = Place::new();
        for (name, value) in ["RECORDS", "BYTES", "IDLE_SECS"].into_iter().zip(settings) {
            place.set(&format!("ANNALIST__CONSOLIDATE__{name}"), value);
        }
        place.json(&["enqueue", &sessions, "--flush", "--json"]);
        place.json(&["worker", "--drain", "--cassette", &cassette, "--json"]);
        place
    };
    assert!(memories(&drained(["0", "0", "0"])).is_empty(), "never");
    assert!(memories(&drained(["1000", "9000000", "3600"])).is_empty(), "too few");
    let place = drained(["1", "0", "0"]);
    assert!(!memories(&place).is_empty());
    assert_eq!(place.json(&["consolidate", "--json"]), Value::Array(vec![]), "nothing waits");
}

#[test]
fn a_worker_and_a_consolidation_elsewhere_bring_directories_in_step_that_show_the_namespace() {
    let root = env!("CARGO_MANIFEST_DIR");
    let (sessions, cassette) =
        (format!("{root}/examples/sessions"), format!("{root}/examples/cassette"));
    let mut place = Place::new();
    for (name, value) in [("RECORDS", "1"), ("IDLE_SECS", "0"), ("COOL_DOWN_SECS", "0")] {
        place.set(&format!("ANNALIST__CONSOLIDATE__{name}"), value);
    }
    // One store for all folders.
    place.set("ANNALIST__STORE__URL", &format!("sqlite:{}", place.path("all.db").display()));
    place.json(&["enqueue", &sessions, "--flush", "--json"]);
    for project in ["ledger", "stocklist"] {
        std::fs::create_dir_all(place.path(project)).unwrap();
        let folder = place.path(project);
        let mut init = place.command(&["memory", "init"]);
        assert!(init.current_dir(&folder).output().unwrap().status.success());
        // Without this nobody knows that the directory is there.
        let namespace = format!("home/dev/{project}");
        let mut sync = place.command(&["memory", "sync", "--namespace", &namespace]);
        assert!(sync.current_dir(&folder).output().unwrap().status.success());
    }
    let shown = |project: &str| {
        let path = place.path(project).join(".claude/memory/active-context.md");
        String::from_utf8(super::place::read(&path)).unwrap()
    };
    let (ledger, stocklist) = (shown("ledger"), shown("stocklist"));
    place.json(&["worker", "--drain", "--cassette", &cassette, "--json"]);
    assert!(shown("ledger").contains("@tag: src-") && shown("ledger") != ledger);
    assert!(shown("stocklist").contains("@tag: src-") && shown("stocklist") != stocklist);
    let log = place.json(&["consolidate", "log", "--namespace", "home/dev/ledger", "--json"]);
    let plan = log[0]["plan"].as_str().or(log[0]["id"].as_str()).unwrap().to_owned();
    assert_eq!(place.run(&["consolidate", "--undo", &plan]).code, 0);
    assert!(!shown("ledger").contains("@tag: src-"), "{}", shown("ledger"));
    assert!(shown("stocklist").contains("@tag: src-"));
}

#[test]
fn real_sessions_are_consolidated_once_and_the_second_plan_is_empty() {
    let (Some(transcripts), Some(answers)) =
        (super::shared::beside("transcripts"), super::shared::beside("answers"))
    else {
        return;
    };
    let place = Place::new();
    let (transcripts, answers) = (transcripts.to_str().unwrap(), answers.to_str().unwrap());
    let imported = place.run(&["cassette", "import", answers, "--to", "cassette"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    // What no answer was recorded for is stale, and said.
    place.run(&["replay", transcripts, "--cassette", "cassette", "--json"]);
    let first = place.json(&["consolidate", "--json"]);
    let records: usize = (first.as_array().unwrap().iter())
        .map(|told| told["plan"]["operations"].as_array().unwrap().len())
        .sum();
    assert!(records > 80, "{records} records");
    let kept = memories(&place);
    assert_eq!(place.json(&["consolidate", "--json"]), Value::Array(vec![]));
    assert_eq!(memories(&place), kept);
}

/// The words of the directory and the states of the memories.
fn kept(place: &Place) -> (String, Vec<String>) {
    let folder = place.path(".claude/memory/decisions");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().map(|path| String::from_utf8(super::place::read(path)).unwrap());
    (texts.collect(), states(place))
}

/// Answers of which a newer model leaves one out.
fn forgetful() -> Stub {
    Stub::new(|ask| match ask.body["model"].as_str() {
        Some("careful") if ask.slice().contains("Postgres over Redis") => Answer::Call(
            json!({"decisions": [], "discussions": [], "attempts": [], "requests": []}),
        ),
        Some(_) | None => ask.good(),
    })
}

#[test]
fn a_persons_edit_survives_a_newer_reading_without_it() {
    for command in [&["consolidate"][..], &["memory", "sync", "--namespace", "home/dev/roofs"]] {
        let stub = forgetful();
        let place = opposed(&stub);
        assert_eq!(place.run(&["memory", "init"]).code, 0);
        place.json(&["memory", "sync", "--namespace", "home/dev/roofs", "--json"]);
        let (path, bytes) = place
            .files()
            .into_iter()
            .find(|(path, _)| path.to_string_lossy().contains("ADR-002"))
            .unwrap();
        let text = String::from_utf8(bytes).unwrap();
        place.write(path.to_str().unwrap(), text.replace("must survive", "must really survive"));
        place.json(&["replay", "t", "--model", "careful", "--json"]);
        assert_eq!(place.run(command).code, 0);
        assert_eq!(states(&place), ["Postgres active", "Redis active"], "{command:?}");
        let list = place.json(&["memory", "list", "--namespace", "home/dev/roofs", "--json"]);
        let edited = list.as_array().unwrap().iter().find(|it| it["confirmed"] == true).unwrap();
        let shown = place.run(&["memory", "show", edited["id"].as_str().unwrap()]);
        assert!(shown.stdout.contains("as edited by a person:"), "{}", shown.stdout);
        assert!(shown.stdout.contains("must really survive"), "{}", shown.stdout);
        let kept = place.files().into_iter().find(|(it, _)| *it == path).unwrap().1;
        assert!(String::from_utf8(kept).unwrap().contains("must really survive"));
    }
}

#[test]
fn a_newer_reading_withdraws_what_it_lacks_and_keeps_ids_of_the_rest() {
    let stub = forgetful();
    let place = opposed(&stub);
    let sync = || drop(place.json(&["memory", "sync", "--namespace", "home/dev/roofs", "--json"]));
    assert_eq!(place.run(&["memory", "init"]).code, 0);
    place.json(&BY_RULE);
    sync();
    let (before, believed) = kept(&place);
    assert_eq!(believed, ["Postgres active", "Redis active"]);

    place.json(&["replay", "t", "--model", "careful", "--json"]);
    let shown = place.run(&["consolidate", "--dry-run"]);
    assert!(shown.stdout.contains("read again; no longer used"), "{}", shown.stdout);
    assert!(
        shown.stdout.contains("source was read again; still has other sources"),
        "{}",
        shown.stdout
    );
    let done = place.json(&BY_RULE);
    sync();
    let (after, believed) = kept(&place);
    assert_eq!(believed, ["Postgres retracted", "Redis active"]);
    assert_eq!(
        before.replace("Accepted", ""),
        after.replace("Accepted", "").replace("Deprecated", "")
    );
    assert_ne!(before, after);
    assert_eq!(place.json(&BY_RULE), Value::Array(vec![]), "twice is once");

    let plan = done[0]["plan"]["id"].as_str().unwrap();
    place.json(&["consolidate", "--undo", plan, "--json"]);
    assert_eq!(kept(&place).0, before);
    assert_eq!(place.json(&BY_RULE), Value::Array(vec![]), "it is remembered");
    place.json(&["consolidate", "--redo", plan, "--no-model", "--json"]);
    assert_eq!(states(&place), believed);

    // The older reading is in the store: it costs nothing to go back to it.
    let asked = stub.count();
    place.json(&["replay", "t", "--json"]);
    assert_eq!(stub.count(), asked);
    place.json(&BY_RULE);
    sync();
    let both = ["Postgres active", "Redis active"].map(str::to_owned).to_vec();
    assert_eq!(kept(&place), (before, both));
}

#[test]
fn records_that_an_undo_set_aside_are_told_with_the_command_that_brings_them_back() {
    let place = opposed(&Stub::good());
    let done = place.json(&BY_RULE);
    let plan = &done[0]["plan"]["id"].as_str().unwrap()[..10];
    place.json(&["consolidate", "--undo", plan, "--json"]);
    let aside = format!("2 records; `annalist consolidate --redo {plan}`");
    let told = |args: &[&str]| place.run(&[&["consolidate"], args].concat()).stderr;
    for args in [&[][..], &["--dry-run"], &["--namespace", "home/dev/roofs"]] {
        let told = told(args);
        assert!(told.contains(&aside) && told.contains("every other record"), "{told}");
    }
    assert!(!told(&["--namespace", "other"]).contains("set aside"));
    place.json(&["consolidate", "--redo", plan, "--json"]);
    let told = told(&[]);
    assert!(told.contains("every record is in memory") && !told.contains("aside"), "{told}");
}

#[test]
fn an_open_pair_is_printed_with_the_words_of_both_sides_and_ids_for_why() {
    let place = Place::with_examples();
    for args in [&["consolidate", "--dry-run"][..], &["consolidate"]] {
        let printed = place.run(args).stdout;
        let lines: Vec<&str> = printed.lines().collect();
        let possibly = "possibly done by: attempt Applied the same limit";
        let by = lines.iter().position(|it| it.trim().starts_with(possibly)).unwrap();
        assert!(lines[by - 1].starts_with("  ? request Switch"), "{printed}");
        assert!(!printed.contains("(may-"), "{printed}");
        for line in &lines[by - 1..=by] {
            let id = line.split_whitespace().next_back().unwrap();
            assert_eq!(place.run(&["why", id]).code, 0, "{line}");
        }
    }
}

#[test]
fn without_a_reachable_model_nothing_is_said_to_have_been_asked() {
    let mut place = Place::with_examples();
    place.set("ANNALIST__CONSOLIDATE__MODEL", "auto");
    place.set("ANNALIST__MODEL__BASE_URL", "http://127.0.0.1:9/v1");
    // The second run finds only pairs that the first one left open.
    for _ in 0..2 {
        let output = place.run(&["consolidate", "--json"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let asked = &output.json()[0]["asked"];
        assert_eq!((&asked["pairs"], &asked["questions"]), (&json!(0), &json!(0)));
        assert!(!output.stderr.contains("asked about 5"), "{}", output.stderr);
        assert!(!output.stderr.contains("calls"), "{}", output.stderr);
        let told = "default: no model answers at http://127.0.0.1:9/v1; ";
        assert!(output.stderr.contains(told), "{}", output.stderr);
        assert!(output.stderr.contains("annalist doctor"), "{}", output.stderr);
        assert!(output.stderr.contains("pairs left open"), "{}", output.stderr);
    }
}

#[test]
fn a_question_that_was_answered_is_settled_everywhere() {
    let place = Place::with_examples();
    place.json(&BY_RULE);
    let all = place.json(&["memory", "list", "--all", "--json"]);
    let is_settled = |it: &&Value| it["kind"] == "discussion" && it["state"] == "superseded";
    let question = all.as_array().unwrap().iter().find(is_settled).unwrap();
    let tag = |id: &Value| format!("src-{}", &id.as_str().unwrap()[..8]);
    let (question, answer) = (tag(&question["id"]), tag(&question["settled_by"]));
    let listed = place.run(&["memory", "list", "--all"]).stdout;
    let found = place.run(&["search", "--all", "--state", "superseded"]).stdout;
    for text in [&listed, &found] {
        assert!(text.contains(&format!("settled by {answer}")), "{text}");
        assert!(!text.contains("superseded"), "{text}");
    }
    let shown = place.run(&["memory", "show", &question]).stdout;
    assert!(shown.lines().next().unwrap().ends_with("  settled"), "{shown}");
    let why = place.run(&["why", &question]).stdout;
    assert!(why.contains(&format!("{question}, settled\n")), "{why}");
    for text in [&shown, &why] {
        assert!(text.contains("settled by") && !text.contains("replaced by"), "{text}");
    }
    let why = place.run(&["why", &answer]).stdout;
    assert!(why.contains(" settles ") && !why.contains("replaces"), "{why}");
}
