//! Paged lists of memories by section. Memories of an older version get their section when a list is first read.

use super::db::Db;
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::memory_index::since;
use super::value::{PageRange, values};
use crate::domain::{Memory, MemoryId, MemoryState};
use crate::memory_dir::{Section, section};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Number of memories migrated in one transaction.
const ENTERED_AT_ONCE: u32 = 500;

/// Sets the section of memories written by an older version; returns false if none is left.
fn enter_older(db: &mut Db) -> Result<bool, Fault> {
    let sql = "SELECT body FROM memories WHERE section IS NULL ORDER BY no LIMIT ?1";
    let older: Vec<Memory> = db.all(sql, values![ENTERED_AT_ONCE])?;
    for memory in &older {
        let sql = "UPDATE memories SET section = ?2, since = ?3, successor = ?4 WHERE id = ?1";
        let (id, successor) = (&memory.id.0, memory.superseded_by.map(|it| it.0));
        let row = values![id, section(memory).name(), since(memory), successor.as_ref()];
        db.run(sql, row)?;
    }
    Ok(!older.is_empty())
}

impl Store {
    async fn enter_all(&self) -> Result<(), StoreError> {
        let any = "SELECT no FROM memories WHERE section IS NULL LIMIT 1";
        if self.exists("looking for memories of an older version", any, &[]).await? {
            while self.write("listing memories", enter_older).await? {}
        }
        Ok(())
    }

    /// Returns the number of a namespace's memories in each section.
    pub(crate) async fn section_counts(
        &self,
        namespace: &str,
    ) -> Result<BTreeMap<Section, u64>, StoreError> {
        self.enter_all().await?;
        let sql = "SELECT section, count(*) FROM memories
            WHERE namespace = ?1 AND section IS NOT NULL GROUP BY section";
        Ok(self.all("counting memories", sql, values![namespace]).await?.into_iter().collect())
    }

    /// Returns up to `limit` open requests, questions and failures of all namespaces, earliest first.
    pub(crate) async fn open_memories(&self, limit: u32) -> Result<Vec<Memory>, StoreError> {
        self.enter_all().await?;
        let sql = "SELECT body FROM memories
            WHERE section IN ('request', 'question', 'failure') ORDER BY since, no LIMIT ?1";
        self.all("listing what is open", sql, values![limit]).await
    }

    /// Returns up to `limit` memories that `id` superseded, latest first.
    pub(crate) async fn replaced_by(
        &self,
        id: MemoryId,
        limit: u32,
    ) -> Result<Vec<Memory>, StoreError> {
        let sql = "SELECT body FROM memories WHERE successor = ?1
            ORDER BY since DESC, no DESC LIMIT ?2";
        self.all("looking for what was replaced", sql, values![&id.0, limit]).await
    }

    /// Returns a page of a namespace's section, latest first.
    pub(crate) async fn memories_in(
        &self,
        namespace: &str,
        section: Section,
        range: PageRange,
    ) -> Result<Vec<Memory>, StoreError> {
        let sql = "SELECT body FROM memories WHERE namespace = ?1 AND section = ?2
            ORDER BY since DESC, no DESC LIMIT ?3 OFFSET ?4";
        self.all(
            "listing memories",
            sql,
            values![namespace, section.name(), range.take, range.skip],
        )
        .await
    }

    /// Returns up to `limit` memories of a namespace, latest first; inactive ones only with `all`.
    pub(crate) async fn latest_memories(
        &self,
        namespace: &str,
        all: bool,
        limit: u32,
    ) -> Result<Vec<Memory>, StoreError> {
        self.enter_all().await?;
        let namespace = namespace.to_owned();
        let state = (!all).then(|| MemoryState::Active.name());
        self.read("listing memories", move |from: &mut Db| {
            // The index is by section; the latest overall are among the latest of each section.
            let sql = "SELECT body FROM memories WHERE namespace = ?1 AND section = ?2
                    AND (state = ?3 OR ?3 IS NULL)
                ORDER BY since DESC, no DESC LIMIT ?4";
            let mut latest = Vec::new();
            for section in Section::ALL {
                let values = values![&namespace, section.name(), state, limit];
                latest.extend(from.all(sql, values)?);
            }
            latest.sort_by_key(|memory| Reverse(since(memory)));
            latest.truncate(limit as usize);
            Ok(latest)
        })
        .await
    }
}
