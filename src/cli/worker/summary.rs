//! Results of a worker as a table, JSON or one line.

use crate::cli::output::{self, Failure, GREEN, RED, YELLOW, count, counted, pairs, remark};
use crate::pipeline::{End, Jobs, Report, TokenTotals, Totals, Until};
use crate::store::RemainingJobs;
use schemars::JsonSchema;
use serde::Serialize;

const LISTED_MAX: usize = 20;

/// Results of a worker.
#[derive(Debug, JsonSchema, Serialize)]
pub(in crate::cli) struct Summary {
    /// True if nothing needs a person.
    pub(super) well: bool,
    jobs: Jobs,
    /// Calls of the model, paid for.
    calls: u64,
    /// Answers taken from the journal instead.
    journaled: u64,
    tokens: TokenTotals,
    /// US dollars; `null` where the price of the model is not known.
    cost: Option<f64>,
    left: RemainingSummary,
    /// Problem that stopped the worker.
    needs: Option<String>,
}

/// Open jobs of the queue.
#[derive(Debug, JsonSchema, Serialize)]
struct RemainingSummary {
    ready: u64,
    leased: u64,
    waiting: u64,
    gathering: u64,
    at_a_cap: u64,
    cap: Option<String>,
}

impl Summary {
    pub(super) fn of(report: &Report, until: Until, jobs: &Jobs, totals: &Totals) -> Summary {
        let RemainingJobs { ready, leased, passing, gathering, capped, cap, died } =
            report.left.clone();
        let well = match (&report.end, until) {
            (End::Needs(_), _) => false,
            (End::Asked, _) => true,
            (End::Nothing, Until::OneJob) => jobs.dead + jobs.retried + jobs.released == 0,
            // Counts dead jobs of the whole queue, since other workers may have held them.
            (End::Nothing, Until::Drained | Until::Stopped) => died + capped == 0,
        };
        let needs = match &report.end {
            End::Needs(line) => Some(line.clone()),
            End::Asked | End::Nothing => None,
        };
        Summary {
            well,
            jobs: jobs.clone(),
            calls: totals.calls,
            journaled: totals.journaled,
            tokens: totals.tokens,
            cost: totals.cost,
            left: RemainingSummary {
                ready,
                leased,
                waiting: passing,
                gathering,
                at_a_cap: capped,
                cap,
            },
            needs,
        }
    }

    pub(super) fn print(&self) -> Result<(), Failure> {
        let (jobs, some) =
            (&self.jobs, |jobs: u64| if jobs > 0 { count(jobs) } else { String::new() });
        let known = remark(jobs.known, "extracted before");
        let journaled = remark(self.journaled, "from the journal");
        let (sent, answered) = (count(self.tokens.sent), count(self.tokens.answered));
        pairs([
            ("jobs done", format!("{}{known}", count(jobs.done + jobs.known))),
            ("  cut in two", some(jobs.cut)),
            ("  to be tried again", some(jobs.retried)),
            ("  given back", some(jobs.released)),
            ("  taken by others", some(jobs.lost)),
            ("  dead", count(jobs.dead)),
            ("records", count(jobs.staged)),
            ("quarantined", count(jobs.quarantined)),
            ("calls", format!("{}{journaled}", count(self.calls))),
            ("tokens", format!("{sent} sent, {answered} answered")),
            ("cost", self.cost.map(|cost| format!("${cost:.4}")).unwrap_or_default()),
        ])
    }

    pub(super) fn notes(&self) {
        for (kind, (jobs, example)) in self.jobs.failures.iter().take(LISTED_MAX) {
            let jobs = counted(*jobs, "job");
            output::note(&format!("{RED}dead:{RED:#} {jobs} as {kind}: {example}"));
        }
        let left = &self.left;
        if left.at_a_cap > 0 {
            let cap = left.cap.as_deref().unwrap_or("a cap is reached");
            let jobs = counted(left.at_a_cap, "job");
            output::note(&format!(
                "{YELLOW}waiting:{YELLOW:#} {jobs}: {cap}; this goes on the next day (UTC), or \
                 when a worker begins with a higher cap"
            ));
        }
        if left.gathering > 0 {
            let sessions = counted(left.gathering, "session");
            output::note(&format!("gathering more before a model is asked: {sessions}"));
        }
        let open = left.ready + left.leased + left.waiting;
        if open > 0 {
            output::note(&format!("left in the queue: {}", counted(open, "job")));
        } else if self.well && left.gathering == 0 {
            output::note(&format!("{GREEN}nothing is left to do{GREEN:#}"));
        }
    }
}

pub(super) fn line(jobs: &Jobs, totals: &Totals) -> String {
    let ended =
        [jobs.done, jobs.known, jobs.cut, jobs.dead, jobs.retried, jobs.released, jobs.lost];
    let under_way = jobs.claimed.saturating_sub(ended.iter().sum());
    let mut line = format!(
        "{} done, {} under way, {}",
        counted(jobs.done + jobs.known, "job"),
        count(under_way),
        counted(jobs.staged, "record")
    );
    for (what, jobs) in [("dead", jobs.dead), ("to be tried again", jobs.retried)] {
        if jobs > 0 {
            line.push_str(&format!(", {} {what}", count(jobs)));
        }
    }
    line + &output::spent(totals.cost)
}
