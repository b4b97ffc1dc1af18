//! Which directory a command is about, and whose memory it shows.

use super::super::output::{self, Failure, YELLOW};
use super::super::settings;
use crate::config::Config;
use crate::edge::memory_dir::{MemoryFolder, PLACES, Read};
use crate::privacy::Gate;
use crate::worker::directory_namespace;
use std::io;
use std::path::{Path, PathBuf};

/// Which directory.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Dir {
    /// The folder of the project, or its memory directory; if it is not named, the project of this folder
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

impl Dir {
    /// The folder of the project.
    pub(super) fn root(&self) -> PathBuf {
        let named = self.dir.as_deref().unwrap_or(Path::new("."));
        if !PLACES.iter().any(|place| named.ends_with(place)) {
            return named.to_owned();
        }
        let root = named.ancestors().nth(2).unwrap_or(named);
        if root.as_os_str().is_empty() { PathBuf::from(".") } else { root.to_owned() }
    }

    /// The directory, which must be there.
    pub(super) fn find(&self) -> Result<MemoryFolder, Failure> {
        let root = self.root();
        let found = match self.dir {
            Some(_) => MemoryFolder::find(&root).map_err(|error| unreadable(&root, &error))?,
            None => around(&root)?,
        };
        found.ok_or_else(|| {
            Failure::usage(format!(
                "{}: there is no memory directory ({}): `annalist memory init` makes one",
                root.display(),
                PLACES.join(" or ")
            ))
        })
    }
}

/// The directory of the project that a folder belongs to, if it has one.
pub(super) fn around(folder: &Path) -> Result<Option<MemoryFolder>, Failure> {
    let found = MemoryFolder::find_above(folder, settings::home().as_deref());
    found.map_err(|error| unreadable(folder, &error))
}

/// Its files; those that cannot be read are told.
pub(super) fn read(folder: &MemoryFolder) -> Result<Read, Failure> {
    let read = folder.read().map_err(|error| unreadable(folder.path(), &error))?;
    for (path, reason) in &read.skipped {
        output::note(&format!("{YELLOW}{path}: {reason}: left out{YELLOW:#}"));
    }
    Ok(read)
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

/// Which of [`PLACES`] a directory is.
pub(super) fn name_of(folder: &MemoryFolder) -> &'static str {
    PLACES.into_iter().find(|place| folder.path().ends_with(place)).unwrap_or(PLACES[0])
}

/// The namespace whose memory a directory shows: the one that is named, that of the settings, or that of the folder.
pub(super) fn namespace(
    named: Option<&str>,
    (config, gate): (&Config, &Gate),
    folder: &MemoryFolder,
) -> String {
    let set = named.or(config.namespace.as_deref());
    let root = folder.path().ancestors().nth(2).unwrap_or(folder.path());
    set.map_or_else(|| directory_namespace(root, gate), str::to_owned)
}
