//! How a claim ends: with what the slice came to, or given back. The lease is checked in the very
//! transaction that writes, so that who lost it writes nothing.

use super::super::db::{Db, values};
use super::super::entry;
use super::super::error::{Fault, StoreErrorKind};
use super::super::staging::{self, Texts};
use super::super::{Staged, Staging};
use super::intake::{Place, insert};
use crate::domain::{CoverageState, Digest, Job, JobState, Lease, Timestamp, Wait};

/// How a job ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Its slice was extracted.
    Done,
    /// Its slice was too long: these take its place, in its order and with its priority.
    Cut(Vec<Job>),
    /// It failed for good.
    Dead {
        /// A stable name, such as `refused`.
        kind: String,
        /// A sentence for a person; no words of the conversation.
        detail: String,
        /// How it was asked: digest of model, prompt and schema.
        asking: Digest,
    },
}

/// How a job is given back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Release {
    /// Why it waits, until when, and the same for a person; none makes it ready at once.
    pub wait: Option<(Wait, Timestamp, String)>,
    /// Whether the attempt counts.
    pub charged: bool,
}

/// What a lease is checked against.
struct Held {
    no: i64,
    place: Place,
    ordinals: (u32, u32),
    /// It ended under this very lease already.
    ended: bool,
}

fn held(db: &mut Db, lease: Lease, now: Timestamp) -> Result<Held, Fault> {
    let sql = format!(
        "SELECT no, session_no, lane, priority, first_ordinal, last_ordinal, token, state
        FROM jobs WHERE id = ?1{}",
        db.locking()
    );
    let found = db.first(&sql, values![&lease.job.0], |row| {
        let no = row.next()?;
        let (session_no, lane, priority) = (row.next()?, row.next()?, row.next()?);
        let place = Place { session_no, lane, priority, at: now };
        let ordinals = (row.next()?, row.next()?);
        let held = Held { no, place, ordinals, ended: false };
        Ok((held, row.next::<u64>()?, row.named(JobState::of_name)?))
    })?;
    match found {
        Some((held, token, state)) if token == lease.token => match state {
            JobState::Leased => Ok(held),
            JobState::Done | JobState::Cut | JobState::Dead => Ok(Held { ended: true, ..held }),
            JobState::Waiting | JobState::Ready | JobState::Cancelled => {
                Err(StoreErrorKind::LeaseLost(lease.job).into())
            }
        },
        Some(_) | None => Err(StoreErrorKind::LeaseLost(lease.job).into()),
    }
}

pub(super) fn write(
    db: &mut Db,
    lease: Lease,
    (staging, ending): (Option<&Staging>, &Ending),
    now: Timestamp,
) -> Result<Staged, Fault> {
    let held = held(db, lease, now)?;
    // Staging twice is staging once, and tells the same counts.
    let staged = match staging {
        Some(staging) => staging::write(db, staging, Texts::Stored)?,
        None => Staged::default(),
    };
    if held.ended {
        return Ok(staged);
    }
    let (state, kind, detail, asking) = match ending {
        Ending::Done => (JobState::Done, None, None, None),
        Ending::Cut(_) => (JobState::Cut, None, None, None),
        Ending::Dead { kind, detail, asking } => {
            (JobState::Dead, Some(kind), Some(detail), Some(asking))
        }
    };
    if let (Ending::Dead { kind, .. }, None) = (ending, staging) {
        // No run says what became of its entries.
        let failed = (CoverageState::Failed, kind.as_str());
        entry::cover_open(db, held.place.session_no, held.ordinals, failed)?;
    }
    if let Ending::Cut(halves) = ending {
        let halves: Vec<&Job> = halves.iter().collect();
        insert(db, held.place, &halves, None)?;
        db.announce()?;
    }
    // What is done is never rebuilt: a million of them should not keep how they were cut.
    let sql = "UPDATE jobs SET state = ?2, reason = ?3, detail = ?4, asking = ?5, since = ?6,
            finished_at = ?6, until = NULL, cut = CASE WHEN ?2 = 'dead' THEN cut ELSE '' END,
            context = CASE WHEN ?2 = 'dead' THEN context END
        WHERE no = ?1";
    db.execute(sql, values![held.no, state.name(), kind, detail, asking, now])?;
    Ok(staged)
}

pub(super) fn release(
    db: &mut Db,
    lease: Lease,
    release: &Release,
    now: Timestamp,
) -> Result<(), Fault> {
    let held = held(db, lease, now)?;
    if held.ended {
        return Err(StoreErrorKind::LeaseLost(lease.job).into());
    }
    let (state, reason, until, detail) = waiting(release);
    let sql = "UPDATE jobs SET state = ?2, reason = ?3, until = ?4, detail = ?5, since = ?6,
            attempts = attempts - ?7
        WHERE no = ?1";
    let back = u32::from(!release.charged);
    db.execute(sql, values![held.no, state.name(), reason, until, detail, now, back])?;
    db.announce()
}

pub(super) fn hold_ready(
    db: &mut Db,
    namespace: Option<&str>,
    release: &Release,
    now: Timestamp,
) -> Result<u64, Fault> {
    let (state, reason, until, detail) = waiting(release);
    let sql = "UPDATE jobs SET state = ?1, reason = ?2, until = ?3, detail = ?4, since = ?5
        WHERE state = 'ready' AND (?6 = 1
            OR lane IN (SELECT no FROM lanes WHERE namespace = ?7))";
    let (all, namespace) = (namespace.is_none(), namespace.unwrap_or_default());
    db.execute(sql, values![state.name(), reason, until, detail, now, all, namespace])
}

type Waiting<'a> = (JobState, Option<&'a str>, Option<Timestamp>, Option<&'a str>);

fn waiting(release: &Release) -> Waiting<'_> {
    match &release.wait {
        None => (JobState::Ready, None, None, None),
        Some((wait, until, detail)) => {
            (JobState::Waiting, Some(wait.name()), Some(*until), Some(detail))
        }
    }
}
