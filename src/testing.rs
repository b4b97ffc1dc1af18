//! What the tests of more than one room share: files that lie beside the project.

use std::path::PathBuf;

/// What lies at `path` beside the project; none, with a line that says so, where it stands alone.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared");
    let folder = option_env!("ANNALIST_SHARED").unwrap_or(beside);
    let found = PathBuf::from(folder).join(path);
    if !found.exists() {
        announce(path);
        return None;
    }
    Some(found)
}

#[expect(
    clippy::print_stderr,
    reason = "a test that finds nothing must not look like one that passed"
)]
fn announce(path: &str) {
    eprintln!("no shared {path} here: skipped");
}
