//! Who works on the queue, so that a person sees them and each knows whether it is alone.

use super::super::db::{Db, values};
use super::super::error::Fault;
use super::allowance;
use crate::domain::Timestamp;

/// A worker that was not seen for so long, in milliseconds, is gone: it is seen every few seconds.
const GONE_MILLIS: i64 = 60_000;
/// Rows of workers that were not seen for so long, in milliseconds, are of no use to anybody.
const KEPT_MILLIS: i64 = 86_400_000;

/// A worker that is about, or that stopped because of something that a person must mend.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Presence {
    /// Host, process and a digest of when it began.
    pub id: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was seen last.
    pub seen_at: Timestamp,
    /// The line that mends it, if it stopped for that.
    pub stopped: Option<String>,
}

/// Writes that a worker is about, and forgets those that are long gone.
pub(super) fn seen(db: &mut Db, it: &Presence) -> Result<(), Fault> {
    let sql = "INSERT INTO workers (id, started_at, seen_at, stopped) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, stopped = excluded.stopped";
    db.execute(sql, values![&it.id, it.started_at, it.seen_at, it.stopped.as_ref()])?;
    let long_ago = Timestamp(it.seen_at.0 - KEPT_MILLIS);
    db.execute("DELETE FROM workers WHERE seen_at < ?1", values![long_ago])?;
    Ok(())
}

/// Counts afresh what is spent, unless a worker is about that may have something reserved.
pub(super) fn recount(db: &mut Db, now: Timestamp) -> Result<(), Fault> {
    let sql = "SELECT count(*) FROM workers WHERE stopped IS NULL AND ?1 < seen_at";
    let since = values![Timestamp(now.0 - GONE_MILLIS)];
    if db.first(sql, since, |row| row.next::<u32>())? == Some(0) {
        allowance::forget(db)?;
    }
    Ok(())
}

/// Forgets a worker that ended well, and those that had stopped before it began: what they stopped for
/// did not stop this one.
pub(super) fn leave(db: &mut Db, id: &str) -> Result<(), Fault> {
    let sql = "DELETE FROM workers WHERE id = ?1 OR stopped IS NOT NULL
        AND seen_at < (SELECT w.started_at FROM workers w WHERE w.id = ?1)";
    db.execute(sql, values![id])?;
    Ok(())
}

pub(super) fn list(db: &mut Db) -> Result<Vec<Presence>, Fault> {
    let sql = "SELECT id, started_at, seen_at, stopped FROM workers ORDER BY started_at, id";
    db.all(sql, &[], |row| {
        Ok(Presence {
            id: row.next()?,
            started_at: row.next()?,
            seen_at: row.next()?,
            stopped: row.next()?,
        })
    })
}
