//! Tells the hooks of a session that its memory was synced: a file that names the moment, beside their state.

use super::output::Failure;
use crate::edge::{clock, disk};
use std::path::PathBuf;

/// The longest name of a session, in bytes: with its ending it fits every file system.
const NAME_BYTES_MAX: usize = 200;

/// The name of a session, if it can be no path: it is a client's word.
pub(super) fn name(session: &str) -> Result<String, Failure> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=NAME_BYTES_MAX).contains(&session.len()) && session.bytes().all(is_part) {
        return Ok(session.to_owned());
    }
    Err(Failure::usage(
        "--session: expected the name of a session: letters, digits, `-` and `_`".to_owned(),
    ))
}

/// Notes that a sync for `session` was completed now.
pub(super) fn note(session: &str) -> Result<(), Failure> {
    let Some(folder) = state_folder().map(|state| state.join("hooks")) else {
        return Err(Failure::failed(
            "--session: neither XDG_STATE_HOME nor HOME is set".to_owned(),
        ));
    };
    let path = folder.join(format!("{session}.synced"));
    let written = disk::make_private_folder(&folder)
        .and_then(|()| disk::replace(&path, &format!("{}\n", clock::now())));
    written.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// The user's folder for our state, as XDG has it.
fn state_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".local/state"));
    set("XDG_STATE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(home)
        .map(|base| base.join("annalist"))
}
