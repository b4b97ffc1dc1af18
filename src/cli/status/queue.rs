//! Queue section of `annalist status`: waiting jobs with reasons and times, workers, and problems that need a person,
//! with their remedies.

use crate::adapters::spool::SpooledHandOver;
use crate::cli::output::{
    self, BOLD, DIM, RED, Result, YELLOW, count, counted, json_row, lasting, shorten, time,
};
use crate::domain::{JobState, Timestamp, Wait};
use crate::pipeline::{Obstacle, obstacles};
use crate::store::{CapJobs, DeadJobs, OpenJobs, Overdue, QueueStats, Stuck, WorkerStatus};

const TABLE_LETTERS: usize = 40;
/// Long enough for an endpoint's sentence with its remedy.
pub(super) const LINE_LETTERS: usize = 600;
const WORKERS_MAX: usize = 10;

json_row! {
    /// The queue, as JSON.
    pub(super) struct QueueReport<'a> of depth: &'a QueueStats {
        jobs: JobCounts = JobCounts::of(depth),
        lag_secs: Option<u64> = depth.lag().map(|it| it.as_secs()),
        oldest_secs: Option<u64> = depth.oldest().map(|it| it.as_secs()),
        oldest_gathering_secs: Option<u64> = depth.gathering().map(|it| it.as_secs()),
        open: Vec<OpenRow<'a>> = depth.open.iter().map(OpenRow::of).collect(),
        caps: Vec<CapRow<'a>> = depth.caps.iter().map(CapRow::of).collect(),
        expired: Option<OverdueRow> = depth.expired.map(OverdueRow::of),
        waited: Option<OverdueRow> = depth.waited.map(OverdueRow::of),
        dead: Vec<DeadRow<'a>> = depth.dead.iter().map(DeadRow::of).collect(),
        workers: Vec<WorkerRow<'a>> =
            depth.workers.iter().map(|it| WorkerRow::of(it, depth)).collect(),
        stuck: Vec<StuckRow> = depth.stuck().into_iter().map(StuckRow::of).collect(),
        needs_person: bool = depth.needs_person(),
    }
}

json_row! {
    struct JobCounts of depth: &QueueStats {
        waiting: u64 = depth.jobs_in(JobState::Waiting),
        ready: u64 = depth.jobs_in(JobState::Ready),
        leased: u64 = depth.jobs_in(JobState::Leased),
        dead: u64 = depth.dead_jobs(),
        cancelled: u64 = depth.cancelled,
    }
}

json_row! {
    struct OpenRow<'a> of it: &'a OpenJobs {
        state: JobState = it.state,
        wait: Option<Wait> = it.wait,
        jobs: u64 = it.jobs,
        oldest: String = it.oldest.to_string(),
        since: String = it.since.to_string(),
        until: Option<String> = time(it.until),
        detail: Option<&'a str> = it.detail.as_deref(),
    }
}

json_row! {
    struct CapRow<'a> of it: &'a CapJobs {
        detail: Option<&'a str> = it.detail.as_deref(),
        jobs: u64 = it.jobs,
        until: Option<String> = time(it.until),
    }
}

json_row! {
    struct OverdueRow of it: Overdue {
        jobs: u64 = it.jobs,
        since: String = it.since.to_string(),
    }
}

json_row! {
    struct DeadRow<'a> of it: &'a DeadJobs {
        kind: &'a str = &it.kind,
        jobs: u64 = it.jobs,
        since: String = it.since.to_string(),
        detail: Option<&'a str> = it.detail.as_deref(),
        retry: String = retry(it),
    }
}

json_row! {
    struct WorkerRow<'a> of it: &'a WorkerStatus, depth: &QueueStats {
        worker: &'a str = &it.id,
        started_at: String = it.started_at.to_string(),
        seen_at: String = it.seen_at.to_string(),
        alive: bool = depth.is_alive(it),
        stopped: Option<&'a str> = it.stopped.as_deref(),
    }
}

json_row! {
    struct StuckRow of it: Stuck {
        what: &'static str = parts(it).0,
        #[serde(flatten)]
        overdue: OverdueRow = OverdueRow::of(parts(it).1),
    }
}

pub(super) fn print(depth: &QueueStats) -> Result<()> {
    if depth.is_empty() {
        return Ok(());
    }
    output::line("")?;
    if !depth.open.is_empty() {
        print_open(depth)?;
    }
    for it in &depth.caps {
        let cap = shorten(it.detail.as_deref().unwrap_or("at a cap"), LINE_LETTERS);
        let jobs = counted(it.jobs, "job");
        let is_lasting = depth.lasting_caps().any(|lasting| lasting == it);
        let until = it.until.filter(|_| !is_lasting).map(|until| format!(" until {until}"));
        let until = until.unwrap_or_default();
        let mend = if is_lasting { "; raise it, then run `annalist worker`" } else { "" };
        output::line(&format!("{YELLOW}at a cap{YELLOW:#} {jobs}{until}: {cap}{mend}"))?;
    }
    print_workers(depth)?;
    print_unwell(depth)
}

