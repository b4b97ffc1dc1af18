//! Prompts of one's own: which files there are, and what is asked with where one of them is missing.

use super::{BUILT_IN, BatchPrompt, PromptError, Prompts, batch};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A file that a model is asked with.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PromptFile {
    /// The rules of extraction.
    Extract,
    /// The frame around a slice.
    Slice,
    /// What is said when an extraction cannot be used.
    Again,
    /// How records stand to memories.
    Consolidate,
    /// What records show about how the work went.
    Reflect,
}

impl PromptFile {
    /// All of them.
    pub const ALL: [PromptFile; 5] = [
        PromptFile::Extract,
        PromptFile::Slice,
        PromptFile::Again,
        PromptFile::Consolidate,
        PromptFile::Reflect,
    ];
    /// Those that slices are asked about with: one set, with one version.
    pub const EXTRACTION: [PromptFile; 3] =
        [PromptFile::Extract, PromptFile::Slice, PromptFile::Again];

    /// What its front matter calls it.
    pub fn id(self) -> &'static str {
        match self {
            PromptFile::Extract => "extract",
            PromptFile::Slice => "slice",
            PromptFile::Again => "again",
            PromptFile::Consolidate => "consolidate",
            PromptFile::Reflect => "reflect",
        }
    }

    /// What it is called in a folder.
    pub fn name(self) -> &'static str {
        match self {
            PromptFile::Extract => "extract.md",
            PromptFile::Slice => "slice.md",
            PromptFile::Again => "again.md",
            PromptFile::Consolidate => "consolidate.md",
            PromptFile::Reflect => "reflect.md",
        }
    }

    /// The file that is called so in a folder.
    pub fn of_name(name: &str) -> Option<PromptFile> {
        PromptFile::ALL.into_iter().find(|file| file.name() == name)
    }

    /// The text that is compiled in.
    pub fn built_in(self) -> &'static str {
        match self {
            PromptFile::Extract => BUILT_IN.extract,
            PromptFile::Slice => BUILT_IN.slice,
            PromptFile::Again => BUILT_IN.again,
            PromptFile::Consolidate => batch::CONSOLIDATE,
            PromptFile::Reflect => batch::REFLECT,
        }
    }
}

/// Texts of one's own, each in the place of the one that is compiled in.
pub type OwnTexts = BTreeMap<PromptFile, String>;

/// Prompts of one's own, checked. What is not among them is asked with as it is compiled in; this is decided here and
/// nowhere else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnPrompts {
    extraction: Option<Arc<Prompts>>,
    consolidate: Option<Arc<BatchPrompt>>,
    reflect: Option<Arc<BatchPrompt>>,
}

impl OwnPrompts {
    /// Checks `texts`. A set of extraction of which some are one's own takes the others along, as
    /// [`Prompts::with_own`] does.
    ///
    /// Fails with the file and the reason, as [`Prompts::read`] does.
    pub fn read(texts: &OwnTexts) -> Result<OwnPrompts, PromptError> {
        let extracts = PromptFile::EXTRACTION.iter().any(|file| texts.contains_key(file));
        let extraction = extracts.then(|| Prompts::with_own(texts)).transpose()?;
        let batch = |file: PromptFile| {
            let text = texts.get(&file);
            text.map(|text| BatchPrompt::read(file.id(), text).map(Arc::new)).transpose()
        };
        Ok(OwnPrompts {
            extraction: extraction.map(Arc::new),
            consolidate: batch(PromptFile::Consolidate)?,
            reflect: batch(PromptFile::Reflect)?,
        })
    }

    /// The same, but slices are asked about with `extraction`.
    #[must_use]
    pub fn with_extraction(self, extraction: Arc<Prompts>) -> OwnPrompts {
        OwnPrompts { extraction: Some(extraction), ..self }
    }

    /// Those of extraction, where one of them is one's own.
    pub fn own_extraction(&self) -> Option<Arc<Prompts>> {
        self.extraction.clone()
    }

    /// What slices are asked about with.
    pub fn extraction(&self) -> Arc<Prompts> {
        self.extraction.clone().unwrap_or_else(|| Arc::new(Prompts::built_in()))
    }

    /// What asks how records stand to memories.
    pub fn consolidate(&self) -> Arc<BatchPrompt> {
        self.consolidate.clone().unwrap_or_else(|| Arc::new(BatchPrompt::to_consolidate()))
    }

    /// What asks what records show about how the work went.
    pub fn reflect(&self) -> Arc<BatchPrompt> {
        self.reflect.clone().unwrap_or_else(|| Arc::new(BatchPrompt::to_reflect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[PromptFile]) -> OwnTexts {
        files.iter().map(|file| (*file, file.built_in().to_owned())).collect()
    }

    #[test]
    fn a_file_is_called_as_its_front_matter_says() {
        for file in PromptFile::ALL {
            assert_eq!(file.name(), format!("{}.md", file.id()));
            assert_eq!(PromptFile::of_name(file.name()), Some(file));
            assert!(file.built_in().starts_with(&format!("---\nid: {}\n", file.id())));
        }
        assert_eq!(PromptFile::of_name("summary.md"), None, "no command asks with it");
    }

    #[test]
    fn texts_that_are_the_built_in_ones_ask_the_same() {
        let (none, all) = (OwnPrompts::default(), texts(&PromptFile::ALL));
        let all = OwnPrompts::read(&all).unwrap();
        assert_eq!(all.extraction(), none.extraction());
        assert_eq!(all.consolidate().line(), none.consolidate().line());
        assert_eq!(all.reflect().line(), none.reflect().line());
        assert_eq!(OwnPrompts::read(&OwnTexts::new()).unwrap(), none);
    }

    #[test]
    fn a_text_of_ones_own_changes_what_is_asked_with_it_and_nothing_else() {
        let built_in = OwnPrompts::default();
        for file in PromptFile::ALL {
            let text = format!("{}\nBe kind.\n", file.built_in());
            let own = OwnPrompts::read(&OwnTexts::from([(file, text)])).unwrap();
            let changed = [
                own.extraction() != built_in.extraction(),
                own.consolidate() != built_in.consolidate(),
                own.reflect() != built_in.reflect(),
            ];
            let extracts = PromptFile::EXTRACTION.contains(&file);
            let (judges, reflects) = (file == PromptFile::Consolidate, file == PromptFile::Reflect);
            assert_eq!(changed, [extracts, judges, reflects], "{file:?}");
            assert_eq!(own.own_extraction().is_some(), extracts, "{file:?}");
        }
    }

    #[test]
    fn a_text_that_cannot_be_compiled_is_named() {
        for file in PromptFile::ALL {
            for text in [format!("{}{{% if %}}", file.built_in()), "no front matter".to_owned()] {
                let error = OwnPrompts::read(&OwnTexts::from([(file, text)])).unwrap_err();
                assert_eq!(error.file, file.id(), "{error}");
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }

    #[test]
    fn other_prompts_of_extraction_leave_the_rest_of_ones_own() {
        let text = format!("{}\nBe kind.\n", PromptFile::Reflect.built_in());
        let own = OwnPrompts::read(&OwnTexts::from([(PromptFile::Reflect, text)])).unwrap();
        let tried = own.clone().with_extraction(own.extraction());
        assert_eq!(tried.reflect(), own.reflect());
        assert!(tried.own_extraction().is_some());
    }
}
