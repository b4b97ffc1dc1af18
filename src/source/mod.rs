//! Transcripts as people have them on disk, read as a stream: bytes in, sessions, entries and
//! findings out. Raw text lives only here; [`seal`] takes it through the gate.

mod aider;
mod anthropic;
mod calls;
mod chatgpt;
mod agent;
mod detect;
mod document;
mod emit;
mod fence;
mod json;
mod lines;
mod log;
mod messages;
mod openai;
mod outcome;
mod parts;
mod peek;
mod person;
mod plain;
mod raw;
mod record;
mod repair;
mod shape;
mod specstory;
mod stream;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod testing;
mod toolbox;
mod tree;

pub use detect::{Unknown, detect};
pub use raw::{Item, RawEntry, RawSession, Sink, seal, seal_session};

use crate::domain::Format;
use std::io::{self, Read, Seek};

/// Reads a transcript of `format` from its beginning to its end, or until the sink says stop. Errors
/// are those of reading alone; what is wrong with the content is a finding.
pub fn read<R: Read + Seek>(format: Format, input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    match format {
        Format::ClaudeCode => agent::claude::read(input, sink),
        Format::Codex => agent::codex::read(input, sink),
        Format::Openai => openai::read(input, sink),
        Format::Anthropic => anthropic::read(input, sink),
        Format::Chatgpt => chatgpt::read(input, sink),
        Format::Aider => aider::read(input, sink),
        Format::Specstory => specstory::read(input, sink),
        Format::Plain => plain::read(input, sink),
    }
}
