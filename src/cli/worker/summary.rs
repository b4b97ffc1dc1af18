//! What a worker did, as a table, as JSON and as a line.

use crate::cli::output::{self, Failure, GREEN, RED, YELLOW, count, counted};
use crate::pipeline::{End, Jobs, Report, TokenTotals, Totals, Until};
use crate::store::RemainingJobs;
use serde::Serialize;

/// Kinds of failures that are listed; the others are counted.
const LISTED_MAX: usize = 20;

/// What a worker did and what it left.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// Whether nothing needs a person.
    well: bool,
    jobs: Jobs,
    /// Calls of the model, paid for.
    calls: u64,
    /// Answers taken from the journal instead.
    journaled: u64,
    tokens: TokenTotals,
    /// US dollars.
    cost: f64,
    left: LeftOver,
    /// What must be mended, if it stopped for that.
    needs: Option<String>,
}

/// What is left in the queue.
#[derive(Debug, Serialize)]
struct LeftOver {
    ready: u64,
    leased: u64,
    waiting: u64,
    gathering: u64,
    at_a_cap: u64,
    cap: Option<String>,
}

impl Summary {
    pub(super) fn of(report: &Report, until: Until, (jobs, totals): (&Jobs, &Totals)) -> Summary {
        let RemainingJobs { ready, leased, passing, gathering, capped, cap, died } =
            report.left.clone();
        let well = match (&report.end, until) {
            (End::Needs(_), _) => false,
            (End::Asked, _) => true,
            (End::Nothing, Until::OneJob) => jobs.dead + jobs.retried + jobs.released == 0,
            // Others may have worked on the queue too: what died is dead whoever held it.
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
            left: LeftOver { ready, leased, waiting: passing, gathering, at_a_cap: capped, cap },
            needs,
        }
    }

    /// Whether nothing needs a person.
    pub(super) fn is_well(&self) -> bool {
        self.well
    }

    /// The table.
    pub(super) fn print(&self) -> Result<(), Failure> {
        let mut table = output::table(&[]);
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        let jobs = &self.jobs;
        let known = match jobs.known {
            0 => String::new(),
            known => format!(" ({} extracted before)", count(known)),
        };
        row("jobs done", format!("{}{known}", count(jobs.done + jobs.known)));
        let others = [
            ("  cut in two", jobs.cut),
            ("  to be tried again", jobs.retried),
            ("  given back", jobs.released),
            ("  taken by others", jobs.lost),
        ];
        for (name, jobs) in others.into_iter().filter(|(_, jobs)| *jobs > 0) {
            row(name, count(jobs));
        }
        row("  dead", count(jobs.dead));
        row("records", count(jobs.staged));
        row("quarantined", count(jobs.quarantined));
        let journaled = match self.journaled {
            0 => String::new(),
            journaled => format!(" ({} from the journal)", count(journaled)),
        };
        row("calls", format!("{}{journaled}", count(self.calls)));
        let (sent, answered) = (count(self.tokens.sent), count(self.tokens.answered));
        row("tokens", format!("{sent} sent, {answered} answered"));
        row("cost", format!("${:.4}", self.cost));
        output::print_table(&table)
    }

    /// What failed and what is left, on stderr.
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
            output::note(&format!("{sessions} gathering more before it is asked about"));
        }
        let open = left.ready + left.leased + left.waiting;
        if open > 0 {
            output::note(&format!("left in the queue: {}", counted(open, "job")));
        } else if self.well && left.gathering == 0 {
            output::note(&format!("{GREEN}nothing is left to do{GREEN:#}"));
        }
    }
}

/// What was done so far.
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
    if totals.cost > 0.0 {
        line.push_str(&format!(", ${:.2}", totals.cost));
    }
    line
}
