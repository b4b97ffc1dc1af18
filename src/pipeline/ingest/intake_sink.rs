//! Sink of an intake: looks up the progress of a session, enqueues what is new, and says when a file must be read
//! again.

use super::batch::{Baseline, Batch, Rules};
use super::report::{IntakeReport, SessionIntake};
use crate::adapters::walk::is_other_file;
use crate::domain::{Digest, Session, SessionId};
use crate::pipeline::reader::{Differs, EarlierReading, Lookup, SliceSink, Work};
use crate::store::{Intake, StoreError};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Minimum share of equal entries in a rewritten session, in percent. With less, it is another conversation under the
/// same name, which does not replace the earlier one.
const SAME_PERCENT_MIN: u64 = 75;

/// Enqueues the work of a reader; blocks its thread.
pub(super) struct IntakeSink {
    lookup: Lookup,
    rules: Rules,
    pub(super) report: IntakeReport,
    again: bool,
    /// Stored state of the session that begins.
    baseline: Baseline,
    /// Sessions that differ from the stored ones of the same name.
    changed: HashMap<SessionId, Change>,
    open: Option<Batch>,
}

#[derive(Clone, Debug)]
enum Change {
    /// Rewritten from this entry on.
    Rewritten(u32),
    /// Another conversation, whose name has this suffix.
    Other(String),
}

impl IntakeSink {
    pub(super) fn new(lookup: Lookup, rules: Rules) -> IntakeSink {
        IntakeSink {
            lookup,
            rules,
            report: IntakeReport::default(),
            again: false,
            baseline: Baseline::default(),
            changed: HashMap::new(),
            open: None,
        }
    }

    /// True if the file must be read again: another process enqueued more of it, or it was rewritten.
    pub(super) fn is_to_be_read_again(&mut self) -> bool {
        self.open = None;
        std::mem::take(&mut self.again)
    }

    fn enqueue(&mut self, intake: Option<Intake>) -> Result<ControlFlow<()>, StoreError> {
        let Some(intake) = intake else { return Ok(ControlFlow::Continue(())) };
        let reported = self.report.of(SessionIntake::of(&intake.session));
        if self.lookup.block_on(reported.enqueue(self.lookup.store(), intake))? {
            return Ok(ControlFlow::Continue(()));
        }
        (self.again, self.open) = (true, None);
        Ok(ControlFlow::Break(()))
    }
}

impl SliceSink for IntakeSink {
    fn lookup(&mut self) -> Option<&mut Lookup> {
        Some(&mut self.lookup)
    }

    fn before(&mut self, session: &Session, own: bool) -> Result<EarlierReading, StoreError> {
        self.baseline = Baseline::default();
        let change = self.changed.get(&session.id).cloned();
        if let Some(Change::Other(behind)) = change {
            return Ok(EarlierReading { apart: Some(behind), ..EarlierReading::default() });
        }
        let growth = self.lookup.block_on(self.lookup.store().growth(session.id))?;
        let Some(mut growth) = growth else { return Ok(EarlierReading::default()) };
        if growth.forgotten {
            return Ok(EarlierReading { forgotten: true, ..EarlierReading::default() });
        }
        let mut marks = self.lookup.marks(session.id, growth.entries)?;
        if !own && !marks.is_empty() && is_other_file(&growth.path, &session.path) {
            return Ok(EarlierReading { elsewhere: Some(marks), ..EarlierReading::default() });
        }
        let mut before = EarlierReading { is_known: true, ..EarlierReading::default() };
        before.ends = growth.ends.iter().copied().collect();
        let (mut gathered, mut anew) = (Vec::new(), None);
        if let Some(Change::Rewritten(at)) = change {
            before.ends.retain(|end| *end <= at);
            (growth.taken, anew) = (0, Some(at));
        } else {
            gathered = marks.split_off((growth.taken as usize).min(marks.len()));
            (before.taken, before.next_index) = (marks, growth.next_index);
        }
        self.baseline = Baseline { growth, gathered, anew };
        Ok(before)
    }

    fn hand(&mut self, work: Work) -> Result<ControlFlow<()>, StoreError> {
        match work {
            Work::Begin(session) => {
                let baseline = std::mem::take(&mut self.baseline);
                let reported = self.report.of(SessionIntake::of(&session));
                reported.gathers_until = baseline.growth.gathers_until;
                self.open = Some(Batch::new(Session::clone(&session), baseline));
            }
            Work::Skipped(entry) => {
                if let Some(open) = &mut self.open {
                    open.keep(*entry);
                }
            }
            Work::Slice(cutting, preamble) => {
                let open = self.open.as_mut();
                let intake = open.and_then(|open| open.slice(*cutting, preamble, &self.rules));
                return self.enqueue(intake);
            }
            Work::Left => {
                if let Some(open) = self.open.take() {
                    self.report.leave(open.session().id);
                }
            }
            Work::End(ending) => {
                let open = self.open.take().filter(|_| ending.whole);
                return self.enqueue(open.and_then(|open| open.end(*ending, &self.rules)));
            }
        }
        Ok(ControlFlow::Continue(()))
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
