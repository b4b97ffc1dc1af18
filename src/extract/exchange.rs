//! The sans-I/O dialogue with a model about one slice: returns a request, consumes the reply, and ends with claims or
//! with the reason why there are none. Every path is bounded.

use super::answer::{Answer, join, tool};
use crate::domain::{
    ASKS_MAX, Claim, FINDINGS_MAX, Finding, Message, OutputMode, Reply, Request, Role, Severity,
    Slice, ToolSpec, named,
};
use crate::llm::prompt::{Complaint, Form, Prompts, RetryReason};
use crate::llm::tool::echo;
use crate::llm::{ModelDialogue, NO_MODE, Step, UNUSABLE};
use crate::privacy::Redacted;
use crate::text::phrase::counted;
use std::sync::Arc;

/// Default maximum length of an answer, in tokens: thirty claims with room to spare.
const REPLY_TOKENS_DEFAULT: u32 = 8_000;
/// Maximum number of requests to repair broken claims; a third attempt never helped.
const REPAIRS_MAX: u32 = 2;
/// Maximum number of requests after a truncated answer; each costs as much as the first.
const CUTS_MAX: u32 = 1;
/// Maximum number of reminders after a reply without an answer, before the next output mode is tried.
const REMINDERS_MAX: u32 = 1;

// Every output mode can be tried, and the reminder sent, within the limit of requests.
const _: () = assert!(OutputMode::ALL.len() as u32 + REMINDERS_MAX <= ASKS_MAX);
const _: () = assert!(1 + REPAIRS_MAX + CUTS_MAX <= ASKS_MAX);

/// Everything that the requests of a run share: a model, the prompts and the tool, with the rules rendered once.
#[derive(Debug)]
pub struct ExtractionSpec {
    /// The model's name at the endpoint.
    pub model: String,
    /// Maximum length of an answer, in the model's tokens.
    pub reply_tokens_max: u32,
    /// Sampling temperature; `None` leaves it to the endpoint.
    pub temperature: Option<f32>,
    prompts: Arc<Prompts>,
    tool: Arc<ToolSpec>,
    language: String,
    rules_tool: Redacted,
    rules_json: Redacted,
}

impl ExtractionSpec {
    /// Creates a spec for `model` and `prompts`, with claims in `language` (its English name, or its own).
    pub fn new(model: impl Into<String>, language: &str, prompts: Arc<Prompts>) -> ExtractionSpec {
        let tool = tool();
        ExtractionSpec {
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
}

/// Result of a slice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Extraction {
    /// Ungrounded claims; each once, at most [`crate::domain::CLAIMS_MAX`].
    pub claims: Vec<Claim>,
    /// Corrections, and parts that were dropped or missing.
    pub findings: Vec<Finding>,
    /// Output mode that worked; worth remembering for the endpoint and model.
    pub rung: OutputMode,
    /// True if no answer was whole: the slice holds more than `claims`.
    pub is_cut: bool,
}

named! {
    /// Reason for a failed extraction.
    pub(crate) FailureKind {
        /// The model, or a filter in front of it, refused.
        Refused = "refused",
        /// No answer was usable.
        Malformed = "malformed",
        /// There was no answer.
        NoCall = "no-call",
        /// No answer was whole.
        CutOff = "cut-off",
    }
}

impl Failure {
    /// The failure of a slice whose answers broke off.
    pub(crate) fn cut_off(findings: Vec<Finding>) -> Failure {
        let detail =
            "the answer broke off; raise `model.reply_tokens_max`, or lower `slice.tokens`";
        Failure { kind: FailureKind::CutOff, detail: detail.to_owned(), findings }
    }
}

/// A failed extraction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub kind: FailureKind,
    /// Reason, for a person; contains no text of a conversation.
    pub detail: String,
    pub findings: Vec<Finding>,
}

