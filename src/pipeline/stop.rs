//! How work ends early: somebody asks for it, or a task panics.

use std::ops::ControlFlow;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// Breaks once `cancel` is cancelled.
pub(crate) fn unless_cancelled(cancel: &CancellationToken) -> ControlFlow<()> {
    if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Resumes a panic of another task: going on would pass over what it was working on.
pub(crate) fn resume_panic(died: JoinError) {
    if let Ok(panic) = died.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}
