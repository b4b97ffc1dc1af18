//! Search index of memories, with which a plan finds those its records may affect. It is updated
//! with the memories; in an older store it is built at the next change.

use super::{Db, Insert, Result, Store, StoreErrorKind, StoreResult, Value, json, search, values};
use crate::consolidate::{Index, Numbers, Posting, Postings, SearchKeys, entered_keys};
use crate::domain::{Change, Digest, Memory, MemoryId, MemoryMap, RecordId, Timestamp};
use crate::memory_dir::section;
use foldhash::HashMap;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Number of keys in one statement.
const KEYS_MAX: usize = 500;
/// Size of a posting: id, term frequency, length.
const POSTING_BYTES: usize = 20;

impl Store {
    /// Returns the part of a namespace's index under `keys`; `None` if there is no index yet.
    pub(crate) async fn memory_index(
        &self,
        namespace: &str,
        keys: BTreeSet<u64>,
    ) -> StoreResult<Option<Index>> {
        let namespace = namespace.to_owned();
        self.read("reading the index of memories", move |db| read(db, &namespace, &keys)).await
    }

    /// Returns those of these memories that exist.
    pub(crate) async fn memories_of(&self, ids: BTreeSet<MemoryId>) -> StoreResult<Vec<Memory>> {
        let read = move |from: &mut Db| {
            let mut found = Vec::with_capacity(ids.len());
            for id in &ids {
                found.extend(find(from, *id)?);
            }
            Ok(found)
        };
        self.read("reading memories", read).await
    }

    /// Returns the memories that rest on any of `records`, with their successors and the memories that they superseded.
    pub(crate) async fn memories_near(
        &self,
        records: BTreeSet<RecordId>,
    ) -> StoreResult<MemoryMap> {
        let read = move |from: &mut Db| {
            let (mut near, mut seen) = (MemoryMap::new(), BTreeSet::new());
            for record in &records {
                let mut next: Option<Memory> = from.first(MEMORY_ON, values![&record.0])?;
                while let Some(memory) = next.filter(|it| seen.insert(it.id)) {
                    next = memory.superseded_by.map(|by| find(from, by)).transpose()?.flatten();
                    let sql = "SELECT body FROM memories WHERE successor = ?1";
                    let replaced: Vec<Memory> = from.all(sql, values![&memory.id.0])?;
                    near.extend(replaced.into_iter().map(|it| (it.id, it)));
                    near.insert(memory.id, memory);
                }
            }
            Ok(near)
        };
        self.read("reading the memories of records", read).await
    }

    /// Returns the memory that rests on a record, if any.
    pub(crate) async fn memory_on(&self, record: RecordId) -> StoreResult<Option<Memory>> {
        self.first("looking for the memory of a record", MEMORY_ON, values![&record.0]).await
    }
}

const MEMORY_ON: &str = "SELECT m.body FROM dispositions d JOIN memories m ON m.id = d.memory
    WHERE d.record = ?1 AND d.withdrawn_no IS NULL AND d.undone_no IS NULL";

pub(super) fn find(db: &mut Db, id: MemoryId) -> Result<Option<Memory>> {
    db.first("SELECT body FROM memories WHERE id = ?1", values![&id.0])
}

/// Start of validity, by which lists are ordered; the epoch if unknown.
pub(super) fn since(memory: &Memory) -> Timestamp {
    memory.valid_from.unwrap_or(Timestamp(0))
}

/// Writes or removes memories of a namespace and updates the index. Returns the number of removed memories.
pub(super) fn write_memories(db: &mut Db, namespace: &str, changes: &[Change]) -> Result<u64> {
    let mut removed = 0;
    for change in changes {
        let id = &change.memory.0;
        let Some(memory) = &change.after else {
            search::forget(db, search::MEMORY, id)?;
            removed += db.execute("DELETE FROM memories WHERE id = ?1", values![id])?;
            continue;
        };
        let sql = "INSERT INTO memories (id, namespace, state, body, section, since, successor)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body,
                section = excluded.section, since = excluded.since,
                successor = excluded.successor";
        let body = json(memory)?;
        let (section, since, successor) = (section(memory), since(memory), &memory.superseded_by);
        let (namespace, state) = (&memory.namespace, memory.state);
        db.run(sql, values![id, namespace, state, &body, section, since, successor])?;
        search::enter_memory(db, memory)?;
    }
    let claims = |it: &Change| {
        let (before, after) = (it.before.as_ref(), it.after.as_ref());
        before.map(|it| &it.claim) != after.map(|it| &it.claim)
    };
    let sides = |it: &Change| {
        [&it.before, &it.after].map(|side| side.as_ref().map(|it| SearchKeys::of(&it.claim)))
    };
    let changes = changes.iter().filter(|it| claims(it));
    let changes: Vec<(MemoryId, _)> = changes.map(|it| (it.memory, sides(it))).collect();
    let keys = changes.iter().flat_map(|(_, sides)| sides.iter().flatten()).flat_map(entered_keys);
    let keys: BTreeSet<u64> = keys.map(|(key, _)| key).collect();
    let index = match read(db, namespace, &keys)? {
        Some(_) if changes.is_empty() => return Ok(removed),
        Some(mut index) => {
            for (id, [before, after]) in &changes {
                before.iter().for_each(|it| index.remove(*id, it));
                after.iter().for_each(|it| index.insert(*id, it));
            }
            index
        }
        None => {
            let mut index = Index::default();
            let sql = "SELECT body FROM memories WHERE namespace = ?1";
            db.each(sql, values![namespace], |row| {
                let memory: Memory = row.next()?;
                index.insert(memory.id, &SearchKeys::of(&memory.claim));
                Ok(ControlFlow::Continue(()))
            })?;
            index
        }
    };
    write(db, namespace, &index)?;
    Ok(removed)
}

