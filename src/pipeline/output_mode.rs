//! The output mode that dialogues start in. Falls back to a lower one that the endpoint supports.

use crate::domain::OutputMode;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Consecutive dialogues that must end in a lower mode before new ones start there. One alone may be a fluke; a refusal
/// by the endpoint needs no repetition.
const LOWER_MIN: u32 = 3;

pub(crate) struct OutputModeFallback(Mutex<State>);

struct State {
    current: OutputMode,
    /// Consecutive dialogues that ended in a lower mode than they began in.
    lower: u32,
}

impl OutputModeFallback {
    pub(crate) fn new(current: OutputMode) -> OutputModeFallback {
        OutputModeFallback(Mutex::new(State { current, lower: 0 }))
    }

    pub(crate) fn current(&self) -> OutputMode {
        self.state().current
    }

    /// Records the mode that a dialogue ended in; returns true if later dialogues start lower.
    pub(crate) fn learn(&self, worked: OutputMode, refused: bool) -> bool {
        let mut state = self.state();
        if worked <= state.current {
            state.lower = 0;
            return false;
        }
        state.lower += 1;
        let falls = refused || LOWER_MIN <= state.lower;
        if falls {
            state.current = worked;
        }
        falls
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
