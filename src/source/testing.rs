//! What the readers' tests share: reading a text, and showing what came out in one line each.

use super::{Item, RawEntry, Sink};
use crate::domain::Branch;
use std::io::{self, Cursor};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A reader of one format.
pub(super) type Reader = fn(Cursor<&[u8]>, &mut Sink<'_>) -> io::Result<()>;

/// Everything a reader emits.
pub(super) fn read(reader: Reader, input: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut sink = |item: Item| {
        items.push(item);
        ControlFlow::Continue(())
    };
    reader(Cursor::new(input), &mut sink).unwrap();
    items
}

/// Reads `input` and compares it, item by item, with `expected`.
#[track_caller]
pub(super) fn check(reader: Reader, input: &str, expected: &[&str]) {
    let shown: Vec<String> = read(reader, input.as_bytes()).iter().map(show_item).collect();
    assert_eq!(shown, expected);
}

/// One item in one line; a session's digest is shortened to `…`.
pub(super) fn show_item(item: &Item) -> String {
    match item {
        Item::Session(session) => {
            let (head, tail) =
                session.native_id.split_once('#').unwrap_or((&session.native_id, ""));
            let head = if head.len() == 32 { "…" } else { head };
            let mark = if tail.is_empty() { "" } else { "#" };
            let title = session.title.as_deref().unwrap_or_default();
            format!("= {head}{mark}{tail} {title}").trim_end().to_owned()
        }
        Item::Entry(entry) => format!("{}: {}", entry.line, show(entry)),
        Item::Finding(finding) => format!("! {} {}", finding.rule, finding.line),
    }
}

/// Who, what, which tool, how it ended, the words, why it is skipped.
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

/// The shared samples, or none, with a line saying so, where they are absent.
pub(super) fn samples() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").to_owned();
    let named = std::env::vars().find(|(key, _)| key == "ANNALIST_SHARED").map(|(_, value)| value);
    let folder = PathBuf::from(named.unwrap_or(beside)).join("transcripts");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln_absent();
    None
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn eprintln_absent() {
    eprintln!("no shared samples here: skipped");
}

/// Reads files cut at every `step` bytes and with bytes flipped; nothing may panic, and reading must
/// go through the whole input each time.
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
