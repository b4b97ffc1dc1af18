//! Reads transcripts on a thread of its own, in order, and hands over what the rest works on. The
//! channel is short, so that reading never runs far ahead of asking.

mod copies;
mod current;
mod file;

pub(super) use copies::mark_of;

use super::tally::Tally;
use crate::domain::{Entry, Finding, Format, Session, Timestamp};
use crate::privacy::{Gate, Report};
use crate::slice::{Cutting, Settings};
use copies::Copies;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What is read, and how.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) format: Option<Format>,
    pub(super) namespace: Option<String>,
    pub(super) since: Option<Timestamp>,
    pub(super) sessions_max: Option<u64>,
    pub(super) slice: Settings,
    /// Counts what is skipped here, since no store does.
    pub(super) dry_run: bool,
}

/// What the reader hands over, session by session.
#[derive(Debug)]
pub(super) enum Work {
    /// A session begins.
    Begin(Arc<Session>),
    /// Entries of it that no model reads.
    Skipped(Vec<Entry>),
    /// The next slice of it.
    Slice(Box<Cutting>),
    /// It ends, with so many entries.
    End(Box<Ended>),
}

/// How a session ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) entries: u32,
    pub(super) findings: Vec<Finding>,
    pub(super) masked: Report,
    /// Whether it was read to its end.
    pub(super) whole: bool,
}

/// What is known of a session from earlier readings.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// How many entries it had each time it was read to its end.
    pub(super) ends: BTreeSet<u32>,
    /// Its entries as [`mark_of`] sees them, if it was read from another file.
    pub(super) elsewhere: Option<Vec<u64>>,
}

/// Takes work; says when to stop.
pub(super) trait Desk {
    fn before(&mut self, session: &Session) -> Before;
    fn hand(&mut self, work: Work) -> ControlFlow<()>;
}

/// Reads files one after another.
pub(super) struct Reader<'a, D> {
    reading: &'a Reading,
    gate: &'a Gate,
    tally: &'a Tally,
    desk: D,
    copies: Copies,
}

impl<'a, D: Desk> Reader<'a, D> {
    pub(super) fn new(reading: &'a Reading, gate: &'a Gate, tally: &'a Tally, desk: D) -> Self {
        Reader { reading, gate, tally, desk, copies: Copies::default() }
    }

    /// What the work was handed to.
    pub(super) fn into_desk(self) -> D {
        self.desk
    }
}
