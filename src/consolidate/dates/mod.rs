//! Dates that are told relative to the day on which they were said: `yesterday`, `next Friday`, `in zwei Wochen`. Both
//! are kept, the words and the day. What can be read in two ways stays as it is: a wrong date is worse than none.

mod phrase;

use crate::domain::Timestamp;
use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use phrase::{Meaning, Unit, meanings};
use std::ops::Range;

/// The longest text whose dates are looked for, in bytes.
const TEXT_BYTES_MAX: usize = crate::domain::CLAIM_BYTES_MAX;
/// The furthest that a date is told relative to today, in units; more is no way to speak of a day.
const FAR_MAX: i64 = 400;

/// Words that tell a date, and which.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resolved {
    /// Where the words stand, in bytes.
    pub bytes: Range<usize>,
    /// The day, week, month or year in ISO 8601: `2026-11-20`, `2026-W48`, `2026-12`, `2027`.
    pub iso: String,
}

/// The dates that `text`, said at `at`, tells relative to that day (in UTC), in their order. English, German, Turkish,
/// Spanish, French and Japanese.
pub fn relative_dates(text: &str, at: Timestamp) -> Vec<Resolved> {
    let Some(day) = day(at).filter(|_| text.len() <= TEXT_BYTES_MAX) else { return Vec::new() };
    let mut found: Vec<Resolved> = meanings(text)
        .into_iter()
        .filter(|(bytes, _)| stands_free(text, bytes))
        .filter_map(|(bytes, meaning)| Some(Resolved { bytes, iso: resolve(day, meaning)? }))
        .collect();
    found.sort_by_key(|it| (it.bytes.start, std::cmp::Reverse(it.bytes.end)));
    let mut end = 0;
    found.retain(|it| {
        let apart = it.bytes.start >= end;
        end = end.max(it.bytes.end);
        apart
    });
    found
}

/// `text` with the date behind the words that tell it: `yesterday (2026-11-20)`. Doing it twice changes nothing.
pub fn annotate(text: &str, at: Timestamp) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut done = 0;
    for it in relative_dates(text, at) {
        let behind = text.get(it.bytes.end..).unwrap_or_default();
        whole.push_str(text.get(done..it.bytes.end).unwrap_or_default());
        done = it.bytes.end;
        if !is_dated(behind) {
            whole.extend([" (", &it.iso, ")"]);
        }
    }
    whole.push_str(text.get(done..).unwrap_or_default());
    whole
}

/// Whether a date in brackets follows, as [`annotate`] writes it.
fn is_dated(behind: &str) -> bool {
    let year = behind.strip_prefix(" (").and_then(|rest| rest.get(..4));
    year.is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit()))
}

fn day(at: Timestamp) -> Option<Date> {
    let stamp = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(stamp.to_zoned(TimeZone::UTC).date())
}

/// Whether the words are no part of a name, a path or a piece of code.
fn stands_free(text: &str, bytes: &Range<usize>) -> bool {
    let glue = |letter: char| matches!(letter, '_' | '/' | '\\' | '@' | '#' | '=');
    let before = text.get(..bytes.start).unwrap_or_default();
    let after = text.get(bytes.end..).unwrap_or_default();
    let mut behind = after.chars();
    let (next, then) = (behind.next(), behind.next());
    let hyphen = |letter: Option<char>| letter == Some('-');
    let dotted = next == Some('.') && then.is_some_and(char::is_alphanumeric);
    let called = next == Some('(');
    let code = before.bytes().filter(|byte| *byte == b'`').count() % 2 == 1;
    let last = before.chars().next_back();
    let glued = next.is_some_and(glue) || last.is_some_and(glue);
    !(code || glued || dotted || called || hyphen(next) || hyphen(last) || last == Some('.'))
}

fn resolve(day: Date, meaning: Meaning) -> Option<String> {
    match meaning {
        Meaning::Away(count, _) if count.abs() > FAR_MAX => None,
        Meaning::Away(count, Unit::Day) => iso(day.checked_add(count.days()).ok()?),
        Meaning::Away(count, Unit::Week) => iso(day.checked_add(count.weeks()).ok()?),
        Meaning::Away(count, Unit::Month) => iso(day.checked_add(count.months()).ok()?),
        Meaning::Away(count, Unit::Year) => iso(day.checked_add(count.years()).ok()?),
        Meaning::Whole(count, unit) => whole(day, count, unit),
        Meaning::Weekday(count, weekday) => iso(day.nth_weekday(count, weekday).ok()?),
        Meaning::WeekdayOfWeek(count, weekday) => {
            let monday = day.tomorrow().ok()?.nth_weekday(-1, Weekday::Monday).ok()?;
            let week = monday.checked_add(count.weeks()).ok()?;
            iso(week.checked_add(i64::from(weekday.to_monday_zero_offset()).days()).ok()?)
        }
    }
}

/// A week, month or year as a whole.
fn whole(day: Date, count: i64, unit: Unit) -> Option<String> {
    match unit {
        Unit::Day => iso(day.checked_add(count.days()).ok()?),
        Unit::Week => {
            let week = day.checked_add(count.weeks()).ok()?.iso_week_date();
            Some(format!("{:04}-W{:02}", week.year(), week.week()))
        }
        Unit::Month => {
            let month = day.first_of_month().checked_add(count.months()).ok()?;
            Some(format!("{:04}-{:02}", month.year(), month.month()))
        }
        Unit::Year => {
            Some(format!("{:04}", day.first_of_year().checked_add(count.years()).ok()?.year()))
        }
    }
}

fn iso(day: Date) -> Option<String> {
    (day.year() >= 0).then(|| day.to_string())
}

#[cfg(test)]
mod tests;
