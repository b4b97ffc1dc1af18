//! What a session starts with: the memory directory, and what is remembered of the conversation, as one
//! block of text within a budget. Pure, and over what is handed to it; it reads no file.
//!
//! What is in the block was said by people, tools and web pages of earlier sessions, so it is fenced: each
//! part stands between `<memory …>` and `</memory>`, which nothing inside can close, under one sentence
//! that says what that means. The same material gives the same bytes, and a part does not move what stands
//! before it: caches of prompts hit as far as nothing changed.
//!
//! | order | part |
//! |---|---|
//! | 1–4 | active context, product context, progress, patterns |
//! | 5 | the newest session, or the one that answers a query best |
//! | 6 | accepted decisions, the newest first, the others by a line each |
//! | 7 | glossary |
//! | 8–11 | the last turns, known entities, the summary of the conversation, its card |

mod assemble;
mod beside;
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

pub use assemble::{Block, Part, assemble};
pub use budget::{Budget, Kind};
pub use directory::{is_shown, material, newest_sessions};
pub use fence::{CLOSE, OPEN, PREAMBLE};
pub use material::{Decision, Document, Entry, Material, Section};
