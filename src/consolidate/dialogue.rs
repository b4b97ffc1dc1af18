//! Exchange with a model about one batch, without I/O: returns each request, takes each reply, ends
//! with the verdicts. Bounds output modes, reminders and repairs.

use super::adjudication::{
    Adjudicated, Adjudication, AdjudicationSpec, DialogueSummary, PairBatch,
};
use super::answer::Answer;
use crate::domain::{
    ASKS_MAX, FINDINGS_MAX, Finding, Finish, Message, OutputMode, Reply, Request, Role, Severity,
};
use crate::llm::prompt::Form;
use crate::llm::tool::echo;
use crate::llm::{ModelDialogue, NO_MODE, Step, UNUSABLE};
use crate::privacy::Redacted;
use std::sync::Arc;

/// Maximum number of requests for correction; a model that needs more does not succeed.
const REPAIRS_MAX: u32 = 2;
/// Maximum number of reminders after a reply without an answer, per dialogue.
const REMINDERS_MAX: u32 = 1;

// Every output mode and the reminder fit into the maximum number of asks.
const _: () = assert!(OutputMode::ALL.len() as u32 + REMINDERS_MAX <= ASKS_MAX);
const _: () = assert!(REPAIRS_MAX < ASKS_MAX);

/// The dialogue about one batch.
#[derive(Debug)]
pub(crate) struct Dialogue {
    adjudication: Adjudication,
    rung: OutputMode,
    asks: u32,
    /// True if the endpoint replied.
    replied: bool,
    is_usable: bool,
    is_exhausted: bool,
    findings: Vec<Finding>,
    correction: Option<(Redacted, Vec<String>)>,
    repairs: u32,
    reminders: u32,
}

impl Dialogue {
    /// Starts with `rung`, the best output mode that the endpoint is known to support.
    pub(crate) fn start(
        spec: &Arc<AdjudicationSpec>,
        batch: PairBatch,
        rung: OutputMode,
    ) -> (Dialogue, Request) {
        let mut dialogue = Dialogue {
            adjudication: Adjudication::new(spec, batch),
            rung,
            asks: 0,
            replied: false,
            is_usable: false,
            is_exhausted: false,
            findings: Vec::new(),
            correction: None,
            repairs: 0,
            reminders: 0,
        };
        let request = dialogue.request();
        (dialogue, request)
    }

    fn after_nothing(&mut self, reply: &Reply) -> Step<Adjudicated> {
        let refused = reply.refusal.as_ref().is_some_and(|words| !words.is_empty())
            || reply.finish == Finish::ContentFilter;
        if refused {
            // It is an answer: no other is to be expected.
            self.is_usable = true;
            return self.give_up("refused", "the model refused");
        }
        if self.reminders < REMINDERS_MAX && self.asks < ASKS_MAX {
            self.reminders += 1;
            self.correction = Some((echo(reply), Vec::new()));
            return Step::Ask(self.request());
        }
        self.correction = None;
        self.output_mode_refused()
    }

    fn exhaust(&mut self) -> Step<Adjudicated> {
        self.is_exhausted = !self.is_usable;
        self.give_up("no-call", if self.replied { UNUSABLE } else { NO_MODE })
    }

    fn give_up(&mut self, rule: &'static str, detail: &str) -> Step<Adjudicated> {
        self.note(Finding::new(Severity::Warning, rule, 0, detail));
        self.finish()
    }

    fn finish(&mut self) -> Step<Adjudicated> {
        let findings = std::mem::take(&mut self.findings);
        let Dialogue { rung, asks, is_usable, .. } = *self;
        let summary = DialogueSummary { findings, rung, asks, is_usable };
        Step::Done(self.adjudication.outcome(summary))
    }

    fn note(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn request(&mut self) -> Request {
        self.asks += 1;
        let spec = &self.adjudication.spec;
        let (form, rules) = match self.rung.is_tool() {
            true => (Form::Tool, &spec.rules_tool),
            false => (Form::Json, &spec.rules_json),
        };
        let shown = spec.prompt.batch(&self.adjudication.batch.text);
        let mut messages = vec![
            Message { role: Role::System, content: rules.clone() },
            Message { role: Role::User, content: shown },
        ];
        if let Some((echo, problems)) = &self.correction {
            messages.push(Message { role: Role::Assistant, content: echo.clone() });
            let content = spec.prompt.again(form, self.adjudication.accepted(), problems);
            messages.push(Message { role: Role::User, content });
        }
        Request {
            model: spec.model.clone(),
            messages,
            rung: self.rung,
            tool: Arc::clone(&spec.tool),
            reply_tokens_max: spec.reply_tokens_max,
            temperature: spec.temperature,
            generation: 0,
        }
    }
}

impl ModelDialogue for Dialogue {
    type Outcome = Adjudicated;

    fn reply(&mut self, reply: &Reply) -> Step<Adjudicated> {
        self.replied = true;
        let Some(mut answer) = Answer::read(reply, self.rung.is_tool()) else {
            return self.after_nothing(reply);
        };
        self.is_usable = true;
        let problems = self.adjudication.check(&mut answer);
        for finding in answer.findings {
            self.note(finding);
        }
        if !problems.is_empty() && self.repairs < REPAIRS_MAX && self.asks < ASKS_MAX {
            self.repairs += 1;
            self.correction = Some((echo(reply), problems));
            return Step::Ask(self.request());
        }
        self.finish()
    }

    fn output_mode_refused(&mut self) -> Step<Adjudicated> {
        match self.rung.next().filter(|_| self.asks < ASKS_MAX) {
            Some(rung) => {
                self.rung = rung;
                Step::Ask(self.request())
            }
            None => self.exhaust(),
        }
    }

    fn stop(&mut self) -> Step<Adjudicated> {
        match self.is_usable {
            true => self.give_up("no-call", "the question could not be asked"),
            false => self.exhaust(),
        }
    }

    fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    fn has_partial_result(&self) -> bool {
        self.adjudication.accepted() > 0
    }
}
