//! Reads custom prompts from a folder or a file, and writes the built-in ones to files.

use crate::adapters::files;
use crate::llm::prompt::{CustomPrompts, CustomTexts, FORMER_RETRY_NAME, PromptFile, Prompts};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The summary prompt, which no command sends to a model.
const NEVER_ASKED: &str = "summary.md";
/// Maximum size of a prompt, in bytes: ten times what models follow well.
const BYTES_MAX: u64 = 1024 * 1024;

/// Reads the prompts at `path`: a folder with some of the files of [`PromptFile`], or one file. A single file of
/// another name is an `extract.md`; other files of a folder are ignored.
///
/// # Errors
/// One line: the file and the problem.
pub(crate) fn read(path: &Path) -> Result<CustomPrompts, String> {
    let shown = path.display();
    let mut own = CustomTexts::new();
    if path.is_dir() {
        for file in PromptFile::ALL {
            own.extend(text(&path_of(file, path))?.map(|text| (file, text)));
        }
        if own.is_empty() {
            return Err(format!("{shown}: holds none of {}", names(&PromptFile::ALL)));
        }
    } else {
        let all = names(&PromptFile::ALL);
        let Some(read) = text(path)? else {
            return Err(format!(
                "{shown}: is not there: expected a folder with {all}, or one of these files"
            ));
        };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name == NEVER_ASKED {
            return Err(format!(
                "{shown}: no command asks a model with {name}: expected one of {all}, or a folder of them"
            ));
        }
        own.insert(PromptFile::of_name(name).unwrap_or(PromptFile::Extract), read);
    }
    CustomPrompts::read(&own).map_err(|error| format!("{shown}: {error}"))
}

/// Reads the extraction prompts at `path`, as [`read`] does.
///
/// # Errors
/// One line: as [`read`], or that there is no extraction prompt.
pub(crate) fn read_extraction(path: &Path) -> Result<Arc<Prompts>, String> {
    read(path)?.own_extraction().ok_or_else(|| {
        let shown = path.display();
        let names = names(&PromptFile::EXTRACTION);
        format!(
            "{shown}: no prompt test asks with it: tests are of extraction; expected one of {names}, \
             or a folder with one"
        )
    })
}

/// Writes the built-in prompts into `folder`; returns the written files, and the existing ones, which stay
/// unchanged.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write_built_in(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut written, mut there) = (Vec::new(), Vec::new());
    for file in PromptFile::ALL {
        let path = path_of(file, folder);
        match files::create(&path, file.built_in())? {
            true => written.push(path),
            false => there.push(path),
        }
    }
    Ok((written, there))
}

/// Path of `file` in `folder`: `again.md` if it exists and `retry.md` does not.
fn path_of(file: PromptFile, folder: &Path) -> PathBuf {
    let path = folder.join(file.name());
    let former = folder.join(FORMER_RETRY_NAME);
    if file == PromptFile::Retry && !path.exists() && former.exists() { former } else { path }
}

fn names(files: &[PromptFile]) -> String {
    files.iter().map(|file| file.name()).collect::<Vec<_>>().join(", ")
}

/// Normalised text of a file: without a byte order mark, and with `\n` line ends.
fn text(path: &Path) -> Result<Option<String>, String> {
    let wrong = |error: io::Error| format!("{}: cannot be read: {error}", path.display());
    let bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
    if bytes > BYTES_MAX {
        return Err(format!("{}: {bytes} bytes; a prompt has {BYTES_MAX} at most", path.display()));
    }
    let text = files::read_if_exists(path).map_err(wrong)?;
    Ok(text.map(|text| text.trim_start_matches('\u{feff}').replace("\r\n", "\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::prompt::BUILT_IN;

    #[test]
    fn a_file_of_ones_own_takes_the_others_along_with_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("extract.md");
        let text = BUILT_IN.extract.replace("version: 3", "version: 7").replace("months", "years");
        files::create(&path, &text.replace('\n', "\r\n")).unwrap();
        let read_both = || [folder.path(), &path].map(|it| read(it).unwrap().extraction());
        let [by_folder, by_file] = read_both();
        assert_eq!((by_folder.version(), by_folder.digest()), (7, by_file.digest()));
        assert_ne!(*by_folder, Prompts::built_in());
        let (written, there) = write_built_in(folder.path()).unwrap();
        assert_eq!((written.len(), there), (4, vec![path]));
        let error = read(folder.path()).unwrap_err();
        assert!(error.contains("version 3, but the set has version 7"), "{error}");
    }

    #[test]
    fn the_former_name_of_the_retry_prompt_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FORMER_RETRY_NAME);
        let text = format!("{}\nBe kind.\n", PromptFile::Retry.built_in());
        files::create(&path, &text).unwrap();
        let expected =
            CustomPrompts::read(&CustomTexts::from([(PromptFile::Retry, text)])).unwrap();
        assert_eq!(read(folder.path()).as_ref(), Ok(&expected));
        assert_eq!(read(&path), Ok(expected));
        assert_eq!(write_built_in(folder.path()).unwrap().1, [path]);
    }

    #[test]
    fn what_is_written_out_is_what_is_compiled_in() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err().contains("holds none of extract.md"));
        let (written, _) = write_built_in(folder.path()).unwrap();
        assert_eq!(written.len(), PromptFile::ALL.len());
        let (read_back, built_in) = (read(folder.path()).unwrap(), CustomPrompts::default());
        assert_eq!(*read_back.extraction(), Prompts::built_in());
        assert_eq!(read_back.consolidate(), built_in.consolidate());
        assert_eq!(read_back.reflect(), built_in.reflect());
        assert!(read(&folder.path().join("no.md")).unwrap_err().contains("is not there"));
    }

    #[test]
    fn a_folder_may_hold_any_of_the_files_and_each_is_read_alone_too() {
        for file in PromptFile::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(file.name());
            let text = format!("{}\nBe kind.\n", file.built_in());
            files::create(&path, &text.replace('\n', "\r\n")).unwrap();
            let expected = CustomPrompts::read(&CustomTexts::from([(file, text)])).unwrap();
            assert_eq!(read(folder.path()).as_ref(), Ok(&expected));
            assert_eq!(read(&path), Ok(expected));
        }
    }

    #[test]
    fn what_no_slice_is_asked_about_with_is_refused_where_slices_are_meant() {
        let folder = tempfile::tempdir().unwrap();
        for file in PromptFile::ALL {
            let path = folder.path().join("one").join(file.name());
            files::create(&path, file.built_in()).unwrap();
            let read = read_extraction(&path);
            let extracts = PromptFile::EXTRACTION.contains(&file);
            assert_eq!(read.is_ok(), extracts, "{read:?}");
            let Err(error) = read else { continue };
            assert!(error.contains(file.name()) && error.contains("no prompt test"), "{error}");
        }
        assert!(read_extraction(&folder.path().join("one")).is_ok());
        let path = folder.path().join("two/consolidate.md");
        files::create(&path, PromptFile::Consolidate.built_in()).unwrap();
        assert!(read_extraction(path.parent().unwrap()).unwrap_err().contains("no prompt test"));
    }

    #[test]
    fn the_prompt_that_no_command_asks_with_is_refused_alone_and_left_alone_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NEVER_ASKED);
        files::create(&path, "not even a prompt").unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.contains("no command asks a model with summary.md"), "{error}");
        write_built_in(folder.path()).unwrap();
        assert!(read(folder.path()).is_ok());
    }
}
