//! What goes wrong with a store, in kinds that a caller may branch on and one line that says what
//! to do. It never holds words of a conversation.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What went wrong with a store.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreErrorKind {
    /// The URL names no kind of store that we have.
    #[error("`{0}` is not a store; expected sqlite:PATH")]
    BadUrl(String),
    /// There is no such file.
    #[error("no store there; run `annalist replay` first")]
    Missing,
    /// A newer annalist made it.
    #[error("it is of version {found}, this annalist knows {known}; update annalist")]
    Newer {
        /// The file's version.
        found: u32,
        /// The newest that we know.
        known: u32,
    },
    /// A file of another kind.
    #[error("not a database; name another file")]
    NotADatabase,
    /// A database of another program.
    #[error("the database of another program; name another file")]
    Foreign,
    /// Another process held it for longer than we wait.
    #[error(
        "another process held it locked for {} s; stop that one or try again",
        super::BUSY_SECS
    )]
    Locked,
    /// It cannot be written to.
    #[error("it is read-only; make the file and its folder writable")]
    ReadOnly,
    /// The disk has no room.
    #[error("the disk is full; make room, nothing half-written was kept")]
    Full,
    /// The file or its folder cannot be opened.
    #[error("it cannot be opened; check the path and its permissions")]
    CannotOpen,
    /// It is a database, but not whole.
    #[error("the file is damaged; restore a copy or begin a new store")]
    Damaged,
    /// The session was never begun.
    #[error("session {0} is not in the store; begin it first")]
    UnknownSession(crate::domain::SessionId),
    /// Another process took in more of the session since it was looked at.
    #[error("the session grew meanwhile; look at it again and try again")]
    Moved,
    /// The lease ran out and somebody else claimed the job, or it was called off.
    #[error("job {0} is no longer ours; nothing was written")]
    LeaseLost(crate::domain::JobId),
    /// The store was closed.
    #[error("the store is closed; open it again")]
    Closed,
    /// Anything else, told by the cause.
    #[error("the database failed; the cause is below")]
    Other,
}

/// A failed operation on a store. One line: what we were doing, where, what is wrong, what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{doing}: {}: {kind}", path.display())]
pub struct StoreError {
    /// What a caller may branch on.
    pub kind: StoreErrorKind,
    /// What we were doing.
    pub doing: &'static str,
    /// The database's file.
    pub path: PathBuf,
    /// The error underneath; shared, because one failed commit fails many callers.
    #[source]
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// Whether the same may work later without anybody doing anything about the store.
    pub fn is_passing(&self) -> bool {
        match self.kind {
            StoreErrorKind::Locked | StoreErrorKind::Full => true,
            StoreErrorKind::BadUrl(_)
            | StoreErrorKind::Missing
            | StoreErrorKind::Newer { .. }
            | StoreErrorKind::NotADatabase
            | StoreErrorKind::Foreign
            | StoreErrorKind::ReadOnly
            | StoreErrorKind::CannotOpen
            | StoreErrorKind::Damaged
            | StoreErrorKind::UnknownSession(_)
            | StoreErrorKind::Moved
            | StoreErrorKind::LeaseLost(_)
            | StoreErrorKind::Closed
            | StoreErrorKind::Other => false,
        }
    }

    pub(super) fn new(kind: StoreErrorKind, doing: &'static str, path: &Path) -> StoreError {
        StoreError { kind, doing, path: path.to_owned(), source: None }
    }

    pub(super) fn caused(self, source: impl Error + Send + Sync + 'static) -> StoreError {
        StoreError { source: Some(Arc::new(source)), ..self }
    }

    pub(super) fn of_io(error: std::io::Error, doing: &'static str, path: &Path) -> StoreError {
        use std::io::ErrorKind;
        let known = [
            (ErrorKind::NotFound, StoreErrorKind::Missing),
            (ErrorKind::ReadOnlyFilesystem, StoreErrorKind::ReadOnly),
            (ErrorKind::StorageFull, StoreErrorKind::Full),
            (ErrorKind::QuotaExceeded, StoreErrorKind::Full),
        ];
        let found = known.into_iter().find(|(code, _)| *code == error.kind());
        let kind = found.map_or(StoreErrorKind::CannotOpen, |(_, kind)| kind);
        StoreError::new(kind, doing, path).caused(error)
    }
}

/// Why a piece of work on a connection failed; becomes a [`StoreError`] where path and purpose are
/// known.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    kind: StoreErrorKind,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl Fault {
    /// A column, counted from 1, that holds what we never wrote.
    pub(super) fn unreadable(column: usize) -> Fault {
        let what = format!("column {column} of a row cannot be read");
        Fault { kind: StoreErrorKind::Damaged, cause: Some(Arc::from(Box::from(what))) }
    }

    /// A value that has no JSON.
    pub(super) fn unwritable(error: serde_json::Error) -> Fault {
        Fault { kind: StoreErrorKind::Other, cause: Some(Arc::new(error)) }
    }

    pub(super) fn at(self, doing: &'static str, path: &Path) -> StoreError {
        let error = StoreError::new(self.kind, doing, path);
        match self.cause {
            Some(cause) => StoreError { source: Some(cause), ..error },
            None => error,
        }
    }
}

impl From<StoreErrorKind> for Fault {
    fn from(kind: StoreErrorKind) -> Fault {
        Fault { kind, cause: None }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        use rusqlite::ErrorCode;
        let known = [
            (ErrorCode::DatabaseBusy, StoreErrorKind::Locked),
            (ErrorCode::DatabaseLocked, StoreErrorKind::Locked),
            (ErrorCode::ReadOnly, StoreErrorKind::ReadOnly),
            (ErrorCode::DiskFull, StoreErrorKind::Full),
            (ErrorCode::NotADatabase, StoreErrorKind::NotADatabase),
            (ErrorCode::CannotOpen, StoreErrorKind::CannotOpen),
            (ErrorCode::PermissionDenied, StoreErrorKind::CannotOpen),
            (ErrorCode::DatabaseCorrupt, StoreErrorKind::Damaged),
        ];
        let code = error.sqlite_error_code();
        let found = known.into_iter().find(|(known, _)| Some(*known) == code);
        let unreadable = matches!(error, rusqlite::Error::FromSqlConversionFailure(..));
        let other = if unreadable { StoreErrorKind::Damaged } else { StoreErrorKind::Other };
        let kind = found.map_or(other, |(_, kind)| kind);
        Fault { kind, cause: Some(Arc::new(error)) }
    }
}
