//! Erases a session with everything derived from it, or single records. Only ids remain in the
//! ledger.

use super::lease::check_namespace;
use super::memory_index::{find, write_memories};
use super::session::{id_everywhere, lock_session, mark_unscrubbed};
use super::sqlite::connection::scrub;
use super::{
    AuditEntry, Backend, Db, IdPrefix, NamespaceLease, Result, Store, StoreResult, Value, json,
    query, search, values, vault,
};
use crate::domain::{Change, Digest, MemoryId, Plan, RecordId, SessionId, Timestamp};
use crate::text::phrase::{commas, counted};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Sessions and records to erase, and the resulting changes to memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Erasure {
    pub sessions: Vec<SessionId>,
    pub records: Vec<RecordId>,
    pub changes: Vec<Change>,
    pub plans: Vec<Plan>,
}

/// Numbers of erased rows.
#[derive(schemars::JsonSchema, Clone, Copy, Debug, Default, Eq, PartialEq, serde::Serialize)]
pub(crate) struct Erased {
    /// Conversations.
    pub sessions: u64,
    /// Entries of them.
    pub entries: u64,
    /// Extractions of them.
    pub runs: u64,
    /// Records.
    pub records: u64,
    /// Answers of models.
    pub answers: u64,
    /// Jobs.
    pub jobs: u64,
    /// Memories that are gone.
    pub memories_gone: u64,
    /// Memories that were rebuilt, or became active again.
    pub memories_changed: u64,
}

impl Erased {
    /// Numbers of everything but memories, in words; `session` names a conversation.
    pub(crate) fn in_words(&self, session: &str) -> String {
        let all = [
            (self.sessions, session),
            (self.entries, "entry"),
            (self.records, "record"),
            (self.answers, "answer"),
            (self.jobs, "job"),
        ];
        let some = all.into_iter().filter(|(number, _)| *number > 0);
        let words = commas(some.map(|(number, name)| counted(number, name)));
        if words.is_empty() { "nothing".to_owned() } else { words }
    }
}

/// Kind of object that a tag refers to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TagKind {
    Record,
    Memory,
    Session,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredText<'a> {
    /// Table name.
    pub place: &'static str,
    pub column: &'static str,
    pub text: &'a str,
}

/// Tables, their names for people, and all their columns that may contain words of a conversation or of a person's settings.
const TEXTS: [(&str, &str, &[&str]); 17] = [
    ("entries", "conversations", &["text", "native_id", "tool", "call_id"]),
    ("records", "records", &["body", "evidence", "reason"]),
    ("journal", "answers of models", &["reply", "request", "model"]),
    ("jobs", "jobs", &["context", "detail", "holder", "cut", "reason"]),
    ("runs", "extractions", &["error_detail", "findings", "model"]),
    ("coverage", "reasons of skipped entries", &["reason"]),
    ("remembered", "conversation memories", &["dialog", "conversation"]),
    ("cards", "memory cards", &["card"]),
    ("memories", "memories", &["body", "namespace"]),
    ("plans", "plans", &["body", "namespace"]),
    ("memory_files", "files as last written", &["base", "path", "dir"]),
    ("memory_dirs", "names of directories", &["dir", "namespace"]),
    (
        "sessions",
        "titles of conversations",
        &["title", "path", "cwd", "native_id", "parent", "branches", "namespace", "findings"],
    ),
    ("capabilities", "endpoints", &["base_url", "model"]),
    ("lanes", "queues", &["namespace"]),
    ("workers", "workers", &["stopped"]),
    ("namespace_moves", "names of namespaces", &["namespace", "moved_to"]),
];

/// Words for the place of a [`StoredText`], for people.
pub(crate) fn place_in_words(place: &str) -> &str {
    TEXTS.iter().find(|(table, ..)| *table == place).map_or(place, |(_, words, _)| words)
}

/// Tables and columns of [`TEXTS`].
fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.iter().flat_map(|(table, _, columns)| columns.iter().map(|column| (*table, *column)))
}

