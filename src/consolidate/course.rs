//! The course of a talk about one batch, whatever it is about: what is asked, and how often it is asked again. Rungs,
//! reminders and repairs are bounded here, for all talks alike.

use crate::domain::{
    ASKS_MAX, FINDINGS_MAX, Finding, Finish, Message, Reply, Request, Role, Rung, Severity,
    ToolSpec,
};
use crate::privacy::Redacted;
use crate::prompt::{BatchPrompt, Form};
use crate::tool::echo;
use std::sync::Arc;

/// Times that wrong entries are asked for again: what a model did not mend in two, it will not.
pub const REPAIRS_MAX: u32 = 2;
/// Reminders after an answer that is none, before the next rung is tried.
pub const REMINDERS_MAX: u32 = 1;
/// Tokens of an answer: twenty entries with their evidence, with room to spare.
pub const REPLY_TOKENS_DEFAULT: u32 = 4_000;

// Every rung can be tried, and the reminder given, before the asks run out.
const _: () = assert!(Rung::ALL.len() as u32 + REMINDERS_MAX <= ASKS_MAX);
const _: () = assert!(REPAIRS_MAX < ASKS_MAX);

/// A model, the prompt and the tool: how everything is asked that is asked for one purpose.
#[derive(Debug)]
pub struct Way {
    /// The model's name at the endpoint.
    pub model: String,
    /// The longest answer, in the model's tokens.
    pub reply_tokens_max: u32,
    /// Sampling temperature; none leaves it to the endpoint.
    pub temperature: Option<f32>,
    pub(super) prompt: Arc<BatchPrompt>,
    tool: Arc<ToolSpec>,
    rules_tool: Redacted,
    rules_json: Redacted,
}

impl Way {
    /// Asks `model` with `prompt` for a call of `tool`, about texts that are mostly in `language`.
    pub(super) fn new(
        model: String,
        language: &str,
        (prompt, tool): (Arc<BatchPrompt>, Arc<ToolSpec>),
    ) -> Way {
        Way {
            model,
            reply_tokens_max: REPLY_TOKENS_DEFAULT,
            temperature: None,
            rules_tool: prompt.rules(language, Form::Tool, tool.schema()),
            rules_json: prompt.rules(language, Form::Json, tool.schema()),
            prompt,
            tool,
        }
    }
}

/// What to do next.
#[derive(Debug)]
pub enum Step<T> {
    /// Make this call, and hand over the reply.
    Ask(Request),
    /// The talk is over, and this is what it came to.
    Done(T),
}

/// Why a talk ends without an answer: a rule, and a sentence.
pub(super) type Over = (&'static str, &'static str);

/// How far a talk is.
#[derive(Debug)]
pub(super) struct Course {
    shown: Redacted,
    pub(super) rung: Rung,
    pub(super) asks: u32,
    pub(super) findings: Vec<Finding>,
    /// The earlier answer, and what was wrong with it.
    turn: Option<(Redacted, Vec<String>)>,
    repairs: u32,
    reminders: u32,
}

impl Course {
    /// Shows this, beginning with `rung`, the best that the endpoint is known to take.
    pub(super) fn start(shown: Redacted, rung: Rung) -> Course {
        let (asks, repairs, reminders) = (0, 0, 0);
        Course { shown, rung, asks, findings: Vec::new(), turn: None, repairs, reminders }
    }

    /// The next question; so many entries are good already.
    pub(super) fn ask(&mut self, way: &Way, kept: usize) -> Request {
        self.asks += 1;
        let (form, rules) = match self.rung.is_tool() {
            true => (Form::Tool, &way.rules_tool),
            false => (Form::Json, &way.rules_json),
        };
        let mut messages = vec![
            Message { role: Role::System, content: rules.clone() },
            Message { role: Role::User, content: self.shown.clone() },
        ];
        if let Some((echo, problems)) = &self.turn {
            messages.push(Message { role: Role::Assistant, content: echo.clone() });
            let content = way.prompt.again(form, kept, problems);
            messages.push(Message { role: Role::User, content });
        }
        Request {
            model: way.model.clone(),
            messages,
            rung: self.rung,
            tool: Arc::clone(&way.tool),
            reply_tokens_max: way.reply_tokens_max,
            temperature: way.temperature,
            generation: 0,
        }
    }

    /// Whether the next question asks for these again; none asks for nothing.
    pub(super) fn mends(&mut self, reply: &Reply, problems: Vec<String>) -> bool {
        let mends = !problems.is_empty() && self.repairs < REPAIRS_MAX && self.asks < ASKS_MAX;
        if mends {
            self.repairs += 1;
            self.turn = Some((echo(reply), problems));
        }
        mends
    }

    /// There was no answer in the reply: the next question reminds of it, or is asked in another way.
    pub(super) fn after_nothing(&mut self, reply: &Reply) -> Result<(), Over> {
        let refused = reply.refusal.as_ref().is_some_and(|words| !words.is_empty())
            || reply.finish == Finish::ContentFilter;
        if refused {
            return Err(("refused", "the model refused"));
        }
        if self.reminders < REMINDERS_MAX && self.asks < ASKS_MAX {
            self.reminders += 1;
            self.turn = Some((echo(reply), Vec::new()));
            return Ok(());
        }
        self.turn = None;
        self.lower()
    }

    /// The next question is asked in the next way.
    pub(super) fn lower(&mut self) -> Result<(), Over> {
        match self.rung.next().filter(|_| self.asks < ASKS_MAX) {
            Some(rung) => {
                self.rung = rung;
                Ok(())
            }
            None => Err(("no-call", "the endpoint takes none of the ways to ask")),
        }
    }

    pub(super) fn note(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            if self.findings.len() < FINDINGS_MAX && !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
    }

    pub(super) fn warn(&mut self, rule: &'static str, detail: impl Into<String>) {
        self.note(vec![Finding::new(Severity::Warning, rule, 0, detail)]);
    }
}
