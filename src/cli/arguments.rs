//! Parsing of arguments that several commands take: the beginning of an id, a date.

use super::output::{self, Failure, short};
use crate::adapters::clock;
use crate::domain::Timestamp;
use crate::memory_dir::is_day;
use crate::store::{IdPrefix, PrefixLookup};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::io::{self, IsTerminal};

/// Parses a day, a time, `today`, `yesterday` or the days ago, such as `7d`.
pub(super) fn date(text: &str) -> Result<Timestamp, String> {
    if let Some(days) = days_ago(text) {
        return Ok(clock::now().midnight().days_before(days));
    }
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    Timestamp::parse(&whole).ok_or_else(|| {
        "expected a day such as 2026-11-21, yesterday or 7d, or a time in RFC 3339".to_owned()
    })
}

/// As [`date`], for the end of the day.
pub(super) fn date_end(text: &str) -> Result<Timestamp, String> {
    let at = date(text)?;
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

/// Parses the name of one of `all`; help lists the names.
pub(super) fn named<T: Copy + Send + Sync>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let parser = PossibleValuesParser::new(all.iter().map(|it| name(*it)));
    parser
        .try_map(move |text| all.iter().copied().find(|it| name(*it) == text).ok_or("unknown name"))
}
