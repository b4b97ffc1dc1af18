//! `annalist jobs`: lists, shows, retries, cancels and drops jobs.

mod steer;

pub(super) use steer::JobChangeRow;

use super::arguments::{named, one, prefix, session_of};
use super::output::{
    self, BOLD, DIM, Failure, GREEN, RED, Wide, YELLOW, count, counted, dollars, json_row, lasting,
    pairs, short, time,
};
use super::records::RunRow;
use super::settings;
use crate::adapters::clock;
use crate::domain::{JobId, JobState, SessionId, SliceId, Timestamp, Tokens};
use crate::privacy::Redacted;
use crate::store::{JobFilter, JobPage, Store, StoredJob, StoredRun};
use clap::Subcommand;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

const LISTED_MAX: u32 = 200;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  annalist jobs --state dead
  annalist jobs show 3fa9
  annalist jobs retry --all-dead --kind refused
  annalist jobs cancel 3fa9 77c0"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List open and dead jobs, oldest first (default)
    List(List),
    /// Show one job in full, and what can be done with it
    Show {
        /// ID or ID prefix
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Retry dead and cancelled jobs, and make waiting ones ready at once
    Retry(steer::Retry),
    /// Cancel open jobs; their entries are skipped, with the reason
    Cancel(steer::Cancel),
    /// Delete dead and cancelled jobs; their entries keep their states
    Drop(steer::Drop),
}

#[derive(Debug, clap::Args)]
struct List {
    /// Only jobs in this state; can be repeated
    #[arg(long, value_parser = named(JobState::ALL, JobState::name))]
    state: Vec<JobState>,
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Only sessions with this ID or ID prefix
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// List only the N oldest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args, file: Option<&Path>) -> Result<(), Failure> {
    let (_, store) = settings::existing_store(file)?;
    let (runtime, now) = (settings::runtime()?, clock::now());
    runtime.block_on(async {
        match args.command.unwrap_or(Command::List(args.list)) {
            Command::List(args) => list(&store, &args, now).await,
            Command::Show { id, json } => show(&store, &id, json, now).await,
            Command::Retry(args) => steer::retry(&store, &args, now).await,
            Command::Cancel(args) => steer::cancel(&store, &args, now).await,
            Command::Drop(args) => steer::drop_jobs(&store, &args).await,
        }
    })
}

async fn list(store: &Store, args: &List, now: Timestamp) -> Result<(), Failure> {
    // One more than is shown, to detect that there are more.
    let limit = if args.json { args.limit } else { Some(args.limit.unwrap_or(LISTED_MAX + 1)) };
    let filter = JobFilter {
        states: args.state.clone(),
        namespace: args.namespace.clone(),
        session: session_of(store, args.session.as_deref()).await?.map(|it| it.id.0.into()),
        limit,
    };
    let jobs = store.jobs(filter).await?;
    if args.json {
        return output::json(&jobs.iter().map(JobRow::of).collect::<Vec<_>>());
    }
    if jobs.is_empty() {
        let all = args.state.is_empty() && args.namespace.is_none() && args.session.is_none();
        output::note(match all {
            true => "no open or dead jobs: `annalist status` shows the state of every entry",
            false => "no matching jobs: `annalist jobs` lists all open and dead ones",
        });
        return Ok(());
    }
    let shown = args.limit.unwrap_or(LISTED_MAX) as usize;
    print_table(jobs.iter().take(shown), now)?;
    if jobs.len() > shown {
        output::note("more jobs not shown: --limit N shows more, --json all");
    }
    Ok(())
}

fn print_table<'a>(
    jobs: impl Iterator<Item = &'a StoredJob>,
    now: Timestamp,
) -> Result<(), Failure> {
    let header = [
        "job", "state", "why", "tries", "prio", "namespace", "session", "entries", "tokens", "age",
    ];
    let row = |it: &StoredJob| {
        vec![
            short(&it.id),
            it.state.name().to_owned(),
            why(it, now),
            it.attempts.to_string(),
            it.priority.to_string(),
            it.namespace.clone(),
            if it.path.is_empty() { short(&it.session) } else { it.path.clone() },
            format!("{}–{}", it.first.0, it.last.0),
            count(u64::from(it.tokens)),
            lasting(now.since(it.enqueued_at)),
        ]
    };
    // A narrow terminal drops priority, tokens, namespace and tries.
    let rows = jobs.map(row).collect();
    output::print_table(&output::fitted(&header, rows, Wide::paths(6), &[4, 8, 5, 3]))
}

fn why(it: &StoredJob, now: Timestamp) -> String {
    let more = match it.until {
        Some(until) if now < until => format!("{} left", lasting(until.since(now))),
        Some(until) => format!("{} late", lasting(now.since(until))),
        None => String::new(),
    };
    match it.state {
        JobState::Waiting => format!("{}, {more}", it.reason.as_deref().unwrap_or("unknown")),
        JobState::Leased => more,
        JobState::Dead => it.reason.clone().unwrap_or_default(),
        JobState::Ready | JobState::Done | JobState::Cut | JobState::Cancelled => String::new(),
    }
}

