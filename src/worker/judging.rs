//! Puts to a model what no rule decides about memory: batch by batch, within the same pace, rates, caps and bounds as
//! every other question. What comes back are verdicts that the host has checked; the plan is made by the rules.

use super::asking::{Account, Asker, For, Model, Paid, Patience, Payer};
use super::setup::Setup;
use super::steady::{Bearing, Steady};
use super::talk::{Ended, Next, Talk, Waiting};
use super::tally::Tally;
use crate::config::Config;
use crate::consolidate::{Batch, Exchange, Judged, Judging, Step, Verdicts, Way};
use crate::domain::{
    Digest, Finding, Memory, MemoryId, Purpose, RecordId, Reply, RunId, Severity, Timestamp,
};
use crate::edge::store::{Store, StoreError};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Batches without an answer after which no other one begins: each has been tried and waited for.
const UNANSWERED_MAX: u32 = 2;
/// How long a call under way is waited for once somebody asked to stop.
const GRACE: Duration = Duration::from_secs(5);

/// Asks a model about pairs that no rule decides.
pub struct Judge {
    asker: Arc<Asker>,
    judging: Arc<Judging>,
    patience: Patience,
    /// Batches that are asked about at once.
    in_flight: usize,
    /// What only a person can mend, once it was met: nothing is asked any more then.
    needs: Mutex<Option<String>>,
}

/// What was put to a model, and what it cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Pairs that were put to it.
    pub pairs: u64,
    /// Questions, those among them that were answered before.
    pub questions: u64,
    /// Questions that went to the endpoint.
    pub calls: u64,
    /// Answers of the journal.
    pub journaled: u64,
    /// Tokens sent.
    pub sent: u64,
    /// Of those, cached by the provider.
    pub cached: u64,
    /// Tokens answered.
    pub answered: u64,
    /// Money, in millionths of a dollar.
    pub cost_micros: u64,
}

/// Why there is no plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Halt {
    /// Something that only a person can mend, and how.
    Needs(String),
    /// Somebody asked to stop.
    Stopped,
}

/// What a model said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    pub(super) verdicts: Verdicts,
    /// Pairs of batches that were talked about to the end.
    pub(super) judged: BTreeSet<(RecordId, MemoryId)>,
    pub(super) findings: Vec<Finding>,
    pub(super) asked: Asked,
    /// Whether a batch has no answer, which it may have another time.
    pub(super) waits: bool,
}

/// What became of a batch.
struct Told {
    /// Its place among the batches; of a half, its place in the whole behind that.
    place: Vec<usize>,
    pairs: Vec<(RecordId, MemoryId)>,
    ended: Ended<Judged>,
    /// Where it was longer than the model reads.
    halves: Option<[Batch; 2]>,
    paid: Paid,
}

impl Judge {
    /// Asks `model` by its name, for somebody who waits for it; stops when `cancel` is cancelled.
    ///
    /// # Errors
    /// The store's.
    pub async fn new(
        config: &Config,
        (model, model_name): (Model, &str),
        store: Store,
        (cancel, clock): (CancellationToken, fn() -> Timestamp),
    ) -> Result<Judge, StoreError> {
        let asker = asker(config, (model, model_name), store, (cancel, clock)).await?;
        Ok(Judge::beside(Arc::new(asker), config, model_name))
    }

    /// Asks through `asker`, which others ask through too.
    pub(super) fn beside(asker: Arc<Asker>, config: &Config, model_name: &str) -> Judge {
        let prompt = config.prompts.consolidate();
        let mut judging = Judging::new(model_name, &config.language, prompt);
        settle(&mut judging.way, config);
        Judge {
            asker,
            judging: Arc::new(judging),
            patience: patience(config),
            in_flight: config.model.concurrency,
            needs: Mutex::new(None),
        }
    }

