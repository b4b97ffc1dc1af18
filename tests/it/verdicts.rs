//! Verdicts of a person: by command, by review, and what the code says about memories.

use super::judging::{BY_RULE, judge, opposed, says};
use super::place::{Output, Place};
use super::stub::Answer;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// Two choices that contradict one another, left open by rule.
fn left_open() -> Place {
    let stub = judge(|_| Answer::Call(json!({"dispositions": [says("x", "new", None, None)]})));
    let place = opposed(&stub);
    let told = place.json(&BY_RULE);
    assert_eq!(told[0]["left_open"].as_array().unwrap().len(), 1, "{told}");
    place
}

/// The tag of the active or replaced memory that chose this.
fn tag(place: &Place, chosen: &str) -> String {
    let all = place.json(&["memory", "list", "--all", "--json"]);
    let found = all.as_array().unwrap().iter().find(|it| it["claim"]["chosen"] == chosen).unwrap();
    format!("src-{}", &found["id"].as_str().unwrap()[..8])
}

fn state(place: &Place, chosen: &str) -> String {
    let shown = place.json(&["memory", "show", &tag(place, chosen), "--json"]);
    shown["state"].as_str().unwrap().to_owned()
}

fn states(place: &Place) -> [String; 2] {
    ["Redis", "Postgres"].map(|chosen| state(place, chosen))
}

