//! Prompts of one's own, read from a folder or a file. What is missing there is the one that is compiled in.

use super::disk;
use crate::prompt::{BUILT_IN, OwnTexts, Prompts};
use std::io;
use std::path::{Path, PathBuf};

/// The files of a set.
const NAMES: [&str; 3] = ["extract.md", "slice.md", "again.md"];
/// The largest prompt that is read, in bytes: ten times what any model reads well.
const BYTES_MAX: u64 = 1024 * 1024;

/// Reads the prompts at `path`: a folder with some of the three files, or one of them. A file of another
/// name is an `extract.md`.
///
/// # Errors
/// One line: which file, and what is wrong with it.
pub fn read(path: &Path) -> Result<Prompts, String> {
    let mut own = OwnTexts::default();
    if path.is_dir() {
        own.extract = text(&path.join(NAMES[0]))?;
        own.slice = text(&path.join(NAMES[1]))?;
        own.again = text(&path.join(NAMES[2]))?;
        if own == OwnTexts::default() {
            return Err(format!("{}: holds none of {}", path.display(), NAMES.join(", ")));
        }
    } else {
        let read = text(path)?;
        if read.is_none() {
            return Err(format!(
                "{}: is not there: expected a folder with {}, or one of these files",
                path.display(),
                NAMES.join(", ")
            ));
        }
        match path.file_name().and_then(|name| name.to_str()) {
            Some("slice.md") => own.slice = read,
            Some("again.md") => own.again = read,
            Some(_) | None => own.extract = read,
        }
    }
    Prompts::with_own(&own).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes the prompts that are compiled in into `folder`; gives the files that were written, and those that
/// are there already and stay as they are.
///
/// # Errors
/// Those of the file system.
pub fn write_built_in(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut written, mut there) = (Vec::new(), Vec::new());
    for (name, text) in NAMES.iter().zip([BUILT_IN.extract, BUILT_IN.slice, BUILT_IN.again]) {
        let path = folder.join(name);
        match disk::create(&path, text)? {
            true => written.push(path),
            false => there.push(path),
        }
    }
    Ok((written, there))
}

/// The text of a file as it would be compiled in: without a mark of its encoding, lines ended by newlines.
fn text(path: &Path) -> Result<Option<String>, String> {
    let wrong = |error: io::Error| format!("{}: cannot be read: {error}", path.display());
    let bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
    if bytes > BYTES_MAX {
        return Err(format!("{}: {bytes} bytes; a prompt has {BYTES_MAX} at most", path.display()));
    }
    let text = disk::read_if_there(path).map_err(wrong)?;
    Ok(text.map(|text| text.trim_start_matches('\u{feff}').replace("\r\n", "\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_ones_own_takes_the_others_along_with_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("extract.md");
        let text = BUILT_IN.extract.replace("version: 1", "version: 7").replace("months", "years");
        disk::create(&path, &text.replace('\n', "\r\n")).unwrap();
        let (by_folder, by_file) = (read(folder.path()).unwrap(), read(&path).unwrap());
        assert_eq!((by_folder.version(), by_folder.digest()), (7, by_file.digest()));
        assert_ne!(by_folder, Prompts::built_in());
        let (written, there) = write_built_in(folder.path()).unwrap();
        assert_eq!((written.len(), there), (2, vec![path]));
        let error = read(folder.path()).unwrap_err();
        assert!(error.contains("version 1, but the set has version 7"), "{error}");
    }

    #[test]
    fn what_is_written_out_is_what_is_compiled_in() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err().contains("holds none of extract.md"));
        write_built_in(folder.path()).unwrap();
        assert_eq!(read(folder.path()).unwrap(), Prompts::built_in());
        assert!(read(&folder.path().join("no.md")).unwrap_err().contains("is not there"));
    }
}
