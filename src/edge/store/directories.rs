//! Memory directories in the store: which show a namespace, and what was last rendered of their files.

use super::db::{Db, values};
use super::{Store, StoreError};
use std::collections::BTreeMap;

/// A directory that was written.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Directory {
    /// The machine that it is on.
    pub host: String,
    /// Its path there.
    pub dir: String,
}

impl Store {
    /// Notes that a directory shows the memory of `namespace`.
    pub async fn note_directory(
        &self,
        directory: &Directory,
        namespace: &str,
    ) -> Result<(), StoreError> {
        let (directory, namespace) = (directory.clone(), namespace.to_owned());
        self.write("noting a memory directory", move |to| {
            let sql = "INSERT INTO memory_dirs (host, dir, namespace) VALUES (?1, ?2, ?3)
                ON CONFLICT (host, dir) DO UPDATE SET namespace = excluded.namespace";
            to.send(sql, values![&directory.host, &directory.dir, &namespace])
        })
        .await
    }

    /// The directories that show the memory of `namespace`, on all machines.
    pub async fn directories(&self, namespace: &str) -> Result<Vec<Directory>, StoreError> {
        let namespace = namespace.to_owned();
        let read = move |from: &mut Db| {
            let sql = "SELECT host, dir FROM memory_dirs WHERE namespace = ?1 ORDER BY host, dir";
            let directory = |row: &mut super::db::Columns<'_>| {
                Ok(Directory { host: row.next()?, dir: row.next()? })
            };
            from.all(sql, values![&namespace], directory)
        };
        self.read("reading which directories show a namespace", read).await
    }

    /// What was last rendered of the files of a directory, by path.
    pub async fn rendered(&self, dir: &str) -> Result<BTreeMap<String, String>, StoreError> {
        let dir = dir.to_owned();
        let read = move |from: &mut Db| {
            let sql = "SELECT path, base FROM memory_files WHERE dir = ?1";
            let all = from.all(sql, values![&dir], |row| Ok((row.next()?, row.next()?)))?;
            Ok(all.into_iter().collect())
        };
        self.read("reading what was rendered", read).await
    }

    /// Keeps what was rendered of the files of a directory in the place of what was.
    pub async fn keep_rendered(
        &self,
        dir: &str,
        files: &BTreeMap<String, String>,
    ) -> Result<(), StoreError> {
        let (dir, files) = (dir.to_owned(), files.clone());
        self.write("keeping what was rendered", move |to| {
            to.execute("DELETE FROM memory_files WHERE dir = ?1", values![&dir])?;
            for (path, base) in &files {
                let sql = "INSERT INTO memory_files (dir, path, base) VALUES (?1, ?2, ?3)";
                to.send(sql, values![&dir, path, base])?;
            }
            Ok(())
        })
        .await
    }
}
