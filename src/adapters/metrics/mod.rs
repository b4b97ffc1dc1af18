//! Metrics of a worker: `/metrics` for Prometheus and `/healthz` for whatever restarts it. Names, kinds
//! and counts only: no id of a session, no namespace, no word of a conversation. `docs/metrics.md` lists
//! every series.

mod meters;
mod pages;

#[cfg(test)]
mod checker_test;
#[cfg(test)]
mod tests;

pub use meters::Outcome;
pub(crate) use meters::{Jobs, Meters, Snapshot};
pub(crate) use pages::{Health, StatusPages};