    /// What only a person can mend, if it was met.
    pub fn needs(&self) -> Option<String> {
        self.needs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stands for the question about a pair.
    pub(super) fn question(&self, record: RecordId, memory: &Memory) -> Digest {
        self.judging.question(record, memory)
    }

    /// Asks about `batches` of `namespace` and adds what is said to `heard`. A batch without an answer leaves its
    /// pairs open, but that one which is longer than the model reads is asked about in halves; only what a person must
    /// mend, and a stop, end the asking.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn ask(
        self: &Arc<Judge>,
        namespace: &str,
        batches: Vec<Batch>,
        heard: &mut Heard,
    ) -> Result<Result<(), Halt>, StoreError> {
        if let Some(line) = self.needs() {
            return Ok(Err(Halt::Needs(line)));
        }
        let (many, mut unanswered) = (batches.len(), 0);
        let mut left: VecDeque<(Vec<usize>, Batch)> =
            batches.into_iter().enumerate().map(|(number, batch)| (vec![number], batch)).collect();
        let mut under_way: JoinSet<Result<Told, StoreError>> = JoinSet::new();
        let (mut told, mut halt, mut over) = (Vec::new(), None, false);
        // Ends with the batches: each is begun once, and halved until it is a single record.
        loop {
            while !over && under_way.len() < self.in_flight {
                let Some((place, batch)) = left.pop_front() else { break };
                let (judge, namespace) = (Arc::clone(self), namespace.to_owned());
                under_way.spawn(async move { judge.batch(&namespace, place, batch).await });
            }
            let Some(ended) = under_way.join_next().await else { break };
            let mut one = match ended {
                Ok(one) => one?,
                Err(died) => {
                    super::sessions::go_down(died);
                    continue;
                }
            };
            match &one.ended {
                Ended::Done(_) => unanswered = 0,
                Ended::TooLong(_) | Ended::Failed(_) => {}
                Ended::Waits(Waiting::Cap(_)) => over = true,
                Ended::Waits(Waiting::Unanswered(_)) => {
                    unanswered += 1;
                    over |= unanswered >= UNANSWERED_MAX;
                }
                Ended::Waits(Waiting::Needs(error)) => {
                    over = true;
                    let line = error.to_string();
                    let mut needs = self.needs.lock().unwrap_or_else(PoisonError::into_inner);
                    needs.get_or_insert(line.clone());
                    halt = Some(Halt::Needs(line));
                }
                Ended::Waits(Waiting::Stopped) => {
                    over = true;
                    halt = halt.or(Some(Halt::Stopped));
                }
            }
            for (half, batch) in one.halves.take().into_iter().flatten().enumerate() {
                let mut place = one.place.clone();
                place.push(half);
                left.push_back((place, batch));
                one.pairs.clear();
            }
            told.push(one);
        }
        // In the order in which they were asked, so that the same answers tell the same.
        told.sort_by(|one, other| one.place.cmp(&other.place));
        for one in told {
            heard.take(one, many);
        }
        let unasked: BTreeSet<usize> =
            left.iter().filter_map(|(place, _)| place.first().copied()).collect();
        if !unasked.is_empty() && halt.is_none() {
            heard.waits = true;
            let detail = format!("{} of {many} batches were not asked about", unasked.len());
            heard.note("not-asked", detail);
        }
        Ok(halt.map_or(Ok(()), Err))
    }

    async fn batch(
        &self,
        namespace: &str,
        place: Vec<usize>,
        batch: Batch,
    ) -> Result<Told, StoreError> {
        let (pairs, about) = (batch.pairs().collect(), batch.about());
        let whole = batch.clone();
        let rung = self.asker.ladder.rung();
        let (mut exchange, request) = Exchange::start(&self.judging, batch, rung);
        let whose = For {
            payer: Payer { namespace, session: None },
            account: Account::Own {
                task: RunId(Digest::of(&["judging", namespace])),
                purpose: Purpose::Consolidate,
                about: &about,
            },
            stop: &self.asker.cancel,
            returns: false,
            patience: Some(self.patience),
        };
        let mut paid = Paid::default();
        let ended = self.asker.talk(&mut exchange, request, whose, &mut paid).await?;
        if let Ended::Done(judged) = &ended
            && !judged.verdicts.is_empty()
        {
            self.asker.learn(&self.judging.way.model, (judged.rung, paid.refused)).await?;
        }
        let halves = match &ended {
            Ended::TooLong(_) => whole.halves(),
            Ended::Done(_) | Ended::Failed(_) | Ended::Waits(_) => None,
        };
        Ok(Told { place, pairs, ended, halves, paid })
    }
}

