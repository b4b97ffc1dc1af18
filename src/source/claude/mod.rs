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
mod tests;

use super::Sink;
use super::json::{Content, Parsed, parse};
use super::lines::Lines;
use super::outlet::Outlet;
use super::stream;
use crate::domain::LINE_BYTES_MAX;
use reader::Reader;
use record::{Head, Record};
use std::io::{self, Read, Seek, SeekFrom};

/// What a line should have been.
const EXPECTED: &str = "a JSON object of a session";
/// The list that the export of Claude Code for web keeps its records in.
const WEB_LIST: &str = "loglines";

/// Reads a session of Claude Code: its JSONL file, a sub-agent's, the output of `stream-json`, or
/// the single object that the web client exports.
///
/// # Errors
///
/// Only what `input` itself returns; content gives findings.
pub fn read<R: Read + Seek>(mut input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    let list = stream::is_list(&mut input, WEB_LIST)?;
    let mut builder = index::Builder::default();
    let mut first = |line: u32, text: &str| {
        parse(text, |json| {
            let head: Head<'_> = serde_json::from_str(json)?;
            builder.add(line, &head, text);
            Ok(())
        });
    };
    rewind(&mut input)?;
    if list {
        stream::each(&mut input, WEB_LIST, |number, text| {
            first(number, text);
            true
        })?;
    } else {
        let mut lines = Lines::new(&mut input);
        while let Some(line) = lines.next()? {
            first(line.number, &line.text);
        }
    }
    let index = builder.finish();
    let mut outlet = Outlet::new(sink);
    outlet.session(index.session.clone());
    let mut reader = Reader::new(index, outlet);
    rewind(&mut input)?;
    if list {
        let read = stream::each(&mut input, WEB_LIST, |number, text| {
            second(&mut reader, number, text, true);
            !reader.outlet.stopped()
        })?;
        if !read {
            reader.outlet.unreadable(0, true, "one JSON object with a list of records");
        }
    } else {
        let mut lines = Lines::new(&mut input);
        while let Some(line) = lines.next()? {
            if reader.outlet.stopped() {
                break;
            }
            if line.repaired {
                reader.outlet.repaired(line.number);
            }
            match line.too_long {
                true => reader.outlet.too_long(line.number, LINE_BYTES_MAX),
                false => second(&mut reader, line.number, &line.text, line.complete),
            }
        }
    }
    reader.close();
    Ok(())
}

fn rewind(input: &mut impl Seek) -> io::Result<()> {
    input.seek(SeekFrom::Start(0)).map(drop)
}

/// Emits what a line holds.
fn second(reader: &mut Reader<'_, '_>, line: u32, text: &str, complete: bool) {
    if reader.is_passed(line) || text.trim().is_empty() {
        return;
    }
    let parsed = parse(text, |json| {
        let record: Record<'_> = serde_json::from_str(json)?;
        reader.record(line, record);
        Ok(())
    });
    match parsed {
        Parsed::AsIs => {}
        Parsed::Mended => reader.outlet.repaired(line),
        Parsed::Not => reader.outlet.unreadable(line, complete, EXPECTED),
    }
}

/// Whether a user record answers a tool.
fn holds_result(content: &Content<'_>) -> bool {
    match content {
        Content::Blocks(blocks) => blocks.iter().any(|block| block.kind.is("tool_result")),
        Content::None | Content::Text(_) => false,
    }
}
