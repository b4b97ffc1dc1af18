//! From a slice to claims: the request, and how its answer is read, checked and asked for again. No model is called here:
//! [`Exchange`] returns the request and takes the reply.

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
