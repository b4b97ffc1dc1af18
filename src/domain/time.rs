//! A point in time, in milliseconds since 1970 UTC. The core receives it and never reads a clock.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Milliseconds per day.
const DAY_MILLIS: i64 = 86_400_000;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Clone,
    Copy,
    Debug,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    schemars::JsonSchema,
    Serialize,
    Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Parses RFC 3339 with a zone, such as `2026-11-21T09:00:00Z`.
    pub fn of_rfc3339(text: &str) -> Option<Timestamp> {
        let stamp: jiff::Timestamp = text.parse().ok()?;
        Some(Timestamp(stamp.as_millisecond()))
    }

    /// Like [`Timestamp::of_rfc3339`], but reads a time without a zone as UTC.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let text = text.trim();
        if let Some(stamp) = Timestamp::of_rfc3339(text) {
            return Some(stamp);
        }
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
        Some(Timestamp(zoned.timestamp().as_millisecond()))
    }

    /// Converts fractional seconds, as found in exports.
    pub fn from_secs(secs: f64) -> Option<Timestamp> {
        let millis = secs * 1000.0;
        (millis.is_finite() && millis.abs() < 8.0e15).then_some(Timestamp(millis as i64))
    }

    /// Adds `wait`.
    pub fn after(self, wait: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Start of this day, in UTC.
    pub fn midnight(self) -> Timestamp {
        Timestamp(self.0 - self.0.rem_euclid(DAY_MILLIS))
    }

    /// Start of the next day, in UTC.
    pub fn next_midnight(self) -> Timestamp {
        Timestamp(self.midnight().0.saturating_add(DAY_MILLIS))
    }

    /// Date in `zone`.
    pub(crate) fn date_in(self, zone: &TimeZone) -> Date {
        self.civil_in(zone).date()
    }

    /// Date and time of day in `zone`.
    pub(crate) fn civil_in(self, zone: &TimeZone) -> DateTime {
        let stamp = jiff::Timestamp::from_millisecond(self.0).unwrap_or_default();
        stamp.to_zoned(zone.clone()).datetime()
    }

    /// Start of `date` in `zone`; the minimum or maximum timestamp if out of range.
    pub(crate) fn beginning_of(date: Date, zone: &TimeZone) -> Timestamp {
        let beyond = if date.year() < 1970 { i64::MIN } else { i64::MAX };
        let first = date.to_zoned(zone.clone());
        Timestamp(first.map_or(beyond, |first| first.timestamp().as_millisecond()))
    }

    /// Time since `earlier`; zero if negative.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Day in UTC, such as `2026-11-21`.
    pub fn day(self) -> String {
        let text = match jiff::Timestamp::from_millisecond(self.0) {
            Ok(stamp) => TimeZone::UTC.to_datetime(stamp).date().to_string(),
            Err(_) => self.to_string(),
        };
        text.chars().take(10).collect()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(stamp) => f.pad(&stamp.to_string()),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_or_none_both_read() {
        let with_zone = Timestamp::parse("2026-11-21T09:00:00.250Z").unwrap();
        assert_eq!(Timestamp::parse("2026-11-21T09:00:00.250"), Some(with_zone));
        assert_eq!(Timestamp::parse("2026-11-21 09:00:00.25"), Some(with_zone));
        assert_eq!(with_zone.to_string(), "2026-11-21T09:00:00.25Z");
        assert_eq!(Timestamp::parse("yesterday"), None);
        assert_eq!(Timestamp::of_rfc3339("2026-11-21T10:00:00.25+01:00"), Some(with_zone));
        assert_eq!(Timestamp::of_rfc3339("2026-11-21T09:00:00.250"), None);
    }
}
