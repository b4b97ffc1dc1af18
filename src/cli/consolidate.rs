//! `annalist consolidate`: makes, lists and undoes plans that turn staged records into memory.

use super::arguments::{note_unknown, one, prefix};
use super::memory::folder::{after_plan, before_plan, finish_forgetting};
use super::model_args::{self, AdjudicationArgs, AskedPairs, CallUsage};
use super::output::{
    self, BOLD, DIM, Failure, GREEN, RED, Result, Row, YELLOW, counted, in_pages, json_row, remark,
    short, shorten,
};
use super::settings;
use crate::adapters::{clock, process};
use crate::config::{Config, namespace_name};
use crate::consolidate::{UNRELATED, is_judged};
use crate::domain::{
    BY_PERSON, Change, Digest, Disposition, Finding, LeftOpen, Memory, MemoryId, MemoryState,
    Merging, Operation, Plan, PlanId, RELATED, Settlement, Timestamp, is_partly,
};
use crate::memory_dir::{OutputStyle, source_tag, suspicion};
use crate::pipeline::{
    Adjudicator, ConsolidationOutcome, Consolidator, Halt, PlannedConsolidation, RedoOutcome,
};
use crate::store::{Store, StoredPlan};
use anstyle::Style;
use clap::Subcommand;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

const FINDINGS_MAX: usize = 20;
const OPERATIONS_MAX: usize = 200;
const OPEN_MAX: usize = 10;
const PLANS_MAX: usize = 10;
const LINE_LETTERS: usize = 90;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  annalist consolidate --dry-run          show what would change, and why
  annalist consolidate --namespace roofs  consolidate one namespace
  annalist consolidate --model qwen3:8b   ask a model where no rule decides
  annalist consolidate log                list the applied plans
  annalist consolidate --undo 3fa9        undo a plan

Where no rule decides, both sides are kept, and a suspected contradiction or consequence is \
listed as left open. A model is asked about such pairs and about the nearest memory of each new \
record, or several that are as near; it also sees other memories of the project in short, because \
people rephrase. It is the extraction model, unless --model, --cassette or consolidate.model names \
another or --no-model turns it off. It gives verdicts; the rules decide what may change: only a person, or something a \
person approved, overrides a person, and nothing changes unless the record's words state a \
change. If no model answers, consolidation uses rules alone and asks later. --dry-run estimates \
the cost of the questions, and asks only a model named by a flag. Answers are stored before they \
are used, so nothing is paid for twice. Running the command again changes nothing. `annalist \
status` shows the cost.

Exits 1 if a namespace cannot be consolidated, or if the model needs attention (key, name); then \
nothing is applied."
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the plan and change nothing
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// Only this namespace
    #[arg(long, value_name = "NAME", value_parser = namespace_name, conflicts_with = "undo")]
    namespace: Option<String>,
    /// Undo this plan (ID or ID prefix) and set its records aside
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["model", "no_model", "cassette"])]
    undo: Option<String>,
    /// Redo an undone plan: consolidate its records again, or apply its verdict again
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["undo", "dry_run"])]
    redo: Option<String>,
    #[command(flatten)]
    adjudication: AdjudicationArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the applied plans, oldest first
    Log {
        /// Only this namespace
        #[arg(long, value_name = "NAME", value_parser = namespace_name)]
        namespace: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) struct NamespaceResult {
    pub(super) namespace: String,
    pub(super) planned: Option<PlannedConsolidation>,
    pub(super) problem: Option<String>,
    /// True if the model is unavailable.
    halted: bool,
}

json_row! {
    /// The result of one plan, as JSON.
    pub(super) struct PlanRow<'a> of it: &'a NamespaceResult {
        namespace: &'a str = &it.namespace,
        plan: Option<&'a Plan> = it.planned.as_ref().map(|it| &it.plan),
        counts: Option<BTreeMap<&'static str, usize>> =
            it.planned.as_ref().map(|it| it.plan.counts()),
        findings: Option<&'a [Finding]> = it.planned.as_ref().map(|it| it.findings.as_slice()),
        left_open: Option<&'a [LeftOpen]> = it.planned.as_ref().map(|it| it.left_open.as_slice()),
        asked: Option<AskedPairs> = it.planned.as_ref().map(|it| AskedPairs::of(&it.usage)),
        usage: Option<CallUsage> = it.planned.as_ref().map(|it| CallUsage::of(&it.usage.spent)),
        problem: Option<&'a str> = it.problem.as_deref(),
    }
}

