//! Metrics of a worker: `/metrics` for Prometheus and `/healthz` for a supervisor. Contains names,
//! kinds and counts only: no session ids, namespaces or conversation text. `docs/metrics.md` lists
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
