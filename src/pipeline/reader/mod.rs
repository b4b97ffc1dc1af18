//! Reads transcripts on a thread of its own, in order, and hands over what the rest works on. The
//! channel is short, so that reading never runs far ahead of asking.

mod copies;
mod current;
mod file;

pub(super) use copies::{mark, mark_of, record_key};
pub(super) use current::{namespace_of, namespace_of_folder};
pub(super) use file::Bytes;

use super::preamble::{Preamble, PreambleSettings};
use super::tally::Tally;
use crate::domain::{Entry, Finding, Format, Session, Timestamp};
use crate::memory_card::Card;
use crate::privacy::{Gate, Redacted, Report};
use crate::slicing::{Cutting, SliceSettings};
use copies::Copies;
use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// How often a session may turn out to be another conversation than the one of its name, name after
/// name: each time a whole conversation was put in the place of another.
const APART_MAX: usize = 16;

/// What is read, and how.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) format: Option<Format>,
    pub(super) namespace: Option<String>,
    pub(super) since: Option<Timestamp>,
    pub(super) sessions_max: Option<u64>,
    pub(super) slice: SliceSettings,
    /// The name of the one conversation in a file, instead of the one that it has there.
    pub(super) session: Option<String>,
    /// What slices are told of the entries before them; none if nobody asks about them.
    pub(super) preamble: Option<Arc<PreambleSettings>>,
    /// Whether memory cards are made.
    pub(super) cards: bool,
    /// Whether sessions are read again that were forgotten.
    pub(super) also_forgotten: bool,
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
    /// The next slice of it, and what its prompt is told of the entries before it.
    Slice(Box<Cutting>, Option<Redacted>),
    /// All of it is a copy of other sessions: nothing of it is to be kept.
    Copy,
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
    /// What is to be remembered of it, where slices are told of what was before.
    pub(super) preamble: Option<Box<Preamble>>,
    /// Its memory card, if cards are made.
    pub(super) card: Option<Box<Card>>,
}

/// What is known of a session from earlier readings.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// How many entries it had each time it was read to its end.
    pub(super) ends: BTreeSet<u32>,
    /// Its entries as [`mark_of`] sees them, if it was read from another file that is still there.
    pub(super) elsewhere: Option<Vec<u64>>,
    /// Its first entries as [`mark_of`] sees them: those that are cut for good and are not handed over
    /// again.
    pub(super) taken: Vec<u64>,
    /// The place of the next slice among its slices.
    pub(super) next_index: u32,
    /// What is put behind its name, if it is another conversation than the one of that name.
    pub(super) apart: Option<String>,
    /// Whether it was forgotten.
    pub(super) forgotten: bool,
    /// Whether some of it is stored.
    pub(super) is_known: bool,
}

/// How a session is no longer what was taken of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Differs {
    /// The first entry that differs.
    pub(super) at: u32,
    /// Its mark, as it is read now.
    pub(super) mark: u64,
    /// Entries that were compared and tell something.
    pub(super) compared: u32,
    /// Of those, entries that are the same.
    pub(super) same: u32,
}

/// Takes work; says when to stop.
pub(super) trait SliceSink {
    /// What is known of a session that begins; `own` says that its file is the session's, whatever
    /// file it was read from before.
    fn before(&mut self, session: &Session, own: bool) -> Before;
    fn hand(&mut self, work: Work) -> ControlFlow<()>;

    /// The keys of the records of the stored session that this one repeats from its beginning.
    fn fork_of(&mut self, _session: &Session, _native_id: &Redacted) -> Vec<u64> {
        Vec::new()
    }

    /// The keys of the records that are stored as the session's own.
    fn own_records(&mut self, _session: &Session) -> HashSet<u64> {
        HashSet::new()
    }

    /// What was taken of `session` is not what the file has there: nothing of it was handed over, and
    /// nothing will be until the file is read again. Only for sinks that say what was taken.
    fn differs(&mut self, _session: &Session, _differs: Differs) {}
}

/// Reads files one after another.
pub(super) struct Reader<'a, S> {
    reading: &'a Reading,
    gate: &'a Gate,
    tally: &'a Tally,
    sink: S,
    copies: Copies,
}

impl<'a, S: SliceSink> Reader<'a, S> {
    pub(super) fn new(reading: &'a Reading, gate: &'a Gate, tally: &'a Tally, sink: S) -> Self {
        Reader { reading, gate, tally, sink, copies: Copies::default() }
    }

    /// What the work is handed to.
    pub(super) fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// What the work was handed to.
    pub(super) fn into_sink(self) -> S {
        self.sink
    }
}
