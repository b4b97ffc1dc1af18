//! The section `[consolidate]`: when a worker makes memory of the records that wait in a namespace, and whether a model
//! is asked what no rule decides.

use serde::Deserialize;
use std::time::Duration;

/// How records become memory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Consolidate {
    /// When a worker does it.
    pub thresholds: Thresholds,
    /// The model that is asked what no rule decides, by its name at the endpoint; none asks nobody.
    pub model: Option<String>,
}

/// When records are consolidated. What is 0 is no reason; where all are, a worker never does it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Thresholds {
    /// So many records wait.
    pub records: u64,
    /// Their claims take so many bytes.
    pub bytes: u64,
    /// Nothing was staged for so long.
    pub idle: Duration,
    /// How long after the last time it is done again at the earliest.
    pub cool_down: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConsolidate {
    model: String,
    records: u32,
    bytes: u32,
    idle_secs: u32,
    cool_down_secs: u32,
}

/// Every number makes sense.
pub(super) fn read(raw: &RawConsolidate) -> Consolidate {
    let model = raw.model.trim();
    Consolidate {
        thresholds: Thresholds {
            records: u64::from(raw.records),
            bytes: u64::from(raw.bytes),
            idle: Duration::from_secs(u64::from(raw.idle_secs)),
            cool_down: Duration::from_secs(u64::from(raw.cool_down_secs)),
        },
        model: (!model.is_empty()).then(|| model.to_owned()),
    }
}
