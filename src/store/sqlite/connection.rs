//! Connections to a SQLite file: opening, creation, migration, and statements.

use crate::adapters::files;
use crate::store::{
    APPLICATION_ID, BUSY_SECS, Cells, Columns, Insert, KNOWN, OpenMode, Result,
    SQLITE as MIGRATIONS, StoreErrorKind, StoreResult, Value,
};
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params_from_iter};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// The writer's page cache, in KiB; holds the pages of one group commit.
const WRITER_CACHE_KIB: u32 = 8 * 1024;
/// A reader's page cache, in KiB; reads are short or scan once.
const READER_CACHE_KIB: u32 = 2 * 1024;
/// Pages in the write-ahead log that trigger a checkpoint (16 MiB). Rare checkpoints write a hot
/// page fewer times.
const WAL_PAGES: u32 = 4_096;
/// Size to which a reset write-ahead log is truncated, in bytes.
const WAL_BYTES_KEPT: u32 = 64 * 1024 * 1024;
/// Maximum number of prepared statements per connection; more than the program uses.
const STATEMENTS_MAX: usize = 64;

/// Access to a database file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store) enum Access {
    Write,
    /// The file or its folder is not writable.
    Read,
    /// The folder has no log and cannot hold one, so nobody is writing.
    Immutable,
}

/// Opens the writing connection. Creates file and folder if asked to, and migrates. An existing
/// file that is not writable is opened for reading; writes then fail.
pub(super) fn open_writer(path: &Path, open: OpenMode) -> StoreResult<(Connection, Access)> {
    writer(path, open).map_err(|fault| fault.at("opening the store", path.display()))
}

fn writer(path: &Path, open: OpenMode) -> Result<(Connection, Access)> {
    match (path.try_exists()?, open) {
        (false, OpenMode::Create) => create(path)?,
        (false, OpenMode::Existing) => return Err(StoreErrorKind::Missing.into()),
        (true, OpenMode::Create | OpenMode::Existing) => {}
    }
    let fault = match prepare(path) {
        Ok(connection) => return Ok((connection, Access::Write)),
        Err(fault) => fault,
    };
    let refused = [StoreErrorKind::ReadOnly, StoreErrorKind::CannotOpen].contains(&fault.kind);
    match (refused.then(|| read_only(path)).flatten(), open) {
        (Some(opened), OpenMode::Existing) => Ok(opened),
        (Some(_), OpenMode::Create) => Err(StoreErrorKind::ReadOnly.into()),
        (None, _) => Err(fault),
    }
}

/// Opens an unwritable store for reading, if it has our schema version.
fn read_only(path: &Path) -> Option<(Connection, Access)> {
    [Access::Read, Access::Immutable].into_iter().find_map(|access| {
        let connection = open_reader(path, access).ok()?;
        let is_known = check_ours(&connection).is_ok_and(|version| version == KNOWN);
        is_known.then_some((connection, access))
    })
}

/// Creates the database under a temporary name and moves it into place when complete, so that
/// concurrent processes share one store and never see it half-made.
fn create(path: &Path) -> Result<()> {
    let draft = files::temp_file_beside(path)?;
    let mut connection = connect(draft.path(), Access::Write)?;
    // Without a log or a journal beside it, the draft is whole when the migration is committed.
    connection.pragma_update(None, "journal_mode", "memory")?;
    connection.pragma_update(None, "synchronous", "full")?;
    migrate(&mut connection)?;
    // Processes that begin at once would refuse one another the lock that this takes. Closing removes the log.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.close().map_err(|(_, error)| error)?;
    files::persist_new(draft, path)?;
    Ok(())
}

fn prepare(path: &Path) -> Result<Connection> {
    let mut connection = connect(path, Access::Write)?;
    check_ours(&connection)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Keeps rollback copies of pages in memory; only the log reaches the file system.
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -i64::from(WRITER_CACHE_KIB))?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Opens a read-only connection to a database that a writer has opened.
pub(in crate::store) fn open_reader(path: &Path, access: Access) -> Result<Connection> {
    let connection = connect(path, access)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -i64::from(READER_CACHE_KIB))?;
    Ok(connection)
}

fn connect(path: &Path, access: Access) -> Result<Connection> {
    // Does not create the file. Plain paths are not parsed as URIs.
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read_only = flags | OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = match access {
        Access::Write => {
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE)
        }
        Access::Read => Connection::open_with_flags(path, read_only),
        Access::Immutable => {
            let uri = files::immutable_uri(path);
            Connection::open_with_flags(uri, read_only | OpenFlags::SQLITE_OPEN_URI)
        }
    }?;
    connection.busy_timeout(Duration::from_secs(BUSY_SECS))?;
    // Otherwise SQLite may re-plan a statement when it is bound to other values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// Returns the schema version; fails for foreign or newer databases.
fn check_ours(connection: &Connection) -> Result<u32> {
    // One snapshot for all queries, since another process may be migrating.
    let moment = connection.unchecked_transaction()?;
    version(&moment)
}

fn version(connection: &Connection) -> Result<u32> {
    let application: i32 = pragma(connection, "application_id")?;
    let found: u32 = pragma(connection, "user_version")?;
    if application != APPLICATION_ID {
        let sql = "SELECT count(*) FROM sqlite_schema";
        let tables: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        let empty = application == 0 && found == 0 && tables == 0;
        return if empty { Ok(0) } else { Err(StoreErrorKind::Foreign.into()) };
    }
    if KNOWN < found {
        return Err(StoreErrorKind::Newer { found, known: KNOWN }.into());
    }
    Ok(found)
}

fn pragma<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> Result<T> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}

