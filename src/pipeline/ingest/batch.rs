//! Turns one session into intakes, batch by batch, so that memory use does not grow with its length, and decides which
//! slice waits for more of its session. Does not access the store.

use crate::domain::{Digest, Entry, EntryKind, Job, Session, Timestamp, Tokens};
use crate::pipeline::extractor::job_of;
use crate::pipeline::reader::{SessionEnding, mark_of};
use crate::privacy::{Redacted, Report};
use crate::slicing::Cutting;
use crate::store::{Gathering, Intake, SessionProgress};
use std::collections::BTreeMap;
use std::time::Duration;

/// Stored state of a session that the next intake builds on.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    pub(super) growth: SessionProgress,
    /// Marks of the stored entries from `growth.taken` on, which wait for more.
    pub(super) gathered: Vec<u64>,
    /// First entry that differs from the stored one, if any.
    pub(super) anew: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Batch {
    pub(super) session: Session,
    baseline: Baseline,
    /// Entries that are not enqueued yet.
    entries: BTreeMap<u32, Entry>,
    bytes: usize,
    /// Slices before the last one, as jobs.
    jobs: Vec<Job>,
    /// The last slice, which may have to wait, and its preamble.
    last: Option<(Cutting, Option<Redacted>)>,
    /// The first entry after all slices but the last one.
    after: u32,
    /// True if part of it is enqueued.
    begun: bool,
    /// True if all of it becomes one intake, whatever its size.
    pub(super) undivided: bool,
}

impl Batch {
    pub(super) fn new(session: Session, baseline: Baseline) -> Batch {
        Batch {
            session,
            after: baseline.growth.taken,
            baseline,
            entries: BTreeMap::new(),
            bytes: 0,
            jobs: Vec::new(),
            last: None,
            begun: false,
            undivided: false,
        }
    }

    /// Adds an entry; a skipped one comes before the slices that follow it.
    pub(super) fn keep(&mut self, entry: Entry) {
        let bytes = entry.text.len();
        if self.entries.insert(entry.ordinal, entry).is_none() {
            self.bytes += bytes;
        }
    }

    /// Adds the next slice; returns an intake once a batch is full.
    pub(super) fn slice(
        &mut self,
        cutting: Cutting,
        preamble: Option<Redacted>,
        rules: &Rules,
    ) -> Option<Intake> {
        let from = self.boundary(&cutting);
        if let Some((last, preamble)) = self.last.take() {
            let highest = last.entries.iter().map(|entry| entry.ordinal).max();
            self.after = self.after.max(highest.map_or(0, |highest| highest + 1));
            self.jobs.push(job_of(&last, preamble, rules.asking));
        }
        let is_full =
            rules.batch_bytes_max <= self.bytes || BATCH_ENTRIES_MAX <= self.entries.len();
        let whole = from.filter(|from| is_full && !self.undivided && self.after <= *from);
        let intake = whole.map(|from| self.up_to(from, rules));
        cutting.entries.iter().for_each(|entry| self.keep(entry.clone()));
        self.last = Some((cutting, preamble));
        intake
    }

    /// Ends the session for now; `None` if nothing is new.
    pub(super) fn end(mut self, ended: SessionEnding, rules: &Rules) -> Option<Intake> {
        if self.is_known(&ended, rules) {
            return None;
        }
        let mut gathering = None;
        if let Some((last, preamble)) = self.last.take() {
            let alone = self.boundary(&last).is_some_and(|from| self.after <= from);
            let until = rules.gathers_until(&last).filter(|_| alone);
            let job = job_of(&last, preamble, rules.asking);
            match until {
                Some(until) => gathering = Some(Gathering { job, until }),
                None => self.jobs.push(job),
            }
        }
        let taken = gathering.as_ref().map_or(ended.entries, |it| it.job.first.0);
        let remembered = ended.preamble.map(|mut preamble| {
            preamble.pass(taken);
            preamble.remembered()
        });
        let growth = self.baseline.growth.clone();
        let entries = std::mem::take(&mut self.entries);
        Some(Intake {
            goes_on: false,
            gathering,
            findings: ended.findings,
            masked: ended.masked,
            remembered,
            ..self.intake(growth, entries, ended.entries, rules)
        })
    }

