//! Transcripts as users have them on disk, read as a stream: bytes in, sessions, entries and
//! findings out. Raw text exists only here; [`redact_entry`] redacts it.
//!
//! `claude` and `codex` read the logs of two agents, `chat` the messages of APIs and web clients,
//! `markdown` conversations as text, `slice_doc` documents submitted by agents and hooks,
//! `session_doc` a session message by message. Every other client is a folder with a table of
//! record kinds, which `client` reads into a `conversation`. `formats` lists the readers, `detect`
//! chooses one.
//!
//! Content never fails a read. Problems are findings with one of these rules:
//!
//! | rule | meaning |
//! |---|---|
//! | `bad-line` | a line does not fit the format; it is left out |
//! | `truncated-last-line` | the last line is still being written; it is read once it is complete |
//! | `line-too-long` | a line or value is longer than [`LINE_BYTES_MAX`]; it is skipped |
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
mod formats;
mod gemini;
mod json;
mod lines;
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

pub use detect::detect;
pub(crate) use detect::{DetectError, nothing_read};
pub use formats::read;
pub(crate) use raw::private_tag_finding;
pub use raw::{RawEntry, RawSession, SessionSource, TranscriptItem, redact_entry, redact_session};
pub(crate) use session_doc::read_session;
pub(crate) use slice_doc::{SliceError, parse_slice, schema_file, slice_schema};

#[cfg(doc)]
use crate::domain::LINE_BYTES_MAX;