impl NamespaceResult {
    pub(super) fn is_something(&self) -> bool {
        let is_something = |it: &PlannedConsolidation| !it.plan.is_empty() || it.usage.was_used();
        self.problem.is_some() || self.planned.as_ref().is_some_and(is_something)
    }
}

json_row! {
    /// An applied plan, as JSON and in a list.
    pub(super) struct AppliedPlan of it: &StoredPlan {
        plan: Digest = it.plan.id.0,
        namespace: String = it.plan.namespace.clone(),
        at: String = it.at.to_string(),
        undone_at: Option<String> = output::time(it.undone_at),
        records: usize = it.plan.records(),
        counts: BTreeMap<&'static str, usize> = it.plan.counts(),
        #[serde(skip)]
        what: String = it.plan.in_words(),
    }
}

impl Row for AppliedPlan {
    const HEADER: &'static [&'static str] = &["plan", "namespace", "applied", "records", "what"];

    fn cells(&self) -> Vec<String> {
        let whole = |at: &str| match at.split_once('.') {
            Some((seconds, _)) => format!("{seconds}Z"),
            None => at.to_owned(),
        };
        let undone = self.undone_at.as_ref().map(|at| match *at == self.at {
            true => "refused: ".to_owned(),
            false => format!("undone {}: ", whole(at)),
        });
        vec![
            short(&self.plan),
            self.namespace.clone(),
            whole(&self.at),
            self.records.to_string(),
            format!("{}{}", undone.unwrap_or_default(), shorten(&self.what, LINE_LETTERS)),
        ]
    }
}

/// A plan that was taken back, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct UndonePlan {
    undone: Digest,
    records: u64,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let (config, store) = settings::existing_store(file)?;
    if let Some(Command::Log { namespace, json }) = &args.command {
        return in_pages(log(&store, namespace.as_deref(), *json)).await;
    }
    if let Some(id) = &args.undo {
        return undo(&consolidator(store, None), &config, id, args.json).await;
    }
    if let Some(id) = &args.redo {
        let stored = undone(&store, id).await?;
        if redo(&consolidator(store.clone(), None), &config, &stored).await? {
            return Ok(());
        }
    }
    if !args.dry_run {
        finish_forgetting(&store, &config).await?;
    }
    let adjudicator = args.adjudication.adjudicator(&config, &store, args.dry_run).await?;
    consolidate(&consolidator(store, adjudicator), &config, args).await
}

async fn undone(store: &Store, id: &str) -> Result<StoredPlan> {
    let stored = one(store.plan(prefix(id)?).await?, "plan", id)?;
    if stored.undone_at.is_none() {
        let plan = short(&stored.plan.id);
        return Err(Failure::usage(format!("plan {plan} was not undone: nothing to redo")));
    }
    Ok(stored)
}

/// Returns true if the plan is a verdict, which is in force again; false if its records are to be consolidated again.
async fn redo(consolidator: &Consolidator, config: &Config, stored: &StoredPlan) -> Result<bool> {
    let (plan, namespace) = (short(&stored.plan.id), &*stored.plan.namespace);
    before_plan(&consolidator.store, config, namespace).await?;
    let why = match consolidator.redo(stored).await? {
        RedoOutcome::Applied => {
            output::line(&format!("plan {plan} is applied again"))?;
            after_plan(&consolidator.store, config, &[namespace]).await?;
            return Ok(true);
        }
        RedoOutcome::Released(records) => {
            let records = counted(records, "record");
            output::note(&format!("plan {plan}: released {records} for consolidation"));
            return Ok(false);
        }
        RedoOutcome::Busy => problem(namespace, &ConsolidationOutcome::Busy),
        RedoOutcome::Moved => "its memories have changed since".to_owned(),
    };
    Err(Failure::failed(format!("plan {plan}: {why}")))
}

