//! Custom prompts: the files of a prompts folder. The built-in prompt replaces a missing file.

use super::sets::{BUILT_IN, BatchPrompt, CONSOLIDATE, ExtractionTexts, Prompts};
use super::{PromptError, PromptText, with_version};
use crate::adapters::files;
use crate::domain::named;
use crate::text::phrase::commas;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

named! {
    /// A prompt file, by its name in a folder.
    pub PromptFile {
        Extract = "extract.md",
        Slice = "slice.md",
        Retry = "retry.md",
        Consolidate = "consolidate.md",
    }
}

impl PromptFile {
    /// The files of the extraction set, which has one version.
    pub const EXTRACTION: [PromptFile; 3] =
        [PromptFile::Extract, PromptFile::Slice, PromptFile::Retry];

    /// Id in the front matter.
    pub fn id(self) -> &'static str {
        let name = if self == PromptFile::Retry { FORMER_RETRY_NAME } else { self.name() };
        name.trim_end_matches(".md")
    }

    /// Parses a file name; `again.md` is the former name of `retry.md`.
    fn parse(name: &str) -> Option<PromptFile> {
        PromptFile::of_name(if name == FORMER_RETRY_NAME { "retry.md" } else { name })
    }

    /// The built-in text.
    pub fn built_in(self) -> &'static str {
        match self {
            PromptFile::Extract => BUILT_IN.extract,
            PromptFile::Slice => BUILT_IN.slice,
            PromptFile::Retry => BUILT_IN.retry,
            PromptFile::Consolidate => CONSOLIDATE,
        }
    }
}

/// Former name of `retry.md`; users' files may still have it.
pub(crate) const FORMER_RETRY_NAME: &str = "again.md";

/// Custom texts, each of which replaces a built-in one.
pub(crate) type CustomTexts = BTreeMap<PromptFile, String>;

/// Validated custom prompts. The only place that falls back to the built-in ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomPrompts {
    extraction: Option<Arc<Prompts>>,
    consolidate: Option<Arc<BatchPrompt>>,
}

impl CustomPrompts {
    /// Validates `texts`. If a part of the extraction set is custom, the built-in parts take its version.
    ///
    /// Fails with the file and the reason, as [`Prompts::read`] does.
    pub fn read(texts: &CustomTexts) -> Result<CustomPrompts, PromptError> {
        let consolidate = texts.get(&PromptFile::Consolidate);
        Ok(CustomPrompts {
            extraction: extraction_prompts(texts)?.map(Arc::new),
            consolidate: consolidate.map(|text| BatchPrompt::read(text)).transpose()?.map(Arc::new),
        })
    }

    /// Replaces the extraction prompts.
    #[must_use]
    pub fn with_extraction(self, extraction: Arc<Prompts>) -> CustomPrompts {
        CustomPrompts { extraction: Some(extraction), ..self }
    }

    /// Extraction prompts, if one of them is custom.
    pub fn own_extraction(&self) -> Option<Arc<Prompts>> {
        self.extraction.clone()
    }

    /// Extraction prompts.
    pub fn extraction(&self) -> Arc<Prompts> {
        self.extraction.clone().unwrap_or_else(|| Arc::new(Prompts::built_in()))
    }

    /// Prompt that relates records to memories.
    pub fn consolidate(&self) -> Arc<BatchPrompt> {
        self.consolidate.clone().unwrap_or_else(|| Arc::new(BatchPrompt::built_in()))
    }
}

/// Reads the extraction prompts with the custom texts of `own`, if there are any. The built-in ones take over their
/// version, so that a user who changes one file raises the version only there.
fn extraction_prompts(own: &CustomTexts) -> Result<Option<Prompts>, PromptError> {
    let mut customs = PromptFile::EXTRACTION.iter().filter_map(|it| Some((it, own.get(it)?)));
    let Some((first, text)) = customs.next() else { return Ok(None) };
    let version = PromptText::read(first.id(), text)?.version;
    let or_built_in = |file: PromptFile| {
        own.get(&file).cloned().unwrap_or_else(|| with_version(file.built_in(), version))
    };
    Prompts::read(&ExtractionTexts {
        extract: &or_built_in(PromptFile::Extract),
        slice: &or_built_in(PromptFile::Slice),
        retry: &or_built_in(PromptFile::Retry),
    })
    .map(Some)
}

