//! Prompt tests as processes: cases, recordings, baselines; offline without any world around them.

use super::place::{Output, Place, read, walk};
use super::stub::{Answer, Stub, error};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A key as the documentation of its vendor shows it; no key of anybody's.
const KEY: &str = "AKIAIOSFODNN7EXAMPLE";

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name)
}

pub(crate) fn text(path: &Path) -> String {
    String::from_utf8(read(path)).unwrap()
}

/// A place with copies of shipped cases in `cases`, with their hand-written answers alone.
pub(crate) fn with_cases(names: &[&str]) -> Place {
    let place = Place::new();
    for name in names {
        let from = shipped(name);
        walk(&from, &mut |path| {
            let inside = path.strip_prefix(&from).unwrap();
            if path.file_name().is_some_and(|file| file.to_string_lossy().starts_with("recorded-"))
            {
                return;
            }
            place.write(&format!("cases/{name}/{}", inside.display()), read(path));
        });
    }
    place
}

/// Writes a file of the place anew.
#[track_caller]
pub(crate) fn change(place: &Place, name: &str, from: &str, to: &str) {
    let before = text(&place.path(name));
    assert!(before.contains(from), "{name}: no {from}");
    place.write(name, before.replacen(from, to, 1));
}

/// The first variant's case of this name.
#[track_caller]
fn case<'r>(report: &'r Value, name: &str) -> &'r Value {
    let cases = report["variants"][0]["cases"].as_array().unwrap();
    cases.iter().find(|case| case["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}"))
}

/// All that is said of a case.
fn problems(case: &Value) -> String {
    let problems = case["problems"].as_array().unwrap().iter();
    let line = |it: &Value| {
        format!("{}: {}\n", it["rule"].as_str().unwrap(), it["detail"].as_str().unwrap())
    };
    problems.map(line).collect()
}

#[track_caller]
pub(crate) fn ok(output: &Output) {
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}

#[test]
fn shipped_cases_pass_without_a_network_a_key_or_a_store_and_give_the_same_bytes_twice() {
    let mut place = Place::new();
    place.set("ANNALIST__MODEL__BASE_URL", "http://127.0.0.1:9/v1");
    place.set("ANNALIST__MODEL__API_KEY_ENV", "ANNALIST_NO_SUCH_KEY");
    place.set("ANNALIST__STORE__URL", "sqlite:/dev/null/nowhere.db");
    let cases = shipped("");
    let args = ["test", cases.to_str().unwrap(), "--json"];
    let (once, twice) = (place.run(&args), place.run(&args));
    ok(&once);
    assert_eq!(once.stdout, twice.stdout);
    assert_eq!(place.files(), [], "nothing is written");
    let report = once.json();
    let run = report["variants"][0]["cases"].as_array().unwrap();
    assert!(run.len() >= 26, "{} cases", run.len());
    assert!(run.iter().all(|case| case["outcome"] == "passed"));
    assert_eq!(report["variants"][0]["summary"]["cases"]["passed"], run.len());
    let table = place.run(&["test", cases.to_str().unwrap()]);
    ok(&table);
    assert!(table.stdout.contains(&format!("{} cases: {} passed", run.len(), run.len())));
}

