//! Sink of an intake: looks up the progress of a session, enqueues what is new, and says when a file must be read
//! again. Its report is for a person or a program.

use super::batch::{Baseline, Batch, Rules};
use crate::adapters::walk::is_other_file;
use crate::domain::{Digest, JobId, Session, SessionId, Timestamp};
use crate::pipeline::reader::{Differs, EarlierReading, Lookup, SliceSink, Work};
use crate::pipeline::tally::{FileProblem, FindingPlace, Tally};
use crate::privacy::Redacted;
use crate::store::{Intake, Store, StoreErrorKind, StoreResult};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Range};

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

    fn enqueue(&mut self, intake: Option<Intake>) -> StoreResult<ControlFlow<()>> {
        let Some(intake) = intake else { return Ok(ControlFlow::Continue(())) };
        let reported = self.report.of(SessionIntake::of(&intake.session));
        if self.lookup.block_on(reported.enqueue(&self.lookup.store, intake))? {
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

    fn before(&mut self, session: &Session, own: bool) -> StoreResult<EarlierReading> {
        self.baseline = Baseline::default();
        let change = self.changed.get(&session.id).cloned();
        if let Some(Change::Other(behind)) = change {
            return Ok(EarlierReading { apart: Some(behind), ..EarlierReading::default() });
        }
        let growth = self.lookup.block_on(self.lookup.store.growth(session.id))?;
        let Some(mut growth) = growth else { return Ok(EarlierReading::default()) };
        if growth.forgotten {
            return Ok(EarlierReading { forgotten: true, ..EarlierReading::default() });
        }
        let marks = self.lookup.marks(session.id, growth.entries)?;
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
            gathered = marks.get(growth.taken as usize..).unwrap_or_default().to_vec();
            let waiting = growth.taken.max(growth.entries.saturating_sub(1))..growth.entries;
            if !waiting.is_empty() {
                let last = self.lookup.store.entries_of(session.id, waiting);
                before.last = self.lookup.block_on(last)?.pop().map(|entry| entry.text);
            }
            (before.marks, before.taken) = (marks, growth.taken);
            before.next_index = growth.next_index;
        }
        self.baseline = Baseline { growth, gathered, anew };
        Ok(before)
    }

    fn hand(&mut self, work: Work) -> StoreResult<ControlFlow<()>> {
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
                    self.report.leave(open.session.id);
                }
            }
            Work::End(ending) => {
                let Some(open) = self.open.take().filter(|_| ending.whole) else {
                    return Ok(ControlFlow::Continue(()));
                };
                let (known, ordinals) = (SessionIntake::of(&open.session), 0..ending.entries);
                let intake = open.end(*ending, &self.rules);
                if intake.is_none() {
                    let known = self.report.of(known).add_known(&self.lookup.store, ordinals);
                    self.lookup.block_on(known)?;
                }
                return self.enqueue(intake);
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

#[derive(Clone, Debug, Eq, PartialEq, JsonSchema, Serialize)]
pub(crate) struct SessionIntake {
    pub session: SessionId,
    /// Its own name for itself.
    pub name: Redacted,
    pub namespace: String,
    /// The file that it was read from.
    pub path: String,
    pub entries: u32,
    /// Number of new jobs, without a last one that waits for more.
    pub jobs: u32,
    /// Number of jobs that were queued already.
    pub known: u32,
    /// Ids of its jobs, new or queued already; a last one that waits for more may change.
    pub job_ids: Vec<JobId>,
    /// End of the wait of its last entries, if they wait for more.
    pub gathers_until: Option<Timestamp>,
    /// It was forgotten before, so that nothing of it was enqueued.
    #[serde(skip)]
    pub(super) forgotten: bool,
    /// Copies in the vault that made room for its copy; none if no copy could be kept.
    #[serde(skip)]
    pub(super) evicted: Option<u64>,
}

impl SessionIntake {
    pub(super) fn of(session: &Session) -> SessionIntake {
        SessionIntake {
            session: session.id,
            name: session.native_id.clone(),
            namespace: session.namespace.clone(),
            path: session.path.clone(),
            entries: 0,
            jobs: 0,
            known: 0,
            job_ids: Vec::new(),
            gathers_until: None,
            forgotten: false,
            evicted: Some(0),
        }
    }

    /// Counts the jobs of entries that were all queued before.
    pub(super) async fn add_known(
        &mut self,
        store: &Store,
        ordinals: Range<u32>,
    ) -> StoreResult<()> {
        for (job, gathers) in store.jobs_of_entries(self.session, ordinals).await? {
            self.job_ids.push(job);
            self.known += u32::from(!gathers);
        }
        Ok(())
    }

    /// Enqueues an intake of the session and counts it; returns false if another process enqueued more meanwhile.
    pub(super) async fn enqueue(&mut self, store: &Store, intake: Intake) -> StoreResult<bool> {
        let gathering = intake.gathering.as_ref();
        let gathers_until = gathering.map(|it| it.until);
        let jobs = intake.jobs.iter().chain(gathering.map(|it| &it.job));
        let ids: Vec<JobId> = jobs.map(|job| job.id).collect();
        let enqueued = match store.enqueue(intake).await {
            Err(error) if error.kind == StoreErrorKind::Moved => return Ok(false),
            enqueued => enqueued?,
        };
        self.entries += enqueued.entries;
        self.jobs += enqueued.jobs;
        self.known += enqueued.known;
        if !enqueued.repeated {
            self.job_ids.extend(ids);
            self.gathers_until = gathers_until;
        }
        Ok(true)
    }
}

#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub(crate) struct IntakeReport {
    pub files: u64,
    /// Files that are no transcripts.
    pub files_passed_over: u64,
    /// The same files by reason: the client or kind of file that is not read, or what is wrong.
    pub files_not_read: BTreeMap<&'static str, u64>,
    /// Conversations that another file has as a whole.
    pub copies: u64,
    /// Conversations that were forgotten before, and are left out.
    pub forgotten: u64,
    /// Copies in the vault that made room for others.
    pub copies_evicted: u64,
    /// Conversations of which no copy could be kept.
    pub copies_failed: u64,
    pub entries: u64,
    pub jobs: u64,
    /// Number of jobs that were queued already.
    pub known: u64,
    /// Number of documents that had been handed over already.
    pub documents_known: u64,
    /// Every conversation, in the order in which they were read.
    pub sessions: Vec<SessionIntake>,
    pub problems: Vec<FileProblem>,
    /// The places of the first findings, the most severe first.
    pub places: Vec<FindingPlace>,
    /// Readable files without a single entry.
    pub empty: Vec<FileProblem>,
    /// Of the problems, documents that are larger than one may be.
    #[serde(skip)]
    pub too_large: u64,
    /// Of the problems, sessions that others take in at the same time.
    #[serde(skip)]
    pub busy: u64,
    #[serde(skip)]
    by_id: HashMap<SessionId, usize>,
}

