//! Helpers for the readers' tests: reading a text, and rendering items as one line each.

use super::marks;
use super::raw::{Input, RawEntry, Sink, TranscriptItem};
use crate::domain::{Branch, EntryKind, Format, Speaker};
use crate::testing::shared;
use std::fs;
use std::io::{self, Cursor};
use std::ops::ControlFlow;
use std::path::PathBuf;

pub(super) type Reader = fn(&mut dyn Input, &mut Sink<'_>) -> io::Result<()>;

/// Returns all items that a reader emits.
pub(super) fn read(reader: Reader, input: &[u8]) -> Vec<TranscriptItem> {
    collect(|sink| reader(&mut Cursor::new(input), sink))
}

/// Returns all items of a transcript of `format`.
pub(super) fn items(format: Format, input: &[u8]) -> Vec<TranscriptItem> {
    collect(|sink| super::read(format, Cursor::new(input), sink))
}

fn collect(read: impl FnOnce(&mut Sink<'_>) -> io::Result<()>) -> Vec<TranscriptItem> {
    let mut items = Vec::new();
    read(&mut |item| {
        items.push(item);
        ControlFlow::Continue(())
    })
    .unwrap();
    items
}

/// Reads `input` and compares it, item by item, with `expected`.
#[track_caller]
pub(super) fn check(reader: Reader, input: &str, expected: &[&str]) {
    let shown: Vec<String> = read(reader, input.as_bytes()).iter().map(show_item).collect();
    assert_eq!(shown, expected);
}

/// Like [`check`], with `expected` as one item per line; `⏎` stands for a line break.
#[track_caller]
pub(super) fn check_page(reader: Reader, input: &str, expected: &str) {
    let items = read(reader, input.as_bytes());
    let shown: Vec<_> = items.iter().map(|item| show_item(item).replace('\n', "⏎")).collect();
    let expected: Vec<_> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(shown, expected);
}

/// Renders an item as one line; a digest is shortened to `…`, a parent follows `<`.
pub(super) fn show_item(item: &TranscriptItem) -> String {
    match item {
        TranscriptItem::Session(session) => {
            let (head, tail) =
                session.native_id.split_once('#').unwrap_or((&session.native_id, ""));
            let head = if head.len() == 32 { "…" } else { head };
            let mark = if tail.is_empty() { "" } else { "#" };
            let title = session.title.as_deref().unwrap_or_default();
            let parent = session.parent.as_ref();
            let parent = parent.map(|parent| format!(" < {parent}")).unwrap_or_default();
            format!("= {head}{mark}{tail}{parent} {title}").trim_end().to_owned()
        }
        TranscriptItem::Entry(entry) => format!("{}: {}", entry.line, show(entry)),
        TranscriptItem::Finding(finding) => format!("! {} {}", finding.rule, finding.line),
    }
}

/// Renders speaker, kind, tool, outcome, text and the reason for skipping.
pub(super) fn show(entry: &RawEntry) -> String {
    let mut line = format!("{} {}", entry.speaker.name(), entry.kind.name());
    if let Some(tool) = &entry.tool {
        line += &format!(" {tool}#{}", entry.call_id.as_deref().unwrap_or_default());
    }
    if let Some(outcome) = entry.outcome {
        line += &format!(" {}", outcome.name());
    }
    if let Some(code) = entry.exit_code {
        line += &format!(" {code}");
    }
    if entry.branch != Branch::Active {
        line += &format!(" {}", entry.branch.name());
    }
    line += &format!(": {}", entry.text);
    if let Some(skip) = entry.skip {
        line += &format!(" ({})", skip.name());
    }
    line
}

/// Renders the entries of a transcript of `format`.
pub(super) fn shown(format: Format, input: &str) -> Vec<String> {
    entries(&items(format, input.as_bytes())).map(show).collect()
}

pub(super) fn entries(items: &[TranscriptItem]) -> impl Iterator<Item = &RawEntry> {
    items.iter().filter_map(|item| match item {
        TranscriptItem::Entry(entry) => Some(entry),
        TranscriptItem::Session(_) | TranscriptItem::Finding(_) => None,
    })
}

/// Number of entries of a speaker and kind that are not skipped.
pub(super) fn count(items: &[TranscriptItem], speaker: Speaker, kind: EntryKind) -> usize {
    let of = |entry: &&RawEntry| (entry.speaker, entry.kind) == (speaker, kind);
    entries(items).filter(of).filter(|entry| entry.skip.is_none()).count()
}

/// Folder of the shared samples, if present.
pub(super) fn samples() -> Option<PathBuf> {
    shared("transcripts")
}

/// Fails unless a file cut off anywhere after `from` gives a prefix of the whole file's items.
#[track_caller]
pub(super) fn check_cuts(reader: Reader, input: &str, from: usize) {
    let shown = |text: &str| -> Vec<String> {
        read(reader, text.as_bytes()).iter().map(show_item).collect()
    };
    let whole = shown(input);
    for end in from..input.len() {
        let mut cut = shown(&input[..end]);
        cut.retain(|item| !item.starts_with('!'));
        assert!(whole.starts_with(&cut), "cut at {end}: {cut:?}");
    }
}

/// Full ids of the sessions among `items`.
pub(super) fn ids(items: &[TranscriptItem]) -> Vec<&str> {
    let sessions = items.iter().filter_map(|item| match item {
        TranscriptItem::Session(session) => Some(session.native_id.as_str()),
        TranscriptItem::Entry(_) | TranscriptItem::Finding(_) => None,
    });
    sessions.collect()
}

/// Shared agent logs under `folder`, with their names.
pub(super) fn logs(folder: &str) -> Vec<(String, Vec<u8>)> {
    let Some(files) = samples().and_then(|root| fs::read_dir(root.join(folder)).ok()) else {
        return Vec::new();
    };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        Some((name, fs::read(&path).ok()?))
    };
    paths.into_iter().filter_map(read).collect()
}

/// Reads the input cut at every `step` bytes and with bytes replaced there. Panics in the reader
/// are the only failure.
pub(super) fn survives(reader: Reader, input: &[u8], step: usize) {
    for end in (0..input.len()).step_by(step) {
        read(reader, &input[..end]);
        let mut flipped = input.to_vec();
        for byte in [b'"', b'{', b']', b'\n', 0, 0xff, b'\\', b'#', b'`'] {
            flipped[end] = byte;
            read(reader, &flipped);
        }
    }
}

/// Invariants of every transcript: one session, emitted first; increasing lines, except for results
/// held back behind a text; calls answered at most once, after they were made; no images.
#[track_caller]
pub(super) fn invariants(name: &str, items: &[TranscriptItem], bytes: usize) {
    let sessions = items.iter().filter(|item| matches!(item, TranscriptItem::Session(_)));
    assert_eq!(sessions.count(), 1, "{name}");
    assert!(matches!(items.first(), Some(TranscriptItem::Session(_))), "{name}");
    let Some(TranscriptItem::Session(session)) = items.first() else { return };
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

/// Reads `bytes` cut at `cut` and with some bytes changed; fails on panics or a missing session.
pub(super) fn broken(reader: Reader, mut bytes: Vec<u8>, cut: usize, flips: &[(usize, u8)]) {
    bytes.truncate(cut);
    for (at, value) in flips {
        if let Some(byte) = bytes.get_mut(*at) {
            *byte = *value;
        }
    }
    let items = read(reader, &bytes);
    assert!(matches!(items.first(), Some(TranscriptItem::Session(_))));
}

/// Reads small transcripts with pseudo-random cuts and changes.
pub(super) fn damaged(reader: Reader, samples: impl Iterator<Item = (String, Vec<u8>)>) {
    for (name, bytes) in samples.filter(|(_, bytes)| bytes.len() < DAMAGED_BYTES_MAX) {
        let mut seed = marks::name_of(&name) as usize;
        for _ in 0..DAMAGES {
            let mut flips = Vec::new();
            for _ in 0..DAMAGES {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                flips.push(((seed >> 16) % bytes.len().max(1), (seed >> 8) as u8));
            }
            broken(reader, bytes.clone(), (seed >> 20) % bytes.len().max(1), &flips);
        }
    }
}

/// Maximum size of transcripts that are damaged, to keep the tests fast.
const DAMAGED_BYTES_MAX: usize = 100_000;
/// Number of damaged copies per transcript, and of changed bytes per copy.
const DAMAGES: usize = 20;
