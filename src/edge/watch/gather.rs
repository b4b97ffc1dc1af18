//! When a changed file is told: once it has been quiet for a while, or has kept growing for long.
//! Knows paths and moments; it looks at no file and reads no clock.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// Files that changed and are not told yet, or were told while they grew.
#[derive(Debug)]
pub(super) struct Gather {
    quiet: Duration,
    busy_max: Duration,
    waiting: HashMap<PathBuf, Wait>,
}

#[derive(Debug)]
struct Wait {
    /// The first change that is not told.
    since: Instant,
    /// The last change.
    last: Instant,
}

impl Gather {
    /// Tells a file after `quiet` without a change, and while it keeps changing every `busy_max`.
    pub(super) fn new(quiet: Duration, busy_max: Duration) -> Gather {
        Gather { quiet, busy_max, waiting: HashMap::new() }
    }

    /// The file changed, or was seen to have changed.
    pub(super) fn changed(&mut self, path: PathBuf, now: Instant) {
        let wait = self.waiting.entry(path).or_insert(Wait { since: now, last: now });
        wait.last = now;
    }

    /// The files to tell now. One that still grows stays and is told again when it is quiet: its
    /// reader may have come in the middle of a change that nobody can see.
    pub(super) fn due(&mut self, now: Instant) -> Vec<PathBuf> {
        let (quiet, busy_max) = (self.quiet, self.busy_max);
        let mut due = Vec::new();
        self.waiting.retain(|path, wait| {
            let is_quiet = wait.last + quiet <= now;
            if is_quiet || wait.since + busy_max <= now {
                due.push(path.clone());
                wait.since = now;
            }
            !is_quiet
        });
        due
    }

    /// When the next file is due; none if none waits.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = |wait: &Wait| (wait.last + self.quiet).min(wait.since + self.busy_max);
        self.waiting.values().map(due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUIET: u64 = 20;
    const BUSY_MAX: u64 = 70;

    /// Plays changes at their times in milliseconds to somebody who comes `lag` late every time; says
    /// what was told when.
    fn play(changes: &[(u64, u8)], lag: u64) -> Vec<(u64, u8)> {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut gather = Gather::new(Duration::from_millis(QUIET), Duration::from_millis(BUSY_MAX));
        let mut told = Vec::new();
        let mut tell_before = |gather: &mut Gather, end: u64| {
            while let Some(due) = gather.next_due() {
                let now = (due - begin).as_millis() as u64 + lag;
                if end <= now {
                    return;
                }
                let files = gather.due(at(now));
                assert!(!files.is_empty(), "woken for nothing at {now}");
                told.extend(files.iter().map(|path| (now, path.to_str().unwrap().as_bytes()[0])));
            }
        };
        for (time, file) in changes {
            tell_before(&mut gather, *time);
            gather.changed(PathBuf::from(char::from(*file).to_string()), at(*time));
        }
        tell_before(&mut gather, u64::MAX);
        assert!(gather.waiting.is_empty());
        told
    }

    #[test]
    fn a_file_that_grows_is_told_when_it_rests_and_now_and_then_until_it_does() {
        assert_eq!(play(&[(0, b'a'), (10, b'a'), (15, b'b')], 0), [(30, b'a'), (35, b'b')]);
        let busy: Vec<_> = (0..16).map(|n| (n * 10, b'a')).collect();
        assert_eq!(play(&busy, 0), [(70, b'a'), (140, b'a'), (170, b'a')]);
    }

    proptest! {
        #[test]
        fn every_change_is_told_within_the_bound_and_the_last_after_a_quiet_while(
            steps in prop::collection::vec((0u64..40, b'a'..b'e'), 1..60),
            lag in 0u64..50,
        ) {
            let mut time = 0;
            let changes: Vec<_> = steps.iter().map(|(step, file)| { time += step; (time, *file) }).collect();
            let told = play(&changes, lag);
            for file in b'a'..b'e' {
                let of = |all: &[(u64, u8)]| -> Vec<u64> {
                    all.iter().filter(|one| one.1 == file).map(|one| one.0).collect()
                };
                let (changes, told) = (of(&changes), of(&told));
                for change in &changes {
                    let next = told.iter().find(|tell| change <= tell);
                    prop_assert!(next.is_some_and(|tell| *tell <= change + BUSY_MAX + lag));
                }
                if let Some(last) = changes.last() {
                    let rest = told.last().unwrap().checked_sub(last + QUIET);
                    prop_assert!(rest.is_some_and(|rest| rest <= lag));
                }
                let mut before = None;
                for tell in &told {
                    let last = changes.iter().filter(|change| *change <= tell).max().unwrap();
                    let since = changes.iter().find(|change| before.is_none_or(|told| told < **change));
                    let is_quiet = last + QUIET <= *tell;
                    let is_long = before.or(since.copied()).is_some_and(|from| from + BUSY_MAX <= *tell);
                    prop_assert!(is_quiet || is_long, "{file} told at {tell} for nothing");
                    before = Some(*tell);
                }
            }
        }
    }
}
