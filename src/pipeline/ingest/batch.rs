//! What is handed over of one session: its slices become jobs, batch after batch, so that a session of
//! any length takes little memory. Knows no store; what comes out is for it.

use super::rules::Rules;
use crate::domain::{Entry, Job, Session};
use crate::pipeline::reader::{Ended, mark_of};
use crate::privacy::{Redacted, Report};
use crate::slicing::Cutting;
use crate::store::{Intake, SessionProgress};
use std::collections::BTreeMap;

/// A session under way.
#[derive(Debug)]
pub(super) struct Batch {
    session: Session,
    /// What the next intake is based on.
    growth: SessionProgress,
    /// The store's entries from `growth.taken` on, as [`mark_of`] sees them: those that gathered.
    gathered: Vec<u64>,
    anew: Option<u32>,
    /// Entries that are not handed over yet; one in several parts stands here once.
    entries: BTreeMap<u32, Entry>,
    bytes: usize,
    /// Slices before the last one, as jobs.
    jobs: Vec<Job>,
    /// The last one: it may have to wait.
    last: Option<(Cutting, Option<Redacted>)>,
    /// The first entry behind those of all slices before the last one.
    after: u32,
    /// Whether something of it was handed over already.
    begun: bool,
    /// Whether all of it is handed over at once, however much it is.
    undivided: bool,
}

impl Batch {
    /// A session that was taken in so far; `gathered` are the marks of its entries from
    /// `growth.taken` on. `anew` is its first entry that is no longer what was taken in, if one is.
    pub(super) fn new(
        session: Session,
        growth: SessionProgress,
        gathered: Vec<u64>,
        anew: Option<u32>,
    ) -> Batch {
        let (entries, jobs) = (BTreeMap::new(), Vec::new());
        let after = growth.taken;
        Batch {
            session,
            growth,
            gathered,
            anew,
            entries,
            bytes: 0,
            jobs,
            last: None,
            after,
            begun: false,
            undivided: false,
        }
    }

    /// The same, handed over at once, however much it is.
    pub(super) fn undivided(self) -> Batch {
        Batch { undivided: true, ..self }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Takes an entry; one that no model reads comes before the slices that follow it.
    pub(super) fn keep(&mut self, entry: Entry) {
        let bytes = entry.text.len();
        if self.entries.insert(entry.ordinal, entry).is_none() {
            self.bytes += bytes;
        }
    }

    /// Takes the next slice; gives what is to be handed over before more is taken.
    pub(super) fn slice(
        &mut self,
        (cutting, before): (Cutting, Option<Redacted>),
        rules: &Rules,
    ) -> Option<Intake> {
        let from = self.boundary(&cutting);
        if let Some(last) = self.last.take() {
            let highest = last.0.entries.iter().map(|entry| entry.ordinal).max();
            self.after = self.after.max(highest.map_or(0, |highest| highest + 1));
            self.jobs.push(rules.job(&last));
        }
        let full = !self.undivided && rules.is_full(self.bytes, self.entries.len());
        let whole = from.filter(|from| full && self.after <= *from);
        let intake = whole.map(|from| self.up_to(from, rules));
        cutting.entries.iter().for_each(|entry| self.keep(entry.clone()));
        self.last = Some((cutting, before));
        intake
    }

    /// Ends the session for now; none if there is nothing new in it.
    pub(super) fn end(mut self, ended: Ended, rules: &Rules) -> Option<Intake> {
        if self.is_known(&ended, rules) {
            return None;
        }
        let alone = |last: &Cutting| self.boundary(last).is_some_and(|from| self.after <= from);
        let gathering = self.last.as_ref().filter(|last| alone(&last.0));
        let gathering = gathering.and_then(|last| rules.gathering(last));
        if gathering.is_none()
            && let Some(last) = self.last.take()
        {
            self.jobs.push(rules.job(&last));
        }
        let taken = gathering.as_ref().map_or(ended.entries, |it| it.job.first.0);
        let remembered = ended.preamble.map(|mut preamble| {
            preamble.pass(taken);
            preamble.remembered()
        });
        Some(Intake {
            session: self.session,
            growth: self.growth,
            anew: self.anew,
            entries: self.entries.into_values().collect(),
            known: ended.entries,
            goes_on: false,
            jobs: self.jobs,
            gathering,
            priority: rules.priority,
            document: None,
            findings: ended.findings,
            masked: ended.masked,
            remembered,
            at: rules.now,
        })
    }

    /// Where a slice begins, if it begins with a whole entry.
    fn boundary(&self, cutting: &Cutting) -> Option<u32> {
        let first = cutting.slice.parts.first().filter(|first| first.part == 0)?;
        let lowest = cutting.slice.range().0;
        (first.ordinal == lowest).then_some(lowest)
    }

    /// Whether the store has all of it as it is, and nothing is asked for but that. A file that is
    /// shorter than it was and otherwise the same is being written, or was cut off: what was taken of
    /// it stays.
    fn is_known(&self, ended: &Ended, rules: &Rules) -> bool {
        if self.begun || self.anew.is_some() || self.growth.entries < ended.entries {
            return false;
        }
        let same = |(ordinal, entry): (&u32, &Entry)| {
            let at = ordinal.checked_sub(self.growth.taken).map(|at| at as usize);
            at.and_then(|at| self.gathered.get(at)) == Some(&mark_of(entry))
        };
        let gathers = self.growth.taken < self.growth.entries;
        let whole = ended.entries == self.growth.entries;
        self.entries.iter().all(same) && !(rules.flush && gathers && whole)
    }

    /// What is handed over of what comes before the entry `end`.
    fn up_to(&mut self, end: u32, rules: &Rules) -> Intake {
        let rest = self.entries.split_off(&end);
        let entries = std::mem::replace(&mut self.entries, rest);
        self.bytes = self.entries.values().map(|entry| entry.text.len()).sum();
        let growth = self.growth.clone();
        self.growth.intakes += 1;
        (self.growth.taken, self.growth.entries) = (end, end.max(self.growth.entries));
        self.begun = true;
        Intake {
            session: self.session.clone(),
            growth,
            anew: self.anew.take(),
            entries: entries.into_values().collect(),
            known: end,
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
