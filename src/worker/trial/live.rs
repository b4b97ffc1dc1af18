//! A run that asks the endpoint: every slice of every case at once, within the pace, the rates and the caps of
//! the settings, through the journal of their store. Keeps what was answered as recordings, if it is to.

use super::ask::{self, Heard};
use super::ask_once::AskOnce;
use super::judge::{broken, judge};
use super::prepare::{Broken, Prepared, prepare};
use super::record::{Recorded, Recording};
use super::report::{Done, report};
use super::{Trial, Tried, Unused};
use crate::domain::{Rung, Timestamp};
use crate::edge::model::Endpoint;
use crate::edge::store::{Store, StoreError};
use crate::score::{Shown, Tolerances};
use crate::worker::asking::{Model, Patience};
use crate::worker::sessions::go_down;
use crate::worker::setup::Setup;
use crate::worker::steady::{Bearing, Steady};
use crate::worker::talk::Ladder;
use crate::worker::tally::Tally;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long a call under way is waited for once somebody asked to stop.
const GRACE: Duration = Duration::from_secs(5);
/// Slices in a row without an answer after which the others are not tried.
const UNANSWERED_MAX: u32 = 5;

/// Whom cases are asked about.
pub struct LiveModel {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Where answers are journaled.
    pub store: Store,
    /// Stops it.
    pub cancel: CancellationToken,
    /// Counts it: slices, tokens, money.
    pub tally: Arc<Tally>,
    /// Tells the time.
    pub clock: fn() -> Timestamp,
}

/// A variation and a case.
type Pair = (usize, usize);

impl Trial {
    /// Runs every case with every variation on an endpoint; gives the recordings of the cases that were answered
    /// whole, and what keeps it from going on, if only a person can mend that.
    ///
    /// # Errors
    /// The store's.
    pub async fn live(
        self,
        asked: LiveModel,
    ) -> Result<(Tried, Vec<Recording>, Option<String>), StoreError> {
        let LiveModel { endpoint, store, cancel, tally, clock } = asked;
        let known = store.clone();
        let mut asker = None;
        let mut lines = Vec::new();
        let steady = Steady::new(store, bearing(&cancel));
        let mut model = Some(Model::Endpoint(Box::new(endpoint)));
        for variation in &self.variations {
            let name = variation.model.as_deref().unwrap_or(&self.config.model.model);
            let learned = known.capability(&self.config.model.base_url, name).await?;
            let rung = self.config.model.rung.or(learned).unwrap_or(Rung::ForcedTool);
            if let Some(model) = model.take() {
                let limits = &self.config.limits;
                let patience =
                    Patience::Waits { tries_max: limits.tries_max, wait_max: limits.wait_max };
                let setup = Setup {
                    config: &self.config,
                    model,
                    model_name: name,
                    steady: steady.clone(),
                    patience,
                    tally: Arc::clone(&tally),
                    cancel: cancel.clone(),
                    grace: GRACE,
                    clock,
                };
                let questions = self.config.model.concurrency;
                asker = Some(Arc::new(AskOnce::new(setup.asker().await?, questions)));
            }
            lines.push(Arc::new(Ladder::new(rung)));
        }
        let mut cases: BTreeMap<Pair, Result<Arc<Prepared>, Broken>> = BTreeMap::new();
        for (nth, variation) in self.variations.iter().enumerate() {
            for (at, place) in self.cases.iter().enumerate() {
                cases.insert(
                    (nth, at),
                    prepare((&self.config, &self.recordings), place, variation).map(Arc::new),
                );
            }
        }
        let stop = Arc::new(Stopping { cancel, ..Stopping::default() });
        let mut heard = BTreeMap::new();
        if let Some(asker) = &asker {
            heard = ask_all(&cases, asker, &lines, (&stop, &tally)).await?;
        }
        let heard = whole(&cases, heard, asker.as_deref().map(|it| (it, &stop))).await?;
        let (tried, recordings) = self.judged(cases, heard);
        let why = stop.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok((tried, recordings, why))
    }

    fn judged(
        &self,
        mut cases: BTreeMap<Pair, Result<Arc<Prepared>, Broken>>,
        mut heard: BTreeMap<Pair, Vec<Heard>>,
    ) -> (Tried, Vec<Recording>) {
        let (mut done, mut recordings) = (Vec::new(), Recorded::default());
        for nth in 0..self.variations.len() {
            let mut of = Vec::new();
            for (at, place) in self.cases.iter().enumerate() {
                let prepared = cases.remove(&(nth, at));
                of.push(match prepared {
                    Some(Ok(case)) => {
                        let heard = heard.remove(&(nth, at)).unwrap_or_default();
                        recordings.add(&case, &heard);
                        let (report, shown) = judge(&case, heard);
                        Done {
                            report,
                            shown,
                            tolerances: case.case.tolerances,
                            unused: Unused::default(),
                        }
                    }
                    Some(Err(why)) => left(&place.name, why),
                    None => left(&place.name, "was not asked about".to_owned().into()),
                });
            }
            done.push(of);
        }
        (report(self, done), recordings.finish())
    }
}

