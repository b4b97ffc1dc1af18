//! Looks back at the records of a namespace: by rule, or by a model that is asked batch by batch within the same pace,
//! rates, caps and bounds as for every other question. A retrospective is made one way: where a batch has no usable
//! answer the whole of it is the rules'.

use super::asking::{Account, Asker, For, Model, Paid, Patience, Payer};
use super::consolidating::Consolidator;
use super::judging::{Asked, Halt, asker, next, patience, settle};
use super::talk::{Ended, Next, Talk, Waiting};
use crate::config::Config;
use crate::consolidate::{
    Learned, LookBack, Material, Note, Reflecting, Retrospective, materials, reflect, reflect_with,
    standing,
};
use crate::domain::{
    Digest, Finding, ModelError, Purpose, Record, RecordState, Reply, RunId, Severity, Timestamp,
};
use crate::edge::store::{RecordFilter, Store, StoreError};
use crate::privacy::Gate;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Asks a model what records teach.
pub struct Reflector {
    asker: Asker,
    reflecting: Arc<Reflecting>,
    patience: Patience,
}

/// What became of looking back.
#[derive(Debug)]
pub enum Reflection {
    /// It was done.
    Done(Box<LookedBack>),
    /// Somebody else changes the memory of the namespace.
    Busy,
    /// The model cannot be asked until a person mends something, or somebody asked to stop. Answers that came are kept.
    Halted(Halt),
}

/// A retrospective with what a reader needs to follow it.
#[derive(Clone, Debug)]
pub struct LookedBack {
    /// Whose records.
    pub namespace: String,
    /// It, with the way in which it was made.
    pub retrospective: Retrospective,
    /// What was odd about a model's answers, and why there is none; rules and places.
    pub findings: Vec<Finding>,
    /// Records that were put to a model.
    pub shown: u64,
    /// What that cost.
    pub asked: Asked,
}

impl Reflector {
    /// Asks `model` by its name, for somebody who waits for it; stops when `cancel` is cancelled.
    ///
    /// # Errors
    /// The store's.
    pub async fn new(
        config: &Config,
        (model, model_name): (Model, &str),
        store: Store,
        (cancel, clock): (CancellationToken, fn() -> Timestamp),
    ) -> Result<Reflector, StoreError> {
        let (prompt, gate) = (config.prompts.reflect(), Gate::new(&config.pii));
        let mut reflecting = Reflecting::new(model_name, &config.language, prompt, gate);
        settle(&mut reflecting.way, config);
        Ok(Reflector {
            asker: asker(config, (model, model_name), store, (cancel, clock)).await?,
            reflecting: Arc::new(reflecting),
            patience: patience(config),
        })
    }

    /// Puts `records` of a namespace to the model.
    async fn look_back(
        &self,
        namespace: String,
        records: &[Record],
    ) -> Result<Reflection, StoreError> {
        let (batches, left_out) = materials(records, self.reflecting.gate());
        let by_rule = Retrospective::default();
        let (findings, asked) = (Vec::new(), Asked::default());
        let mut told = LookedBack { namespace, retrospective: by_rule, findings, shown: 0, asked };
        if left_out > 0 {
            let detail = format!("{left_out} records are not shown: the earliest, or too long");
            told.note("not-shown", detail);
        }
        let (many, mut lessons) = (batches.len(), Some(Vec::new()));
        for (n, batch) in (1..).zip(batches) {
            let here = format!("batch {n} of {many}");
            match self.batch(&mut told, batch, &here).await? {
                Ok(learned) => lessons = lessons.map(|all| [all, learned].concat()),
                Err(Without::Answer(rule, why)) => {
                    told.note(rule, format!("{here}: {why}; the retrospective is made by rule"));
                    lessons = None;
                    break;
                }
                Err(Without::End(halt)) => return Ok(Reflection::Halted(halt)),
            }
        }
        let model = &self.reflecting.way.model;
        told.retrospective = match lessons.filter(|_| many > 0) {
            Some(lessons) => reflect_with(records, model, lessons),
            None => reflect(records),
        };
        Ok(Reflection::Done(Box::new(told)))
    }