/// What asks `model` by its name, for somebody who waits for it; stops when `cancel` is cancelled.
pub(super) async fn asker(
    config: &Config,
    (model, model_name): (Model, &str),
    store: Store,
    (cancel, clock): (CancellationToken, fn() -> Timestamp),
) -> Result<Asker, StoreError> {
    let bearing = Bearing {
        patience: Duration::ZERO,
        grace: Duration::ZERO,
        closing: cancel.clone(),
        tell: |_| {},
        meters: None,
    };
    let setup = Setup {
        config,
        model,
        model_name,
        steady: Steady::new(store, bearing),
        patience: patience(config),
        tally: Arc::new(Tally::default()),
        cancel,
        grace: GRACE,
        clock,
    };
    setup.asker().await
}

/// Lays the settings over a way of asking.
pub(super) fn settle(way: &mut Way, config: &Config) {
    way.reply_tokens_max = way.reply_tokens_max.min(config.model.reply_tokens_max);
    way.temperature = config.model.temperature;
}

/// Somebody waits, or nothing is lost by waiting.
pub(super) fn patience(config: &Config) -> Patience {
    Patience::Waits { tries_max: config.limits.tries_max, wait_max: config.limits.wait_max }
}

impl Heard {
    fn take(&mut self, told: Told, many: usize) {
        let Told { place, pairs, ended, halves: _, paid } = told;
        self.asked.add(pairs.len(), paid);
        let here = format!("batch {} of {many}", place.first().map_or(1, |at| at + 1));
        let mut left_open = |rule: &'static str, why: String| {
            self.note(rule, format!("{here}: {why}; its pairs stay open"));
            self.waits = true;
        };
        match ended {
            Ended::Done(judged) => {
                for Finding { severity, rule, detail, .. } in judged.findings {
                    let detail = format!("{here}: {detail}");
                    self.findings.push(Finding { severity, rule, line: 0, detail });
                }
                self.verdicts.extend(judged.verdicts);
                self.judged.extend(pairs);
            }
            // Its halves were asked about.
            Ended::TooLong(_) if pairs.is_empty() => {}
            Ended::TooLong(error) => left_open("too-long", error.to_string()),
            Ended::Failed(error) => left_open("no-answer", error.to_string()),
            Ended::Waits(Waiting::Cap(reached)) => left_open("cap-reached", reached.to_string()),
            Ended::Waits(Waiting::Unanswered(error)) => left_open("no-answer", error.to_string()),
            // Told once, by whoever asked.
            Ended::Waits(Waiting::Needs(_) | Waiting::Stopped) => self.waits = true,
        }
    }

    fn note(&mut self, rule: &'static str, detail: String) {
        self.findings.push(Finding::new(Severity::Warning, rule, 0, detail));
    }
}

impl Asked {
    /// Whether anything was.
    pub fn is_something(&self) -> bool {
        self.pairs > 0
    }

    pub(super) fn add(&mut self, pairs: usize, paid: Paid) {
        self.pairs += pairs as u64;
        self.questions += u64::from(paid.asks);
        self.calls += u64::from(paid.calls);
        self.journaled += u64::from(paid.journaled);
        self.sent += paid.usage.prompt_tokens;
        self.cached += paid.usage.cached_tokens;
        self.answered += paid.usage.completion_tokens;
        self.cost_micros += paid.cost_micros;
    }
}

impl Talk for Exchange {
    type End = Judged;

    fn reply(&mut self, reply: &Reply) -> Next<Judged> {
        next(Exchange::reply(self, reply))
    }

    fn rung_refused(&mut self) -> Next<Judged> {
        next(Exchange::rung_refused(self))
    }

    fn stop(&mut self) -> Next<Judged> {
        next(Exchange::stop(self))
    }

    fn has_kept(&self) -> bool {
        self.kept() > 0
    }
}

pub(super) fn next<T>(step: Step<T>) -> Next<T> {
    match step {
        Step::Ask(request) => Next::Ask(request),
        Step::Done(end) => Next::End(end),
    }
}
