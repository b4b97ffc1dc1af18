//! Events of a conversation of OpenHands, which its SDK writes one per file into a folder, as JSONL.
//! Such a folder counts as one file.

use std::fs;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

/// Maximum size of a conversation in bytes, which is read into memory.
const BYTES_MAX: usize = 1024 * 1024 * 1024;

/// True if `folder` is `…/ID/events` and contains events.
pub(crate) fn is_events(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "events")
        && fs::read_dir(folder)
            .is_ok_and(|files| files.flatten().any(|file| number(&file.path()).is_some()))
}

/// Returns the conversation's id and its events in their order.
pub(crate) fn records(folder: &Path) -> io::Result<Cursor<Vec<u8>>> {
    let files = fs::read_dir(folder)?.flatten().map(|file| file.path());
    let mut files: Vec<(u64, PathBuf)> =
        files.filter_map(|path| Some((number(&path)?, path))).collect();
    files.sort();
    let id = folder.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let mut lines =
        serde_json::json!({ "kind": "Conversation", "id": id }).to_string().into_bytes();
    for (_, path) in files {
        let event = fs::read(path)?;
        lines.push(b'\n');
        // Line breaks between JSON tokens mean nothing, and strings contain none.
        lines.extend(event.into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte }));
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
    name.strip_suffix(".json")?.strip_prefix("event-")?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::{files, walk};
    use std::io::Read;

    #[test]
    fn a_folder_of_events_is_one_file_in_their_order() {
        let place = tempfile::tempdir().unwrap();
        let events = place.path().join("c1/events");
        fs::create_dir_all(&events).unwrap();
        for (name, text) in [
            ("event-100000-c.json", "3"),
            ("event-00002-b.json", "{\n}"),
            ("event-00001-d.json", "1"),
            (".eventlog.lock", ""),
        ] {
            files::replace(&events.join(name), text).unwrap();
        }
        files::replace(&place.path().join("c1/base_state.json"), "{}").unwrap();
        let (found, _) = walk::walk(&[place.path().to_owned()]);
        let found: Vec<_> = found.into_iter().map(|file| file.path).collect();
        assert!(found.contains(&events) && found.len() == 2, "{found:?}");
        let mut lines = String::new();
        walk::open(&events).unwrap().read_to_string(&mut lines).unwrap();
        assert_eq!(lines, "{\"kind\":\"Conversation\",\"id\":\"c1\"}\n1\n{ }\n3\n");
    }
}
