//! `annalist jobs`: lists, retries, cancels and drops jobs.

use super::arguments::{limit, named, one, prefix, session_of};
use super::output::{
    self, GREEN, Result, Wide, YELLOW, count, json_row, lasting, numbers, short, time,
};
use super::settings;
use crate::adapters::clock;
use crate::config::namespace_name;
use crate::domain::{JobId, JobState, SessionId, SliceId, Timestamp, Tokens};
use crate::store::{JobChange, JobFilter, JobSelection, Store, StoredJob};
use clap::Subcommand;
use clap::builder::TypedValueParser;
use std::collections::BTreeMap;
use std::path::Path;

const LISTED_MAX: u32 = 200;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  annalist jobs --state dead
  annalist jobs 3fa9
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
    /// Retry dead and cancelled jobs, and make waiting ones ready at once
    Retry(Retry),
    /// Cancel open jobs; their entries are skipped, with the reason
    Cancel {
        /// IDs or ID prefixes
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete dead and cancelled jobs; their entries keep their states
    Drop(Drop),
}

#[derive(Debug, clap::Args)]
struct List {
    /// List only these, in any state, with their errors: IDs or ID prefixes
    #[arg(value_name = "ID", conflicts_with_all = ["state", "namespace", "session", "limit"])]
    ids: Vec<String>,
    /// Only jobs in this state; can be repeated
    #[arg(long, value_parser = named(JobState::ALL, JobState::name))]
    state: Vec<JobState>,
    /// Only this namespace
    #[arg(long, value_name = "NAME", value_parser = namespace_name)]
    namespace: Option<String>,
    /// Only sessions with this ID or ID prefix
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// List only the N oldest
    #[arg(long, value_name = "N", value_parser = limit().try_map(u32::try_from))]
    limit: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, file: Option<&Path>) -> Result<()> {
    let (_, store) = settings::existing_store(file)?;
    let now = clock::now();
    match args.command.unwrap_or(Command::List(args.list)) {
        Command::List(args) => list(&store, &args, now).await,
        Command::Retry(args) => retry(&store, &args, now).await,
        Command::Cancel { ids, json } => {
            let steered = store.cancel(selected(&store, &ids).await?, now).await?;
            tell(Order::Cancel, false, &steered, json)
        }
        Command::Drop(args) => drop_jobs(&store, &args).await,
    }
}

async fn list(store: &Store, args: &List, now: Timestamp) -> Result<()> {
    // One more than is shown, to detect that there are more.
    let limit = if args.json { args.limit } else { Some(args.limit.unwrap_or(LISTED_MAX + 1)) };
    let filter = JobFilter {
        states: args.state.clone(),
        namespace: args.namespace.clone(),
        session: session_of(store, args.session.as_deref()).await?.map(|it| it.id.0.into()),
        limit,
    };
    let jobs = match args.ids.as_slice() {
        [] => store.jobs(filter).await?,
        ids => resolve(store, ids).await?,
    };
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
    for it in jobs.iter().filter(|_| !args.ids.is_empty()) {
        if let Some(detail) = &it.detail {
            output::line(&format!("{YELLOW}{}{YELLOW:#} {detail}", short(&it.id)))?;
        }
    }
    if jobs.len() > shown {
        output::note("more jobs not shown: --limit N shows more, --json all");
    }
    Ok(())
}

fn print_table<'a>(jobs: impl Iterator<Item = &'a StoredJob>, now: Timestamp) -> Result<()> {
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
    // A narrow terminal hides priority, tokens, namespace and tries.
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

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["ids", "all_dead"]))]
struct Retry {
    /// IDs or ID prefixes
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All dead jobs
    #[arg(long)]
    all_dead: bool,
    /// Only jobs with this kind of failure, such as refused
    #[arg(long, value_name = "KIND", requires = "all_dead", conflicts_with = "ids")]
    kind: Option<String>,
    /// Only this namespace
    #[arg(long, value_name = "NAME", value_parser = namespace_name, requires = "all_dead", conflicts_with = "ids")]
    namespace: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["ids", "all_dead", "all_cancelled"]))]
