//! Which settings and which store are in force, by the folder that a command runs in.

use super::input::claude;
use super::place::{Output, Place};
use std::process::Stdio;

/// A folder that is no project yet, with one transcript.
fn outside() -> Place {
    let place = Place::new();
    std::fs::remove_dir(place.path(".annalist")).unwrap();
    place.write("s.jsonl", claude(0..1));
    place
}

fn run_in(place: &Place, folder: &str, args: &[&str]) -> Output {
    let mut command = place.command(args);
    let output = command.current_dir(place.path(folder)).stdin(Stdio::null()).output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Hands a transcript over in `folder`; gives the settings and the store that `status` names.
#[track_caller]
fn in_force(place: &Place, folder: &str) -> (String, String) {
    let transcript = place.path("s.jsonl");
    let output = run_in(place, folder, &["enqueue", transcript.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let status: serde_json::Value =
        serde_json::from_str(&run_in(place, folder, &["status", "--json"]).stdout).unwrap();
    let text = |key: &str| status[key].as_str().unwrap().to_owned();
    let root = place.path("").canonicalize().unwrap();
    let plain = |text: String| text.replace(&format!("{}/", root.display()), "/");
    (plain(text("settings")), plain(text("store")))
}

#[test]
fn outside_of_a_project_the_store_is_the_users() {
    let place = outside();
    let (settings, store) = in_force(&place, "");
    assert_eq!(settings, "built-in defaults");
    assert!(store.ends_with("home/.local/share/annalist/annalist.db"), "{store}");
    assert!(!place.path(".annalist").exists());
}

#[test]
fn in_a_repository_the_store_is_at_its_root_and_ignored_by_git() {
    let place = outside();
    place.write("app/.git/HEAD", "");
    place.write("app/deep/x", "");
    place.write("annalist.toml", "");
    let (settings, store) = in_force(&place, "app/deep");
    assert_eq!(
        (settings.as_str(), store.as_str()),
        ("built-in defaults", "/app/.annalist/annalist.db")
    );
    let ignored = super::place::read(&place.path("app/.annalist/.gitignore"));
    assert_eq!(ignored, b"*\n");
}

#[test]
fn working_trees_of_a_repository_share_the_store_of_the_main_one() {
    let place = outside();
    place.write("app/.git/worktrees/side/commondir", "../..\n");
    let main = place.path("app/.git/worktrees/side").canonicalize().unwrap();
    place.write("side/.git", format!("gitdir: {}\n", main.display()));
    place.write("side/deep/annalist.toml", "");
    assert_eq!(in_force(&place, "side").1, "/app/.annalist/annalist.db");
    assert_eq!(in_force(&place, "side/deep").1, "/app/deep/.annalist/annalist.db");
    place.write("side/.annalist/x", "");
    assert_eq!(in_force(&place, "side").1, ".annalist/annalist.db");
}

#[test]
fn settings_and_store_are_found_in_a_folder_above() {
    let place = outside();
    place.write("app/deep/x", "");
    place.write("app/annalist.toml", "[store]\nurl = \"sqlite:kept/s.db\"\n");
    let found = in_force(&place, "app/deep");
    assert_eq!((found.0.as_str(), found.1.as_str()), ("/app/annalist.toml", "/app/kept/s.db"));
    place.write("app/annalist.toml", "language = \"German\"\n");
    assert_eq!(in_force(&place, "app/deep").1, "/app/.annalist/annalist.db");
    place.write("app/deep/.annalist/config.toml", "");
    assert_eq!(in_force(&place, "app/deep").1, ".annalist/annalist.db");
}

#[test]
fn settings_of_another_tool_are_left_alone() {
    let place = outside();
    let hugo = "baseURL = \"https://example.org/\"\ntitle = \"A site\"\n[params]\nx = 1\n";
    for text in [hugo, "[server]\nport = 1\n[store]\npath = \"x\"\n"] {
        place.write("config.toml", text);
        assert_eq!(in_force(&place, "").0, "built-in defaults");
        let hook = place.run(&["hook", "stop"]);
        assert!(!hook.stderr.contains("config.toml"), "{}", hook.stderr);
    }
    place.write("config.toml", "[store]\npath = \"x\"\n");
    place.run(&["status"]).refused(2, &["config.toml:2", "store.path"]);
    place.write("annalist.toml", "titel = 1\n");
    place.run(&["status"]).refused(2, &["annalist.toml:1", "titel"]);
}
