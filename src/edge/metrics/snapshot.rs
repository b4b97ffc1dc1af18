//! What stands in the store, as numbers. The caller counts, this only writes them down.

use super::label::Labels;
use crate::domain::{Coverage, CoverageState, JobState, Wait};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The queue and what became of everything, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Jobs by state; a state that is left out has none.
    pub jobs: BTreeMap<JobState, Jobs>,
    /// Jobs that wait, by why; a reason that is left out holds none back.
    pub waiting: BTreeMap<Wait, u64>,
    /// Entries by what became of them.
    pub coverage: Coverage,
}

/// The jobs in one state.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Jobs {
    /// How many.
    pub jobs: u64,
    /// How long ago the oldest of them came into the queue; none where there is none, or it does not
    /// matter.
    pub oldest: Option<Duration>,
}

/// The series of the store; where it did not answer, only that.
pub(super) fn registry(snapshot: Option<&Snapshot>) -> Registry {
    let mut registry = Registry::with_prefix("annalist");
    let up: Gauge = Gauge::default();
    up.set(i64::from(snapshot.is_some()));
    registry.register("store_up", "1 if the store answered for this page", up);
    let Some(Snapshot { jobs, waiting, coverage }) = snapshot else { return registry };
    let of = |state: &JobState| jobs.get(state).copied().unwrap_or_default();
    // Those that are done are not counted: there may be millions of them.
    let counted: Vec<&JobState> =
        JobState::ALL.iter().filter(|it| !matches!(it, JobState::Done | JobState::Cut)).collect();
    let count = counted.iter().map(|state| (state.name(), of(state).jobs));
    registry.register(
        "jobs",
        "Jobs in the store that are open, dead or called off",
        gauges("state", count),
    );
    let ages = Family::<Labels<1>, Gauge<f64, AtomicU64>>::default();
    for state in counted {
        let secs = of(state).oldest.unwrap_or_default().as_secs_f64();
        ages.get_or_create(&[("state", state.name())]).set(secs);
    }
    let help = "Age of the oldest job; 0 where there is none";
    registry.register("oldest_job_age_seconds", help, ages);
    let held = |why: &Wait| waiting.get(why).copied().unwrap_or_default();
    let count = Wait::ALL.iter().map(|why| (why.name(), held(why)));
    registry.register("waiting_jobs", "Jobs that wait, by why", gauges("reason", count));
    let Coverage { extracted, nothing, skipped, failed, pending } = *coverage;
    let count = [
        (CoverageState::Extracted, extracted),
        (CoverageState::Nothing, nothing),
        (CoverageState::Skipped, skipped),
        (CoverageState::Failed, failed),
        (CoverageState::Pending, pending),
    ]
    .map(|(state, count)| (state.name(), count));
    let help = "Entries in the store, by what became of them";
    registry.register("entries", help, gauges("state", count));
    registry
}

fn gauges(
    label: &'static str,
    counts: impl IntoIterator<Item = (&'static str, u64)>,
) -> Family<Labels<1>, Gauge> {
    let family = Family::<Labels<1>, Gauge>::default();
    for (value, count) in counts {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        family.get_or_create(&[(label, value)]).set(count);
    }
    family
}
