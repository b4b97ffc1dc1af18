//! The house: imports go one way, the world is touched in two rooms only, files stay short.

use super::place::{read, walk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The rooms from the ground up; those on one row do not know each other.
const ROWS: [&[&str]; 7] = [
    &["privacy"],
    &["domain"],
    &["prompt", "entity"],
    &[
        "source",
        "slice",
        "extract",
        "grounding",
        "card",
        "conversation",
        "dialog",
        "memory_dir",
        "edge",
    ],
    &["config"],
    &["worker"],
    &["cli"],
];
/// The rooms that read the clock, the disk and the environment.
const WORLDLY: [&str; 2] = ["edge", "cli"];
/// What is only done there.
const WORLD: [&str; 8] = [
    "std::fs",
    "std::env::",
    "std::net",
    "std::process",
    "tokio::fs",
    "tokio::net",
    "SystemTime::now",
    "Instant::now",
];
/// The longest file, in lines.
const LINES_MAX: usize = 450;

/// A file of the product: its room, its path, its text without tests.
struct Source {
    room: String,
    path: PathBuf,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every file of the rooms that is compiled into the product.
fn sources() -> Vec<Source> {
    let (mut found, mut tests) = (Vec::new(), BTreeSet::new());
    walk(&root(), &mut |path| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = product(path, &String::from_utf8(read(path)).unwrap(), &mut tests);
            let inside = path.strip_prefix(root()).unwrap();
            let first = inside.iter().next().unwrap().to_str().unwrap();
            let room = first.trim_end_matches(".rs").to_owned();
            found.push(Source { room, path: path.to_owned(), text });
        }
    });
    found.retain(|source| !tests.iter().any(|test| source.path.starts_with(test)));
    found
}

/// The text up to the tests in it, which come last; adds files that are tests to `tests`.
fn product(path: &Path, text: &str, tests: &mut BTreeSet<PathBuf>) -> String {
    let folder = match path.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs" | "lib.rs" | "main.rs") => path.parent().unwrap().to_owned(),
        _ => path.with_extension(""),
    };
    let (mut kept, mut is_test, mut named) = (String::new(), false, None);
    for line in text.lines() {
        let line = line.trim();
        if line == "#[cfg(test)]" {
            (is_test, named) = (true, None);
            continue;
        }
        if is_test && let Some(name) = line.strip_prefix("#[path = \"") {
            named = Some(path.with_file_name(name.trim_end_matches("\"]")));
            continue;
        }
        let module = line.split_once("mod ").map(|(_, name)| name);
        if is_test && let Some(name) = module.and_then(|name| name.strip_suffix(';')) {
            tests.insert(named.take().unwrap_or_else(|| folder.join(name).with_extension("rs")));
            tests.insert(folder.join(name));
        } else if is_test && module.is_some_and(|name| name.ends_with('{')) {
            return kept;
        }
        is_test = is_test && line.starts_with("#[");
        if !line.starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn row(room: &str) -> Option<usize> {
    ROWS.iter().position(|rooms| rooms.contains(&room))
}

#[test]
fn imports_go_one_way() {
    let mut wrong = Vec::new();
    for Source { room, path, text } in sources() {
        let Some(own) = row(&room) else {
            let is_root = matches!(room.as_str(), "lib" | "main");
            assert!(is_root, "{room} has no place in the house: give it a row");
            continue;
        };
        for rest in text.split("crate::").skip(1) {
            let used: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let allowed = used == room || row(&used).is_some_and(|below| below < own);
            if !allowed && row(&used).is_some() {
                wrong.push(format!("{}: {room} uses {used}", path.display()));
            }
        }
        assert!(!text.contains("use crate::{"), "{}: one room a `use`", path.display());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_world_is_touched_in_two_rooms_only() {
    let mut wrong = Vec::new();
    for Source { room, path, text } in sources() {
        if WORLDLY.contains(&room.as_str()) || room == "main" {
            continue;
        }
        for word in WORLD.iter().filter(|word| text.contains(**word)) {
            wrong.push(format!("{}: {word}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_stay_short() {
    let mut long = Vec::new();
    walk(&root(), &mut |path| {
        let lines = read(path).iter().filter(|byte| **byte == b'\n').count();
        if lines > LINES_MAX {
            long.push(format!("{}: {lines}", path.display()));
        }
    });
    assert!(long.is_empty(), "longer than {LINES_MAX} lines:\n{}", long.join("\n"));
}

#[test]
fn tests_are_told_from_the_product() {
    let mut tests = BTreeSet::new();
    let text = "use a;\n#[cfg(test)]\nmod fixture;\n#[cfg(test)]\n#[path = \"x_test.rs\"]\nmod t;\n\
                fn b() {}\n#[cfg(test)]\nmod tests {\nuse c;\n}\n";
    let kept = product(Path::new("r/x.rs"), text, &mut tests);
    assert!(kept.contains("use a;") && kept.contains("fn b()") && !kept.contains("use c;"));
    for path in ["r/x/fixture.rs", "r/x_test.rs"] {
        assert!(tests.contains(Path::new(path)), "{path}: {tests:?}");
    }
    assert!(sources().len() > 60);
}
