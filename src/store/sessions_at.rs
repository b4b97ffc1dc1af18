//! Sessions that overlap a time range, and the entries of a session that mention given words.

use super::db::Db;
use super::entry;
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::search::literal;
use super::session::{self, edge};
use super::value::{Value, row_of, values};
use crate::domain::{Entry, Session, SessionId, Timestamp};

/// Maximum number of sessions returned, latest first.
const SESSIONS_MAX: u32 = 200;
/// Maximum number of entries returned per session.
const ENTRIES_MAX: u32 = 500;

/// A session and the times of its first and last entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SessionWithSpan {
    pub session: Session,
    pub began: Timestamp,
    pub ended: Timestamp,
}

row_of! { SessionWithSpan { session, began, ended } }

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
    let (from, to) = (entry::entry_key(no, 0), entry::entry_key(no + 1, 0));
    let mut row = values![from, to, ENTRIES_MAX].to_vec();
    row.extend(patterns.iter().map(Value::from));
    db.all(&sql, &row)
}

impl Store {
    /// Returns the sessions that overlap the time range, latest first.
    pub(crate) async fn sessions_between(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<SessionWithSpan>, StoreError> {
        let sql = format!(
            "SELECT {}, s.began, s.ended FROM (
                SELECT s.*, coalesce(s.started_at, {}) AS began, {} AS ended FROM sessions s
            ) s WHERE s.began <= ?2 AND ?1 <= s.ended ORDER BY s.ended DESC, s.id LIMIT ?3",
            session::COLUMNS,
            edge("ASC"),
            edge("DESC")
        );
        self.all("reading which sessions were held", &sql, values![from, to, SESSIONS_MAX]).await
    }

    /// Returns the last entries of a session that contain one of `words` literally, latest first.
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