/// Creates a consolidator for interactive use, which waits for other processes.
pub(super) fn consolidator(store: Store, adjudicator: Option<Arc<Adjudicator>>) -> Consolidator {
    let holder = process::name().to_owned();
    Consolidator { store, holder, clock: clock::now, waits: true, adjudicator }
}

async fn consolidate(consolidator: &Consolidator, config: &Config, args: &Args) -> Result<()> {
    note_unknown(&consolidator.store, args.namespace.as_deref()).await?;
    let mut results = Vec::new();
    for namespace in namespaces(consolidator, args.namespace.as_deref()).await? {
        if !args.dry_run {
            before_plan(&consolidator.store, config, &namespace).await?;
        }
        results.extend(one_namespace(consolidator, &namespace, args.dry_run).await?);
        if results.iter().any(|it| it.halted) {
            break;
        }
    }
    if args.namespace.is_none() {
        // Without a reachable model, something is to be said although nothing was done.
        let has_findings = |it: &PlannedConsolidation| !it.findings.is_empty();
        results.retain(|it| it.is_something() || it.planned.as_ref().is_some_and(has_findings));
    }
    match args.json {
        true => output::json(&results.iter().map(PlanRow::of).collect::<Vec<_>>())?,
        false if results.iter().any(NamespaceResult::is_something) => {
            in_pages(async { print(&results, args.dry_run, OutputStyle::Normal) }).await?;
        }
        false => note_nothing(&consolidator.store, args.namespace.as_deref()).await?,
    }
    notes(&results);
    if !args.dry_run {
        let changed = results.iter().filter(|it| it.is_something());
        let namespaces: Vec<&str> = changed.map(|it| it.namespace.as_str()).collect();
        after_plan(&consolidator.store, config, &namespaces).await?;
    }
    let given_up = consolidator.adjudicator.as_ref().filter(|it| it.is_unusable());
    let needs = given_up.and_then(|it| it.needs());
    let failed = results.iter().any(|it| it.problem.is_some());
    if let Some(line) = needs.as_ref().filter(|_| !failed) {
        output::note(&output::error(line));
    }
    output::fail_if(failed || needs.is_some())
}

/// Returns the named namespace, or all with waiting records and, with a model, open pairs.
async fn namespaces(consolidator: &Consolidator, named: Option<&str>) -> Result<BTreeSet<String>> {
    if let Some(namespace) = named {
        return Ok(BTreeSet::from([namespace.to_owned()]));
    }
    let backlog = consolidator.store.backlog().await?.into_iter().map(|it| it.namespace);
    let mut all: BTreeSet<String> = backlog.collect();
    if consolidator.adjudicator.is_some() {
        all.extend(consolidator.store.open_namespaces().await?);
    }
    Ok(all)
}

/// Consolidates one namespace with plan after plan until no record waits; a dry run makes only the first plan.
pub(super) async fn one_namespace(
    consolidator: &Consolidator,
    namespace: &str,
    dry_run: bool,
) -> Result<Vec<NamespaceResult>> {
    let mut all = Vec::new();
    // Terminates because each plan handles records that no earlier one did.
    loop {
        let outcome = match dry_run {
            true => consolidator.plan(namespace).await?,
            false => consolidator.run(namespace).await?,
        };
        let halted = matches!(outcome, ConsolidationOutcome::Halted(_));
        let (planned, problem) = match outcome {
            ConsolidationOutcome::Done(planned) => (Some(*planned), None),
            other @ (ConsolidationOutcome::Busy
            | ConsolidationOutcome::Moved(_)
            | ConsolidationOutcome::Halted(_)) => (None, Some(problem(namespace, &other))),
        };
        let goes_on = !dry_run && planned.as_ref().is_some_and(|it| it.goes_on);
        let namespace = namespace.to_owned();
        all.push(NamespaceResult { namespace, planned, problem, halted });
        if !goes_on {
            return Ok(all);
        }
    }
}

