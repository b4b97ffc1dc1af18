//! Hooks as Claude Code runs them, and our entries in its settings.

use super::hand_over::until_handed_over;
use super::input::claude;
use super::place::{Output, Place, read};
use super::shared::{beside, json_of};
use annalist::HOOK_OUTPUT_UNITS_MAX;
use annalist::HookFolder;
use annalist::now;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

const PROMPT: &str = "user-prompt-submit";
const SESSION: &str = "s-1";

/// Runs a hook that is told `told`.
#[track_caller]
pub(crate) fn tell(place: &Place, event: &str, told: &str) -> Output {
    let stdin = place.write("stdin", told);
    let mut command = place.command(&["hook", event]);
    let output = command.stdin(File::open(stdin).unwrap()).output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a hook of the session whose transcript is `t.jsonl`.
pub(crate) fn run(place: &Place, event: &str, more: &Value) -> Output {
    let mut told = json!({"session_id": SESSION, "transcript_path": place.path("t.jsonl")});
    told.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tell(place, event, &told.to_string())
}

fn prompt(place: &Place, words: &str) -> Output {
    run(place, PROMPT, &json!({"prompt": words}))
}

/// A transcript whose last answer took so many tokens.
fn fill(place: &Place, tokens: u64) {
    let line = json!({
        "type": "assistant",
        "message": {"model": "opus", "usage": {"input_tokens": tokens}},
    });
    place.write("t.jsonl", format!("{line}\n"));
}

/// Starts the session with a model whose window is known.
fn start(place: &Place, model: &str) {
    let more = json!({"source": "startup", "model": model});
    assert_eq!(run(place, "session-start", &more).code, 0);
}

/// What a prompt was answered.
fn action(output: &Output) -> &'static str {
    match (output.code, output.stdout.is_empty()) {
        (0, true) => "none",
        (0, false) => "inject_sync",
        (2, _) => "block",
        other => panic!("{other:?}: {}", output.stderr),
    }
}

fn folder(place: &Place) -> HookFolder {
    HookFolder::new(&place.path("home/.local/state/annalist"))
}

fn jobs(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM jobs")
}

#[test]
fn golden_thresholds_hold_in_the_process() {
    let Some(golden) = beside("golden") else { return };
    let golden = json_of(&golden.join("conkeeper.json"));
    for case in golden["thresholds"].as_array().unwrap() {
        let (name, place) = (case["name"].as_str().unwrap(), Place::new());
        if let Some(config) = case["config"].as_str() {
            place.write(".claude/memory/.memory-config.md", config);
        }
        if let Some(settings) = case["settings"].as_str() {
            place.write("home/.claude/settings.json", settings);
        }
        fill(&place, case["input_tokens"].as_u64().unwrap());
        let session = case["sid"].as_str().unwrap_or(SESSION);
        start(&place, "opus");
        // Decided otherwise: a window that holds more than it could is not known.
        let is_known = case["input_tokens"].as_u64().unwrap() <= 200_000;
        let mut actions = Vec::new();
        for expected in case["per_prompt"].as_array().unwrap() {
            let output = run(&place, PROMPT, &json!({"session_id": session, "prompt": "go on"}));
            actions.push(action(&output));
            if !is_known {
                assert!(!output.stdout.contains('%'), "{name}: {}", output.stdout);
                assert_eq!(actions, ["inject_sync", "none"][..actions.len()], "{name}");
                continue;
            }
            // Decided otherwise: a window that cannot be is no reason to stop working.
            if name == "config zero window" {
                assert_eq!(action(&output), "inject_sync", "{name}");
                continue;
            }
            assert_eq!(expected["action"], action(&output), "{name}: {}", output.stderr);
            assert_eq!(expected["exit"], output.code, "{name}");
            if let Some(percent) = expected["percent"].as_u64() {
                assert!(output.stdout.contains(&format!("{percent} %")), "{name}");
            }
        }
    }
}

#[test]
fn a_prompt_waits_until_a_sync_was_completed() {
    let place = Place::new();
    fill(&place, 170_000);
    start(&place, "opus");
    let first = prompt(&place, "go on");
    assert_eq!(action(&first), "inject_sync");
    assert!(first.stdout.contains("memory sync --session s-1"), "{}", first.stdout);
    let second = prompt(&place, "go on");
    assert_eq!(action(&second), "block");
    assert!(second.stderr.contains("85 %") && second.stderr.contains("annalist override"));
    folder(&place).note_synced("another", now()).unwrap();
    assert_eq!(action(&prompt(&place, "go on")), "block");
    folder(&place).note_synced(SESSION, now()).unwrap();
    assert_eq!(action(&prompt(&place, "go on")), "none");
}

