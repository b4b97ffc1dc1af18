//! Retrospectives of a namespace, by rule or with lessons from a model that is asked batch by batch. The two are never
//! mixed: if a batch has no usable answer, the whole retrospective is made by rule.

use super::adjudicate::{
    BatchBill, BatchClient, Halt, ModelUsage, NoAnswer, answered, configure, located,
};
use super::consolidating::Consolidator;
use super::extractor::ModelSource;
use crate::consolidate::{
    LessonBatch, LessonSpec, LessonTask, Note, Retrospective, lesson_batches, reflect,
    reflect_with, standing,
};
use crate::domain::{Finding, Purpose, Record, RecordState, Severity, Timestamp};
use crate::privacy::Gate;
use crate::store::{RecordFilter, StoreError};
use std::sync::Arc;

pub(crate) struct Reflector {
    client: BatchClient,
    spec: Arc<LessonSpec>,
}

#[derive(Debug)]
pub(crate) enum RetrospectiveOutcome {
    Done(Box<RetrospectiveReport>),
    Busy,
    /// The model cannot be asked. Answers so far are journaled.
    Halted(Halt),
}

#[derive(Clone, Debug)]
pub(crate) struct RetrospectiveReport {
    pub namespace: String,
    pub retrospective: Retrospective,
    pub findings: Vec<Finding>,
    pub shown: u64,
    pub usage: ModelUsage,
}

impl Reflector {
    pub(crate) async fn new(source: ModelSource<'_>) -> Result<Reflector, StoreError> {
        let config = source.config;
        let (prompt, gate) = (config.prompts.reflect(), Gate::new(&config.pii));
        let mut spec = LessonSpec::new(source.model_name, &config.language, prompt, gate);
        configure(&mut spec.ask, config);
        Ok(Reflector { client: BatchClient::new(source).await?, spec: Arc::new(spec) })
    }

    async fn report(
        &self,
        mut report: RetrospectiveReport,
        records: &[Record],
    ) -> Result<RetrospectiveOutcome, StoreError> {
        let (batches, left_out) = lesson_batches(records, &self.spec.gate);
        if left_out > 0 {
            let detail = format!("{left_out} records are not shown: the earliest, or too long");
            report.note("not-shown", detail);
        }
        let (many, mut lessons) = (batches.len(), Some(Vec::new()));
        for (n, batch) in (1..).zip(batches) {
            let here = format!("batch {n} of {many}");
            match self.batch(&mut report, batch, &here).await? {
                Ok(learned) => lessons = lessons.map(|all| [all, learned].concat()),
                Err(NoAnswer::Open(rule, why)) => {
                    report.note(rule, format!("{here}: {why}; the retrospective is made by rule"));
                    lessons = None;
                    break;
                }
                Err(NoAnswer::Halted(halt)) => return Ok(RetrospectiveOutcome::Halted(halt)),
            }
        }
        if let Some(lessons) = lessons.filter(|_| many > 0) {
            report.retrospective = reflect_with(records, &self.spec.ask.model, lessons);
        }
        Ok(RetrospectiveOutcome::Done(Box::new(report)))
    }

    async fn batch(
        &self,
        report: &mut RetrospectiveReport,
        batch: LessonBatch,
        here: &str,
    ) -> Result<Result<Vec<Note>, NoAnswer>, StoreError> {
        let (shown, about) = (batch.len(), batch.about());
        let (dialogue, request) = LessonTask::start(&self.spec, batch, self.client.rung());
        let namespace = &report.namespace;
        let bill = BatchBill { namespace, task: "reflecting", purpose: Purpose::Reflect, about };
        let (ended, spent) = self.client.ask(dialogue, request, bill).await?;
        report.shown += shown as u64;
        report.usage.add(0, spent);
        let learned = match answered(ended) {
            Ok(learned) => learned,
            Err(no_answer) => return Ok(Err(no_answer)),
        };
        report.findings.extend(located(learned.summary.findings, here));
        if !learned.usable {
            let why = "the model gave no usable answer".to_owned();
            return Ok(Err(NoAnswer::Open("no-lessons", why)));
        }
        self.client.learn(&self.spec.ask.model, learned.summary.rung, spent).await?;
        Ok(Ok(learned.lessons))
    }
}

impl Consolidator {
    /// Makes a retrospective of `namespace` since a time, by rule or with the model of `reflector`. Holds the namespace
    /// lease while the model is asked, so that no record is forgotten before the answer about it is journaled.
    pub(crate) async fn reflect(
        &self,
        namespace: &str,
        since: Option<Timestamp>,
        reflector: Option<&Reflector>,
    ) -> Result<RetrospectiveOutcome, StoreError> {
        let by_rule = |records: &[Record]| RetrospectiveReport {
            namespace: namespace.to_owned(),
            retrospective: reflect(records),
            findings: Vec::new(),
            shown: 0,
            usage: ModelUsage::default(),
        };
        let Some(reflector) = reflector else {
            let report = by_rule(&self.to_reflect(namespace, since).await?);
            return Ok(RetrospectiveOutcome::Done(Box::new(report)));
        };
        let Some(held) = self.hold(namespace).await? else {
            return Ok(RetrospectiveOutcome::Busy);
        };
        let done = match self.to_reflect(namespace, since).await {
            Ok(records) => reflector.report(by_rule(&records), &records).await,
            Err(error) => Err(error),
        };
        let left = held.release(None).await;
        let done = done?;
        left.map(|()| done)
    }

    /// Staged records since a time, without those that were retracted.
    async fn to_reflect(
        &self,
        namespace: &str,
        since: Option<Timestamp>,
    ) -> Result<Vec<Record>, StoreError> {
        let filter = RecordFilter {
            namespace: Some(namespace.to_owned()),
            since,
            states: vec![RecordState::Staged],
            ..RecordFilter::default()
        };
        let stored = self.store.records(filter).await?;
        let memories = self.store.memories(Some(namespace)).await?;
        Ok(standing(stored.into_iter().map(|it| it.record).collect(), &memories))
    }
}

impl RetrospectiveReport {
    fn note(&mut self, rule: &'static str, detail: String) {
        self.findings.push(Finding::new(Severity::Warning, rule, 0, detail));
    }
}
