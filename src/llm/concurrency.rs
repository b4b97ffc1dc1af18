//! Adaptive limit of concurrent calls (AIMD): grows by one, halves when the endpoint is overloaded, and blocks all
//! calls while the endpoint asks for a wait.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Maximum time that one reply blocks all calls; the caller handles a longer wait.
const HOLD_MAX: Duration = Duration::from_secs(300);

/// Admits calls in the order of arrival.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimit {
    state: Mutex<LimitState>,
    changed: Notify,
    /// Held by the first waiting caller, so that the others queue in order.
    turn: tokio::sync::Mutex<()>,
}

impl ConcurrencyLimit {
    /// Starts at the maximum: `calls_max`, at least 1.
    pub(crate) fn new(calls_max: u32) -> ConcurrencyLimit {
        ConcurrencyLimit {
            state: Mutex::new(LimitState::new(calls_max)),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Waits until a call may start. Dropping the future gives up its place in the queue.
    pub(crate) async fn acquire(&self) -> CallPermit<'_> {
        let _turn = self.turn.lock().await;
        // Each round starts with a released permit or the end of a wait.
        loop {
            let changed = self.changed.notified();
            let begun = self.state.lock().begin(Instant::now());
            match begun {
                Ok(epoch) => return CallPermit { limit: self, epoch },
                Err(None) => changed.await,
                Err(Some(moment)) => tokio::select! {
                    () = tokio::time::sleep_until(moment) => {}
                    () = changed => {}
                },
            }
        }
    }

    /// Waits as long as the endpoint has asked for.
    pub(crate) async fn released(&self) {
        // Bounded by the waits that the endpoint asks for.
        loop {
            let held = self.state.lock().held(Instant::now());
            let Some(moment) = held else { return };
            tokio::time::sleep_until(moment).await;
        }
    }

    pub(crate) fn limit(&self) -> u32 {
        self.state.lock().limit
    }

    /// Consecutive slow-downs; concurrent calls count once.
    pub(crate) fn slowed(&self) -> u32 {
        self.state.lock().slowed
    }

    #[cfg(test)]
    fn running(&self) -> u32 {
        self.state.lock().running
    }

    fn change(&self, change: impl FnOnce(&mut LimitState)) {
        change(&mut self.state.lock());
        self.changed.notify_one();
    }
}

/// Permit for one call. Dropping it frees the slot and leaves the limit unchanged.
#[derive(Debug)]
#[must_use = "a dropped permit makes room for the next call"]
pub(crate) struct CallPermit<'a> {
    limit: &'a ConcurrencyLimit,
    epoch: u64,
}

impl CallPermit<'_> {
    pub(crate) fn ok(self) {
        self.limit.change(LimitState::grow);
    }

    /// Reports that the endpoint is overloaded; with `wait`, blocks all calls for that time.
    pub(crate) fn slow_down(self, wait: Option<Duration>) {
        let (now, epoch) = (Instant::now(), self.epoch);
        self.limit.change(|state| state.slow_down(now, epoch, wait));
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.limit.change(|state| state.running = state.running.saturating_sub(1));
    }
}

#[derive(Debug, Default)]
struct LimitState {
    limit: u32,
    limit_max: u32,
    running: u32,
    /// Successful calls since the limit last changed.
    well: u32,
    /// Increases with each halving; failures of calls from an older epoch do not halve again.
    epoch: u64,
    /// Halvings since the last success.
    slowed: u32,
    held_until: Option<Instant>,
}

impl LimitState {
    fn new(calls_max: u32) -> LimitState {
        let limit_max = calls_max.max(1);
        LimitState { limit: limit_max, limit_max, ..LimitState::default() }
    }

    fn held(&mut self, now: Instant) -> Option<Instant> {
        self.held_until = self.held_until.filter(|moment| now < *moment);
        self.held_until
    }

    /// Starts a call and returns its epoch; else the end of the wait, or `None` if a call must end first.
    fn begin(&mut self, now: Instant) -> Result<u64, Option<Instant>> {
        if self.limit <= self.running {
            return Err(None);
        }
        if let Some(moment) = self.held(now) {
            return Err(Some(moment));
        }
        self.running += 1;
        Ok(self.epoch)
    }

    /// Raises the limit by one after as many successes as the limit: about once a round trip.
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

    /// Makes `calls` calls of 100 ms, at most `calls_max` at once; returns the total seconds.
    async fn secs_for(calls_max: u32, calls: u32) -> u64 {
        let (pace, began) = (Arc::new(ConcurrencyLimit::new(calls_max)), Instant::now());
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
        let pace = ConcurrencyLimit::new(16);
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
        let pace = ConcurrencyLimit::new(4);
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
        let pace = ConcurrencyLimit::new(4);
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
        let pace = ConcurrencyLimit::new(1);
        let held = pace.acquire().await;
        let waited = tokio::time::timeout(Duration::from_secs(1), pace.acquire()).await;
        assert!(waited.is_err());
        drop(held);
        drop(pace.acquire().await);
        assert_eq!(pace.running(), 0);
    }
}
