//! Panics of tasks, which end the work.

use tokio::task::JoinError;

/// Resumes the panic of another task: going on would pass over its work.
pub(crate) fn resume_panic(died: JoinError) {
    if let Ok(panic) = died.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}

/// Does blocking work on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(died) => {
            resume_panic(died);
            // It did not begin, because the runtime ends, and this with it.
            std::future::pending().await
        }
    }
}

/// The result of a task; `None` where the runtime is shutting down. Resumes its panic.
pub(crate) fn joined<T>(task: Result<T, JoinError>) -> Option<T> {
    task.map_err(resume_panic).ok()
}