#[test]
fn a_changed_prompt_slice_model_or_schema_is_stale_and_shows_the_change() {
    let place = with_cases(&["choice-taken-back"]);
    let asked = "\"questions\": [\"badge printer\"], \"quote\":";
    change(&place, "cases/choice-taken-back/gold.json", "\"quote\":", asked);
    let stale = |args: &[&str]| -> String {
        let report = place.json_with(1, &[&["test", "cases"], args, &["--json"]].concat());
        let case = case(&report, "choice-taken-back");
        assert_eq!(case["outcome"], "stale");
        assert!(
            !problems(case).contains("no answer to `badge printer`"),
            "nothing was answered: {case}"
        );
        problems(case)
    };
    ok(&place.run(&["init", "--prompts", "tried"]));
    change(&place, "tried/extract.md", "months from now", "decades from now");
    let said = stale(&["--prompt", "tried"]);
    let [gone, come] = ["months from now", "decades from now"];
    assert!(said.contains("differs in: prompt\nsystem message 1:\n"), "{said}");
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(" from now")).collect();
    assert!(lines[0].starts_with("- ") && lines[0].contains(gone), "{said}");
    assert!(lines[1].starts_with("+ ") && lines[1].contains(come), "{said}");
    let said = stale(&["--model", "somebody-else"]);
    assert!(said.contains("no recordings for the model somebody-else"), "{said}");
    assert!(said.contains("model:\n- hand-written\n+ somebody-else"), "{said}");
    let cassette = "cases/choice-taken-back/cassette/choice-taken-back.json";
    let kept = text(&place.path(cassette));
    let mut recorded: Value = serde_json::from_str(&kept).unwrap();
    let request = &mut recorded["exchanges"][0]["request"];
    request["schema"] = request["digest"].clone();
    request["digest"] = json!("0".repeat(request["digest"].as_str().unwrap().len()));
    place.write(cassette, recorded.to_string());
    assert!(stale(&[]).contains("differs in: schema"));
    place.write(cassette, kept);
    change(&place, "cases/choice-taken-back/transcript.jsonl", "badge printer", "ticket printer");
    let said = stale(&[]);
    assert!(said.contains("differs in: slice"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("+ ") && line.contains("ticket")), "{said}");
    let table = place.run(&["test", "cases"]);
    assert!(table.code == 1 && table.stdout.contains("differs in: slice"), "{}", table.stdout);
}

#[test]
fn a_bar_that_is_not_reached_fails_with_the_very_measure() {
    let place = with_cases(&["german-workshop", "lock-file-retry"]);
    let toml = "cases/german-workshop/case.toml";
    let bars = text(&place.path(toml));
    let (before, _) = bars.split_once("[bars]").unwrap();
    place.write(toml, format!("{before}[bars]\nprecision = 0.8\nrecall = 0.81\n"));
    let report = place.json_with(1, &["test", "cases", "--json"]);
    let failed = case(&report, "german-workshop");
    assert_eq!(failed["outcome"], "failed");
    let said = problems(failed);
    let below = "below-bar: recall is 0.8000 (4 of 5); the bar is at least 0.81";
    assert_eq!(said.lines().last(), Some(below));
    assert_eq!(case(&report, "lock-file-retry")["outcome"], "passed");
    ok(&place.run(&["test", "cases/lock-file-retry"]));
}

#[test]
fn an_unreadable_case_is_broken_with_one_line_and_the_others_run() {
    let place =
        with_cases(&["tea-and-snow", "what-if", "code-only", "open-question", "quick-question"]);
    place.write("cases/tea-and-snow/case.toml", "about = \"x\"\n[settings.slize]\ntokens = 1\n");
    place.write("cases/what-if/gold.json", "{\n \"must\": 3\n}");
    place.write("cases/code-only/transcript.txt", "user: a second one\n");
    place.write("cases/open-question/case.toml", "about = \"x\"\n[settings.slice]\ntokens = 3\n");
    let report = place.json_with(1, &["test", "cases", "--json"]);
    for (name, words) in [
        ("tea-and-snow", "case.toml: settings.slize: expected one of slice"),
        ("what-if", "gold.json:2: column 10: invalid type: integer `3`, expected a sequence"),
        ("code-only", "expected one transcript.*, found"),
        ("open-question", "case.toml: settings: slice.tokens: expected a number of at least"),
    ] {
        let broken = case(&report, name);
        assert_eq!(broken["outcome"], "broken", "{name}");
        let said = problems(broken);
        assert!(said.contains(words) && said.lines().count() == 1, "{said}");
    }
    assert_eq!(case(&report, "quick-question")["outcome"], "passed");
}

