//! Sentences: they end behind `.` `!` `?` and their like where a blank follows, and at line ends.

use super::is_blank;
use std::ops::Range;

/// What may stand between the end of a sentence and the blank behind it.
const CLOSERS: [char; 6] = ['"', '\'', '”', '’', ')', ']'];

/// The sentences of `text` in their order, without blanks around them; none is empty.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            let end = end_of(text, start);
            // What ends a sentence is never a blank, so that each turn goes on.
            at = end + text.get(end..)?.chars().next().map_or(0, char::len_utf8);
            let sentence = text.get(start..end)?;
            let body = sentence.trim_start_matches(is_blank);
            let start = end - body.len();
            let body = body.trim_end_matches(is_blank);
            if !body.is_empty() {
                return Some(start..start + body.len());
            }
        }
        None
    })
}

/// Where the sentence that begins at `from` ends: at a line end, behind its last closer, or with the
/// text.
fn end_of(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(may_end)) {
        at += found;
        let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
        if is_line_end(letter) {
            return at;
        }
        at += letter.len_utf8();
        if is_stop(letter)
            && let Some(end) = closed(text, at)
        {
            return end;
        }
    }
    text.len()
}

/// Where a sentence ends whose stop stands before `at`: behind its closers, if a blank follows.
pub(super) fn closed(text: &str, at: usize) -> Option<usize> {
    let behind = text.get(at..)?;
    let open = behind.trim_start_matches(CLOSERS);
    open.starts_with(is_blank).then_some(at + behind.len() - open.len())
}

/// A sentence's text without the closers behind it.
pub(super) fn without_closers(text: &str) -> &str {
    text.trim_end_matches(CLOSERS)
}

/// Whether a stop or a line end may begin with this byte.
fn may_end(byte: &u8) -> bool {
    const ENDS: [bool; 256] = {
        let mut ends = [false; 256];
        let all = b".!?\n\r\x0b\x0c\x1c\x1d\x1e\xc2\xe2\xe3\xef";
        let mut at = 0;
        while at < all.len() {
            ends[all[at] as usize] = true;
            at += 1;
        }
        ends
    };
    ENDS[usize::from(*byte)]
}

pub(super) fn is_stop(letter: char) -> bool {
    matches!(letter, '.' | '!' | '?' | '。' | '！' | '？' | '…')
}

pub(super) fn is_line_end(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(sentences(text).map(|range| &text[range]).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_stop_and_a_blank_end_a_sentence() {
        check("One.  Two! Three?\tFour", &["One.", "Two!", "Three?", "Four"]);
        check(
            "He said \"go.\" Then (so.) he went.",
            &["He said \"go.\"", "Then (so.)", "he went."],
        );
        check("好。 是！ 吗？ 嗯… 完", &["好。", "是！", "吗？", "嗯…", "完"]);
    }

    #[test]
    fn a_stop_inside_a_word_ends_nothing() {
        check("Use Node.js 3.5 at a.example/?q=1 now", &["Use Node.js 3.5 at a.example/?q=1 now"]);
    }

    #[test]
    fn lines_end_sentences() {
        check("\n one\r\n\n two \u{2028}three\u{85}", &["one", "two", "three"]);
        check(" \n \t", &[]);
    }

    proptest! {
        #[test]
        fn sentences_hold_every_word_once(text in "([a-c.!?\"') \n]|。|…|\u{85}|é){0,60}") {
            let joined: String = sentences(&text).map(|range| &text[range]).collect();
            let without = |text: &str| text.chars().filter(|c| !is_blank(*c)).collect::<String>();
            prop_assert_eq!(without(&joined), without(&text));
        }
    }
}
