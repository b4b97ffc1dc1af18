//! `annalist status`: what became of every entry.

mod queue;

use super::output::{
    self, BOLD, DIM, Failure, GREEN, RED, YELLOW, count, counted, short, shorten, tail,
};
use super::settings;
use crate::adapters::clock;
use crate::domain::{ClaimKind, Coverage, Purpose};
use crate::store::{ABANDONED, BillLine, OpenMode, QueueStats, SessionStatus, Status};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// Letters of a path in the table.
const PATH_LETTERS: usize = 48;
/// Sessions that are listed without `--all`.
const SESSIONS_MAX: usize = 20;
/// Failed slices that are listed without `--all`.
const FAILED_MAX: usize = 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exits 1 when something needs a person: it failed or died, a worker stopped, nobody works on what is \
ready, or the entries do not add up.")]
pub(super) struct Args {
    /// List every session and every failed slice
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let store = settings::open_store(&config, OpenMode::Existing)?;
    let (status, depth) = settings::runtime()?.block_on(async {
        Ok::<_, Failure>((store.status().await?, store.depth(clock::now()).await?))
    })?;
    match args.json {
        true => {
            let mut whole = to_json(&status, &depth);
            whole["settings"] = json!(config.source);
            whole["store"] = json!(store.place());
            output::json(&whole)
        }
        false => print(&status, &depth, args.all),
    }?;
    if !args.json {
        output::note(&format!("{DIM}{}{DIM:#}", settings::in_force(&config, &store)));
    }
    let unbalanced = status.sessions.iter().any(|it| it.entries.is_some() && !it.is_balanced());
    let failed = total(&status).failed > 0 || !status.failed.is_empty() || unbalanced;
    Ok(ExitCode::from(if failed || depth.needs_person() { output::FAILED } else { 0 }))
}

fn total(status: &Status) -> Coverage {
    let mut sum = Coverage::default();
    for session in &status.sessions {
        sum.extracted += session.coverage.extracted;
        sum.nothing += session.coverage.nothing;
        sum.skipped += session.coverage.skipped;
        sum.failed += session.coverage.failed;
        sum.pending += session.coverage.pending;
    }
    sum
}

fn to_json(status: &Status, depth: &QueueStats) -> Value {
    let sessions: Vec<Value> = status.sessions.iter().map(session_json).collect();
    let failed: Vec<Value> = status
        .failed
        .iter()
        .map(|it| {
            json!({
                "run": it.run, "session": it.session, "path": it.path,
                "entries": [it.entries.0, it.entries.1], "kind": it.failure.kind,
                "detail": it.failure.detail, "at": it.at.to_string(),
            })
        })
        .collect();
    let spent = &status.spent;
    json!({
        "sessions": sessions, "coverage": total(status), "failed": failed,
        "spent": {
            "calls": spent.calls, "sent": spent.usage.prompt_tokens,
            "cached": spent.usage.cached_tokens, "answered": spent.usage.completion_tokens,
            "cost": spent.cost_micros as f64 / 1e6,
        },
        "bill": status.bill.iter().map(bill_json).collect::<Vec<_>>(),
        "queue": queue::to_json(depth),
    })
}

fn bill_json(line: &BillLine) -> Value {
    let spent = &line.spent;
    json!({
        "day": line.day.day(), "namespace": line.namespace, "for": line.purpose.name(),
        "calls": spent.calls, "sent": spent.usage.prompt_tokens,
        "cached": spent.usage.cached_tokens, "answered": spent.usage.completion_tokens,
        "cost": spent.cost_micros as f64 / 1e6,
    })
}

fn session_json(it: &SessionStatus) -> Value {
    json!({
        "session": it.session.id, "native_id": it.session.native_id, "path": it.session.path,
        "format": it.session.format, "namespace": it.session.namespace,
        "title": it.session.title, "started_at": it.session.started_at.map(|at| at.to_string()),
        "entries": it.entries, "coverage": it.coverage, "balanced": it.is_balanced(),
        "records": it.staged, "quarantined": it.quarantined,
        "runs": { "done": it.runs_done, "failed": it.runs_failed },
        "findings": it.findings, "masked": it.masked,
    })
}

