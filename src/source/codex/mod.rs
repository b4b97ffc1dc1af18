//! Codex's rollouts: one record a line, everything said twice. A first pass finds which stream to
//! read, how calls ended and what is copied from another session; the second emits.

mod calls;
mod fork;
mod index;
mod outputs;
mod reader;
mod record;
mod review;
mod said;
#[cfg(test)]
mod tests;

use super::Sink;
use super::emit::Emit;
use super::lines::Line;
use super::records;
use super::repair::parse;
use reader::Reader;
use record::{Envelope, Head, Payload};
use std::io::{self, Read, Seek};

/// What a line should have been.
const EXPECTED: &str = "expected a JSON object of a rollout; line left out";
/// The list that the first clients, which wrote one JSON object, kept their items in.
const OLD_LIST: &str = "items";

/// Reads a rollout of Codex, with or without envelopes.
///
/// # Errors
///
/// Only what `input` itself returns; content gives findings.
pub(super) fn read<R: Read + Seek>(mut input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    let list = records::is_list(&mut input, OLD_LIST)?.then_some(OLD_LIST);
    let mut builder = index::Builder::default();
    records::pass(&mut input, list, |line| {
        parse(&line.text, |json| {
            let mut envelope: Envelope<'_, Head<'_>> = serde_json::from_str(json)?;
            let head = envelope.open(json)?;
            builder.add(line.number, &envelope, &head, &line.text);
            Ok(())
        });
        true
    })?;
    let index = builder.finish();
    let mut emit = Emit::new(sink);
    emit.session(index.session.clone());
    let mut reader = Reader::new(index, emit);
    let cut = records::pass(&mut input, list, |line| {
        second(&mut reader, &line);
        !reader.emit.stopped()
    })?;
    reader.emit.cut(cut, 0);
    reader.emit.finish();
    Ok(())
}

/// Emits what a line holds.
fn second(reader: &mut Reader<'_, '_>, line: &Line<'_>) {
    if !reader.emit.takes(line) || line.text.trim().is_empty() {
        return;
    }
    let parsed = parse(&line.text, |json| {
        let mut envelope: Envelope<'_, Payload<'_>> = serde_json::from_str(json)?;
        if reader::is_passed(&envelope) {
            return Ok(());
        }
        let payload = envelope.open(json)?;
        reader.record(line.number, &envelope, payload);
        Ok(())
    });
    reader.emit.parsed(line, parsed, EXPECTED);
}
