//! `annalist memory history` and `at`: what happened to a memory, and what was believed on a day.

use super::super::output::{self, BOLD, DIM, Failure, short, shorten};
use super::super::settings;
use super::list;
use super::show::named;
use crate::consolidate::{Event, as_of, history as events_of};
use crate::domain::{Plan, Timestamp};
use crate::edge::store::{Deed, Open, Store, StoredPlan};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Letters of the claim above a history.
const HEADLINE_LETTERS: usize = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: annalist memory history 3fa9")]
pub(super) struct HistoryArgs {
    /// Its id, the beginning of it, or its tag
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory at 2026-11-01
  annalist memory at 2026-11-01T12:00:00Z --namespace roofs

What had been said until then decides, not when it was read. What nobody knows the time of counts as said before.")]
pub(super) struct AtArgs {
    /// A day, until its end, or a time in RFC 3339
    #[arg(value_parser = end_of)]
    date: Timestamp,
    /// What was superseded or retracted by then too
    #[arg(long)]
    all: bool,
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The end of a day, or a time.
fn end_of(text: &str) -> Result<Timestamp, String> {
    let at = super::super::replay::date(text)?;
    let is_day = crate::memory_dir::is_day(text);
    Ok(if is_day { Timestamp(at.next_midnight().0.saturating_sub(1)) } else { at })
}

pub(super) fn at(args: &AtArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let store = settings::open_store(&settings::load(file)?, Open::Existing)?;
    settings::runtime()?.block_on(async {
        let namespace = args.namespace.as_deref();
        let state = store.memories(namespace).await?;
        let plans: Vec<Plan> =
            standing(&store, namespace).await?.into_iter().map(|it| it.plan).collect();
        list::print(&as_of(args.date, &state, &plans), args.all, args.json)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Plans that were not undone.
async fn standing(store: &Store, namespace: Option<&str>) -> Result<Vec<StoredPlan>, Failure> {
    let mut plans = store.plans(namespace).await?;
    plans.retain(|stored| stored.undone_at.is_none());
    Ok(plans)
}

/// Something that happened to a memory, as it is told.
enum Told<'a> {
    /// By a plan that stands.
    Event(Timestamp, &'a Event),
    /// By anything else.
    Deed(&'a Deed),
}

pub(super) fn history(args: &HistoryArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let store = settings::open_store(&settings::load(file)?, Open::Existing)?;
    settings::runtime()?.block_on(async {
        let memory = named(&store, &args.id).await?;
        let stored = standing(&store, Some(&memory.namespace)).await?;
        let plans: Vec<Plan> = stored.iter().map(|it| it.plan.clone()).collect();
        let events = events_of(memory.id, &plans);
        let deeds = store.ledger(Some(memory.id)).await?;
        let applied =
            |event: &Event| stored.iter().find(|it| it.plan.id == event.plan).map(|it| it.at);
        let told_by_plan = |deed: &&Deed| {
            deed.plan
                .is_some_and(|plan| stored.iter().any(|it| it.plan.id == plan && it.at == deed.at))
        };
        let by_plan = events.iter().filter_map(|it| Some((applied(it)?, it)));
        let mut told: Vec<(Timestamp, Told<'_>)> =
            by_plan.map(|(at, it)| (at, Told::Event(at, it))).collect();
        let others = deeds.iter().filter(|it| !told_by_plan(it));
        told.extend(others.map(|it| (it.at, Told::Deed(it))));
        told.sort_by_key(|(at, _)| *at);
        if args.json {
            output::json(&told.iter().map(|(_, it)| to_json(it)).collect::<Vec<_>>())?;
        } else {
            let words = shorten(memory.claim.headline(), HEADLINE_LETTERS);
            output::line(&format!("{BOLD}{words}{BOLD:#}"))?;
            told.iter().try_for_each(|(_, it)| print(it))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn print(told: &Told<'_>) -> Result<(), Failure> {
    output::line(&match told {
        Told::Event(at, event) => {
            let said = event.at.map_or(String::new(), |at| format!(", said {at}"));
            format!(
                "  {at}  {} by {}: {}, {}  {DIM}record {}{said}, plan {}{DIM:#}",
                event.disposition,
                event.rule,
                event.stage.name(),
                event.state.name(),
                short(&event.record),
                short(&event.plan)
            )
        }
        Told::Deed(deed) => {
            let rule = deed.rule.as_ref().map_or(String::new(), |rule| format!(" by {rule}"));
            let plan = deed.plan.map_or(String::new(), |plan| format!("plan {}", short(&plan)));
            format!("  {}  {}{rule}  {DIM}{plan}{DIM:#}", deed.at, deed.deed)
        }
    })
}

fn to_json(told: &Told<'_>) -> Value {
    match told {
        Told::Event(at, event) => json!({
            "at": at.to_string(),
            "deed": event.disposition,
            "rule": event.rule,
            "record": event.record,
            "said_at": event.at.map(|at| at.to_string()),
            "plan": event.plan,
            "stage": event.stage,
            "state": event.state,
        }),
        Told::Deed(deed) => json!({
            "at": deed.at.to_string(),
            "deed": deed.deed,
            "rule": deed.rule,
            "record": deed.record,
            "plan": deed.plan,
        }),
    }
}
