//! Records, memories and hits as the commands and the API answer them in JSON.

mod hit;
mod memory;
mod record;

pub(crate) use hit::SearchRow;
pub(crate) use memory::MemoryRow;
pub(crate) use record::RecordRow;
