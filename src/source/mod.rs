//! Transcripts as people have them on disk, read as a stream: bytes in, sessions, entries and
//! findings out. Raw text lives only here; [`seal`] takes it through the gate.

mod json;
mod lines;
mod marks;
mod outlet;
mod raw;
mod stream;
mod text;
#[cfg(test)]
mod testing;
pub mod claude;
pub mod codex;

pub use raw::{Item, RawEntry, RawSession, Sink, seal, seal_session};

