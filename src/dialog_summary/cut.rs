//! Truncation of text to one line, and text sizes.

use crate::domain::Tokens;
use crate::privacy::{Gate, Redacted};
use crate::text::truncate::letters;
use std::ops::Add;

const CHARS_PER_TOKEN: usize = 4;
const MARK: char = '…';
/// Maximum attempts, since a placeholder may be longer than the masked text.
const CUTS_MAX: usize = 4;

/// Size of a text, or of the room for one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Size {
    pub(super) chars: usize,
    pub(super) words: usize,
}

impl Size {
    pub(super) fn of(text: &str) -> Size {
        Size { chars: text.chars().count(), words: text.split_whitespace().count() }
    }

    /// Room for this many characters and any number of words.
    pub(super) fn chars(chars: usize) -> Size {
        Size { chars, words: usize::MAX }
    }

    pub(super) fn of_tokens(tokens: Tokens) -> Size {
        let words = tokens as usize;
        Size { chars: words.saturating_mul(CHARS_PER_TOKEN), words }
    }

    /// Words, or a quarter of the characters if that is more: long words have several tokens.
    pub(super) fn tokens(self) -> Tokens {
        let tokens = self.words.max(self.chars.div_ceil(CHARS_PER_TOKEN));
        Tokens::try_from(tokens).unwrap_or(Tokens::MAX)
    }

    /// Difference; `None` if `taken` is larger.
    pub(super) fn less(self, taken: Size) -> Option<Size> {
        let chars = self.chars.checked_sub(taken.chars)?;
        Some(Size { chars, words: self.words.checked_sub(taken.words)? })
    }
}

impl Add for Size {
    type Output = Size;

    fn add(self, other: Size) -> Size {
        Size { chars: self.chars + other.chars, words: self.words + other.words }
    }
}

/// Truncates the text to one line within `room`, at whole words, with a mark if any are omitted. `text` was
/// redacted before, since half an address matches no pattern; newly adjacent text is redacted again.
pub(super) fn within(text: &Redacted, room: Size, gate: &Gate) -> Redacted {
    let mut kept = gate.redact(&cut(text.as_str(), room));
    for _ in 0..CUTS_MAX {
        // Redaction in the middle may leave blanks at an end.
        let neat = cut(kept.as_str(), room);
        if neat == kept.as_str() {
            return kept;
        }
        kept = gate.redact(&neat);
    }
    if room.less(Size::of(kept.as_str())).is_some() { kept } else { Redacted::default() }
}

/// Longest prefix of `text` that fits into `room`.
fn cut(text: &str, room: Size) -> String {
    let (mut kept, mut taken) =
        (String::with_capacity(text.len().min(room.chars)), Size::default());
    // Control characters separate words, as whitespace does.
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty());
    for word in words {
        let gap = usize::from(!kept.is_empty());
        let chars = word.chars().take(room.chars.saturating_add(1)).count();
        let more = taken + Size { chars: gap + chars, words: 1 };
        if room.less(more).is_none() {
            return marked(kept, word, room);
        }
        if gap > 0 {
            kept.push(' ');
        }
        kept.push_str(word);
        taken = more;
    }
    kept
}

/// Whole words of `kept` and the mark; if none fits, a part of `next`.
fn marked(mut kept: String, next: &str, room: Size) -> String {
    if room.chars == 0 || room.words == 0 {
        return String::new();
    }
    while kept.chars().count() >= room.chars {
        let end = kept.rfind(' ').unwrap_or(0);
        kept.truncate(end);
    }
    if kept.is_empty() {
        kept = letters(next, room.chars - 1).to_owned();
    }
    kept.truncate(kept.trim_end_matches([',', ';', ':', ' ', MARK]).len());
    kept.push(MARK);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Pii;

    #[track_caller]
    fn check(text: &str, chars: usize, expected: &str) {
        let gate = Gate::new(&Pii::ALL);
        let kept = within(&gate.redact(text), Size::chars(chars), &gate);
        assert_eq!(kept.as_str(), expected);
        assert_eq!(within(&kept, Size::chars(chars), &gate), kept, "twice is once");
    }

    #[test]
    fn what_fits_stays_and_stands_on_one_line() {
        check("list the jobs", 13, "list the jobs");
        check(" list\n\tthe\u{1b}[2J\u{2028}jobs ", 40, "list the [2J jobs");
        check("", 5, "");
    }

    #[test]
    fn words_are_left_out_whole_and_a_mark_says_so() {
        check("list the jobs", 12, "list the…");
        check("list, the jobs", 8, "list…");
        check("toplantıyı yarına alalım", 18, "toplantıyı yarına…");
        check("a b", 1, "…");
        check("a b", 0, "");
    }

    #[test]
    fn a_long_word_keeps_its_beginning_but_no_half_letter() {
        check("abcdefghij", 5, "abcd…");
        check("s\u{327}s\u{327}s\u{327}", 4, "s\u{327}…");
        check("日本語の文章", 4, "日本語…");
    }

    #[test]
    fn no_placeholder_is_cut_in_two() {
        check("(a@b.org)", 6, "(…");
        check("mail ada@example.com now", 12, "mail…");
        check("mail ada@example.com now", 13, "mail <EMAIL>…");
    }

    #[test]
    fn what_comes_to_stand_together_is_masked() {
        check("call 555\n123\n4567", 30, "call <PHONE>");
    }

    #[test]
    fn room_is_words_or_a_quarter_of_the_characters() {
        assert_eq!(Size::of("").tokens(), 0);
        assert_eq!(Size::of("abcdefghijkl").tokens(), 3);
        assert_eq!(Size::of("a b c d").tokens(), 4);
        let gate = Gate::new(&[]);
        let kept = within(&gate.redact("a b c d e f"), Size::of_tokens(3), &gate);
        assert_eq!(kept.as_str(), "a b c…");
        assert_eq!(
            Size::of_tokens(3).less(Size::of(kept.as_str())).map(|left| left.words),
            Some(0)
        );
    }
}
