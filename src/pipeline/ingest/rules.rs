//! How slices become jobs: what is made a job, and what waits for more of its session.

use crate::domain::{Digest, Entry, EntryKind, Job, Timestamp, Tokens};
use crate::pipeline::cut::job_of;
use crate::privacy::Redacted;
use crate::slicing::Cutting;
use crate::store::Gathering;
use std::time::Duration;

/// Text that is kept for one transaction, in bytes: some hundred slices.
pub(super) const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Entries that are kept for one transaction, so that it is over in some hundredths of a second.
const BATCH_ENTRIES_MAX: usize = 8_192;

/// How small a slice waits for more of its session, and how long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Gather {
    /// A last slice shorter than this waits; 0 lets none wait.
    pub tokens: Tokens,
    /// How long after the session grew last.
    pub idle: Duration,
}

/// What holds for everything of one hand-over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// How the slices are to be asked about, for the ids of jobs.
    pub(super) asking: Digest,
    pub(super) gather: Gather,
    /// The session is over, or somebody said not to wait.
    pub(super) flush: bool,
    pub(super) priority: i32,
    pub(super) now: Timestamp,
    /// Text of one session that is handed over at once, in bytes.
    pub(super) batch_bytes_max: usize,
}

impl Rules {
    /// Whether so much is to be handed over before more is taken.
    pub(super) fn is_full(&self, bytes: usize, entries: usize) -> bool {
        self.batch_bytes_max <= bytes || BATCH_ENTRIES_MAX <= entries
    }

    /// The job of a slice that is told of what is `before` it.
    pub(super) fn job(&self, (cutting, before): &(Cutting, Option<Redacted>)) -> Job {
        job_of(cutting, before.clone(), self.asking)
    }

    /// The last slice of a session as it stands, if it waits for more.
    pub(super) fn gathering(&self, last: &(Cutting, Option<Redacted>)) -> Option<Gathering> {
        let cutting = &last.0;
        let wanted = self.gather.tokens;
        let waits = !self.flush && wanted > 0;
        if !waits || (wanted <= cutting.slice.tokens && !ends_in_a_call(&cutting.entries)) {
            return None;
        }
        let idle = i64::try_from(self.gather.idle.as_millis()).unwrap_or(i64::MAX);
        let until = Timestamp(self.now.0.saturating_add(idle));
        Some(Gathering { job: self.job(last), until })
    }
}

/// Whether a tool was called and has not answered yet: its answer belongs into the same slice. What a
/// person says after that shows that no answer will come.
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
