//! Sessions that were held around a time, and the entries of one that name something.

use super::db::Db;
use super::entry;
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::search::literal;
use super::session::{self, edge};
use super::value::{Value, values};
use crate::domain::{Entry, Session, SessionId, Timestamp};

/// Sessions that are looked at, the latest first.
const SESSIONS_MAX: u32 = 200;
/// Entries of a session that are looked at.
const ENTRIES_MAX: u32 = 500;

/// A session, and when it was held.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct HeldSession {
    pub session: Session,
    pub began: Timestamp,
    pub ended: Timestamp,
}

fn naming(db: &mut Db, session: SessionId, words: &[String]) -> Result<Vec<Entry>, Fault> {
    let no = session::number(db, session)?;
    let patterns: Vec<String> = words.iter().map(|it| format!("%{}%", literal(it))).collect();
    let conditions: Vec<String> =
        (4..).take(patterns.len()).map(|no| format!(r"text LIKE ?{no} ESCAPE '\'")).collect();
    let sql = format!(
        "SELECT {} FROM entries WHERE ?1 <= place AND place < ?2 AND ({})
        ORDER BY place DESC LIMIT ?3",
        entry::COLUMNS,
        conditions.join(" OR ")
    );
    let (from, to) = (entry::place(no, 0), entry::place(no + 1, 0));
    let mut row = values![from, to, ENTRIES_MAX].to_vec();
    row.extend(patterns.iter().map(Value::from));
    db.all(&sql, &row, entry::read)
}

impl Store {
    /// Sessions that were held between two times or at a part of it, the latest first.
    pub(crate) async fn sessions_between(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<HeldSession>, StoreError> {
        self.read("reading which sessions were held", move |db| {
            let sql = format!(
                "SELECT {}, s.began, s.ended FROM (
                    SELECT s.*, coalesce(s.started_at, {}) AS began, {} AS ended FROM sessions s
                ) s WHERE s.began <= ?2 AND ?1 <= s.ended ORDER BY s.ended DESC, s.id LIMIT ?3",
                session::COLUMNS,
                edge("ASC"),
                edge("DESC")
            );
            db.all(&sql, values![from, to, SESSIONS_MAX], |row| {
                let session = session::read(row)?;
                Ok(HeldSession { session, began: row.next()?, ended: row.next()? })
            })
        })
        .await
    }

    /// The last entries of a session with one of `words` as they are, the latest first.
    pub(crate) async fn entries_naming(
        &self,
        session: SessionId,
        words: Vec<String>,
    ) -> Result<Vec<Entry>, StoreError> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.read("looking for entries that name something", move |db| naming(db, session, &words))
            .await
    }
}
