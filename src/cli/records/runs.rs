//! Runs: which there are, and how two of one slice differ.

use super::super::output::{self, Failure, GREEN, RED, short};
use super::{kind, one, prefix, to_json};
use crate::edge::store::{Store, StoredRecord, StoredRun};
use serde_json::{Value, json};

pub(super) async fn list(store: &Store, as_json: bool) -> Result<(), Failure> {
    /// Runs that are listed; more are for `--json` and other programs.
    const RUNS_MAX: u32 = 100_000;
    let runs = store.runs(None, RUNS_MAX).await?;
    if as_json {
        return output::json(&runs.iter().map(run_json).collect::<Vec<_>>());
    }
    let mut table =
        output::table(&["run", "session", "entries", "model", "prompt", "state", "calls"]);
    for StoredRun { run, current } in &runs {
        let state = if *current { run.state.name() } else { "replaced" };
        table.add_row([
            short(&run.id),
            short(&run.session),
            format!("{}–{}", run.first.0, run.last.0),
            run.model.clone(),
            format!("{} v{}", run.prompt_id, run.prompt_version),
            state.to_owned(),
            run.calls.to_string(),
        ]);
    }
    output::print_table(&table)
}

/// A run as other programs read it.
pub(in crate::cli) fn run_json(stored: &StoredRun) -> Value {
    let run = &stored.run;
    json!({
        "run": run.id, "session": run.session, "slice": run.slice, "current": stored.current,
        "entries": [run.first.0, run.last.0], "model": run.model,
        "prompt": { "id": run.prompt_id, "version": run.prompt_version },
        "schema_version": run.schema_version, "rung": run.rung, "state": run.state,
        "failure": run.failure.as_ref().map(|it| json!({"kind": it.kind, "detail": it.detail})),
        "asks": run.asks, "calls": run.calls, "usage": run.usage,
        "cost": run.cost_micros as f64 / 1e6, "findings": run.findings,
        "finished_at": run.finished_at.to_string(),
    })
}

pub(super) async fn diff(
    store: &Store,
    old: &str,
    new: &str,
    as_json: bool,
) -> Result<(), Failure> {
    let from = one(store.run(prefix(old)?).await?, "run", old)?;
    let to = one(store.run(prefix(new)?).await?, "run", new)?;
    let (before, after) = store.diff(from.run.id, to.run.id).await?;
    let has = |list: &[StoredRecord], it: &StoredRecord| {
        list.iter().any(|other| other.record.claim == it.record.claim)
    };
    let gone: Vec<_> = before.iter().filter(|it| !has(&after, it)).collect();
    let added: Vec<_> = after.iter().filter(|it| !has(&before, it)).collect();
    let same = after.len() - added.len();
    if as_json {
        return output::json(&json!({
            "old": run_json(&from), "new": run_json(&to), "same": same,
            "gone": gone.iter().map(|it| to_json(it)).collect::<Vec<_>>(),
            "added": added.iter().map(|it| to_json(it)).collect::<Vec<_>>(),
        }));
    }
    let about = |it: &StoredRun| {
        format!(
            "{} {} {} v{}",
            short(&it.run.id),
            it.run.model,
            it.run.prompt_id,
            it.run.prompt_version
        )
    };
    output::line(&format!("{RED}- {}{RED:#}\n{GREEN}+ {}{GREEN:#}", about(&from), about(&to)))?;
    if from.run.slice != to.run.slice {
        output::note("the two runs read different slices");
    }
    for (sign, style, list) in [("-", RED, gone), ("+", GREEN, added)] {
        for it in list {
            let claim = &it.record.claim;
            output::line(&format!("{style}{sign} {}: {}{style:#}", kind(claim), claim.headline()))?;
        }
    }
    output::note(&format!("{same} the same"));
    Ok(())
}
