//! The store in a SQLite file: one writer thread and concurrent readers.

pub(super) mod connection;
mod writer;

use super::db::{Db, Output, Work};
use super::error::{Fault, StoreError, StoreErrorKind};
use super::migrations::OpenMode;
use connection::{Access, open_reader, open_writer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;
use writer::Writer;

/// Maximum number of concurrent reads; each is short and has its own connection and cache.
const READERS_MAX: usize = 4;

/// A database file. Field order matters: readers close first, so that the writer can checkpoint the
/// whole log when it closes.
pub(super) struct SqliteFile {
    readers: Arc<Readers>,
    writer: Writer,
}

impl SqliteFile {
    pub(super) fn open(url: &str, open: OpenMode) -> Result<SqliteFile, StoreError> {
        let path = path_of(url)?;
        let (writer, access) = open_writer(&path, open)?;
        let writer = Writer::start(Db::Sqlite(writer), &path)?;
        let readers = Readers {
            path,
            access,
            idle: Mutex::new(Vec::with_capacity(READERS_MAX)),
            permits: Arc::new(Semaphore::new(READERS_MAX)),
        };
        Ok(SqliteFile { readers: Arc::new(readers), writer })
    }

    pub(super) fn path(&self) -> &Path {
        &self.readers.path
    }

    pub(super) async fn write(&self, work: Work) -> Result<Output, Fault> {
        self.writer.write(work).await
    }

    /// Runs `work` in one snapshot.
    pub(super) async fn read(&self, work: Work) -> Result<Output, Fault> {
        let permit = Arc::clone(&self.readers.permits).acquire_owned().await;
        let readers = Arc::clone(&self.readers);
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            readers.read(&work)
        });
        // Fails only while the runtime shuts down.
        read.await.unwrap_or_else(|_| Err(StoreErrorKind::Closed.into()))
    }
}

/// Read connections; with write-ahead logging, readers and the writer do not block each other.
struct Readers {
    path: PathBuf,
    access: Access,
    idle: Mutex<Vec<Db>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    fn read(&self, work: &Work) -> Result<Output, Fault> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut db =
            idle.map_or_else(|| open_reader(&self.path, self.access).map(Db::Sqlite), Ok)?;
        db.execute("BEGIN", &[])?;
        let done = work(&mut db);
        db.execute("COMMIT", &[])?;
        // A connection whose work failed is closed instead of reused.
        let done = done?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
        Ok(done)
    }
}

/// Parses `sqlite:PATH`, `sqlite://PATH` or a bare path.
fn path_of(url: &str) -> Result<PathBuf, StoreError> {
    let path = match url.split_once(':') {
        Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
        Some((scheme, rest)) if is_scheme(scheme) && rest.starts_with("//") => "",
        Some(_) | None => url,
    };
    if path.is_empty() {
        // A URL may contain a password, so only the part before the colon is repeated.
        let shown = url.split(':').next().unwrap_or_default().to_owned();
        let kind = StoreErrorKind::BadUrl(shown);
        return Err(StoreError::new(kind, "opening the store", "store.url"));
    }
    Ok(PathBuf::from(path))
}

fn is_scheme(text: &str) -> bool {
    text.len() > 1 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file_or_is_refused() {
        let file = |url: &str| path_of(url).map(|path| path.display().to_string());
        assert_eq!(file("sqlite:a/b.db").unwrap(), "a/b.db");
        assert_eq!(file("sqlite:///a/b.db").unwrap(), "/a/b.db");
        assert_eq!(file("a/b.db").unwrap(), "a/b.db");
        assert_eq!(file("C:\\b.db").unwrap(), "C:\\b.db");
        let refused = file("postgres://user:word@host/db").unwrap_err();
        assert_eq!(refused.kind, StoreErrorKind::BadUrl("postgres".to_owned()));
        assert!(file("sqlite:").is_err());
    }
}
