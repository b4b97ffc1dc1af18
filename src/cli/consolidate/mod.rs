//! `annalist consolidate`: what staged records make of memory, as a plan that is read, applied and undone.

mod print;

use super::judges::{self, Judges};
use super::output::{self, DIM, Failure, RED, YELLOW, counted, short};
use super::records::{one, prefix};
use super::{memory, settings};
use crate::config::Config;
use crate::edge::store::{Open, Store, StoredPlan};
use crate::edge::{clock, process};
use crate::worker::{Consolidator, Halt, Judge, Outcome, Planned};
use clap::Subcommand;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  annalist consolidate --dry-run            what would become of the records that wait, and why
  annalist consolidate --namespace roofs    do it, for one namespace
  annalist consolidate --model qwen3:8b     ask a model what no rule decides, now or before
  annalist consolidate log                  the plans that were applied
  annalist consolidate --undo 3fa9          take one back

What no rule can decide is kept beside what it may contradict, and listed as left open. A model is \
asked about that only where --model, --cassette or consolidate.model name one. It gives verdicts on \
pairs; what may change is decided by the rules: a person's word gives way to a person's only, and \
nothing changes without words that tell of a change. Its answers are kept before they are used, so \
nothing is asked or paid twice, also after --dry-run; what has no usable answer stays open. \
A record is dealt with once; run again, there is nothing to do. `annalist status` has the bill.

Exits 1 if a namespace could not be dealt with, or the model needs a person (a key, a name); then \
nothing is applied."
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
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["model", "no_model", "cassette"])]
    undo: Option<String>,
    #[command(flatten)]
    judges: Judges,
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
    /// Whether the problem is that no model can be asked.
    halted: bool,
}

impl Told {
    /// Whether there is anything to print of it.
    pub(super) fn says_something(&self) -> bool {
        let says = |it: &Planned| !it.plan.is_empty() || it.asked.is_something();
        self.problem.is_some() || self.planned.as_ref().is_some_and(says)
    }
}

