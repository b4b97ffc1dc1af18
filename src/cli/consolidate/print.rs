//! A plan as a person reads it: what is added, what changes, what stays beside what, and by which rule.

use super::super::output::{self, BOLD, DIM, Failure, GREEN, RED, YELLOW, counted, short, shorten};
use crate::consolidate::is_judged;
use crate::domain::{Claim, Disposition, MemoryId, Merging, Operation, Plan, Settlement};
use crate::worker::Planned;

/// Letters of a claim on a line.
const LINE_LETTERS: usize = 90;
/// Pairs that are listed as left open; the others are counted.
const OPEN_MAX: usize = 10;

/// Prints a plan with every operation.
pub(super) fn plan(planned: &Planned, dry_run: bool) -> Result<(), Failure> {
    let plan = &planned.plan;
    let what = if dry_run { "would become" } else { "became" };
    let records = counted(plan.operations.len() as u64, "record");
    output::line(&format!(
        "{BOLD}{}{BOLD:#}  {DIM}plan {}: {records} {what}: {}{DIM:#}",
        plan.namespace,
        short(&plan.id),
        counts(plan)
    ))?;
    for operation in &plan.operations {
        print(planned, operation)?;
    }
    for open in plan.left_open.iter().take(OPEN_MAX) {
        let other = headline(planned, open.memory);
        let record = short(&open.record);
        output::line(&format!(
            "  {YELLOW}?{YELLOW:#} record {record} and `{other}` {DIM}open ({}): both are kept{DIM:#}",
            open.rule
        ))?;
    }
    if plan.left_open.len() > OPEN_MAX {
        let more = counted((plan.left_open.len() - OPEN_MAX) as u64, "pair");
        output::line(&format!("  {YELLOW}?{YELLOW:#} {more} more left open"))?;
    }
    Ok(())
}

/// How many records came to what, such as `7 add, 1 merge`.
pub(super) fn counts(plan: &Plan) -> String {
    let counts = plan.counts();
    let named: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    if named.is_empty() { "nothing".to_owned() } else { named.join(", ") }
}

fn print(planned: &Planned, operation: &Operation) -> Result<(), Failure> {
    let claim = &operation.facts.claim;
    let text = shorten(claim.headline(), LINE_LETTERS);
    let kind = kind(claim);
    let rule = format!("{DIM}{}{DIM:#}", by(&operation.rule));
    let line = match &operation.disposition {
        Disposition::Add { .. } => format!("{GREEN}+ {kind} {text}{GREEN:#}  {rule}"),
        Disposition::Merge { into, how } => {
            let learns = match how {
                Merging::Provenance => "one source more",
                Merging::Extend => "learns more",
                Merging::Outcome => "a later outcome",
            };
            let into = headline(planned, *into);
            format!("~ {kind} {text}  {rule}\n      {learns}: {into}")
        }
        Disposition::Supersede { old, .. } => {
            let old = headline(planned, *old);
            format!("{RED}- {kind} {old}{RED:#}\n  {GREEN}+ {kind} {text}{GREEN:#}  {rule}")
        }
        Disposition::Conflict { with, .. } => {
            let with = headline(planned, *with);
            format!("{YELLOW}! {kind} {text}{YELLOW:#}  {rule}\n      stays beside: {with}")
        }
        Disposition::Discard => format!("{DIM}· {kind} {text}{DIM:#}  {rule}"),
        Disposition::Duplicate { .. } => format!("= {kind} {text}  {rule}"),
        Disposition::Settle { with, how, .. } => {
            let with = headline(planned, *with);
            let becomes = match how {
                Settlement::Apart => "has nothing to do with",
                Settlement::Beside => "stays beside",
                Settlement::Joined => "joined into",
                Settlement::Replaced => "takes the place of",
                Settlement::Dropped => "dropped beside",
                Settlement::Followed => "changes",
            };
            format!("* {kind} {text}  {rule}\n      left open before; {becomes}: {with}")
        }
        Disposition::Withdraw { memory } => {
            let becomes = match planned.memories.get(memory) {
                Some(memory) if memory.is_hollow() => "out of use",
                Some(_) | None => "others say it too",
            };
            format!("{RED}- {kind} {text}{RED:#}  {rule}\n      read anew; {becomes}")
        }
        Disposition::Restate { memory, .. } => {
            let memory = headline(planned, *memory);
            format!("~ {kind} {text}  {rule}\n      in the words that are left: {memory}")
        }
    };
    output::line(&format!("  {line}"))?;
    for effect in &operation.effects {
        let other = headline(planned, effect.memory);
        let becomes = match effect.stage {
            Some(stage) => stage.name(),
            None if effect.supersedes => "superseded",
            None if effect.restores => "stands again",
            None => "linked",
        };
        output::line(&format!("      {DIM}→ {becomes}: {other}  {}{DIM:#}", by(&effect.rule)))?;
    }
    Ok(())
}

/// Who decided, and why.
fn by(rule: &str) -> String {
    if !is_judged(rule) {
        return format!("by rule: {rule}");
    }
    let reason = match rule {
        "judged-unrelated" => "it is about something else",
        "judged-same" => "both say the same",
        "judged-conflict" => "they contradict one another, and no words say which one holds",
        "judged-replaced" => "the record's words tell of a change",
        "judged-nothing" => "nobody needs it beside the other",
        "judged-completed" => "the record's words tell that it was done",
        "judged-attempted" => "the record's words tell that it was tried",
        "judged-settled" => "the record's words tell that it was decided",
        _ => "the record's words tell of it",
    };
    format!("by the model: {reason} ({rule})")
}

fn kind(claim: &Claim) -> &'static str {
    claim.kind().name()
}

/// The words of a memory, or its id where it is gone.
fn headline(planned: &Planned, id: MemoryId) -> String {
    let found = planned.memories.get(&id);
    found.map_or_else(|| short(&id), |it| shorten(it.claim.headline(), LINE_LETTERS))
}
