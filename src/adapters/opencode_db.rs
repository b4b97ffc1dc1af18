//! opencode's database, converted to the records that `opencode export` writes. Read-only; creates
//! no files beside it.

use super::files;
use rusqlite::{Connection, OpenFlags};
use std::io::{self, Cursor, Read};
use std::path::Path;

/// Beginning of every SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Maximum size of a database's conversations in bytes, which are read into memory.
const BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Counts the tables of an opencode database.
const TABLES: &str = "SELECT count(*) FROM sqlite_master WHERE type = 'table' \
    AND name IN ('session', 'message', 'part')";
/// Selects each session's header and then its messages, in order.
const RECORDS: &str = "SELECT record FROM (
    SELECT s.time_created AS begun, s.id AS session, 0 AS at, '' AS message, json_object('info', json_object(
        'id', s.id, 'title', s.title, 'directory', s.directory, 'parentID', s.parent_id,
        'revert', json(CASE WHEN json_valid(s.revert) THEN s.revert END), 'time', json_object('created', s.time_created))) AS record
    FROM session s
    UNION ALL
    SELECT s.time_created, s.id, m.time_created, m.id, json_object(
        'info', json_set(m.data, '$.id', m.id, '$.sessionID', m.session_id),
        'parts', json((SELECT json_group_array(json(data)) FROM
            (SELECT data FROM part WHERE message_id = m.id ORDER BY id))))
    FROM message m JOIN session s ON s.id = m.session_id
) WHERE ?1 IS NULL OR session IN (SELECT id FROM session WHERE id = ?1 OR parent_id = ?1)
ORDER BY begun, session, at, message";

/// Returns the records of an opencode database as JSONL; `None` if `input` is another kind of file.
pub(crate) fn records(path: &Path, input: &mut impl Read) -> io::Result<Option<Cursor<Vec<u8>>>> {
    let mut head = Vec::new();
    input.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    if head != MAGIC {
        return Ok(None);
    }
    Ok(read(path, None)?.map(Cursor::new))
}

/// Returns the records of a session and of its sub-agents; empty if there is no such session.
pub(crate) fn session_records(path: &Path, session: &str) -> io::Result<Vec<u8>> {
    Ok(read(path, Some(session))?.unwrap_or_default())
}

/// Reads one session or all; `None` for another program's database.
fn read(path: &Path, session: Option<&str>) -> io::Result<Option<Vec<u8>>> {
    match lines(path, session) {
        Ok(lines) if lines.as_ref().is_some_and(|lines| BYTES_MAX < lines.len()) => {
            let most = format!("expected at most {BYTES_MAX} bytes of conversations");
            Err(io::Error::other(format!("{most}; use `opencode export ID`")))
        }
        Ok(lines) => Ok(lines),
        Err(error) => Err(io::Error::other(format!("not a known opencode database: {error}"))),
    }
}

fn lines(path: &Path, session: Option<&str>) -> rusqlite::Result<Option<Vec<u8>>> {
    let database = open(path)?;
    let tables: u32 = database.query_row(TABLES, [], |row| row.get(0))?;
    if tables < 3 {
        return Ok(None);
    }
    let mut lines = Vec::new();
    // Older databases have no such column.
    let older = || database.prepare(&RECORDS.replace("s.revert", "NULL"));
    let mut statement = database.prepare(RECORDS).or_else(|_| older())?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        lines.extend_from_slice(row.get_ref(0)?.as_bytes()?);
        lines.push(b'\n');
        if BYTES_MAX < lines.len() {
            break;
        }
    }
    Ok(Some(lines))
}

/// Opens a database read-only. Without a WAL file there is no writer, and none is created.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let log = path
        .with_file_name(format!("{}-wal", path.file_name().unwrap_or_default().to_string_lossy()));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if log.exists() {
        return Connection::open_with_flags(path, flags);
    }
    let uri = files::immutable_uri(path);
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "
        CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, revert TEXT, time_created INTEGER);
        CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
        CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);
        INSERT INTO session VALUES ('s2', NULL, '/b', 'Two', NULL, 20), ('s1', NULL, '/a', 'One', '{\"messageID\":\"m2\"}', 10);
        INSERT INTO message VALUES ('m2', 's1', 12, '{\"role\":\"assistant\"}'), ('m1', 's1', 11, '{\"role\":\"user\"}');
        INSERT INTO part VALUES ('p1', 'm1', 's1', '{\"type\":\"text\",\"text\":\"q\"}');";

    #[test]
    fn sessions_are_written_in_their_order_and_nothing_is_left_beside_the_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a #1.db");
        Connection::open(&path).unwrap().execute_batch(SCHEMA).unwrap();
        let mut file = std::fs::File::open(&path).unwrap();
        let lines = records(&path, &mut file).unwrap().unwrap().into_inner();
        let expected = "{\"info\":{\"id\":\"s1\",\"title\":\"One\",\"directory\":\"/a\",\"parentID\":null,\"revert\":{\"messageID\":\"m2\"},\"time\":{\"created\":10}}}\n\
            {\"info\":{\"role\":\"user\",\"id\":\"m1\",\"sessionID\":\"s1\"},\"parts\":[{\"type\":\"text\",\"text\":\"q\"}]}\n\
            {\"info\":{\"role\":\"assistant\",\"id\":\"m2\",\"sessionID\":\"s1\"},\"parts\":[]}\n\
            {\"info\":{\"id\":\"s2\",\"title\":\"Two\",\"directory\":\"/b\",\"parentID\":null,\"revert\":null,\"time\":{\"created\":20}}}\n";
        assert_eq!(String::from_utf8(lines).unwrap(), expected);
        let one = String::from_utf8(session_records(&path, "s2").unwrap()).unwrap();
        assert_eq!(one, expected[expected.rfind("{\"info\":{\"id\"").unwrap()..]);
        assert!(session_records(&path, "s3").unwrap().is_empty());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_revert_that_is_missing_or_no_json_stops_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.db");
        let database = Connection::open(&path).unwrap();
        database.execute_batch(SCHEMA).unwrap();
        for change in ["UPDATE session SET revert = ''", "ALTER TABLE session DROP COLUMN revert"] {
            database.execute_batch(change).unwrap();
            let lines = String::from_utf8(session_records(&path, "s1").unwrap()).unwrap();
            assert!(lines.contains(r#""revert":null"#) && lines.lines().count() == 3, "{lines}");
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
        assert!(records(&path, &mut std::fs::File::open(&path).unwrap()).unwrap().is_none());
        assert!(records(&path, &mut &b"{}"[..]).unwrap().is_none());
    }
}
