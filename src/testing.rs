//! What the tests of several modules share: files next to the project, and the number of generated cases.

use proptest::prelude::ProptestConfig;
use std::path::PathBuf;

/// Settings for a law that is tested with `usual` generated cases, or with the same share of them that `PROPTEST_CASES` is
/// of proptest's own 256.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    let cases = (usual * config.cases / 256).max(usual.min(8));
    ProptestConfig { cases, ..config }
}

/// The file at `path` next to the project; none, with a line that says so, where the project is alone.
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
