//! Custom prompts: the files of a prompts folder. The built-in prompt replaces a missing file.

use super::batch::{self, BatchPrompt};
use super::extraction::{BUILT_IN, ExtractionTexts, Prompts};
use super::template::{PromptError, PromptText, with_version};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A prompt file.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PromptFile {
    /// Extraction rules.
    Extract,
    /// Frame around a slice.
    Slice,
    /// Retry message after an unusable extraction.
    Retry,
    /// Relates records to memories.
    Consolidate,
    /// Derives lessons about the work from records.
    Reflect,
}

impl PromptFile {
    /// All prompt files.
    pub const ALL: [PromptFile; 5] = [
        PromptFile::Extract,
        PromptFile::Slice,
        PromptFile::Retry,
        PromptFile::Consolidate,
        PromptFile::Reflect,
    ];
    /// The files of the extraction set, which has one version.
    pub const EXTRACTION: [PromptFile; 3] =
        [PromptFile::Extract, PromptFile::Slice, PromptFile::Retry];

    /// Id in the front matter.
    pub fn id(self) -> &'static str {
        let name = if self == PromptFile::Retry { FORMER_RETRY_NAME } else { self.name() };
        name.trim_end_matches(".md")
    }

    /// File name in a folder.
    pub fn name(self) -> &'static str {
        match self {
            PromptFile::Extract => "extract.md",
            PromptFile::Slice => "slice.md",
            PromptFile::Retry => "retry.md",
            PromptFile::Consolidate => "consolidate.md",
            PromptFile::Reflect => "reflect.md",
        }
    }

    /// Parses a file name; `again.md` is the former name of `retry.md`.
    pub fn of_name(name: &str) -> Option<PromptFile> {
        let name = if name == FORMER_RETRY_NAME { "retry.md" } else { name };
        PromptFile::ALL.into_iter().find(|file| file.name() == name)
    }

    /// The built-in text.
    pub fn built_in(self) -> &'static str {
        match self {
            PromptFile::Extract => BUILT_IN.extract,
            PromptFile::Slice => BUILT_IN.slice,
            PromptFile::Retry => BUILT_IN.retry,
            PromptFile::Consolidate => batch::CONSOLIDATE,
            PromptFile::Reflect => batch::REFLECT,
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
    reflect: Option<Arc<BatchPrompt>>,
}

impl CustomPrompts {
    /// Validates `texts`. If a part of the extraction set is custom, the built-in parts take its version.
    ///
    /// Fails with the file and the reason, as [`Prompts::read`] does.
    pub fn read(texts: &CustomTexts) -> Result<CustomPrompts, PromptError> {
        let extracts = PromptFile::EXTRACTION.iter().any(|file| texts.contains_key(file));
        let extraction = extracts.then(|| extraction_prompts(texts)).transpose()?;
        let batch = |file: PromptFile| {
            let text = texts.get(&file);
            text.map(|text| BatchPrompt::read(file.id(), text).map(Arc::new)).transpose()
        };
        Ok(CustomPrompts {
            extraction: extraction.map(Arc::new),
            consolidate: batch(PromptFile::Consolidate)?,
            reflect: batch(PromptFile::Reflect)?,
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
        self.consolidate.clone().unwrap_or_else(|| Arc::new(BatchPrompt::to_consolidate()))
    }

    /// Prompt for lessons.
    pub fn reflect(&self) -> Arc<BatchPrompt> {
        self.reflect.clone().unwrap_or_else(|| Arc::new(BatchPrompt::to_reflect()))
    }
}

/// Reads the extraction prompts with the custom texts of `own`. The built-in ones take over their version, so that
/// a user who changes one file raises the version only there.
fn extraction_prompts(own: &CustomTexts) -> Result<Prompts, PromptError> {
    let mut version = None;
    for file in PromptFile::EXTRACTION {
        if let (Some(text), None) = (own.get(&file), version) {
            version = Some(PromptText::read(file.id(), text)?.version);
        }
    }
    let or_built_in = |file: PromptFile| match (own.get(&file), version) {
        (Some(text), _) => text.clone(),
        (None, Some(version)) => with_version(file.built_in(), version),
        (None, None) => file.built_in().to_owned(),
    };
    Prompts::read(&ExtractionTexts {
        extract: &or_built_in(PromptFile::Extract),
        slice: &or_built_in(PromptFile::Slice),
        retry: &or_built_in(PromptFile::Retry),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[PromptFile]) -> CustomTexts {
        files.iter().map(|file| (*file, file.built_in().to_owned())).collect()
    }

    #[test]
    fn a_file_has_the_name_of_its_id_but_the_retry_prompt() {
        for file in PromptFile::ALL {
            let id = if file == PromptFile::Retry { "retry" } else { file.id() };
            assert_eq!(file.name(), format!("{id}.md"));
            assert_eq!(PromptFile::of_name(file.name()), Some(file));
            assert!(file.built_in().starts_with(&format!("---\nid: {}\n", file.id())));
        }
        assert_eq!(PromptFile::of_name(FORMER_RETRY_NAME), Some(PromptFile::Retry));
        assert_eq!(PromptFile::of_name("summary.md"), None, "no command asks with it");
    }

    #[test]
    fn texts_that_are_the_built_in_ones_ask_the_same() {
        let (none, all) = (CustomPrompts::default(), texts(&PromptFile::ALL));
        let all = CustomPrompts::read(&all).unwrap();
        assert_eq!(all.extraction(), none.extraction());
        assert_eq!(all.consolidate().line(), none.consolidate().line());
        assert_eq!(all.reflect().line(), none.reflect().line());
        assert_eq!(CustomPrompts::read(&CustomTexts::new()).unwrap(), none);
    }

    #[test]
    fn a_text_of_ones_own_changes_what_is_asked_with_it_and_nothing_else() {
        let built_in = CustomPrompts::default();
        for file in PromptFile::ALL {
            let text = format!("{}\nBe kind.\n", file.built_in());
            let own = CustomPrompts::read(&CustomTexts::from([(file, text)])).unwrap();
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
                let error = CustomPrompts::read(&CustomTexts::from([(file, text)])).unwrap_err();
                assert_eq!(error.file, file.id(), "{error}");
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }

    #[test]
    fn other_prompts_of_extraction_leave_the_rest_of_ones_own() {
        let text = format!("{}\nBe kind.\n", PromptFile::Reflect.built_in());
        let own = CustomPrompts::read(&CustomTexts::from([(PromptFile::Reflect, text)])).unwrap();
        let tried = own.clone().with_extraction(own.extraction());
        assert_eq!(tried.reflect(), own.reflect());
        assert!(tried.own_extraction().is_some());
    }
}
