//! Bounds that several modules share, with their units and reasons.

/// The longest line of a JSONL transcript that is read, in bytes: base64 images make lines of a few
/// megabytes; beyond this a line is a finding, and is never buffered.
pub(crate) const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum size of a slice document: it fits a line of a file. Brokers carry less.
pub(crate) const HANDED_BYTES_MAX: usize = LINE_BYTES_MAX;
/// Bytes at the beginning of a file from which its format is detected.
pub(crate) const DETECT_BYTES_MAX: usize = 64 * 1024;
/// Findings kept for one file; the others are counted.
pub(crate) const FINDINGS_MAX: usize = 100;
/// Asks for one slice, the first included: the ladder's rungs and re-asks together.
pub(crate) const ASKS_MAX: u32 = 8;
/// The largest body of a reply that is read, in bytes: 10 MB bodies were seen, and are junk.
pub(crate) const REPLY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum bytes kept of the texts of one reply: no model writes as much, and every reply is journaled.
pub(crate) const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Records kept of one reply; a model that hands over more repeats itself.
pub(crate) const CLAIMS_MAX: usize = 200;
/// The longest string kept of a claim, in bytes.
pub(crate) const CLAIM_BYTES_MAX: usize = 8_000;
/// Maximum depth of a model's JSON; deeper values are dropped and reported.
pub(crate) const JSON_DEPTH_MAX: usize = 64;

const _: () = assert!(DETECT_BYTES_MAX < LINE_BYTES_MAX);
const _: () = assert!(CLAIM_BYTES_MAX * CLAIMS_MAX < ANSWER_BYTES_MAX);
const _: () = assert!(ANSWER_BYTES_MAX < REPLY_BYTES_MAX);

/// Tokens of a model, estimated unless they come from a reply's usage.
pub(crate) type Tokens = u32;

/// Bytes of ASCII a token; English prose and code come to 4.0 to 4.7 with current tokenisers.
const ASCII_BYTES_PER_TOKEN: usize = 4;
/// Bytes of other scripts a token: two letters of Cyrillic or Turkish, one of Chinese.
const OTHER_BYTES_PER_TOKEN: usize = 3;

/// Estimates the tokens of `text`: never zero for text that is not empty.
pub(crate) fn estimate_tokens(text: &str) -> Tokens {
    let ascii = text.bytes().filter(u8::is_ascii).count();
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
