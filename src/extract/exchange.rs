//! The sans-I/O dialogue with a model about one slice: returns a request, consumes the reply, and ends with claims or
//! with the reason why there are none. Every path is bounded.

use super::answer::{self, Answer, join};
use super::spec::{ExtractionSpec, form};
use crate::domain::{
    ASKS_MAX, Claim, FINDINGS_MAX, Finding, Message, OutputMode, Reply, Request, Role, Severity,
    Slice,
};
use crate::llm::prompt::{Complaint, RetryReason};
use crate::llm::tool::echo;
use crate::privacy::Redacted;
use crate::text::phrase::counted;
use std::sync::Arc;

/// Maximum number of requests to repair broken claims; a third attempt never helped.
pub(crate) const REPAIRS_MAX: u32 = 2;
/// Maximum number of requests after a truncated answer; each costs as much as the first.
pub(crate) const CUTS_MAX: u32 = 1;
/// Maximum number of reminders after a reply without an answer, before the next output mode is tried.
pub(crate) const REMINDERS_MAX: u32 = 1;

// Every output mode can be tried, and the reminder sent, within the limit of requests.
const _: () = assert!(OutputMode::ALL.len() as u32 + REMINDERS_MAX <= ASKS_MAX);
const _: () = assert!(1 + REPAIRS_MAX + CUTS_MAX <= ASKS_MAX);

/// The next step.
#[derive(Debug)]
pub enum Step {
    /// Make this call and pass the reply back.
    Ask(Request),
    /// Success; the extraction may be empty.
    Done(Extraction),
    /// The slice failed, which is not the same as an empty extraction.
    Stuck(Failure),
}

/// Result of a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Extraction {
    /// Ungrounded claims; each once, at most [`crate::domain::CLAIMS_MAX`].
    pub claims: Vec<Claim>,
    /// Corrections, and parts that were dropped or missing.
    pub findings: Vec<Finding>,
    /// Output mode that worked; worth remembering for the endpoint and model.
    pub rung: OutputMode,
    /// Number of requests.
    pub asks: u32,
    /// True if the answer was truncated, so that claims may be missing.
    pub salvaged: bool,
}

/// Reason for a failed extraction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureKind {
    /// The model, or a filter in front of it, refused.
    Refused,
    /// No answer was usable.
    Malformed,
    /// There was no answer.
    NoCall,
}

impl FailureKind {
    /// Name in the database and in output.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Refused => "refused",
            FailureKind::Malformed => "malformed",
            FailureKind::NoCall => "no-call",
        }
    }
}

/// A failed extraction.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Kind, for callers to branch on.
    pub kind: FailureKind,
    /// Reason, for a person; contains no text of a conversation.
    pub detail: String,
    /// Problems of the answers.
    pub findings: Vec<Finding>,
    /// Number of requests.
    pub asks: u32,
}

