//! Propagates panics of tasks.

use tokio::task::JoinError;

/// Resumes the panic of another task; continuing would lose its work.
pub(crate) fn resume_panic(died: JoinError) {
    if let Ok(panic) = died.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs blocking work on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(died) => {
            resume_panic(died);
            // It never ran: the runtime is shutting down, and this future with it.
            std::future::pending().await
        }
    }
}

/// The result of a task; `None` where the runtime is shutting down. Resumes its panic.
pub(crate) fn join_result<T>(task: Result<T, JoinError>) -> Option<T> {
    task.map_err(resume_panic).ok()
}
