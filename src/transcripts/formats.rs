//! Table of the formats that are read. A new format is a folder with a reader, and one entry here.

use super::chat::{self, chatgpt};
use super::json::Json;
use super::markdown::{aider, plain, specstory};
use super::raw::Sink;
use super::{claude, codex, slice_doc};
use crate::domain::Format;
use std::io::{self, Read, Seek};

/// Input of a reader.
pub(super) trait Input: Read + Seek {}

impl<T: Read + Seek> Input for T {}

/// Reader of one format.
pub(super) struct FormatReader {
    pub(super) format: Format,
    /// True if a JSON value, one of the file's first lines or the whole file, is of this format. Messages and
    /// texts are not recognised by one value: see [`detect`](super::detect()).
    pub(super) recognises: fn(&Json<'_>) -> bool,
    pub(super) read: fn(&mut dyn Input, &mut Sink<'_>) -> io::Result<()>,
}

/// Readers of all formats, in the order of detection.
pub(super) const READERS: [FormatReader; 9] = [
    FormatReader {
        format: Format::Slice,
        recognises: slice_doc::is_slice,
        read: |input, sink| slice_doc::read(input, sink),
    },
    FormatReader {
        format: Format::Codex,
        recognises: codex::is_record,
        read: |input, sink| codex::read(input, sink),
    },
    FormatReader {
        format: Format::ClaudeCode,
        recognises: claude::is_record,
        read: |input, sink| claude::read(input, sink),
    },
    FormatReader {
        format: Format::Chatgpt,
        recognises: |json| json.get("mapping").is_map() || json.get("chat_messages").is_list(),
        read: |input, sink| chatgpt::read(input, sink),
    },
    FormatReader {
        format: Format::Openai,
        recognises: |_| false,
        read: |input, sink| chat::read(input, sink),
    },
    FormatReader {
        format: Format::Anthropic,
        recognises: |_| false,
        read: |input, sink| chat::read(input, sink),
    },
    FormatReader {
        format: Format::Aider,
        recognises: |_| false,
        read: |input, sink| aider::read(input, sink),
    },
    FormatReader {
        format: Format::Specstory,
        recognises: |_| false,
        read: |input, sink| specstory::read(input, sink),
    },
    FormatReader {
        format: Format::Plain,
        recognises: |_| false,
        read: |input, sink| plain::read(input, sink),
    },
];

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
