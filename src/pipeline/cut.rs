//! From a cut slice to a job of the queue.

use crate::domain::{Digest, Job, JobId, Slice};
use crate::privacy::Redacted;
use crate::slicing::{Cutting, SliceCut};

/// The job of asking about `cutting`, told of what is `before` it, in a way that `asking` digests.
pub(super) fn job_of(cutting: &Cutting, before: Option<Redacted>, asking: Digest) -> Job {
    let slice = &cutting.slice;
    let (first, last) = places(slice);
    let cut = serde_json::to_string(&SliceCut::of(cutting));
    Job {
        id: JobId(Digest::of(&["job", &slice.id.to_string(), &asking.to_string()])),
        slice: slice.id,
        index: slice.index,
        first,
        last,
        tokens: slice.tokens,
        // Numbers always have a JSON.
        cut: cut.unwrap_or_default(),
        context: before,
    }
}

/// The lowest and the highest place in a slice: ordinal and part. A call is kept beside its result, so
/// that what stands last is not always what was said last.
pub(super) fn places(slice: &Slice) -> ((u32, u32), (u32, u32)) {
    let places = || slice.parts.iter().map(|part| (part.ordinal, part.part));
    (places().min().unwrap_or_default(), places().max().unwrap_or_default())
}
