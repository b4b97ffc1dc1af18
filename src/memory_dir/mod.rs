//! The memory directory: Markdown that people read, edit and keep in git, and that an agent starts with. Here
//! it is data, files by their paths; who reads and writes the disk is `edge`.
//!
//! | door | does |
//! |---|---|
//! | [`Document`] | a file as blocks that together are its bytes; nothing is thrown away |
//! | [`Edits`] | puts entries in and takes them out, and touches nothing else |
//! | [`render`] | what the directory says by itself: a function of the memories |
//! | [`merge()`], [`update`] | lays that around what people wrote, entry by entry |
//! | [`lint()`], [`fix`] | what is wrong, with its place, and what can be repaired |
//! | [`search()`], [`literal`] | entries by words; lines by letters; nothing private |
//! | [`readable`] | entries as they may be shown |
//! | [`strike`] | takes out what rests on a record that was forgotten |
//! | [`tags`], [`tokens`] | counts, budgets |
//! | [`MemoryConfig`], [`initial_files`] | settings; files as they begin |
//!
//! A run: `render(facts, base, disk)`, `update(base, rendered, disk)`, write the changes, and keep
//! `rendered.files` as the base of the next run. Files of [`initial_files`] belong into that base too.

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
mod readable;
mod record_meta;
mod search;
mod strike;
mod tag;
mod tally;
mod template;
mod writer;
#[cfg(test)]
mod laws;

pub use budget::{LETTERS_PER_TOKEN, Preset, tokens_of};
pub use config::{AUTO_SYNC_PERCENT, HARD_BLOCK_PERCENT, MemoryConfig, OutputStyle, WINDOW_TOKENS};
pub use document::{Block, Document, Part, Shape};
pub use edit::{Edited, Edits, NewEntry, Place};
pub use escape::words_line;
pub use kind::*;
pub use lint::{
    Issue, Linting, RULES, Rule, fix, fix_rule, lint, print_json, print_sarif, print_text,
};
pub use merge::{Conflict, FileChange, Merged, PersonEdit, Update, merge, update};
pub use name::*;
pub use project::{
    COMPLETED_MAX, Facts, RECENT_DECISIONS_MAX, Rendered, SessionNote, Term, render,
};
pub use readable::{Readable, readable};
pub use record_meta::{RecordMeta, Status, meta};
pub use search::{Found, HITS_MAX, Hit, LINES_AROUND, Literal, Query, literal, search};
pub use strike::{records_named, strike};
pub use tag::*;
pub use tally::{TagCounts, TokenRow, TokenTable, tags, tokens};
pub use template::{Initial, initial_files};

use std::collections::BTreeMap;

/// The files of a directory by their paths, which are relative to it and have `/` between names.
pub type Files = BTreeMap<String, String>;
