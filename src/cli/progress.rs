//! Long operations: progress as a bar or an updated line on a terminal, as plain lines at intervals elsewhere; and
//! Ctrl-C and SIGTERM, of which the first signal stops cleanly, the second immediately.

use super::output::{self, Failure, Result};
use crate::text::terminal;
use futures_util::stream::{self, BoxStream, StreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use std::convert::Infallible;
use std::io;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const TICK: Duration = Duration::from_millis(100);
/// Interval of plain lines for commands that finish by themselves.
pub(super) const OFTEN: Duration = Duration::from_secs(10);
/// Interval of plain lines for commands that run until they are stopped.
pub(super) const SELDOM: Duration = Duration::from_secs(60);

pub(super) struct Progress {
    pub(super) at: u64,
    pub(super) of: u64,
    pub(super) text: String,
}

/// Runs `work` with [`show`] beside it.
pub(super) async fn during<T>(
    show: impl Future<Output = Infallible>,
    work: impl Future<Output = T>,
) -> T {
    tokio::select! {
        result = work => result,
        never = show => match never {},
    }
}

/// Shows the state that `progress` returns, in an indicatif style or as plain lines. Never returns.
pub(super) async fn show(
    style: &'static str,
    prefix: String,
    every: Duration,
    progress: impl Fn() -> Progress,
) -> Infallible {
    let bar = output::is_watched().then(|| bar(style, prefix));
    let mut shown = None;
    loop {
        tokio::time::sleep(if bar.is_some() { TICK } else { every }).await;
        let Progress { at, of, text } = progress();
        match &bar {
            Some(bar) => {
                // Draws nothing, because the bar ticks by itself; what follows draws all of it.
                bar.update(|state| {
                    state.set_len(of.max(1));
                    state.set_pos(at);
                });
                bar.set_message(terminal::shown(&text));
            }
            None if shown.as_ref() != Some(&text) => {
                output::note(&text);
                shown = Some(text);
            }
            None => {}
        }
    }
}

fn bar(style: &'static str, prefix: String) -> ProgressBar {
    let bar = ProgressBar::new(1);
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar.set_prefix(terminal::shown(&prefix));
    bar.enable_steady_tick(TICK);
    bar
}

pub(super) fn cancelled_by_signal() -> Result<CancellationToken> {
    let left = || "answers received are kept".to_owned();
    cancelled_with_note(
        "stopping: calls in flight may finish (Ctrl-C again stops at once)".to_owned(),
        left,
    )
}

/// Returns a token that the first signal cancels, with a note. The second signal exits and prints what is `left`,
/// which is safe because all state is transactional.
pub(super) fn cancelled_with_note(
    note: String,
    left: impl Fn() -> String + Send + 'static,
) -> Result<CancellationToken> {
    let mut signals =
        signals().map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
    let cancel = CancellationToken::new();
    let cancelled = cancel.clone();
    tokio::spawn(async move {
        signals.next().await;
        cancelled.cancel();
        output::note_over_progress(&note);
        signals.next().await;
        let left = left();
        output::note_over_progress(&format!(
            "stopped at once: {left}; run the same command again to resume"
        ));
        std::process::exit(i32::from(output::FAILED));
    });
    Ok(cancel)
}

/// Signals to stop, from the call on, so that none is lost between two waits.
#[cfg(unix)]
fn signals() -> io::Result<BoxStream<'static, ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = |kind| {
        let received = async |mut it: tokio::signal::unix::Signal| Some((it.recv().await?, it));
        Ok::<_, io::Error>(stream::unfold(signal(kind)?, received))
    };
    let (interrupt, terminate) =
        (signals(SignalKind::interrupt())?, signals(SignalKind::terminate())?);
    Ok(stream::select(interrupt, terminate).boxed())
}

#[cfg(not(unix))]
fn signals() -> io::Result<BoxStream<'static, ()>> {
    let received = async |()| Some((tokio::signal::ctrl_c().await.ok()?, ()));
    Ok(stream::unfold((), received).boxed())
}
