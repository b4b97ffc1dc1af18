//! Logs that coding agents write while they work: one record a line, written twice, re-stamped and
//! injected into. They share how a record is read leniently and how calls are named.

mod json;
mod marks;
mod mend;
mod outlet;
mod stream;
mod text;
#[cfg(test)]
mod testing;
pub(super) mod claude;
pub(super) mod codex;

use super::{Item, RawEntry, RawSession, Sink, lines};
