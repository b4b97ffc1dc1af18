//! Rules for the reader of every client, checked on the samples in its folder: `sample*.json[l]`
//! with expected output in `.txt`. Text to be read holds `say-N`, text never to be read `hidden`.

use super::CLIENTS;
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

/// Length of a session's id that is a digest.
const DIGEST_LENGTH: usize = 32;

struct Sample {
    format: Format,
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Samples of every client, from the folder named after the first word of its format.
fn samples() -> Vec<Sample> {
    let mut found = Vec::new();
    for format in CLIENTS.iter().map(|client| client.format) {
        let folder = format.name().split('-').next().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/transcripts").join(folder);
        let files = fs::read_dir(&root).unwrap().map(|file| file.unwrap().path());
        let mut paths: Vec<PathBuf> = files
            .filter(|path| path.extension().is_some_and(|end| end == "json" || end == "jsonl"))
            .collect();
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
            TranscriptItem::Session(head) if head.native_id.len() == DIGEST_LENGTH => {
                session.clear();
            }
            TranscriptItem::Session(head) => session.clone_from(&head.native_id),
            TranscriptItem::Entry(entry) => {
                let (speaker, kind) = (entry.speaker.name(), entry.kind.name());
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
        for end in (0..bytes.len()).step_by(STEP) {
            let cut = items(format, &bytes[..end]);
            for (session, got) in said(&cut) {
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
        bytes.extend_from_slice(b"{\"type\":\"of-tomorrow\",\"of_tomorrow\":1}\n");
        let after = items(format, &bytes);
        assert_eq!(said(&after), before, "{}", path.display());
        let told = page(&after).contains("! unknown-record ");
        assert!(told, "{}: {}", path.display(), page(&after));
    }
}
