//! Progress of long work: a bar or a changing line on a terminal, a plain line now and then elsewhere.

use super::output;
use crate::text::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use std::convert::Infallible;
use std::time::Duration;

/// Refresh interval on a terminal.
const TICK: Duration = Duration::from_millis(100);
/// Interval of plain lines of a command that ends.
pub(super) const OFTEN: Duration = Duration::from_secs(10);
/// Interval of plain lines of a command that runs until it is stopped.
pub(super) const SELDOM: Duration = Duration::from_secs(60);

pub(super) struct Progress {
    /// Work done.
    pub(super) at: u64,
    /// All work.
    pub(super) of: u64,
    /// The state in words.
    pub(super) text: String,
}

/// Does `work` while [`show`] runs.
pub(super) async fn during<T>(
    show: impl Future<Output = Infallible>,
    work: impl Future<Output = T>,
) -> T {
    tokio::select! {
        result = work => result,
        never = show => match never {},
    }
}

/// Shows the state that `progress` returns, in a style of indicatif or in plain lines; never ends.
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
