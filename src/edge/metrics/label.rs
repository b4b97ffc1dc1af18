//! Labels. A value is text of this program, never of what it reads, so that the number of series is
//! known when it is compiled.

use crate::domain::ErrorKind;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// Labels with their values.
pub(super) type Labels<const N: usize> = [(&'static str, &'static str); N];
/// Counters by these labels.
pub(super) type Counters<const N: usize> = Family<Labels<N>, Counter>;

/// How the claim of a job ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Its records are stored, be it none.
    Done,
    /// Its slice had been extracted before; no call was made.
    Known,
    /// It was too long and became two jobs or more.
    Cut,
    /// It had no answer and is tried again later; the attempt counts.
    Retried,
    /// It was given back and the attempt does not count: a cap, a rate limit, somebody who asked to
    /// stop.
    Released,
    /// It failed for good.
    Dead,
    /// Its lease ran out and another worker took it; nothing of ours was stored.
    Lost,
}

impl Outcome {
    /// Every value.
    pub const ALL: [Outcome; 7] = [
        Outcome::Done,
        Outcome::Known,
        Outcome::Cut,
        Outcome::Retried,
        Outcome::Released,
        Outcome::Dead,
        Outcome::Lost,
    ];

    /// The name in metrics and traces.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Known => "known",
            Outcome::Cut => "cut",
            Outcome::Retried => "retried",
            Outcome::Released => "released",
            Outcome::Dead => "dead",
            Outcome::Lost => "lost",
        }
    }
}

/// How a call ends that went well.
pub(super) const OK: &str = "ok";
/// The sorts of tokens, in the order of their places in a bill.
pub(super) const SORTS: [&str; 3] = ["sent", "cached", "answered"];
/// What becomes of a new record.
pub(super) const RECORD_STATES: [&str; 2] = ["staged", "quarantined"];
/// What calls are made again after, by [`ErrorKind::name`].
pub(super) const RETRIED: [&str; 2] = ["rate-limited", "unavailable"];

/// The kinds of errors by name. One that is missing here is counted all the same.
pub(super) fn error_kinds() -> [&'static str; 10] {
    let wait = None;
    [
        ErrorKind::RateLimited { wait },
        ErrorKind::QuotaExhausted,
        ErrorKind::Unavailable { wait },
        ErrorKind::TooLong,
        ErrorKind::Unsupported,
        ErrorKind::Unauthorised,
        ErrorKind::NotFound,
        ErrorKind::BadRequest,
        ErrorKind::Stale,
        ErrorKind::Cancelled,
    ]
    .map(|kind| kind.name())
}

/// Counters with every series there from the beginning: an alert on one that is missing says nothing.
pub(super) fn counters<const N: usize>(series: impl IntoIterator<Item = Labels<N>>) -> Counters<N> {
    let family = Counters::default();
    for labels in series {
        drop(family.get_or_create(&labels));
    }
    family
}

/// Every value of one label.
pub(super) fn each(
    label: &'static str,
    values: impl IntoIterator<Item = &'static str>,
) -> impl Iterator<Item = Labels<1>> {
    values.into_iter().map(move |value| [(label, value)])
}
