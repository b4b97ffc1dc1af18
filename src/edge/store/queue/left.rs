//! What is left to do, for whoever wants to know whether anything is.

use super::super::db::{Db, values};
use super::super::error::Fault;
use crate::domain::{JobState, Timestamp, Wait};

/// Jobs that have not ended, and those that died lately.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Left {
    /// For the next worker.
    pub ready: u64,
    /// A worker holds them.
    pub leased: u64,
    /// They wait for something that passes by itself: a back-off, a rate limit.
    pub passing: u64,
    /// Their sessions are still growing.
    pub gathering: u64,
    /// They wait at a cap.
    pub capped: u64,
    /// Which cap, of one of them.
    pub cap: Option<String>,
    /// They died since a time, whoever worked on them.
    pub died: u64,
}

impl Left {
    /// Whether there is something to do, now or after a while.
    pub fn is_something(&self) -> bool {
        self.ready + self.leased + self.passing > 0
    }
}

/// What is left; of the dead, those that died at `since` or later.
pub(super) fn read(db: &mut Db, since: Timestamp) -> Result<Left, Fault> {
    let mut left = Left::default();
    let sql = "SELECT state, reason, count(*), max(detail) FROM jobs WHERE finished_at IS NULL
        GROUP BY state, reason";
    let open = db.all(sql, &[], |row| {
        let (state, wait) = (row.named(JobState::of_name)?, row.named_if(Wait::of_name)?);
        Ok((state, wait, row.next::<u64>()?, row.next::<Option<String>>()?))
    })?;
    for (state, wait, jobs, detail) in open {
        match (state, wait) {
            (JobState::Ready, _) => left.ready += jobs,
            (JobState::Leased, _) => left.leased += jobs,
            (JobState::Waiting, Some(Wait::Gathering)) => left.gathering += jobs,
            (JobState::Waiting, Some(Wait::Cap)) => {
                (left.capped, left.cap) = (left.capped + jobs, detail);
            }
            (JobState::Waiting, Some(Wait::BackOff | Wait::RateLimited) | None) => {
                left.passing += jobs;
            }
            (JobState::Done | JobState::Cut | JobState::Dead | JobState::Cancelled, _) => {}
        }
    }
    let sql = "SELECT count(*) FROM jobs WHERE state IN ('dead', 'cancelled')
        AND state = 'dead' AND ?1 <= finished_at";
    left.died = db.first(sql, values![since], |row| row.next())?.unwrap_or_default();
    Ok(left)
}
