//! Parsers for arguments that several commands share: id prefixes and dates.

use super::output::{self, Failure, Result, commas, short};
use crate::adapters::clock;
use crate::config::{Config, namespace_name};
use crate::domain::{Session, Timestamp};
use crate::pipeline::{Namespaces, namespace_of_folder};
use crate::privacy::Gate;
use crate::store::{IdPrefix, PrefixLookup, Store};
use clap::builder::{PossibleValuesParser, StringValueParser, TypedValueParser};
use jiff::Span;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::io::{self, IsTerminal};
use std::ops::Range;
use std::path::Path;

/// Maximum number of known namespaces named for an unknown one.
const NEAREST_MAX: usize = 3;

pub(super) fn limit() -> impl TypedValueParser<Value = usize> {
    let number = |text: String| text.parse::<usize>().ok().filter(|it| *it > 0);
    StringValueParser::new()
        .try_map(move |text| number(text).ok_or("expected a whole number of at least 1"))
}

/// Parses a day, a month, a time, `today`, `yesterday`, or days or weeks ago such as `7d` and `2w`. Days and months are in
/// the local time zone.
pub(super) fn date(text: &str) -> Result<Timestamp, String> {
    Ok(span(text, clock::now(), &clock::zone())?.start)
}

/// Like [`date`], but returns the end of the day or month.
pub(super) fn date_end(text: &str) -> Result<Timestamp, String> {
    let span = span(text, clock::now(), &clock::zone())?;
    Ok(span.start.max(Timestamp(span.end.0.saturating_sub(1))))
}

/// Parses a date into a range up to the start of the next day or month; empty for a time.
fn span(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Range<Timestamp>, String> {
    let begins = |date| Timestamp::beginning_of(date, zone);
    if let Some(days) = days_ago(text) {
        let day = now.date_in(zone).saturating_sub(Span::new().days(days));
        return Ok(begins(day)..begins(day.saturating_add(Span::new().days(1))));
    }
    let date = |text: &str| text.parse::<Date>().ok();
    let found = match text.len() {
        7 => date(&format!("{text}-01")).map(|first| (first, Span::new().months(1))),
        10 => date(text).map(|day| (day, Span::new().days(1))),
        _ => None,
    };
    if let Some((first, length)) = found {
        return Ok(begins(first)..begins(first.saturating_add(length)));
    }
    Timestamp::parse(text).map(|at| at..at).ok_or_else(|| {
        "expected a day such as 2026-11-21, today, yesterday or 7d, a month such as 2026-11, or a \
         time in RFC 3339"
            .to_owned()
    })
}

/// Parses a number of days or weeks ago. Numbers beyond the calendar are clamped.
fn days_ago(text: &str) -> Option<i32> {
    const DAYS_MAX: u32 = 1_000_000;
    let number = |unit| text.strip_suffix(unit)?.parse::<u32>().ok();
    let days = match text {
        "today" => 0,
        "yesterday" => 1,
        _ => number('d').or_else(|| number('w').map(|it| it.saturating_mul(7)))?.min(DAYS_MAX),
    };
    i32::try_from(days).ok()
}

pub(super) fn prefix(text: &str) -> Result<IdPrefix> {
    text.parse().map_err(|error| {
        Failure::usage(match text.starts_with("src-") {
            true => format!("`{text}` is a memory: `annalist why {text}` lists its records"),
            false => format!("`{text}`: {error}"),
        })
    })
}

pub(super) async fn unknown_namespace(store: &Store, name: &str) -> Result<Failure> {
    let mut known: Vec<String> =
        store.namespace_totals(0).await?.into_iter().map(|it| it.namespace).collect();
    let likeness = |it: &String| strsim::jaro_winkler(name, it);
    known.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)));
    let near = commas(known.iter().take(NEAREST_MAX).map(|namespace| format!("`{namespace}`")));
    let near = if near.is_empty() { near } else { format!("; nearest: {near}") };
    Ok(Failure::usage(format!("no namespace `{name}`{near}; `annalist namespace list` lists all")))
}

/// Notes that the store has nothing of a namespace that a person named; returns true if so.
pub(super) async fn note_unknown(store: &Store, named: Option<&str>) -> Result<bool> {
    let unknown = unknown(store, named).await?;
    unknown.iter().for_each(|line| output::note(line));
    Ok(unknown.is_some())
}

/// Line for a namespace that a person named and of which the store has nothing.
pub(super) async fn unknown(store: &Store, named: Option<&str>) -> Result<Option<String>> {
    let Some(name) = named else { return Ok(None) };
    if store.has_namespace(name).await? || store.had_namespace(name).await? {
        return Ok(None);
    }
    Ok(Some(unknown_namespace(store, name).await?.line))
}

