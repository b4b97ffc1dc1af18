//! How fast to ask: how many calls at once, how many requests and tokens a minute. Learns how much an
//! endpoint bears (adds slowly, halves at once), and holds everybody back while it asks for a wait.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The longest that everybody is held back for one answer; a longer wait is the caller's affair.
const HOLD_MAX: Duration = Duration::from_secs(300);
/// A minute's allowance is given out in pieces of this many seconds, so that it is not spent at once.
const BURST_SECS: f64 = 5.0;

/// The limits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PaceConfig {
    /// Calls at once, at most; at least 1.
    pub calls_max: u32,
    /// Requests a minute; none is no limit.
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute, of requests and replies; none is no limit.
    pub tokens_per_minute: Option<u64>,
}

/// Lets calls begin, in the order in which they came.
#[derive(Debug)]
pub struct Pace {
    state: Mutex<State>,
    changed: Notify,
    /// Who holds it is first in line; the others queue here.
    turn: tokio::sync::Mutex<()>,
}

impl Pace {
    /// Begins with as many calls at once as `config` allows.
    pub fn new(config: PaceConfig) -> Pace {
        let now = Instant::now();
        Pace {
            state: Mutex::new(State::new(config, now)),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Waits until a call of about `tokens` tokens may begin. Dropping the future gives up its place.
    pub async fn acquire(&self, tokens: u64) -> Permit<'_> {
        let _turn = self.turn.lock().await;
        // Bounded by what it waits for: each round begins with a release or a moment that has come.
        loop {
            let changed = self.changed.notified();
            let begun = self.state().begin(Instant::now(), tokens);
            match begun {
                Begin::Now { epoch } => return Permit { pace: self, epoch, tokens },
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

    /// How many calls may run at once now.
    #[cfg(test)]
    fn limit(&self) -> u32 {
        self.state().limit
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
    tokens: u64,
}

impl Permit<'_> {
    /// What the call really cost, as the endpoint counted.
    pub fn spent(&mut self, tokens: u64) {
        let before = std::mem::replace(&mut self.tokens, tokens);
        self.pace.change(|state| state.settle(before, tokens));
    }

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
    held_until: Option<Instant>,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

impl State {
    fn new(config: PaceConfig, now: Instant) -> State {
        let limit_max = config.calls_max.max(1);
        let bucket = |per_minute: f64| Bucket::new(per_minute, now);
        State {
            limit: limit_max,
            limit_max,
            running: 0,
            well: 0,
            epoch: 0,
            held_until: None,
            requests: config.requests_per_minute.map(|count| bucket(f64::from(count))),
            tokens: config.tokens_per_minute.map(|count| bucket(count as f64)),
        }
    }

    fn begin(&mut self, now: Instant, tokens: u64) -> Begin {
        if self.limit <= self.running {
            return Begin::AfterRelease;
        }
        let tokens = tokens as f64;
        let ready = [
            self.held_until,
            self.requests.as_mut().and_then(|bucket| bucket.ready_at(now, 1.0)),
            self.tokens.as_mut().and_then(|bucket| bucket.ready_at(now, tokens)),
        ];
        if let Some(moment) = ready.into_iter().flatten().max().filter(|moment| now < *moment) {
            return Begin::At(moment);
        }
        self.held_until = None;
        self.requests.iter_mut().for_each(|bucket| bucket.level -= 1.0);
        self.tokens.iter_mut().for_each(|bucket| bucket.level -= tokens);
        self.running += 1;
        Begin::Now { epoch: self.epoch }
    }

    fn settle(&mut self, before: u64, after: u64) {
        for bucket in self.tokens.iter_mut() {
            bucket.level = (bucket.level + before as f64 - after as f64).min(bucket.size);
        }
    }

    /// One more at once after as many successes as calls run at once: about one a round trip.
    fn grow(&mut self) {
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
        }
        self.well = 0;
        if let Some(wait) = wait {
            let until = now + wait.min(HOLD_MAX);
            self.held_until = Some(self.held_until.map_or(until, |held| held.max(until)));
        }
    }
}

/// An allowance that fills with time. What is larger than the bucket waits until it is full and
/// leaves it in debt.
#[derive(Debug)]
struct Bucket {
    level: f64,
    size: f64,
    per_sec: f64,
    filled_at: Instant,
}

impl Bucket {
    fn new(per_minute: f64, now: Instant) -> Bucket {
        let per_sec = (per_minute / 60.0).max(f64::MIN_POSITIVE);
        let size = (per_sec * BURST_SECS).max(1.0);
        Bucket { level: size, size, per_sec, filled_at: now }
    }

    /// When `cost` can be taken; none if now.
    fn ready_at(&mut self, now: Instant, cost: f64) -> Option<Instant> {
        let passed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.level = (self.level + passed * self.per_sec).min(self.size);
        self.filled_at = now;
        let lacking = cost.min(self.size) - self.level;
        // Less than a millionth is rounding, and would be waited for again and again.
        if lacking <= self.size * 1e-6 {
            return None;
        }
        let secs = (lacking / self.per_sec).min(HOLD_MAX.as_secs_f64());
        // Timers tick in milliseconds; one more makes sure that it is there.
        Some(now + Duration::from_secs_f64(secs) + Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn config(calls_max: u32) -> PaceConfig {
        PaceConfig { calls_max, requests_per_minute: None, tokens_per_minute: None }
    }

    /// Makes `calls` calls of 100 ms and `tokens` tokens each; seconds until all are over.
    async fn secs_for(config: PaceConfig, calls: u32, tokens: u64) -> u64 {
        let (pace, began) = (Arc::new(Pace::new(config)), Instant::now());
        let tasks: Vec<_> = (0..calls)
            .map(|_| {
                let pace = Arc::clone(&pace);
                tokio::spawn(async move {
                    let permit = pace.acquire(tokens).await;
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
        assert_eq!(secs_for(config(10), 100, 0).await, 1);
        assert_eq!(secs_for(config(1), 100, 0).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn minutes_are_kept() {
        let requests = PaceConfig { requests_per_minute: Some(60), ..config(50) };
        let secs = secs_for(requests, 65, 0).await;
        assert!((60..=62).contains(&secs), "5 at once, then one a second: {secs}");
        let tokens = PaceConfig { tokens_per_minute: Some(6_000), ..config(50) };
        let secs = secs_for(tokens, 20, 500).await;
        assert!((95..=97).contains(&secs), "one at once, then one in 5 s: {secs}");
    }

    #[tokio::test(start_paused = true)]
    async fn call_larger_than_the_bucket_still_begins() {
        let tokens = PaceConfig { tokens_per_minute: Some(600), ..config(5) };
        let secs = secs_for(tokens, 2, 1_000).await;
        assert!((100..=102).contains(&secs), "the second waits for the debt of the first: {secs}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_spent_is_given_back() {
        let pace = Pace::new(PaceConfig { tokens_per_minute: Some(6_000), ..config(5) });
        let began = Instant::now();
        for _ in 0..20 {
            let mut permit = pace.acquire(500).await;
            permit.spent(0);
            permit.ok();
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn one_burst_of_refusals_halves_once() {
        let pace = Pace::new(config(16));
        let mut permits = Vec::new();
        for _ in 0..16 {
            permits.push(pace.acquire(0).await);
        }
        permits.into_iter().for_each(|permit| permit.slow_down(None));
        assert_eq!((pace.limit(), pace.running()), (8, 0));
        for expected in [4, 2, 1, 1] {
            pace.acquire(0).await.slow_down(None);
            assert_eq!(pace.limit(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn limit_grows_back_slowly_and_no_further() {
        let pace = Pace::new(config(4));
        pace.acquire(0).await.slow_down(None);
        pace.acquire(0).await.slow_down(None);
        let mut seen = vec![pace.limit()];
        for _ in 0..12 {
            pace.acquire(0).await.ok();
            seen.push(pace.limit());
        }
        assert_eq!(seen, [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_begins_while_a_wait_is_in_force() {
        let pace = Pace::new(config(4));
        let (first, second) = (pace.acquire(0).await, pace.acquire(0).await);
        let began = Instant::now();
        first.slow_down(Some(Duration::from_secs(7)));
        second.slow_down(Some(Duration::from_secs(3)));
        drop(pace.acquire(0).await);
        assert_eq!(began.elapsed().as_secs(), 7, "the longer wait counts");
        pace.acquire(0).await.slow_down(Some(Duration::from_secs(90_000)));
        let began = Instant::now();
        drop(pace.acquire(0).await);
        assert_eq!(began.elapsed().as_secs(), HOLD_MAX.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_leaves_no_trace() {
        let pace = Pace::new(config(1));
        let held = pace.acquire(0).await;
        let waited = tokio::time::timeout(Duration::from_secs(1), pace.acquire(0)).await;
        assert!(waited.is_err());
        drop(held);
        drop(pace.acquire(0).await);
        assert_eq!(pace.running(), 0);
    }
}