    async fn batch(
        &self,
        told: &mut LookedBack,
        batch: Material,
        here: &str,
    ) -> Result<Result<Vec<Note>, Without>, StoreError> {
        let (shown, about) = (batch.len(), batch.about());
        let rung = self.asker.ladder.rung();
        let (mut talk, request) = LookBack::start(&self.reflecting, batch, rung);
        let namespace = told.namespace.clone();
        let whose = For {
            payer: Payer { namespace: &namespace, session: None },
            account: Account::Own {
                task: RunId(Digest::of(&["reflecting", &namespace])),
                purpose: Purpose::Reflect,
                about: &about,
            },
            stop: &self.asker.cancel,
            returns: false,
            patience: Some(self.patience),
        };
        let mut paid = Paid::default();
        let ended = self.asker.talk(&mut talk, request, whose, &mut paid).await?;
        told.shown += shown as u64;
        told.asked.add(0, paid);
        let answer = |rule, error: ModelError| Err(Without::Answer(rule, error.to_string()));
        Ok(match ended {
            Ended::Done(learned) => {
                for Finding { severity, rule, detail, .. } in learned.findings {
                    let detail = format!("{here}: {detail}");
                    told.findings.push(Finding { severity, rule, line: 0, detail });
                }
                if learned.usable {
                    let worked = (learned.rung, paid.refused);
                    self.asker.learn(&self.reflecting.way.model, worked).await?;
                    Ok(learned.lessons)
                } else {
                    let why = "the model gave no answer that can be used".to_owned();
                    Err(Without::Answer("no-lessons", why))
                }
            }
            Ended::TooLong(error) => answer("too-long", error),
            Ended::Failed(error) | Ended::Waits(Waiting::Unanswered(error)) => {
                answer("no-answer", error)
            }
            Ended::Waits(Waiting::Cap(reached)) => {
                Err(Without::Answer("cap-reached", reached.to_string()))
            }
            Ended::Waits(Waiting::Needs(error)) => {
                Err(Without::End(Halt::Needs(error.to_string())))
            }
            Ended::Waits(Waiting::Stopped) => Err(Without::End(Halt::Stopped)),
        })
    }
}

/// Why a batch taught nothing.
enum Without {
    /// There is no usable answer: a rule, and why.
    Answer(&'static str, String),
    /// Nothing can be asked.
    End(Halt),
}

impl Consolidator {
    /// Looks back at what was said in `namespace` since then: by rule, or by the model of `reflector`. While one is
    /// asked the namespace is held, so that nothing is forgotten between what is shown and the answer that is kept.
    ///
    /// # Errors
    /// The store's.
    pub async fn reflect(
        &self,
        namespace: &str,
        since: Option<Timestamp>,
        reflector: Option<&Reflector>,
    ) -> Result<Reflection, StoreError> {
        let Some(reflector) = reflector else {
            let records = self.to_reflect(namespace, since).await?;
            return Ok(Reflection::Done(Box::new(LookedBack {
                namespace: namespace.to_owned(),
                retrospective: reflect(&records),
                findings: Vec::new(),
                shown: 0,
                asked: Asked::default(),
            })));
        };
        let Some(held) = self.hold(namespace).await? else { return Ok(Reflection::Busy) };
        let told = match self.to_reflect(namespace, since).await {
            Ok(records) => reflector.look_back(namespace.to_owned(), &records).await,
            Err(error) => Err(error),
        };
        let left = held.leave(None).await;
        let told = told?;
        left.map(|()| told)
    }

    /// The records that stand, of those that were said since then.
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

impl LookedBack {
    fn note(&mut self, rule: &'static str, detail: String) {
        self.findings.push(Finding::new(Severity::Warning, rule, 0, detail));
    }
}

impl Talk for LookBack {
    type End = Learned;

    fn reply(&mut self, reply: &Reply) -> Next<Learned> {
        next(LookBack::reply(self, reply))
    }

    fn rung_refused(&mut self) -> Next<Learned> {
        next(LookBack::rung_refused(self))
    }

    fn stop(&mut self) -> Next<Learned> {
        next(LookBack::stop(self))
    }

    fn has_kept(&self) -> bool {
        self.kept() > 0
    }
}