impl Store {
    /// Returns false if nothing was ever forgotten.
    pub(crate) async fn has_forgotten(&self) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM ledger WHERE deed = 'forget' AND record IS NOT NULL
            UNION ALL SELECT 1 FROM forgotten LIMIT 1";
        self.read("looking for what was forgotten", query(sql, &[], Db::exists)).await
    }

    /// Returns the sessions that were forgotten and have not come back.
    pub(crate) async fn forgotten_sessions(&self) -> StoreResult<Vec<SessionId>> {
        let sql = "SELECT session FROM forgotten f
            WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = f.session)";
        self.all("looking for what was forgotten", sql, &[]).await
    }

    /// Returns those id prefixes whose object was forgotten and has not come back.
    pub(crate) async fn forgotten(
        &self,
        named: TagKind,
        prefixes: BTreeSet<String>,
    ) -> StoreResult<BTreeSet<String>> {
        let sql = match named {
            TagKind::Record => {
                "SELECT 1 FROM ledger l WHERE l.deed = 'forget' AND l.record BETWEEN ?1 AND ?2
                AND NOT EXISTS (SELECT 1 FROM records c WHERE c.id = l.record) LIMIT 1"
            }
            TagKind::Memory => {
                "SELECT 1 FROM ledger l WHERE l.deed = 'forget' AND l.memory BETWEEN ?1 AND ?2
                AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = l.memory) LIMIT 1"
            }
            TagKind::Session => {
                "SELECT 1 FROM forgotten f WHERE f.session BETWEEN ?1 AND ?2
                AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = f.session) LIMIT 1"
            }
        };
        self.read("looking for what was forgotten", move |from| {
            let mut gone = BTreeSet::new();
            for text in &prefixes {
                let Ok(prefix) = text.parse::<IdPrefix>() else { continue };
                let (low, high) = prefix.bounds();
                if from.exists(sql, values![low, high])? {
                    gone.insert(text.clone());
                }
            }
            Ok(gone)
        })
        .await
    }

    pub(crate) async fn sessions_of(&self, namespace: &str) -> StoreResult<Vec<SessionId>> {
        let sql = "SELECT id FROM sessions WHERE namespace = ?1 ORDER BY no";
        self.all("reading the sessions of a namespace", sql, values![namespace]).await
    }

    pub(crate) async fn count_erasable(&self, erasure: Erasure) -> StoreResult<Erased> {
        self.read("counting what would be erased", move |from| count(from, &erasure)).await
    }

    /// Erases in one transaction. If memories changed in the meantime, erases nothing and returns their ids.
    pub(crate) async fn erase(
        &self,
        lease: &NamespaceLease,
        erasure: Erasure,
        at: Timestamp,
    ) -> StoreResult<Result<Erased, Vec<MemoryId>>> {
        let lease = lease.clone();
        self.write("forgetting", move |to| erase(to, &lease, &erasure, at)).await
    }

    pub(crate) async fn each_text<S: Send + 'static>(
        &self,
        start: S,
        mut each: impl FnMut(&mut S, StoredText<'_>) + Send + 'static,
    ) -> StoreResult<S> {
        let mut state = start;
        let read = move |from: &mut Db| {
            for (place, column) in texts() {
                let sql = format!("SELECT {column} FROM {place} WHERE {column} IS NOT NULL");
                from.each(&sql, &[], |row| {
                    let text: String = row.next()?;
                    each(&mut state, StoredText { place, column, text: &text });
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            let (place, column) = ("vault_chunks", "body");
            vault::each_text(from, &mut |text| {
                each(&mut state, StoredText { place, column, text })
            })?;
            Ok(state)
        };
        self.read_once("looking for words that are left", read).await
    }

    /// Namespaces of erasures whose text was not scrubbed from the file yet; empty for the vault.
    pub(crate) async fn unscrubbed(&self) -> StoreResult<Vec<String>> {
        let sql = "SELECT DISTINCT namespace FROM scrubs ORDER BY namespace";
        self.all("looking for interrupted erasures", sql, &[]).await
    }

    /// Removes erased data from the file's free pages and its log; on a server, vacuum does this. Returns false if other
    /// processes read the file as it was: until they end and this is repeated, it contains the data.
    pub(crate) async fn scrub(&self) -> StoreResult<bool> {
        let doing = "rewriting the store without the erased text";
        let erased: i64 = self
            .read(doing, query("SELECT coalesce(max(no), 0) FROM scrubs", &[], Db::one))
            .await?;
        let is_done = match self.backend() {
            Backend::File(file) => scrub(file.path())?,
            Backend::Server(_) => true,
        };
        if is_done {
            self.write(doing, query("DELETE FROM scrubs WHERE no <= ?1", values![erased], Db::run))
                .await?;
        }
        Ok(is_done)
    }
}

fn erase(
    db: &mut Db,
    lease: &NamespaceLease,
    erasure: &Erasure,
    at: Timestamp,
) -> Result<Result<Erased, Vec<MemoryId>>> {
    check_namespace(db, lease)?;
    vault::lock(db)?;
    // An answer that arrives meanwhile is journaled before this, or not at all.
    for session in &erasure.sessions {
        lock_session(db, *session)?;
    }
    let mut moved = Vec::new();
    for change in &erasure.changes {
        if find(db, change.memory)? != change.before {
            moved.push(change.memory);
        }
    }
    if !moved.is_empty() {
        return Ok(Err(moved));
    }
    mark_unscrubbed(db, &lease.subject)?;
    let changed = erasure.changes.iter().filter(|it| it.after.is_some());
    let answers = answers(db, erasure)?;
    for answer in &answers {
        db.run("DELETE FROM journal WHERE digest = ?1", values![answer])?;
        db.run("DELETE FROM answers_about WHERE digest = ?1", values![answer])?;
    }
    let mut erased = Erased {
        answers: answers.len() as u64,
        memories_gone: write_memories(db, &lease.subject, &erasure.changes)?,
        memories_changed: changed.count() as u64,
        ..Erased::default()
    };
    for change in &erasure.changes {
        if change.after.is_none() {
            let id = values![&change.memory];
            db.run("DELETE FROM contradictions WHERE one = ?1 OR other = ?1", id)?;
            db.run("DELETE FROM open_pairs WHERE memory = ?1", id)?;
        }
        let memory = Some(change.memory);
        AuditEntry { memory, ..AuditEntry::new(at, "forget") }.write(db, &lease.subject)?;
    }
    for plan in &erasure.plans {
        let sql = "UPDATE plans SET body = ?2 WHERE id = ?1";
        db.run(sql, values![&plan.id.0, &json(plan)?])?;
    }
    for record in &erasure.records {
        let id = values![record];
        clear_undone(db, *record)?;
        db.run("DELETE FROM open_pairs WHERE record = ?1", id)?;
        db.run("DELETE FROM dispositions WHERE record = ?1", id)?;
        search::forget(db, search::RECORD, &record.0)?;
        erased.records += db.execute("DELETE FROM records WHERE id = ?1", id)?;
        let record = Some(*record);
        AuditEntry { record, ..AuditEntry::new(at, "forget") }.write(db, &lease.subject)?;
    }
    search::scrub(db)?;
    for session in &erasure.sessions {
        let everywhere = erase_session(db, *session, &mut erased)?;
        let sql =
            "INSERT INTO forgotten (session, at) VALUES (?1, ?2) ON CONFLICT (session) DO NOTHING";
        for id in everywhere.into_iter().chain([*session]) {
            db.run(sql, values![&id.0, at])?;
        }
    }
    Ok(Ok(erased))
}

/// Returns the answers that an erasure includes.
fn answers(db: &mut Db, erasure: &Erasure) -> Result<BTreeSet<Digest>> {
    let mut found = BTreeSet::new();
    let memories = erasure.changes.iter().map(|it| it.memory.0);
    for about in memories.chain(erasure.records.iter().map(|it| it.0)) {
        let sql = "SELECT digest FROM answers_about WHERE about = ?1";
        found.extend(db.all::<Digest>(sql, values![&about])?);
    }
    for record in &erasure.records {
        let sql = "SELECT digest FROM journal WHERE run IN (SELECT r.id FROM runs r
            JOIN records c ON c.run_no = r.no WHERE c.id = ?1)";
        found.extend(db.all::<Digest>(sql, values![record])?);
    }
    for session in &erasure.sessions {
        let sql = "SELECT digest FROM journal WHERE run IN (SELECT r.id FROM runs r
            JOIN sessions s ON s.no = r.session_no WHERE s.id = ?1)";
        found.extend(db.all::<Digest>(sql, values![&session.0])?);
    }
    if !erasure.sessions.is_empty() {
        // Answers that no run has staged cannot be attributed to a session, so all of them go.
        // Answers about memory can: they go with their subject.
        let sql = "SELECT digest FROM journal WHERE run NOT IN (SELECT id FROM runs)
            AND digest NOT IN (SELECT digest FROM answers_about)";
        found.extend(db.all::<Digest>(sql, &[])?);
    }
    Ok(found)
}

