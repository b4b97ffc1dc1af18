//! `annalist init` for every client, and hooks as each of them runs them.

use super::hand_over::until_handed_over;
use super::hook_cli::tell;
use super::place::{Place, read};
use serde_json::{Value, json};

/// A client's flag, and files that a person may have where it keeps its settings.
const CLIENTS: &[(&str, &[(&str, &str)])] = &[
    ("--claude-code", &[(".claude/settings.json", THEIRS), (".claude/commands/mine.md", "Mine\n")]),
    ("--codex", &[(".codex/hooks.json", THEIRS), (".codex/config.toml", "model = 'x' # mine\n")]),
    (
        "--gemini",
        &[(".gemini/settings.json", THEIRS), (".gemini/commands/a/b.toml", "prompt = ''")],
    ),
    ("--qwen", &[(".qwen/settings.json", THEIRS)]),
    ("--claude-code", &[(".claude/settings.json", "{}")]),
    ("--codex", &[(".codex/config.toml", "model = 'x'")]),
    ("--gemini", &[(".gemini/settings.json", "{\n  \"theme\": \"dark\" // why\n}\n")]),
    ("--opencode", &[(".opencode/plugin/mine.js", "export const Mine = 1\n")]),
];
const THEIRS: &str =
    "{\n\t\"theme\": \"caf\\u00e9\",\n\t\"hooks\": {\n\t\t\"Mine\": [ { \"hooks\": [] } ]\n\t}\n}";

fn text(place: &Place, path: &str) -> String {
    String::from_utf8(read(&place.path(path))).unwrap()
}

#[test]
fn each_client_is_set_up_once_and_left_as_it_was() {
    for (flag, theirs) in CLIENTS {
        let place = Place::new();
        for (path, text) in *theirs {
            place.write(path, text);
        }
        let before = place.files();
        let shown = place.run(&["init", flag]);
        shown.refused(2, &["--yes"]);
        assert!(shown.stdout.contains("+ "), "shown first: {}", shown.stdout);
        assert_eq!(place.files(), before, "{flag}");
        assert_eq!(place.run(&["init", flag, "--yes"]).code, 0, "{flag}");
        let set_up = place.files();
        assert_ne!(set_up, before);
        let again = place.run(&["init", flag, "--yes"]);
        assert!(again.stdout.contains("nothing to change"), "{}", again.stdout);
        assert_eq!(place.files(), set_up, "{flag}");
        assert_eq!(place.run(&["init", flag, "--remove", "--yes"]).code, 0, "{flag}");
        assert_eq!(place.files(), before, "{flag}");
    }
}

#[test]
fn an_entry_with_a_path_and_additions_of_a_person_stays() {
    let place = Place::new();
    let hook = r#"{"hooks": {"Stop": [{"hooks": [{"command": "/opt/bin/annalist hook stop"}]}]}}"#;
    let server = r#"{"mcpServers": {"annalist": {"command": "/opt/annalist", "args": ["mcp"], "env": {"A": "b"}}}}"#;
    let codex = "[mcp_servers.annalist]\ncommand = \"/opt/annalist\"\nargs = [\"mcp\", \"-v\"]\n";
    place.write(".claude/settings.json", hook);
    place.write(".mcp.json", server);
    place.write(".codex/config.toml", codex);
    let run = |more: &[&str]| {
        let output = place.run(&[&["init", "--claude-code", "--codex", "--yes"], more].concat());
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(
            (text(&place, ".mcp.json"), text(&place, ".codex/config.toml")),
            (server.into(), codex.into())
        );
        output
    };
    run(&[]);
    let settings = text(&place, ".claude/settings.json");
    assert!(
        settings.contains("\"/opt/bin/annalist hook stop\"") && settings.contains("PreCompact")
    );
    assert_eq!(settings.matches("hook stop\"").count(), 1, "{settings}");
    let removed = run(&["--remove"]);
    for file in [".mcp.json", "config.toml"] {
        let note = format!("{file}: the server `annalist` contains what you added");
        assert!(removed.stderr.contains(&note), "{}", removed.stderr);
    }
}

#[test]
fn a_server_of_our_name_that_runs_something_else_stays_and_is_told() {
    let place = Place::new();
    let server = r#"{"mcpServers": {"annalist": {"command": "other"}}}"#;
    let codex = "[mcp_servers.annalist.env]\nA = \"1\"\n";
    place.write(".mcp.json", server);
    place.write(".codex/config.toml", codex);
    for args in [&["init", "--claude-code", "--codex", "--yes"][..], &["init"]] {
        let told = place.run(args);
        assert_eq!(told.code, 0, "{}", told.stderr);
        for file in [".mcp.json", "config.toml"] {
            let note = format!("{file}: the server `annalist` has another command, or none");
            assert!(told.stderr.contains(&note), "{args:?}: {}", told.stderr);
        }
    }
    assert_eq!(text(&place, ".mcp.json"), server);
    assert_eq!(text(&place, ".codex/config.toml"), codex);
}

