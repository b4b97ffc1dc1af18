//! `annalist consolidate`: what staged records make of memory, as a plan that is read, applied and undone.

mod print;

use super::output::{self, Failure, YELLOW, short};
use super::records::{one, prefix};
use super::{memory, settings, worker};
use crate::config::Config;
use crate::edge::clock;
use crate::edge::store::{Open, Store, StoredPlan};
use crate::worker::{Consolidator, Outcome, Planned};
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  annalist consolidate --dry-run            what would become of the records that wait, and why
  annalist consolidate --namespace roofs    do it, for one namespace
  annalist consolidate log                  the plans that were applied
  annalist consolidate --undo 3fa9          take one back

No model is asked: what no rule can decide is kept beside what it may contradict, and listed as left open.
A record is dealt with once; run again, there is nothing to do."
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the plan and change nothing
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// Only this namespace
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    namespace: Option<String>,
    /// Take this plan back: its id, or the beginning of it
    #[arg(long, value_name = "PLAN")]
    undo: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the plans that were applied, the last one last
    Log {
        /// Only this namespace
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What was done about one namespace.
pub(super) struct Told {
    pub(super) namespace: String,
    pub(super) planned: Option<Planned>,
    pub(super) problem: Option<String>,
}

impl Told {
    /// Whether there is anything to print of it.
    pub(super) fn says_something(&self) -> bool {
        self.problem.is_some() || self.planned.as_ref().is_some_and(|it| !it.plan.is_empty())
    }
}

/// How often we ask for a namespace that somebody else consolidates.
const ASKS_MAX: u32 = 50;
/// How long we wait between two asks: with [`ASKS_MAX`] ten seconds in all.
const ASK_EVERY: Duration = Duration::from_millis(200);

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let store = settings::open_store(&config, Open::Existing)?;
    let runtime = settings::runtime()?;
    let consolidator =
        Consolidator { store: store.clone(), holder: worker::id(), clock: clock::now };
    runtime.block_on(async {
        match (&args.command, &args.undo) {
            (Some(Command::Log { namespace, json }), _) => {
                log(&store, namespace.as_deref(), *json).await?;
                Ok(ExitCode::SUCCESS)
            }
            (None, Some(id)) => undo(&consolidator, &config, id, args.json).await,
            (None, None) => consolidate(&consolidator, &config, args).await,
        }
    })
}

async fn consolidate(
    consolidator: &Consolidator,
    config: &Config,
    args: &Args,
) -> Result<ExitCode, Failure> {
    let namespaces = match &args.namespace {
        Some(namespace) => vec![namespace.clone()],
        None => consolidator.store.backlog().await?.into_iter().map(|it| it.namespace).collect(),
    };
    let mut told = Vec::new();
    for namespace in namespaces {
        told.extend(one_namespace(consolidator, namespace, args.dry_run).await?);
    }
    if args.json {
        output::json(&told.iter().map(to_json).collect::<Vec<_>>())?;
    } else {
        print(&told, args.dry_run)?;
    }
    if !args.dry_run {
        let changed = told.iter().filter(|it| it.says_something());
        let namespaces: Vec<&str> = changed.map(|it| it.namespace.as_str()).collect();
        memory::after_plan(&consolidator.store, config, &namespaces).await?;
    }
    let failed = told.iter().any(|it| it.problem.is_some());
    Ok(if failed { ExitCode::from(output::FAILED) } else { ExitCode::SUCCESS })
}

/// One namespace, plan after plan until nothing waits; on a dry run the first.
async fn one_namespace(
    consolidator: &Consolidator,
    namespace: String,
    dry_run: bool,
) -> Result<Vec<Told>, Failure> {
    let mut all = Vec::new();
    // Each plan deals with records that none before it dealt with.
    loop {
        let namespace = namespace.clone();
        let outcome = match dry_run {
            true => Outcome::Done(Box::new(consolidator.plan(&namespace).await?)),
            false => consolidator.run(&namespace).await?,
        };
        let (planned, problem) = match outcome {
            Outcome::Done(planned) => (Some(*planned), None),
            other @ (Outcome::Busy | Outcome::Moved(_)) => {
                (None, Some(problem(&namespace, &other)))
            }
        };
        let goes_on = !dry_run && planned.as_ref().is_some_and(|it| it.goes_on);
        all.push(Told { namespace, planned, problem });
        if !goes_on {
            return Ok(all);
        }
    }
}

