//! Tells the hooks of a session that its memory was synced.

use super::output::Failure;
use super::settings;
use crate::edge::clock;
use crate::edge::hooks::HookFolder;

/// The name of a session, if it may be one.
pub(super) fn name(session: &str) -> Result<&str, Failure> {
    match HookFolder::is_name(session) {
        true => Ok(session),
        false => Err(Failure::usage(
            "--session: expected the name of a session: letters, digits, `-` and `_`",
        )),
    }
}

/// Notes that a sync for `session` was completed now.
pub(super) fn note(session: &str) -> Result<(), Failure> {
    let Some(state) = settings::state_folder() else {
        return Err(Failure::failed("--session: neither XDG_STATE_HOME nor HOME is set"));
    };
    let noted = HookFolder::new(&state).note_synced(session, clock::now());
    noted.map_err(|error| Failure::failed(format!("--session {session}: {error}")))
}
