//! Prompts: files in `prompts/`, compiled in, validated and parsed once. A rendered prompt consists
//! of our own words and redacted text; no input is ever parsed as a template.

mod custom;
mod sets;
#[cfg(test)]
mod tests;

use crate::domain::{Digest, named};
use crate::privacy::{Redacted, Woven};
use crate::text::front_matter;
pub(crate) use custom::{CustomPrompts, read_extraction, read_prompts, write_built_in};
use memchr::memmem;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};
#[cfg(test)]
pub(crate) use sets::BUILT_IN;
pub use sets::Prompts;
pub(crate) use sets::{BatchPrompt, Complaint, RetryReason, SummaryPrompt};
use std::collections::{BTreeMap, BTreeSet};

/// Delimits an input's name while a template is rendered; templates must not contain it.
const MARK: char = '\u{1}';
/// Hex digits of a fence token: short enough to be cheap, long enough not to occur by chance.
const TOKEN_DIGITS: usize = 12;
/// Maximum number of tokens that are tried; a random text needs the second with probability 2^-48.
const TOKENS_MAX: u32 = 64;

/// Output form of a reply.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Form {
    Tool,
    Json,
}

/// An invalid prompt file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("prompt `{file}`: {detail}")]
pub struct PromptError {
    pub file: &'static str,
    pub detail: String,
}

impl PromptError {
    fn new(file: &'static str, detail: impl Into<String>) -> PromptError {
        PromptError { file, detail: detail.into() }
    }
}

struct PromptText<'a> {
    id: &'static str,
    version: u32,
    inputs: BTreeSet<&'a str>,
    template: &'a str,
    /// Lines of the file before the template.
    lines_before: usize,
    digest: Digest,
}

impl<'a> PromptText<'a> {
    /// Parses `text`; its front matter must name `id`.
    fn read(id: &'static str, text: &'a str) -> Result<PromptText<'a>, PromptError> {
        let wrong = |detail: String| PromptError::new(id, detail);
        let (front, template) = front_matter::split(text)
            .ok_or_else(|| wrong("expected front matter between two `---` lines".to_owned()))?;
        let (mut named, mut version, mut inputs) = (None, None, None);
        for pair in front_matter::pairs(front) {
            match pair {
                ("id", value) => named = Some(value),
                ("version", value) => version = value.parse::<u32>().ok(),
                ("inputs", value) => inputs = front_matter::list(value).map(Iterator::collect),
                (key, _) => {
                    return Err(wrong(format!("unknown key `{key}`; id, version or inputs")));
                }
            }
        }
        if named != Some(id) {
            return Err(wrong(format!("expected `id: {id}`")));
        }
        if template.contains(|c: char| c.is_control() && c != '\n') {
            return Err(wrong("control characters in the template".to_owned()));
        }
        Ok(PromptText {
            id,
            version: version.ok_or_else(|| wrong("expected `version: N`".to_owned()))?,
            inputs: inputs.ok_or_else(|| wrong("expected `inputs: [a, b]`".to_owned()))?,
            template,
            lines_before: front.matches('\n').count() + 3,
            digest: Digest::of(&[text]),
        })
    }

    /// `id version digest`.
    fn line(&self) -> String {
        format!("{} {} {}", self.id, self.version, self.digest)
    }
}

/// Replaces the version in the front matter of a built-in file.
fn with_version(text: &str, version: u32) -> String {
    let Some((front, template)) = text.split_once("\n---\n") else { return text.to_owned() };
    let line = |line: &str| match line.starts_with("version:") {
        true => format!("version: {version}"),
        false => line.to_owned(),
    };
    let front: Vec<String> = front.split('\n').map(line).collect();
    format!("{}\n---\n{template}", front.join("\n"))
}

named! {
    /// Placeholder that is filled in later.
    Input {
        Language = "language",
        Schema = "schema",
        Context = "context",
        Fence = "fence",
        Transcript = "transcript",
        Kept = "kept",
        Problems = "problems",
        Existing = "existing",
        Messages = "messages",
        Batch = "batch",
    }
}

