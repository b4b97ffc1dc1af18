//! Sessions: metadata of conversations, the progress of their intake, and their memory cards.

use super::{
    Db, Fault, IdPrefix, PageRange, PrefixLookup, Result, Store, StoreErrorKind, StoreResult,
    row_of, values,
};
use crate::domain::{Digest, RecordId, Session, SessionId, Timestamp};
use crate::privacy::Redacted;

/// Maximum number of sessions listed for an ambiguous prefix.
const SESSIONS_NAMED_MAX: u32 = 20;

/// Columns of a session, of a [`Session`].
pub(super) const SESSION_COLUMNS: &str = "s.id, s.namespace, s.format, s.native_id, s.path, s.title, \
     s.cwd, s.parent, s.branches, s.started_at";

row_of! {
    Session {
        id, namespace, format, native_id, path, title, cwd, parent, branches, started_at
    }
}

/// Time of the first or last entry of session `s` that has one.
pub(super) fn edge(order: &str) -> String {
    format!(
        "(SELECT e.at FROM entries e WHERE e.place >= (s.no << 32)
            AND e.place < ((s.no + 1) << 32) AND e.at IS NOT NULL
            ORDER BY e.place {order} LIMIT 1)"
    )
}

/// Start and end of a session according to its entries.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct SessionSpan {
    pub title: Option<Redacted>,
    pub began: Option<Timestamp>,
    pub ended: Option<Timestamp>,
}

row_of! { SessionSpan { title, began, ended } }

impl Store {
    /// Returns the session of each record of a namespace.
    pub(crate) async fn sessions_of_records(
        &self,
        namespace: &str,
    ) -> StoreResult<Vec<(RecordId, SessionId)>> {
        let sql = "SELECT c.id, s.id FROM sessions s JOIN runs r ON r.session_no = s.no
            JOIN records c ON c.run_no = r.no WHERE s.namespace = ?1";
        self.all("reading the sessions of records", sql, values![namespace]).await
    }

    /// Returns the time span of each session of a namespace.
    pub(crate) async fn session_spans(
        &self,
        namespace: &str,
    ) -> StoreResult<Vec<(SessionId, SessionSpan)>> {
        let sql = format!(
            "SELECT s.id, s.title, coalesce(s.started_at, {}), {} FROM sessions s
            WHERE s.namespace = ?1",
            edge("ASC"),
            edge("DESC")
        );
        self.all("reading when sessions were held", &sql, values![namespace]).await
    }

    pub(crate) async fn remembered(
        &self,
        session: SessionId,
    ) -> StoreResult<Option<ConversationState>> {
        let sql = "SELECT r.settings, r.next, r.dialog, r.conversation
            FROM remembered r JOIN sessions s ON s.no = r.session_no WHERE s.id = ?1";
        self.first("reading what is remembered of a session", sql, values![&session.0]).await
    }

    /// Returns the progress of a session; `None` if it is new.
    pub async fn growth(&self, id: SessionId) -> StoreResult<Option<SessionProgress>> {
        self.read("reading the progress of a session", move |db| growth(db, id)).await
    }

    /// Returns a page of sessions, most recently started first.
    pub(crate) async fn latest_sessions(&self, range: PageRange) -> StoreResult<Vec<Session>> {
        let sql = format!(
            "SELECT {SESSION_COLUMNS} FROM sessions s
            ORDER BY coalesce(s.started_at, 0) DESC, s.no DESC LIMIT ?1 OFFSET ?2"
        );
        self.all("listing sessions", &sql, values![range.take, range.skip]).await
    }

    /// Looks up a session by its id or its client's id, or a prefix of either. A client's full id
    /// wins over prefixes.
    pub(crate) async fn session_named(&self, text: &str) -> StoreResult<PrefixLookup<Session>> {
        let text = text.to_owned();
        self.read("looking up a session", move |db| {
            let own: Option<IdPrefix> = text.parse().ok();
            let (low, high) = own.as_ref().map(IdPrefix::bounds).unzip();
            let sql = format!(
                "SELECT {SESSION_COLUMNS} FROM sessions s
                WHERE substr(s.native_id, 1, length(?1)) = ?1 OR s.id BETWEEN ?2 AND ?3
                ORDER BY s.native_id <> ?1, s.no LIMIT ?4"
            );
            let mut found: Vec<Session> =
                db.all(&sql, values![&text, low, high, SESSIONS_NAMED_MAX])?;
            let whole = found.iter().filter(|it| it.native_id.as_str() == text).count();
            if whole > 0 {
                found.truncate(whole);
            }
            Ok(PrefixLookup::of(found, |it| it.id.0))
        })
        .await
    }

    /// Returns sessions with entries that their card does not cover yet, with their entry count.
    pub(crate) async fn cards_due(&self, limit: u32) -> StoreResult<Vec<(SessionId, u32)>> {
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
    ) -> StoreResult<()> {
        self.write("keeping a card", move |db| {
            let no = number(db, session)?;
            write_card(db, no, entries, &card)
        })
        .await
    }