fn problem(namespace: &str, outcome: &ConsolidationOutcome) -> String {
    let why = match outcome {
        ConsolidationOutcome::Done(_) => String::new(),
        ConsolidationOutcome::Busy => "another process is consolidating it; try again".to_owned(),
        ConsolidationOutcome::Moved(ids) => {
            let ids = output::commas(ids.iter().take(5).map(short));
            format!("changed since: {ids}; nothing was written")
        }
        ConsolidationOutcome::Halted(Halt::Needs(line)) => {
            format!("{line}; nothing was applied, records stay staged (--no-model uses rules)")
        }
        ConsolidationOutcome::Halted(Halt::Stopped) => {
            "stopped; nothing was applied, answers are kept; run it again to resume".to_owned()
        }
    };
    format!("namespace `{namespace}`: {why}")
}

pub(super) fn print(results: &[NamespaceResult], dry_run: bool, style: OutputStyle) -> Result<()> {
    for it in results {
        if let (Some(planned), None) = (&it.planned, &it.problem)
            && !planned.plan.is_empty()
        {
            print_plan(planned, dry_run, style)?;
        }
    }
    if dry_run && results.iter().any(NamespaceResult::is_something) {
        output::note("dry run: nothing was changed");
    }
    Ok(())
}

/// Notes that no record waits, and the records that undone plans set aside.
async fn note_nothing(store: &Store, namespace: Option<&str>) -> Result<()> {
    let aside = store.set_aside(namespace).await?;
    let every = if aside.is_empty() { "every record" } else { "every other record" };
    let lines = aside.iter().map(|(plan, records)| {
        let (records, plan) = (counted(*records, "record"), short(plan));
        let again = format!("`annalist consolidate --redo {plan}` consolidates them again");
        format!("set aside by an undo: {records}; {again}")
    });
    output::notes(lines, PLANS_MAX, "more undone plans: `annalist consolidate log`");
    let more = "`annalist replay PATH` reads more";
    output::note(&format!("nothing to consolidate: {every} is in memory; {more}"));
    Ok(())
}

/// Notes problems, findings, open pairs and questions, regardless of the output on stdout.
pub(super) fn notes(results: &[NamespaceResult]) {
    let mut told = BTreeSet::new();
    for it in results {
        let namespace = &it.namespace;
        if let Some(problem) = &it.problem {
            let (begin, colour) = if it.halted { ("error: ", RED) } else { ("", YELLOW) };
            output::note(&format!("{colour}{begin}{problem}{colour:#}"));
        }
        let Some(planned) = &it.planned else { continue };
        let findings = planned.findings.iter().map(|it| format!("{namespace}: {it}"));
        output::notes(findings, FINDINGS_MAX, "more findings: --json");
        let open = planned.left_open.iter().filter(|it| !is_partly(&it.rule)).count();
        let suspected = suspected(&planned.left_open).count();
        if open > 0 {
            let pairs = match (suspected as u64, (open - suspected) as u64) {
                (0, more) => format!("{} may be related", counted(more, "pair")),
                (pairs, 0) => format!("{} left open: both sides are kept", counted(pairs, "pair")),
                (pairs, more) => {
                    let pairs = counted(pairs, "pair");
                    format!("{pairs} left open: both sides are kept; {more} more may be related")
                }
            };
            let how = match (planned.usage.was_used(), planned.usage.is_estimate) {
                (true, false) => "no usable answer",
                (true, true) => "run without --dry-run to ask the model",
                (false, _) if suspected > 0 => {
                    "`annalist memory review` asks you about those left open, \
                     `annalist consolidate --model NAME` asks a model about all"
                }
                (false, _) => "`annalist consolidate --model NAME` asks a model",
            };
            let style = if suspected > 0 { YELLOW } else { Style::new() };
            // Once is enough for several namespaces.
            let is_new = told.insert(how);
            let how = if is_new { format!(" {DIM}({how}){DIM:#}") } else { String::new() };
            output::note(&format!("{namespace}: {style}{pairs}{style:#}{how}"));
        }
        if planned.usage.was_used() {
            let usage = &planned.usage;
            let (pairs, records) = (counted(usage.pairs, "pair"), counted(usage.records, "record"));
            let about = match (usage.pairs, usage.records) {
                (0, _) => records,
                (_, 0) => format!("{pairs} left open before"),
                (_, _) => format!("{pairs} of {records}"),
            };
            let line = model_args::asked_line(&about, usage);
            let refused = remark(usage.refused, "verdicts refused");
            output::note(&format!("{namespace}: {line}{refused}"));
        }
    }
}

