//! The talk with a model about one batch of what the rules left open, without I/O: it says what to ask, is handed the
//! reply, and ends with verdicts. What is forged, missing or unproven is asked for again, and at last left open.

mod answer;
mod batch;
mod schema;

use super::verdict::Verdicts;
use crate::domain::{
    ASKS_MAX, Digest, FINDINGS_MAX, Finding, Finish, Memory, Message, RecordId, Reply, Request,
    Role, Rung, Severity, ToolSpec,
};
use crate::privacy::Redacted;
use crate::prompt::{ConsolidatePrompt, Form};
use crate::tool::echo;
use std::collections::BTreeSet;
use std::sync::Arc;

pub use batch::{BATCH_RECORDS_MAX, BATCH_TOKENS_MAX, Batch, batches, offer};
pub use schema::{Judgement, SCHEMA_VERSION, TOOL_NAME, WriteConsolidated, schema_files};

/// Times that wrong entries are asked for again: what a model did not mend in two, it will not.
pub const REPAIRS_MAX: u32 = 2;
/// Reminders after an answer that is none, before the next rung is tried.
pub const REMINDERS_MAX: u32 = 1;
/// Tokens of an answer: twenty entries with their evidence, with room to spare.
pub const REPLY_TOKENS_DEFAULT: u32 = 4_000;

// Every rung can be tried, and the reminder given, before the asks run out.
const _: () = assert!(Rung::ALL.len() as u32 + REMINDERS_MAX <= ASKS_MAX);
const _: () = assert!(REPAIRS_MAX < ASKS_MAX);

/// A model, the prompt and the tool: what all batches have in common.
#[derive(Debug)]
pub struct Judging {
    /// The model's name at the endpoint.
    pub model: String,
    /// The longest answer, in the model's tokens.
    pub reply_tokens_max: u32,
    /// Sampling temperature; none leaves it to the endpoint.
    pub temperature: Option<f32>,
    /// Digest of model, prompt, schema and language.
    way: Digest,
    prompt: ConsolidatePrompt,
    tool: Arc<ToolSpec>,
    rules_tool: Redacted,
    rules_json: Redacted,
}

impl Judging {
    /// Asks `model` with `prompt`, about texts that are mostly in `language`.
    pub fn new(model: impl Into<String>, language: &str, prompt: ConsolidatePrompt) -> Judging {
        let (tool, model) = (schema::tool(), model.into());
        let schema = SCHEMA_VERSION.to_string();
        Judging {
            way: Digest::of(&["judging", &model, prompt.line(), &schema, language]),
            model,
            reply_tokens_max: REPLY_TOKENS_DEFAULT,
            temperature: None,
            rules_tool: prompt.rules(language, Form::Tool, tool.schema()),
            rules_json: prompt.rules(language, Form::Json, tool.schema()),
            prompt,
            tool,
        }
    }

    /// Stands for the question how `record` stands to `memory`: another one where the memory changed, or the prompt,
    /// or the model. A record never changes.
    pub fn question(&self, record: RecordId, memory: &Memory) -> Digest {
        let told = serde_json::to_string(&(&memory.claim, memory.stage, memory.said_by));
        let (record, told) = (record.to_string(), told.unwrap_or_default());
        Digest::of(&["question", &self.way.to_string(), &record, &memory.id.to_string(), &told])
    }
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Make this call, and hand over the reply.
    Ask(Request),
    /// The batch is judged, as far as it could be.
    Done(Judged),
}

/// What a batch came to. What has no verdict stays open.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdicts that could be used.
    pub verdicts: Verdicts,
    /// What was put right, refused or could not be had.
    pub findings: Vec<Finding>,
    /// The rung of the last request; worth remembering if there are verdicts.
    pub rung: Rung,
    /// How many requests it took.
    pub asks: u32,
}

/// The talk about one batch.
#[derive(Debug)]
pub struct Exchange {
    judging: Arc<Judging>,
    batch: Batch,
    shown: Redacted,
    rung: Rung,
    /// The earlier answer, and what was wrong with it.
    turn: Option<(Redacted, Vec<String>)>,
    done: BTreeSet<usize>,
    verdicts: Verdicts,
    findings: Vec<Finding>,
    asks: u32,
    repairs: u32,
    reminders: u32,
}