json_row! {
    /// A job, as JSON.
    pub(super) struct JobRow<'a> of it: &'a StoredJob {
        job: JobId = it.id,
        state: JobState = it.state,
        reason: Option<&'a str> = it.reason.as_deref(),
        detail: Option<&'a str> = it.detail.as_deref(),
        namespace: &'a str = &it.namespace,
        session: SessionId = it.session,
        path: &'a str = &it.path,
        slice: SliceId = it.slice,
        index: u32 = it.index,
        entries: (u32, u32) = (it.first.0, it.last.0),
        tokens: Tokens = it.tokens,
        priority: i32 = it.priority,
        attempts: u32 = it.attempts,
        generation: u32 = it.generation,
        holder: Option<&'a str> = it.holder.as_deref(),
        enqueued_at: String = it.enqueued_at.to_string(),
        since: String = it.since.to_string(),
        until: Option<String> = time(it.until),
        finished_at: Option<String> = time(it.finished_at),
    }
}

/// A job with its session, its last run and the commands for it, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct JobDetails<'a> {
    #[serde(flatten)]
    job: JobRow<'a>,
    native_id: &'a Redacted,
    title: Option<&'a Redacted>,
    run: Option<RunRow<'a>>,
    next: Vec<String>,
}

async fn show(store: &Store, id: &str, as_json: bool, now: Timestamp) -> Result<(), Failure> {
    let page = one(store.job(prefix(id)?).await?, "job", id)?;
    let next = next(&page.stored);
    if as_json {
        return output::json(&JobDetails {
            job: JobRow::of(&page.stored),
            native_id: &page.session.native_id,
            title: page.session.title.as_ref(),
            run: page.run.as_ref().map(RunRow::of),
            next: next.into_iter().map(|(command, _)| command).collect(),
        });
    }
    print_page(&page, now)?;
    for (command, effect) in next {
        output::note(&format!("{DIM}{command}{DIM:#}  {effect}"));
    }
    Ok(())
}

fn print_page(page: &JobPage, now: Timestamp) -> Result<(), Failure> {
    let JobPage { stored: it, session, run } = page;
    let style = match it.state {
        JobState::Dead => RED,
        JobState::Waiting | JobState::Cancelled => YELLOW,
        JobState::Done => GREEN,
        JobState::Ready | JobState::Leased | JobState::Cut => BOLD,
    };
    let why = why(it, now);
    let why = if why.is_empty() { why } else { format!(", {why}") };
    output::line(&format!("{style}{}{style:#}{why}  {}", it.state.name(), it.id))?;
    if let Some(detail) = &it.detail {
        output::line(&format!("  {YELLOW}{detail}{YELLOW:#}"))?;
    }
    let when = |at: Timestamp| format!("{at} ({} ago)", lasting(now.since(at)));
    let title = session.title.as_ref().map(|title| format!(" “{}”", title.as_str()));
    let part = |(ordinal, part): (u32, u32)| match part {
        0 => ordinal.to_string(),
        part => format!("{ordinal} (part {})", part + 1),
    };
    let afresh = match it.generation {
        0 => String::new(),
        times => format!(", restarted {times} times"),
    };
    let slice = format!(
        "number {}, entries {}–{}, about {} tokens",
        it.index + 1,
        part(it.first),
        part(it.last),
        count(u64::from(it.tokens))
    );
    let holder = if it.state == JobState::Leased { "held by" } else { "last held by" };
    let since = format!("{} since", it.state.name());
    let rows = [
        (
            "session",
            format!("{} {}{}", short(&session.id), session.format, title.unwrap_or_default()),
        ),
        ("namespace", it.namespace.clone()),
        ("file", it.path.clone()),
        ("slice", slice),
        ("tries", format!("{}{afresh}", it.attempts)),
        ("priority", it.priority.to_string()),
        ("enqueued", when(it.enqueued_at)),
        (since.as_str(), when(it.since)),
        ("until", it.until.map(|until| until.to_string()).unwrap_or_default()),
        (holder, it.holder.clone().unwrap_or_default()),
        ("run", run.as_ref().map(run_line).unwrap_or_default()),
    ];
    pairs(rows)
}

fn run_line(StoredRun { run, current }: &StoredRun) -> String {
    let state = if *current { run.state.name() } else { "replaced" };
    format!(
        "{} {state}, {}, {}, {}, {} tokens, ${:.4}",
        short(&run.id),
        run.model,
        run.prompt(),
        counted(run.calls.into(), "call"),
        count(run.usage.prompt_tokens + run.usage.completion_tokens),
        dollars(run.cost_micros)
    )
}

fn next(it: &StoredJob) -> Vec<(String, &'static str)> {
    let id = short(&it.id);
    let jobs = |verb: &str| format!("annalist jobs {verb} {id}");
    match it.state {
        JobState::Waiting => vec![
            (jobs("retry"), "makes it ready now"),
            (jobs("cancel"), "cancels it; its entries are skipped"),
        ],
        JobState::Ready => vec![
            ("annalist worker".to_owned(), "processes it in turn"),
            (jobs("cancel"), "cancels it; its entries are skipped"),
        ],
        JobState::Leased => {
            vec![(jobs("cancel"), "cancels it; its worker's results are rejected")]
        }
        JobState::Dead => vec![
            (jobs("retry"), "asks the model again"),
            (jobs("drop"), "deletes it; its entries stay failed"),
        ],
        JobState::Cancelled => vec![
            (jobs("retry"), "retries it"),
            (jobs("drop"), "deletes it; its entries stay skipped"),
        ],
        JobState::Done => {
            let session = short(&it.session);
            vec![(format!("annalist records --session {session}"), "lists the records")]
        }
        JobState::Cut => {
            let session = short(&it.session);
            vec![(format!("annalist jobs --session {session}"), "lists the two that replaced it")]
        }
    }
}
