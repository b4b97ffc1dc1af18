//! Turns a slice into claims: makes the request, reads and checks the answer, and asks again. Calls no model:
//! [`Exchange`] returns the request and consumes the reply.

mod answer;
mod exchange;

pub(crate) use answer::{SCHEMA_VERSION, TOOL_NAME, schema_files};
pub use answer::{decode, tool, validate};
pub use exchange::{Exchange, ExtractionSpec};
pub(crate) use exchange::{Extraction, Failure, FailureKind};