#[test]
fn wrong_usage_is_one_clear_line() {
    let place = with_cases(&["quick-question"]);
    place.run(&["test"]).refused(2, &["tests/fixtures/cases", "docs/evaluation.md"]);
    place.run(&["test", "nowhere"]).refused(2, &["nowhere", "no such folder"]);
    place.write("empty/x.txt", "");
    place.run(&["test", "empty"]).refused(2, &["empty", "case.toml"]);
    place.run(&["test", "cases", "--prompt", "no.md"]).refused(2, &["no.md", "does not exist"]);
    place.write("bad.md", "no front matter");
    place.run(&["test", "cases", "--prompt", "bad.md"]).refused(2, &["bad.md", "front matter"]);
    place.write("bad.json", "{}");
    place.run(&["test", "cases", "--baseline", "bad.json"]).refused(2, &["bad.json", "report"]);
    place.run(&["test", "--json", "cases"]).refused(2, &["tests/fixtures/cases"]);
    place.run(&["test", "cases", "--json", "empty"]).refused(2, &["--json empty", "folder"]);
}

#[test]
fn the_case_in_the_documentation_is_recorded_and_passes() {
    let page = include_str!("../../docs/evaluation.md");
    let mut place = Place::new();
    for name in ["case.toml", "transcript.txt", "gold.json"] {
        let (_, after) = page.split_once(&format!("`{name}`:\n\n```")).unwrap();
        let (_, content) = after.split_once('\n').unwrap();
        let (content, _) = content.split_once("```").unwrap();
        place.write(&format!("tests/fixtures/cases/two-choices/{name}"), content);
    }
    let stub = Stub::new(|_| {
        let decision = json!({
            "options": ["SQLite", "MongoDB", "PostgreSQL"], "chosen": "PostgreSQL",
            "rationale": "Two services write at once.",
        });
        let attempt = json!({
            "action": "Deploy PostgreSQL", "result": "The deploy failed.", "succeeded": false,
        });
        Answer::Call(json!({
            "decisions": [decision], "discussions": [], "attempts": [attempt], "requests": [],
        }))
    });
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    ok(&place.run(&["replay", "--dry-run", "tests/fixtures/cases/two-choices"]));
    ok(&place.run(&["test", "--record", "two-choices"]));
    let report = place.json(&["test", "two-choices", "--json"]);
    let tally = &case(&report, "two-choices")["sums"]["tally"];
    for kind in ["decisions", "attempts"] {
        assert_eq!(tally[kind], json!({"items": 1, "records": 1, "answered": 1}), "{tally}");
    }
    assert_eq!(problems(case(&report, "two-choices")), "");
}

/// A model that finds nothing in a slice but one request, and puts a key into it.
fn leaky() -> Stub {
    Stub::new(|_| {
        let request = json!({
            "intent": format!("use {KEY}"), "target": null, "summary": format!("Use {KEY}."),
        });
        let (none, requests) = (Value::Array(Vec::new()), json!([request]));
        Answer::Call(json!({
            "decisions": none, "discussions": none, "attempts": none, "requests": requests,
        }))
    })
}

