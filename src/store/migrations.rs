//! Migrations of both databases. Never edit a released one.

/// Behaviour if the store does not exist.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OpenMode {
    /// Creates the store and its folder.
    Create,
    /// Fails with `Missing`.
    Existing,
}

/// Application id of annalist's databases: `anna` in ASCII.
pub(super) const APPLICATION_ID: i32 = 0x616e_6e61;
/// Newest schema version this build supports.
pub(super) const KNOWN: u32 = SQLITE.len() as u32;

macro_rules! migrations {
    ($folder:literal: $($name:literal)*) => {
        [$(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"), "/migrations/", $folder, "/", $name, ".sql"
        ))),*]
    };
    ($folder:literal) => {
        migrations!(
            $folder: "0001_begin" "0002_queue" "0003_told" "0004_memory" "0005_forgotten"
            "0006_directories" "0007_judged" "0008_withdrawn" "0009_batches" "0010_undone"
            "0011_index" "0012_search" "0014_branches" "0015_stems" "0016_tokens"
            "0017_namespaces" "0018_sections" "0019_vectors" "0020_vault" "0021_contradictions"
            "0022_counts" "0023_unanswered" "0024_scrubs" "0025_jobs" "0026_suspected"
        )
    };
}

/// Migrations from version N to N + 1.
pub(super) const SQLITE: [&str; 25] = migrations!("sqlite");
pub(super) const POSTGRES: [&str; 25] = migrations!("postgres");