/// Parses a namespace, or `.` for that of the current folder, which [`named_or_here`] replaces.
pub(super) fn namespace_or_here(text: &str) -> Result<String, &'static str> {
    if text == "." { Ok(text.to_owned()) } else { namespace_name(text) }
}

/// Returns the namespace that a person named; `.` is that of the current folder.
pub(super) async fn named_or_here(
    named: Option<&str>,
    store: Option<&Store>,
    config: &Config,
) -> Result<Option<String>> {
    match named {
        Some(".") => namespace_of(&std::env::current_dir()?, store, config).await.map(Some),
        named => Ok(named.map(str::to_owned)),
    }
}

/// Returns the namespace of the settings or of `folder`.
pub(super) async fn namespace_of(
    folder: &Path,
    store: Option<&Store>,
    config: &Config,
) -> Result<String> {
    if let Some(named) = &config.namespace {
        return Ok(named.clone());
    }
    let (folder, gate) = (folder.display().to_string(), Gate::new(&config.pii));
    let Some(store) = store else { return Ok(namespace_of_folder(&folder, &gate)) };
    Ok(Namespaces { store, gate: &gate }.of_folder(&folder).await?)
}

/// Asks for confirmation; fails with `refusal` if stdin is not a terminal.
pub(super) fn is_agreed(question: &str, refusal: String) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(refusal));
    }
    output::note(&format!("{question} [y/N]"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Unwraps the one match of an id prefix, or explains the problem.
pub(super) fn one<T>(found: PrefixLookup<T>, what: &str, id: &str) -> Result<T> {
    match found {
        PrefixLookup::One(one) => Ok(*one),
        PrefixLookup::None => {
            let (list, other) = match what {
                "run" => ("records runs", ""),
                "job" => ("jobs", ""),
                "plan" => ("consolidate log", ""),
                "memory" => ("memory list", "; `annalist records show` takes the id of a record"),
                "session" => ("status --all", ""),
                _ => ("records", "; `annalist memory show` takes the id of a memory"),
            };
            let mend = format!("`annalist {list}` lists them{other}");
            Err(Failure::usage(format!("no {what} begins with `{id}`: {mend}")))
        }
        PrefixLookup::Many(ids) => {
            let ids = commas(ids.iter().map(short));
            let line = format!("`{id}` matches more than one {what}: {ids}; use more digits");
            Err(Failure::usage(line))
        }
    }
}

/// Finds the session by an id of ours or of its client, or by a prefix of one.
pub(super) async fn session(store: &Store, id: &str) -> Result<Session> {
    one(store.session_named(id).await?, "session", id)
}

/// Like [`session`], for an optional filter.
pub(super) async fn session_of(store: &Store, id: Option<&str>) -> Result<Option<Session>> {
    let Some(id) = id else { return Ok(None) };
    session(store, id).await.map(Some)
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

    #[track_caller]
    fn check(text: &str, zone: &str, first: &str, next: &str) {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let zone = TimeZone::posix(zone).unwrap();
        let found = span(text, at("2026-11-23T01:30:00Z"), &zone);
        assert_eq!(found, Ok(at(first)..at(next)), "{text}");
    }

    #[test]
    fn a_day_and_a_month_are_whole_ones_of_the_time_zone() {
        check("2026-11", "UTC0", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z");
        check("2026-12", "UTC0", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z");
        check("2028-02", "JST-9", "2028-01-31T15:00:00Z", "2028-02-29T15:00:00Z");
        check("today", "UTC0", "2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z");
        check("today", "PST8", "2026-11-22T08:00:00Z", "2026-11-23T08:00:00Z");
        check("yesterday", "JST-9", "2026-11-21T15:00:00Z", "2026-11-22T15:00:00Z");
        check("1w", "PST8", "2026-11-15T08:00:00Z", "2026-11-16T08:00:00Z");
        check("7d", "PST8", "2026-11-15T08:00:00Z", "2026-11-16T08:00:00Z");
        // On the day of a clock change, a day does not have 24 hours.
        let berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
        check("2026-10-25", berlin, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
        check("2026-11-21T09:00:00Z", "PST8", "2026-11-21T09:00:00Z", "2026-11-21T09:00:00Z");
        assert!(date("2026-13").is_err() && date("2026-02-30").is_err() && date("soon").is_err());
        assert!(date("4000000000d").is_ok());
        let last = span("9999-12-31", Timestamp(0), &TimeZone::posix("PST8").unwrap());
        assert!(last.is_ok_and(|it| Timestamp::parse("2026-11-23T00:00:00Z").unwrap() < it.end));
    }
}
