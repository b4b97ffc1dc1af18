//! Table of the formats that are read. A new format is a folder with a reader, and one entry here.

use super::chat::{self, chatgpt};
use super::markdown::{aider, plain, specstory};
use super::raw::Sink;
use super::{claude, codex, slice_doc};
use crate::domain::Format;
use serde_json::Value;
use std::io::{self, Read, Seek};

/// Input of a reader.
pub(super) trait Input: Read + Seek {}

impl<T: Read + Seek> Input for T {}

pub(super) struct FormatReader {
    pub(super) format: Format,
    /// True if a JSON value, one of the file's first lines or the whole file, is of this format. Messages and
    /// texts are not recognised by one value: see [`detect`](super::detect()).
    pub(super) recognises: fn(&Value) -> bool,
    pub(super) read: fn(&mut dyn Input, &mut Sink<'_>) -> io::Result<()>,
}

/// Readers of all formats, in the order of detection.
pub(super) const READERS: [FormatReader; 9] = [
    reader(Format::Slice, slice_doc::is_slice, |input, sink| slice_doc::read(input, sink)),
    reader(Format::Codex, codex::is_record, |input, sink| codex::read(input, sink)),
    reader(Format::ClaudeCode, claude::is_record, |input, sink| claude::read(input, sink)),
    reader(Format::Chatgpt, chatgpt::is_export, |input, sink| chatgpt::read(input, sink)),
    reader(Format::Openai, |_| false, |input, sink| chat::read(input, sink)),
    reader(Format::Anthropic, |_| false, |input, sink| chat::read(input, sink)),
    reader(Format::Aider, |_| false, |input, sink| aider::read(input, sink)),
    reader(Format::Specstory, |_| false, |input, sink| specstory::read(input, sink)),
    reader(Format::Plain, |_| false, |input, sink| plain::read(input, sink)),
];

const fn reader(
    format: Format,
    recognises: fn(&Value) -> bool,
    read: fn(&mut dyn Input, &mut Sink<'_>) -> io::Result<()>,
) -> FormatReader {
    FormatReader { format, recognises, read }
}

/// Reads a transcript of `format` until its end, or until the sink stops.
pub fn read<R: Read + Seek>(format: Format, mut input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    match READERS.iter().find(|reader| reader.format == format) {
        Some(reader) => (reader.read)(&mut input, sink),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_one_reader() {
        for &format in Format::ALL {
            let readers = READERS.iter().filter(|reader| reader.format == format);
            assert_eq!(readers.count(), 1, "{format}");
        }
    }
}