/// Migrates the database in one transaction. Checks the version again inside it: another process
/// may have been faster.
fn migrate(connection: &mut Connection) -> Result<()> {
    if check_ours(connection)? == KNOWN {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", KNOWN)?;
    Ok(transaction.commit()?)
}

/// Vacuums and truncates the WAL so that deleted data leaves the disk. Returns false if a reader still needs the WAL.
pub(in crate::store) fn scrub(path: &Path) -> StoreResult<bool> {
    let scrub = || -> Result<bool> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(Duration::from_secs(BUSY_SECS))?;
        connection.execute_batch("VACUUM")?;
        let is_busy = |row: &rusqlite::Row<'_>| row.get(0);
        let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], is_busy)?;
        Ok(!is_busy)
    };
    let doing = "rewriting the store without the erased text";
    scrub().map_err(|fault| fault.at(doing, path.display()))
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(int) => ValueRef::Integer(*int),
            Value::Real(real) => ValueRef::Real(*real),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Cells for rusqlite::Row<'_> {
    fn cell(&self, at: usize) -> Result<Value<'_>> {
        Ok(match self.get_ref(at)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(int) => Value::Int(int),
            ValueRef::Real(real) => Value::Real(real),
            text @ ValueRef::Text(_) => Value::from(text.as_str().map_err(rusqlite::Error::from)?),
            ValueRef::Blob(bytes) => Value::from(bytes),
        })
    }
}

pub(in crate::store) fn execute(
    connection: &Connection,
    sql: &str,
    values: &[Value<'_>],
) -> Result<u64> {
    Ok(connection.prepare_cached(sql)?.execute(params_from_iter(values))? as u64)
}

pub(in crate::store) fn each(
    connection: &Connection,
    sql: &str,
    values: &[Value<'_>],
    each: &mut dyn FnMut(&mut Columns<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        if each(&mut Columns::of(row))?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Inserts row by row: in SQLite a prepared one-row statement is as fast as a multi-row one.
pub(in crate::store) fn insert(
    connection: &Connection,
    into: Insert,
    values: &[Value<'_>],
) -> Result<u64> {
    let places: Vec<String> = (1..=into.width).map(|n| format!("?{n}")).collect();
    let sql = format!("{} VALUES ({}) {}", into.head, places.join(", "), into.tail);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut changed = 0;
    for row in values.chunks_exact(into.width) {
        changed += statement.execute(params_from_iter(row))? as u64;
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a file made by `make` and checks the error.
    #[track_caller]
    fn check(make: impl FnOnce(&Path), open: OpenMode, expected: &StoreErrorKind) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        make(&path);
        let error = open_writer(&path, open).map(|_| ()).unwrap_err();
        assert_eq!(&error.kind, expected);
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }

    fn sql(sql: &'static str) -> impl FnOnce(&Path) {
        move |path| Connection::open(path).unwrap().execute_batch(sql).unwrap()
    }

    #[test]
    fn what_is_not_there_is_missing_and_not_made() {
        check(|_| (), OpenMode::Existing, &StoreErrorKind::Missing);
    }

    #[test]
    fn a_newer_database_is_refused_with_both_versions() {
        let newer = sql("PRAGMA application_id = 0x616e6e61; PRAGMA user_version = 99");
        check(
            newer,
            OpenMode::Existing,
            &StoreErrorKind::Newer { found: 99, known: MIGRATIONS.len() as u32 },
        );
    }

    #[test]
    fn what_is_not_ours_is_refused_untouched() {
        let text = "not a database ".repeat(100);
        let other = |path: &Path| files::replace(path, &text).unwrap();
        check(other, OpenMode::Create, &StoreErrorKind::NotADatabase);
        check(sql("CREATE TABLE notes (a)"), OpenMode::Create, &StoreErrorKind::Foreign);
        check(sql("PRAGMA application_id = 7"), OpenMode::Create, &StoreErrorKind::Foreign);
        // Without advice for servers.
        assert!(StoreErrorKind::Foreign.to_string().ends_with("; name another file"));
        assert!(StoreErrorKind::ReadOnly.to_string().ends_with("its folder writable"));
    }

    #[test]
    fn a_folder_is_no_store() {
        let folder = |path: &Path| std::fs::create_dir(path).unwrap();
        check(folder, OpenMode::Existing, &StoreErrorKind::CannotOpen);
    }

    #[test]
    fn a_draft_is_whole_without_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        create(&path).unwrap();
        let names = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["s.db"]);
        let draft = open_reader(&path, Access::Immutable).unwrap();
        assert_eq!(check_ours(&draft).unwrap(), KNOWN);
        let log = pragma::<String>(&draft, "journal_mode").unwrap();
        assert_ne!(log, "wal", "a full disk would leave a part of it in the log");
    }

    #[test]
    fn opening_twice_migrates_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/s.db");
        let versions: Vec<u32> = std::thread::scope(|scope| {
            let open = || check_ours(&open_writer(&path, OpenMode::Create).unwrap().0).unwrap();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let newest = MIGRATIONS.len() as u32;
        assert_eq!(versions, [newest; 4]);
        assert_eq!(check_ours(&open_writer(&path, OpenMode::Existing).unwrap().0).unwrap(), newest);
    }

    #[cfg(unix)]
    #[test]
    fn a_new_store_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/s.db");
        let _open = open_writer(&path, OpenMode::Create).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
    }

    #[test]
    fn a_new_store_needs_no_lock_to_be_opened_and_leaves_nothing_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.db");
        create(&path).unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
        // A reader that stays: to switch to the log then would be refused.
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;").unwrap();
        assert!(prepare(&path).is_ok());
    }
}