pub(super) fn left(name: &str, why: Broken) -> Done {
    let (shown, tolerances) = (Shown::default(), Tolerances::default());
    Done { report: broken(name, why), shown, tolerances, unused: Unused::default() }
}

/// What was heard of each case, slice by slice, with what its records are compared by.
async fn whole(
    cases: &BTreeMap<Pair, Result<Arc<Prepared>, Broken>>,
    mut heard: BTreeMap<(Pair, usize), Heard>,
    by: Option<(&AskOnce, &Arc<Stopping>)>,
) -> Result<BTreeMap<Pair, Vec<Heard>>, StoreError> {
    let mut whole = BTreeMap::new();
    for (pair, case) in cases {
        let Ok(case) = case else { continue };
        let slices = 0..case.slices().count();
        let of = slices.map(|slice| heard.remove(&(*pair, slice)).unwrap_or_else(unheard));
        let mut of: Vec<Heard> = of.collect();
        if let Some((asker, stop)) = by.filter(|(_, stop)| !stop.cancel.is_cancelled()) {
            ask::vectors(case, &mut of, Some((asker, &stop.cancel))).await?;
            of.iter().for_each(|heard| stop.after(heard));
        }
        whole.insert(*pair, of);
    }
    Ok(whole)
}

fn unheard() -> Heard {
    Heard { waits: Some("stopped before it was asked about".to_owned()), ..Heard::default() }
}

/// Somebody waits: a store in trouble is told at once.
fn bearing(cancel: &CancellationToken) -> Bearing {
    Bearing {
        patience: Duration::ZERO,
        grace: Duration::ZERO,
        closing: cancel.clone(),
        tell: |_| {},
        meters: None,
    }
}

/// When to stop asking, and why.
#[derive(Default)]
struct Stopping {
    cancel: CancellationToken,
    unanswered: Mutex<u32>,
    why: Mutex<Option<String>>,
}

impl Stopping {
    fn after(&self, heard: &Heard) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        *unanswered = if heard.waits.is_some() { *unanswered + 1 } else { 0 };
        let Some(why) = &heard.waits else { return };
        if heard.stops || *unanswered >= UNANSWERED_MAX {
            let mut told = self.why.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.cancel.is_cancelled() {
                told.get_or_insert_with(|| why.clone());
            }
            self.cancel.cancel();
        }
    }
}

/// Asks about every slice of every case; the asker's pace says how many at once.
async fn ask_all(
    cases: &BTreeMap<Pair, Result<Arc<Prepared>, Broken>>,
    asker: &Arc<AskOnce>,
    ladders: &[Arc<Ladder>],
    (stop, tally): (&Arc<Stopping>, &Arc<Tally>),
) -> Result<BTreeMap<(Pair, usize), Heard>, StoreError> {
    let mut asking = JoinSet::new();
    for (pair, case) in cases {
        let (Ok(case), Some(ladder)) = (case, ladders.get(pair.0)) else { continue };
        let slices = case.slices().count();
        tally.with(|totals| totals.slices += slices as u64);
        for slice in 0..slices {
            let (case, asker, ladder) = (Arc::clone(case), Arc::clone(asker), Arc::clone(ladder));
            let (pair, stop, tally) = (*pair, Arc::clone(stop), Arc::clone(tally));
            asking.spawn(async move {
                if stop.cancel.is_cancelled() {
                    return Ok(((pair, slice), unheard()));
                }
                let heard = one(&case, slice, (&asker, &ladder, &stop.cancel)).await?;
                stop.after(&heard);
                tally.with(|totals| totals.slices_done += 1);
                Ok(((pair, slice), heard))
            });
        }
    }
    let mut all = BTreeMap::new();
    while let Some(done) = asking.join_next().await {
        match done {
            Ok(heard) => all.extend([heard?]),
            Err(died) => go_down(died),
        }
    }
    Ok(all)
}

async fn one(
    case: &Prepared,
    slice: usize,
    (asker, ladder, stop): (&AskOnce, &Ladder, &CancellationToken),
) -> Result<Heard, StoreError> {
    let Some(of) = case.slices().nth(slice) else { return Ok(unheard()) };
    let (heard, worked) = ask::model(case, of, (asker, ladder.rung(), stop)).await?;
    if let Some((rung, refused)) = worked {
        ladder.learn(rung, refused.0);
    }
    Ok(heard)
}
