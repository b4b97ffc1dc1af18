//! annalist turns what agents and people said into memory that can be trusted: transcripts in,
//! proven records out. `ARCHITECTURE.md` shows the line; modules are listed from the ground up.

pub mod privacy;
pub mod domain;
pub mod prompt;
pub mod entity;
mod words;
pub mod tool;
pub mod source;
pub mod slice;
pub mod extract;
pub mod grounding;
pub mod consolidate;
pub mod conversation;
pub mod dialog;
pub mod card;
pub mod hook;
pub mod score;
pub mod memory_dir;
pub mod edge;
pub mod context;
pub mod config;
pub mod worker;
pub mod cli;
#[cfg(test)]
mod testing;