/// A key as stored in the table, salted so that keys of different namespaces do not collide.
fn column(salt: u64, key: u64) -> i64 {
    (key ^ salt).cast_signed()
}

fn salt(namespace: &str) -> u64 {
    Digest::of(&[namespace]).short()
}

fn read(db: &mut Db, namespace: &str, keys: &BTreeSet<u64>) -> Result<Option<Index>> {
    let sql = "SELECT memories, words FROM memory_indexes WHERE namespace = ?1";
    let Some((memories, words)) = db.first(sql, values![namespace])? else {
        return Ok(None);
    };
    let places: Vec<String> = (1..=KEYS_MAX).map(|at| format!("?{at}")).collect();
    let sql = format!(
        "SELECT key, count, postings FROM memory_keys WHERE key IN ({})",
        places.join(", ")
    );
    let salt = salt(namespace);
    let (mut found, mut numbers) = (HashMap::default(), Numbers::default());
    let keys: Vec<u64> = keys.iter().copied().collect();
    for chunk in keys.chunks(KEYS_MAX) {
        // Pads with the last key, so that one prepared statement serves all sizes.
        let last = chunk.last().copied().unwrap_or_default();
        let padded = chunk.iter().copied().chain(std::iter::repeat(last)).take(KEYS_MAX);
        let values: Vec<Value<'_>> = padded.map(|key| Value::Int(column(salt, key))).collect();
        db.each(&sql, &values, |row| {
            let key = row.next::<i64>()?.cast_unsigned() ^ salt;
            let (count, bytes): (u32, Vec<u8>) = row.next()?;
            let list = bytes.chunks(POSTING_BYTES).map(|it| posting(it, &mut numbers));
            let list = list.collect::<Option<_>>().ok_or(StoreErrorKind::Damaged)?;
            found.insert(key, Postings { count, list });
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(Some(Index { numbers, keys: found, memories, words }))
}

fn posting(bytes: &[u8], numbers: &mut Numbers) -> Option<Posting> {
    let (id, rest) = bytes.split_first_chunk::<16>()?;
    let (times, length) = rest.split_first_chunk::<2>()?;
    Some(Posting {
        memory: numbers.number(MemoryId(Digest::from_bytes(*id))),
        times: u16::from_le_bytes(*times),
        length: u16::from_le_bytes(length.try_into().ok()?),
    })
}

const KEYS: Insert = Insert {
    head: "INSERT INTO memory_keys (key, count, postings)",
    width: 3,
    tail: "ON CONFLICT (key) DO UPDATE SET count = excluded.count, postings = excluded.postings",
};

fn write(db: &mut Db, namespace: &str, index: &Index) -> Result<()> {
    let salt = salt(namespace);
    let mut rows: Vec<(i64, u32, Vec<u8>)> = Vec::new();
    for (key, Postings { count, list }) in &index.keys {
        let bytes = |it: &Posting| {
            let id = index.numbers.memory(it.memory)?;
            let (times, length) = (it.times.to_le_bytes(), it.length.to_le_bytes());
            Some([id.0.as_bytes().as_slice(), &times, &length].concat())
        };
        rows.push((column(salt, *key), *count, list.iter().filter_map(bytes).flatten().collect()));
    }
    // Sorted by key, so that each page of the table is written once.
    rows.sort_unstable_by_key(|(key, ..)| *key);
    for (key, ..) in rows.iter().filter(|(_, count, _)| *count == 0) {
        db.run("DELETE FROM memory_keys WHERE key = ?1", values![*key])?;
    }
    let kept = rows.iter().filter(|(_, count, _)| *count > 0);
    let kept = kept.flat_map(|(key, count, list)| values![*key, *count, list.as_slice()].to_vec());
    db.insert(KEYS, &kept.collect::<Vec<_>>())?;
    let sql = "INSERT INTO memory_indexes (namespace, memories, words) VALUES (?1, ?2, ?3)
        ON CONFLICT (namespace) DO UPDATE SET memories = excluded.memories, words = excluded.words";
    db.run(sql, values![namespace, index.memories, index.words])
}
