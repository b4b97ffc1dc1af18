//! Claude Code's session files: one record a line, a tree that is written in file order. A first
//! pass finds duplicates, rewound branches and the fate of queued prompts; the second emits.

mod calls;
mod index;
mod reader;
mod record;
mod results;
mod said;
mod tree;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use super::Sink;
use super::emit::Emit;
use super::fields::Content;
use super::lines::Line;
use super::records;
use super::repair::parse;
use reader::Reader;
use record::{Head, Record};
use std::io::{self, Read, Seek};

/// What a line should have been.
const EXPECTED: &str = "expected a JSON object of a session; line left out";
/// The list that the export of Claude Code for web keeps its records in.
const WEB_LIST: &str = "loglines";

/// Reads a session of Claude Code: its JSONL file, a sub-agent's, the output of `stream-json`, or
/// the single object that the web client exports.
///
/// # Errors
///
/// Only what `input` itself returns; content gives findings.
pub(super) fn read<R: Read + Seek>(mut input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    let list = records::is_list(&mut input, WEB_LIST)?.then_some(WEB_LIST);
    let mut builder = index::Builder::default();
    records::pass(&mut input, list, |line| {
        parse(&line.text, |json| {
            let head: Head<'_> = serde_json::from_str(json)?;
            builder.add(line.number, &head, &line.text);
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
    reader.close();
    Ok(())
}

/// Emits what a line holds.
fn second(reader: &mut Reader<'_, '_>, line: &Line<'_>) {
    let skipped = reader.is_passed(line.number) || line.text.trim().is_empty();
    if !reader.emit.takes(line) || skipped {
        return;
    }
    let parsed = parse(&line.text, |json| {
        let record: Record<'_> = serde_json::from_str(json)?;
        reader.record(line.number, record);
        Ok(())
    });
    reader.emit.parsed(line, parsed, EXPECTED);
}

/// Whether a user record answers a tool.
fn holds_result(content: &Content<'_>) -> bool {
    match content {
        Content::Blocks(blocks) => blocks.iter().any(|block| block.kind.is("tool_result")),
        Content::None | Content::Text(_) => false,
    }
}
