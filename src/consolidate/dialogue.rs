//! Exchange with a model about one batch, without I/O: returns each request, takes each reply, ends
//! with an outcome. Bounds output modes, reminders and repairs for every task.

use crate::domain::{
    ASKS_MAX, FINDINGS_MAX, Finding, Finish, Message, OutputMode, Reply, Request, Role, Severity,
    Tokens, ToolSpec,
};
use crate::llm::prompt::{BatchPrompt, Form};
use crate::llm::tool::echo;
use crate::llm::{ModelDialogue, NO_MODE, Step, UNUSABLE};
use crate::privacy::Redacted;
use crate::text::lenient_json::decode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Maximum number of requests for correction; a model that needs more does not succeed.
const REPAIRS_MAX: u32 = 2;
/// Maximum number of reminders after a reply without an answer, per dialogue.
const REMINDERS_MAX: u32 = 1;
/// Maximum length of an answer: twenty entries with evidence, and room to spare.
const REPLY_TOKENS_DEFAULT: u32 = 4_000;
/// Maximum number of calls read from one reply.
const CALLS_MAX: usize = 16;
/// Maximum number of entries read from one answer: more than any batch asks for.
const ENTRIES_MAX: usize = 200;

// Every output mode and the reminder fit into the maximum number of asks.
const _: () = assert!(OutputMode::ALL.len() as u32 + REMINDERS_MAX <= ASKS_MAX);
const _: () = assert!(REPAIRS_MAX < ASKS_MAX);

/// Model, prompt and tool of a task.
#[derive(Debug)]
pub(crate) struct AskSpec {
    pub model: String,
    pub reply_tokens_max: u32,
    /// Sampling temperature; `None` leaves it to the endpoint.
    pub temperature: Option<f32>,
    prompt: Arc<BatchPrompt>,
    tool: Arc<ToolSpec>,
    rules_tool: Redacted,
    rules_json: Redacted,
}

impl AskSpec {
    /// Asks `model` with `prompt` for a call of `tool`, about texts that are mostly in `language`.
    pub(super) fn new(
        model: String,
        language: &str,
        prompt: Arc<BatchPrompt>,
        tool: ToolSpec,
    ) -> AskSpec {
        AskSpec {
            model,
            reply_tokens_max: REPLY_TOKENS_DEFAULT,
            temperature: None,
            rules_tool: prompt.rules(language, Form::Tool, tool.schema()),
            rules_json: prompt.rules(language, Form::Json, tool.schema()),
            prompt,
            tool: Arc::new(tool),
        }
    }
}

/// A question to a model about one batch.
pub(crate) trait BatchTask {
    type Outcome;
    /// Key of the list of entries in an answer.
    const LIST: &'static str;

    fn spec(&self) -> &AskSpec;
    fn text(&self) -> &Redacted;
    fn accepted(&self) -> usize;
    /// Checks an answer (`None`: the reply has none) and returns what the model must correct.
    fn check(&mut self, answer: Option<&mut Answer>) -> Vec<String>;
    fn outcome(&mut self, summary: DialogueSummary) -> Self::Outcome;
}

/// Findings and costs of a finished dialogue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DialogueSummary {
    pub findings: Vec<Finding>,
    pub rung: OutputMode,
    pub asks: u32,
    /// False if no reply was an answer.
    pub is_usable: bool,
}

