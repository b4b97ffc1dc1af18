//! Splits a text that is longer than a whole slice into parts that fit; the parts together are the
//! text.

use crate::domain::{Tokens, estimate_tokens};
use std::ops::Range;

/// How far back a cut looks for a better place, as a share of the part, in percent.
const LOOK_BACK_PERCENT: usize = 20;

/// Ranges that cover `text` in order, each of at most `tokens_max`; at line ends where there are
/// any, else at blanks, else between characters.
pub(super) fn split(text: &str, tokens_max: Tokens) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = start + fitting(&text[start..], tokens_max);
        parts.push(start..end);
        start = end;
    }
    parts
}

/// How many bytes of `text` fit in `tokens_max`; at least one character, so that splitting ends.
fn fitting(text: &str, tokens_max: Tokens) -> usize {
    if estimate_tokens(text) <= tokens_max {
        return text.len();
    }
    let mut most = text.floor_char_boundary(tokens_max as usize * 4);
    // Other scripts weigh more a byte; shrinking by a quarter each time ends at one character.
    while estimate_tokens(&text[..most]) > tokens_max && most > 4 {
        most = text.floor_char_boundary(most * 3 / 4);
    }
    let first = text.chars().next().map_or(text.len(), char::len_utf8);
    let most = most.max(first);
    let from = text.ceil_char_boundary(most - most * LOOK_BACK_PERCENT / 100);
    if from >= most {
        return most;
    }
    let window = &text[from..most];
    let line = window.rfind('\n').map(|at| from + at + 1);
    let blank = || window.rfind(' ').map(|at| from + at + 1);
    line.or_else(blank).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_the_text_and_fit(text in "\\PC{0,400}", tokens in 1u32..50) {
            let parts = split(&text, tokens);
            let joined: String = parts.iter().map(|part| &text[part.clone()]).collect();
            prop_assert_eq!(joined, text.clone());
            for part in parts {
                let piece = &text[part];
                prop_assert!(estimate_tokens(piece) <= tokens.max(2), "{}", piece);
            }
        }
    }
}
