//! Events of a conversation of OpenHands, which its SDK writes one per file into a folder, as JSONL.
//! Such a folder counts as one file.

use super::files;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

/// Maximum size of a conversation in bytes, which is read into memory.
const BYTES_MAX: usize = 1024 * 1024 * 1024;

/// True if `folder` is `…/ID/events` and contains events.
pub(crate) fn is_events(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "events")
        && fs::read_dir(folder)
            .is_ok_and(|files| files.flatten().any(|file| is_event(&file.path())))
}

pub(crate) fn is_event(path: &Path) -> bool {
    number(path).is_some()
}

/// Returns the conversation's id and working directory, and its events in their order.
pub(crate) fn records(folder: &Path) -> io::Result<Cursor<Vec<u8>>> {
    let files = fs::read_dir(folder)?.flatten().map(|file| file.path());
    let mut events: Vec<(u64, PathBuf)> =
        files.filter_map(|path| Some((number(&path)?, path))).collect();
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
fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let (number, id) = name.strip_suffix(".json")?.strip_prefix("event-")?.split_once('-')?;
    let is_id = id.len() >= 8 && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    number.parse().ok().filter(|_| is_id && number.len() >= 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::walk;

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
