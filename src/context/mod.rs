//! The block that a session starts with: the memory directory and what is remembered of the
//! conversation, within a budget. Pure; it reads no file.
//!
//! The block repeats what people, tools and web pages said in earlier sessions, so it is fenced: it is between
//! `<memory …>` and `</memory>`, which nothing inside can close, after one sentence that explains the fence. The same
//! material gives the same bytes, and the conversation does not move what the directory says, so that prompt caches
//! hit.
//!
//! One fence holds the directory: rules, the project, decisions, contradictions, current focus, open requests, open
//! questions, blockers, lessons, answers to a query, terms. After it, each part of the conversation has its own fence:
//! recent turns, known entities, summary, card.

mod assemble;
mod budget;
mod directory;
#[cfg(test)]
mod directory_tests;
mod fence;
mod fit;
#[cfg(test)]
mod laws;
mod material;
mod publish;
#[cfg(test)]
mod tests;

pub use assemble::assemble;
pub(crate) use assemble::{Block, Part, fenced};
pub use budget::{Budget, Kind};
pub(crate) use directory::{material, shown_files};
#[cfg(test)]
pub(crate) use fence::{CLOSE, OPEN, PREAMBLE};
pub use material::{Entry, Group, Material, Section};
pub(crate) use publish::{for_agents, with_block};
