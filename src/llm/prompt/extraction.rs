//! Extraction prompts: the rules, the frame around a slice, and the retry message.

use super::template::{Form, FormTemplates, Input, PromptError, PromptText, Template, fence_token};
use crate::domain::{Digest, named};
use crate::privacy::{Redacted, Woven};

/// The three texts of the extraction prompt set, each with its front matter.
#[derive(Clone, Copy, Debug)]
pub struct ExtractionTexts<'a> {
    /// System message with the rules. Inputs `language`, `tool`, `schema`.
    pub extract: &'a str,
    /// User message: frame around a slice. Inputs `context`, `fence`, `transcript`.
    pub slice: &'a str,
    /// Retry message after an unusable reply. Inputs `reason`, `tool`, `kept`, `problems`.
    pub retry: &'a str,
}

pub(crate) const BUILT_IN: ExtractionTexts<'static> = ExtractionTexts {
    extract: include_str!("../../../prompts/extract.md"),
    slice: include_str!("../../../prompts/slice.md"),
    retry: include_str!("../../../prompts/retry.md"),
};

named! {
    /// Reason for a retry.
    pub RetryReason {
        /// Some claims violate the schema; the others are kept.
        Broken = "broken",
        /// The reply was truncated.
        Cut = "cut",
        /// The reply did not contain the requested object.
        Shapeless = "shapeless",
        /// The reply was empty.
        Silent = "silent",
    }
}

/// Problems of a reply, without conversation text.
#[derive(Clone, Copy, Debug)]
pub struct Complaint<'a> {
    /// Reason.
    pub reason: RetryReason,
    /// Output form of the next reply.
    pub form: Form,
    /// Number of valid claims.
    pub kept: usize,
    /// One line each: a path and what was expected there.
    pub problems: &'a [String],
}

/// The validated set of extraction prompts.
#[derive(Debug)]
pub struct Prompts {
    id: String,
    version: u32,
    digest: Digest,
    lines: Vec<String>,
    rules: FormTemplates,
    slice: Template,
    slice_with_context: Template,
    again: Vec<(RetryReason, FormTemplates)>,
}

impl Prompts {
    /// The built-in set.
    #[expect(
        clippy::expect_used,
        reason = "the texts are part of the binary, and a test reads them"
    )]
    pub fn built_in() -> Prompts {
        Prompts::read(&BUILT_IN).expect("the prompts that are compiled in are in order")
    }

    /// Parses and validates a set: the front matter, the inputs, and that every case renders.
    ///
    /// Fails with the file and the reason if an input is undeclared, unused or unknown, a template is invalid,
    /// or the three versions differ: a set has one version, which is part of a run's id.
    pub fn read(texts: &ExtractionTexts<'_>) -> Result<Prompts, PromptError> {
        let extract = PromptText::read("extract", texts.extract)?;
        let slice = PromptText::read("slice", texts.slice)?;
        let again = PromptText::read("again", texts.retry)?;
        for other in [&slice, &again] {
            if other.version != extract.version {
                let (is, of) = (other.version, extract.version);
                let detail = format!("version {is}, but the set has version {of}; raise both");
                return Err(PromptError::new(other.id, detail));
            }
        }
        let complaint = |reason: RetryReason| {
            let setting = ("reason", reason.name().into());
            let inputs = [Input::Kept, Input::Problems];
            Ok((reason, FormTemplates::compile(&again, &[setting], &inputs)?))
        };
        let alone = [Input::Fence, Input::Transcript];
        let with = [Input::Fence, Input::Transcript, Input::Context];
        let none = ("context", false.into());
        Ok(Prompts {
            id: extract.id.to_owned(),
            version: extract.version,
            digest: Digest::of(&[texts.extract, texts.slice, texts.retry]),
            lines: [&extract, &slice, &again].map(PromptText::line).to_vec(),
            slice: Template::compile(&slice, &[none], &alone)?,
            slice_with_context: Template::compile(&slice, &[], &with)?,
            rules: FormTemplates::compile(&extract, &[], &[Input::Language, Input::Schema])?,
            again: RetryReason::ALL.iter().copied().map(complaint).collect::<Result<_, _>>()?,
        })
    }

    /// The id of the set.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Version of the set; part of a run's id, so that a new version runs again.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The digest of the three texts.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// `id version digest` of each file.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// System message: the same for every slice, so that the provider's cache hits.
    pub fn rules(&self, language: &str, form: Form, schema: &str) -> Redacted {
        self.rules.rules(language, form, schema)
    }

    /// User message: the slice and the context before it, in a fence that neither can close.
    pub fn slice(&self, transcript: &Redacted, context: Option<&Redacted>) -> Redacted {
        let context = context.filter(|context| !context.as_str().trim().is_empty());
        let before = context.map_or("", Redacted::as_str);
        let fence = fence_token(transcript.as_str(), before);
        let mut fill = vec![
            (Input::Fence, Woven::Label(&fence)),
            (Input::Transcript, Woven::Passed(transcript)),
        ];
        match context {
            None => self.slice.fill(&fill),
            Some(context) => {
                fill.push((Input::Context, Woven::Passed(context)));
                self.slice_with_context.fill(&fill)
            }
        }
    }

    /// User message of a retry.
    pub fn again(&self, complaint: &Complaint<'_>) -> Redacted {
        let Complaint { reason, form, kept, problems } = *complaint;
        // Every reason was compiled by `Prompts::read`.
        let templates = self.again.iter().find(|(known, _)| *known == reason);
        templates.map(|(_, it)| it.again(form, kept, problems)).unwrap_or_default()
    }
}

// Compares digests: the same texts are the same set.
impl PartialEq for Prompts {
    fn eq(&self, other: &Prompts) -> bool {
        self.digest == other.digest
    }
}