/// Findings of one plan that are listed.
const FINDINGS_SHOWN_MAX: usize = 20;

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let store = settings::open_store(&config, Open::Existing)?;
    let runtime = settings::runtime()?;
    runtime.block_on(async {
        let judge = match (&args.command, &args.undo) {
            (None, None) => args.judges.judge(&config, &store).await?,
            (Some(_), _) | (_, Some(_)) => None,
        };
        let consolidator = consolidator(store.clone(), judge);
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

/// Changes memory by hand: it waits for others.
pub(super) fn consolidator(store: Store, judge: Option<Arc<Judge>>) -> Consolidator {
    Consolidator {
        store,
        holder: process::name().to_owned(),
        clock: clock::now,
        waits: true,
        judge,
    }
}

async fn consolidate(
    consolidator: &Consolidator,
    config: &Config,
    args: &Args,
) -> Result<ExitCode, Failure> {
    let mut told = Vec::new();
    for namespace in namespaces(consolidator, args.namespace.as_deref()).await? {
        if !args.dry_run {
            memory::before_plan(&consolidator.store, config, &namespace).await?;
        }
        told.extend(one_namespace(consolidator, namespace, args.dry_run).await?);
        if told.iter().any(|it| it.halted) {
            break;
        }
    }
    if args.namespace.is_none() {
        told.retain(Told::says_something);
    }
    if args.json {
        output::json(&told.iter().map(to_json).collect::<Vec<_>>())?;
    } else {
        print(&told, args.dry_run)?;
    }
    notes(&told);
    if !args.dry_run {
        let changed = told.iter().filter(|it| it.says_something());
        let namespaces: Vec<&str> = changed.map(|it| it.namespace.as_str()).collect();
        memory::after_plan(&consolidator.store, config, &namespaces).await?;
    }
    let failed = told.iter().any(|it| it.problem.is_some());
    Ok(if failed { ExitCode::from(output::FAILED) } else { ExitCode::SUCCESS })
}

/// The namespaces in which something may be done: those with records that wait, and where a model is asked, those in
/// which something was left open.
async fn namespaces(
    consolidator: &Consolidator,
    named: Option<&str>,
) -> Result<BTreeSet<String>, Failure> {
    if let Some(namespace) = named {
        return Ok(BTreeSet::from([namespace.to_owned()]));
    }
    let backlog = consolidator.store.backlog().await?.into_iter().map(|it| it.namespace);
    let mut all: BTreeSet<String> = backlog.collect();
    if consolidator.judge.is_some() {
        all.extend(consolidator.store.open_namespaces().await?);
    }
    Ok(all)
}

/// One namespace, plan after plan until nothing waits; on a dry run the first.
pub(super) async fn one_namespace(
    consolidator: &Consolidator,
    namespace: String,
    dry_run: bool,
) -> Result<Vec<Told>, Failure> {
    let mut all = Vec::new();
    // Each plan deals with records that none before it dealt with.
    loop {
        let (namespace, mut halted) = (namespace.clone(), false);
        let outcome = match dry_run {
            true => consolidator.plan(&namespace).await?,
            false => consolidator.run(&namespace).await?,
        };
        let (planned, problem) = match outcome {
            Outcome::Done(planned) => (Some(*planned), None),
            other @ (Outcome::Busy | Outcome::Moved(_) | Outcome::Halted(_)) => {
                halted = matches!(other, Outcome::Halted(_));
                (None, Some(problem(&namespace, &other)))
            }
        };
        let goes_on = !dry_run && planned.as_ref().is_some_and(|it| it.goes_on);
        all.push(Told { namespace, planned, problem, halted });
        if !goes_on {
            return Ok(all);
        }
    }
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
        Outcome::Halted(Halt::Needs(line)) => format!(
            "namespace `{namespace}`: {line}; nothing was applied, records wait (--no-model goes by rule alone)"
        ),
        Outcome::Halted(Halt::Stopped) => format!(
            "namespace `{namespace}`: stopped; nothing was applied, answers are kept and the same command goes on"
        ),
    }
}

pub(super) fn print(told: &[Told], dry_run: bool) -> Result<(), Failure> {
    let mut records = 0;
    for it in told {
        match (&it.planned, &it.problem) {
            (_, Some(_)) => {}
            (Some(planned), None) if !planned.plan.is_empty() => {
                records += planned.plan.operations.len();
                print::plan(planned, dry_run)?;
            }
            (Some(_), None) => {}
            (None, None) => {}
        }
    }
    if records == 0 && !told.iter().any(Told::says_something) {
        output::note("nothing waits to be consolidated: `annalist status` shows what is staged");
    } else if dry_run {
        output::note("nothing was changed; without --dry-run it is");
    }
    Ok(())
}

/// What a person should know whatever is printed on stdout: why nothing was done, what was odd, what is open, and what
/// was asked.
pub(super) fn notes(told: &[Told]) {
    for it in told {
        if let Some(problem) = &it.problem {
            let (begin, colour) = if it.halted { ("error: ", RED) } else { ("", YELLOW) };
            output::note(&format!("{colour}{begin}{problem}{colour:#}"));
        }
        let Some(planned) = &it.planned else { continue };
        for finding in planned.findings.iter().take(FINDINGS_SHOWN_MAX) {
            output::note(&format!("{}: {finding}", it.namespace));
        }
        if planned.findings.len() > FINDINGS_SHOWN_MAX {
            let more = planned.findings.len() - FINDINGS_SHOWN_MAX;
            output::note(&format!("{}: and {more} more findings: --json", it.namespace));
        }
        if !planned.left_open.is_empty() {
            let pairs = counted(planned.left_open.len() as u64, "pair");
            let how = match planned.asked.is_something() {
                true => "no usable answer",
                false => "`annalist consolidate --model NAME` asks a model",
            };
            output::note(&format!(
                "{}: {YELLOW}{pairs} left open{YELLOW:#}, both sides are kept {DIM}({how}){DIM:#}",
                it.namespace
            ));
        }
        if planned.asked.is_something() {
            let pairs = counted(planned.asked.pairs, "pair");
            output::note(&format!("{}: {}", it.namespace, judges::line(&pairs, &planned.asked)));
        }
    }
}

pub(super) fn to_json(told: &Told) -> Value {
    let planned = told.planned.as_ref();
    let (asked, usage) = planned.map(|it| judges::to_json(&it.asked)).unzip();
    json!({
        "namespace": told.namespace,
        "plan": planned.map(|it| &it.plan),
        "counts": planned.map(|it| it.plan.counts()),
        "findings": planned.map(|it| &it.findings),
        "left_open": planned.map(|it| &it.left_open),
        "asked": asked,
        "usage": usage,
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
        other @ (Outcome::Busy | Outcome::Moved(_) | Outcome::Halted(_)) => {
            Err(Failure::failed(format!(
                "plan {}: {}; plans are undone from the last one on",
                short(&stored.plan.id),
                problem(&stored.plan.namespace, &other)
            )))
        }
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