/// Dialogue about one slice.
///
/// Valid claims stay, whatever comes later. After broken claims, the next answer adds to those that
/// are kept. After a truncated answer, a whole one takes its place, unless it has fewer claims than
/// were salvaged: then both are kept.
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
    salvaged: bool,
    tried: bool,
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
            salvaged: false,
            tried: false,
            asks: 0,
            repairs: 0,
            cuts: 0,
            reminders: 0,
        };
        let request = exchange.request();
        (exchange, request)
    }

    /// Consumes the reply and returns the next step.
    pub fn reply(&mut self, reply: &Reply) -> Step {
        let mut answer = answer::read(reply, self.rung);
        self.note(std::mem::take(&mut answer.findings));
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

    /// Tries the next output mode, because the endpoint refused this one.
    pub fn rung_refused(&mut self) -> Step {
        match self.rung.next().filter(|_| self.may_ask()) {
            Some(rung) => {
                self.rung = rung;
                Step::Ask(self.request())
            }
            None => self.end(FailureKind::NoCall, "the endpoint takes none of the ways to ask"),
        }
    }

    /// Ends with the claims of earlier answers, if any, because the last request cannot be made: say,
    /// it is too long with the earlier answer in it.
    pub fn stop(&mut self) -> Step {
        self.end(FailureKind::NoCall, "the question could not be asked")
    }

    /// Number of claims so far, with which [`Exchange::stop`] would end.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Output mode of the last request.
    pub fn rung(&self) -> OutputMode {
        self.rung
    }

    /// Number of requests so far.
    pub fn asks(&self) -> u32 {
        self.asks
    }

    fn after_answer(&mut self, answer: Answer, reply: &Reply) -> Step {
        let reason = self.turn.as_ref().map(|turn| turn.reason);
        let kept = self.kept.len();
        if reason == Some(RetryReason::Cut) && answer.claims.len() >= self.kept.len() {
            self.kept = answer.claims;
            self.salvaged = false;
        } else {
            join(&mut self.kept, answer.claims);
        }
        self.problems = answer.problems;
        let asked_again = reason == Some(RetryReason::Broken);
        if asked_again && self.problems.is_empty() && self.kept.len() == kept {
            let detail = "asked again for broken claims, the model left them out";
            self.note(vec![Finding::new(Severity::Warning, "omitted-claim", 0, detail)]);
        }
        if !self.problems.is_empty() && self.repairs < REPAIRS_MAX && self.may_ask() {
            self.repairs += 1;
            return self.again(RetryReason::Broken, reply);
        }
        self.finish()
    }

    fn after_cut(&mut self, answer: Answer, reply: &Reply) -> Step {
        let detail = "the answer broke off; claims may be missing";
        self.note(vec![Finding::new(Severity::Warning, "truncated", 0, detail)]);
        join(&mut self.kept, answer.claims);
        self.salvaged = true;
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
    fn after_nothing(&mut self, answer: Answer, reply: &Reply) -> Step {
        if !self.kept.is_empty() {
            let detail = "asked again for broken claims, there was no answer";
            self.note(vec![Finding::new(Severity::Warning, "no-answer", 0, detail)]);
            return self.finish();
        }
        self.problems = answer.problems;
        if self.reminders < REMINDERS_MAX && self.may_ask() {
            self.reminders += 1;
            let silent = self.problems.is_empty();
            return self
                .again(if silent { RetryReason::Silent } else { RetryReason::Shapeless }, reply);
        }
        match self.rung.next().filter(|_| self.may_ask()) {
            Some(rung) => {
                self.rung = rung;
                self.turn = None;
                Step::Ask(self.request())
            }
            None if self.tried => self.end(FailureKind::Malformed, "no answer could be used"),
            None => self.end(FailureKind::NoCall, "the model handed nothing over"),
        }
    }

    /// Ends with the kept claims. An answer without a usable claim is not an empty extraction.
    fn finish(&mut self) -> Step {
        if self.kept.is_empty() && !self.problems.is_empty() {
            return self.end(FailureKind::Malformed, "no claim could be used");
        }
        self.report_problems();
        Step::Done(Extraction {
            claims: std::mem::take(&mut self.kept),
            findings: std::mem::take(&mut self.findings),
            rung: self.rung,
            asks: self.asks,
            salvaged: self.salvaged,
        })
    }

    /// Ends without an answer; claims of an earlier one still make an extraction.
    fn end(&mut self, kind: FailureKind, detail: &str) -> Step {
        if !self.kept.is_empty() {
            self.note(vec![Finding::new(Severity::Warning, kind.name(), 0, detail)]);
            return self.finish();
        }
        self.report_problems();
        Step::Stuck(Failure {
            kind,
            detail: format!("{detail}, asked {}", counted(self.asks.into(), "time")),
            findings: std::mem::take(&mut self.findings),
            asks: self.asks,
        })
    }

    fn report_problems(&mut self) {
        let problems = std::mem::take(&mut self.problems);
        let finding = |problem| Finding::new(Severity::Error, "broken-claim", 0, problem);
        self.note(problems.into_iter().map(finding).collect());
    }

    fn again(&mut self, reason: RetryReason, reply: &Reply) -> Step {
        self.turn = Some(Turn { echo: echo(reply), reason });
        Step::Ask(self.request())
    }

    fn request(&mut self) -> Request {
        self.asks += 1;
        let mut messages = vec![Message { role: Role::User, content: self.slice.clone() }];
        if let Some(turn) = &self.turn {
            let complaint = Complaint {
                reason: turn.reason,
                form: form(self.rung),
                kept: self.kept.len(),
                problems: &self.problems,
            };
            messages.push(Message { role: Role::Assistant, content: turn.echo.clone() });
            let content = self.spec.prompts.again(&complaint);
            messages.push(Message { role: Role::User, content });
        }
        self.spec.request(self.rung, self.generation, messages)
    }

    fn may_ask(&self) -> bool {
        self.asks < ASKS_MAX
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
mod golden;
#[cfg(test)]
mod tests;
