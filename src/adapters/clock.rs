//! The only reader of the clock; everything else takes the time as an argument.

use crate::domain::Timestamp;
use jiff::tz::TimeZone;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Current time in milliseconds since 1970 UTC; 0 if the clock is set before that.
#[expect(clippy::disallowed_methods, reason = "this is edge::clock")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Time zone of this machine; UTC if unknown.
pub(crate) fn zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// Day of `at` in the time zone of this machine, for people.
pub(crate) fn local_day(at: Timestamp) -> String {
    at.date_in(&zone()).to_string()
}

/// Day and minute of `at` in the time zone of this machine, for people.
pub(crate) fn local_minute(at: Timestamp) -> String {
    at.civil_in(&zone()).strftime("%F %H:%M").to_string()
}

/// Compares the wall clock, which people and networks set, with the monotonic clock.
#[derive(Debug)]
pub(crate) struct Drift {
    wall: Timestamp,
    steady: Instant,
}

impl Drift {
    pub(crate) fn new(now: Timestamp) -> Drift {
        Drift { wall: now, steady: Instant::now() }
    }

    /// Milliseconds by which the wall clock advanced more than the monotonic clock since the last
    /// call; negative if it was set back.
    pub(crate) fn since_last(&mut self, now: Timestamp) -> i64 {
        let passed = i64::try_from(self.steady.elapsed().as_millis()).unwrap_or(i64::MAX);
        let ahead = (now.0 - self.wall.0).saturating_sub(passed);
        *self = Drift::new(now);
        ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_drifts_once() {
        let noon = Timestamp(43_200_000);
        let mut drift = Drift::new(noon);
        let hour = 3_600_000;
        // Less than a minute passes between two calls.
        let near = |millis: i64, expected: i64| (expected - 60_000..=expected).contains(&millis);
        assert!(near(drift.since_last(Timestamp(noon.0 - hour)), -hour));
        assert!(near(drift.since_last(Timestamp(noon.0 - hour)), 0));
        assert!(near(drift.since_last(Timestamp(noon.0 + hour)), 2 * hour));
    }
}
