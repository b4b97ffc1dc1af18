//! Types and bounds that the modules share. No I/O, no clock, no raw text.

mod claim;
mod entry;
mod id;
mod memory;
mod model;
mod plan;
mod slice;
#[cfg(test)]
pub(crate) mod testing;
mod time;

pub(crate) use entry::{Coverage, Finding, SPEAKER_LABELS, Severity, Skip, Tool, named};

pub use claim::{Attempt, Claim, ClaimKind, Decision, Discussion, PersonRequest, WriteExtracted};
pub use claim::{Evidence, Match, Provenance, Record, RecordState, RunState};
pub use entry::{Branch, CoverageState, Entry, EntryKind, Format, Outcome, Session, Speaker};

pub use id::{Digest, JobId, MemoryId, RecordId, RunId, SessionId, SliceId};
pub(crate) use id::{PlanId, RequestDigest};

pub(crate) use memory::{
    JUDGED, LAID_DOWN, PERSON_EDITED, PersonDecision, WISH_GRANTED, WISH_REFUSED, WISH_WITHDRAWN,
    shown_words, without_label,
};
pub use memory::{Memory, MemoryState, Stage};
pub use model::{Call, Finish, LanguageModel, Message, OutputMode, Reply, Request, Role, Usage};
pub(crate) use model::{ErrorKind, ModelError, Purpose, Retry, ToolSpec};
pub use plan::MemoryMap;
pub(crate) use plan::{
    BY_PERSON, Change, Disposition, Effect, FOR_A_TIME, Facts, LeftOpen, Merging, Moved, NARROWER,
    Operation, PARTLY, Plan, RELATED, Settlement, is_partly,
};
pub(crate) use slice::Wait;
pub use slice::{Claimed, Job, Part, Slice};
pub(crate) use slice::{JobState, Lease};
pub use time::Timestamp;

/// Maximum length of a JSONL line, in bytes. Base64 images make lines of a few megabytes; a longer
/// line is a finding and is never buffered.
pub(crate) const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum size of a slice document, in bytes: one line of a file. Brokers allow less.
pub(crate) const HANDED_BYTES_MAX: usize = LINE_BYTES_MAX;
/// Number of leading bytes from which a file's format is detected; a request may begin with long instructions and tools.
pub(crate) const DETECT_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of findings kept per file; the rest are only counted.
pub(crate) const FINDINGS_MAX: usize = 100;
/// Maximum number of requests for one slice, over all output modes and re-asks.
pub(crate) const ASKS_MAX: u32 = 8;
/// Maximum size of a reply body, in bytes. Bodies of 10 MB occur, and are junk.
pub(crate) const REPLY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum number of bytes kept of a reply's texts: no model writes more, and every reply is journaled.
pub(crate) const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Maximum number of records kept per reply; a model that returns more is repeating itself.
pub(crate) const CLAIMS_MAX: usize = 200;
/// Maximum length of a string in a claim, in bytes.
pub(crate) const CLAIM_BYTES_MAX: usize = 8_000;
/// Maximum depth of a model's JSON; deeper values are dropped and reported.
pub(crate) const JSON_DEPTH_MAX: usize = 64;

const _: () = assert!(DETECT_BYTES_MAX < LINE_BYTES_MAX);
const _: () = assert!(CLAIM_BYTES_MAX * CLAIMS_MAX < ANSWER_BYTES_MAX);
const _: () = assert!(ANSWER_BYTES_MAX < REPLY_BYTES_MAX);

/// Number of tokens, estimated unless it comes from a reply's usage.
pub(crate) type Tokens = u32;

/// ASCII bytes per token; current tokenizers need 4.0 to 4.7 for English prose and code.
const ASCII_BYTES_PER_TOKEN: usize = 4;
/// Bytes of other scripts per token: two letters of Cyrillic or Turkish, one of Chinese.
const OTHER_BYTES_PER_TOKEN: usize = 3;

/// Estimates the number of tokens; at least one for non-empty text.
pub(crate) fn estimate_tokens(text: &str) -> Tokens {
    // Short runs are counted in bytes, which is several times faster.
    let ascii_in = |run: &[u8]| run.iter().map(|byte| u8::from(byte.is_ascii())).sum::<u8>();
    let ascii: usize = text.as_bytes().chunks(128).map(|run| usize::from(ascii_in(run))).sum();
    let other = text.len() - ascii;
    let tokens = ascii.div_ceil(ASCII_BYTES_PER_TOKEN) + other.div_ceil(OTHER_BYTES_PER_TOKEN);
    Tokens::try_from(tokens).unwrap_or(Tokens::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_with_the_text() {
        assert_eq!(estimate_tokens(""), 0);
        assert_eq!(estimate_tokens("a"), 1);
        assert_eq!(estimate_tokens("abcdefgh"), 2);
        assert_eq!(estimate_tokens("日本"), 2);
    }
}
