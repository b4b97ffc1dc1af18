//! Rules for the reader of every format, checked on the samples in its folder: `sample*.json[l]` and
//! `.md` with expected output in `.txt`. Text to be read holds `say-N`, text never to be read `hidden`.

use super::READERS;
use super::detect;
use super::raw::TranscriptItem;
use super::testing::{entries, items, show_item};
use crate::domain::{EntryKind, Format, Severity};
use regex::Regex;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Distance in bytes between the positions at which a sample is cut or changed.
const STEP: usize = 11;

/// Folders of several formats; their samples begin with `sample-FORMAT`.
const FOLDERS: [(Format, &str); 7] = [
    (Format::Slice, "slice_doc"),
    (Format::Chatgpt, "chat"),
    (Format::Openai, "chat"),
    (Format::Anthropic, "chat"),
    (Format::Aider, "markdown"),
    (Format::Specstory, "markdown"),
    (Format::Plain, "markdown"),
];

/// Length of a session's id that is a digest.
const DIGEST_LENGTH: usize = 32;

struct Sample {
    format: Format,
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Samples of every format, from the folder named after its first word or the one that it shares.
fn samples() -> Vec<Sample> {
    let mut found = Vec::new();
    for &format in Format::ALL {
        let own = format.name().split('-').next().unwrap();
        let shared = FOLDERS.iter().find(|(it, _)| *it == format).map(|(_, folder)| *folder);
        let begin = shared.map_or("sample".to_owned(), |_| format!("sample-{own}"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/transcripts");
        let root = root.join(shared.unwrap_or(own));
        let is_sample = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            let ends = [".json", ".jsonl", ".md"];
            name.starts_with(&begin) && ends.iter().any(|end| name.ends_with(end))
        };
        let files = fs::read_dir(&root).unwrap().map(|file| file.unwrap().path());
        let mut paths: Vec<PathBuf> = files.filter(is_sample).collect();
        paths.sort();
        assert!(!paths.is_empty(), "{format} has no sample in {}", root.display());
        found.extend(paths.into_iter().map(|path| {
            let bytes = fs::read(&path).unwrap();
            Sample { format, path, bytes }
        }));
    }
    found
}

/// Renders one line per item, with the header of each session.
fn page(items: &[TranscriptItem]) -> String {
    let line = |item: &TranscriptItem| {
        let shown = show_item(item).replace('\n', "⏎");
        match item {
            TranscriptItem::Session(session) => {
                let cwd = session.cwd.as_deref().unwrap_or("-");
                let begun = session.started_at.map_or("-".to_owned(), |at| at.to_string());
                format!("{shown} | {cwd} | {begun}\n")
            }
            TranscriptItem::Entry(_) | TranscriptItem::Finding(_) => shown + "\n",
        }
    };
    items.iter().map(line).collect()
}

/// Speakers, kinds and text by session, without fields that a later record may change.
fn said(items: &[TranscriptItem]) -> BTreeMap<String, Vec<String>> {
    let (mut said, mut session) = (BTreeMap::new(), String::new());
    for item in items {
        match item {
            // A session without an id gets one from its first text as far as it is written.
            TranscriptItem::Session(head) => {
                let id = head.native_id.split('#').next().unwrap();
                session = if id.len() == DIGEST_LENGTH { "" } else { &head.native_id }.to_owned();
            }
            TranscriptItem::Entry(entry) => {
                // A prompt in Claude Code's queue is steering until it is sent.
                let kind = entry.kind.name().replace("steering", "prompt");
                let speaker = entry.speaker.name();
                let words = format!("{speaker} {kind}: {}", entry.text);
                said.entry(session.clone()).or_insert_with(Vec::new).push(words);
            }
            TranscriptItem::Finding(_) => {}
        }
    }
    said
}

#[test]
fn samples_are_recognised_and_read_as_written_beside_them() {
    let mut wrong = String::new();
    for Sample { format, path, bytes } in samples() {
        let crlf = String::from_utf8_lossy(&bytes).replace('\n', "\r\n").into_bytes();
        for head in [bytes.as_slice(), &bytes[..bytes.len().min(700)], &crlf] {
            assert_eq!(detect(head, None), Ok(format), "{}", path.display());
        }
        let got = page(&items(format, &bytes));
        assert_eq!(page(&items(format, &crlf)), got, "{} with other line ends", path.display());
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        if got != expected {
            wrong += &format!("{} is read as:\n{got}\n", path.display());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn nothing_is_lost_and_nothing_is_said_twice() {
    let token = Regex::new(r"say-\d+").unwrap();
    for Sample { format, path, bytes } in samples() {
        let items = items(format, &bytes);
        let text = String::from_utf8(bytes).unwrap();
        let mut expected: Vec<&str> = token.find_iter(&text).map(|found| found.as_str()).collect();
        expected.sort_unstable();
        expected.dedup();
        assert!(!expected.is_empty(), "{} says nothing", path.display());
        let words: Vec<&str> = entries(&items).map(|entry| entry.text.as_str()).collect();
        let mut got: Vec<&str> = words
            .iter()
            .flat_map(|text| token.find_iter(text).map(|found| found.as_str()))
            .collect();
        got.sort_unstable();
        assert_eq!(got, expected, "{}", path.display());
        let hidden = words.iter().find(|text| text.contains("hidden"));
        assert_eq!(hidden, None, "{}", path.display());
    }
}

#[test]
fn results_have_their_call_and_times_are_read() {
    for Sample { format, path, bytes } in samples() {
        let items = items(format, &bytes);
        let has_times = memchr::memmem::find(&bytes, b"\"time").is_some();
        let mut calls = Vec::new();
        for entry in entries(&items) {
            let shown = format!("{}:{}: {}", path.display(), entry.line, entry.text);
            assert!(!has_times || entry.at.is_some(), "no time: {shown}");
            match (entry.kind, &entry.call_id) {
                (EntryKind::ToolCall, Some(id)) => calls.push(id),
                (EntryKind::ToolResult, Some(id)) => assert!(calls.contains(&id), "{shown}"),
                _ => {}
            }
        }
    }
}

#[test]
fn a_file_that_is_still_written_is_read_as_far_as_it_goes() {
    for Sample { format, path, bytes } in samples() {
        let whole = said(&items(format, &bytes));
        // Text is read line by line, and its last entry may go on.
        let is_text = path.extension().is_some_and(|end| end == "md");
        for end in (0..bytes.len()).step_by(STEP) {
            let line = memchr::memrchr(b'\n', &bytes[..end]).map_or(0, |at| at + 1);
            let end = if is_text { line } else { end };
            let cut = items(format, &bytes[..end]);
            for (session, mut got) in said(&cut) {
                got.truncate(got.len() - usize::from(is_text));
                let is_begun = whole.get(&session).is_some_and(|whole| whole.starts_with(&got));
                assert!(is_begun, "{} cut at {end}: {session} {got:?}", path.display());
            }
            let severe = cut.iter().any(
                |it| matches!(it, TranscriptItem::Finding(it) if it.severity >= Severity::Error),
            );
            assert!(!severe, "{} cut at {end}", path.display());
        }
    }
}

#[test]
fn garbled_files_are_survived() {
    for Sample { format, bytes, .. } in samples() {
        let wrong = [b'"', b'{', b']', b'\n', 0, 0xff, b'\\'];
        for (at, byte) in (0..bytes.len()).step_by(STEP).zip(wrong.into_iter().cycle()) {
            let mut garbled = bytes.clone();
            garbled[at] = byte;
            items(format, &garbled);
        }
    }
}

#[test]
fn an_unknown_kind_of_record_is_a_finding_and_costs_nothing_else() {
    for Sample { format, path, mut bytes } in samples() {
        if path.extension().is_none_or(|end| end != "jsonl") {
            continue;
        }
        let before = said(&items(format, &bytes));
        // Claude Code and Codex add records of their own work with most releases.
        let record = match READERS.iter().any(|(known, ..)| *known == format) {
            true => {
                "{\"type\":\"of-tomorrow\",\"payload\":{\"message\":\"x\"},\"message\":[\"x\"]}\n"
            }
            false => "{\"type\":\"of-tomorrow\",\"of_tomorrow\":1}\n",
        };
        bytes.extend_from_slice(record.as_bytes());
        let after = items(format, &bytes);
        assert_eq!(said(&after), before, "{}", path.display());
        // A line of API messages or a slice is a conversation of its own, not a kind of record.
        let rule = match FOLDERS.iter().any(|(known, _)| *known == format) {
            true => "! ",
            false => "! unknown-record ",
        };
        assert!(page(&after).contains(rule), "{}: {}", path.display(), page(&after));
    }
}

#[test]
fn the_documented_example_is_the_code() {
    let read = |path| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (page, code) = (read("docs/readers.md"), read("src/transcripts/cursor/mod.rs"));
    let (_, example) = page.split_once("```rust\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    for part in example.split_inclusive("\n\n").map(str::trim_end) {
        assert!(code.contains(part), "not in the code: {part}");
    }
}
