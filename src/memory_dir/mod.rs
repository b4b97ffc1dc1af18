//! The memory directory: Markdown that people read, edit and keep in git, and that an agent starts
//! with. Here it is data, files by path; `adapters::memory_files` reads and writes the disk.
//!
//! A run: `render(facts, base, disk)`, `update(base, rendered, disk)`, write the changes, and keep `rendered.files` as
//! the base of the next run. That base also needs the files of [`initial_files`].

mod adr;
mod budget;
mod config;
mod document;
mod edit;
mod escape;
mod facts;
mod kind;
mod line;
mod lint;
mod merge;
mod name;
mod page;
mod public;
mod render;
mod retag;
mod search;
mod session;
mod tag;
mod units;
mod update;

#[cfg(test)]
mod edit_test;
#[cfg(test)]
mod laws;

pub(crate) use budget::LETTERS_PER_TOKEN;
pub use budget::Preset;
pub(crate) use config::{MemoryConfig, OutputStyle};
pub use document::Document;
pub(crate) use document::{Block, Part};
pub(crate) use escape::{inline, words_line};
pub(crate) use facts::{
    CONFLICTS_WITH, Contradiction, IN_PART_REPLACED_BY, LastRun, NOT_FOUND, PAST, Section, marks,
    past_end, section, standing, suspicion,
};
pub use facts::{Facts, SessionNote};
pub(crate) use kind::{
    ACTIVE_CONTEXT, ARCHIVE, CONFIG, DECISIONS, GLOSSARY, LESSONS, PATTERNS, PROGRESS, SESSIONS,
};
pub use kind::{Files, Initial, Kind, initial_files};
pub(crate) use lint::{Issue, fix};
pub use lint::{Linting, lint, print_text};
pub(crate) use merge::{Conflict, Merge, PersonEdit};
pub(crate) use name::*;
pub(crate) use public::{Readable, joined, readable};
pub use render::{Rendered, render};
pub(crate) use retag::with_tags_in_place;
pub(crate) use search::{HITS_MAX, Hit, LiteralQuery, literal};
pub use search::{Query, search};
pub(crate) use tag::*;
pub(crate) use units::{Moved, MovedEntry};
pub(crate) use units::{is_struck, tags_in, tags_of_memories};
pub(crate) use update::Update;
pub use update::update;
pub(crate) use update::{
    FileChange, NamedIds, entries_of, lacks_entries, shared_blocks, strike, tagged_alone, unedited,
};
