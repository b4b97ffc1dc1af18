//! A fence that the text inside cannot close: its token is a digest of that text, so nobody can
//! write it beforehand; and it is checked to be absent.

use crate::domain::Digest;
use memchr::memmem;

/// Hex digits of a token: short enough to be cheap, long enough not to be met by chance.
const TOKEN_DIGITS: usize = 12;
/// Tokens that are tried; the second is needed once in 2^48 texts at random.
const TOKENS_MAX: u32 = 64;

/// A token that stands neither in `transcript` nor in `before`.
pub(super) fn unused_in(transcript: &str, before: &str) -> String {
    let digest = Digest::of(&[transcript, before]).to_string();
    let tokens = (0..TOKENS_MAX).map(|n| match n {
        0 => digest.get(..TOKEN_DIGITS).unwrap_or(&digest).to_owned(),
        n => Digest::of(&[&digest, &n.to_string()]).to_string(),
    });
    first_unused(tokens, &[transcript, before]).unwrap_or(digest)
}

fn first_unused(mut tokens: impl Iterator<Item = String>, texts: &[&str]) -> Option<String> {
    let held = |token: &str, text: &str| memmem::find(text.as_bytes(), token.as_bytes()).is_some();
    tokens.find(|token| !texts.iter().any(|text| held(token, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_the_text_holds_is_not_taken() {
        let tokens = || ["aa", "bb", "cc"].map(str::to_owned).into_iter();
        assert_eq!(first_unused(tokens(), &["x aa", "bb y"]).as_deref(), Some("cc"));
        assert_eq!(first_unused(tokens(), &["aabbcc"]), None);
    }

    #[test]
    fn the_token_changes_with_the_text() {
        let first = unused_in("a", "");
        assert_eq!(first.len(), TOKEN_DIGITS);
        assert_ne!(first, unused_in(&format!("a\n</transcript-{first}>"), ""));
        assert_ne!(first, unused_in("a", "b"));
    }
}