/// Former prompt for lessons, which is not read; users' folders may still have it.
const FORMER_LESSONS_NAME: &str = "reflect.md";
/// Prompts that no command sends to a model.
const NEVER_ASKED: [&str; 2] = ["summary.md", FORMER_LESSONS_NAME];
/// Maximum size of a prompt, in bytes: ten times what models follow well.
const BYTES_MAX: u64 = 1024 * 1024;

/// Reads the prompts at `path`: a folder with some of the files of [`PromptFile`], or one file. A single file of
/// another name is an `extract.md`; a folder may also have a README and files that are no Markdown.
pub(crate) fn read_prompts(path: &Path) -> Result<CustomPrompts, String> {
    let shown = path.display();
    let mut own = CustomTexts::new();
    let all = names(PromptFile::ALL);
    if path.is_dir() {
        if let Some(name) = unknown_file(path) {
            return Err(format!("{shown}: unknown prompt file {name}: expected one of {all}"));
        }
        for &file in PromptFile::ALL {
            own.extend(text_of(&path_of(file, path))?.map(|text| (file, text)));
        }
        if own.is_empty() && !path.join(FORMER_LESSONS_NAME).exists() {
            return Err(format!("{shown}: contains none of {all}"));
        }
    } else {
        let Some(read) = text_of(path)? else {
            return Err(format!(
                "{shown}: does not exist: expected a folder with {all}, or one of these files"
            ));
        };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if NEVER_ASKED.contains(&name) {
            return Err(format!(
                "{shown}: no command asks a model with {name}: expected one of {all}, or a folder of them"
            ));
        }
        own.insert(PromptFile::parse(name).unwrap_or(PromptFile::Extract), read);
    }
    CustomPrompts::read(&own).map_err(|error| {
        let file = PromptFile::ALL.iter().find(|file| path.is_dir() && file.id() == error.file);
        let path = file.map_or(path.to_owned(), |file| path_of(*file, path));
        format!("{}: {error}", path.display())
    })
}

/// Reads the extraction prompts at `path`, as [`read_prompts`] does.
pub(crate) fn read_extraction(path: &Path) -> Result<Arc<Prompts>, String> {
    read_prompts(path)?.own_extraction().ok_or_else(|| {
        let shown = path.display();
        let names = names(&PromptFile::EXTRACTION);
        format!(
            "{shown}: not an extraction prompt, and prompt tests test only extraction; expected one of {names}, \
             or a folder with one"
        )
    })
}

/// Writes the built-in prompts into `folder`; returns the written files, and the existing ones, which stay unchanged.
pub(crate) fn write_built_in(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut written, mut there) = (Vec::new(), Vec::new());
    for &file in PromptFile::ALL {
        let path = path_of(file, folder);
        if files::create(&path, file.built_in())? { written.push(path) } else { there.push(path) }
    }
    Ok((written, there))
}

/// First Markdown file of `folder`, by name, that is neither a prompt nor a README: a misspelt prompt would be ignored.
fn unknown_file(folder: &Path) -> Option<String> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let is_unknown = |name: &String| {
        let lower = name.to_lowercase();
        let is_known = PromptFile::parse(name).is_some() || NEVER_ASKED.contains(&name.as_str());
        lower.ends_with(".md") && lower != "readme.md" && !is_known
    };
    names.filter(is_unknown).min()
}

/// Path of `file` in `folder`: `again.md` if it exists and `retry.md` does not.
fn path_of(file: PromptFile, folder: &Path) -> PathBuf {
    let path = folder.join(file.name());
    let former = folder.join(FORMER_RETRY_NAME);
    if file == PromptFile::Retry && !path.exists() && former.exists() { former } else { path }
}

fn names(files: &[PromptFile]) -> String {
    commas(files.iter().map(|file| file.name()))
}