    /// Returns cards ordered by session start, filtered by session id prefix and namespace if given.
    pub(crate) async fn cards(
        &self,
        id: Option<IdPrefix>,
        namespace: Option<String>,
    ) -> StoreResult<Vec<StoredCard>> {
        let sql = format!(
            "SELECT {SESSION_COLUMNS}, c.entries, c.due, c.card
            FROM cards c JOIN sessions s ON s.no = c.session_no
            WHERE c.card IS NOT NULL AND (s.id BETWEEN ?1 AND ?2 OR ?1 IS NULL)
                AND (s.namespace = ?3 OR ?3 IS NULL)
            ORDER BY s.started_at, s.no"
        );
        let (low, high) = id.as_ref().map(IdPrefix::bounds).unzip();
        self.all("reading cards", &sql, values![low, high, &namespace]).await
    }

    /// Returns the sessions that overlap the time range, latest first.
    pub(crate) async fn sessions_between(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreResult<Vec<SessionWithSpan>> {
        let sql = format!(
            "SELECT {SESSION_COLUMNS}, s.began, s.ended FROM (
                SELECT s.*, coalesce(s.started_at, {}) AS began, {} AS ended FROM sessions s
            ) s WHERE s.began <= ?2 AND ?1 <= s.ended ORDER BY s.ended DESC, s.id LIMIT ?3",
            edge("ASC"),
            edge("DESC")
        );
        self.all("reading which sessions were held", &sql, values![from, to, OVERLAPPING_MAX]).await
    }
}

pub(super) fn number(db: &mut Db, id: SessionId) -> Result<i64> {
    let no = db.first("SELECT no FROM sessions WHERE id = ?1", values![&id.0])?;
    no.ok_or_else(|| StoreErrorKind::UnknownSession(id).into())
}

/// Inserts or updates a session and returns its row number; `None` if `intakes` is given and does
/// not match the stored session.
pub(super) fn upsert(db: &mut Db, session: &Session, intakes: Option<u64>) -> Result<Option<i64>> {
    let sql = "INSERT INTO sessions
            (id, namespace, format, native_id, path, title, cwd, parent, started_at, branches)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
        ON CONFLICT (id) DO UPDATE SET path = excluded.path,
            title = coalesce(excluded.title, sessions.title),
            cwd = coalesce(excluded.cwd, sessions.cwd),
            parent = coalesce(excluded.parent, sessions.parent),
            branches = coalesce(excluded.branches, sessions.branches),
            started_at = coalesce(sessions.started_at, excluded.started_at)
            WHERE sessions.intakes = ?11 OR ?11 IS NULL
        RETURNING no";
    let it = session;
    let row = values![
        &it.id, &it.namespace, it.format, &it.native_id, &it.path, &it.title, &it.cwd, &it.parent,
        it.started_at, &it.branches, intakes,
    ];
    db.first(sql, row)
}

/// Writes a session that is about to be read from its beginning and returns its row number. It
/// counts as incomplete until that ends.
pub(super) fn begin(db: &mut Db, session: &Session) -> Result<i64> {
    let no = upsert(db, session, None)?.ok_or(Fault::from(StoreErrorKind::Damaged))?;
    let sql = "UPDATE sessions SET entries = NULL, lines = NULL, ended_at = NULL WHERE no = ?1";
    db.run(sql, values![no])?;
    Ok(no)
}

/// Records that a slice ended after `entries` entries because the session did.
pub(super) fn mark_end(db: &mut Db, no: i64, entries: u32) -> Result<()> {
    let sql = "INSERT INTO session_ends (session_no, entries) VALUES (?1, ?2)
        ON CONFLICT DO NOTHING";
    db.run(sql, values![no, entries])
}

pub(super) fn find(db: &mut Db, id: SessionId) -> Result<Option<Session>> {
    let sql = format!("SELECT {SESSION_COLUMNS} FROM sessions s WHERE s.id = ?1");
    db.first(&sql, values![&id.0])
}

/// Id under which a conversation of a client is forgotten, whatever namespace it is read into.
pub(super) fn id_everywhere(format: &str, native_id: &str, folder: Option<&str>) -> SessionId {
    SessionId(Digest::of(&["everywhere", format, native_id, folder.unwrap_or_default()]))
}

/// Locks a session until the transaction ends; false if it is not in the store.
pub(super) fn lock_session(db: &mut Db, id: SessionId) -> Result<bool> {
    let sql = format!("SELECT no FROM sessions WHERE id = ?1{}", db.locking());
    Ok(db.first::<i64>(&sql, values![&id.0])?.is_some())
}

pub(super) fn is_forgotten(db: &mut Db, session: SessionId) -> Result<bool> {
    let sql = "SELECT 1 FROM forgotten WHERE session = ?1";
    db.exists(sql, values![&session.0])
}