/// Name and value that select a branch of a template.
type Setting = (&'static str, Value);

#[derive(Debug, PartialEq)]
struct FormTemplates {
    tool: Template,
    json: Template,
}

impl FormTemplates {
    fn compile(
        file: &PromptText<'_>,
        settings: &[Setting],
        inputs: &[Input],
    ) -> Result<FormTemplates, PromptError> {
        let compile = |tool: bool| {
            let settings = [&[("tool", tool.into())], settings].concat();
            Template::compile(file, &settings, inputs)
        };
        Ok(FormTemplates { tool: compile(true)?, json: compile(false)? })
    }

    fn fill(&self, form: Form, fill: &[(Input, Woven<'_>)]) -> Redacted {
        match form {
            Form::Tool => self.tool.fill(fill),
            Form::Json => self.json.fill(fill),
        }
    }

    fn rules(&self, language: &str, form: Form, schema: &str) -> Redacted {
        let (language, schema) = (Woven::Label(language), Woven::Label(schema));
        self.fill(form, &[(Input::Language, language), (Input::Schema, schema)])
    }

    fn again(&self, form: Form, kept: usize, problems: &[String]) -> Redacted {
        let kept = kept.to_string();
        let list: String = problems.iter().map(|problem| format!("- {problem}\n")).collect();
        let (kept, list) = (Woven::Label(&kept), Woven::Label(&list));
        self.fill(form, &[(Input::Kept, kept), (Input::Problems, list)])
    }
}

#[derive(Debug, PartialEq)]
enum TemplatePiece {
    Words(String),
    Gap(Input),
}

#[derive(Debug, PartialEq)]
struct Template(Vec<TemplatePiece>);

impl Template {
    /// Renders `file` with `settings`, leaving a placeholder for each of `inputs`.
    fn compile(
        file: &PromptText<'_>,
        settings: &[Setting],
        inputs: &[Input],
    ) -> Result<Template, PromptError> {
        let wrong = |error: minijinja::Error| {
            let line = error.line().map(|line| format!("line {}: ", file.lines_before + line));
            let detail = error.detail().map(|detail| format!(": {detail}"));
            let [line, detail] = [line, detail].map(Option::unwrap_or_default);
            PromptError::new(file.id, format!("{line}{}{detail}", error.kind()))
        };
        let mut engine = Environment::empty();
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        engine.set_syntax(syntax.build().map_err(wrong)?);
        let template = engine.template_from_str(file.template).map_err(wrong)?;
        let used = template.undeclared_variables(true);
        let used: BTreeSet<&str> = used.iter().map(String::as_str).collect();
        if let Some(name) = used.symmetric_difference(&file.inputs).next() {
            let what = if used.contains(name) { "not declared" } else { "not used" };
            return Err(PromptError::new(file.id, format!("input `{name}` is {what}")));
        }
        let mut values: BTreeMap<&str, Value> = BTreeMap::new();
        for input in inputs {
            values.insert(input.name(), Value::from(format!("{MARK}{}{MARK}", input.name())));
        }
        values.extend(settings.iter().cloned());
        let rendered = template.render(values).map_err(wrong)?;
        Ok(Template::split(rendered.trim()))
    }

    /// Splits at the marks. They come in pairs, so every second piece is an input's name.
    fn split(rendered: &str) -> Template {
        let pieces = rendered.split(MARK).enumerate().filter_map(|(n, piece)| match n % 2 {
            0 => (!piece.is_empty()).then(|| TemplatePiece::Words(piece.to_owned())),
            _ => Input::of_name(piece).map(TemplatePiece::Gap),
        });
        Template(pieces.collect())
    }

    /// Fills the placeholders; one that is not in `fill` becomes empty.
    fn fill(&self, fill: &[(Input, Woven<'_>)]) -> Redacted {
        let given = |wanted: Input| fill.iter().find(|(input, _)| *input == wanted);
        let pieces = self.0.iter().map(|piece| match piece {
            TemplatePiece::Words(words) => Woven::Label(words),
            TemplatePiece::Gap(input) => given(*input).map_or(Woven::Ours(""), |(_, text)| *text),
        });
        Redacted::weave(&pieces.collect::<Vec<_>>())
    }
}

/// A token that occurs in neither `transcript` nor `before`, for a fence that they cannot close. It is a digest of
/// both texts, so that an author cannot predict it.
fn fence_token(transcript: &str, before: &str) -> String {
    let digest = Digest::of(&[transcript, before]).to_string();
    let tokens = (0..TOKENS_MAX).map(|n| match n {
        0 => digest.get(..TOKEN_DIGITS).unwrap_or(&digest).to_owned(),
        n => Digest::of(&[&digest, &n.to_string()]).to_string(),
    });
    first_unused(tokens, &[transcript, before]).unwrap_or(digest)
}

fn first_unused(mut tokens: impl Iterator<Item = String>, texts: &[&str]) -> Option<String> {
    let held = |token: &str, text: &str| memmem::find(text.as_bytes(), token.as_bytes()).is_some();
    tokens.find(|token| !texts.iter().any(|text| held(token, text)))
}