/// Normalised text of a file: without a byte order mark, and with `\n` line ends.
fn text_of(path: &Path) -> Result<Option<String>, String> {
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

    fn texts(files: &[PromptFile]) -> CustomTexts {
        files.iter().map(|file| (*file, file.built_in().to_owned())).collect()
    }

    #[test]
    fn a_file_has_the_name_of_its_id_but_the_retry_prompt() {
        for &file in PromptFile::ALL {
            let id = if file == PromptFile::Retry { "retry" } else { file.id() };
            assert_eq!(file.name(), format!("{id}.md"));
            assert_eq!(PromptFile::parse(file.name()), Some(file));
            assert!(file.built_in().starts_with(&format!("---\nid: {}\n", file.id())));
        }
        assert_eq!(PromptFile::parse(FORMER_RETRY_NAME), Some(PromptFile::Retry));
        assert_eq!(PromptFile::parse("summary.md"), None, "no command asks with it");
    }

    #[test]
    fn texts_that_are_the_built_in_ones_ask_the_same() {
        let (none, all) = (CustomPrompts::default(), texts(PromptFile::ALL));
        let all = CustomPrompts::read(&all).unwrap();
        assert_eq!(all.extraction(), none.extraction());
        assert_eq!(all.consolidate().line(), none.consolidate().line());
        assert_eq!(CustomPrompts::read(&CustomTexts::new()).unwrap(), none);
    }

    #[test]
    fn a_text_of_ones_own_changes_what_is_asked_with_it_and_nothing_else() {
        let built_in = CustomPrompts::default();
        for &file in PromptFile::ALL {
            let text = format!("{}\nBe kind.\n", file.built_in());
            let own = CustomPrompts::read(&CustomTexts::from([(file, text)])).unwrap();
            let changed = [
                own.extraction() != built_in.extraction(),
                own.consolidate() != built_in.consolidate(),
            ];
            let extracts = PromptFile::EXTRACTION.contains(&file);
            assert_eq!(changed, [extracts, !extracts], "{file:?}");
            assert_eq!(own.own_extraction().is_some(), extracts, "{file:?}");
        }
    }

    #[test]
    fn a_text_that_cannot_be_compiled_is_named() {
        for &file in PromptFile::ALL {
            for text in [format!("{}{{% if %}}", file.built_in()), "no front matter".to_owned()] {
                let error = CustomPrompts::read(&CustomTexts::from([(file, text)])).unwrap_err();
                assert_eq!(error.file, file.id(), "{error}");
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }

    #[test]
    fn other_prompts_of_extraction_leave_the_rest_of_ones_own() {
        let text = format!("{}\nBe kind.\n", PromptFile::Consolidate.built_in());
        let own = CustomTexts::from([(PromptFile::Consolidate, text)]);
        let own = CustomPrompts::read(&own).unwrap();
        let tried = own.clone().with_extraction(own.extraction());
        assert_eq!(tried.consolidate(), own.consolidate());
        assert!(tried.own_extraction().is_some());
    }
}

#[cfg(test)]
mod file_tests {
    use super::*;

    #[test]
    fn a_file_of_ones_own_takes_the_others_along_with_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("extract.md");
        let text =
            BUILT_IN.extract.replace("version: 11", "version: 12").replace("months", "years");
        files::create(&path, &text.replace('\n', "\r\n")).unwrap();
        let read_both = || [folder.path(), &path].map(|it| read_prompts(it).unwrap().extraction());
        let [by_folder, by_file] = read_both();
        assert_eq!((by_folder.version(), by_folder.digest()), (12, by_file.digest()));
        assert_ne!(*by_folder, Prompts::built_in());
        let (written, there) = write_built_in(folder.path()).unwrap();
        assert_eq!((written.len(), there), (3, vec![path]));
        let error = read_prompts(folder.path()).unwrap_err();
        assert!(error.contains("version 11, but the set has version 12"), "{error}");
    }

    #[test]
    fn a_template_that_cannot_be_compiled_is_named_by_its_file_and_line() {
        for &file in PromptFile::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(file.name());
            files::create(&path, &format!("{}\n{{% if %}}\n", file.built_in())).unwrap();
            let line = file.built_in().lines().count() + 2;
            for read in [folder.path(), &path].map(read_prompts) {
                let error = read.unwrap_err();
                assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
                assert!(error.contains(&format!(": line {line}: syntax error: ")), "{error}");
            }
        }
    }

    #[test]
    fn a_misnamed_prompt_is_refused_and_a_readme_is_not() {
        for (name, is_refused) in [("Summarise.md", true), ("README.md", false), ("a.txt", false)] {
            let folder = tempfile::tempdir().unwrap();
            write_built_in(folder.path()).unwrap();
            files::create(&folder.path().join(name), "about these prompts").unwrap();
            let read = read_prompts(folder.path());
            assert_eq!(read.is_err(), is_refused, "{read:?}");
            let Err(error) = read else { continue };
            assert!(error.contains("unknown prompt file Summarise.md: expected one of"), "{error}");
        }
    }

    #[test]
    fn the_former_name_of_the_retry_prompt_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FORMER_RETRY_NAME);
        let text = format!("{}\nBe kind.\n", PromptFile::Retry.built_in());
        files::create(&path, &text).unwrap();
        let expected =
            CustomPrompts::read(&CustomTexts::from([(PromptFile::Retry, text)])).unwrap();
        assert_eq!(read_prompts(folder.path()).as_ref(), Ok(&expected));
        assert_eq!(read_prompts(&path), Ok(expected));
        assert_eq!(write_built_in(folder.path()).unwrap().1, [path]);
    }

    #[test]
    fn what_is_written_out_is_what_is_compiled_in() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_prompts(folder.path()).unwrap_err().contains("contains none of extract.md"));
        let (written, _) = write_built_in(folder.path()).unwrap();
        assert_eq!(written.len(), PromptFile::ALL.len());
        let (read_back, built_in) =
            (read_prompts(folder.path()).unwrap(), CustomPrompts::default());
        assert_eq!(*read_back.extraction(), Prompts::built_in());
        assert_eq!(read_back.consolidate(), built_in.consolidate());
        assert!(read_prompts(&folder.path().join("no.md")).unwrap_err().contains("does not exist"));
    }

    #[test]
    fn a_folder_may_hold_any_of_the_files_and_each_is_read_alone_too() {
        for &file in PromptFile::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(file.name());
            let text = format!("{}\nBe kind.\n", file.built_in());
            files::create(&path, &text.replace('\n', "\r\n")).unwrap();
            let expected = CustomPrompts::read(&CustomTexts::from([(file, text)])).unwrap();
            assert_eq!(read_prompts(folder.path()).as_ref(), Ok(&expected));
            assert_eq!(read_prompts(&path), Ok(expected));
        }
    }

    #[test]
    fn what_no_slice_is_asked_about_with_is_refused_where_slices_are_meant() {
        let folder = tempfile::tempdir().unwrap();
        for &file in PromptFile::ALL {
            let path = folder.path().join("one").join(file.name());
            files::create(&path, file.built_in()).unwrap();
            let read = read_extraction(&path);
            let extracts = PromptFile::EXTRACTION.contains(&file);
            assert_eq!(read.is_ok(), extracts, "{read:?}");
            let Err(error) = read else { continue };
            assert!(
                error.contains(file.name()) && error.contains("not an extraction prompt"),
                "{error}"
            );
        }
        assert!(read_extraction(&folder.path().join("one")).is_ok());
        let path = folder.path().join("two/consolidate.md");
        files::create(&path, PromptFile::Consolidate.built_in()).unwrap();
        assert!(read_extraction(path.parent().unwrap()).unwrap_err().contains("not an extraction"));
    }

    #[test]
    fn a_prompt_that_no_command_asks_with_is_refused_alone_and_left_alone_in_a_folder() {
        for name in NEVER_ASKED {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            files::create(&path, "not even a prompt").unwrap();
            let error = read_prompts(&path).unwrap_err();
            assert!(
                error.contains(&format!("no command asks a model with {name}: expected one of")),
                "{error}"
            );
            write_built_in(folder.path()).unwrap();
            assert!(read_prompts(folder.path()).is_ok());
            assert_eq!(files::read_to_string(&path).unwrap(), "not even a prompt");
        }
    }

    #[test]
    fn a_folder_with_nothing_but_the_former_prompt_for_lessons_asks_with_the_built_in_ones() {
        let folder = tempfile::tempdir().unwrap();
        files::create(&folder.path().join(FORMER_LESSONS_NAME), "---\nid: reflect\n---\n").unwrap();
        assert_eq!(read_prompts(folder.path()), Ok(CustomPrompts::default()));
    }
}
