//! Ctrl-C and SIGTERM: the first signal stops cleanly, the second immediately.

use super::output::{self, Failure};
use tokio_util::sync::CancellationToken;

/// Returns a token that the first signal cancels.
pub(super) fn cancelled_by_signal() -> Result<CancellationToken, Failure> {
    let left = || "answers that came are kept".to_owned();
    cancelled_with_note(
        "stopping: calls under way may finish (Ctrl-C again stops at once)".to_owned(),
        left,
    )
}

/// Returns a token that the first signal cancels, with a note. The second signal exits and prints what is `left`,
/// which is safe because all state is transactional.
pub(super) fn cancelled_with_note(
    note: String,
    left: impl Fn() -> String + Send + 'static,
) -> Result<CancellationToken, Failure> {
    let listener = Listener::new();
    let mut listener =
        listener.map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
    let cancel = CancellationToken::new();
    let cancelled = cancel.clone();
    tokio::spawn(async move {
        listener.next().await;
        cancelled.cancel();
        output::note_over_progress(&note);
        listener.next().await;
        let left = left();
        output::note_over_progress(&format!("stopped at once: {left}; the same command goes on"));
        std::process::exit(i32::from(output::FAILED));
    });
    Ok(cancel)
}

/// Receives signals from its creation on, so that none is lost between two waits.
#[cfg(unix)]
struct Listener {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Listener {
    fn new() -> std::io::Result<Listener> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Listener { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Listener;

#[cfg(not(unix))]
impl Listener {
    fn new() -> std::io::Result<Listener> {
        Ok(Listener)
    }

    async fn next(&mut self) {
        drop(tokio::signal::ctrl_c().await);
    }
}
