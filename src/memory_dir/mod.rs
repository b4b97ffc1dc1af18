//! The memory directory: Markdown that people read, edit and keep in git, and that an agent starts with.

mod budget;
mod config;
mod document;
mod edit;
#[cfg(test)]
mod edit_tests;
mod escape;
mod kind;
mod line;
mod links;
mod lint;
mod merge;
mod name;
mod parse;
mod project;
mod public;
mod record_meta;
mod search;
mod tag;
mod tally;
mod template;
#[cfg(test)]
mod laws;

pub use budget::{LETTERS_PER_TOKEN, Preset, tokens_of};
pub use config::{AUTO_SYNC_PERCENT, HARD_BLOCK_PERCENT, MemoryConfig, OutputStyle, WINDOW_TOKENS};
pub use document::{Block, Document, Part, Shape};
pub use edit::{Edits, NewEntry, Place};
pub use kind::*;
pub use lint::{
    Issue, Linting, RULES, Rule, fix, fix_rule, lint, print_json, print_sarif, print_text,
};
pub use merge::{Conflict, FileChange, Merged, PersonEdit, Update, merge, update};
pub use name::*;
pub use project::{
    COMPLETED_MAX, Facts, RECENT_DECISIONS_MAX, Rendered, SessionNote, Term, render,
};
pub use record_meta::{RecordMeta, Status, meta};
pub use search::{Found, HITS_MAX, Hit, LINES_AROUND, Literal, Query, literal, search};
pub use tag::*;
pub use tally::{TagCounts, TokenRow, TokenTable, tags, tokens};
pub use template::{Initial, initial_files};

use std::collections::BTreeMap;

/// The files of a directory by their paths, which are relative to it and have `/` between names.
pub type Files = BTreeMap<String, String>;