fn retry(it: &DeadJobs) -> String {
    format!("annalist jobs retry --all-dead --kind {}", it.kind)
}

fn print_open(depth: &QueueStats) -> Result<()> {
    let mut table = output::table(&["queue", "jobs", "oldest", "next", "why"]);
    for it in &depth.open {
        let name = it.wait.map_or(it.state.name(), |wait| wait.name());
        table.add_row([
            name.to_owned(),
            count(it.jobs),
            lasting(depth.at.since(it.oldest)),
            next(it, depth.at),
            // Caps are listed separately.
            match &it.detail {
                Some(detail) if depth.caps.is_empty() || name != "cap" => {
                    shorten(detail, TABLE_LETTERS)
                }
                Some(_) | None => String::new(),
            },
        ]);
    }
    output::print_table(&table)?;
    let open: u64 = depth.open.iter().map(|it| it.jobs).sum();
    output::line(&format!(
        "{BOLD}{} open{BOLD:#}: lag {}, oldest job {}",
        counted(open, "job"),
        lasting(depth.lag().unwrap_or_default()),
        lasting(depth.oldest().unwrap_or_default())
    ))
}

fn next(it: &OpenJobs, now: Timestamp) -> String {
    match it.until {
        Some(until) if now < until => format!("in {}", lasting(until.since(now))),
        Some(until) => format!("{} late", lasting(now.since(until))),
        None => String::new(),
    }
}

fn print_workers(depth: &QueueStats) -> Result<()> {
    let alive = depth.alive().count();
    let silent = depth.workers.iter().filter(|it| it.stopped.is_none()).count() - alive;
    let mut said = format!("{alive} running");
    if silent > 0 {
        said += &format!(", {silent} no longer responding");
    }
    output::line(&format!("{BOLD}workers{BOLD:#}: {said}"))?;
    for WorkerStatus { id, started_at, seen_at, .. } in depth.alive().take(WORKERS_MAX) {
        let [since, seen] = [started_at, seen_at].map(|at| lasting(depth.at.since(*at)));
        output::line(&format!("  {id} {DIM}for {since}, last seen {seen} ago{DIM:#}"))?;
    }
    Ok(())
}

fn print_unwell(depth: &QueueStats) -> Result<()> {
    for WorkerStatus { id, seen_at, stopped, .. } in depth.stopped() {
        let line = shorten(stopped.as_deref().unwrap_or_default(), LINE_LETTERS);
        let ago = lasting(depth.at.since(*seen_at));
        output::line(&format!("{RED}stopped{RED:#} {id} {ago} ago: {line}"))?;
    }
    for stuck in depth.stuck() {
        let (_, it) = parts(stuck);
        let (jobs, lasting) = (counted(it.jobs, "job"), lasting(depth.at.since(it.since)));
        let what = match stuck {
            Stuck::Leases(_) => format!("{jobs} abandoned {lasting} ago by a worker that is gone"),
            Stuck::Waits(_) => format!("{jobs} due for {lasting}"),
            Stuck::Ready(_) => format!("{jobs} ready for {lasting}"),
        };
        let mend = "no worker is running: run `annalist worker`";
        output::line(&format!("{RED}stuck{RED:#} {what}, and {mend}"))?;
    }
    dead(depth).iter().try_for_each(|line| output::line(line))?;
    if depth.cancelled > 0 {
        let (jobs, list) = (counted(depth.cancelled, "job"), "`annalist jobs --state cancelled`");
        output::line(&format!("{YELLOW}cancelled{YELLOW:#} {jobs}: {list}"))?;
    }
    Ok(())
}

/// Formats everything that stops work in one line, each with its remedy; `None` if nothing does.
pub(crate) fn in_line(depth: Option<&QueueStats>, spooled: &[SpooledHandOver]) -> Option<String> {
    let of_queue = depth.into_iter().flat_map(obstacles).map(|Obstacle { line, dead }| {
        let retry = dead.map(|it| format!(": `{}`", retry(it))).unwrap_or_default();
        format!("{line}{retry}")
    });
    let mut all: Vec<String> = of_queue.collect();
    if !spooled.is_empty() {
        let spooled = counted(spooled.len() as u64, "transcript");
        all.push(format!("{spooled} from hooks waiting: `annalist status`"));
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// Formats dead jobs by kind, each with its retry command on a separate line for copying.
pub(crate) fn dead(depth: &QueueStats) -> Vec<String> {
    let lines = depth.dead.iter().flat_map(|it| {
        let detail = shorten(it.detail.as_deref().unwrap_or_default(), LINE_LETTERS);
        let jobs = counted(it.jobs, "job");
        [format!("{RED}dead{RED:#} {jobs}, {}: {detail}", it.kind), format!("  {}", retry(it))]
    });
    lines.collect()
}

/// Name in JSON, and the jobs.
fn parts(stuck: Stuck) -> (&'static str, Overdue) {
    match stuck {
        Stuck::Leases(it) => ("leases", it),
        Stuck::Waits(it) => ("waits", it),
        Stuck::Ready(it) => ("ready", it),
    }
}