/// Counts the rows that an erasure would erase.
fn count(db: &mut Db, erasure: &Erasure) -> Result<Erased> {
    let changed = erasure.changes.iter().filter(|it| it.after.is_some()).count();
    let mut erased = Erased {
        sessions: erasure.sessions.len() as u64,
        records: erasure.records.len() as u64,
        answers: answers(db, erasure)?.len() as u64,
        memories_gone: (erasure.changes.len() - changed) as u64,
        memories_changed: changed as u64,
        ..Erased::default()
    };
    for session in &erasure.sessions {
        let sql = "SELECT
            (SELECT count(*) FROM entries
                WHERE place >= (s.no << 32) AND place < ((s.no + 1) << 32)),
            (SELECT count(*) FROM runs WHERE session_no = s.no),
            (SELECT count(*) FROM jobs WHERE session_no = s.no) FROM sessions s WHERE s.id = ?1";
        let (entries, runs, jobs): (u64, u64, u64) = db.one(sql, values![&session.0])?;
        erased.entries += entries;
        erased.runs += runs;
        erased.jobs += jobs;
    }
    Ok(erased)
}

/// Erases a session. Returns the id under which its conversation is forgotten in every namespace.
fn erase_session(
    db: &mut Db,
    session: SessionId,
    erased: &mut Erased,
) -> Result<Option<SessionId>> {
    let sql = "SELECT no, format, native_id, cwd FROM sessions WHERE id = ?1";
    let row: Option<(i64, String, String, Option<String>)> = db.first(sql, values![&session.0])?;
    let Some((no, format, native_id, cwd)) = row else { return Ok(None) };
    vault::cut_from(db, no, 0)?;
    let (first, last) = (no << 32, (no + 1) << 32);
    erased.entries +=
        db.execute("DELETE FROM entries WHERE ?1 <= place AND place < ?2", values![first, last])?;
    db.run("DELETE FROM coverage WHERE session_no = ?1", values![no])?;
    erased.runs += db.execute("DELETE FROM runs WHERE session_no = ?1", values![no])?;
    erased.jobs += db.execute("DELETE FROM jobs WHERE session_no = ?1", values![no])?;
    for sql in [
        "DELETE FROM handed WHERE session_no = ?1",
        "DELETE FROM session_ends WHERE session_no = ?1",
        "DELETE FROM remembered WHERE session_no = ?1",
        "DELETE FROM cards WHERE session_no = ?1",
    ] {
        db.run(sql, values![no])?;
    }
    erased.sessions += db.execute("DELETE FROM sessions WHERE no = ?1", values![no])?;
    Ok(Some(id_everywhere(&format, &native_id, cwd.as_deref())))
}