async fn undo(consolidator: &Consolidator, config: &Config, id: &str, as_json: bool) -> Result<()> {
    let stored = one(consolidator.store.plan(prefix(id)?).await?, "plan", id)?;
    let namespace = stored.plan.namespace.as_str();
    if stored.undone_at.is_some() {
        output::note(&format!("plan {} is already undone", short(&stored.plan.id)));
        return Ok(());
    }
    // Imports edits by people first, so that the undo does not discard them.
    before_plan(&consolidator.store, config, namespace).await?;
    match consolidator.undo(&stored, false).await? {
        ConsolidationOutcome::Done(planned) => {
            let (undone, records) = (planned.plan.id.0, planned.plan.operations.len() as u64);
            if as_json {
                output::json(&UndonePlan { undone, records })?;
            } else {
                let aside = format!(", and {} set aside", counted(records, "record"));
                let made =
                    |it: &Change| it.before.is_none() && planned.memories.contains_key(&it.memory);
                let kept = planned.plan.changes().iter().filter(|it| made(it)).count() as u64;
                let (aside, again) = match planned.plan.is_verdict() {
                    true => ("", "applies it again"),
                    false => (&*aside, "consolidates them again"),
                };
                let id = short(&undone);
                output::line(&format!("plan {id} is undone{aside}"))?;
                if kept > 0 {
                    let kept = counted(kept, "memory");
                    output::note(&format!("kept, because a person decided on it since: {kept}"));
                }
                output::note(&format!("`annalist consolidate --redo {id}` {again}"));
            }
            after_plan(&consolidator.store, config, &[namespace]).await
        }
        ConsolidationOutcome::Moved(ids) => {
            let plans = consolidator.store.plans(Some(namespace)).await?;
            let newer = plans.iter().skip_while(|it| it.plan.id != stored.plan.id).skip(1);
            let touches =
                |it: &&StoredPlan| it.plan.changes().iter().any(|it| ids.contains(&it.memory));
            let newer = newer.filter(|it| it.undone_at.is_none()).filter(touches);
            let newer: Vec<String> = newer.map(|it| short(&it.plan.id)).collect();
            let remedy = match newer.as_slice() {
                [] => "they were changed in the memory directory".to_owned(),
                [one] => format!("undo plan {one} first"),
                more => format!("undo plans {} first, the last one first", more.join(", ")),
            };
            let (id, moved) = (short(&stored.plan.id), ConsolidationOutcome::Moved(ids));
            Err(Failure::failed(format!("plan {id}: {}; {remedy}", problem(namespace, &moved))))
        }
        other @ (ConsolidationOutcome::Busy | ConsolidationOutcome::Halted(_)) => {
            let (id, problem) = (short(&stored.plan.id), problem(namespace, &other));
            Err(Failure::failed(format!("plan {id}: {problem}")))
        }
    }
}

async fn log(store: &Store, namespace: Option<&str>, as_json: bool) -> Result<()> {
    note_unknown(store, namespace).await?;
    let mut plans = store.plans(namespace).await?;
    // A plan that was redone shows once, as it was last applied.
    let last: BTreeMap<PlanId, Timestamp> = plans.iter().map(|it| (it.plan.id, it.at)).collect();
    plans.retain(|it| last.get(&it.plan.id) == Some(&it.at));
    let rows: Vec<AppliedPlan> = plans.iter().map(AppliedPlan::of).collect();
    output::rows(&rows, as_json, "no plans applied: `annalist consolidate` applies one")
}

