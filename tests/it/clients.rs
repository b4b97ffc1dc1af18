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
fn every_file_of_a_folder_that_is_not_read_is_counted_below_its_reason() {
    let place = Place::new();
    place.write("in/a.jsonl", "{\"type\":\"metadata\",\"protocol_version\":\"1.4\"}\n");
    place.write("in/b.jsonl", "{\"type\":\"metadata\",\"protocol_version\":\"1.4\"}\n");
    place.write("in/notes.md", "# Notes\n");
    place.write("in/empty.jsonl", "");
    place.write("in/noise.jsonl", [7, 0, 200, 0, 9]);
    place.write("in/wide.jsonl", [&b"\xff\xfe"[..], b"{\0\"\0t\0"].concat());
    for command in [&["replay", "in", "--dry-run", "--json"][..], &["enqueue", "in", "--json"]] {
        let output = place.run(command);
        let report = output.json();
        assert_eq!(count(&report, "/files_passed_over"), 6, "{report}");
        let reasons = report["files_not_read"].as_object().unwrap();
        assert_eq!(reasons.values().filter_map(|it| it.as_u64()).sum::<u64>(), 6, "{report}");
        for line in [
            "2 files: Kimi CLI",
            "1 file: UTF-16 text (convert it to UTF-8)",
            "1 file: binary",
            "1 file: empty",
            "1 file: no known transcript format",
        ] {
            assert!(output.stderr.contains(&format!("not read: {line}")), "{}", output.stderr);
        }
    }
}
