//! Dates that are told relative to the day on which they were said: `yesterday`, `next Friday`, `in two weeks`. Both
//! are kept, the words and the day. Ambiguous words stay as they are: a wrong date is worse than none.

use crate::domain::{CLAIM_BYTES_MAX, Timestamp};
use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use regex::{Captures, Regex};
use std::ops::Range;
use std::sync::LazyLock;

/// The furthest relative date, in units; more is no way to speak of a day.
const FAR_MAX: i64 = 400;

/// Meaning of the words of a row, seen from the day on which they were said.
#[derive(Clone, Copy)]
enum Phrase {
    Days(i64),
    Count(i64),
    Weekday(i32),
    Whole(i64),
}

const NUMBERS: [&str; 10] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
/// Patterns; `N`, `U` and `D` stand for numbers, units and weekdays, blanks for any blanks.
const ROWS: [(&str, Phrase); 12] = [
    ("day before yesterday", Phrase::Days(-2)),
    ("day after tomorrow", Phrase::Days(2)),
    ("yesterday", Phrase::Days(-1)),
    ("today", Phrase::Days(0)),
    ("tomorrow", Phrase::Days(1)),
    ("N U ago", Phrase::Count(-1)),
    ("in N U", Phrase::Count(1)),
    ("N U from now", Phrase::Count(1)),
    ("next D", Phrase::Weekday(1)),
    ("last D", Phrase::Weekday(-1)),
    ("next U", Phrase::Whole(1)),
    ("last U", Phrase::Whole(-1)),
];
/// Words before `in two days` that make a duration of it.
const BEFORE_DURATION: &str = "every|each|within|took|done|ran|run|runs|built|once|twice|times|per";

static PATTERNS: LazyLock<Vec<(Regex, Phrase)>> = LazyLock::new(|| {
    let number = format!(r"(?P<n>\d{{1,3}}|an?|{})", NUMBERS.join("|"));
    let weekday = format!("(?P<d>{})", WEEKDAYS.map(|(name, _)| name).join("|"));
    let pattern = |row: &str| {
        let row = row.replace('N', &number).replace('D', &weekday);
        let row = row.replace('U', "(?P<u>day|week|month|year)s?").replace(' ', r"\s+");
        Regex::new(&format!(r"(?i)\b{row}\b"))
    };
    ROWS.iter().filter_map(|(row, phrase)| Some((pattern(row).ok()?, *phrase))).collect()
});

/// The dates that `text`, said at `at`, tells relative to that day (in UTC), in their order: the bytes of the words, and
/// the day, week, month or year in ISO 8601: `2026-11-20`, `2026-W48`, `2026-12`, `2027`.
pub(super) fn relative_dates(text: &str, at: Timestamp) -> Vec<(Range<usize>, String)> {
    let Some(day) = day(at).filter(|_| text.len() <= CLAIM_BYTES_MAX) else { return Vec::new() };
    let mut found = Vec::new();
    for (regex, phrase) in PATTERNS.iter() {
        for groups in regex.captures_iter(text) {
            let Some(words) = groups.get(0).filter(|it| stands_free(text, &it.range())) else {
                continue;
            };
            let iso = resolve(day, *phrase, &groups).filter(|_| is_date(text, words.start()));
            found.extend(iso.map(|iso| (words.range(), iso)));
        }
    }
    found.sort_by_key(|(bytes, _)| (bytes.start, std::cmp::Reverse(bytes.end)));
    let mut end = 0;
    found.retain(|(bytes, _)| {
        let apart = bytes.start >= end;
        end = end.max(bytes.end);
        apart
    });
    found
}

