//! Slices as agents, hooks and other machines hand them over: one JSON object with what was said since
//! the last one, alone or one a line of a file. Its shape is published as `schemas/slice.v1.json`.
//!
//! A document is taken whole or not at all: what is wrong with it is one line with the place, what is
//! expected there and the nearest name that is known, and never words of the document. Only what no
//! parser reads though its writer meant no harm is repaired: bytes and escapes that are no characters.

mod document;
mod explain;
mod handed;
mod reader;
mod schema;
#[cfg(test)]
mod tests;

pub use document::{HANDED_ENTRIES_MAX, Moment, SliceDocument, SliceEntry};
pub use handed::{BadSlice, Handed, handed};
pub(super) use reader::read;
pub use schema::schema_file;