impl IntakeReport {
    pub(crate) fn is_nothing_new(&self) -> bool {
        self.entries == 0 && self.jobs == 0
    }

    /// Removes the last conversation again, if nothing of it was counted.
    pub(super) fn leave(&mut self, session: SessionId) {
        let nothing = |it: &SessionIntake| it.session == session && it.job_ids.is_empty();
        if self.sessions.pop_if(|it| nothing(it) && it.entries + it.jobs + it.known == 0).is_some()
        {
            self.by_id.remove(&session);
        }
    }

    pub(super) fn join(&mut self, mut intake: SessionIntake) {
        if intake.forgotten {
            self.forgotten += 1;
            return;
        }
        self.documents_known += u64::from(intake.entries == 0);
        self.copies_evicted += intake.evicted.unwrap_or_default();
        self.copies_failed += u64::from(intake.evicted.is_none());
        let SessionIntake { entries, jobs, known, gathers_until, .. } = intake;
        let mut ids = std::mem::take(&mut intake.job_ids);
        let all = self.of(SessionIntake { entries: 0, jobs: 0, known: 0, ..intake });
        let sent = ids.len();
        // An earlier document of the same request may have queued them.
        ids.retain(|id| !all.job_ids.contains(id));
        all.entries += entries;
        all.jobs += jobs;
        all.known += known.saturating_sub((sent - ids.len()) as u32);
        all.job_ids.extend(ids);
        all.gathers_until = gathers_until;
    }

    pub(super) fn closed(mut self, tally: &Tally) -> IntakeReport {
        for session in &self.sessions {
            self.entries += u64::from(session.entries);
            self.jobs += u64::from(session.jobs);
            self.known += u64::from(session.known);
        }
        tally.with(|totals| {
            self.files = totals.files;
            self.files_passed_over = totals.files_passed_over;
            self.files_not_read.clone_from(&totals.files_not_read);
            let found = |rule: &str| totals.findings.get(rule).copied().unwrap_or_default();
            self.copies = found("session-copy");
            self.forgotten += found("forgotten");
            self.copies_evicted += found("vault-full");
            self.copies_failed += found("vault-failed");
            self.problems.append(&mut totals.problems);
            self.places.append(&mut totals.places);
            self.empty.append(&mut totals.empty);
        });
        self
    }

    /// The conversation in the report, where earlier counts of it stay; `new` if it is not there yet.
    pub(super) fn of(&mut self, new: SessionIntake) -> &mut SessionIntake {
        let at = *self.by_id.entry(new.session).or_insert(self.sessions.len());
        if at == self.sessions.len() {
            self.sessions.push(new);
        }
        &mut self.sessions[at]
    }
}
