//! Memories and lists of them, the backlog of records to consolidate, the ledger, and the rendered files
//! of memory directories.

use super::lease::check_namespace;
use super::memory_index::{find, since, write_memories};
use super::record::RECORD_COLUMNS;
use super::{
    Db, IdPrefix, NamespaceLease, PageRange, PrefixLookup, Result, Store, StoreResult,
    StoredRecord, Value, query, row_of, values,
};
use crate::domain::{
    Change, Memory, MemoryId, MemoryMap, MemoryState, PlanId, Record, RecordId, Timestamp,
};
use crate::memory_dir::{Section, section};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Staged records without a disposition.
const WAITING: &str =
    "records c JOIN runs r ON r.no = c.run_no JOIN sessions s ON s.no = r.session_no
        LEFT JOIN dispositions d ON d.record = c.id AND d.withdrawn_no IS NULL
    WHERE r.current = 1 AND c.settled = 0 AND c.state = 'staged' AND d.record IS NULL";

/// Outdated records that memories still rest on. There are few, and indexes find them: `CROSS JOIN`
/// keeps SQLite from starting with all dispositions.
const OUTDATED: &str = "(SELECT c.no FROM runs r CROSS JOIN records c
            WHERE c.run_no = r.no AND r.current = 0
        UNION SELECT no FROM records WHERE state = 'replaced') o
        CROSS JOIN records c CROSS JOIN runs r CROSS JOIN sessions s CROSS JOIN dispositions d
        CROSS JOIN memories m
    WHERE c.no = o.no AND r.no = c.run_no AND s.no = r.session_no AND d.record = c.id
        AND d.withdrawn_no IS NULL AND d.undone_no IS NULL AND m.id = d.memory
        AND m.state <> 'retracted'";

/// Records of a namespace that wait for consolidation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Backlog {
    pub namespace: String,
    /// Staged records without a disposition, and outdated records with one.
    pub records: u64,
    pub bytes: u64,
    pub staged_at: Timestamp,
    pub done_at: Option<Timestamp>,
}

row_of! { Backlog { namespace, records, bytes, staged_at, done_at } }

/// An entry of the ledger.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct AuditEntry {
    pub(crate) at: Timestamp,
    /// Name of a disposition, or `undo`, `confirm`, `forget`.
    pub(crate) deed: String,
    pub(crate) plan: Option<PlanId>,
    pub(crate) record: Option<RecordId>,
    pub(crate) memory: Option<MemoryId>,
    pub(crate) rule: Option<String>,
}

impl AuditEntry {
    pub(super) fn new(at: Timestamp, deed: &str) -> AuditEntry {
        let deed = deed.to_owned();
        AuditEntry { at, deed, plan: None, record: None, memory: None, rule: None }
    }

    pub(super) fn write(&self, db: &mut Db, namespace: &str) -> Result<()> {
        let sql = "INSERT INTO ledger (at, namespace, deed, plan, record, memory, rule)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let AuditEntry { at, deed, plan, record, memory, rule } = self;
        db.run(sql, values![*at, namespace, deed, plan, record, memory, rule])
    }
}

impl Store {
    /// Returns a number that grows with every staged record and run.
    pub(crate) async fn last_record(&self) -> StoreResult<i64> {
        let sql = "SELECT (SELECT coalesce(max(no), 0) FROM records)
            + (SELECT coalesce(max(no), 0) FROM runs)";
        self.read("looking for new records", query(sql, &[], Db::one)).await
    }

    /// Returns the records that wait for consolidation, by namespace.
    pub(crate) async fn backlog(&self) -> StoreResult<Vec<Backlog>> {
        let sql = format!(
            "SELECT w.namespace, CAST(sum(w.records) AS BIGINT), CAST(sum(w.bytes) AS BIGINT),
                max(w.staged_at),
                (SELECT done_at FROM consolidating k WHERE k.namespace = w.namespace)
            FROM (
                SELECT s.namespace, count(*) AS records, sum(length(c.body)) AS bytes,
                    max(r.finished_at) AS staged_at FROM {WAITING} GROUP BY s.namespace
                UNION ALL
                SELECT s.namespace, count(*), sum(length(c.body)), max(r.finished_at)
                FROM {OUTDATED} GROUP BY s.namespace
            ) w GROUP BY w.namespace ORDER BY w.namespace"
        );
        self.all("counting the records to consolidate", &sql, &[]).await
    }