/// The dialogue about one batch.
#[derive(Debug)]
pub(crate) struct Dialogue<T> {
    task: T,
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

impl<T: BatchTask> Dialogue<T> {
    /// Starts with `rung`, the best output mode that the endpoint is known to support.
    pub(crate) fn start(task: T, rung: OutputMode) -> (Dialogue<T>, Request) {
        let mut dialogue = Dialogue {
            task,
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

    fn after_nothing(&mut self, reply: &Reply) -> Step<T::Outcome> {
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

    fn exhaust(&mut self) -> Step<T::Outcome> {
        self.is_exhausted = !self.is_usable;
        self.give_up("no-call", if self.replied { UNUSABLE } else { NO_MODE })
    }

    fn give_up(&mut self, rule: &'static str, detail: &str) -> Step<T::Outcome> {
        self.note(Finding::new(Severity::Warning, rule, 0, detail));
        self.finish()
    }

    fn finish(&mut self) -> Step<T::Outcome> {
        let findings = std::mem::take(&mut self.findings);
        let Dialogue { rung, asks, is_usable, .. } = *self;
        let summary = DialogueSummary { findings, rung, asks, is_usable };
        Step::Done(self.task.outcome(summary))
    }

    fn note(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn request(&mut self) -> Request {
        self.asks += 1;
        let spec = self.task.spec();
        let (form, rules) = match self.rung.is_tool() {
            true => (Form::Tool, &spec.rules_tool),
            false => (Form::Json, &spec.rules_json),
        };
        let shown = spec.prompt.batch(self.task.text());
        let mut messages = vec![
            Message { role: Role::System, content: rules.clone() },
            Message { role: Role::User, content: shown },
        ];
        if let Some((echo, problems)) = &self.correction {
            messages.push(Message { role: Role::Assistant, content: echo.clone() });
            let content = spec.prompt.again(form, self.task.accepted(), problems);
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

impl<T: BatchTask> ModelDialogue for Dialogue<T> {
    type Outcome = T::Outcome;

    fn reply(&mut self, reply: &Reply) -> Step<T::Outcome> {
        self.replied = true;
        let Some(mut answer) =
            Answer::read(reply, self.rung.is_tool(), self.task.spec().tool.name, T::LIST)
        else {
            self.task.check(None);
            return self.after_nothing(reply);
        };
        self.is_usable = true;
        let problems = self.task.check(Some(&mut answer));
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

    fn output_mode_refused(&mut self) -> Step<T::Outcome> {
        match self.rung.next().filter(|_| self.asks < ASKS_MAX) {
            Some(rung) => {
                self.rung = rung;
                Step::Ask(self.request())
            }
            None => self.exhaust(),
        }
    }

    fn stop(&mut self) -> Step<T::Outcome> {
        match self.is_usable {
            true => self.give_up("no-call", "the question could not be asked"),
            false => self.exhaust(),
        }
    }

    fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    fn has_partial_result(&self) -> bool {
        self.task.accepted() > 0
    }
}

/// The entries of one answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) entries: Vec<Value>,
    findings: Vec<Finding>,
}

impl Answer {
    /// Reads the calls of `tool`, or JSON in the reply's text; `None` if neither has the list.
    fn read(reply: &Reply, tool_asked: bool, tool: &str, list: &str) -> Option<Answer> {
        let mut answer = Answer { entries: Vec::new(), findings: Vec::new() };
        let mut found = false;
        for call in reply.calls.iter().take(CALLS_MAX).filter(|call| call.name == tool) {
            found |= answer.add(&call.arguments, list);
        }
        if !found {
            found = answer.add(&reply.content, list);
            if found && tool_asked {
                answer.note("found-in-text", "the answer was in the text, not in a tool call");
            }
        }
        found.then_some(answer)
    }

    fn add(&mut self, text: &Redacted, list: &str) -> bool {
        let (value, repairs) = decode(text.as_str(), &[list]);
        let Value::Object(mut object) = value else { return false };
        let Some(Value::Array(entries)) = object.remove(list) else { return false };
        self.findings.extend(repairs.into_iter().map(|repair| repair.finding()));
        let room = ENTRIES_MAX.saturating_sub(self.entries.len());
        self.entries.extend(entries.into_iter().take(room));
        true
    }

    pub(super) fn note(&mut self, rule: &'static str, detail: impl Into<String>) {
        self.findings.push(Finding::new(Severity::Warning, rule, 0, detail));
    }

    /// Parses an entry without its unknown fields; `None` if its shape is wrong.
    pub(super) fn parse<E: DeserializeOwned>(
        &mut self,
        entry: Value,
        fields: &[&str],
    ) -> Option<E> {
        let Value::Object(object) = entry else { return None };
        let (known, other): (Map<String, Value>, Map<String, Value>) =
            object.into_iter().partition(|(key, _)| fields.contains(&key.as_str()));
        if !other.is_empty() {
            self.note("unknown-field", "fields that were not asked for, dropped");
        }
        serde_json::from_value(Value::Object(known)).ok()
    }
}

/// Maximum size of the records and memories of one batch; with more, models skip some.
pub(super) const BATCH_TOKENS_MAX: Tokens = 9_000;
/// Maximum size of one record or memory as shown; a longer one is left out.
const SHOWN_BYTES_MAX: usize = 6_000;

// A shown line always fits into a batch in ASCII; in other scripts it may fill one alone.
const _: () = assert!(SHOWN_BYTES_MAX / 4 < BATCH_TOKENS_MAX as usize);

/// One line of JSON, so that no text can imitate another record; `None` if it is too long.
pub(super) fn shown_line(shown: &impl Serialize) -> Option<String> {
    serde_json::to_string(shown).ok().filter(|line| line.len() <= SHOWN_BYTES_MAX)
}

/// Index of a record from its id in a batch, such as `R1`.
pub(super) fn record_index(id: &str) -> Option<usize> {
    let number: usize = id.trim().strip_prefix(['R', 'r'])?.parse().ok()?;
    number.checked_sub(1)
}