#[test]
fn recording_overwrites_the_file_of_the_model_with_scrubbed_answers() {
    let mut place = with_cases(&["quick-question", "lock-file-retry"]);
    let stub = leaky();
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    place.set("ANNALIST__MODEL__MODEL", "vendor/stub-1");
    let kept = place.path("cases/lock-file-retry/cassette/lock-file-retry.json");
    let before = read(&kept);
    let new = "cases/lock-file-retry/cassette/vendor-stub-1.json";
    place.write(new, r#"{"origin": "recorded", "exchanges": []}"#);
    let record = ["test", "cases", "--record", "--json"];
    let recorded = place.run(&record);
    assert!(recorded.stderr.contains("2 recordings written"), "{}", recorded.stderr);
    let asked = stub.count();
    assert!(asked >= 2);
    let answers = text(&place.path(new));
    assert!(!answers.contains(KEY) && answers.contains("\"exchanges\": [\n"), "{answers}");
    assert_eq!(read(&kept), before, "answers to other requests stay");
    ok(&place.run(&["test", "cases"]));
    let of_stub = ["test", "cases/lock-file-retry", "--model", "vendor/stub-1", "--json"];
    let report = place.json_with(1, &of_stub);
    let case = case(&report, "lock-file-retry");
    assert_eq!((&case["outcome"], &case["answers"]["recorded"]), (&json!("failed"), &json!(1)));
    // The journal answers: nothing is paid for twice, and the same answers give the same bytes.
    let again = place.run(&record);
    assert!(again.code == recorded.code && stub.count() == asked, "{}", again.stderr);
    assert!(again.stderr.contains("2 recordings unchanged"), "{}", again.stderr);
    assert_eq!(text(&place.path(new)), answers);
}

#[test]
fn recording_takes_the_place_of_answers_to_the_same_requests() {
    let mut place = with_cases(&["quick-question", "lock-file-retry"]);
    let stub = leaky();
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    let args = ["test", "cases/quick-question", "--record", "--json", "--model", "hand-written"];
    let recorded = place.run(&args);
    assert!(recorded.stderr.contains("1 recording written"), "{}", recorded.stderr);
    let mut files = Vec::new();
    walk(&place.path("cases/quick-question/cassette"), &mut |path| files.push(path.to_owned()));
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert!(file.ends_with("hand-written.json"), "{files:?}");
    let report = place.run(&["test", "cases/quick-question", "--json"]).json();
    assert_eq!(case(&report, "quick-question")["answers"]["recorded"], 1);
    // A case that is not answered completely keeps its recordings.
    let before = read(&place.path("cases/lock-file-retry/cassette/lock-file-retry.json"));
    let refusing = Stub::new(|_| error(401, "invalid_api_key"));
    place.set("ANNALIST__MODEL__BASE_URL", refusing.url());
    let refused =
        place.run(&["test", "cases/lock-file-retry", "--record", "--model", "hand-written"]);
    assert_eq!(refused.code, 1);
    assert_eq!(read(&place.path("cases/lock-file-retry/cassette/lock-file-retry.json")), before);
}

#[test]
fn a_live_run_keeps_nothing_and_says_why_it_cannot_go_on() {
    let mut place = with_cases(&["quick-question", "lock-file-retry"]);
    let stub = Stub::new(|_| error(401, "invalid_api_key"));
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    let refused = place.run(&["test", "cases", "--live", "--json"]);
    assert_eq!(refused.code, 1);
    assert_eq!(refused.stderr.matches("stopped:").count(), 1, "{}", refused.stderr);
    assert_eq!(case(&refused.json(), "quick-question")["outcome"], "broken");
    let good = Stub::good();
    place.set("ANNALIST__MODEL__BASE_URL", good.url());
    let live = place.run(&["test", "cases", "--live", "--json"]).json();
    assert_eq!(case(&live, "lock-file-retry")["answers"]["recorded"], 1);
    let mut files = Vec::new();
    walk(&place.path("cases/lock-file-retry/cassette"), &mut |path| files.push(path.to_owned()));
    assert_eq!(files.len(), 1, "nothing is recorded: {files:?}");
}

#[test]
fn one_interrupt_ends_a_live_run_well() {
    let mut place = with_cases(&["quick-question", "lock-file-retry"]);
    let stub = Stub::new(|_| Answer::Hold);
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    let running = place.start(&["test", "cases", "--record"]);
    stub.until(1);
    running.signal("INT");
    while !running.said().contains("stopping") {}
    stub.release();
    let ended = running.wait();
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("stopped:") && ended.stdout.contains("broken"),
        "{}",
        ended.stdout
    );
}