fn print_plan(planned: &PlannedConsolidation, dry_run: bool, style: OutputStyle) -> Result<()> {
    let plan = &planned.plan;
    let what = if dry_run { "would be consolidated" } else { "consolidated" };
    let records = counted(plan.operations.len() as u64, "record");
    output::line(&format!(
        "{BOLD}{}{BOLD:#}  {DIM}plan {}: {records} {what}: {}{DIM:#}",
        plan.namespace,
        short(&plan.id),
        plan.in_words()
    ))?;
    let operations = plan.operations.iter();
    let (new, others): (Vec<_>, Vec<_>) = match style {
        OutputStyle::Quiet => return Ok(()),
        OutputStyle::Normal => operations.partition(|it| is_only_new(it)),
        OutputStyle::Explanatory => (Vec::new(), operations.collect()),
    };
    if !new.is_empty() {
        let new = output::count(new.len() as u64);
        output::line(&format!("  {GREEN}+ {new} new{GREEN:#}  {DIM}--json lists them{DIM:#}"))?;
    }
    let shown_max = if style == OutputStyle::Normal { OPERATIONS_MAX } else { usize::MAX };
    let shown = others.iter().take(shown_max);
    shown.clone().try_for_each(|operation| print_operation(planned, operation))?;
    if let more @ 1.. = others.len() - shown.len() {
        let more = output::count(more as u64);
        output::line(&format!("  {DIM}… and {more} more; --json lists them{DIM:#}"))?;
    }
    let changed = plan.left_open.iter().filter(|it| is_partly(&it.rule));
    for open in changed.take(OPEN_MAX) {
        let (record, other) = (short(&open.record), headline(planned, open.memory));
        output::line(&format!("  ~ {other}  {DIM}in part replaced by record {record}{DIM:#}"))?;
    }
    for open in suspected(&plan.left_open).take(OPEN_MAX) {
        print_open(planned, open)?;
    }
    match suspected(&plan.left_open).count().saturating_sub(OPEN_MAX) as u64 {
        0 => Ok(()),
        more => {
            let more = counted(more, "pair");
            output::line(&format!("  {YELLOW}?{YELLOW:#} {more} more left open"))
        }
    }
}

/// Prints both sides of an open pair, each with the ID of a record of it.
fn print_open(planned: &PlannedConsolidation, open: &LeftOpen) -> Result<()> {
    let operations = planned.plan.operations.iter();
    let home =
        operations.filter(|it| it.record == open.record).find_map(|it| it.disposition.home());
    let sides =
        home.and_then(|id| planned.memories.get(&id)).zip(planned.memories.get(&open.memory));
    // A plan cannot leave a pair open without the memories of both.
    let Some((home, other)) = sides else { return Ok(()) };
    let named = |it: &Memory| {
        let record = if it.id == home.id { Some(&open.record) } else { it.sources.first() };
        let id = record.map_or_else(|| source_tag(it.id), short);
        let words = shorten(it.words(), LINE_LETTERS);
        format!("{} {words}  {DIM}{id}{DIM:#}", it.claim.kind().name())
    };
    let (one, by, words) = match (suspicion(other, home, false), suspicion(home, other, false)) {
        (Some(words), _) => (other, home, words),
        (None, Some(words)) => (home, other, words),
        (None, None) => (other, home, "possibly related to"),
    };
    output::line(&format!("  {YELLOW}?{YELLOW:#} {}\n      {words}: {}", named(one), named(by)))
}

/// True for an operation that only adds a memory, decided by rule.
fn is_only_new(it: &Operation) -> bool {
    let is_new = matches!(it.disposition, Disposition::Add { .. }) && it.effects.is_empty();
    is_new && (it.rule == UNRELATED || !is_judged(&it.rule))
}

/// Suspected contradictions and consequences among pairs, without those that are merely related, and changes of a part.
fn suspected(open: &[LeftOpen]) -> impl Iterator<Item = &LeftOpen> {
    open.iter().filter(|it| it.rule != RELATED && !is_partly(&it.rule))
}

