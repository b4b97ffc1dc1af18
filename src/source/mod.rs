//! Transcripts as people have them on disk, read as a stream: bytes in, sessions, entries and
//! findings out. Raw text lives only here; [`seal`] takes it through the gate.

#[expect(dead_code, reason = "the readers land next")]
mod lines;
mod raw;

pub use raw::{Item, RawEntry, RawSession, Sink, seal, seal_session};

