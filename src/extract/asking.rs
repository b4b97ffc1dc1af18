//! What all slices of a run have in common when they are asked about: made once and shared.

use super::schema::tool;
use crate::domain::{Message, Request, Role, Rung, ToolSpec};
use crate::privacy::Redacted;
use crate::prompt::{Form, Prompts};
use std::sync::Arc;

/// Tokens of an answer unless somebody says otherwise: thirty claims with room to spare.
pub const REPLY_TOKENS_DEFAULT: u32 = 8_000;

/// A model, the prompts and the tool. The rules are rendered here once.
#[derive(Debug)]
pub struct Asking {
    /// The model's name at the endpoint.
    pub model: String,
    /// The longest answer, in the model's tokens.
    pub reply_tokens_max: u32,
    /// Sampling temperature; none leaves it to the endpoint.
    pub temperature: Option<f32>,
    pub(super) prompts: Arc<Prompts>,
    pub(super) tool: Arc<ToolSpec>,
    language: String,
    rules_tool: Redacted,
    rules_json: Redacted,
}

impl Asking {
    /// Asks `model` with `prompts`, for texts in `language` (its English name, or its own).
    pub fn new(model: impl Into<String>, language: &str, prompts: Arc<Prompts>) -> Asking {
        let tool = tool();
        Asking {
            model: model.into(),
            reply_tokens_max: REPLY_TOKENS_DEFAULT,
            temperature: None,
            language: language.to_owned(),
            rules_tool: prompts.rules(language, Form::Tool, tool.schema()),
            rules_json: prompts.rules(language, Form::Json, tool.schema()),
            prompts,
            tool,
        }
    }

    /// The language of the claims.
    pub fn language(&self) -> &str {
        &self.language
    }

    /// The prompts, whose id and version belong to the run.
    pub fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// A request on `rung`: the rules, then `messages`.
    pub(super) fn request(&self, rung: Rung, generation: u32, messages: Vec<Message>) -> Request {
        let rules = match form(rung) {
            Form::Tool => &self.rules_tool,
            Form::Json => &self.rules_json,
        };
        let mut all = Vec::with_capacity(1 + messages.len());
        all.push(Message { role: Role::System, content: rules.clone() });
        all.extend(messages);
        Request {
            model: self.model.clone(),
            messages: all,
            rung,
            tool: Arc::clone(&self.tool),
            reply_tokens_max: self.reply_tokens_max,
            temperature: self.temperature,
            generation,
        }
    }
}

/// How an answer is given on `rung`.
pub(super) fn form(rung: Rung) -> Form {
    if rung.is_tool() { Form::Tool } else { Form::Json }
}
