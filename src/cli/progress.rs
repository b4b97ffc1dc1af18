//! Progress of long work: a bar or a line that changes where somebody watches, a plain line now and
//! then elsewhere.

use super::output;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// How often progress is looked at where somebody watches.
const TICK: Duration = Duration::from_millis(100);
/// How often a plain line is printed where nobody does, while somebody waits for the end.
pub(super) const OFTEN: Duration = Duration::from_secs(10);
/// The same where nobody waits.
pub(super) const SELDOM: Duration = Duration::from_secs(60);

/// How far the work is.
pub(super) struct Look {
    /// So much is done …
    pub(super) at: u64,
    /// … of so much.
    pub(super) of: u64,
    /// In words.
    pub(super) text: String,
}

/// Shows what `look` sees, in a style of indicatif, or in plain lines `every` so often; ends when it is
/// aborted with the work.
pub(super) async fn show(
    (style, prefix): (&'static str, String),
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
