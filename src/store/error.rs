//! Store errors: kinds to branch on and one line that says what to do. They never contain
//! conversation text.

use std::error::Error;
use std::fmt::Display;
use std::sync::Arc;

/// Kind of a store error.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreErrorKind {
    #[error(
        "`{0}` is not a supported store; expected sqlite:PATH or \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters of the password as %XX"
    )]
    BadUrl(String),
    /// The file does not exist, or the database has no tables of ours.
    #[error("no store there yet; `annalist replay PATH` creates one, or set store.url")]
    Missing,
    #[error("the database does not answer; check that it is running, and the host and port")]
    Unavailable,
    #[error("{0}")]
    Refused(Refusal),
    #[error(
        "its schema version is {found}, this version of annalist supports {known}; update annalist"
    )]
    Newer { found: u32, known: u32 },
    #[error("not a database; name another file")]
    NotADatabase,
    #[error("it contains the tables of another program; name another file")]
    Foreign,
    #[error(
        "another process has locked it for {} s; stop that process, or try again",
        super::BUSY_SECS
    )]
    Locked,
    #[error("it is read-only; make the file and its folder writable")]
    ReadOnly,
    #[error("the disk is full; free some space, nothing was half-written")]
    Full,
    #[error("it cannot be opened; check the path and its permissions")]
    CannotOpen,
    #[error("it is damaged; restore a backup, or create a new store")]
    Damaged,
    #[error("session {0} is not in the store; create it first")]
    UnknownSession(crate::domain::SessionId),
    #[error("the session grew in the meantime; read it again and retry")]
    Moved,
    /// The lease expired and another worker claimed the job, or the job was cancelled.
    #[error("the lease of job {0} was lost; nothing was written")]
    LeaseLost(crate::domain::JobId),
    #[error("another process is now consolidating namespace `{0}`; nothing was written, try again")]
    NamespaceLeaseLost(String),
    #[error("the store is closed; open it again")]
    Closed,
    #[error("the database failed; the cause is below")]
    Other,
}

impl StoreErrorKind {
    /// Returns true if the store can only be read.
    pub(crate) fn is_read_only(&self) -> bool {
        [StoreErrorKind::ReadOnly, Refusal::ReadOnly.into()].contains(self)
    }
}

/// Reason for which a server rejects us.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("the server rejects the password; check the user and password in store.url")]
    Password,
    #[error(
        "the server rejects the login; allow the user, database and address in its pg_hba.conf"
    )]
    Login,
    #[error("the server has no such database; create it with createdb")]
    Database,
    #[error("search_path names no schema; add ?options=-csearch_path%3Dannalist")]
    Schema,
    #[error(
        "the schema contains the tables of another program; name another: \
         ?options=-csearch_path%3Dannalist"
    )]
    Foreign,
    #[error("the server is read-only; name the one that accepts writes")]
    ReadOnly,
    #[error("the user lacks the rights; grant it the rights on the schema, or name another schema")]
    Rights,
    #[error(
        "the server offers no TLS; enable it there, or set sslmode=prefer if the network is trusted"
    )]
    Tls,
    #[error(
        "the server's certificate is not trusted here; install its certificate authority on this machine"
    )]
    Certificate,
}

/// A failed operation on a store, as one line: operation, place, problem, remedy.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{doing}: {place}: {kind}")]
pub struct StoreError {
    /// Kind, for callers to branch on.
    pub kind: StoreErrorKind,
    /// Operation that failed.
    pub doing: &'static str,
    /// The store: its file, or its URL without the password.
    pub place: String,
    /// Underlying error; shared, because one failed commit fails many callers.
    #[source]
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// Returns true if a retry may succeed without anyone fixing the store.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Unavailable | StoreErrorKind::Locked | StoreErrorKind::Full
        )
    }
}

/// Result of an operation of the store.
pub(crate) type StoreResult<T> = Result<T, StoreError>;

/// Result of work on a connection.
pub(super) type Result<T, E = Fault> = std::result::Result<T, E>;

/// A failure on a connection. Becomes a [`StoreError`] where the place and the operation are known.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: StoreErrorKind,
    cause: Option<Arc<dyn Error + Send + Sync>>,
    without_retry: bool,
}

impl Fault {
    pub(super) fn caused(kind: StoreErrorKind, cause: impl Error + Send + Sync + 'static) -> Fault {
        Fault { kind, cause: Some(Arc::new(cause)), without_retry: false }
    }

    pub(super) fn unreadable(column: usize) -> Fault {
        let what = format!("column {column} of a row cannot be read");
        let cause = Some(Arc::from(Box::from(what)));
        Fault { cause, ..Fault::from(StoreErrorKind::Damaged) }
    }

    pub(super) fn is_retryable(&self) -> bool {
        !self.without_retry
            && matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Locked)
    }

    pub(super) fn without_retry(self) -> Fault {
        Fault { without_retry: true, ..self }
    }

    pub(super) fn at(self, doing: &'static str, place: impl Display) -> StoreError {
        StoreError { kind: self.kind, doing, place: place.to_string(), source: self.cause }
    }
}

impl From<StoreErrorKind> for Fault {
    fn from(kind: StoreErrorKind) -> Fault {
        Fault { kind, cause: None, without_retry: false }
    }
}

impl From<Refusal> for StoreErrorKind {
    fn from(refusal: Refusal) -> StoreErrorKind {
        StoreErrorKind::Refused(refusal)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        use std::io::ErrorKind;
        let known = [
            (ErrorKind::ReadOnlyFilesystem, StoreErrorKind::ReadOnly),
            (ErrorKind::StorageFull, StoreErrorKind::Full),
            (ErrorKind::QuotaExceeded, StoreErrorKind::Full),
        ];
        let found = known.into_iter().find(|(code, _)| *code == error.kind());
        Fault::caused(found.map_or(StoreErrorKind::CannotOpen, |(_, kind)| kind), error)
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
        Fault::caused(kind, error)
    }
}
