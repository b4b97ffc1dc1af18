//! `annalist jobs retry`, `cancel` and `drop`: change jobs and report each result.

use crate::cli::arguments::{one, prefix};
use crate::cli::output::{self, Failure, GREEN, YELLOW, count, numbers, short};
use crate::domain::{JobId, JobState, Timestamp};
use crate::store::{JobChange, JobSelection, Store};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["ids", "all_dead"]))]
pub(super) struct Retry {
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
    #[arg(long, value_name = "NAME", requires = "all_dead", conflicts_with = "ids")]
    namespace: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Cancel {
    /// IDs or ID prefixes
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["ids", "all_dead", "all_cancelled"]))]
pub(super) struct Drop {
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

/// A job that was changed or left as it was, as JSON.
#[derive(JsonSchema, Serialize)]
pub(in crate::cli) struct JobChangeRow<'a> {
    job: JobId,
    was: Option<JobState>,
    reason: Option<&'a str>,
    done: bool,
    why_not: Option<String>,
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

pub(super) async fn retry(store: &Store, args: &Retry, now: Timestamp) -> Result<(), Failure> {
    let which = match args.all_dead {
        true => JobSelection::Dead { kind: args.kind.clone(), namespace: args.namespace.clone() },
        false => JobSelection::Ids(resolve(store, &args.ids).await?),
    };
    let steered = store.retry(which, now).await?;
    if steered.is_empty() && !args.json {
        none(store, args.kind.as_deref(), now).await?;
    }
    tell(Order::Retry, args.all_dead, &steered, args.json)
}

pub(super) async fn cancel(store: &Store, args: &Cancel, now: Timestamp) -> Result<(), Failure> {
    let steered = store.cancel(resolve(store, &args.ids).await?, now).await?;
    tell(Order::Cancel, false, &steered, args.json)
}

pub(super) async fn drop_jobs(store: &Store, args: &Drop) -> Result<(), Failure> {
    let which = if args.all_dead {
        JobSelection::Dead { kind: None, namespace: None }
    } else if args.all_cancelled {
        JobSelection::Cancelled
    } else {
        JobSelection::Ids(resolve(store, &args.ids).await?)
    };
    let steered = store.drop_jobs(which).await?;
    if steered.is_empty() && !args.json {
        output::note("no matching jobs: nothing was dropped");
    }
    tell(Order::Drop, args.all_dead || args.all_cancelled, &steered, args.json)
}

/// Resolves id prefixes to distinct jobs; fails before any change if one is ambiguous.
async fn resolve(store: &Store, ids: &[String]) -> Result<Vec<JobId>, Failure> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let job = one(store.job_id(prefix(id)?).await?, "job", id)?;
        if !found.contains(&job) {
            found.push(job);
        }
    }
    Ok(found)
}

async fn none(store: &Store, kind: Option<&str>, now: Timestamp) -> Result<(), Failure> {
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

fn tell(order: Order, all: bool, steered: &[JobChange], as_json: bool) -> Result<(), Failure> {
    let left = |it: &JobChange| order.left(&short(&it.id), it.was);
    let fine = steered.iter().all(|it| it.done || left(it).1);
    if as_json {
        let rows = steered.iter().map(|it| JobChangeRow {
            job: it.id,
            was: it.was,
            reason: it.reason.as_deref(),
            done: it.done,
            why_not: (!it.done).then(|| left(it).0),
        });
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

fn sum(order: Order, steered: &[JobChange]) -> Result<(), Failure> {
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
