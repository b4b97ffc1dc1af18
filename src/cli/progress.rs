//! Progress of long operations: a bar or an updated line on a terminal, plain lines at intervals elsewhere.

use super::output;
use crate::text::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use std::convert::Infallible;
use std::time::Duration;

/// Refresh interval on a terminal.
const TICK: Duration = Duration::from_millis(100);
/// Interval of plain lines for commands that finish by themselves.
pub(super) const OFTEN: Duration = Duration::from_secs(10);
/// Interval of plain lines for commands that run until they are stopped.
pub(super) const SELDOM: Duration = Duration::from_secs(60);

pub(super) struct Progress {
    /// Completed units of work.
    pub(super) at: u64,
    /// Total units of work.
    pub(super) of: u64,
    /// State in words.
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
                bar.set_length(of.max(1));
                bar.set_position(at);
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
    bar
}
