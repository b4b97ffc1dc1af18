//! Long tool output is kept head and tail, with a mark that says how much was left out and the
//! digest of the whole. What people and assistants say is never bounded.

use crate::domain::{Digest, Tokens, estimate_tokens};
use crate::privacy::{Redacted, Woven};

/// The share of the bound that the head gets, in percent: commands say what they do first, and how
/// it ended last.
const HEAD_PERCENT: usize = 60;
/// Bytes a token that are kept; the estimate's own figure for ASCII, safe for other scripts.
const BYTES_PER_TOKEN: usize = 4;
/// How far back a cut looks for a line end, in bytes, so that lines stay whole where they are short.
const LINE_LOOK_BYTES: usize = 160;

/// Keeps head and tail of `text` within `tokens_max`; none if it fits as it is.
pub fn bound(text: &Redacted, tokens_max: Tokens) -> Option<Redacted> {
    let words = text.as_str();
    let bytes_max = tokens_max as usize * BYTES_PER_TOKEN;
    if words.len() <= bytes_max && estimate_tokens(words) <= tokens_max {
        return None;
    }
    // Other scripts weigh more a byte; a second look makes it fit.
    let weight = estimate_tokens(words) as usize * BYTES_PER_TOKEN;
    let keep = (bytes_max * words.len() / weight.max(1)).min(bytes_max);
    let head_end = line_before(words, keep * HEAD_PERCENT / 100);
    let tail_start = line_after(words, words.len() - keep * (100 - HEAD_PERCENT) / 100);
    if tail_start <= head_end {
        return None;
    }
    let left_out = tail_start - head_end;
    let digest = Digest::of_bytes(words.as_bytes());
    let mark = format!("\n[… {left_out} bytes left out; digest of the whole {digest} …]\n");
    Some(Redacted::weave(&[
        Woven::Passed(&text.cut(0..head_end)),
        Woven::Label(&mark),
        Woven::Passed(&text.cut(tail_start..words.len())),
    ]))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Gate;

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
}
