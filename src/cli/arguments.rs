//! Parsing of arguments that several commands take: the beginning of an id, a date.

use super::output::{self, Failure, short};
use crate::adapters::clock;
use crate::domain::{Session, Timestamp};
use crate::memory_dir::is_day;
use crate::store::{IdPrefix, PrefixLookup, Store};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::io::{self, IsTerminal};

/// Parses a day, a month, a time, `today`, `yesterday` or the days ago, such as `7d`.
pub(super) fn date(text: &str) -> Result<Timestamp, String> {
    if let Some(days) = days_ago(text) {
        return Ok(clock::now().midnight().days_before(days));
    }
    let whole = match text.len() {
        7 => format!("{text}-01T00:00:00Z"),
        10 => format!("{text}T00:00:00Z"),
        _ => text.to_owned(),
    };
    Timestamp::parse(&whole).ok_or_else(|| {
        "expected a day such as 2026-11-21, yesterday or 7d, a month such as 2026-11, or a time in \
         RFC 3339"
            .to_owned()
    })
}

/// As [`date`], for the end of the day or month.
pub(super) fn date_end(text: &str) -> Result<Timestamp, String> {
    let at = date(text)?;
    if text.len() == 7 && days_ago(text).is_none() {
        let days = std::iter::successors(Some(at), |day| Some(day.next_midnight()));
        let last = days.take(31).take_while(|day| day.day().starts_with(text)).last();
        let next = last.unwrap_or(at).next_midnight();
        return Ok(Timestamp(next.0.saturating_sub(1)));
    }
    let is_day = is_day(text) || days_ago(text).is_some();
    Ok(if is_day { Timestamp(at.next_midnight().0.saturating_sub(1)) } else { at })
}

fn days_ago(text: &str) -> Option<u32> {
    match text {
        "today" => Some(0),
        "yesterday" => Some(1),
        _ => text.strip_suffix('d')?.parse().ok(),
    }
}

pub(super) fn prefix(text: &str) -> Result<IdPrefix, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("`{text}`: {error}")))
}

/// Asks whether to go on; where nobody can answer it fails with `refusal`.
pub(super) fn is_agreed(question: &str, refusal: String) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(refusal));
    }
    output::note(&format!("{question} [y/N]"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The one match of an id's beginning, or why there is not exactly one.
pub(super) fn one<T>(found: PrefixLookup<T>, what: &str, id: &str) -> Result<T, Failure> {
    match found {
        PrefixLookup::One(one) => Ok(*one),
        PrefixLookup::None => {
            let list = match what {
                "run" => "records runs",
                "job" => "jobs",
                "plan" => "consolidate log",
                "memory" => "memory list",
                "session" => "status --all",
                _ => "records",
            };
            Err(Failure::usage(format!(
                "no {what} begins with `{id}`: `annalist {list}` lists them"
            )))
        }
        PrefixLookup::Many(ids) => {
            let ids: Vec<String> = ids.iter().map(short).collect();
            Err(Failure::usage(format!(
                "`{id}` fits more than one {what}: {}: give more digits",
                ids.join(", ")
            )))
        }
    }
}

/// The session that `id` names: by our id or its client's, or by the beginning of one.
pub(super) async fn session(store: &Store, id: &str) -> Result<Session, Failure> {
    one(store.session_named(id).await?, "session", id)
}

/// As [`session`], for a filter.
pub(super) async fn session_of(
    store: &Store,
    id: Option<&str>,
) -> Result<Option<Session>, Failure> {
    match id {
        Some(id) => session(store, id).await.map(Some),
        None => Ok(None),
    }
}

/// Parses the name of one of `all`; help lists the names.
pub(super) fn named<T: Copy + Send + Sync>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let parser = PossibleValuesParser::new(all.iter().map(|it| name(*it)));
    parser
        .try_map(move |text| all.iter().copied().find(|it| name(*it) == text).ok_or("unknown name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_from_its_first_day_to_the_end_of_its_last() {
        let day = |text: &str| Timestamp::parse(text).unwrap();
        assert_eq!(date("2026-11"), Ok(day("2026-11-01T00:00:00Z")));
        for (month, next) in
            [("2026-11", "2026-12-01"), ("2026-12", "2027-01-01"), ("2028-02", "2028-03-01")]
        {
            let next = day(&format!("{next}T00:00:00Z"));
            assert_eq!(date_end(month), Ok(Timestamp(next.0 - 1)), "{month}");
        }
        assert!(date("2026-13").is_err() && date("soon").is_err() && date("7d").is_ok());
    }
}
