//! `annalist memory keep-both`, `supersede`, `close`, `reopen` and `retract`: a person's verdicts on memories.

use super::folder::{after_plan, before_plan};
use super::memories::named;
use crate::cli::consolidate::consolidator;
use crate::cli::output::{self, DIM, Failure, short, shorten};
use crate::cli::settings;
use crate::consolidate::PersonVerdict;
use crate::domain::{Digest, Memory, MemoryId, Plan};
use crate::pipeline::{Consolidator, DecisionOutcome};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

const HEADLINE_LETTERS: usize = 80;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: annalist memory keep-both 3fa9 src-1b0c22d4

An id, the beginning of one, or a tag of the directory. `annalist consolidate --undo` takes a verdict back.")]
pub(super) struct KeepBothArgs {
    /// A memory
    one: String,
    /// The memory that it seems to contradict
    other: String,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: annalist memory supersede 3fa9 src-1b0c22d4

An id, the beginning of one, or a tag of the directory. `annalist consolidate --undo` takes a verdict back.")]
pub(super) struct SupersedeArgs {
    /// The memory that holds no more
    old: String,
    /// The memory that holds in its place
    new: String,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
An id, the beginning of one, or a tag of the directory. `annalist consolidate --undo` takes a verdict back.")]
pub(super) struct OneArgs {
    /// The memory
    id: String,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, clap::Args)]
struct OutputArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A verdict, as JSON.
#[derive(JsonSchema, Serialize)]
pub(in crate::cli) struct VerdictRow {
    plan: Digest,
    rule: String,
    memories: Vec<MemoryId>,
}

pub(super) fn keep_both(args: &KeepBothArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let verdict = |ids: &[MemoryId]| {
        let [one, other] = *ids else { return None };
        Some(PersonVerdict::KeepBoth { one, other })
    };
    decide(&[&args.one, &args.other], verdict, args.output.json, file)
}

pub(super) fn supersede(args: &SupersedeArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let verdict = |ids: &[MemoryId]| {
        let [old, new] = *ids else { return None };
        Some(PersonVerdict::Supersede { old, new })
    };
    decide(&[&args.old, &args.new], verdict, args.output.json, file)
}

pub(super) fn close(args: &OneArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let verdict = |ids: &[MemoryId]| Some(PersonVerdict::Close { memory: *ids.first()? });
    decide(&[&args.id], verdict, args.output.json, file)
}

pub(super) fn reopen(args: &OneArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let verdict = |ids: &[MemoryId]| Some(PersonVerdict::Reopen { memory: *ids.first()? });
    decide(&[&args.id], verdict, args.output.json, file)
}

pub(super) fn retract(args: &OneArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let verdict = |ids: &[MemoryId]| Some(PersonVerdict::Retract { memory: *ids.first()? });
    decide(&[&args.id], verdict, args.output.json, file)
}

fn decide(
    names: &[&String],
    verdict: impl Fn(&[MemoryId]) -> Option<PersonVerdict>,
    as_json: bool,
    file: Option<&Path>,
) -> Result<ExitCode, Failure> {
    let (config, store) = settings::existing_store(file)?;
    settings::runtime()?.block_on(async {
        let mut memories: Vec<Memory> = Vec::new();
        for name in names {
            memories.push(named(&store, name).await?);
        }
        let ids: Vec<MemoryId> = memories.iter().map(|it| it.id).collect();
        let (Some(first), Some(verdict)) = (memories.first(), verdict(&ids)) else {
            return Err(Failure::usage("expected a memory"));
        };
        let namespace = first.namespace.as_str();
        before_plan(&store, &config, namespace).await?;
        let plan = apply(&consolidator(store.clone(), None), namespace, verdict).await?;
        let rule = plan.operations.first().map(|it| it.rule.to_string()).unwrap_or_default();
        if as_json {
            output::json(&VerdictRow { plan: plan.id.0, rule, memories: ids })?;
        } else {
            let is_replaced = matches!(verdict, PersonVerdict::Supersede { .. });
            for (at, memory) in memories.iter().enumerate() {
                let words = shorten(memory.claim.headline(), HEADLINE_LETTERS);
                let deed = if is_replaced && at > 0 { "takes its place" } else { &rule };
                output::line(&format!("{}  {words}  {DIM}{deed}{DIM:#}", short(&memory.id)))?;
            }
            let plan = short(&plan.id);
            output::note(&format!("`annalist consolidate --undo {plan}` takes it back"));
        }
        after_plan(&store, &config, &[namespace]).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Applies a verdict, or explains why it cannot be applied.
pub(super) async fn apply(
    consolidator: &Consolidator,
    namespace: &str,
    verdict: PersonVerdict,
) -> Result<Plan, Failure> {
    match consolidator.decide(namespace, verdict).await? {
        DecisionOutcome::Done(plan) => Ok(*plan),
        DecisionOutcome::Refused(why) => Err(Failure::usage(why)),
        DecisionOutcome::Busy => Err(Failure::failed(format!(
            "namespace `{namespace}`: another process changes its memory now; try again"
        ))),
    }
}
