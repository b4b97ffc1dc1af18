//! Tables of the supported formats. A new client is a folder with a [`Client`], and one entry here.

use super::chat::{self, chatgpt};
use super::client::{self, Client, has_fields};
use super::markdown::{aider, plain, specstory};
use super::raw::{Input, Sink};
use super::{
    claude, codex, copilot, cursor, gemini, opencode, openhands, otel, pi, qwen, responses,
    slice_doc, swe,
};
use crate::domain::Format;
use serde_json::Value;
use std::io::{self, Read, Seek};

pub(super) struct FormatReader {
    pub(super) format: Format,
    /// True if a JSON value, either one of the first lines or the whole file, is of this format.
    /// Messages and texts are not recognised by a single value; see [`detect`](super::detect()).
    pub(super) recognises: fn(&Value) -> bool,
    pub(super) read: fn(&mut dyn Input, &mut Sink<'_>) -> io::Result<()>,
}

/// Clients recognised by the fields of their records, in the order of detection.
pub(super) const CLIENTS: [&Client; 10] = [
    &gemini::CLIENT,
    &qwen::CLIENT,
    &pi::CLIENT,
    &opencode::CLIENT,
    &copilot::CLIENT,
    &openhands::CLIENT,
    &swe::CLIENT,
    &responses::CLIENT,
    &otel::CLIENT,
    &cursor::CLIENT,
];

pub(super) fn client_of_line(json: &Value) -> Option<Format> {
    client_with(json, |client| client.lines)
}

/// Returns the format of a client's whole file, or of the first element of its list.
pub(super) fn client_of_document(json: &Value) -> Option<Format> {
    client_with(json, |client| client.documents)
}

type Signatures = &'static [&'static [&'static str]];

fn client_with(json: &Value, signatures: fn(&Client) -> Signatures) -> Option<Format> {
    let is_of = |client: &&&Client| signatures(client).iter().any(|it| has_fields(json, it));
    CLIENTS.iter().find(is_of).map(|client| client.format)
}

/// Readers of the other formats, in the order of detection.
pub(super) const READERS: [FormatReader; 9] = [
    reader(Format::Slice, slice_doc::is_slice, slice_doc::read),
    reader(Format::Codex, codex::is_record, codex::read),
    reader(Format::ClaudeCode, claude::is_record, claude::read),
    reader(Format::Chatgpt, chatgpt::is_export, chatgpt::read),
    reader(Format::Openai, |_| false, chat::read),
    reader(Format::Anthropic, |_| false, chat::read),
    reader(Format::Aider, |_| false, aider::read),
    reader(Format::Specstory, |_| false, specstory::read),
    reader(Format::Plain, |_| false, plain::read),
];

const fn reader(
    format: Format,
    recognises: fn(&Value) -> bool,
    read: fn(&mut dyn Input, &mut Sink<'_>) -> io::Result<()>,
) -> FormatReader {
    FormatReader { format, recognises, read }
}

/// Reads a transcript of `format` to its end, or until the sink stops.
pub fn read<R: Read + Seek>(format: Format, mut input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    if let Some(client) = CLIENTS.iter().find(|client| client.format == format) {
        return client::read(client, &mut input, sink);
    }
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
            let clients = CLIENTS.iter().filter(|client| client.format == format);
            assert_eq!(readers.count() + clients.count(), 1, "{format}");
        }
    }
}
