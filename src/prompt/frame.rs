//! A prompt compiled for one case: our words with gaps. The template engine runs once, when the
//! prompts are read; afterwards a prompt costs one copy, and a slice is never near the engine.

use super::file::{File, PromptError};
use crate::privacy::{Redacted, Woven};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Stands around an input's name while a template is rendered; no template may hold it.
const MARK: char = '\u{1}';

/// What is filled in later.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Input {
    Language,
    Schema,
    Context,
    Fence,
    Transcript,
    Kept,
    Problems,
    Existing,
    Messages,
    Batch,
}

impl Input {
    const ALL: [Input; 10] = [
        Input::Language,
        Input::Schema,
        Input::Context,
        Input::Fence,
        Input::Transcript,
        Input::Kept,
        Input::Problems,
        Input::Existing,
        Input::Messages,
        Input::Batch,
    ];

    fn name(self) -> &'static str {
        match self {
            Input::Language => "language",
            Input::Schema => "schema",
            Input::Context => "context",
            Input::Fence => "fence",
            Input::Transcript => "transcript",
            Input::Kept => "kept",
            Input::Problems => "problems",
            Input::Existing => "existing",
            Input::Messages => "messages",
            Input::Batch => "batch",
        }
    }
}

/// What decides between the cases of a template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    name: &'static str,
    value: Result<bool, &'static str>,
}

impl Setting {
    pub(super) fn yes_or_no(name: &'static str, value: bool) -> Setting {
        Setting { name, value: Ok(value) }
    }

    pub(super) fn named(name: &'static str, value: &'static str) -> Setting {
        Setting { name, value: Err(value) }
    }
}

#[derive(Debug)]
enum Piece {
    Words(String),
    Gap(Input),
}

/// Words and gaps, in order.
#[derive(Debug)]
pub(super) struct Frame(Vec<Piece>);

impl Frame {
    /// Renders `file` with `settings`, leaving a gap for each of `inputs`.
    pub(super) fn compile(
        file: &File<'_>,
        settings: &[Setting],
        inputs: &[Input],
    ) -> Result<Frame, PromptError> {
        let wrong = |error: minijinja::Error| PromptError::new(file.id, error.to_string());
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
        for setting in settings {
            let value = setting.value.map_or_else(Value::from, Value::from);
            values.insert(setting.name, value);
        }
        let rendered = template.render(values).map_err(wrong)?;
        Ok(Frame::split(rendered.trim()))
    }

    /// Marks come in pairs, so every second piece is a gap's name.
    fn split(rendered: &str) -> Frame {
        let named = |name| Input::ALL.into_iter().find(|input| input.name() == name);
        let pieces = rendered.split(MARK).enumerate().filter_map(|(n, piece)| match n % 2 {
            0 => (!piece.is_empty()).then(|| Piece::Words(piece.to_owned())),
            _ => named(piece).map(Piece::Gap),
        });
        Frame(pieces.collect())
    }

    /// Fills the gaps; one that is not in `fill` stays empty.
    pub(super) fn fill(&self, fill: &[(Input, Woven<'_>)]) -> Redacted {
        let given = |wanted: Input| fill.iter().find(|(input, _)| *input == wanted);
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Words(words) => Woven::Label(words),
            Piece::Gap(input) => given(*input).map_or(Woven::Ours(""), |(_, text)| *text),
        });
        Redacted::weave(&pieces.collect::<Vec<_>>())
    }
}
