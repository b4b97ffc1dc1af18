//! Law: every reader takes any bytes to the end; entries follow a session, lines are those of the
//! file, and a reader that is told to stop has said what it would have said.
#![no_main]

use annalist::{Format, TranscriptItem, detect_format, read_transcript};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::ops::ControlFlow;

/// Findings that are kept of one file.
const FINDINGS_MAX: usize = 100;

/// The first `most` items.
fn items(format: Format, bytes: &[u8], most: usize) -> Vec<TranscriptItem> {
    let mut items = Vec::new();
    let mut sink = |item| {
        assert!(items.len() < most, "{format} went on after it was told to stop");
        items.push(item);
        if items.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    read_transcript(format, Cursor::new(bytes), &mut sink).expect("memory can be read");
    items
}

fuzz_target!(|input: (u8, &[u8])| {
    let (stop, bytes) = input;
    let guess = detect_format(bytes, None);
    assert_eq!(guess, detect_format(bytes, None));
    // Lines of text, or elements of an array: neither outnumbers the bytes.
    let lines_max = bytes.len() as u32 + 1;
    for &format in Format::ALL {
        let all = items(format, bytes, usize::MAX);
        let (mut begun, mut findings) = (false, 0);
        for item in &all {
            match item {
                TranscriptItem::Session(session) => {
                    begun = true;
                    assert!(!session.native_id.is_empty(), "{format}: a session has a name");
                }
                TranscriptItem::Entry(entry) => {
                    assert!(begun, "{format}: an entry before any session");
                    assert!((1..=lines_max).contains(&entry.line), "{format}: {}", entry.line);
                }
                TranscriptItem::Finding(finding) => {
                    assert!(finding.line <= lines_max, "{format}: {finding}");
                    findings += 1;
                }
            }
        }
        // Two more close a file: what was repaired, and how many others there were.
        assert!(findings <= FINDINGS_MAX + 2, "{format}: {findings} findings");
        assert!(all.len() <= 8 * bytes.len() + 8, "{format}: {} items", all.len());
        let most = usize::from(stop) % (all.len() + 1);
        if most > 0 {
            assert_eq!(items(format, bytes, most), all[..most], "{format}: the same up to there");
        }
    }
});
