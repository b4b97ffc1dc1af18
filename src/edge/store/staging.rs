//! Staging: what a run came to, in one transaction. Staging twice changes nothing; staging a run
//! anew makes exactly the new records its current ones.

use super::db::{Db, values};
use super::error::{Fault, StoreErrorKind};
use super::{Covered, Run};
use super::{entry, queue, record, run};
use crate::domain::{Record, RecordState, RunState};

/// A run with all that it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Staging {
    /// The run.
    pub run: Run,
    /// The entries of its slice and what became of each. An entry may stand here more than once,
    /// once a part; it is then what its worst part is.
    pub entries: Vec<Covered>,
    /// Its records, in the order in which they are listed.
    pub records: Vec<Record>,
}

/// What staging did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Staged {
    /// Records that the store did not hold before.
    pub new_records: u32,
    /// Records of the run that are staged now.
    pub staged: u32,
    /// Records of the run that are quarantined now.
    pub quarantined: u32,
    /// The run had been done before and failed now: the earlier extraction stays, and only the
    /// cost was added.
    pub earlier_kept: bool,
}

/// Whether the entries of a staging are in the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Texts {
    /// They come with it.
    New,
    /// They were stored when the job was taken in.
    Stored,
}

pub(super) fn write(db: &mut Db, staging: &Staging, texts: Texts) -> Result<Staged, Fault> {
    let run = &staging.run;
    // Two who stage one run for the first time would each find nothing to set aside.
    db.alone(&run.id.0)?;
    let (session_no, earlier) = found(db, run)?;
    if let (Some((run_no, true)), RunState::Failed) = (earlier, run.state) {
        run::add_cost(db, run_no, run)?;
        let counts = count(db, run_no)?;
        return Ok(Staged { new_records: 0, earlier_kept: true, ..counts.staged });
    }
    let run_no = run::write(db, session_no, run)?;
    let mut before = 0;
    if earlier.is_some() {
        entry::uncover(db, session_no, run_no, (run.first.0, run.last.0))?;
        before = replace_records(db, run_no)?;
    }
    if run.state == RunState::Done && run.failure.is_none() {
        run::replace_others(db, session_no, run)?;
        // A job of these entries may have died before a run said anything of them.
        entry::uncover_open(db, session_no, (run.first.0, run.last.0))?;
        if texts == Texts::New {
            queue::outdo(db, session_no, run)?;
        }
    }
    match texts {
        Texts::New => entry::write(db, session_no, run_no, &staging.entries)?,
        Texts::Stored => entry::cover(db, session_no, run_no, &staging.entries)?,
    }
    let written = record::write(db, run_no, &staging.records)?;
    let counts = match earlier {
        None => Counts::of(&written),
        Some(_) => count(db, run_no)?,
    };
    Ok(Staged { new_records: counts.all.saturating_sub(before), ..counts.staged })
}

/// The row number of a run's session, and that of the run if it is there, with whether it was done.
fn found(db: &mut Db, run: &Run) -> Result<(i64, Option<(i64, bool)>), Fault> {
    let sql = "SELECT s.no, r.no, r.state FROM sessions s LEFT JOIN runs r ON r.id = ?2
        WHERE s.id = ?1";
    let found = db.first(sql, values![&run.session.0, &run.id.0], |row| {
        let (session_no, run_no): (i64, Option<i64>) = (row.next()?, row.next()?);
        let state: Option<String> = row.next()?;
        let done = state.as_deref() == Some(RunState::Done.name());
        Ok((session_no, run_no.map(|run_no| (run_no, done))))
    })?;
    found.ok_or_else(|| StoreErrorKind::UnknownSession(run.session).into())
}

/// Sets the records of an earlier staging aside, and says how many there are.
fn replace_records(db: &mut Db, run_no: i64) -> Result<u32, Fault> {
    let sql = "UPDATE records SET state = 'replaced' WHERE run_no = ?1";
    let replaced = db.execute(sql, values![run_no])?;
    Ok(u32::try_from(replaced).unwrap_or(u32::MAX))
}

struct Counts {
    all: u32,
    staged: Staged,
}

impl Counts {
    /// Of the records of a run that had none before.
    fn of(written: &[&Record]) -> Counts {
        let of = |state| written.iter().filter(|record| record.state == state).count() as u32;
        let (staged, quarantined) = (of(RecordState::Staged), of(RecordState::Quarantined));
        let staged = Staged { staged, quarantined, ..Staged::default() };
        Counts { all: written.len() as u32, staged }
    }
}

fn count(db: &mut Db, run_no: i64) -> Result<Counts, Fault> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE state = ?2),
        count(*) FILTER (WHERE state = ?3) FROM records WHERE run_no = ?1";
    let states = (RecordState::Staged.name(), RecordState::Quarantined.name());
    db.one(sql, values![run_no, states.0, states.1], |row| {
        let all = row.next()?;
        let staged = Staged { staged: row.next()?, quarantined: row.next()?, ..Staged::default() };
        Ok(Counts { all, staged })
    })
}
