//! Problems of the queue that need a person, in words.

use crate::store::{DeadJobs, QueueStats, Stuck};
use crate::text::phrase::counted;
use crate::text::truncate;

/// Long enough for an endpoint's sentence with its remedy.
const LINE_LETTERS: usize = 600;

/// A problem, with its remedy unless that is to retry dead jobs.
pub(crate) struct Obstacle<'a> {
    pub line: String,
    /// The jobs to retry, if they are dead.
    pub dead: Option<&'a DeadJobs>,
}

pub(crate) fn obstacles(depth: &QueueStats) -> Vec<Obstacle<'_>> {
    let worker = |line: String| Obstacle { line: format!("{line}`annalist worker`"), dead: None };
    let short = |text: &Option<String>| {
        let line = text.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
        truncate::words_within(line, LINE_LETTERS).to_owned()
    };
    let mut all = Vec::new();
    for it in depth.stopped().take(1) {
        let why = short(&it.stopped);
        all.push(worker(format!("a worker stopped ({why}): fix it, then run ")));
    }
    all.extend(depth.dead.iter().map(|it| {
        let line = format!("{} died ({})", counted(it.jobs, "job"), it.kind);
        Obstacle { line, dead: Some(it) }
    }));
    let jobs = |(Stuck::Leases(it) | Stuck::Waits(it) | Stuck::Ready(it))| it.jobs;
    let stuck: u64 = depth.stuck().into_iter().map(jobs).sum();
    if stuck > 0 {
        let jobs = counted(stuck, "job");
        all.push(worker(format!("{jobs} waiting and no worker running: run ")));
    }
    for it in depth.lasting_caps() {
        let (jobs, cap) = (counted(it.jobs, "job"), short(&it.detail));
        all.push(worker(format!("{jobs} waiting ({cap}): raise it, then run ")));
    }
    all
}
