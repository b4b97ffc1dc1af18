//! The section `[queue]`: what gathers, how long a worker may be silent, when it gives up.

use super::at_least;
use crate::domain::Tokens;
use serde::Deserialize;
use std::time::Duration;

/// The longest lease, in seconds: what a dead worker held is idle for so long.
const LEASE_SECS_MAX: u64 = 3_600;
/// The longest time to gather or to end, in seconds; more is a number that was mistyped.
const WAIT_SECS_MAX: u64 = 86_400;
/// The most claims of one job; each may be a call that is paid for.
const ATTEMPTS_MOST: u32 = 100;

/// The queue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Queue {
    /// A session that grew by less waits for more.
    pub gather_tokens: Tokens,
    /// Until when it waits after it grew last.
    pub idle: Duration,
    /// How long a worker may be silent before another takes its jobs.
    pub lease: Duration,
    /// Claims of one job.
    pub attempts_max: u32,
    /// How long calls under way may take once somebody asked to stop.
    pub grace: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawQueue {
    gather_tokens: Tokens,
    idle_secs: u64,
    lease_secs: u64,
    attempts_max: u32,
    grace_secs: u64,
}

pub(super) fn check(raw: &RawQueue, slice_tokens: Tokens) -> Result<Queue, String> {
    if raw.gather_tokens > slice_tokens {
        return Err(format!(
            "queue.gather_tokens: expected at most slice.tokens, {slice_tokens}, found {}: a whole \
             slice gathers no more",
            raw.gather_tokens
        ));
    }
    let attempts_max = at_least(raw.attempts_max, 1, "queue.attempts_max")?;
    if attempts_max > ATTEMPTS_MOST {
        let key = "queue.attempts_max";
        return Err(format!("{key}: expected at most {ATTEMPTS_MOST}, found {attempts_max}"));
    }
    Ok(Queue {
        gather_tokens: raw.gather_tokens,
        idle: secs(raw.idle_secs, (0, WAIT_SECS_MAX), "queue.idle_secs")?,
        lease: secs(raw.lease_secs, (1, LEASE_SECS_MAX), "queue.lease_secs")?,
        attempts_max,
        grace: secs(raw.grace_secs, (0, WAIT_SECS_MAX), "queue.grace_secs")?,
    })
}

fn secs(value: u64, (least, most): (u64, u64), key: &str) -> Result<Duration, String> {
    match (least..=most).contains(&value) {
        true => Ok(Duration::from_secs(value)),
        false => Err(format!("{key}: expected {least} to {most} seconds, found {value}")),
    }
}
