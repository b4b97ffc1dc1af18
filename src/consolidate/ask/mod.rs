//! The talk with a model about one batch of what the rules left open, without I/O: it says what to ask, is handed the
//! reply, and ends with verdicts. What is forged, missing or unproven is asked for again, and at last left open.

mod answer;
mod batch;
mod schema;

use super::course::{Course, Over, Step, Way};
use super::verdict::Verdicts;
use crate::domain::{Digest, Finding, Memory, RecordId, Reply, Request, Rung};
use crate::prompt::BatchPrompt;
use std::collections::BTreeSet;
use std::sync::Arc;

pub use batch::{BATCH_RECORDS_MAX, BATCH_TOKENS_MAX, Batch, batches, offer};
pub use schema::{Judgement, SCHEMA_VERSION, TOOL_NAME, WriteConsolidated, schema_files};

/// What all batches have in common.
#[derive(Debug)]
pub struct Judging {
    /// Who is asked, and how.
    pub way: Way,
    /// Digest of model, prompt, schema and language.
    digest: Digest,
}

impl Judging {
    /// Asks `model` with `prompt`, about texts that are mostly in `language`.
    pub fn new(model: impl Into<String>, language: &str, prompt: Arc<BatchPrompt>) -> Judging {
        let (model, schema) = (model.into(), SCHEMA_VERSION.to_string());
        Judging {
            digest: Digest::of(&["judging", &model, prompt.line(), &schema, language]),
            way: Way::new(model, language, (prompt, schema::tool())),
        }
    }

    /// Stands for the question how `record` stands to `memory`: another one where the memory changed, or the prompt,
    /// or the model. A record never changes.
    pub fn question(&self, record: RecordId, memory: &Memory) -> Digest {
        let told = serde_json::to_string(&(&memory.claim, memory.stage, memory.said_by));
        let (record, told) = (record.to_string(), told.unwrap_or_default());
        Digest::of(&["question", &self.digest.to_string(), &record, &memory.id.to_string(), &told])
    }
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
    course: Course,
    done: BTreeSet<usize>,
    verdicts: Verdicts,
}

impl Exchange {
    /// Begins with `rung`, the best that the endpoint is known to take.
    pub fn start(judging: &Arc<Judging>, batch: Batch, rung: Rung) -> (Exchange, Request) {
        let mut exchange = Exchange {
            judging: Arc::clone(judging),
            course: Course::start(judging.way.prompt.batch(&batch.text), rung),
            batch,
            done: BTreeSet::new(),
            verdicts: Verdicts::none(),
        };
        let request = exchange.request();
        (exchange, request)
    }

    /// Takes the reply, and says what is next.
    pub fn reply(&mut self, reply: &Reply) -> Step<Judged> {
        let mut answer = answer::read(reply, self.course.rung);
        if !answer.shaped {
            let next = self.course.after_nothing(reply);
            return self.go_on(next);
        }
        let problems = answer.check(&self.batch, &mut self.done, &mut self.verdicts);
        self.course.note(answer.findings);
        if self.course.mends(reply, problems) {
            return Step::Ask(self.request());
        }
        self.finish()
    }

    /// The endpoint does not take this way of asking: tries the next.
    pub fn rung_refused(&mut self) -> Step<Judged> {
        let next = self.course.lower();
        self.go_on(next)
    }

    /// The last request cannot be made at all: ends with what there is.
    pub fn stop(&mut self) -> Step<Judged> {
        self.go_on(Err(("no-call", "the question could not be asked")))
    }

    /// How many records there is a verdict on already, which [`Exchange::stop`] would end with.
    pub fn kept(&self) -> usize {
        self.done.len()
    }

    fn go_on(&mut self, next: Result<(), Over>) -> Step<Judged> {
        match next {
            Ok(()) => Step::Ask(self.request()),
            Err((rule, detail)) => {
                self.course.warn(rule, detail);
                self.finish()
            }
        }
    }

    /// Ends; records without a verdict are named.
    fn finish(&mut self) -> Step<Judged> {
        let open = (0..self.batch.len()).filter(|at| !self.done.contains(at)).count();
        if open > 0 {
            let detail = format!("{open} of {} records have no verdict", self.batch.len());
            self.course.warn("left-open", detail);
        }
        Step::Done(Judged {
            verdicts: std::mem::take(&mut self.verdicts),
            findings: std::mem::take(&mut self.course.findings),
            rung: self.course.rung,
            asks: self.course.asks,
        })
    }

    fn request(&mut self) -> Request {
        self.course.ask(&self.judging.way, self.done.len())
    }
}

#[cfg(test)]
mod tests;
