//! Transcripts as people have them on disk, read as a stream: bytes in, sessions, entries and
//! findings out. Raw text lives only here; [`seal`] takes it through the gate.

mod chat;
mod claude;
mod codex;
mod cutter;
mod detect;
mod emit;
mod fields;
mod json;
mod lines;
mod markdown;
mod marks;
mod outcome;
mod raw;
mod records;
mod repair;
mod said;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod testing;
mod text;
mod tools;

pub use detect::{Unknown, detect};
pub use raw::{Item, RawEntry, RawSession, Sink, seal, seal_session};

use crate::domain::Format;
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
    }
}