struct Drop {
    /// IDs or ID prefixes
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All dead jobs
    #[arg(long)]
    all_dead: bool,
    /// All cancelled jobs
    #[arg(long)]
    all_cancelled: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

json_row! {
    /// A job that was changed or left as it was, as JSON.
    pub(super) struct JobChangeRow<'a> of it: &'a JobChange, left: String {
        job: JobId = it.id,
        was: Option<JobState> = it.was,
        reason: Option<&'a str> = it.reason.as_deref(),
        done: bool = it.done,
        why_not: Option<String> = (!it.done).then_some(left),
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Order {
    Retry,
    Cancel,
    Drop,
}

impl Order {
    fn done(self) -> &'static str {
        match self {
            Order::Retry => "ready",
            Order::Cancel => "cancelled",
            Order::Drop => "dropped",
        }
    }

    /// Reason why a job was not changed, and true if it is already in the requested state.
    fn left(self, id: &str, was: Option<JobState>) -> (String, bool) {
        let Some(was) = was else { return ("it no longer exists".to_owned(), self == Order::Drop) };
        let already = format!("it is already {}", was.name());
        match (was, self) {
            (JobState::Done, _) => ("its slice is already extracted".to_owned(), false),
            (JobState::Cut, _) => ("it was too long, and two jobs replaced it".to_owned(), false),
            (JobState::Waiting | JobState::Ready | JobState::Leased, Order::Drop) => {
                let first = format!("run `annalist jobs cancel {id}` first");
                (format!("it is still {}: {first}", was.name()), false)
            }
            (JobState::Leased, _) => (format!("{already}: a worker is processing it"), true),
            (JobState::Dead, Order::Cancel) => {
                (format!("{already}: `annalist jobs drop {id}` deletes it"), false)
            }
            (JobState::Waiting | JobState::Ready | JobState::Cancelled | JobState::Dead, _) => {
                (already, true)
            }
        }
    }
}

async fn retry(store: &Store, args: &Retry, now: Timestamp) -> Result<()> {
    let which = match args.all_dead {
        true => JobSelection::Dead { kind: args.kind.clone(), namespace: args.namespace.clone() },
        false => JobSelection::Ids(selected(store, &args.ids).await?),
    };
    let steered = store.retry(which, now).await?;
    if steered.is_empty() && !args.json {
        none(store, args.kind.as_deref(), now).await?;
    }
    tell(Order::Retry, args.all_dead, &steered, args.json)
}

async fn drop_jobs(store: &Store, args: &Drop) -> Result<()> {
    let which = if args.all_dead {
        JobSelection::Dead { kind: None, namespace: None }
    } else if args.all_cancelled {
        JobSelection::Cancelled
    } else {
        JobSelection::Ids(selected(store, &args.ids).await?)
    };
    let steered = store.drop_jobs(which).await?;
    if steered.is_empty() && !args.json {
        output::note("no matching jobs: nothing was dropped");
    }
    tell(Order::Drop, args.all_dead || args.all_cancelled, &steered, args.json)
}

async fn selected(store: &Store, ids: &[String]) -> Result<Vec<JobId>> {
    Ok(resolve(store, ids).await?.iter().map(|it| it.id).collect())
}

/// Resolves id prefixes to distinct jobs; fails before any change if one is ambiguous.
async fn resolve(store: &Store, ids: &[String]) -> Result<Vec<StoredJob>> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let job = one(store.job(prefix(id)?).await?, "job", id)?;
        if !found.contains(&job) {
            found.push(job);
        }
    }
    Ok(found)
}

async fn none(store: &Store, kind: Option<&str>, now: Timestamp) -> Result<()> {
    let dead = store.depth(now).await?.dead;
    let kinds = numbers(dead.iter().map(|it| (&it.kind, it.jobs)));
    output::note(&match (kind, kinds.is_empty()) {
        (_, true) => "no dead jobs: nothing to retry".to_owned(),
        (Some(kind), false) => {
            format!("no matching job died of `{kind}`: nothing to retry; dead: {kinds}")
        }
        (None, false) => format!("no matching dead jobs: nothing to retry; dead: {kinds}"),
    });
    Ok(())
}

fn tell(order: Order, all: bool, steered: &[JobChange], as_json: bool) -> Result<()> {
    let left = |it: &JobChange| order.left(&short(&it.id), it.was);
    let fine = steered.iter().all(|it| it.done || left(it).1);
    if as_json {
        let rows = steered.iter().map(|it| JobChangeRow::of(it, left(it).0));
        output::json(&rows.collect::<Vec<_>>())?;
        return output::fail_if(!fine);
    }
    if all {
        sum(order, steered)?;
        return output::fail_if(!fine);
    }
    for it in steered {
        let id = short(&it.id);
        if it.done {
            let was = it.was.map_or("gone", JobState::name);
            let reason = it.reason.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
            output::line(&format!("{GREEN}{}{GREEN:#} {id} (was {was}{reason})", order.done()))?;
        } else {
            output::line(&format!("{YELLOW}unchanged{YELLOW:#} {id}: {}", left(it).0))?;
        }
    }
    output::fail_if(!fine)
}

fn sum(order: Order, steered: &[JobChange]) -> Result<()> {
    if steered.is_empty() {
        return Ok(());
    }
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for it in steered {
        let was = it.was.map_or("gone", JobState::name);
        *kinds.entry(it.reason.as_deref().unwrap_or(was)).or_default() += 1;
    }
    let (done, jobs) = (order.done(), count(steered.len() as u64));
    output::line(&format!("{GREEN}{done}{GREEN:#} {jobs} ({})", numbers(kinds)))
}
