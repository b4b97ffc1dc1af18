//! Detects an outage of the endpoint. One unanswered job may be the job's own fault; several in a row are not, and
//! charging them an attempt would kill the queue's jobs one after another.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Consecutive unanswered jobs that open the breaker. Less than any sensible number of attempts, so that no job dies of
/// an outage.
const UNANSWERED_MAX: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct CircuitBreaker(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    unanswered: u32,
    probes: u32,
}

/// State of the breaker after an unanswered job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BreakerState {
    Closed,
    /// This job opened the breaker.
    Opened,
    Open,
}

impl CircuitBreaker {
    /// Closes the breaker; returns true if it was open.
    pub(super) fn answered(&self) -> bool {
        std::mem::take(&mut *self.counts()).unanswered >= UNANSWERED_MAX
    }

    pub(super) fn unanswered(&self) -> BreakerState {
        let mut counts = self.counts();
        counts.unanswered = counts.unanswered.saturating_add(1);
        match counts.unanswered {
            ..UNANSWERED_MAX => BreakerState::Closed,
            UNANSWERED_MAX => BreakerState::Opened,
            _ => BreakerState::Open,
        }
    }

    /// Number of the next probe, from 1; `None` while the breaker is closed.
    pub(super) fn next_probe(&self) -> Option<u32> {
        let mut counts = self.counts();
        if counts.unanswered < UNANSWERED_MAX {
            return None;
        }
        counts.probes = counts.probes.saturating_add(1);
        Some(counts.probes)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_several_in_a_row_are_an_outage_and_one_answer_ends_it() {
        let breaker = CircuitBreaker::default();
        assert_eq!([breaker.unanswered(), breaker.unanswered()], [BreakerState::Closed; 2]);
        assert!(!breaker.answered());
        assert_eq!([breaker.unanswered(), breaker.unanswered()], [BreakerState::Closed; 2]);
        assert_eq!(breaker.next_probe(), None);
        assert_eq!(
            [breaker.unanswered(), breaker.unanswered()],
            [BreakerState::Opened, BreakerState::Open]
        );
        assert_eq!([breaker.next_probe(), breaker.next_probe()], [Some(1), Some(2)]);
        assert!(breaker.answered());
        assert_eq!(breaker.next_probe(), None);
    }
}
