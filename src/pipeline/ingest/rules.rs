//! Turns slices into jobs, and decides which slice waits for more of its session.

use crate::domain::{Digest, Entry, EntryKind, Job, Timestamp, Tokens};
use crate::pipeline::extractor::job_of;
use crate::privacy::Redacted;
use crate::slicing::Cutting;
use std::time::Duration;

/// Maximum size of one transaction: some hundred slices.
pub(super) const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of entries in one transaction, so that it takes some hundredths of a second.
const BATCH_ENTRIES_MAX: usize = 8_192;

/// Settings for gathering small slices.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Gather {
    /// A last slice shorter than this waits for more of its session; 0 disables waiting.
    pub tokens: Tokens,
    /// Maximum wait after the session last grew.
    pub idle: Duration,
}

/// Rules of one intake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Digest of the extraction settings, for the ids of jobs.
    pub(super) asking: Digest,
    pub(super) gather: Gather,
    /// True if the session is over or the caller does not wait.
    pub(super) flush: bool,
    pub(super) priority: i32,
    pub(super) now: Timestamp,
    /// Maximum size of one batch.
    pub(super) batch_bytes_max: usize,
}

impl Rules {
    /// True if a batch of this size is to be enqueued.
    pub(super) fn is_full(&self, bytes: usize, entries: usize) -> bool {
        self.batch_bytes_max <= bytes || BATCH_ENTRIES_MAX <= entries
    }

    pub(super) fn job(&self, cutting: &Cutting, preamble: Option<Redacted>) -> Job {
        job_of(cutting, preamble, self.asking)
    }

    /// End of the wait of a session's last slice; `None` if it does not wait for more.
    pub(super) fn gathers_until(&self, cutting: &Cutting) -> Option<Timestamp> {
        let wanted = self.gather.tokens;
        let waits = !self.flush && wanted > 0;
        if !waits || (wanted <= cutting.slice.tokens && !ends_in_a_call(&cutting.entries)) {
            return None;
        }
        Some(self.now.after(self.gather.idle))
    }
}

/// True if a tool call has no result yet, which belongs in the same slice. A later message of the person shows that
/// none will come.
fn ends_in_a_call(entries: &[Entry]) -> bool {
    let mut open: Vec<Option<&Redacted>> = Vec::new();
    for entry in entries {
        let id = entry.tool.as_ref().and_then(|tool| tool.call_id.as_ref());
        match entry.kind {
            EntryKind::ToolCall => open.push(id),
            EntryKind::ToolResult => {
                // A result without an id answers the call before it.
                let answered = match id {
                    Some(_) => open.iter().position(|open| *open == id),
                    None => open.len().checked_sub(1),
                };
                answered.map(|at| open.remove(at));
            }
            EntryKind::Prompt | EntryKind::Rejection => open.clear(),
            EntryKind::Steering
            | EntryKind::Answer
            | EntryKind::Command
            | EntryKind::Text
            | EntryKind::Summary
            | EntryKind::Injected
            | EntryKind::Notice => {}
        }
    }
    !open.is_empty()
}