    /// First entry of the slice, if it begins with a whole entry.
    fn boundary(&self, cutting: &Cutting) -> Option<u32> {
        let first = cutting.slice.parts.first().filter(|first| first.part == 0)?;
        let lowest = cutting.slice.range().0;
        (first.ordinal == lowest).then_some(lowest)
    }

    /// True if the store has all of it and no waiting entries are to be flushed. A file that is a prefix of what is
    /// stored is being written or was truncated: the stored entries stay.
    fn is_known(&self, ended: &SessionEnding, rules: &Rules) -> bool {
        let Baseline { growth, gathered, anew } = &self.baseline;
        if self.begun || anew.is_some() || growth.entries < ended.entries {
            return false;
        }
        let same = |(ordinal, entry): (&u32, &Entry)| {
            let at = ordinal.checked_sub(growth.taken).map(|at| at as usize);
            at.and_then(|at| gathered.get(at)) == Some(&mark_of(entry))
        };
        let gathers = growth.taken < growth.entries;
        let whole = ended.entries == growth.entries;
        self.entries.iter().all(same) && !(rules.flush && gathers && whole)
    }

    fn up_to(&mut self, end: u32, rules: &Rules) -> Intake {
        let rest = self.entries.split_off(&end);
        let entries = std::mem::replace(&mut self.entries, rest);
        self.bytes = self.entries.values().map(|entry| entry.text.len()).sum();
        let growth = self.baseline.growth.clone();
        let known = &mut self.baseline.growth;
        known.intakes += 1;
        (known.taken, known.entries) = (end, end.max(known.entries));
        self.begun = true;
        self.intake(growth, entries, end, rules)
    }

    fn intake(
        &mut self,
        growth: SessionProgress,
        entries: BTreeMap<u32, Entry>,
        known: u32,
        rules: &Rules,
    ) -> Intake {
        Intake {
            session: self.session.clone(),
            growth,
            anew: self.baseline.anew.take(),
            entries: entries.into_values().collect(),
            known,
            goes_on: true,
            jobs: std::mem::take(&mut self.jobs),
            gathering: None,
            priority: rules.priority,
            document: None,
            findings: Vec::new(),
            masked: Report::default(),
            remembered: None,
            at: rules.now,
        }
    }
}

/// Maximum size of one transaction: some hundred slices.
pub(super) const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of entries in one transaction, so that it takes some hundredths of a second.
const BATCH_ENTRIES_MAX: usize = 8_192;

/// Settings for gathering small slices.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Gather {
    /// A last slice shorter than this waits for more of its session; 0 disables waiting.
    pub tokens: Tokens,
    /// Maximum wait after the session last grew.
    pub idle: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Digest of the extraction settings, for the ids of jobs.
    pub(super) asking: Digest,
    pub(super) gather: Gather,
    /// True if the session is over or the caller does not wait.
    pub(super) flush: bool,
    pub(super) priority: i32,
    pub(super) now: Timestamp,
    pub(super) batch_bytes_max: usize,
}

impl Rules {
    /// End of the wait of a session's last slice; `None` if it does not wait for more.
    pub(super) fn gathers_until(&self, cutting: &Cutting) -> Option<Timestamp> {
        let wanted = self.gather.tokens;
        let waits = !self.flush && wanted > 0;
        (waits && (cutting.slice.tokens < wanted || ends_in_a_call(&cutting.entries)))
            .then(|| self.now.after(self.gather.idle))
    }
}

/// True if a tool call has no result yet, which belongs in the same slice. A later message of the person shows that
/// none will come.
fn ends_in_a_call(entries: &[Entry]) -> bool {
    let mut open: Vec<Option<&Redacted>> = Vec::new();
    for entry in entries {
        let id = entry.tool.as_ref().and_then(|tool| tool.call_id.as_ref());
        match entry.kind {
            EntryKind::ToolCall => open.push(id),
            EntryKind::ToolResult => {
                // A result without an id answers the call before it.
                let answered = match id {
                    Some(_) => open.iter().position(|open| *open == id),
                    None => open.len().checked_sub(1),
                };
                answered.map(|at| open.remove(at));
            }
            EntryKind::Prompt | EntryKind::Rejection => open.clear(),
            EntryKind::Steering
            | EntryKind::Answer
            | EntryKind::Command
            | EntryKind::Text
            | EntryKind::Summary
            | EntryKind::Injected
            | EntryKind::Notice => {}
        }
    }
    !open.is_empty()
}
