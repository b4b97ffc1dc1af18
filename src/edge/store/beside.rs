//! What stands beside the entries of a session: what is remembered of it for those who go on with it,
//! and its memory card.

use super::db::{Db, Value, values};
use super::error::Fault;
use super::prefix::IdPrefix;
use super::{Store, StoreError, session};
use crate::domain::{Digest, Session, SessionId};

/// What is remembered of a session: of its entries before `next`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Remembered {
    /// Digest of the settings that it was made under; it is of no use under others.
    pub settings: Digest,
    /// The ordinal of the first entry that it knows nothing of.
    pub next: u32,
    /// The last turns of the dialog, as JSON.
    pub dialog: String,
    /// The memory of the conversation, as JSON.
    pub conversation: String,
}

/// The card of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCard {
    /// The session.
    pub session: Session,
    /// The entries that it was made of, from the first.
    pub entries: u32,
    /// Whether the session has others by now.
    pub due: bool,
    /// The card, as JSON.
    pub card: String,
}

impl Store {
    /// What is remembered of a session, if anything is.
    pub async fn remembered(&self, session: SessionId) -> Result<Option<Remembered>, StoreError> {
        self.look("reading what is remembered of a session", move |from| recall(from, session))
            .await
    }

    /// Sessions whose card does not know all their entries, with how many they have; `limit` at most.
    pub async fn cards_due(&self, limit: u32) -> Result<Vec<(SessionId, u32)>, StoreError> {
        self.look("looking for cards to be made", move |from| due(from, limit)).await
    }

    /// Keeps the card of a session that was made of its first `entries` entries.
    ///
    /// # Errors
    /// [`UnknownSession`](super::StoreErrorKind::UnknownSession) if it is not in the store.
    pub async fn keep_card(
        &self,
        session: SessionId,
        entries: u32,
        card: String,
    ) -> Result<(), StoreError> {
        let keep = move |to: &mut Db| {
            let no = session::number(to, session)?;
            write_card(to, no, entries, &card)
        };
        self.write("keeping a card", keep).await
    }

    /// The cards of the sessions whose ids begin so, or of all, by when the sessions began; of one
    /// namespace if that is named.
    pub async fn cards(
        &self,
        id: Option<IdPrefix>,
        namespace: Option<String>,
    ) -> Result<Vec<StoredCard>, StoreError> {
        self.read("reading cards", move |from| list(from, id.as_ref(), namespace.as_deref())).await
    }
}

/// Keeps what is remembered of a session in the place of what was.
pub(super) fn remember(db: &mut Db, session_no: i64, it: &Remembered) -> Result<(), Fault> {
    let sql = "INSERT INTO remembered (session_no, settings, next, dialog, conversation)
        VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (session_no) DO UPDATE SET settings = excluded.settings,
            next = excluded.next, dialog = excluded.dialog, conversation = excluded.conversation";
    db.send(sql, values![session_no, &it.settings, it.next, &it.dialog, &it.conversation])
}

fn recall(db: &mut Db, session: SessionId) -> Result<Option<Remembered>, Fault> {
    let sql = "SELECT r.settings, r.next, r.dialog, r.conversation
        FROM remembered r JOIN sessions s ON s.no = r.session_no WHERE s.id = ?1";
    db.first(sql, values![&session.0], |row| {
        let (settings, next) = (row.next()?, row.next()?);
        Ok(Remembered { settings, next, dialog: row.next()?, conversation: row.next()? })
    })
}

/// Notes that a session grew, so that somebody makes its card anew.
pub(super) fn card_is_due(db: &mut Db, session_no: i64) -> Result<(), Fault> {
    let sql = "INSERT INTO cards (session_no, due) VALUES (?1, 1)
        ON CONFLICT (session_no) DO UPDATE SET due = 1";
    db.send(sql, values![session_no])
}

pub(super) fn write_card(
    db: &mut Db,
    session_no: i64,
    entries: u32,
    card: &str,
) -> Result<(), Fault> {
    // The session may have grown while the card was made.
    let sql = "INSERT INTO cards (session_no, entries, card, due)
        SELECT no, ?2, ?3, CASE WHEN entries = ?2 THEN 0 ELSE 1 END FROM sessions WHERE no = ?1
        ON CONFLICT (session_no) DO UPDATE SET entries = excluded.entries, card = excluded.card,
            due = excluded.due";
    db.send(sql, values![session_no, entries, card])
}

fn due(db: &mut Db, limit: u32) -> Result<Vec<(SessionId, u32)>, Fault> {
    let sql = "SELECT s.id, s.entries FROM cards c JOIN sessions s ON s.no = c.session_no
        WHERE c.due = 1 AND s.entries IS NOT NULL ORDER BY c.session_no LIMIT ?1";
    db.all(sql, values![limit], |row| Ok((SessionId(row.next()?), row.next()?)))
}

fn list(
    db: &mut Db,
    id: Option<&IdPrefix>,
    namespace: Option<&str>,
) -> Result<Vec<StoredCard>, Fault> {
    let (mut conditions, mut with) = (String::new(), Vec::new());
    if let Some(id) = id {
        let (low, high) = id.bounds();
        conditions.push_str(" AND s.id BETWEEN ?1 AND ?2");
        with.extend_from_slice(values![low, high]);
    }
    if let Some(namespace) = namespace {
        with.push(Value::from(namespace));
        conditions.push_str(&format!(" AND s.namespace = ?{}", with.len()));
    }
    let sql = format!(
        "SELECT {}, c.entries, c.due, c.card FROM cards c JOIN sessions s ON s.no = c.session_no
        WHERE c.card IS NOT NULL{conditions} ORDER BY s.started_at, s.no",
        session::COLUMNS
    );
    db.all(&sql, &with, |row| {
        let session = session::read(row)?;
        Ok(StoredCard { session, entries: row.next()?, due: row.next()?, card: row.next()? })
    })
}
