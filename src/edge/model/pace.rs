//! How many calls at once. Learns how much an endpoint bears (adds slowly, halves at once), and holds
//! everybody back while it asks for a wait.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The longest that everybody is held back for one answer; a longer wait is the caller's affair.
const HOLD_MAX: Duration = Duration::from_secs(300);

/// Lets calls begin, in the order in which they came.
#[derive(Debug)]
pub struct Pace {
    state: Mutex<State>,
    changed: Notify,
    /// Who holds it is first in line; the others queue here.
    turn: tokio::sync::Mutex<()>,
}

impl Pace {
    /// Begins with as many calls at once as there may ever be: `calls_max`, at least 1.
    pub fn new(calls_max: u32) -> Pace {
        Pace {
            state: Mutex::new(State::new(calls_max)),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Waits until a call may begin. Dropping the future gives up its place.
    pub async fn acquire(&self) -> Permit<'_> {
        let _turn = self.turn.lock().await;
        // Bounded by what it waits for: each round begins with a release or a moment that has come.
        loop {
            let changed = self.changed.notified();
            let begun = self.state().begin(Instant::now());
            match begun {
                Begin::Now { epoch } => return Permit { pace: self, epoch },
                Begin::At(moment) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(moment) => {}
                        () = changed => {}
                    }
                }
                Begin::AfterRelease => changed.await,
            }
        }
    }

    /// Waits while the endpoint asks everybody to wait.
    pub async fn released(&self) {
        // Bounded by the waits that the endpoint asks for.
        loop {
            let held = self.state().held(Instant::now());
            let Some(moment) = held else { return };
            tokio::time::sleep_until(moment).await;
        }
    }

    /// How many calls may run at once now, as far as the endpoint bears them.
    pub fn limit(&self) -> u32 {
        self.state().limit
    }

    /// How often in a row the endpoint has had too much: once for all calls that ran at once.
    pub fn slowed(&self) -> u32 {
        self.state().slowed
    }

    /// How many calls are running.
    #[cfg(test)]
    fn running(&self) -> u32 {
        self.state().running
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in there panics; if it did, counts are still counts.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_one();
    }
}

/// The right to make one call. Dropped without a verdict it only makes room.
#[derive(Debug)]
#[must_use = "a dropped permit makes room for the next call"]
pub struct Permit<'a> {
    pace: &'a Pace,
    epoch: u64,
}

impl Permit<'_> {
    /// It went well.
    pub fn ok(self) {
        self.pace.change(State::grow);
    }

    /// The endpoint had too much; with `wait`, nobody begins a call before it is over.
    pub fn slow_down(self, wait: Option<Duration>) {
        let (now, epoch) = (Instant::now(), self.epoch);
        self.pace.change(|state| state.slow_down(now, epoch, wait));
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.pace.change(|state| state.running = state.running.saturating_sub(1));
    }
}

/// When a call may begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Begin {
    /// It has begun.
    Now { epoch: u64 },
    /// Not before this moment.
    At(Instant),
    /// When another call is over.
    AfterRelease,
}

/// The counts, without waiting.
#[derive(Debug)]
struct State {
    limit: u32,
    limit_max: u32,
    running: u32,
    /// Calls that went well since the limit last changed.
    well: u32,
    /// Grows with each halving: calls of an older epoch began before it and prove nothing more.
    epoch: u64,
    /// Halvings since a call last went well.
    slowed: u32,
    held_until: Option<Instant>,
}

impl State {
    fn new(calls_max: u32) -> State {
        let limit_max = calls_max.max(1);
        State {
            limit: limit_max,
            limit_max,
            running: 0,
            well: 0,
            epoch: 0,
            slowed: 0,
            held_until: None,
        }
    }

    fn held(&mut self, now: Instant) -> Option<Instant> {
        self.held_until = self.held_until.filter(|moment| now < *moment);
        self.held_until
    }

    fn begin(&mut self, now: Instant) -> Begin {
        if self.limit <= self.running {
            return Begin::AfterRelease;
        }
        if let Some(moment) = self.held(now) {
            return Begin::At(moment);
        }
        self.running += 1;
        Begin::Now { epoch: self.epoch }
    }

    /// One more at once after as many successes as calls run at once: about one a round trip.
    fn grow(&mut self) {
        self.slowed = 0;
        self.well = self.well.saturating_add(1);
        if self.limit <= self.well && self.limit < self.limit_max {
            self.limit += 1;
            self.well = 0;
        }
    }

    fn slow_down(&mut self, now: Instant, epoch: u64, wait: Option<Duration>) {
        if epoch == self.epoch {
            self.limit = (self.limit / 2).max(1);
            self.epoch += 1;
            self.slowed = self.slowed.saturating_add(1);
        }
        self.well = 0;
        if let Some(wait) = wait {
            let until = now + wait.min(HOLD_MAX);
            self.held_until = Some(self.held_until.map_or(until, |held| held.max(until)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Makes `calls` calls of 100 ms, at most `calls_max` at once; seconds until all are over.
    async fn secs_for(calls_max: u32, calls: u32) -> u64 {
        let (pace, began) = (Arc::new(Pace::new(calls_max)), Instant::now());
        let tasks: Vec<_> = (0..calls)
            .map(|_| {
                let pace = Arc::clone(&pace);
                tokio::spawn(async move {
                    let permit = pace.acquire().await;
                    assert!(pace.running() <= pace.limit());
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    permit.ok();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(pace.running(), 0);
        began.elapsed().as_millis().div_ceil(1000) as u64
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_calls_run_than_allowed() {
        assert_eq!(secs_for(10, 100).await, 1);
        assert_eq!(secs_for(1, 100).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn one_burst_of_refusals_halves_once() {
        let pace = Pace::new(16);
        let mut permits = Vec::new();
        for _ in 0..16 {
            permits.push(pace.acquire().await);
        }
        permits.into_iter().for_each(|permit| permit.slow_down(None));
        assert_eq!((pace.limit(), pace.running(), pace.slowed()), (8, 0, 1));
        for expected in [4, 2, 1, 1] {
            pace.acquire().await.slow_down(None);
            assert_eq!(pace.limit(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn limit_grows_back_slowly_and_no_further() {
        let pace = Pace::new(4);
        pace.acquire().await.slow_down(None);
        pace.acquire().await.slow_down(None);
        let mut seen = vec![pace.limit()];
        for _ in 0..12 {
            pace.acquire().await.ok();
            seen.push(pace.limit());
        }
        assert_eq!(seen, [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_begins_while_a_wait_is_in_force() {
        let pace = Pace::new(4);
        let (first, second) = (pace.acquire().await, pace.acquire().await);
        let began = Instant::now();
        first.slow_down(Some(Duration::from_secs(7)));
        second.slow_down(Some(Duration::from_secs(3)));
        drop(pace.acquire().await);
        assert_eq!(began.elapsed().as_secs(), 7, "the longer wait counts");
        pace.released().await;
        assert_eq!(began.elapsed().as_secs(), 7);
        pace.acquire().await.slow_down(Some(Duration::from_secs(90_000)));
        let began = Instant::now();
        drop(pace.acquire().await);
        assert_eq!(began.elapsed().as_secs(), HOLD_MAX.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_leaves_no_trace() {
        let pace = Pace::new(1);
        let held = pace.acquire().await;
        let waited = tokio::time::timeout(Duration::from_secs(1), pace.acquire()).await;
        assert!(waited.is_err());
        drop(held);
        drop(pace.acquire().await);
        assert_eq!(pace.running(), 0);
    }
}
