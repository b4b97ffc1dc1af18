//! The commands of README.md, as they are printed and in their order, in one empty folder.

use super::input::claude;
use super::place::{Place, read};
use super::stub::Stub;
use std::path::Path;
use std::process::{Command, Stdio};

/// Looks at the queue while the worker works.
const LOOKS_MAX: usize = 3_000;

/// Every command in the order of the README: of `cargo run --` or `annalist`, without its remark.
fn commands() -> Vec<String> {
    let readme = include_str!("../../README.md");
    let printed = readme.lines().filter_map(|line| line.strip_prefix("$ "));
    let bare = printed.map(|line| line.split("  #").next().unwrap_or(line).trim());
    let ours = bare.filter(|line| *line != "cargo test").map(|line| {
        let own = line.strip_prefix("cargo run -- ").or_else(|| line.strip_prefix("annalist "));
        own.unwrap_or_else(|| panic!("not a command of ours: {line}")).to_owned()
    });
    ours.collect()
}

/// A command in the project, run by a shell as a person would.
fn command(place: &Place, args: &str) -> Command {
    let mut command = place.program("/bin/sh", &["-c", &format!("exec \"$ANNALIST\" {args}")]);
    command.env("ANNALIST", super::place::ANNALIST).current_dir(place.path("roofs"));
    command.stdin(Stdio::null());
    command
}

/// Runs it; its standard output.
#[track_caller]
fn run(place: &Place, args: &str) -> String {
    let output = command(place, args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args}: {}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_commands_of_the_readme_work_in_their_order_in_one_folder_with_one_namespace() {
    let stub = Stub::good();
    let mut place = Place::new();
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    // A clone holds the examples and nothing of ours.
    std::fs::create_dir_all(place.path("roofs/.git")).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    std::os::unix::fs::symlink(examples, place.path("roofs/examples")).unwrap();
    let root = place.path("roofs").canonicalize().unwrap();
    let talk = claude(0..3).replace("/home/dev/roofs", root.to_str().unwrap());
    place.write("home/.claude/projects/roofs/t.jsonl", talk);
    let commands = commands();
    let at = |name: &str| commands.iter().position(|it| it.starts_with(name));
    assert!(commands.len() > 9 && at("replay") < at("memory sync"), "{commands:?}");
    assert!(at("memory sync") < at("context"), "{commands:?}");
    let mut context = String::new();
    for args in &commands {
        if args == "init --claude-code" {
            // It asks, and nobody is there.
            assert_eq!(command(&place, args).status().unwrap().code(), Some(2));
            run(&place, "init --claude-code --yes");
        } else if args == "worker" {
            let workers = || {
                let store = rusqlite::Connection::open(place.path("roofs/.annalist/annalist.db"));
                let last = "SELECT coalesce(max(started_at), 0) FROM workers";
                store.unwrap().query_row(last, [], |row| row.get::<_, i64>(0)).unwrap()
            };
            let before = workers();
            let worker = place.start_program(command(&place, args));
            // Who is entered there listens to signals.
            let is_idle =
                |_: usize| workers() > before && run(&place, "jobs --json").trim() == "[]";
            assert!((0..LOOKS_MAX).any(is_idle), "{}", worker.said());
            worker.signal("TERM");
            let output = worker.wait();
            assert_eq!(output.code, 0, "{}", output.stderr);
        } else {
            let printed = run(&place, args);
            if args == "context" {
                let has_more = printed.len() > context.len() && printed.contains("<memory");
                assert!(has_more, "{context}\n---\n{printed}");
                context = printed;
            }
        }
    }
    let memories = run(&place, "memory list --all --json");
    let memories: Vec<serde_json::Value> = serde_json::from_str(&memories).unwrap();
    let namespace = root.to_str().unwrap().trim_start_matches('/');
    assert!(!memories.is_empty() && memories.iter().all(|it| it["namespace"] == namespace));
    assert_eq!(read(&place.path("roofs/.annalist/.gitignore")), b"*\n");
}