#[test]
fn a_prompt_goes_on_where_the_person_says_so() {
    let place = Place::new();
    fill(&place, 170_000);
    start(&place, "opus");
    for (words, expected) in [
        ("go on", "inject_sync"),
        ("go on", "block"),
        ("/memory-sync", "inject_sync"),
        ("annalist override: go on", "none"),
        ("go on", "none"),
    ] {
        assert_eq!(action(&prompt(&place, words)), expected, "{words}");
    }
    // It holds until the window was emptied.
    assert_eq!(run(&place, "session-start", &json!({"source": "clear"})).code, 0);
    assert_eq!(action(&prompt(&place, "go on")), "block");
}

#[test]
fn nobody_is_held_up_by_a_window_that_the_client_did_not_tell() {
    let place = Place::new();
    fill(&place, 170_000);
    let three = || [(); 3].map(|()| action(&prompt(&place, "go on")));
    assert_eq!(three(), ["inject_sync", "none", "none"], "the size is not known");
    // The transcript names the model without its window.
    start(&place, "opus[1m]");
    assert_eq!(three(), ["none"; 3]);
    start(&place, "sonnet");
    assert_eq!(three(), ["none"; 3], "the person has chosen another model since");
    start(&place, "opus");
    assert_eq!(three(), ["block"; 3]);
}

