//! Whether the endpoint is away. One job without an answer may be the job's own fault; several in a
//! row are not, and charging them would kill the queue's jobs one after another.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Jobs in a row without an answer after which the endpoint is held to be away. Less than any sensible
/// number of attempts, so that no job dies of an outage.
pub(super) const UNANSWERED_MAX: u32 = 3;

/// What is known of the endpoint.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    unanswered: u32,
    /// Tries since it is away.
    tries: u32,
}

/// What a job without an answer means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BreakerState {
    /// So far, only that this job had none.
    Closed,
    /// The endpoint is away; this is seen for the first time.
    Opened,
    /// It still is.
    Open,
}

impl CircuitBreaker {
    /// The endpoint answered something; says whether it had been away.
    pub(super) fn answered(&self) -> bool {
        std::mem::take(&mut *self.state()).unanswered >= UNANSWERED_MAX
    }

    /// A job had no answer.
    pub(super) fn unanswered(&self) -> BreakerState {
        let mut state = self.state();
        state.unanswered = state.unanswered.saturating_add(1);
        match state.unanswered {
            ..UNANSWERED_MAX => BreakerState::Closed,
            UNANSWERED_MAX => BreakerState::Opened,
            _ => BreakerState::Open,
        }
    }

    /// How often it was tried since it is away, one more each time this is asked; none if it is not.
    pub(super) fn tries(&self) -> Option<u32> {
        let mut state = self.state();
        if state.unanswered < UNANSWERED_MAX {
            return None;
        }
        state.tries = state.tries.saturating_add(1);
        Some(state.tries)
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
        assert_eq!(breaker.tries(), None);
        assert_eq!(
            [breaker.unanswered(), breaker.unanswered()],
            [BreakerState::Opened, BreakerState::Open]
        );
        assert_eq!([breaker.tries(), breaker.tries()], [Some(1), Some(2)]);
        assert!(breaker.answered());
        assert_eq!(breaker.tries(), None);
    }
}