    /// Returns up to `limit` staged records of a namespace without a disposition, in staging order.
    pub async fn waiting_records(&self, namespace: &str, limit: u32) -> StoreResult<Vec<Record>> {
        let sql = format!(
            "SELECT {RECORD_COLUMNS} FROM {WAITING} AND s.namespace = ?1 ORDER BY c.no LIMIT ?2"
        );
        let doing = "reading the records to consolidate";
        let all: Vec<StoredRecord> = self.all(doing, &sql, values![namespace, limit]).await?;
        Ok(all.into_iter().map(|stored| stored.record).collect())
    }

    /// Returns up to `limit` outdated records of a namespace in staging order, each with its memory. A record is
    /// outdated if a plan covered it and its conversation was extracted again since.
    pub(crate) async fn outdated_records(
        &self,
        namespace: &str,
        limit: u32,
    ) -> StoreResult<Vec<(Record, MemoryId)>> {
        let sql = format!(
            "SELECT d.memory, {RECORD_COLUMNS} FROM {OUTDATED} AND s.namespace = ?1
            ORDER BY c.no LIMIT ?2"
        );
        let found: Vec<(MemoryId, StoredRecord)> =
            self.all("reading outdated records", &sql, values![namespace, limit]).await?;
        Ok(found.into_iter().map(|(memory, stored)| (stored.record, memory)).collect())
    }

    /// Returns the memories of a namespace, or of all, by id.
    pub async fn memories(&self, namespace: Option<&str>) -> StoreResult<MemoryMap> {
        let all = self.memory_list(namespace).await?;
        Ok(all.into_iter().map(|memory| (memory.id, memory)).collect())
    }

    /// Like [`memories`](Store::memories), sorted by time.
    pub(crate) async fn memory_list(&self, namespace: Option<&str>) -> StoreResult<Vec<Memory>> {
        // In the order of the table: an index would lead SQLite to each page many times.
        let sql = match namespace {
            Some(_) => {
                "SELECT body FROM memories
                    WHERE no IN (SELECT no FROM memories WHERE namespace = ?1)"
            }
            None => "SELECT body FROM memories WHERE ?1 = ''",
        };
        let by = values![namespace.unwrap_or_default()];
        let mut all: Vec<Memory> = self.all("reading memories", sql, by).await?;
        all.sort_by_cached_key(|memory| (memory.valid_from, memory.id));
        Ok(all)
    }