fn print_operation(planned: &PlannedConsolidation, operation: &Operation) -> Result<()> {
    let claim = &operation.facts.claim;
    let text = shorten(claim.headline(), LINE_LETTERS);
    let kind = claim.kind().name();
    let rule = format!("{DIM}{}{DIM:#}", reason(&operation.rule));
    let of = |id: MemoryId| headline(planned, id);
    let line = match operation.disposition {
        Disposition::Add { .. } if operation.rule == UNRELATED => {
            format!("{GREEN}+ {kind} {text}{GREEN:#}")
        }
        Disposition::Add { .. } => format!("{GREEN}+ {kind} {text}{GREEN:#}  {rule}"),
        Disposition::Merge { into, how } => {
            let learns = match how {
                Merging::Provenance => "another source",
                Merging::Extend => "extended",
                Merging::Outcome => "a later outcome",
                Merging::Combine | Merging::Append => "the words of both",
            };
            format!("~ {kind} {text}  {rule}\n      {learns}: {}", of(into))
        }
        Disposition::Supersede { old, .. } => {
            let old = of(old);
            format!("{RED}- {kind} {old}{RED:#}\n  {GREEN}+ {kind} {text}{GREEN:#}  {rule}")
        }
        Disposition::Conflict { with, .. } => {
            format!("{YELLOW}! {kind} {text}{YELLOW:#}  {rule}\n      kept alongside: {}", of(with))
        }
        Disposition::Discard => format!("{DIM}· {kind} {text}{DIM:#}  {rule}"),
        Disposition::Duplicate { .. } => format!("= {kind} {text}  {rule}"),
        Disposition::Settle { with, how, .. } => {
            let becomes = match how {
                Settlement::Apart => "unrelated to",
                Settlement::Beside => "kept alongside",
                Settlement::Joined => "merged into",
                Settlement::Replaced => "replaces",
                Settlement::Dropped => "dropped in favour of",
                Settlement::Followed => "changes",
                Settlement::Partly => "replaces a part of",
            };
            format!("* {kind} {text}  {rule}\n      was left open; {becomes}: {}", of(with))
        }
        Disposition::Withdraw { memory } => {
            let becomes = match planned.memories.get(&memory) {
                Some(memory) if memory.is_hollow() => "no longer used",
                Some(_) | None => "still has other sources",
            };
            format!("{RED}- {kind} {text}{RED:#}  {rule}\n      source was read again; {becomes}")
        }
        Disposition::Decide { .. } => format!("* {kind} {text}  {rule}"),
        Disposition::Restate { memory, .. } => {
            format!("~ {kind} {text}  {rule}\n      reworded from what is left: {}", of(memory))
        }
    };
    output::line(&format!("  {line}"))?;
    for effect in &operation.effects {
        // Of the memory itself, what caused the change is shown.
        let is_own = Some(effect.memory) == operation.disposition.home();
        let (by, other) = match is_own && effect.by != effect.memory && !effect.restores {
            true => (" by", of(effect.by)),
            false => ("", of(effect.memory)),
        };
        let rule = Some(&*effect.rule);
        let becomes = match effect.stage {
            Some(stage) => {
                let memory = planned.memories.get(&effect.memory);
                memory.map_or(stage.name(), |it| stage.in_words(&it.claim, rule))
            }
            None if effect.supersedes => MemoryState::Superseded.in_words(rule).unwrap_or_default(),
            None if effect.restores => "active again",
            None => "linked",
        };
        let why = reason(&effect.rule);
        output::line(&format!("      {DIM}→ {becomes}{by}: {other}  {why}{DIM:#}"))?;
    }
    Ok(())
}

fn reason(rule: &str) -> String {
    if rule.starts_with(BY_PERSON) {
        return format!("by a person: {rule}");
    }
    if !is_judged(rule) {
        return format!("by rule: {rule}");
    }
    let reason = match rule {
        UNRELATED => "it is about something else",
        "judged-same" => "both say the same thing",
        "judged-conflict" => "they contradict each other, and no words say which one holds",
        "judged-replaced" => "the record's words state a change",
        "judged-nothing" => "the other one makes it unnecessary",
        "judged-completed" => "the record's words say that it was done",
        "judged-granted" => "the record's words say that it was decided",
        "judged-attempted" => "the record's words say that it was tried",
        "judged-settled" => "the record's words say that it was settled",
        _ => "the record's words say so",
    };
    format!("by the model: {reason} ({rule})")
}

/// Headline of a memory, or its id if the memory is gone.
fn headline(planned: &PlannedConsolidation, id: MemoryId) -> String {
    let found = planned.memories.get(&id);
    found.map_or_else(|| short(&id), |it| shorten(it.claim.headline(), LINE_LETTERS))
}