/// Runs a command that reads these lines.
fn fed(place: &Place, args: &[&str], lines: &str) -> Output {
    let mut command = place.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_verdict_is_a_plan_that_can_be_undone_and_no_rule_takes_it_back() {
    let place = left_open();
    let [redis, postgres] = ["Redis", "Postgres"].map(|it| tag(&place, it));
    let shown = |id: &str| place.run(&["memory", "show", id]).stdout;
    assert!(shown(&redis).contains("conflicts with "), "{}", shown(&redis));
    assert!(shown(&postgres).contains("conflicts with "), "{}", shown(&postgres));
    let told = place.json(&["memory", "supersede", &redis, &postgres, "--json"]);
    assert_eq!(told["rule"], "person-superseded");
    let log = place.json(&["consolidate", "log", "--json"]);
    let verdict = log.as_array().unwrap().last().unwrap();
    assert!(verdict["counts"]["settle"].as_u64() >= Some(1), "{log}");
    assert_eq!(verdict["records"], 0, "a verdict consolidates none: {log}");
    assert_eq!(states(&place), ["superseded", "active"]);
    assert!(!shown(&postgres).contains("conflicts with "), "{}", shown(&postgres));
    assert_eq!(place.json(&BY_RULE), json!([]));
    let plan = told["plan"].as_str().unwrap();
    place.json(&["consolidate", "--undo", plan, "--json"]);
    assert_eq!(states(&place), ["active", "active"]);
    let again = place.run(&["consolidate", "--redo", plan]);
    assert!(again.code == 0 && again.stdout.contains("applied again"), "{}", again.stderr);
    assert_eq!(states(&place), ["superseded", "active"]);
    place.json(&["consolidate", "--undo", plan, "--json"]);
    let told = place.run(&["memory", "supersede", &postgres, &redis]).stdout;
    assert_eq!(states(&place), ["active", "superseded"]);
    let ends = ["Postgres  superseded", "Redis  replaces it"];
    assert!(told.lines().zip(ends).all(|(line, end)| line.ends_with(end)), "{told}");
    let why = |id: &str| place.run(&["why", id]).stdout;
    let has = |text: String, name: &str, by: &str| {
        text.lines().any(|line| line.trim_start().starts_with(name) && line.ends_with(by))
    };
    assert!(
        has(why(&postgres), "replaced by", "Redis") && has(why(&redis), "replaces", "Postgres")
    );
    assert!(!has(why(&redis), "replaced by", ""));
    place.json(&["memory", "keep-both", &redis, &postgres, "--json"]);
    assert_eq!(states(&place), ["active", "active"]);
    let shown = place.run(&["memory", "show", &redis]);
    assert!(shown.stdout.contains("kept both by a person"), "{}", shown.stdout);
    place
        .run(&["memory", "close", &redis])
        .refused(2, &["is a decision, and only", "annalist memory supersede"]);
    let history = place.json(&["memory", "history", &redis, "--json"]);
    assert!(history.to_string().contains("person-superseded"), "{history}");
    let why = place.json(&["why", &redis, "--json"]);
    assert_eq!(why.as_array().unwrap().len(), 1, "{why}");
    let id = why[0]["id"].as_str().unwrap();
    assert_eq!(place.json(&["why", id, "--json"])["id"], id);
}

#[test]
fn a_verdict_is_undone_only_after_newer_ones_about_the_same_memory() {
    let place = left_open();
    let [redis, postgres] = ["Redis", "Postgres"].map(|it| tag(&place, it));
    let plan = |verdict: &[&str]| {
        let told = place.json(&[&["memory"], verdict, &["--json"]].concat());
        told["plan"].as_str().unwrap().to_owned()
    };
    let both = plan(&["keep-both", &redis, &postgres]);
    let gone = plan(&["retract", &redis]);
    let early = place.run(&["consolidate", "--undo", &both]);
    assert_eq!(early.code, 1, "{}", early.stdout);
    let first = format!("undo plan {} first", &gone[..10]);
    assert!(early.stderr.contains(&first), "{}", early.stderr);
    for newest in [gone, both] {
        place.json(&["consolidate", "--undo", &newest, "--json"]);
        assert_eq!(states(&place), ["active", "active"]);
    }
    assert!(!place.run(&["memory", "show", &redis]).stdout.contains("person-"));
    let history = place.json(&["memory", "history", &redis, "--json"]);
    let deeds = |rule: &str| -> Vec<&Value> {
        let rows = history.as_array().unwrap().iter();
        rows.filter(|it| it["rule"] == rule).map(|it| &it["deed"]).collect()
    };
    assert_eq!(deeds("person-retracted"), ["decide", "undo"], "{history}");
    // A verdict has a time, at which nothing was said.
    place.json(&["memory", "retract", &redis, "--json"]);
    let history = place.json(&["memory", "history", &redis, "--json"]);
    let said: Vec<bool> =
        history.as_array().unwrap().iter().map(|it| it["said_at"].is_string()).collect();
    assert_eq!(
        (said.iter().filter(|it| **it).count(), said.last()),
        (1, Some(&false)),
        "{history}"
    );
}

#[test]
fn a_review_takes_a_letter_a_line_and_ends_with_the_input() {
    let place = left_open();
    let review = ["memory", "review", "--gold", "gold.json"];
    let ended = fed(&place, &review, "");
    assert_eq!((ended.code, states(&place)), (0, ["active", "active"].map(str::to_owned)));
    let wrong = fed(&place, &review, "x\n2\n");
    assert!(wrong.stderr.contains("1/1: `x`: expected 1 or 2 holds"), "{}", wrong.stderr);
    assert_eq!((wrong.code, states(&place)), (2, ["active", "active"].map(str::to_owned)));
    let skipped = fed(&place, &review, "s\n");
    assert_eq!((skipped.code, states(&place)), (0, ["active", "active"].map(str::to_owned)));
    let done = fed(&place, &review, "2\n");
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(states(&place), ["superseded", "active"]);
    let gold: Value =
        serde_json::from_slice(&super::place::read(&place.path("gold.json"))).unwrap();
    assert_eq!(gold["must"][0]["fields"]["chosen"], "Postgres", "{gold}");
    assert_eq!(gold["must_not"][0]["why"], "reversed", "{gold}");
    let again = fed(&place, &review, "1\n");
    assert!(again.stderr.contains("nothing to review"), "{}", again.stderr);
}

#[test]
fn what_a_memory_names_and_the_code_lost_is_told_with_the_commit() {
    let mut place = left_open();
    place.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    place.set("ANNALIST__NAMESPACE", "t");
    let namespace = place.json(&["memory", "list", "--json"])[0]["namespace"].to_string();
    place.set("ANNALIST__NAMESPACE", namespace.trim_matches('"'));
    place.run(&["memory", "init"]);
    place.run(&["memory", "verify"]).refused(2, &["not in a git repository"]);
    let sql = "UPDATE memories SET body = json_set(body, '$.claim.chosen', ?1)
        WHERE json_extract(body, '$.claim.chosen') = 'Redis'";
    place.sql().execute(sql, ["Keep retries in src/retry.rs with never_there"]).unwrap();
    let git = |args: &[&str]| {
        let settings = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let done = place.program("git", &[&settings[..], args].concat()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    place.write("src/retry.rs", "fn retry() {}\n");
    git(&["init", "-q"]);
    git(&["add", "src"]);
    git(&["commit", "-q", "-m", "x"]);
    assert_eq!(place.json(&["memory", "verify", "--json"]), json!([]));
    git(&["rm", "-q", "src/retry.rs"]);
    git(&["commit", "-q", "-m", "y"]);
    let gone = git(&["rev-parse", "HEAD"]);
    let found = place.json(&["memory", "verify", "--json"]);
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found[0]["name"], "src/retry.rs");
    assert!(gone.starts_with(found[0]["since"].as_str().unwrap()), "{found}");
    let listed = place.json(&["memory", "list", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 2, "nothing is deleted");
    place.json(&["memory", "sync", "--json"]);
    let files =
        place.files().into_iter().filter(|(path, _)| path.extension().is_some_and(|it| it == "md"));
    let text: String = files.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect();
    assert!(text.contains("not found in the code since"), "{text}");
}

#[test]
fn a_store_that_can_only_be_read_is_reviewed_and_planned_for() {
    let mut place = left_open();
    place.run(&["memory", "init"]);
    let shown = place.json(&["memory", "list", "--json"])[0]["namespace"].clone();
    let shown = shown.as_str().unwrap();
    assert_eq!(place.run(&["memory", "sync", "--namespace", shown]).code, 0);
    // No process can open its log.
    std::fs::create_dir(place.path(".annalist/annalist.db-wal")).unwrap();
    place.set("ANNALIST__CONSOLIDATE__MODEL", "stub-1");
    let kept = fed(&place, &["memory", "review"], "b\n");
    assert!(kept.stderr.contains("it is read-only"), "{}", kept.stderr);
    let listed = fed(&place, &["memory", "review"], "");
    assert!(listed.code == 0 && listed.stderr.contains("to review"), "{}", listed.stderr);
    let dry = place.run(&["consolidate", "--dry-run", "--namespace", shown]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
}
