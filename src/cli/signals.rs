//! Ctrl-C and SIGTERM: once stops cleanly, twice at once.

use super::output::{self, Failure};

/// Listens from when it is made, so that no signal falls between two waits.
pub(super) struct Signals(Listening);

impl Signals {
    pub(super) fn new() -> Result<Signals, Failure> {
        let listening = Listening::new();
        let listening = listening
            .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Signals(listening))
    }

    /// At the first signal does `first`; at the second ends the process, since everything that matters
    /// is in transactions.
    pub(super) async fn hear(mut self, first: impl FnOnce()) {
        self.0.next().await;
        first();
        self.0.next().await;
        std::process::exit(i32::from(output::FAILED));
    }
}

#[cfg(unix)]
struct Listening {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Listening {
    fn new() -> std::io::Result<Listening> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Listening { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Listening;

#[cfg(not(unix))]
impl Listening {
    fn new() -> std::io::Result<Listening> {
        Ok(Listening)
    }

    async fn next(&mut self) {
        drop(tokio::signal::ctrl_c().await);
    }
}
