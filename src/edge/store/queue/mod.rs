//! The queue: what is handed over, who works on it, and how it ends. Claims, beats and endings are
//! single transactions; the token of a lease is checked in each.

mod allowance;
mod claim;
mod depth;
mod finish;
mod growth;
mod intake;
mod jobs;
mod left;
mod presence;
mod share;
mod steer;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod intake_tests;
#[cfg(test)]
mod tests;

pub use allowance::{Cap, Charge, Rates, Scope, Sort};
pub use claim::{ABANDONED, Claim, Claims};
pub use depth::{CapJobs, DeadJobs, Depth, OpenJobs, Overdue, SILENT_SECS, Stuck};
pub use finish::{Ending, Release};
pub use growth::{Growth, Said};
pub use intake::{Enqueued, Gathering, Intake};
pub use jobs::{JobFilter, JobPage, StoredJob};
pub use left::Left;
pub use presence::Presence;
pub use steer::{CANCELLED, Steered, Which};

pub(super) use depth::pending;
pub(super) use steer::outdo;

use super::db::{Columns, Db};
use super::error::Fault;
use super::{Staged, Staging, Store, StoreError};
use crate::domain::{Digest, Entry, Job, JobId, Lease, Session, SessionId, SliceId, Timestamp};
use std::ops::Range;

impl Store {
    /// What is known of a session that is about to be handed over; none if it is new.
    pub async fn growth(&self, session: SessionId) -> Result<Option<Growth>, StoreError> {
        self.look("reading how far a session was taken", move |from| growth::growth(from, session))
            .await
    }

    /// Hands who said what in a session to `each`, in order, for entries with ordinals in this range.
    ///
    /// # Errors
    /// [`UnknownSession`](super::StoreErrorKind::UnknownSession) if it is not in the store.
    pub async fn said(
        &self,
        session: SessionId,
        ordinals: Range<u32>,
        mut each: impl FnMut(Said),
    ) -> Result<(), StoreError> {
        let mut left = ordinals;
        loop {
            let part = left.clone();
            let read = move |from: &mut Db| growth::said(from, session, part.clone());
            let said = self.look("reading who said what", read).await?;
            let whole = said.len() == growth::SAID_MAX;
            left.start = said.last().map_or(left.end, |last| last.ordinal.saturating_add(1));
            said.into_iter().for_each(&mut each);
            if !whole {
                return Ok(());
            }
        }
    }

    /// Whether a document of this digest was handed over for a session.
    pub async fn was_handed(
        &self,
        session: SessionId,
        document: Digest,
    ) -> Result<bool, StoreError> {
        let read = move |from: &mut Db| intake::was_handed(from, session, document);
        self.look("looking for a document", read).await
    }

    /// Takes in what a session grew by, as jobs. All of it or none; what was taken in before is not
    /// taken in again.
    ///
    /// # Errors
    /// [`Moved`](super::StoreErrorKind::Moved) if the session is no longer as `intake.growth` says:
    /// ask for it again, cut again, try again.
    pub async fn enqueue(&self, intake: Intake) -> Result<Enqueued, StoreError> {
        let take_in = move |to: &mut Db| {
            intake::write(to, &intake)?.ok_or_else(|| super::StoreErrorKind::Moved.into())
        };
        self.write("taking in a session", take_in).await
    }

    /// As [`Store::enqueue`], many in one transaction: of different sessions, or one after another of
    /// the same. None stands for one whose session moved; it keeps no other from being taken in.
    pub async fn enqueue_all(
        &self,
        intakes: Vec<Intake>,
    ) -> Result<Vec<Option<Enqueued>>, StoreError> {
        let take_in =
            move |to: &mut Db| intakes.iter().map(|intake| intake::write(to, intake)).collect();
        self.write("taking in sessions", take_in).await
    }

    /// Leases jobs to a worker: from the namespace that was served longest ago, there the highest
    /// priority, there the oldest. Takes back what other workers let expire, and charges an attempt.
    pub async fn claim(&self, claim: Claim) -> Result<Claims, StoreError> {
        let claims = self.write("claiming jobs", move |to| claim::write(to, &claim)).await?;
        self.worked(claims.jobs.len());
        Ok(claims)
    }

    /// A session and the entries of one of its jobs.
    pub async fn work_of(
        &self,
        session: SessionId,
        job: &Job,
    ) -> Result<(Session, Vec<Entry>), StoreError> {
        let ordinals = job.first.0..job.last.0.saturating_add(1);
        let read = move |from: &mut Db| {
            let unknown = super::StoreErrorKind::UnknownSession(session);
            let whole = super::session::find(from, session)?.ok_or(Fault::from(unknown))?;
            Ok((whole, super::entry::list(from, session, ordinals.clone())?))
        };
        self.look("reading the entries of a job", read).await
    }

    /// Holds leases until `until`; gives those that were lost.
    pub async fn extend(
        &self,
        leases: Vec<Lease>,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<JobId>, StoreError> {
        self.write("extending leases", move |to| claim::extend(to, &leases, (until, now))).await
    }

    /// Ends a job together with what it came to, in one transaction. Again with the same lease is the
    /// same as once.
    ///
    /// # Errors
    /// [`LeaseLost`](super::StoreErrorKind::LeaseLost) if somebody else holds the job by now: nothing
    /// was written.
    pub async fn finish(
        &self,
        lease: Lease,
        staging: Option<Staging>,
        ending: Ending,
        now: Timestamp,
    ) -> Result<Staged, StoreError> {
        let work = move |to: &mut Db| finish::write(to, lease, (staging.as_ref(), &ending), now);
        self.write("ending a job", work).await
    }

    /// Gives a job back.
    ///
    /// # Errors
    /// As [`Store::finish`].
    pub async fn release(
        &self,
        lease: Lease,
        release: Release,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write("releasing a job", move |to| finish::release(to, lease, &release, now)).await
    }

    /// Makes every ready job wait, of one namespace or of all: at a cap.
    pub async fn hold_ready(
        &self,
        namespace: Option<String>,
        release: Release,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let work = move |to: &mut Db| finish::hold_ready(to, namespace.as_deref(), &release, now);
        self.write("holding jobs back", work).await
    }

    /// Lets go of waits and leases that seem to begin in the future: the clock went back. Also lets
    /// jobs at a cap try again, since caps may have been raised. For a worker that begins.
    pub async fn recover(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.write("recovering jobs", move |to| claim::recover(to, now)).await
    }

    /// What is left to do, and how many jobs died at `since` or later.
    pub async fn left(&self, since: Timestamp) -> Result<Left, StoreError> {
        self.read("counting what is left", move |from| left::read(from, since)).await
    }

    /// Opens jobs again that died under another model, prompt or schema than `asking`.
    pub async fn reopen(&self, asking: Digest, now: Timestamp) -> Result<u64, StoreError> {
        self.write("opening dead jobs again", move |to| steer::reopen(to, asking, now)).await
    }
}

/// Columns of a job, for [`read_job`].
const JOB_COLUMNS: &str = "id, slice, slice_index, first_ordinal, first_part, last_ordinal, \
     last_part, tokens, cut, context";

fn read_job(row: &mut Columns<'_>) -> Result<Job, Fault> {
    Ok(Job {
        id: JobId(row.next()?),
        slice: SliceId(row.next()?),
        index: row.next()?,
        first: (row.next()?, row.next()?),
        last: (row.next()?, row.next()?),
        tokens: row.next()?,
        cut: row.next()?,
        context: row.next()?,
    })
}
