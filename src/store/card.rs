//! Memory cards of sessions.

use super::db::Db;
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::prefix::IdPrefix;
use super::session;
use super::value::{row_of, values};
use crate::domain::{Session, SessionId};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredCard {
    pub session: Session,
    /// Number of entries the card was made from.
    pub entries: u32,
    pub due: bool,
    pub card: String,
}

row_of! { StoredCard { session, entries, due, card } }

impl Store {
    /// Returns sessions with entries that their card does not cover yet, with their entry count.
    pub(crate) async fn cards_due(&self, limit: u32) -> Result<Vec<(SessionId, u32)>, StoreError> {
        let sql = "SELECT s.id, s.entries FROM cards c JOIN sessions s ON s.no = c.session_no
            WHERE c.due = 1 AND s.entries IS NOT NULL ORDER BY c.session_no LIMIT ?1";
        self.all("looking for cards to be made", sql, values![limit]).await
    }

    /// Stores the card made from a session's first `entries` entries.
    pub(crate) async fn keep_card(
        &self,
        session: SessionId,
        entries: u32,
        card: String,
    ) -> Result<(), StoreError> {
        self.write("keeping a card", move |db| {
            let no = session::number(db, session)?;
            write(db, no, entries, &card)
        })
        .await
    }

    /// Returns cards ordered by session start, filtered by session id prefix and namespace if given.
    pub(crate) async fn cards(
        &self,
        id: Option<IdPrefix>,
        namespace: Option<String>,
    ) -> Result<Vec<StoredCard>, StoreError> {
        let sql = format!(
            "SELECT {}, c.entries, c.due, c.card
            FROM cards c JOIN sessions s ON s.no = c.session_no
            WHERE c.card IS NOT NULL AND (s.id BETWEEN ?1 AND ?2 OR ?1 IS NULL)
                AND (s.namespace = ?3 OR ?3 IS NULL)
            ORDER BY s.started_at, s.no",
            session::COLUMNS
        );
        let (low, high) = id.as_ref().map(IdPrefix::bounds).unzip();
        self.all("reading cards", &sql, values![low, high, namespace.as_ref()]).await
    }
}

/// Marks a session's card as outdated after the session grew.
pub(super) fn mark_due(db: &mut Db, session_no: i64) -> Result<(), Fault> {
    let sql = "INSERT INTO cards (session_no, due) VALUES (?1, 1)
        ON CONFLICT (session_no) DO UPDATE SET due = 1";
    db.run(sql, values![session_no])
}

pub(super) fn write(db: &mut Db, session_no: i64, entries: u32, card: &str) -> Result<(), Fault> {
    // The session may have grown while the card was made.
    let sql = "INSERT INTO cards (session_no, entries, card, due)
        SELECT no, ?2, ?3, CASE WHEN coalesce(entries, ?2) = ?2 THEN 0 ELSE 1 END
        FROM sessions WHERE no = ?1
        ON CONFLICT (session_no) DO UPDATE SET entries = excluded.entries, card = excluded.card,
            due = excluded.due";
    db.run(sql, values![session_no, entries, card])
}