#[test]
fn prompts_stand_side_by_side_each_model_with_each() {
    let place = with_cases(&["lock-file-retry"]);
    for folder in ["same", "other"] {
        ok(&place.run(&["init", "--prompts", folder]));
    }
    change(&place, "other/slice.md", "Record nothing of it.", "Keep out of it.");
    change(&place, "other/extract.md", "Short, factual", "Brief, factual");
    let args = ["test", "cases", "--prompt", "same", "--prompt", "other", "--json"];
    let report = place.json_with(1, &args);
    let variants = report["variants"].as_array().unwrap();
    let seen: Vec<(&str, &Value)> = variants
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), &it["cases"][0]["outcome"]))
        .collect();
    assert_eq!(seen, [("same", &json!("passed")), ("other", &json!("stale"))]);
    assert_ne!(variants[0]["prompt"]["digest"], variants[1]["prompt"]["digest"]);
    let args = [&args[..6], &["--model", "hand-written", "--model", "x", "--json"]].concat();
    let report = place.json_with(1, &args);
    assert_eq!(report["variants"].as_array().unwrap().len(), 4);
    assert_eq!(report["variants"][0]["name"], "hand-written, same");
}

#[test]
fn prompts_of_the_settings_count_for_everything_that_asks() {
    let mut place = with_cases(&["lock-file-retry"]);
    ok(&place.run(&["init", "--prompts", "own"]));
    let root = env!("CARGO_MANIFEST_DIR");
    let [sessions, cassette] =
        ["sessions", "cassette"].map(|name| format!("{root}/examples/{name}"));
    let replay = ["replay", sessions.as_str(), "--cassette", cassette.as_str(), "--json"];
    place.set("ANNALIST__PROMPTS", "own");
    place.json(&replay);
    ok(&place.run(&["test", "cases"]));
    change(&place, "own/extract.md", "Short, factual", "Brief, factual");
    let again = place.json_with(1, &replay);
    assert!(again["failures"]["stale"]["slices"].as_u64() > Some(0), "{again}");
    assert_eq!(place.run(&["test", "cases"]).code, 1);
    change(&place, "own/extract.md", "inputs: [language, tool, schema]", "inputs: [tongue]");
    for args in [&["test", "cases"][..], &replay] {
        place.run(args).refused(2, &["prompts: own", "`extract`"]);
    }
}

#[test]
fn a_baseline_fails_only_on_regressions() {
    let place = with_cases(&["lock-file-retry", "tea-and-snow"]);
    ok(&place
        .run(&["test", "cases", "--json", "base.json", "--junit", "j.xml", "--html", "p.html"]));
    assert!(text(&place.path("j.xml")).contains("lock-file-retry"));
    assert!(text(&place.path("p.html")).starts_with("<!doctype html>"));
    // Earlier versions wrote confidence intervals.
    change(&place, "base.json", "\"summary\": {", "\"summary\": {\"intervals\": [],");
    let same = place.json(&["test", "cases", "--baseline", "base.json", "--json"]);
    assert!(same["comparison"]["variants"][0]["cases"].as_array().is_none_or(Vec::is_empty));
    let path = "cases/lock-file-retry/cassette/lock-file-retry.json";
    let mut cassette: Value = serde_json::from_str(&text(&place.path(path))).unwrap();
    let arguments = &mut cassette["exchanges"][0]["reply"]["calls"][0]["arguments"];
    arguments["attempts"].as_array_mut().unwrap().pop().unwrap();
    place.write(path, cassette.to_string());
    let toml = text(&place.path("cases/lock-file-retry/case.toml"));
    let (before, _) = toml.split_once("[bars]").unwrap();
    place.write("cases/lock-file-retry/case.toml", before);
    ok(&place.run(&["test", "cases"]));
    let worse = place.json_with(1, &["test", "cases", "--baseline", "base.json", "--json"]);
    let told = worse["comparison"].to_string();
    assert!(told.contains("\"lock-file-retry\"") && told.contains("\"attempt\""), "{told}");
    place.write(
        "cases/lock-file-retry/case.toml",
        format!("{before}[tolerances]\nrecall = 1.0\nf1 = 1.0\ncore_recall = 1.0\nsucceeded = 1.0\ngrounded = 1.0\n"),
    );
    ok(&place.run(&["test", "cases", "--baseline", "base.json"]));
}