/// Marks erased text for [`Store::scrub`], in the transaction that erases it.
pub(super) fn mark_unscrubbed(db: &mut Db, namespace: &str) -> Result<()> {
    db.run("INSERT INTO scrubs (namespace) VALUES (?1)", values![namespace])
}

/// State of a conversation after its entries before `next`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConversationState {
    /// Digest of the settings it was made with; it is invalid under others.
    pub settings: Digest,
    /// Ordinal of the first entry that it does not cover.
    pub next: u32,
    /// Last turns of the dialog, as JSON.
    pub dialog: String,
    /// Memory of the conversation, as JSON.
    pub conversation: String,
}

row_of! { ConversationState { settings, next, dialog, conversation } }

/// Replaces the stored conversation state.
pub(super) fn remember(db: &mut Db, session_no: i64, it: &ConversationState) -> Result<()> {
    let sql = "INSERT INTO remembered (session_no, settings, next, dialog, conversation)
        VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (session_no) DO UPDATE SET settings = excluded.settings,
            next = excluded.next, dialog = excluded.dialog, conversation = excluded.conversation";
    db.run(sql, values![session_no, &it.settings, it.next, &it.dialog, &it.conversation])
}

/// Progress of a session's intake.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionProgress {
    /// Number of intakes; an [`Intake`](super::queue::Intake) is based on a specific one.
    pub intakes: u64,
    /// Number of leading entries that are in complete slices or in none.
    pub taken: u32,
    /// Number of entries; those from `taken` on are gathering.
    pub entries: u32,
    /// Index of the session's next slice.
    pub next_index: u32,
    /// Numbers of entries after which a slice ended because the session did.
    pub ends: Vec<u32>,
    /// Time at which gathering entries are extracted as they are, if any gather.
    pub gathers_until: Option<Timestamp>,
    /// File it was last read from.
    pub path: String,
    /// True if the session was forgotten and must not be ingested again.
    pub forgotten: bool,
}

fn growth(db: &mut Db, id: SessionId) -> Result<Option<SessionProgress>> {
    let sql = "SELECT no, intakes, taken, path, coalesce(entries, taken) FROM sessions
        WHERE id = ?1";
    let found: Option<(i64, (u64, u32, String, u32))> = db.first(sql, values![&id.0])?;
    let Some((no, (intakes, taken, path, entries))) = found else {
        let forgotten = is_forgotten(db, id)?;
        return Ok(forgotten.then(|| SessionProgress { forgotten, ..SessionProgress::default() }));
    };
    let mut progress =
        SessionProgress { intakes, taken, path, entries, ..SessionProgress::default() };
    let sql = "SELECT coalesce(max(i), 0) FROM (
        SELECT max(slice_index) + 1 AS i FROM runs WHERE session_no = ?1
        UNION ALL
        SELECT max(slice_index) + 1 FROM jobs
        WHERE session_no = ?1 AND finished_at IS NULL
            AND (reason IS NULL OR reason <> 'gathering')) AS known";
    progress.next_index = db.one(sql, values![no])?;
    let sql = "SELECT entries FROM session_ends WHERE session_no = ?1 ORDER BY entries";
    progress.ends = db.all(sql, values![no])?;
    let sql = "SELECT until FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
        AND state = 'waiting' AND reason = 'gathering'";
    progress.gathers_until = db.first(sql, values![no])?.flatten();
    Ok(Some(progress))
}

/// A memory card with its session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredCard {
    pub session: Session,
    /// Number of entries the card was made from.
    pub entries: u32,
    pub due: bool,
    pub card: String,
}

row_of! { StoredCard { session, entries, due, card } }

/// Marks a session's card as outdated after the session grew.
pub(super) fn mark_card_due(db: &mut Db, session_no: i64) -> Result<()> {
    let sql = "INSERT INTO cards (session_no, due) VALUES (?1, 1)
        ON CONFLICT (session_no) DO UPDATE SET due = 1";
    db.run(sql, values![session_no])
}

pub(super) fn write_card(db: &mut Db, session_no: i64, entries: u32, card: &str) -> Result<()> {
    // The session may have grown while the card was made.
    let sql = "INSERT INTO cards (session_no, entries, card, due)
        SELECT no, ?2, ?3, CASE WHEN coalesce(entries, ?2) = ?2 THEN 0 ELSE 1 END
        FROM sessions WHERE no = ?1
        ON CONFLICT (session_no) DO UPDATE SET entries = excluded.entries, card = excluded.card,
            due = excluded.due";
    db.run(sql, values![session_no, entries, card])
}

/// Maximum number of sessions returned, latest first.
const OVERLAPPING_MAX: u32 = 200;

/// A session and the times of its first and last entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SessionWithSpan {
    pub session: Session,
    pub began: Timestamp,
    pub ended: Timestamp,
}

row_of! { SessionWithSpan { session, began, ended } }