/// `text` with the date behind the words that tell it: `yesterday (2026-11-20)`. Doing it twice changes nothing.
pub(super) fn annotate(text: &str, at: Timestamp) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut done = 0;
    for (bytes, iso) in relative_dates(text, at) {
        whole.push_str(text.get(done..bytes.end).unwrap_or_default());
        done = bytes.end;
        let behind = text.get(done..).unwrap_or_default().strip_prefix(" (");
        let year = behind.and_then(|rest| rest.get(..4));
        if !year.is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit())) {
            whole.extend([" (", &iso, ")"]);
        }
    }
    whole.push_str(text.get(done..).unwrap_or_default());
    whole
}

fn day(at: Timestamp) -> Option<Date> {
    let stamp = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(stamp.to_zoned(TimeZone::UTC).date())
}

/// False for words that are part of a name, a path or a piece of code.
fn stands_free(text: &str, bytes: &Range<usize>) -> bool {
    let glue = |letter: char| matches!(letter, '_' | '/' | '\\' | '@' | '#' | '=' | '-');
    let before = text.get(..bytes.start).unwrap_or_default();
    let mut behind = text.get(bytes.end..).unwrap_or_default().chars();
    let (last, next, then) = (before.chars().next_back(), behind.next(), behind.next());
    let dotted = next == Some('.') && then.is_some_and(char::is_alphanumeric);
    let code = before.bytes().filter(|byte| *byte == b'`').count() % 2 == 1;
    let glued = next.is_some_and(glue) || last.is_some_and(glue);
    !(code || glued || dotted || next == Some('(') || last == Some('.'))
}

/// False for `built in two days`, a duration.
fn is_date(text: &str, start: usize) -> bool {
    let (before, words) = text.split_at_checked(start).unwrap_or_default();
    let last = before.trim_end().rsplit(|letter: char| !letter.is_alphanumeric()).next();
    let last = last.unwrap_or_default().to_lowercase();
    let spent = last.ends_with("ed") || BEFORE_DURATION.split('|').any(|word| word == last);
    !(spent && words.get(..3).is_some_and(|head| head.trim_end().eq_ignore_ascii_case("in")))
}

fn resolve(day: Date, phrase: Phrase, groups: &Captures<'_>) -> Option<String> {
    let group = |name: &str| groups.name(name).map(|it| it.as_str().to_lowercase());
    let then = match phrase {
        Phrase::Days(count) => day.checked_add(count.days()),
        Phrase::Count(sign) => {
            let count = sign * number(&group("n")?).filter(|count| *count <= FAR_MAX)?;
            match group("u")?.as_str() {
                "day" => day.checked_add(count.days()),
                "week" => day.checked_add(count.weeks()),
                "month" => day.checked_add(count.months()),
                _ => day.checked_add(count.years()),
            }
        }
        Phrase::Weekday(count) => {
            let name = group("d")?;
            let (_, weekday) = WEEKDAYS.into_iter().find(|(it, _)| *it == name)?;
            day.nth_weekday(count, weekday)
        }
        Phrase::Whole(count) => return whole(day, count, &group("u")?),
    };
    then.ok().filter(|day| day.year() >= 0).map(|day| day.to_string())
}

fn number(word: &str) -> Option<i64> {
    if matches!(word, "a" | "an") {
        return Some(1);
    }
    let named = NUMBERS.iter().position(|it| *it == word).and_then(|at| i64::try_from(at + 1).ok());
    named.or_else(|| word.parse().ok())
}

/// A week, month or year as a whole; `the last days` name no day.
fn whole(day: Date, count: i64, unit: &str) -> Option<String> {
    match unit {
        "week" => {
            let week = day.checked_add(count.weeks()).ok()?.iso_week_date();
            Some(format!("{:04}-W{:02}", week.year(), week.week()))
        }
        "month" => {
            let month = day.first_of_month().checked_add(count.months()).ok()?;
            Some(format!("{:04}-{:02}", month.year(), month.month()))
        }
        "year" => {
            let year = day.first_of_year().checked_add(count.years()).ok()?;
            Some(format!("{:04}", year.year()))
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "dates_test.rs"]
mod tests;