/// Dialogue about one slice.
///
/// Valid claims stay, whatever comes later. After broken claims, the next answer adds to those that are kept. After a
/// truncated answer, a whole one takes its place, unless it has fewer claims than were salvaged: then both are kept.
/// Without a whole one, the extraction says so.
#[derive(Debug)]
pub struct Exchange {
    spec: Arc<ExtractionSpec>,
    generation: u32,
    rung: OutputMode,
    /// The slice as a message; the same in every output mode.
    slice: Redacted,
    /// The last unusable answer and its problem; older ones say nothing new.
    turn: Option<Turn>,
    kept: Vec<Claim>,
    problems: Vec<String>,
    findings: Vec<Finding>,
    tried: bool,
    is_cut: bool,
    /// True if the endpoint replied.
    replied: bool,
    is_exhausted: bool,
    asks: u32,
    repairs: u32,
    cuts: u32,
    reminders: u32,
}

/// An answer that was not usable as it was.
#[derive(Debug)]
struct Turn {
    echo: Redacted,
    reason: RetryReason,
}

impl Exchange {
    /// Starts in `rung`, the best output mode that the endpoint is known to support. `context` is the
    /// preamble of the slice; `generation` counts how often a failed slice was extracted afresh.
    pub fn start(
        spec: &Arc<ExtractionSpec>,
        slice: &Slice,
        context: Option<&Redacted>,
        rung: OutputMode,
        generation: u32,
    ) -> (Exchange, Request) {
        let mut exchange = Exchange {
            spec: Arc::clone(spec),
            generation,
            rung,
            slice: spec.prompts.slice(&slice.text, context),
            turn: None,
            kept: Vec::new(),
            problems: Vec::new(),
            findings: Vec::new(),
            tried: false,
            is_cut: false,
            replied: false,
            is_exhausted: false,
            asks: 0,
            repairs: 0,
            cuts: 0,
            reminders: 0,
        };
        let request = exchange.request();
        (exchange, request)
    }

    fn after_answer(&mut self, answer: Answer, reply: &Reply) -> Step<Outcome> {
        let reason = self.turn.as_ref().map(|turn| turn.reason);
        let kept = self.kept.len();
        if reason == Some(RetryReason::Cut) && answer.claims.len() >= self.kept.len() {
            self.kept = answer.claims;
        } else {
            join(&mut self.kept, answer.claims);
        }
        self.problems = answer.problems;
        self.is_cut = false;
        let asked_again = reason == Some(RetryReason::Broken);
        if asked_again && self.problems.is_empty() && self.kept.len() == kept {
            self.warn("omitted-claim", "the model omitted the broken claims when asked again");
        }
        if !self.problems.is_empty() && self.repairs < REPAIRS_MAX && self.may_ask() {
            self.repairs += 1;
            return self.again(RetryReason::Broken, reply);
        }
        self.finish()
    }

    fn after_cut(&mut self, answer: Answer, reply: &Reply) -> Step<Outcome> {
        self.warn("truncated", "the answer broke off; claims may be missing");
        join(&mut self.kept, answer.claims);
        self.is_cut = true;
        if self.cuts < CUTS_MAX && self.may_ask() {
            self.cuts += 1;
            self.problems.clear();
            return self.again(RetryReason::Cut, reply);
        }
        if self.kept.is_empty() {
            return self.after_nothing(Answer::default(), reply);
        }
        self.problems = answer.problems;
        self.finish()
    }

    /// Sends a reminder, then tries the next output mode. Claims of an earlier answer suffice to end.
    fn after_nothing(&mut self, answer: Answer, reply: &Reply) -> Step<Outcome> {
        if !self.kept.is_empty() {
            self.warn(
                "no-answer",
                "the model did not answer when asked again for the broken claims",
            );
            return self.finish();
        }
        self.problems = answer.problems;
        if self.reminders < REMINDERS_MAX && self.may_ask() {
            self.reminders += 1;
            let reason = match self.problems.is_empty() {
                true => RetryReason::Silent,
                false => RetryReason::Shapeless,
            };
            return self.again(reason, reply);
        }
        self.turn = None;
        self.next_mode().unwrap_or_else(|| self.exhaust())
    }

    fn exhaust(&mut self) -> Step<Outcome> {
        self.is_exhausted = self.kept.is_empty() && !self.is_cut;
        if self.kept.is_empty() && self.is_cut {
            return Step::Done(Err(Failure::cut_off(std::mem::take(&mut self.findings))));
        }
        let kind = if self.tried { FailureKind::Malformed } else { FailureKind::NoCall };
        self.end(kind, if self.replied { UNUSABLE } else { NO_MODE })
    }

