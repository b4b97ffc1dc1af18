//! What stands in the store, as numbers. The caller counts, this only writes them down.

use crate::domain::Coverage;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The queue and what became of everything, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Jobs by state; a state without jobs is listed too, so that its series is there.
    pub jobs: Vec<JobsInState>,
    /// Jobs that are held back, by reason; again with every reason.
    pub waiting: Vec<Waiting>,
    /// Entries by what became of them.
    pub coverage: Coverage,
}

/// The jobs in one state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobsInState {
    /// The state's name.
    pub state: &'static str,
    /// How many.
    pub jobs: u64,
    /// How long the oldest of them has been in the queue; none where there is none.
    pub oldest: Option<Duration>,
}

/// Jobs that one thing holds back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Waiting {
    /// What holds them back: the name of a setting or of a rule, never of a session or a namespace.
    pub reason: &'static str,
    /// How many.
    pub jobs: u64,
}

type Label = [(&'static str, &'static str); 1];

/// The series of the store; where it did not answer, only that.
pub(super) fn registry(snapshot: Option<&Snapshot>) -> Registry {
    let mut registry = Registry::with_prefix("annalist");
    let up: Gauge = Gauge::default();
    up.set(i64::from(snapshot.is_some()));
    registry.register("store_up", "1 if the store answered for this page", up);
    let Some(Snapshot { jobs, waiting, coverage }) = snapshot else { return registry };
    let (count, age) = (Family::default(), Family::<Label, Gauge<f64, AtomicU64>>::default());
    for JobsInState { state, jobs, oldest } in jobs {
        add(&count, "state", (state, *jobs));
        let secs = oldest.unwrap_or_default().as_secs_f64();
        let oldest = age.get_or_create_owned(&[("state", *state)]);
        oldest.set(oldest.get().max(secs));
    }
    registry.register("jobs", "Jobs in the store", count);
    let help = "Age of the oldest job; 0 where there is none";
    registry.register("oldest_job_age_seconds", help, age);
    let held = Family::default();
    waiting.iter().for_each(|waiting| add(&held, "reason", (waiting.reason, waiting.jobs)));
    registry.register("waiting_jobs", "Jobs that are held back, by what holds them", held);
    let entries = Family::default();
    let Coverage { extracted, nothing, skipped, failed, pending } = *coverage;
    for (state, count) in [
        ("extracted", extracted),
        ("nothing", nothing),
        ("skipped", skipped),
        ("failed", failed),
        ("pending", pending),
    ] {
        add(&entries, "state", (state, count));
    }
    registry.register("entries", "Entries in the store, by what became of them", entries);
    registry
}

fn add(family: &Family<Label, Gauge>, label: &'static str, (value, count): (&'static str, u64)) {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    family.get_or_create(&[(label, value)]).inc_by(count);
}
