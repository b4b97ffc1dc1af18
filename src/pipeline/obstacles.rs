//! Problems of the queue and of hooks that need a person, in words.

use crate::adapters::spool::{Spool, SpooledHandOver};
use crate::agents::quoted;
use crate::store::{DeadJobs, QueueStats, Stuck};
use crate::text::phrase::counted;
use crate::text::truncate;
use std::path::Path;

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

/// Formats a hand-over that failed: the problem, and the commands that enqueue its transcript or drop it.
pub(crate) fn spooled_line(spool: &Spool, hand_over: &SpooledHandOver) -> String {
    let SpooledHandOver { transcript, project, config, problem, .. } = hand_over;
    let shell = |path: &Path| quoted(&path.to_string_lossy());
    let drop = format!("`rm {}` to drop it", shell(&spool.file(hand_over)));
    if let Some(gone) = hand_over.gone() {
        let is_transcript = gone.ends_with(transcript);
        let what =
            if is_transcript { ": not found; unless its disk is away," } else { " is gone;" };
        return format!("{}{what} run {drop}", gone.display());
    }
    let problem = problem.as_deref().unwrap_or("not enqueued yet");
    // The problem of a file, not of the store or the settings.
    let is_of_file = problem.starts_with(&*transcript.to_string_lossy());
    let drop = if is_of_file { format!(", or {drop}") } else { String::new() };
    let config: String = config.iter().map(|path| format!(" --config {}", shell(path))).collect();
    let enqueue = format!("annalist{config} enqueue {}", shell(transcript));
    let problem = truncate::words_within(problem, LINE_LETTERS);
    format!("{problem}; run `cd {} && {enqueue}`{drop}", shell(project))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Timestamp;

    #[test]
    fn a_hand_over_whose_transcript_is_gone_can_only_be_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path());
        let of = |transcript: &Path| SpooledHandOver {
            transcript: transcript.to_owned(),
            session: None,
            project: folder.path().to_owned(),
            config: None,
            environment: None,
            flush: false,
            at: Timestamp(0),
            problem: Some("the store is locked".to_owned()),
        };
        let line = spooled_line(&spool, &of(&folder.path().join("gone.jsonl")));
        assert!(line.contains("gone.jsonl: not found; ") && !line.contains("enqueue"), "{line}");
        let line = spooled_line(&spool, &of(folder.path()));
        assert!(line.starts_with("the store is locked; run `cd "), "{line}");
        assert!(line.contains(" && annalist enqueue ") && !line.contains("rm "), "{line}");
    }
}