    fn next_mode(&mut self) -> Option<Step<Outcome>> {
        self.rung = self.rung.next().filter(|_| self.may_ask())?;
        Some(Step::Ask(self.request()))
    }

    /// Ends with the kept claims. An answer without a usable claim is not an empty extraction.
    fn finish(&mut self) -> Step<Outcome> {
        if self.kept.is_empty() && !self.problems.is_empty() {
            return self.end(FailureKind::Malformed, "no claim could be used");
        }
        self.report_problems();
        Step::Done(Ok(Extraction {
            claims: std::mem::take(&mut self.kept),
            findings: std::mem::take(&mut self.findings),
            rung: self.rung,
            is_cut: self.is_cut,
        }))
    }

    /// Ends without an answer; claims of an earlier one still make an extraction.
    fn end(&mut self, kind: FailureKind, detail: &str) -> Step<Outcome> {
        if !self.kept.is_empty() {
            self.warn(kind.name(), detail);
            return self.finish();
        }
        self.report_problems();
        Step::Done(Err(Failure {
            kind,
            detail: format!("{detail}, asked {}", counted(self.asks.into(), "time")),
            findings: std::mem::take(&mut self.findings),
        }))
    }

    fn report_problems(&mut self) {
        for problem in std::mem::take(&mut self.problems) {
            self.note(Finding::new(Severity::Error, "broken-claim", 0, problem));
        }
    }

    fn again(&mut self, reason: RetryReason, reply: &Reply) -> Step<Outcome> {
        self.turn = Some(Turn { echo: echo(reply), reason });
        Step::Ask(self.request())
    }

    /// The rules, the slice, and the last unusable answer with its problems.
    fn request(&mut self) -> Request {
        self.asks += 1;
        let spec = &self.spec;
        let (form, rules) = match self.rung.is_tool() {
            true => (Form::Tool, &spec.rules_tool),
            false => (Form::Json, &spec.rules_json),
        };
        let mut messages = vec![
            Message { role: Role::System, content: rules.clone() },
            Message { role: Role::User, content: self.slice.clone() },
        ];
        if let Some(Turn { echo, reason }) = &self.turn {
            let (kept, problems) = (self.kept.len(), self.problems.as_slice());
            let content = spec.prompts.again(&Complaint { reason: *reason, form, kept, problems });
            messages.push(Message { role: Role::Assistant, content: echo.clone() });
            messages.push(Message { role: Role::User, content });
        }
        Request {
            model: spec.model.clone(),
            messages,
            rung: self.rung,
            tool: Arc::clone(&spec.tool),
            reply_tokens_max: spec.reply_tokens_max,
            temperature: spec.temperature,
            generation: self.generation,
        }
    }

    fn may_ask(&self) -> bool {
        self.asks < ASKS_MAX
    }

    fn warn(&mut self, rule: &'static str, detail: &str) {
        self.note(Finding::new(Severity::Warning, rule, 0, detail));
    }

    fn note(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

pub(crate) type Outcome = Result<Extraction, Failure>;

impl ModelDialogue for Exchange {
    type Outcome = Outcome;

    fn reply(&mut self, reply: &Reply) -> Step<Outcome> {
        self.replied = true;
        let mut answer = Answer::read(reply, self.rung);
        std::mem::take(&mut answer.findings).into_iter().for_each(|finding| self.note(finding));
        self.tried |= answer.tried;
        if answer.refused {
            self.end(FailureKind::Refused, "the model refused")
        } else if answer.cut {
            self.after_cut(answer, reply)
        } else if answer.shaped {
            self.after_answer(answer, reply)
        } else {
            self.after_nothing(answer, reply)
        }
    }

    fn output_mode_refused(&mut self) -> Step<Outcome> {
        self.next_mode().unwrap_or_else(|| self.exhaust())
    }

    /// Ends with the claims of earlier answers: the request is, say, too long with the earlier answer in it.
    fn stop(&mut self) -> Step<Outcome> {
        match self.kept.is_empty() {
            true => self.exhaust(),
            false => self.end(FailureKind::NoCall, "the question could not be asked"),
        }
    }

    fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    fn has_partial_result(&self) -> bool {
        !self.kept.is_empty()
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