#[test]
fn a_wide_window_is_known_by_the_model_of_the_client() {
    let place = Place::new();
    fill(&place, 170_000);
    place.write(".claude/settings.json", r#"{"model": "opus[1m]"}"#);
    assert_eq!(action(&prompt(&place, "go on")), "none");
    place.write(".claude/settings.local.json", r#"{"model": "sonnet"}"#);
    assert_eq!(action(&prompt(&place, "go on")), "inject_sync");
}

#[test]
fn nothing_that_is_wrong_holds_a_prompt_up() {
    let place = Place::new();
    fill(&place, 190_000);
    for told in ["", "nonsense", "[]", "\u{0}", r#"{"hook_event_name": "Stop"}"#] {
        let output = tell(&place, PROMPT, told);
        output.refused(0, &["standard input"]);
        assert_eq!(output.stdout, "", "{told}");
    }
    let unknown = tell(&place, "nonsense", "{}");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (0, ""), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("session-start"), "{}", unknown.stderr);
    let unsafe_name = run(&place, PROMPT, &json!({"session_id": "../x"}));
    assert_eq!((unsafe_name.code, unsafe_name.stdout.as_str()), (0, ""));
    place.write("home/.local/state/annalist/hooks/s-1.json", "{broken");
    assert_eq!(action(&prompt(&place, "go on")), "inject_sync");
    place.write("config.toml", "[model]\nno = 1\n");
    for event in ["session-start", "stop", "session-end"] {
        place.write(".claude/memory/active-context.md", "## Current Focus\nx\n");
        let output = run(&place, event, &json!({}));
        assert_eq!(output.code, 0, "{event}");
        let is_told = output.stdout.contains(r#"{"systemMessage":"annalist: "#);
        assert_eq!(is_told, event == "session-start", "{event}: {}", output.stdout);
        assert!(output.stderr.contains("config.toml"), "{event}: {}", output.stderr);
    }
}

#[test]
fn a_transcript_that_is_not_there_or_no_file_is_no_reason_to_stop() {
    let place = Place::new();
    for event in ["session-start", PROMPT, "pre-compact", "stop", "session-end"] {
        let output = run(&place, event, &json!({}));
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    }
    let output = run(&place, PROMPT, &json!({"transcript_path": place.path("home")}));
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert!(output.stderr.contains("is not a regular file"), "{}", output.stderr);
    assert!(!place.database().exists());
}

#[test]
fn a_client_that_does_not_close_standard_input_gets_its_answer() {
    let place = Place::new();
    let mut command = place.command(&["hook", PROMPT]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(json!({"session_id": SESSION}).to_string().as_bytes()).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
    drop(pipe);
}

#[test]
fn a_session_starts_with_its_context_unless_settings_say_no() {
    let place = Place::new();
    let start = |source: &str| run(&place, "session-start", &json!({"source": source}));
    assert_eq!(start("startup").stdout, "");
    place.write(
        ".claude/memory/active-context.md",
        "## Current Focus\nThe queue moves.\n<private>\nhidden\n</private>\n- x </memory> y\n",
    );
    let told: Value = serde_json::from_str(&start("startup").stdout).unwrap();
    let specific = &told["hookSpecificOutput"];
    assert_eq!(specific["hookEventName"], "SessionStart");
    let context = specific["additionalContext"].as_str().unwrap();
    assert_eq!(context, place.run(&["context"]).stdout);
    assert!(context.contains("The queue moves.") && !context.contains("hidden"), "{context}");
    assert_eq!(context.matches("</memory>").count(), 1);
    assert_eq!(start("startup").stdout, start("compact").stdout);
    place.write(".claude/memory/.memory-config.md", "---\nauto_load: false\n---\n");
    assert_eq!(start("startup").stdout, "");
}

#[test]
fn a_context_is_never_longer_than_the_client_takes() {
    let place = Place::new();
    place.write(".claude/memory/.memory-config.md", "---\ntoken_budget: detailed\n---\n");
    let lines: String = (0..900).map(|n| format!("- line {n} of many 🎛\n")).collect();
    for name in ["active-context", "product-context", "progress", "patterns", "glossary"] {
        place.write(&format!(".claude/memory/{name}.md"), format!("## X\n{lines}"));
    }
    for n in 0..40 {
        let text = format!("# ADR-{n:03}: x\n\n**Status:** Accepted\n\n## Decision\n{lines}");
        place.write(&format!(".claude/memory/decisions/ADR-{n:03}-x.md"), text);
    }
    let output = run(&place, "session-start", &json!({"source": "startup"}));
    let told: Value = serde_json::from_str(&output.stdout).unwrap();
    let context = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    let units = context.encode_utf16().count();
    assert!((HOOK_OUTPUT_UNITS_MAX / 2..=HOOK_OUTPUT_UNITS_MAX).contains(&units), "{units}");
}

#[test]
fn entries_are_enqueued_once_and_flushed_at_the_end() {
    let place = Place::new();
    place.write("t.jsonl", claude(0..1));
    let stop = || {
        let output = run(&place, "stop", &json!({}));
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
        until_handed_over(&place);
        place.number("SELECT count(*) FROM entries")
    };
    assert_eq!((stop(), jobs(&place)), (2, 1));
    assert_eq!((stop(), jobs(&place)), (2, 1));
    place.write("t.jsonl", claude(0..2));
    assert_eq!(stop(), 4);
    let end = run(&place, "session-end", &json!({"reason": "exit"}));
    assert_eq!((end.code, end.stdout.as_str(), end.stderr.as_str()), (0, "", ""));
    until_handed_over(&place);
    // What a hook handed over is what `enqueue` would have.
    let again = place.run(&["enqueue", "t.jsonl", "--flush"]);
    assert!(again.stdout.contains("nothing new"), "{}", again.stdout);
    let waiting = place.run(&["jobs"]).stdout;
    assert!(!waiting.contains("gathering"), "{waiting}");
}

#[test]
fn settings_and_store_are_those_of_the_project_wherever_the_agent_went() {
    let mut place = Place::new();
    place.write("app/.claude/memory/active-context.md", "## Current Focus\nThe app.\n");
    place.write("t.jsonl", claude(0..1));
    place.write("app/deep/x", "");
    place.write("app/annalist.toml", "");
    let cwd = json!({"cwd": place.path("app/deep")});
    assert!(run(&place, "session-start", &cwd).stdout.contains("The app."));
    place.set("CLAUDE_PROJECT_DIR", place.path("app").to_str().unwrap());
    assert_eq!(run(&place, "stop", &cwd).code, 0);
    until_handed_over(&place);
    assert!(place.path("app/.annalist/annalist.db").exists());
}

const THEIRS: &str = "{\n\t\"model\": \"opus\",\n\t\"hooks\": {\n\t\t\"Stop\": [ { \"hooks\": [ { \"type\": \"command\", \"command\": \"say done\" } ] } ]\n\t}\n}";

fn init(place: &Place, more: &[&str]) -> Output {
    place.run(&[&["init", "--claude-code"], more].concat())
}

fn settings(place: &Place) -> String {
    String::from_utf8(read(&place.path(".claude/settings.json"))).unwrap()
}

#[test]
fn our_hooks_are_merged_into_settings_once_and_taken_out_again() {
    let place = Place::new();
    place.write(".claude/settings.json", THEIRS);
    let first = init(&place, &["--yes"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stdout.contains("+ ") && first.stdout.contains("wrote"), "{}", first.stdout);
    let merged: Value = serde_json::from_str(&settings(&place)).unwrap();
    assert_eq!(merged["model"], "opus");
    assert_eq!(merged["hooks"]["Stop"][0]["hooks"][0]["command"], "say done");
    for event in
        ["SessionStart", "UserPromptSubmit", "PreCompact", "SubagentStop", "Stop", "SessionEnd"]
    {
        let ours = merged["hooks"][event].to_string();
        assert_eq!(ours.matches(" hook ").count(), 1, "{ours}");
    }
    let bytes = settings(&place);
    let second = init(&place, &["--yes"]);
    assert_eq!(second.code, 0);
    assert!(second.stdout.contains("nothing to change"), "{}", second.stdout);
    assert_eq!(settings(&place), bytes);
    assert_eq!(init(&place, &["--remove", "--yes"]).code, 0);
    assert_eq!(settings(&place), THEIRS);
    assert!(init(&place, &["--remove", "--yes"]).stdout.contains("nothing to change"));
}

#[test]
fn our_tools_are_registered_in_the_project_once_and_taken_out_again() {
    let place = Place::new();
    let servers = |place: &Place| String::from_utf8(read(&place.path(".mcp.json"))).unwrap();
    let theirs = "{\n  \"mcpServers\": {\n    \"x\": {\"command\" : \"y\"}\n  }\n}\n";
    place.write(".mcp.json", theirs);
    assert!(init(&place, &["--yes"]).stdout.contains("\"mcp\""), "shown first");
    let merged: Value = serde_json::from_str(&servers(&place)).unwrap();
    assert_eq!(merged["mcpServers"]["x"]["command"], "y");
    assert_eq!(merged["mcpServers"]["annalist"]["args"], json!(["mcp"]));
    let bytes = servers(&place);
    assert_eq!(init(&place, &["--yes"]).stdout.matches("nothing to change").count(), 1);
    assert_eq!(servers(&place), bytes);
    assert_eq!(init(&place, &["--remove", "--yes"]).code, 0);
    assert_eq!(servers(&place), theirs);
}

#[test]
fn the_commands_in_the_settings_answer() {
    let place = Place::new();
    place.write(".claude/memory/active-context.md", "## Current Focus\nThe queue.\n");
    assert_eq!(init(&place, &["--yes"]).code, 0);
    let merged: Value = serde_json::from_str(&settings(&place)).unwrap();
    let command = &merged["hooks"]["SessionStart"][0]["hooks"][0]["command"];
    let told = place.write("stdin", json!({"session_id": "x", "source": "startup"}).to_string());
    let mut shell = place.program("/bin/sh", &["-c", command.as_str().unwrap()]);
    let output = shell.stdin(File::open(told).unwrap()).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("The queue."));
}

#[test]
fn nothing_is_written_without_confirmation() {
    let place = Place::new();
    place.write(".claude/settings.json", THEIRS);
    let output = init(&place, &[]);
    output.refused(2, &["settings.json", "--yes"]);
    assert!(output.stdout.contains("hook session-start"), "shown first: {}", output.stdout);
    assert_eq!(settings(&place), THEIRS);
    for broken in ["{\"hooks\": ", "[1]", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": 1}}"] {
        place.write(".claude/settings.json", broken);
        init(&place, &["--yes"]).refused(1, &["settings.json", "nothing was changed"]);
        assert_eq!(settings(&place), broken);
    }
    place.run(&["init", "--yes"]).refused(2, &["--claude-code"]);
}

#[test]
fn new_settings_are_made_where_they_are_asked_for() {
    let place = Place::new();
    assert_eq!(init(&place, &["--user", "--yes"]).code, 0);
    assert!(place.path("home/.claude/settings.json").exists());
    assert!(!place.path(".claude").exists());
    place.write("app/.git/HEAD", "");
    place.write("app/src/x", "");
    let mut command = place.command(&["init", "--claude-code", "--yes"]);
    assert!(command.current_dir(place.path("app/src")).output().unwrap().status.success());
    assert!(place.path("app/.claude/settings.json").exists());
}

#[cfg(unix)]
#[test]
fn settings_behind_a_link_stay_behind_it() {
    let place = Place::new();
    let real = place.write("dotfiles/settings.json", THEIRS);
    std::fs::create_dir(place.path(".claude")).unwrap();
    let link = place.path(".claude/settings.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(init(&place, &["--yes"]).code, 0);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let text = |path: &Path| String::from_utf8(read(path)).unwrap();
    assert!(text(&real).contains("hook session-start"));
}
