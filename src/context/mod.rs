//! The block that a session starts with: the memory directory and what is remembered of the
//! conversation, within a budget. Pure; it reads no file.
//!
//! The block repeats what people, tools and web pages said in earlier sessions, so it is fenced: each
//! part is between `<memory …>` and `</memory>`, which nothing inside can close, below one sentence
//! that says what that means. The same material gives the same bytes, and a part does not move what
//! precedes it, so that prompt caches hit up to the first change.
//!
//! | order | part |
//! |---|---|
//! | 1–4 | active context, product context, progress, patterns |
//! | 5 | the newest session, or the one that answers a query best |
//! | 6 | accepted decisions, newest first, those without room by a line each |
//! | 7 | glossary |
//! | 8–11 | recent turns, known entities, summary of the conversation, its card |

mod assemble;
mod conversation;
mod budget;
mod directory;
#[cfg(test)]
mod directory_tests;
mod fence;
mod fit;
#[cfg(test)]
mod laws;
mod material;
#[cfg(test)]
mod tests;

pub(crate) use assemble::Block;
pub use assemble::assemble;
pub use budget::Budget;
pub(crate) use directory::{is_shown, material, newest_sessions};
#[cfg(test)]
pub(crate) use fence::{CLOSE, OPEN, PREAMBLE};
pub use material::{Decision, Document, Entry, Material, Section};
