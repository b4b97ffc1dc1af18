//! Files of clients as commands meet them: databases that are only read, and clients that are not read.

use super::place::{Place, count};

pub(crate) const DATABASE: &str = r#"
    CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, revert TEXT, time_created INTEGER);
    CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
    CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);
    INSERT INTO session VALUES ('ses_1', NULL, '/home/user/ferry', 'Sails', NULL, 10);
    INSERT INTO message VALUES ('msg_1', 'ses_1', 11, '{"role":"user"}');
    INSERT INTO message VALUES ('msg_2', 'ses_1', 12, '{"role":"assistant"}');
    INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', '{"type":"text","text":"hoist the sail"}');
    INSERT INTO part VALUES ('prt_2', 'msg_2', 'ses_1', '{"type":"text","text":"It is up."}');"#;

#[test]
fn a_database_of_opencode_is_read_and_left_as_it_is() {
    let place = Place::new();
    let path = place.write("in/opencode.db", "");
    rusqlite::Connection::open(&path).unwrap().execute_batch(DATABASE).unwrap();
    let before = place.files();
    let totals = place.json(&["replay", "in", "--dry-run", "--json"]);
    assert_eq!((count(&totals, "/sessions"), count(&totals, "/entries")), (1, 2));
    let changed =
        place.files().iter().any(|file| file.0.starts_with("in") && !before.contains(file));
    assert!(!changed, "nothing is written beside a database");
}

#[test]
fn clients_that_are_not_read_are_named_and_counted_in_folders() {
    let place = Place::new();
    place.write("in/a.jsonl", "{\"type\":\"metadata\",\"protocol_version\":\"1.4\"}\n");
    place.write("in/b.jsonl", "{\"type\":\"metadata\",\"protocol_version\":\"1.4\"}\n");
    place.write("in/notes.md", "# Notes\n");
    for command in [&["replay", "in", "--dry-run", "--json"][..], &["enqueue", "in", "--json"]] {
        let output = place.run(command);
        let report = output.json();
        assert_eq!(count(&report, "/files_passed_over"), 3, "{report}");
        assert_eq!(count(&report, "/files_not_read/Kimi CLI"), 2, "{report}");
        assert!(output.stderr.contains("not read: 2 files of Kimi CLI"), "{}", output.stderr);
    }
}
