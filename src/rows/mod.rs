//! JSON rows of records, memories and hits, shared by the commands and the API.

mod hit;
mod memory;
mod record;

pub(crate) use hit::SearchRow;
pub(crate) use memory::MemoryRow;
pub(crate) use record::RecordRow;
