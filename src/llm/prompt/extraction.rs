//! The prompts of extraction: rules, the frame around a slice, and the message that asks again.

use super::template::{
    Form, FormTemplates, Input, PromptError, PromptText, Setting, Template, fence_token,
};
use crate::domain::Digest;
use crate::privacy::{Redacted, Woven};

/// The three texts that make the set of prompts for extraction, each with its front matter.
#[derive(Clone, Copy, Debug)]
pub struct ExtractionTexts<'a> {
    /// The rules: the system message. Inputs `language`, `tool`, `schema`.
    pub extract: &'a str,
    /// The frame around a slice: the user message. Inputs `context`, `fence`, `transcript`.
    pub slice: &'a str,
    /// The message after an answer that cannot be used. Inputs `reason`, `tool`, `kept`, `problems`.
    pub retry: &'a str,
}

/// The texts that are compiled in.
pub(crate) const BUILT_IN: ExtractionTexts<'static> = ExtractionTexts {
    extract: include_str!("../../../prompts/extract.md"),
    slice: include_str!("../../../prompts/slice.md"),
    retry: include_str!("../../../prompts/retry.md"),
};

/// Reason for asking again.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum RetryReason {
    /// Some claims do not fit the schema; the others are kept.
    Broken,
    /// The answer broke off.
    Cut,
    /// There was an answer, but not the object that was asked for.
    Shapeless,
    /// There was no answer.
    Silent,
}

impl RetryReason {
    pub(super) const ALL: [RetryReason; 4] =
        [RetryReason::Broken, RetryReason::Cut, RetryReason::Shapeless, RetryReason::Silent];

    fn name(self) -> &'static str {
        match self {
            RetryReason::Broken => "broken",
            RetryReason::Cut => "cut",
            RetryReason::Shapeless => "shapeless",
            RetryReason::Silent => "silent",
        }
    }
}

/// Problems of an answer, without words of the conversation.
#[derive(Clone, Copy, Debug)]
pub struct Complaint<'a> {
    /// Reason.
    pub reason: RetryReason,
    /// Form of the next answer.
    pub form: Form,
    /// Number of good claims.
    pub kept: usize,
    /// One line each: a path and what was expected there.
    pub problems: &'a [String],
}

/// The checked set of prompts for extraction, ready to be filled.
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
    /// The set that is compiled in.
    #[expect(
        clippy::expect_used,
        reason = "the texts are part of the binary, and a test reads them"
    )]
    pub fn built_in() -> Prompts {
        Prompts::read(&BUILT_IN).expect("the prompts that are compiled in are in order")
    }

    /// Reads and checks a set: the front matter, the inputs, and that every case can be rendered.
    ///
    /// Fails with the file and the reason if an input is undeclared, unused or unknown, a template
    /// cannot be parsed, or the three versions differ: a set has one version, part of a run's id.
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
            let reason_name = Setting::named("reason", reason.name());
            let inputs = [Input::Kept, Input::Problems];
            Ok((reason, FormTemplates::compile(&again, &[reason_name], &inputs)?))
        };
        let alone = [Input::Fence, Input::Transcript];
        let with = [Input::Fence, Input::Transcript, Input::Context];
        let none = Setting::yes_or_no("context", false);
        Ok(Prompts {
            id: extract.id.to_owned(),
            version: extract.version,
            digest: Digest::of(&[texts.extract, texts.slice, texts.retry]),
            lines: [&extract, &slice, &again].map(PromptText::line).to_vec(),
            slice: Template::compile(&slice, &[none], &alone)?,
            slice_with_context: Template::compile(&slice, &[], &with)?,
            rules: FormTemplates::compile(&extract, &[], &[Input::Language, Input::Schema])?,
            again: RetryReason::ALL.into_iter().map(complaint).collect::<Result<_, _>>()?,
        })
    }

    /// The id of the set.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The version of the set; part of a run's id, so that a new version is asked afresh.
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

    /// The system message: the same for every slice, so that a provider's cache hits.
    pub fn rules(&self, language: &str, form: Form, schema: &str) -> Redacted {
        self.rules.rules(language, form, schema)
    }

    /// The user message: the slice, and what went before it, in a fence that neither can close.
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

    /// The user message that asks again.
    pub fn again(&self, complaint: &Complaint<'_>) -> Redacted {
        let Complaint { reason, form, kept, problems } = *complaint;
        // Every reason was compiled by `Prompts::read`.
        let templates = self.again.iter().find(|(known, _)| *known == reason);
        templates.map(|(_, it)| it.again(form, kept, problems)).unwrap_or_default()
    }
}

/// The same texts are the same set.
impl PartialEq for Prompts {
    fn eq(&self, other: &Prompts) -> bool {
        self.digest == other.digest
    }
}
