//! What the tests of the readers share: items as lines of text, and the shared transcripts.

use super::{Item, Sink};
use crate::domain::Branch;
use std::io::{self, Cursor};
use std::ops::ControlFlow;
use std::path::PathBuf;

type Read = fn(Cursor<Vec<u8>>, &mut Sink<'_>) -> io::Result<()>;

/// Everything that `read` emits for `bytes`.
pub(super) fn items(read: Read, bytes: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut sink = |item| {
        items.push(item);
        ControlFlow::Continue(())
    };
    read(Cursor::new(bytes.to_vec()), &mut sink).expect("memory does not fail");
    items
}

/// A line an item: `3 assistant tool_call Bash: ls`. Line breaks show as `⏎`.
pub(super) fn shown(item: &Item) -> String {
    let show = |text: &str| text.replace('\n', "⏎");
    match item {
        Item::Session(session) => {
            let mut all = format!("session {}", session.native_id);
            let more = [("title", &session.title), ("parent", &session.parent)];
            for (name, value) in more {
                if let Some(value) = value {
                    all.push_str(&format!(" {name}={value}"));
                }
            }
            all
        }
        Item::Finding(finding) => {
            format!("{} {} {:?}", finding.line, finding.rule, finding.severity)
        }
        Item::Entry(entry) => {
            let branch = match entry.branch {
                Branch::Active => None,
                Branch::Abandoned | Branch::Sidechain => Some(entry.branch.name()),
            };
            let outcome = entry.outcome.map(|outcome| outcome.name());
            let code = entry.exit_code.map(|code| code.to_string());
            let skip = entry.skip.map(|skip| format!("({})", skip.name()));
            let words = [
                Some(entry.line.to_string()),
                branch.map(str::to_owned),
                Some(entry.speaker.name().to_owned()),
                Some(entry.kind.name().to_owned()),
                entry.tool.clone(),
                outcome.map(str::to_owned),
                code,
                skip,
            ];
            let head: Vec<_> = words.into_iter().flatten().collect();
            format!("{}: {}", head.join(" "), show(&entry.text))
        }
    }
}

/// Compares what `read` emits for `input` with `expected`, a line an item.
#[track_caller]
pub(super) fn check(read: Read, input: &str, expected: &str) {
    let got: Vec<_> = items(read, input.as_bytes()).iter().map(shown).collect();
    let expected: Vec<_> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(got, expected);
}

/// The shared transcripts under `folder`; says so when they are not there.
pub(super) fn samples(folder: &str) -> Vec<(String, Vec<u8>)> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared");
    let root = PathBuf::from(option_env!("ANNALIST_SHARED").unwrap_or(beside));
    let folder = root.join("transcripts").join(folder);
    let Ok(files) = std::fs::read_dir(&folder) else {
        skip(&format!("{} is not here: nothing to read", folder.display()));
        return Vec::new();
    };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        Some((name, std::fs::read(&path).ok()?))
    };
    paths.into_iter().filter_map(read).collect()
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(reason: &str) {
    eprintln!("{reason}");
}
