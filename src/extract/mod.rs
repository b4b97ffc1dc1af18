//! From a slice to claims: what a model is asked, how its answer is read, checked and asked for
//! again. No model is called here: [`Exchange`] says what to ask and is handed the reply.

mod asking;
mod exchange;
mod schema;
mod validate;

pub use crate::tool::Repair;
pub use asking::{Asking, REPLY_TOKENS_DEFAULT};
pub use exchange::{
    CUTS_MAX, Exchange, Extraction, Failure, FailureKind, REMINDERS_MAX, REPAIRS_MAX, Step,
};
pub use schema::{SCHEMA_VERSION, TOOL_NAME, full, schema_files, tool, wire};
pub use validate::{Checked, decode, validate};
