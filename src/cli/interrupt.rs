//! Ctrl-C and SIGTERM: the first stops cleanly, the second at once.

use super::output::{self, Failure};
use tokio_util::sync::CancellationToken;

/// Listens from its construction on, so that no signal falls between two waits.
pub(super) struct Signals(Listener);

impl Signals {
    pub(super) fn new() -> Result<Signals, Failure> {
        let listener = Listener::new();
        listener
            .map(Signals)
            .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))
    }

    /// Calls `first` at the first signal; at the second ends the process, since everything that matters
    /// is in transactions.
    pub(super) async fn hear(mut self, first: impl FnOnce()) {
        self.0.next().await;
        first();
        self.0.next().await;
        std::process::exit(i32::from(output::FAILED));
    }
}

/// A token that the first signal cancels.
pub(super) fn cancelled_by_signal() -> Result<CancellationToken, Failure> {
    let cancel = CancellationToken::new();
    let (signals, cancelled) = (Signals::new()?, cancel.clone());
    tokio::spawn(signals.hear(move || {
        cancelled.cancel();
        output::note("stopping: calls under way may finish (Ctrl-C again stops at once)");
    }));
    Ok(cancel)
}

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
