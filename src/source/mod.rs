//! Transcripts as people have them on disk, read as a stream: bytes in, sessions, entries and
//! findings out. Raw text lives only here; [`seal`] takes it through the gate.
//!
//! Who reads what: `claude` and `codex` the logs of two agents, `chat` the messages of APIs and web
//! clients, `markdown` what was written down as text, `slice_doc` what agents and hooks hand over,
//! `session_doc` a session message by message; `detect` says which it is. Beside them stands what they share: lines, records and values cut out
//! of a file, JSON and its repair, the way out.
//!
//! Content never fails a read. What is wrong with it is a finding with one of these rules:
//!
//! | rule | means |
//! |---|---|
//! | `bad-line` | a line is not what the format has there; it is left out |
//! | `truncated-last-line` | the last line is still being written; it is read when it is whole |
//! | `line-too-long` | a line or a value is longer than [`LINE_BYTES_MAX`]; it is passed over |
//! | `bad-json` | a document is broken here, or goes on behind its end |
//! | `invalid-utf8` | bytes or escapes that are no characters were replaced; told once a file |
//! | `no-messages` | a record in which no conversation was found |
//! | `no-message` | an element among messages that is none |
//! | `unknown-role` | a message of a role that nobody knows; kept as context |
//! | `missing-entries` | a document begins behind entries that were not handed over |
//! | `changed-entries` | entries handed over again are not what they were; the first stand |
//! | `more-findings` | how many findings of the file are not listed |

mod chat;
mod claude;
mod codex;
mod cutter;
mod detect;
mod emit;
mod fields;
mod json;
mod layout;
mod lines;
mod markdown;
mod marks;
mod outcome;
mod raw;
mod records;
mod repair;
mod said;
mod session_doc;
#[cfg(test)]
mod samples;
mod slice_doc;
#[cfg(test)]
mod testing;
mod text;
mod tools;

pub use detect::{Unknown, detect};
pub use raw::{Item, RawEntry, RawSession, Sink, mention, seal, seal_session};
pub use session_doc::{RawMessage, RawSessionDocument, read_session};
pub use slice_doc::{
    BadSlice, HANDED_ENTRIES_MAX, Handed, Moment, SliceDocument, SliceEntry, handed, schema_file,
};

use crate::domain::Format;
#[cfg(doc)]
use crate::domain::LINE_BYTES_MAX;
use std::io::{self, Read, Seek};

/// Reads a transcript of `format` from its beginning to its end, or until the sink says stop. Errors
/// are those of reading alone; what is wrong with the content is a finding.
pub fn read<R: Read + Seek>(format: Format, input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    match format {
        Format::ClaudeCode => claude::read(input, sink),
        Format::Codex => codex::read(input, sink),
        Format::Openai => chat::openai::read(input, sink),
        Format::Anthropic => chat::anthropic::read(input, sink),
        Format::Chatgpt => chat::chatgpt::read(input, sink),
        Format::Aider => markdown::aider::read(input, sink),
        Format::Specstory => markdown::specstory::read(input, sink),
        Format::Plain => markdown::plain::read(input, sink),
        Format::Slice => slice_doc::read(input, sink),
    }
}
