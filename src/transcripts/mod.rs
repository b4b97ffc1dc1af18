//! Transcripts as people have them on disk, read as a stream: bytes in, sessions, entries and findings out. Raw
//! text exists only here; [`redact_entry`] redacts it.
//!
//! `claude` and `codex` read the logs of two agents, `chat` the messages of APIs and web clients, `markdown`
//! conversations written down as text, `slice_doc` what agents and hooks hand over, `session_doc` a session
//! message by message. Other clients are tables of record kinds, one folder each, read by `client` and told to
//! a `conversation`. `formats` lists the readers, `detect` chooses one.
//!
//! Content never fails a read. Problems are findings with one of these rules:
//!
//! | rule | meaning |
//! |---|---|
//! | `bad-line` | a line is not what the format has there; it is left out |
//! | `truncated-last-line` | the last line is still being written; it is read when it is whole |
//! | `line-too-long` | a line or a value is longer than [`LINE_BYTES_MAX`]; it is skipped |
//! | `bad-json` | a document is broken here, or goes on behind its end |
//! | `invalid-utf8` | invalid bytes or escapes were replaced; reported once a file |
//! | `no-messages` | a record without a conversation |
//! | `no-message` | an element among messages that is none |
//! | `unknown-role` | a message of an unknown role; kept as context |
//! | `missing-entries` | a document begins behind entries that were not handed over |
//! | `unknown-record` | a kind of record that no version was known to have; left out, reported once a kind |
//! | `reused-id` | two records with one id say different things; both are kept |
//! | `no-entries` | a readable file without a single entry |
//! | `changed-entries` | entries handed over again are not what they were; the first are kept |
//! | `more-findings` | number of findings of the file that are not listed |

mod chat;
mod claude;
mod client;
mod client_text;
mod codex;
#[cfg(test)]
mod conformance;
mod conversation;
mod copilot;
mod cursor;
mod cutter;
mod detect;
mod emit;
mod fields;
mod file_index;
mod formats;
mod gemini;
mod genai;
mod json;
mod lines;
mod markdown;
mod marks;
mod opencode;
mod openhands;
mod otel;
mod own_output;
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

pub use detect::detect;
pub(crate) use detect::{DetectError, nothing_read};
pub use formats::read;
pub(crate) use raw::private_tag_finding;
pub use raw::{RawEntry, RawSession, SessionSource, TranscriptItem, redact_entry, redact_session};
pub(crate) use session_doc::read_session;
pub(crate) use slice_doc::{SliceError, parse_slice, schema_file, slice_schema};

#[cfg(doc)]
use crate::domain::LINE_BYTES_MAX;