    pub(crate) async fn has_memories(&self, namespace: &str) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM memories WHERE namespace = ?1 LIMIT 1";
        self.read("looking for memories", query(sql, values![namespace], Db::exists)).await
    }

    pub(crate) async fn memory(&self, prefix: IdPrefix) -> StoreResult<PrefixLookup<Memory>> {
        let read = |db: &mut Db, id| find(db, MemoryId(id));
        self.lookup("looking up a memory", "memories", prefix, read).await
    }

    /// Returns the ledger of one memory or of all, earliest first.
    pub(crate) async fn ledger(&self, memory: Option<MemoryId>) -> StoreResult<Vec<AuditEntry>> {
        let columns = "SELECT at, deed, plan, record, memory, rule FROM ledger";
        let id: Option<Value<'_>> = memory.as_ref().map(|id| Value::from(&id.0));
        let of = if id.is_some() { " WHERE memory = ?1" } else { "" };
        self.all("reading the ledger", &format!("{columns}{of} ORDER BY no"), id.as_slice()).await
    }

    /// Writes the edits that people made in the memory directory. If memories no longer match
    /// `before`, writes nothing and returns their ids.
    pub(crate) async fn amend_memories(
        &self,
        lease: &NamespaceLease,
        changes: Vec<(Memory, Memory)>,
        rule: &'static str,
        at: Timestamp,
    ) -> StoreResult<Result<(), Vec<MemoryId>>> {
        let lease = lease.clone();
        self.write("writing what people changed", move |to| {
            check_namespace(to, &lease)?;
            let mut moved = Vec::new();
            for (before, after) in &changes {
                let now = find(to, before.id)?;
                if now.as_ref() != Some(before) && now.as_ref() != Some(after) {
                    moved.push(before.id);
                }
            }
            if !moved.is_empty() {
                return Ok(Err(moved));
            }
            let written = changes.iter().map(|(before, after)| Change {
                memory: after.id,
                before: Some(before.clone()),
                after: Some(after.clone()),
            });
            write_memories(to, &lease.subject, &written.collect::<Vec<_>>())?;
            for (_, after) in &changes {
                let (memory, rule) = (Some(after.id), Some(rule.to_owned()));
                AuditEntry { memory, rule, ..AuditEntry::new(at, "confirm") }
                    .write(to, &after.namespace)?;
            }
            Ok(Ok(()))
        })
        .await
    }

    /// Records that a directory shows the memory of `namespace`.
    pub(crate) async fn note_directory(
        &self,
        directory: &Directory,
        namespace: &str,
    ) -> StoreResult<()> {
        let sql = "INSERT INTO memory_dirs (host, dir, namespace) VALUES (?1, ?2, ?3)
            ON CONFLICT (host, dir) DO UPDATE SET namespace = excluded.namespace";
        let row = values![&directory.host, &directory.dir, namespace];
        self.write("noting a memory directory", query(sql, row, Db::run)).await
    }

    /// Returns the namespace whose memory a directory shows.
    pub(crate) async fn shown_namespace(
        &self,
        directory: &Directory,
    ) -> StoreResult<Option<String>> {
        let sql = "SELECT namespace FROM memory_dirs d WHERE host = ?1 AND dir = ?2
            AND EXISTS (SELECT 1 FROM memories m WHERE m.namespace = d.namespace)";
        let row = values![&directory.host, &directory.dir];
        self.first("reading the namespace of a directory", sql, row).await
    }

    /// Returns the directories that show the memory of `namespace`, on all machines.
    pub(crate) async fn directories(&self, namespace: &str) -> StoreResult<Vec<Directory>> {
        let sql = "SELECT host, dir FROM memory_dirs WHERE namespace = ?1 ORDER BY host, dir";
        self.all("reading which directories show a namespace", sql, values![namespace]).await
    }

    /// Renames the keys of a directory's files after it was moved, and drops its old place.
    pub(crate) async fn move_directory(
        &self,
        old: &Directory,
        keys: BTreeMap<String, String>,
    ) -> StoreResult<()> {
        let old = old.clone();
        self.write("moving a memory directory", move |to| {
            for (from, new) in &keys {
                let sql = "UPDATE memory_files SET dir = ?2 WHERE dir = ?1";
                to.run(sql, values![from, new])?;
            }
            let sql = "DELETE FROM memory_dirs WHERE host = ?1 AND dir = ?2";
            to.run(sql, values![&old.host, &old.dir])
        })
        .await
    }

    /// Drops what is stored about a directory, or makes it that of its copy at `new`.
    pub(crate) async fn leave_directory(
        &self,
        old: &Directory,
        new: Option<String>,
    ) -> StoreResult<()> {
        let old = old.clone();
        self.write("leaving a memory directory to another store", move |to| {
            // Its keys are its path, each with a suffix of its own.
            let of_old =
                "substr(dir, 1, length(?1)) = ?1 AND substr(dir, length(?1) + 1, 1) <> '/'";
            if let Some(new) = &new {
                let files = "UPDATE memory_files SET dir = ?2 || substr(dir, length(?1) + 1)";
                to.run(&format!("{files} WHERE {of_old}"), values![&old.dir, new])?;
                let sql = "UPDATE memory_dirs SET dir = ?3 WHERE host = ?1 AND dir = ?2";
                return to.run(sql, values![&old.host, &old.dir, new]);
            }
            to.run(&format!("DELETE FROM memory_files WHERE {of_old}"), values![&old.dir])?;
            let sql = "DELETE FROM memory_dirs WHERE host = ?1 AND dir = ?2";
            to.run(sql, values![&old.host, &old.dir])
        })
        .await
    }

    /// Returns the last rendered text of a directory's files, by path.
    pub(crate) async fn rendered(&self, dir: &str) -> StoreResult<BTreeMap<String, Arc<str>>> {
        let dir = dir.to_owned();
        self.read("reading what was rendered", move |from| rendered(from, &dir)).await
    }

    /// Like [`rendered`](Store::rendered), without the `known` files.
    pub(crate) async fn rendered_but(
        &self,
        dir: &str,
        known: BTreeSet<String>,
    ) -> StoreResult<BTreeMap<String, Arc<str>>> {
        let dir = dir.to_owned();
        self.read("reading what was rendered", move |from| {
            let sql = "SELECT path FROM memory_files WHERE dir = ?1";
            let paths: Vec<String> = from.all(sql, values![&dir])?;
            let mut found = BTreeMap::new();
            for path in paths.into_iter().filter(|path| !known.contains(path)) {
                let sql = "SELECT base FROM memory_files WHERE dir = ?1 AND path = ?2";
                let base = from.first(sql, values![&dir, &path])?;
                found.extend(base.map(|base| (path, base)));
            }
            Ok(found)
        })
        .await
    }

    /// Atomically stores the rendered files of directories.
    pub(crate) async fn keep_rendered(&self, kept: Vec<(String, KeptFiles)>) -> StoreResult<()> {
        self.write("keeping what was rendered", move |to| {
            for (dir, kept) in &kept {
                match kept {
                    KeptFiles::All(files) => keep_all(to, dir, files)?,
                    KeptFiles::Changed(changes) => changes
                        .iter()
                        .try_for_each(|(path, text)| keep(to, dir, path, text.as_deref()))?,
                }
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn enter_all(&self) -> StoreResult<()> {
        let any = "SELECT no FROM memories WHERE section IS NULL LIMIT 1";
        if self
            .read("looking for memories of an older version", query(any, &[], Db::exists))
            .await?
        {
            while self.write("listing memories", enter_older).await? {}
        }
        Ok(())
    }

    /// Returns the number of a namespace's memories in each section.
    pub(crate) async fn section_counts(
        &self,
        namespace: &str,
    ) -> StoreResult<BTreeMap<Section, u64>> {
        self.enter_all().await?;
        let sql = "SELECT section, count(*) FROM memories
            WHERE namespace = ?1 AND section IS NOT NULL GROUP BY section";
        Ok(self.all("counting memories", sql, values![namespace]).await?.into_iter().collect())
    }

    /// Returns up to `limit` open requests, questions and failures of all namespaces, earliest first, undated ones last.
    pub(crate) async fn open_memories(&self, limit: u32) -> StoreResult<Vec<Memory>> {
        self.enter_all().await?;
        let sql = "SELECT body FROM memories
            WHERE section IN ('request', 'question', 'failure')
            ORDER BY since = 0, since, no LIMIT ?1";
        self.all("listing what is open", sql, values![limit]).await
    }

    /// Returns up to `limit` memories that `id` superseded, latest first.
    pub(crate) async fn replaced_by(&self, id: MemoryId, limit: u32) -> StoreResult<Vec<Memory>> {
        let sql = "SELECT body FROM memories WHERE successor = ?1
            ORDER BY since DESC, no DESC LIMIT ?2";
        self.all("looking for what was replaced", sql, values![&id.0, limit]).await
    }

    /// Returns up to `limit` memories of `namespace` that `id` completed, settled or solved, latest first.
    pub(crate) async fn settled_by(
        &self,
        namespace: &str,
        id: MemoryId,
        limit: u32,
    ) -> StoreResult<Vec<Memory>> {
        let sql = "SELECT body FROM memories WHERE namespace = ?1 AND body LIKE ?2
            ORDER BY since DESC, no DESC LIMIT ?3";
        let by = format!("%\"settled_by\":\"{id}\"%");
        self.all("looking for what was settled", sql, values![namespace, &by, limit]).await
    }

    /// Returns a page of a namespace's section, latest first.
    pub(crate) async fn memories_in(
        &self,
        namespace: &str,
        section: Section,
        range: PageRange,
    ) -> StoreResult<Vec<Memory>> {
        let sql = "SELECT body FROM memories WHERE namespace = ?1 AND section = ?2
            ORDER BY since DESC, no DESC LIMIT ?3 OFFSET ?4";
        let row = values![namespace, section, range.take, range.skip];
        self.all("listing memories", sql, row).await
    }

    /// Returns up to `limit` memories of a namespace, latest first; inactive ones only with `all`.
    pub(crate) async fn latest_memories(
        &self,
        namespace: &str,
        all: bool,
        limit: u32,
    ) -> StoreResult<Vec<Memory>> {
        self.enter_all().await?;
        let namespace = namespace.to_owned();
        let state = (!all).then_some(MemoryState::Active);
        self.read("listing memories", move |from: &mut Db| {
            // The index is by section; the latest overall are among the latest of each section.
            let sql = "SELECT body FROM memories WHERE namespace = ?1 AND section = ?2
                    AND (state = ?3 OR ?3 IS NULL)
                ORDER BY since DESC, no DESC LIMIT ?4";
            let mut latest = Vec::new();
            for section in Section::ALL {
                let values = values![&namespace, *section, state, limit];
                latest.extend(from.all(sql, values)?);
            }
            latest.sort_by_key(|memory| Reverse(since(memory)));
            latest.truncate(limit as usize);
            Ok(latest)
        })
        .await
    }
}

row_of! { AuditEntry { at, deed, plan, record, memory, rule } }

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Directory {
    pub host: String,
    pub dir: String,
}

row_of! { Directory { host, dir } }

/// Rendered texts by path.
#[derive(Clone, Debug)]
pub(crate) enum KeptFiles {
    /// All files of a directory; stored files not among them are deleted.
    All(BTreeMap<String, Arc<str>>),
    /// Changed files; one without a text is deleted.
    Changed(BTreeMap<String, Option<Arc<str>>>),
}

fn keep_all(db: &mut Db, dir: &str, files: &BTreeMap<String, Arc<str>>) -> Result<()> {
    let before = rendered(db, dir)?;
    for path in before.keys().filter(|path| !files.contains_key(*path)) {
        keep(db, dir, path, None)?;
    }
    let mut new = files.iter().filter(|(path, it)| before.get(*path) != Some(*it));
    new.try_for_each(|(path, text)| keep(db, dir, path, Some(text)))
}

fn keep(db: &mut Db, dir: &str, path: &str, text: Option<&str>) -> Result<()> {
    let Some(text) = text else {
        let sql = "DELETE FROM memory_files WHERE dir = ?1 AND path = ?2";
        return db.run(sql, values![dir, path]);
    };
    let sql = "INSERT INTO memory_files (dir, path, base) VALUES (?1, ?2, ?3)
        ON CONFLICT (dir, path) DO UPDATE SET base = excluded.base";
    db.run(sql, values![dir, path, text])
}

fn rendered(db: &mut Db, dir: &str) -> Result<BTreeMap<String, Arc<str>>> {
    let sql = "SELECT path, base FROM memory_files WHERE dir = ?1";
    let all = db.all(sql, values![dir])?;
    Ok(all.into_iter().collect())
}

/// Number of memories migrated in one transaction.
const ENTERED_AT_ONCE: u32 = 500;

/// Sets the section of memories written by an older version; returns false if none is left.
fn enter_older(db: &mut Db) -> Result<bool> {
    let sql = "SELECT body FROM memories WHERE section IS NULL ORDER BY no LIMIT ?1";
    let older: Vec<Memory> = db.all(sql, values![ENTERED_AT_ONCE])?;
    for memory in &older {
        let sql = "UPDATE memories SET section = ?2, since = ?3, successor = ?4 WHERE id = ?1";
        let (id, successor) = (&memory.id, memory.superseded_by);
        let row = values![id, section(memory), since(memory), &successor];
        db.run(sql, row)?;
    }
    Ok(!older.is_empty())
}
