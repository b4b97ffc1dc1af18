//! The sink that files are read for: asks the store how far a session was taken in, hands over what it
//! grew by, and says when a file must be read again.

use super::batch::Batch;
use super::known::Lookup;
use super::report::TakenIn;
use super::rules::Rules;
use crate::adapters::walk::is_other_file;
use crate::domain::{Digest, Session, SessionId};
use crate::pipeline::reader::{Before, Differs, SliceSink, Work};
use crate::pipeline::stop::unless_cancelled;
use crate::privacy::Redacted;
use crate::store::{Intake, SessionProgress, StoreError, StoreErrorKind};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use tokio_util::sync::CancellationToken;

/// Of what is compared, the share that must be the same for a session that was rewritten, in percent.
/// Less is another conversation under the same name, and takes nothing away from the one before.
const SAME_PERCENT_MIN: u64 = 75;

/// Takes in what a reader hands over; blocks its thread.
pub(super) struct IntakeSink<'a> {
    lookup: Lookup,
    rules: Rules,
    cancel: &'a CancellationToken,
    pub(super) report: TakenIn,
    /// The store's error that ended the reading, if one did.
    pub(super) failed: Option<StoreError>,
    again: bool,
    found: Found,
    /// Sessions that are not what was taken in under their names.
    changed: HashMap<SessionId, Change>,
    open: Option<Batch>,
}

/// What is known of the session that begins.
#[derive(Debug, Default)]
struct Found {
    growth: SessionProgress,
    gathered: Vec<u64>,
    anew: Option<u32>,
}

/// Why a session is not what was taken in under its name.
#[derive(Clone, Debug)]
enum Change {
    /// It was rewritten from this entry on.
    Rewritten(u32),
    /// It is another conversation, with this behind its name.
    Other(String),
}

impl<'a> IntakeSink<'a> {
    /// For a thread on which blocking is allowed, of the runtime of `handle`.
    pub(super) fn new(
        lookup: Lookup,
        rules: Rules,
        cancel: &'a CancellationToken,
    ) -> IntakeSink<'a> {
        let (report, found, changed) = (TakenIn::default(), Found::default(), HashMap::new());
        let (failed, open, again) = (None, None, false);
        IntakeSink { lookup, rules, cancel, report, failed, again, found, changed, open }
    }

    /// Whether the file must be read again: somebody else took in more of it, or it is not what it was.
    pub(super) fn is_to_be_read_again(&mut self) -> bool {
        self.open = None;
        std::mem::take(&mut self.again)
    }

    /// Whether the reading is over, whatever is left.
    pub(super) fn is_over(&self) -> bool {
        self.failed.is_some() || self.cancel.is_cancelled()
    }

    fn noted<T: Default>(&mut self, outcome: Result<T, StoreError>) -> T {
        outcome.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            T::default()
        })
    }

    fn look_up(&mut self, session: &Session, own: bool) -> Result<Before, StoreError> {
        let change = self.changed.get(&session.id).cloned();
        if let Some(Change::Other(behind)) = change {
            return Ok(Before { apart: Some(behind), ..Before::default() });
        }
        let growth = self.lookup.block_on(self.lookup.store().growth(session.id))?;
        let Some(growth) = growth else { return Ok(Before::default()) };
        if growth.forgotten {
            return Ok(Before { forgotten: true, ..Before::default() });
        }
        let marks = self.lookup.marks(session.id, growth.entries)?;
        if !own && !marks.is_empty() && is_other_file(&growth.path, &session.path) {
            return Ok(Before { elsewhere: Some(marks), ..Before::default() });
        }
        let before = match change {
            Some(Change::Rewritten(at)) => self.begin_anew(growth, at),
            Some(Change::Other(_)) | None => self.go_on_from(growth, marks),
        };
        Ok(Before { is_known: true, ..before })
    }

    fn go_on_from(&mut self, growth: SessionProgress, mut taken: Vec<u64>) -> Before {
        let gathered = taken.split_off((growth.taken as usize).min(taken.len()));
        let (ends, next_index) = (growth.ends.iter().copied().collect(), growth.next_index);
        self.found = Found { growth, gathered, anew: None };
        Before { ends, taken, next_index, ..Before::default() }
    }

    fn begin_anew(&mut self, growth: SessionProgress, at: u32) -> Before {
        let ends = growth.ends.iter().copied().filter(|end| *end <= at).collect();
        let growth = SessionProgress { taken: 0, ..growth };
        self.found = Found { growth, gathered: Vec::new(), anew: Some(at) };
        Before { ends, ..Before::default() }
    }

    fn begin(&mut self, session: &Session) {
        let Found { growth, gathered, anew } = std::mem::take(&mut self.found);
        self.report.meet(session, growth.gathers_until);
        self.open = Some(Batch::new(session.clone(), growth, gathered, anew));
    }

    fn hand_over(&mut self, session: &Session, intake: Option<Intake>) -> ControlFlow<()> {
        let Some(intake) = intake else { return unless_cancelled(self.cancel) };
        let until = intake.gathering.as_ref().map(|gathering| gathering.until);
        match self.lookup.block_on(self.lookup.store().enqueue(intake)) {
            Ok(enqueued) => {
                self.report.add(session, enqueued, until);
                unless_cancelled(self.cancel)
            }
            Err(error) if error.kind == StoreErrorKind::Moved => {
                self.again = true;
                ControlFlow::Break(())
            }
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl SliceSink for IntakeSink<'_> {
    fn fork_of(&mut self, session: &Session, native_id: &Redacted) -> Vec<u64> {
        let found = self.lookup.fork_of(session, native_id);
        self.noted(found)
    }

    fn own_records(&mut self, session: &Session) -> HashSet<u64> {
        let found = self.lookup.own_records(session.id);
        self.noted(found)
    }

    fn before(&mut self, session: &Session, own: bool) -> Before {
        self.found = Found::default();
        self.look_up(session, own).unwrap_or_else(|error| {
            self.failed = Some(error);
            Before::default()
        })
    }

    fn hand(&mut self, work: Work) -> ControlFlow<()> {
        if self.is_over() {
            return ControlFlow::Break(());
        }
        match work {
            Work::Begin(session) => self.begin(&session),
            Work::Skipped(entries) => {
                if let Some(open) = &mut self.open {
                    entries.into_iter().for_each(|entry| open.keep(entry));
                }
            }
            Work::Slice(cutting, before) => {
                if let Some(mut open) = self.open.take() {
                    let intake = open.slice((*cutting, before), &self.rules);
                    self.hand_over(open.session(), intake)?;
                    self.open = Some(open);
                }
            }
            Work::Copy => self.open = None,
            Work::End(ended) => {
                if let Some(open) = self.open.take().filter(|_| ended.whole) {
                    let session = open.session().clone();
                    let intake = open.end(*ended, &self.rules);
                    self.hand_over(&session, intake)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn differs(&mut self, session: &Session, differs: Differs) {
        let (same, compared) = (u64::from(differs.same), u64::from(differs.compared));
        let change = if compared * SAME_PERCENT_MIN <= same * 100 {
            Change::Rewritten(differs.at)
        } else {
            let first = Digest::of(&[&session.path, &differs.mark.to_string()]);
            Change::Other(format!("{:.8}", first.to_string()))
        };
        tracing::info!(session.id = %session.id, differs.at, same, compared, "a session changed");
        self.changed.insert(session.id, change);
        self.again = true;
    }
}