#[test]
fn no_folder_is_left_of_a_client_that_had_none() {
    let place = Place::new();
    for (flag, folder) in [("--claude-code", ".claude"), ("--opencode", ".opencode")] {
        assert_eq!(place.run(&["init", flag, "--yes"]).code, 0, "{flag}");
        assert!(place.path(folder).is_dir(), "{flag}");
        assert_eq!(place.run(&["init", flag, "--remove", "--yes"]).code, 0, "{flag}");
        assert!(!place.path(folder).exists() && place.path(".").is_dir(), "{flag}");
    }
}

#[test]
fn a_plugin_of_a_person_in_the_place_of_ours_is_a_refusal() {
    let place = Place::new();
    place.write(".opencode/plugin/annalist.js", "export const Theirs = 1\n");
    let before = place.files();
    place.run(&["init", "--opencode", "--yes"]).refused(1, &["annalist.js", "is not ours"]);
    assert_eq!(place.files(), before);
    let listed = place.run(&["init"]);
    assert!(listed.stdout.contains("`annalist init --opencode` adds"), "{}", listed.stdout);
}

#[test]
fn several_clients_are_set_up_for_the_user() {
    let place = Place::new();
    let flags = ["--claude-code", "--codex", "--gemini", "--qwen", "--opencode"];
    let output = place.run(&[&["init", "--user", "--yes"], &flags[..]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    for path in [
        ".claude/commands/memory-sync.md",
        ".codex/config.toml",
        ".gemini/commands/memory-search.toml",
        ".qwen/settings.json",
        ".config/opencode/plugin/annalist.js",
    ] {
        assert!(place.path("home").join(path).exists(), "{path}");
    }
    let gemini: Value = serde_json::from_str(&text(&place, "home/.gemini/settings.json")).unwrap();
    assert_eq!(gemini["mcpServers"]["annalist"]["args"], json!(["mcp"]));
    let hook = &gemini["hooks"]["AfterAgent"][0]["hooks"][0];
    assert!(hook["command"].as_str().unwrap().ends_with(" hook stop"), "{hook}");
    assert_eq!(hook["timeout"], 10_000);
    let codex: Value = serde_json::from_str(&text(&place, "home/.codex/hooks.json")).unwrap();
    let timeout = |event: &str| codex["hooks"][event][0]["hooks"][0]["timeout"].clone();
    assert_eq!((timeout("Stop"), timeout("SessionEnd")), (json!(10), json!(3)));
}

#[test]
fn a_command_of_a_person_is_left_alone() {
    let place = Place::new();
    place.write(".gemini/commands/memory-sync.toml", "prompt = 'mine'\n");
    for more in [&[][..], &["--remove"]] {
        let output = place.run(&[&["init", "--gemini", "--yes"], more].concat());
        assert!(output.stderr.contains("memory-sync.toml is not ours"), "{}", output.stderr);
        assert_eq!(text(&place, ".gemini/commands/memory-sync.toml"), "prompt = 'mine'\n");
    }
}

#[test]
fn hooks_are_added_once_for_the_user_or_the_project() {
    let place = Place::new();
    for (flag, file) in
        [("--codex", ".codex/hooks.json"), ("--opencode", ".opencode/plugin/annalist.js")]
    {
        assert_eq!(place.run(&["init", flag, "--user", "--yes"]).code, 0, "{flag}");
        let told = place.run(&["init", flag, "--yes"]);
        let mend = format!("`annalist init {flag} --user --remove`");
        assert!(told.code == 0 && told.stderr.contains(&mend), "{}", told.stderr);
        assert!(!place.path(file).exists(), "{flag}");
        assert_eq!(place.run(&["init", flag, "--user", "--remove", "--yes"]).code, 0, "{flag}");
        assert_eq!(place.run(&["init", flag, "--yes"]).code, 0, "{flag}");
        let told = place.run(&["init", flag, "--user", "--yes"]);
        let mend = format!("`annalist init {flag} --remove`");
        assert!(told.code == 0 && told.stderr.contains(&mend), "{}", told.stderr);
    }
}

#[test]
fn a_plugin_of_claude_code_needs_no_hooks() {
    let place = Place::new();
    let plugins = r#"{"enabledPlugins": {"other@x": true, "annalist@annalist": true}}"#;
    place.write("home/.claude/settings.json", plugins);
    let listed = place.run(&["init"]);
    assert!(listed.stdout.contains("runs annalist as a plugin"), "{}", listed.stdout);
    assert!(!listed.stdout.contains("--claude-code"), "{}", listed.stdout);
    let told = place.run(&["init", "--claude-code", "--yes"]);
    assert!(told.code == 0 && told.stdout.contains("nothing to add"), "{}", told.stdout);
    assert!(!place.path(".claude").exists() && !place.path(".mcp.json").exists());
    let told = place.run(&["init", "--claude-code", "--user", "--yes"]).stdout;
    assert!(told.contains("`annalist init --claude-code --user --remove`"), "{told}");
    let disabled = plugins.replace("annalist@annalist\": true", "annalist@annalist\": false");
    let [of_user, of_project] = ["home/.claude/settings.json", ".claude/settings.json"];
    place.write(of_user, &disabled);
    place.write(of_project, plugins);
    let told = place.run(&["init", "--claude-code", "--user", "--yes"]).stdout;
    assert!(!told.contains("nothing to add"), "the project's settings are not the user's: {told}");
    place.write(of_user, plugins);
    place.write(of_project, &disabled);
    assert_eq!(place.run(&["init", "--claude-code", "--yes"]).code, 0);
    let here = std::fs::read_to_string(place.path(of_project)).unwrap();
    assert!(here.contains("hook session-start"), "the nearer file decides: {here}");
}

#[test]
fn a_hook_that_does_more_than_run_us_is_named_when_it_stays() {
    let place = Place::new();
    let theirs =
        r#"{"hooks": {"Stop": [{"hooks": [{"command": "annalist hook stop && say done"}]}]}}"#;
    place.write(".claude/settings.json", theirs);
    let told = place.run(&["init", "--claude-code", "--remove", "--yes"]);
    assert!(told.code == 0 && told.stderr.contains("among other things"), "{}", told.stderr);
    assert_eq!(text(&place, ".claude/settings.json"), theirs);
}

#[test]
fn a_memory_directory_alone_is_no_client() {
    let place = Place::new();
    place.write(".claude/memory/active-context.md", "");
    let listed = place.run(&["init"]);
    assert!(!listed.stdout.contains("Claude Code"), "{}", listed.stdout);
}

#[test]
fn clients_that_are_found_are_listed() {
    let place = Place::new();
    place.write("home/.codex/auth.json", "{}");
    place.write(".qwen/settings.json", "{}");
    let output = place.run(&["init"]);
    assert!(output.stdout.contains("`annalist init --codex`"), "{}", output.stdout);
    assert!(output.stdout.contains("`annalist init --qwen`"), "{}", output.stdout);
    assert!(!output.stdout.contains("--gemini"), "{}", output.stdout);
    assert_eq!(place.run(&["init", "--qwen", "--yes"]).code, 0);
    std::fs::remove_file(place.path("annalist.toml")).unwrap();
    let output = place.run(&["init"]);
    assert!(output.stdout.contains("is set up"), "{}", output.stdout);
}

#[test]
fn hooks_of_gemini_cli_are_answered_in_its_terms() {
    let place = Place::new();
    place.write(".claude/memory/active-context.md", "## Current Focus\nThe queue.\n");
    let told = |name: &str, more: Value| {
        let mut told = json!({"session_id": "s-1", "hook_event_name": name});
        told.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        told.to_string()
    };
    let prompt = told("BeforeAgent", json!({"prompt": "/memory-sync"}));
    let output = tell(&place, "user-prompt-submit", &prompt);
    let said: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "BeforeAgent");
    // It tells of every request that might compress.
    let compression = told("PreCompress", json!({"trigger": "auto"}));
    let output = tell(&place, "pre-compact", &compression);
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{}", output.stderr);
    let output = tell(&place, "stop", &compression);
    assert!(output.stderr.contains("hook_event_name"), "{}", output.stderr);
}

#[test]
fn a_session_in_a_database_is_handed_over_alone() {
    let place = Place::new();
    let path = place.write("opencode.db", "");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch(super::clients::DATABASE).unwrap();
    let other =
        super::clients::DATABASE.lines().filter(|it| it.contains("INSERT")).collect::<String>();
    let other =
        ["ses_", "msg_", "prt_"].iter().fold(other, |sql, id| sql.replace(id, &format!("{id}x")));
    database.execute_batch(&other).unwrap();
    for session in ["ses_1", "ses_1"] {
        let told = json!({"session_id": session, "cwd": place.path(""), "database": path});
        let output = tell(&place, "session-end", &told.to_string());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        until_handed_over(&place);
    }
    assert_eq!(place.number("SELECT count(*) FROM sessions"), 1);
    assert_eq!(place.number("SELECT count(*) FROM jobs"), 1);
}
