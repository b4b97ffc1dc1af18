//! Progress of long work: a bar or a changing line on a terminal, a plain line now and then elsewhere.

use super::output;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Refresh interval on a terminal.
const TICK: Duration = Duration::from_millis(100);
/// Interval of plain lines of a command that ends.
pub(super) const OFTEN: Duration = Duration::from_secs(10);
/// Interval of plain lines of a command that runs until it is stopped.
pub(super) const SELDOM: Duration = Duration::from_secs(60);

/// State of the work.
pub(super) struct Look {
    /// Work done.
    pub(super) at: u64,
    /// All work.
    pub(super) of: u64,
    /// The state in words.
    pub(super) text: String,
}

/// Shows the state that `look` returns, in a style of indicatif or in plain lines; runs until it is aborted.
pub(super) async fn show(
    style: &'static str,
    prefix: String,
    every: Duration,
    look: impl Fn() -> Look,
) {
    let bar = output::is_watched().then(|| bar(style, prefix));
    let mut said = None;
    loop {
        tokio::time::sleep(if bar.is_some() { TICK } else { every }).await;
        let Look { at, of, text } = look();
        match &bar {
            Some(bar) => {
                bar.set_length(of.max(1));
                bar.set_position(at);
                bar.set_message(text);
            }
            // What did not change need not be said twice.
            None if said.as_ref() != Some(&text) => {
                output::note(&text);
                said = Some(text);
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
    bar.set_prefix(prefix);
    bar
}
