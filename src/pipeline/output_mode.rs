//! The output mode that dialogues begin with: falls back to a lower one where an endpoint cannot use a higher one.

use crate::domain::OutputMode;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Dialogues in a row that must end in a lower output mode before the next ones begin there, where the endpoint did
/// not refuse a higher one: a model may have had a bad moment.
const LOWER_MIN: u32 = 3;

pub(crate) struct OutputModeFallback(Mutex<State>);

struct State {
    current: OutputMode,
    /// Dialogues in a row that ended in a lower mode than they began with.
    lower: u32,
}

impl OutputModeFallback {
    pub(crate) fn new(current: OutputMode) -> OutputModeFallback {
        OutputModeFallback(Mutex::new(State { current, lower: 0 }))
    }

    pub(crate) fn current(&self) -> OutputMode {
        self.state().current
    }

    /// Takes the mode that a dialogue ended in; returns true if the next ones begin lower.
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
