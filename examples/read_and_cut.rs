//! Reads a transcript through the gate and cuts it into slices: `cargo run --example read_and_cut`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::privacy::{Gate, Pii, Report};
use annalist::slice::{Settings, Slicer};
use annalist::source::{self, Item, seal, seal_session};
use std::{error::Error, io::Cursor, ops::ControlFlow};

fn main() -> Result<(), Box<dyn Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sessions/claude-code-queue.jsonl");
    let bytes = std::fs::read(path)?;
    let format = source::detect(&bytes, Some("claude-code-queue.jsonl"))?;
    let (gate, mut report) = (Gate::new(&Pii::ALL), Report::default());
    let settings = Settings { tokens: 1_000, tool_tokens: 200 };
    let (mut slicer, mut slices) = (None, Vec::new());
    let mut ordinals = 0..;
    source::read(format, Cursor::new(bytes), &mut |item| {
        match item {
            Item::Session(raw) => {
                let session = seal_session(raw, ("example", format, path), &gate, &mut report);
                println!("{format} session {}", session.native_id.as_str());
                slicer = Some(Slicer::new(session.id, settings, Default::default()));
            }
            Item::Entry(raw) => {
                let entry = seal(raw, ordinals.next().unwrap_or_default(), &gate, &mut report);
                if entry.skip.is_none()
                    && let Some(slicer) = &mut slicer
                {
                    slices.extend(slicer.push(entry));
                }
            }
            Item::Finding(finding) => println!("{finding}"),
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
