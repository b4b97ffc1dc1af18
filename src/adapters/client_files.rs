//! Conversations that clients keep in other forms than one file, as the lines of one: opencode's database, which is
//! read without creating files beside it, and folders in which OpenHands writes one event per file.

use super::files;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

/// Beginning of every SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Maximum size of the conversations of a database or a folder in bytes, which are read into memory.
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
pub(crate) fn opencode_records(
    path: &Path,
    input: &mut impl Read,
) -> io::Result<Option<Cursor<Vec<u8>>>> {
    let mut head = Vec::new();
    input.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    if head != MAGIC {
        return Ok(None);
    }
    Ok(read(path, None)?.map(Cursor::new))
}

/// Returns the records of a session and of its sub-agents; empty if there is no such session.
pub(crate) fn opencode_session(path: &Path, session: &str) -> io::Result<Vec<u8>> {
    Ok(read(path, Some(session))?.unwrap_or_default())
}

/// Reads one session or all; `None` for another program's database.
fn read(path: &Path, session: Option<&str>) -> io::Result<Option<Vec<u8>>> {
    match lines_of(path, session) {
        Ok(lines) if lines.as_ref().is_some_and(|lines| BYTES_MAX < lines.len()) => {
            let most = format!("expected at most {BYTES_MAX} bytes of conversations");
            Err(io::Error::other(format!("{most}; use `opencode export ID`")))
        }
        Ok(lines) => Ok(lines),
        Err(error) => Err(io::Error::other(format!("not a known opencode database: {error}"))),
    }
}

fn lines_of(path: &Path, session: Option<&str>) -> rusqlite::Result<Option<Vec<u8>>> {
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

/// True if `folder` is `…/ID/events` of OpenHands and contains events.
pub(crate) fn is_openhands_folder(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "events")
        && fs::read_dir(folder)
            .is_ok_and(|files| files.flatten().any(|file| is_openhands_event(&file.path())))
}

pub(crate) fn is_openhands_event(path: &Path) -> bool {
    event_number(path).is_some()
}

/// Returns the id and working directory of a conversation of OpenHands, and its events in their order.
/// Such a folder counts as one file.
pub(crate) fn openhands_records(folder: &Path) -> io::Result<Cursor<Vec<u8>>> {
    let files = fs::read_dir(folder)?.flatten().map(|file| file.path());
    let mut events: Vec<(u64, PathBuf)> =
        files.filter_map(|path| Some((event_number(&path)?, path))).collect();
    events.sort();
    let id = folder.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let state = files::read_if_exists(&folder.with_file_name("base_state.json"))?;
    let state: Value = serde_json::from_str(&state.unwrap_or_default()).unwrap_or_default();
    let cwd = &state["workspace"]["working_dir"];
    let mut lines =
        json!({ "kind": "Conversation", "id": id, "cwd": cwd }).to_string().into_bytes();
    for (_, path) in events {
        let Some(event) = files::if_exists(File::open(path))? else { continue };
        lines.push(b'\n');
        let begin = lines.len();
        event.take((BYTES_MAX + 1).saturating_sub(begin) as u64).read_to_end(&mut lines)?;
        // Line breaks between JSON tokens mean nothing, and strings contain none.
        lines[begin..].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        if BYTES_MAX < lines.len() {
            let most = format!("expected at most {BYTES_MAX} bytes of events");
            return Err(io::Error::other(most));
        }
    }
    lines.push(b'\n');
    Ok(Cursor::new(lines))
}

/// Number of the event in a file `event-00012-UUID.json`.
fn event_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let (number, id) = name.strip_suffix(".json")?.strip_prefix("event-")?.split_once('-')?;
    let is_id = id.len() >= 8 && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    number.parse().ok().filter(|_| is_id && number.len() >= 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::walk;

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
        let lines = opencode_records(&path, &mut file).unwrap().unwrap().into_inner();
        let expected = "{\"info\":{\"id\":\"s1\",\"title\":\"One\",\"directory\":\"/a\",\"parentID\":null,\"revert\":{\"messageID\":\"m2\"},\"time\":{\"created\":10}}}\n\
            {\"info\":{\"role\":\"user\",\"id\":\"m1\",\"sessionID\":\"s1\"},\"parts\":[{\"type\":\"text\",\"text\":\"q\"}]}\n\
            {\"info\":{\"role\":\"assistant\",\"id\":\"m2\",\"sessionID\":\"s1\"},\"parts\":[]}\n\
            {\"info\":{\"id\":\"s2\",\"title\":\"Two\",\"directory\":\"/b\",\"parentID\":null,\"revert\":null,\"time\":{\"created\":20}}}\n";
        assert_eq!(String::from_utf8(lines).unwrap(), expected);
        let one = String::from_utf8(opencode_session(&path, "s2").unwrap()).unwrap();
        assert_eq!(one, expected[expected.rfind("{\"info\":{\"id\"").unwrap()..]);
        assert!(opencode_session(&path, "s3").unwrap().is_empty());
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
            let lines = String::from_utf8(opencode_session(&path, "s1").unwrap()).unwrap();
            assert!(lines.contains(r#""revert":null"#) && lines.lines().count() == 3, "{lines}");
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
        assert!(
            opencode_records(&path, &mut std::fs::File::open(&path).unwrap()).unwrap().is_none()
        );
        assert!(opencode_records(&path, &mut &b"{}"[..]).unwrap().is_none());
    }

    #[test]
    fn a_folder_of_events_is_one_file_in_their_order() {
        let place = tempfile::tempdir().unwrap();
        let events = place.path().join("c1/events");
        fs::create_dir_all(&events).unwrap();
        for (name, text) in [
            ("event-100000-cccccccc.json", "3"),
            ("event-00002-bbbbbbbb.json", "{\n}"),
            ("event-00001-dddddddd.json", "1"),
            ("event-2026-notes.json", ""),
        ] {
            files::replace(&events.join(name), text).unwrap();
        }
        let state = r#"{"workspace":{"working_dir":"/w"}}"#;
        files::replace(&place.path().join("c1/base_state.json"), state).unwrap();
        let (found, _) = walk::walk(&[place.path().to_owned()]);
        let found: Vec<_> = found.into_iter().map(|file| file.path).collect();
        assert!(found.contains(&events) && found.len() == 3, "{found:?}");
        assert!(found.contains(&events.join("event-2026-notes.json")), "{found:?}");
        #[cfg(unix)]
        std::os::unix::fs::symlink("gone", events.join("event-00003-eeeeeeee.json")).unwrap();
        let mut lines = String::new();
        walk::open(&events).unwrap().read_to_string(&mut lines).unwrap();
        assert_eq!(lines, "{\"kind\":\"Conversation\",\"id\":\"c1\",\"cwd\":\"/w\"}\n1\n{ }\n3\n");
    }
}
