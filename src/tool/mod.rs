//! What every tool needs that a model is to call: two schemas from one type, its arguments read with
//! leniency that leaves a trace, an earlier answer shown again. Knows no tool by name.

mod decode;
mod echo;
mod schema;

pub use decode::{Repair, decode};
pub use echo::echo;
pub use schema::{full_of, published_of, schema_files_of, wire_of};

#[cfg(test)]
pub(crate) use decode::answers;
#[cfg(test)]
pub(crate) use schema::strict::check_strict;