/// As a run for one namespace, but waits a while for who is at it.
pub(super) async fn patiently(
    consolidator: &Consolidator,
    namespace: String,
    dry_run: bool,
) -> Result<Vec<Told>, Failure> {
    let mut told = one_namespace(consolidator, namespace.clone(), dry_run).await?;
    for _ in 1..ASKS_MAX {
        if told.iter().all(|it| it.problem.is_none()) {
            break;
        }
        tokio::time::sleep(ASK_EVERY).await;
        told.retain(|it| it.problem.is_none());
        told.extend(one_namespace(consolidator, namespace.clone(), dry_run).await?);
    }
    Ok(told)
}

/// Why nothing was changed.
fn problem(namespace: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(_) => String::new(),
        Outcome::Busy => {
            format!("namespace `{namespace}`: another process consolidates it now; try again")
        }
        Outcome::Moved(ids) => {
            let ids: Vec<String> = ids.iter().take(5).map(short).collect();
            format!(
                "namespace `{namespace}`: changed by something else since: memories {}: nothing was \
                 written",
                ids.join(", ")
            )
        }
    }
}

pub(super) fn print(told: &[Told], dry_run: bool) -> Result<(), Failure> {
    let mut records = 0;
    for it in told {
        match (&it.planned, &it.problem) {
            (_, Some(problem)) => output::note(&format!("{YELLOW}{problem}{YELLOW:#}")),
            (Some(planned), None) if planned.plan.is_empty() => {}
            (Some(planned), None) => {
                records += planned.plan.operations.len();
                print::plan(planned, dry_run)?;
            }
            (None, None) => {}
        }
    }
    if records == 0 && told.iter().all(|it| it.problem.is_none()) {
        output::note("nothing waits to be consolidated: `annalist status` shows what is staged");
    } else if dry_run {
        output::note("nothing was changed; without --dry-run it is");
    }
    Ok(())
}

pub(super) fn to_json(told: &Told) -> Value {
    let planned = told.planned.as_ref();
    json!({
        "namespace": told.namespace,
        "plan": planned.map(|it| &it.plan),
        "counts": planned.map(|it| it.plan.counts()),
        "findings": planned.map(|it| &it.findings),
        "problem": told.problem,
    })
}

async fn undo(
    consolidator: &Consolidator,
    config: &Config,
    id: &str,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let stored = one(consolidator.store.plan(prefix(id)?).await?, "plan", id)?;
    if stored.undone_at.is_some() {
        output::note(&format!("plan {} was undone already", short(&stored.plan.id)));
        return Ok(ExitCode::SUCCESS);
    }
    match consolidator.undo(&stored).await? {
        Outcome::Done(planned) => {
            let records = planned.plan.operations.len() as u64;
            if as_json {
                output::json(&json!({"undone": planned.plan.id, "records": records}))?;
            } else {
                output::line(&format!(
                    "plan {} is undone: {} again",
                    short(&planned.plan.id),
                    if records == 1 {
                        "1 record waits".to_owned()
                    } else {
                        format!("{records} records wait")
                    }
                ))?;
            }
            let namespaces = [stored.plan.namespace.as_str()];
            memory::after_plan(&consolidator.store, config, &namespaces).await?;
            Ok(ExitCode::SUCCESS)
        }
        other @ (Outcome::Busy | Outcome::Moved(_)) => Err(Failure::failed(format!(
            "plan {}: {}; plans are undone from the last one on",
            short(&stored.plan.id),
            problem(&stored.plan.namespace, &other)
        ))),
    }
}

async fn log(store: &Store, namespace: Option<&str>, as_json: bool) -> Result<(), Failure> {
    let plans = store.plans(namespace).await?;
    if as_json {
        return output::json(&plans.iter().map(logged).collect::<Vec<_>>());
    }
    if plans.is_empty() {
        output::note("no plan was applied: `annalist consolidate` makes one");
        return Ok(());
    }
    let mut table = output::table(&["plan", "namespace", "applied", "records", "what"]);
    for stored in &plans {
        let undone = stored.undone_at.map_or(String::new(), |at| format!("undone {at}: "));
        table.add_row([
            short(&stored.plan.id),
            stored.plan.namespace.clone(),
            stored.at.to_string(),
            stored.plan.operations.len().to_string(),
            format!("{undone}{}", print::counts(&stored.plan)),
        ]);
    }
    output::print_table(&table)
}

fn logged(stored: &StoredPlan) -> Value {
    json!({
        "plan": stored.plan.id,
        "namespace": stored.plan.namespace,
        "at": stored.at.to_string(),
        "undone_at": stored.undone_at.map(|at| at.to_string()),
        "records": stored.plan.operations.len(),
        "counts": stored.plan.counts(),
    })
}