/// Undone plans are kept for the log, but without what they say about the record.
fn clear_undone(db: &mut Db, record: RecordId) -> Result<()> {
    let sql = "SELECT no, body FROM plans WHERE undone_at IS NOT NULL AND body LIKE ?1";
    let like = format!("%{record}%");
    let plans: Vec<(i64, Plan)> = db.all(sql, &[Value::from(&like)])?;
    for (no, plan) in plans {
        let bare = Plan { operations: vec![], before: vec![], left_open: vec![], ..plan };
        db.run("UPDATE plans SET body = ?2 WHERE no = ?1", values![no, &json(&bare)?])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::texts;

    /// Columns that hold only our own words: kinds, states, rules, digests.
    const OURS: [&str; 33] = [
        "format", "masked", "speaker", "kind", "branch", "outcome", "skip", "prompt_id", "rung",
        "state", "error_kind", "id", "scope", "sort", "disposition", "rule", "deed", "holder",
        "host", "purpose", "batch", "cut", "model", "namespace", "context", "base", "dir", "path",
        "reason", "section", "name", "rights", "moved_to",
    ];

    #[test]
    fn every_column_of_text_is_looked_at() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite");
        let (mut table, mut known) = (String::new(), 0);
        for file in std::fs::read_dir(folder).unwrap() {
            for line in std::fs::read_to_string(file.unwrap().path()).unwrap().lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                let (name, column) = match words.as_slice() {
                    ["CREATE", "TABLE", name, ..] => {
                        table = (*name).to_owned();
                        continue;
                    }
                    ["ALTER", "TABLE", name, "ADD", "COLUMN", column, "TEXT" | "TEXT;", ..] => {
                        (*name, *column)
                    }
                    [column, "TEXT" | "TEXT,", ..] => (table.as_str(), *column),
                    _ => continue,
                };
                let is_read = texts().any(|it| it == (name, column));
                known += usize::from(is_read);
                assert!(is_read || OURS.contains(&column), "{name}.{column} is not looked at");
            }
        }
        assert_eq!(known, texts().count());
    }
}
