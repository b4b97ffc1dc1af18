//! Shortens long tool output to its head and tail, with a mark that has the omitted size and the digest of the whole; and
//! splits other entries that are longer than a slice. What people and assistants say is never shortened.

use crate::domain::{Digest, Tokens, estimate_tokens};
use crate::privacy::{Redacted, Woven};
use std::ops::Range;

/// Maximum tokens that the mark in shortened tool output adds.
pub(super) const MARK_TOKENS_MAX: u32 = 32;
/// Share of the bound that the head gets, in percent: commands print what they do first, and how it
/// ended last.
const HEAD_PERCENT: usize = 60;
/// Kept bytes per token, as the estimate assumes for ASCII.
const BYTES_PER_TOKEN: usize = 4;
/// Kept bytes per token of any other script; a text of that size always fits.
const OTHER_BYTES_PER_TOKEN: usize = 3;
/// Bytes within which a cut looks for a line end, so that short lines stay whole.
const LINE_LOOK_BYTES: usize = 160;
/// Share of a part in which a cut looks back for a better position, in percent.
const LOOK_BACK_PERCENT: usize = 20;

/// Keeps head and tail of `text` within `tokens_max`, with a mark between them. `None` if it fits, or
/// exceeds the bound by no more than a mark takes, so that bounded text is not bounded again.
pub(crate) fn bound(text: &Redacted, tokens_max: Tokens) -> Option<Redacted> {
    let words = text.as_str();
    let tokens = estimate_tokens(words);
    let most = tokens_max.saturating_add(MARK_TOKENS_MAX);
    if tokens <= most {
        return None;
    }
    let bytes_max = tokens_max as usize * BYTES_PER_TOKEN;
    // Other scripts have more tokens per byte; the ratio of the whole is a good guess for its ends.
    let kept = keep(text, bytes_max * words.len() / (tokens as usize * BYTES_PER_TOKEN));
    if estimate_tokens(kept.as_str()) <= most {
        return Some(kept);
    }
    Some(keep(text, tokens_max as usize * OTHER_BYTES_PER_TOKEN))
}

/// Keeps about `bytes` of head and tail, in whole lines, with a mark between them.
fn keep(text: &Redacted, bytes: usize) -> Redacted {
    let words = text.as_str();
    let head_end = line_before(words, bytes * HEAD_PERCENT / 100);
    let tail_start = line_after(words, words.len() - bytes * (100 - HEAD_PERCENT) / 100);
    let left_out = tail_start.saturating_sub(head_end);
    let digest = Digest::of_bytes(words.as_bytes());
    let mark = format!("\n[… {left_out} bytes left out; digest of the whole {digest} …]\n");
    Redacted::weave(&[
        Woven::Passed(&text.cut(0..head_end)),
        Woven::Label(&mark),
        Woven::Passed(&text.cut(tail_start..words.len())),
    ])
}

fn line_before(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at.min(text.len()));
    let from = text.floor_char_boundary(at.saturating_sub(LINE_LOOK_BYTES));
    let line = text[from..at].rfind('\n').map(|end| from + end);
    line.filter(|line| *line > 0).unwrap_or(at)
}

fn line_after(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at.min(text.len()));
    let to = text.ceil_char_boundary((at + LINE_LOOK_BYTES).min(text.len()));
    text[at..to].find('\n').map_or(at, |end| at + end + 1)
}

/// Splits `text` into ranges of at most `tokens_max`: at line ends, else at blanks, else between
/// characters.
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

/// Number of bytes of `text` that fit in `tokens_max`; at least one character, so that splitting terminates. Reads only
/// the bytes that can fit, not the rest of the text: each part would read all of it, in quadratic time.
fn fitting(text: &str, tokens_max: Tokens) -> usize {
    let mut most = text.floor_char_boundary(tokens_max as usize * BYTES_PER_TOKEN);
    // Other scripts have more tokens per byte; shrinking by a quarter ends at one character.
    while estimate_tokens(&text[..most]) > tokens_max && most > 4 {
        most = text.floor_char_boundary(most * 3 / 4);
    }
    if most == text.len() {
        return most;
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
    mod bound {
        use super::super::*;
        use crate::privacy::Gate;
        use proptest::prelude::*;

        fn text(words: &str) -> Redacted {
            Gate::new(&[]).redact(words)
        }

        #[test]
        fn what_fits_stays_as_it_is() {
            assert_eq!(bound(&text("short"), 40), None);
        }

        #[test]
        fn head_and_tail_stay_and_the_mark_says_what_is_gone() {
            let whole: String = (0..500).map(|n| format!("line {n}\n")).collect();
            let kept = bound(&text(&whole), 100).unwrap();
            let kept = kept.as_str();
            assert!(kept.starts_with("line 0\nline 1\n") && kept.ends_with("line 499\n"), "{kept}");
            let digest = Digest::of_bytes(whole.as_bytes()).to_string();
            assert!(kept.contains("bytes left out") && kept.contains(&digest), "{kept}");
            assert!(estimate_tokens(kept) < 100 + 40);
        }

        #[test]
        fn other_scripts_are_bounded_on_characters() {
            let kept = bound(&text(&"日本語".repeat(1000)), 100).unwrap();
            assert!(estimate_tokens(kept.as_str()) < 140, "{}", kept.as_str());
        }

        #[test]
        fn what_a_mark_would_outweigh_is_kept() {
            assert_eq!(bound(&text(&"a".repeat(4 * (100 + 32))), 100), None);
            assert!(bound(&text(&"a".repeat(4 * (100 + 32) + 1)), 100).is_some());
        }

        proptest! {
            #[test]
            fn what_was_bounded_fits_and_is_not_bounded_again(
                stretches in prop::collection::vec(("[a-z \n]{1,9}|[ş名]{1,9}|[a名]{1,9}", 1..90usize), 1..9),
                tokens_max in 40u32..200,
            ) {
                let words: String = stretches.iter().map(|(words, times)| words.repeat(*times)).collect();
                if let Some(kept) = bound(&text(&words), tokens_max) {
                    prop_assert!(kept.len() < words.len());
                    prop_assert!(estimate_tokens(kept.as_str()) <= tokens_max + MARK_TOKENS_MAX);
                    prop_assert_eq!(bound(&kept, tokens_max), None);
                }
            }
        }
    }

    mod split {
        use super::super::*;
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
}
