//! From a cut slice to a job of the queue.

use crate::domain::{Digest, Job, JobId, Part};
use crate::slice::{Cut, Cutting};

/// The job of asking about `cutting` in a way that `asking` digests.
pub(super) fn job_of(cutting: &Cutting, asking: Digest) -> Job {
    let slice = &cutting.slice;
    let place = |part: Option<&Part>| part.map(|it| (it.ordinal, it.part)).unwrap_or_default();
    let cut = serde_json::to_string(&Cut::of(cutting));
    Job {
        id: JobId(Digest::of(&["job", &slice.id.to_string(), &asking.to_string()])),
        slice: slice.id,
        index: slice.index,
        first: place(slice.parts.first()),
        last: place(slice.parts.last()),
        tokens: slice.tokens,
        // Numbers always have a JSON.
        cut: cut.unwrap_or_default(),
    }
}