impl Exchange {
    /// Begins with `rung`, the best that the endpoint is known to take.
    pub fn start(judging: &Arc<Judging>, batch: Batch, rung: Rung) -> (Exchange, Request) {
        let mut exchange = Exchange {
            judging: Arc::clone(judging),
            shown: judging.prompt.batch(&batch.text),
            batch,
            rung,
            turn: None,
            done: BTreeSet::new(),
            verdicts: Verdicts::none(),
            findings: Vec::new(),
            asks: 0,
            repairs: 0,
            reminders: 0,
        };
        let request = exchange.request();
        (exchange, request)
    }

    /// Takes the reply, and says what is next.
    pub fn reply(&mut self, reply: &Reply) -> Step {
        let mut answer = answer::read(reply, self.rung);
        if !answer.shaped {
            let refused = reply.refusal.as_ref().is_some_and(|words| !words.is_empty())
                || reply.finish == Finish::ContentFilter;
            if refused {
                return self.end("refused", "the model refused");
            }
            return self.after_nothing(reply);
        }
        let problems = answer.check(&self.batch, &mut self.done, &mut self.verdicts);
        self.note(answer.findings);
        if !problems.is_empty() && self.repairs < REPAIRS_MAX && self.asks < ASKS_MAX {
            self.repairs += 1;
            self.turn = Some((echo(reply), problems));
            return Step::Ask(self.request());
        }
        self.finish()
    }

    /// The endpoint does not take this way of asking: tries the next.
    pub fn rung_refused(&mut self) -> Step {
        match self.rung.next().filter(|_| self.asks < ASKS_MAX) {
            Some(rung) => {
                self.rung = rung;
                Step::Ask(self.request())
            }
            None => self.end("no-call", "the endpoint takes none of the ways to ask"),
        }
    }

    /// The last request cannot be made at all: ends with what there is.
    pub fn stop(&mut self) -> Step {
        self.end("no-call", "the question could not be asked")
    }

    /// How many records there is a verdict on already, which [`Exchange::stop`] would end with.
    pub fn kept(&self) -> usize {
        self.done.len()
    }

    fn after_nothing(&mut self, reply: &Reply) -> Step {
        if self.reminders < REMINDERS_MAX && self.asks < ASKS_MAX {
            self.reminders += 1;
            self.turn = Some((echo(reply), Vec::new()));
            return Step::Ask(self.request());
        }
        self.turn = None;
        self.rung_refused()
    }

    fn end(&mut self, rule: &'static str, detail: &str) -> Step {
        self.note(vec![Finding::new(Severity::Warning, rule, 0, detail)]);
        self.finish()
    }

    /// Ends; records without a verdict are named.
    fn finish(&mut self) -> Step {
        let open = (0..self.batch.len()).filter(|at| !self.done.contains(at)).count();
        if open > 0 {
            let detail = format!("{open} of {} records have no verdict", self.batch.len());
            self.note(vec![Finding::new(Severity::Warning, "left-open", 0, detail)]);
        }
        Step::Done(Judged {
            verdicts: std::mem::take(&mut self.verdicts),
            findings: std::mem::take(&mut self.findings),
            rung: self.rung,
            asks: self.asks,
        })
    }

    fn request(&mut self) -> Request {
        self.asks += 1;
        let judging = &self.judging;
        let (form, rules) = match self.rung.is_tool() {
            true => (Form::Tool, &judging.rules_tool),
            false => (Form::Json, &judging.rules_json),
        };
        let mut messages = vec![
            Message { role: Role::System, content: rules.clone() },
            Message { role: Role::User, content: self.shown.clone() },
        ];
        if let Some((echo, problems)) = &self.turn {
            messages.push(Message { role: Role::Assistant, content: echo.clone() });
            let content = judging.prompt.again(form, self.done.len(), problems);
            messages.push(Message { role: Role::User, content });
        }
        Request {
            model: judging.model.clone(),
            messages,
            rung: self.rung,
            tool: Arc::clone(&judging.tool),
            reply_tokens_max: judging.reply_tokens_max,
            temperature: judging.temperature,
            generation: 0,
        }
    }

    fn note(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            if self.findings.len() < FINDINGS_MAX && !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
    }
}

#[cfg(test)]
mod tests;
