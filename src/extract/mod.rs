//! Turns a slice into claims: makes the request, reads and checks the answer, and asks again. Calls no model:
//! [`Exchange`] returns the request and consumes the reply.

mod answer;
mod exchange;
mod spec;
mod validate;

pub use exchange::Exchange;
pub(crate) use exchange::{Extraction, Failure, Step};
pub(crate) use spec::SCHEMA_VERSION;
pub use spec::{ExtractionSpec, tool};
pub(crate) use spec::{TOOL_NAME, schema_files};
pub use validate::{decode, validate};
