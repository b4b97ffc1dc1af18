//! Transcripts as users have them on disk, read as a stream: bytes in, sessions, entries and
//! findings out. Raw text exists only here; [`redact_entry`] redacts it.
//!
//! `claude` and `codex` read the logs of two agents, `chat` the messages of APIs and web clients,
//! `markdown` conversations as text, `slice_doc` documents submitted by agents and hooks,
//! `session_doc` a session message by message. Every other client is a folder with a table of
//! record kinds, which `client` reads into a `conversation`. `detect` chooses the reader.
//!
//! Content never fails a read. Problems are findings with one of these rules:
//!
//! | rule | meaning |
//! |---|---|
//! | `bad-line` | a line does not fit the format; it is left out |
//! | `truncated-last-line` | the last line is still being written; it is read once it is complete |
//! | `line-too-long` | a line or value is longer than `LINE_BYTES_MAX`; it is skipped |
//! | `bad-json` | a document is broken here, or continues after its end |
//! | `invalid-utf8` | invalid bytes or escapes were replaced; reported once per file |
//! | `no-messages` | a record without a conversation |
//! | `no-message` | an element among messages that is not a message |
//! | `unknown-role` | a message with an unknown role; kept as context |
//! | `missing-entries` | a document begins after entries that were never submitted |
//! | `unknown-record` | an unknown kind of record; left out, reported once per kind |
//! | `reused-id` | two records with one id have different text; both are kept |
//! | `no-entries` | a readable file without a single entry |
//! | `changed-entries` | resubmitted entries differ from the first ones; the first are kept |
//! | `more-findings` | number of findings of the file that are not listed |

mod chat;
mod claude;
mod client;
mod client_text;
mod codex;
#[cfg(test)]
mod conformance_test;
mod conversation;
mod copilot;
mod cursor;
mod cutter;
mod detect;
mod emit;
mod fields;
mod gemini;
mod json;
mod markdown;
mod marks;
mod opencode;
mod openhands;
mod otel;
mod pi;
mod qwen;
mod raw;
mod responses;
mod session_doc;
#[cfg(test)]
mod samples;
mod slice_doc;
mod swe;
#[cfg(test)]
mod testing;
mod text;
mod tools;

pub(crate) use cutter::lossy;
pub use detect::detect;
pub(crate) use detect::{DetectError, nothing_read};
pub(crate) use raw::private_tag_finding;
pub use raw::{RawEntry, RawSession, SessionSource, TranscriptItem, redact_entry, redact_session};
pub(crate) use session_doc::read_session;
pub(crate) use slice_doc::{SliceError, parse_slice, schema_file, slice_schema};

use crate::domain::Format;
use chat::chatgpt;
use client::{Client, has_fields};
use markdown::{aider, plain, specstory};
use raw::{Input, Sink};
use serde_json::Value;
use std::io::{self, Read, Seek};

/// Clients recognised by the fields of their records, in the order of detection. A new client is a
/// folder with a [`Client`], its `mod`, an entry here and a [`Format`].
const CLIENTS: &[&Client] = &[
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

/// Format of the client that has one of its `signatures` in a value.
fn client_with(
    json: &Value,
    signatures: fn(&Client) -> &'static [&'static [&'static str]],
) -> Option<Format> {
    let is_of = |client: &&&Client| signatures(client).iter().any(|it| has_fields(json, it));
    CLIENTS.iter().find(is_of).map(|client| client.format)
}

/// Returns true if a JSON value, either one of the first lines or the whole file, is of a format.
/// Messages and texts are not recognised by a single value; see [`detect`](detect()).
type Recognise = fn(&Value) -> bool;
type ReadFile = fn(&mut dyn Input, &mut Sink<'_>) -> io::Result<()>;

/// Readers of the other formats, in the order of detection. A table of record kinds does not fit them: two passes over
/// streams that repeat each other, trees, text without records.
const READERS: &[(Format, Recognise, ReadFile)] = &[
    (Format::Slice, slice_doc::is_slice, slice_doc::read),
    (Format::Codex, codex::is_record, codex::read),
    (Format::ClaudeCode, claude::is_record, claude::read),
    (Format::Chatgpt, chatgpt::is_export, chatgpt::read),
    (Format::Openai, |_| false, chat::read),
    (Format::Anthropic, |_| false, chat::read),
    (Format::Aider, |_| false, aider::read),
    (Format::Specstory, |_| false, specstory::read),
    (Format::Plain, |_| false, plain::read),
];

/// Reads a transcript of `format` to its end, or until the sink stops.
pub fn read<R: Read + Seek>(format: Format, mut input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    if let Some(client) = CLIENTS.iter().find(|client| client.format == format) {
        return client::read(client, &mut input, sink);
    }
    match READERS.iter().find(|(known, ..)| *known == format) {
        Some((_, _, read)) => read(&mut input, sink),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_one_reader() {
        for &format in Format::ALL {
            let readers = READERS.iter().filter(|(known, ..)| *known == format);
            let clients = CLIENTS.iter().filter(|client| client.format == format);
            assert_eq!(readers.count() + clients.count(), 1, "{format}");
        }
    }
}
