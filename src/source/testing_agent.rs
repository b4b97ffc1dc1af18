//! What the tests of the readers share: items as lines of text, and the shared transcripts.

use super::{Item, RawEntry, Sink, marks};
use crate::domain::{Branch, EntryKind, Speaker};
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

/// The entries among `items`.
pub(super) fn entries(items: &[Item]) -> impl Iterator<Item = &RawEntry> {
    items.iter().filter_map(|item| match item {
        Item::Entry(entry) => Some(entry),
        Item::Session(_) | Item::Finding(_) => None,
    })
}

/// Whether an entry is read by models, and of this speaker and kind.
pub(super) fn is(entry: &RawEntry, speaker: Speaker, kind: EntryKind) -> bool {
    entry.skip.is_none() && (entry.speaker, entry.kind) == (speaker, kind)
}

/// What holds for every transcript: one session, first; lines that only grow but for results held
/// back behind a text; calls answered at most once, after they were made; no images, no reminders.
#[track_caller]
pub(super) fn invariants(name: &str, items: &[Item], bytes: usize) {
    let sessions = items.iter().filter(|item| matches!(item, Item::Session(_)));
    assert_eq!(sessions.count(), 1, "{name}");
    assert!(matches!(items.first(), Some(Item::Session(_))), "{name}");
    let Some(Item::Session(session)) = items.first() else { return };
    assert!(!session.native_id.is_empty(), "{name}");
    let (mut made, mut answered) = (Vec::new(), Vec::new());
    let mut size = 0;
    for entry in entries(items) {
        let place = format!("{name}:{}", entry.line);
        assert!(!entry.text.contains(";base64,"), "{place}");
        let reminder = entry.text.starts_with("<system-reminder>");
        assert!(!reminder, "{place}");
        let Some(call_id) = entry.call_id.as_deref().filter(|id| !id.contains(' ')) else {
            continue;
        };
        if entry.kind == EntryKind::ToolCall {
            made.push(call_id);
        } else {
            assert!(made.contains(&call_id) || size == 0, "{place}: answered before it was made");
            assert!(!answered.contains(&call_id), "{place}: answered twice");
            answered.push(call_id);
        }
        size += entry.text.len();
    }
    let lines: Vec<_> = entries(items).map(|entry| entry.line).collect();
    let sorted = lines.windows(2).filter(|pair| pair[0] <= pair[1]).count();
    assert!(lines.len() <= sorted + 1 + lines.len() / 100, "{name}: lines are out of order");
    assert!(size <= bytes, "{name}: more words than bytes");
}

/// Reads `bytes` cut at `cut` and with some bytes changed; a panic is the only failure.
pub(super) fn broken(read: Read, mut bytes: Vec<u8>, cut: usize, flips: &[(usize, u8)]) {
    bytes.truncate(cut);
    for (at, value) in flips {
        if let Some(byte) = bytes.get_mut(*at) {
            *byte = *value;
        }
    }
    let items = items(read, &bytes);
    assert!(matches!(items.first(), Some(Item::Session(_))));
}

/// Small transcripts, each cut and changed at places that a seed chooses.
pub(super) fn damaged(read: Read, samples: impl Iterator<Item = (String, Vec<u8>)>) {
    for (name, bytes) in samples.filter(|(_, bytes)| bytes.len() < DAMAGED_BYTES_MAX) {
        let mut seed = marks::name_of(&name) as usize;
        for _ in 0..DAMAGES {
            let mut flips = Vec::new();
            for _ in 0..DAMAGES {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                flips.push(((seed >> 16) % bytes.len().max(1), (seed >> 8) as u8));
            }
            broken(read, bytes.clone(), (seed >> 20) % bytes.len().max(1), &flips);
        }
    }
}

/// Larger transcripts are not damaged, in bytes: tests should stay quick.
const DAMAGED_BYTES_MAX: usize = 100_000;
/// How often a transcript is damaged, and at how many places.
const DAMAGES: usize = 20;

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
