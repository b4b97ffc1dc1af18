//! Every bound that crosses rooms, with its unit and its reason.

/// The longest line of a JSONL transcript that is read, in bytes: base64 images make lines of a few
/// megabytes; beyond this a line is a finding, and is never buffered.
pub const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The largest document in which a slice is handed over, in bytes: as one line of a file it can be
/// read too. Brokers carry less.
pub const HANDED_BYTES_MAX: usize = LINE_BYTES_MAX;
/// What detection looks at, in bytes, from the beginning of a file.
pub const DETECT_BYTES_MAX: usize = 64 * 1024;
/// Findings kept for one file; the others are counted.
pub const FINDINGS_MAX: usize = 100;
/// Asks for one slice, the first included: the ladder's rungs and re-asks together.
pub const ASKS_MAX: u32 = 8;
/// The largest body of a reply that is read, in bytes: 10 MB bodies were seen, and are junk.
pub const REPLY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Records kept of one reply; a model that hands over more repeats itself.
pub const CLAIMS_MAX: usize = 200;
/// The longest string kept of a claim, in bytes.
pub const CLAIM_BYTES_MAX: usize = 8_000;
/// How deep JSON of a model is read; deeper values are dropped and reported.
pub const JSON_DEPTH_MAX: usize = 64;

const _: () = assert!(DETECT_BYTES_MAX < LINE_BYTES_MAX);
const _: () = assert!(CLAIM_BYTES_MAX * 4 < REPLY_BYTES_MAX);
