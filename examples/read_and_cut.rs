//! Reads a transcript through the gate and cuts it into slices: `cargo run --example read_and_cut`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{Gate, Pii, RedactionReport};
use annalist::{
    SessionSource, TranscriptItem, detect_format, read_transcript, redact_entry, redact_session,
};
use annalist::{SliceSettings, Slicer};
use std::{error::Error, io::Cursor, ops::ControlFlow};

fn main() -> Result<(), Box<dyn Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sessions/claude-code-queue.jsonl");
    let bytes = std::fs::read(path)?;
    let format = detect_format(&bytes, Some("claude-code-queue.jsonl"))?;
    let (gate, mut report) = (Gate::new(&Pii::ALL), RedactionReport::default());
    let settings = SliceSettings { tokens: 1_000, tool_tokens: 200 };
    let (mut slicer, mut slices) = (None, Vec::new());
    let mut ordinals = 0..;
    read_transcript(format, Cursor::new(bytes), &mut |item| {
        match item {
            TranscriptItem::Session(raw) => {
                let source = SessionSource { namespace: "example", format, path };
                let session = redact_session(raw, source, &gate, &mut report);
                println!("{format} session {}", session.native_id.as_str());
                slicer = Some(Slicer::new(session.id, settings, Default::default()));
            }
            TranscriptItem::Entry(raw) => {
                let entry =
                    redact_entry(raw, ordinals.next().unwrap_or_default(), &gate, &mut report);
                if entry.skip.is_none()
                    && let Some(slicer) = &mut slicer
                {
                    slices.extend(slicer.push(entry));
                }
            }
            TranscriptItem::Finding(finding) => println!("{finding}"),
        }
        ControlFlow::Continue(())
    })?;
    slices.extend(slicer.iter_mut().flat_map(Slicer::finish));
    for slice in slices.iter().map(|cutting| &cutting.slice) {
        let (first, last) = slice.range();
        let line = slice.text.as_str().lines().next().unwrap_or_default();
        println!("entries {first}–{last}, about {} tokens: {line:.60}…", slice.tokens);
    }
    println!("masked: {:?}", report.counts);
    Ok(())
}