fn print(status: &Status, depth: &QueueStats, all: bool) -> Result<(), Failure> {
    let sum = total(status);
    let mut header = vec!["session", "transcript", "entries", "extracted", "nothing", "skipped"];
    header.extend((sum.pending > 0).then_some("pending"));
    header.extend(["failed", "records", "quarantined"]);
    let shown = if all { status.sessions.len() } else { SESSIONS_MAX };
    let newest = status.sessions.iter().rev().take(shown);
    let rows = newest.map(|it| row(it, sum.pending > 0)).collect();
    // A narrow terminal shows the quarantined, skipped and empty ones in the sum alone.
    let spare = [header.len() - 1, 5, 4];
    output::print_table(&output::fitted(&header, rows, 1, &spare))?;
    if status.sessions.len() > shown {
        let more = counted((status.sessions.len() - shown) as u64, "session");
        output::note(&format!("and {more} more: --all"));
    }
    let pending = match sum.pending {
        0 => String::new(),
        pending => format!("{} pending, ", count(pending)),
    };
    output::line(&format!(
        "\n{BOLD}{} entries{BOLD:#}: {} extracted, {} nothing worth keeping, {} skipped, {pending}\
         {} failed; {} calls, ${:.4}",
        count(sum.total()),
        count(sum.extracted),
        count(sum.nothing),
        count(sum.skipped),
        count(sum.failed),
        count(status.spent.calls),
        status.spent.cost_micros as f64 / 1e6
    ))?;
    print_bill(status, all)?;
    queue::print(depth)?;
    print_state(status, depth, all)
}

/// What of it was not to extract; with `all` the whole bill, by day, namespace and what it was for.
fn print_bill(status: &Status, all: bool) -> Result<(), Failure> {
    if all && !status.bill.is_empty() {
        let mut table = output::table(&["day", "namespace", "for", "calls", "tokens", "cost"]);
        for BillLine { day, namespace, purpose, spent } in &status.bill {
            table.add_row([
                day.day(),
                namespace.clone(),
                purpose.name().to_owned(),
                count(spent.calls),
                count(spent.usage.prompt_tokens + spent.usage.completion_tokens),
                format!("${:.4}", spent.cost_micros as f64 / 1e6),
            ]);
        }
        return output::print_table(&table);
    }
    let others = status.bill.iter().filter(|it| it.purpose != Purpose::Extract);
    let (mut calls, mut micros) = (BTreeMap::<Purpose, u64>::new(), 0);
    for line in others {
        *calls.entry(line.purpose).or_default() += line.spent.calls;
        micros += line.spent.cost_micros;
    }
    let calls: Vec<String> = calls
        .into_iter()
        .map(|(purpose, calls)| format!("{} to {}", counted(calls, "call"), purpose.name()))
        .collect();
    if !calls.is_empty() {
        output::line(&format!(
            "of these {}, ${:.4}; --all has the bill by day and namespace",
            calls.join(", "),
            micros as f64 / 1e6
        ))?;
    }
    Ok(())
}

/// A session in the table.
fn row(it: &SessionStatus, with_pending: bool) -> Vec<String> {
    let staged: u64 = ClaimKind::ALL.iter().filter_map(|kind| it.staged.get(kind)).sum();
    let mut row = vec![
        short(&it.session.id),
        tail(&it.session.path, PATH_LETTERS),
        it.entries.map_or("reading".to_owned(), count),
        count(it.coverage.extracted),
        count(it.coverage.nothing),
        count(it.coverage.skipped),
    ];
    row.extend(with_pending.then(|| count(it.coverage.pending)));
    row.extend([count(it.coverage.failed), count(staged), count(it.quarantined)]);
    row
}

fn print_state(status: &Status, depth: &QueueStats, all: bool) -> Result<(), Failure> {
    let shown = if all { status.failed.len() } else { FAILED_MAX };
    for it in status.failed.iter().take(shown) {
        output::line(&format!(
            "{RED}failed{RED:#} {} entries {}–{} of {}: {}: {}",
            short(&it.run),
            it.entries.0,
            it.entries.1,
            tail(&it.path, PATH_LETTERS),
            it.failure.kind,
            shorten(&it.failure.detail, 200)
        ))?;
    }
    if status.failed.len() > shown {
        output::note(&format!("and {} more: --all", status.failed.len() - shown));
    }
    // What died in the queue is asked afresh there.
    let dead: u64 = depth.dead.iter().filter(|it| it.kind != ABANDONED).map(|it| it.jobs).sum();
    if dead < status.sessions.iter().map(|it| it.runs_failed).sum::<u64>() {
        output::note("replay the same path with --retry-failed to ask afresh");
    }
    for it in status.sessions.iter().filter(|it| !it.is_balanced()) {
        let (id, path) = (short(&it.session.id), tail(&it.session.path, PATH_LETTERS));
        match it.entries {
            None => output::line(&format!(
                "{YELLOW}unfinished{YELLOW:#} {id} {path}: replay it again to go on"
            ))?,
            Some(entries) => output::line(&format!(
                "{RED}unbalanced{RED:#} {id} {path}: {entries} entries, {} accounted for",
                it.coverage.total()
            ))?,
        }
    }
    if status.failed.is_empty() && status.sessions.iter().all(SessionStatus::is_balanced) {
        output::line(&match total(status).pending {
            0 => format!("{GREEN}every entry is accounted for{GREEN:#}"),
            _ => format!("{GREEN}every entry is accounted for or in the queue{GREEN:#}"),
        })?;
    }
    Ok(())
}
