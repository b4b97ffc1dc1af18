//! What words are made of, and the stretches of a text that hold no words: what the gate put in place
//! of something, and addresses.

use memchr::memchr2;
use std::ops::Range;

/// Marks that combine with the letter before them: a word goes on behind one.
const COMBINING: std::ops::RangeInclusive<char> = '\u{300}'..='\u{36f}';
/// What an address begins with.
const SCHEMES: [&str; 2] = ["https", "http"];

/// A letter, a number of any kind, an underscore, or a mark that combines with a letter.
pub(crate) fn is_word(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric() || letter == '_';
    }
    letter.is_alphanumeric() || COMBINING.contains(&letter)
}

/// Where the run of letters of a word ends that `from` stands in.
pub(crate) fn word_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    // Nearly every letter of nearly every text is plain; looking one up costs less than decoding it.
    while let Some(byte) = bytes.get(at) {
        if PLAIN[usize::from(*byte)] {
            at += 1;
            continue;
        }
        let other =
            text.get(at..).filter(|_| !byte.is_ascii()).and_then(|rest| rest.chars().next());
        let Some(letter) = other.filter(|letter| is_word(*letter)) else { break };
        at += letter.len_utf8();
    }
    at
}

/// Where the first word at or behind `from` begins, or the end of the text.
pub(crate) fn word_start(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        if PLAIN[usize::from(*byte)] {
            break;
        }
        if byte.is_ascii() {
            at += 1;
            continue;
        }
        let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
        if is_word(letter) {
            break;
        }
        at += letter.len_utf8();
    }
    at
}

/// The bytes that are letters, digits and underscores by themselves.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < plain.len() {
        plain[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    plain
};

/// A blank, line ends and the four information separators among them.
pub(crate) fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// The stretches of `text` between placeholders such as `<EMAIL>` and addresses such as
/// `https://example.com/a`, in their order. A word never goes across one.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = Some(0);
    std::iter::from_fn(move || {
        let start = from?;
        let gap = text.get(start..).and_then(first_gap);
        from = gap.map(|(_, end)| start + end);
        Some(start..gap.map_or(text.len(), |(at, _)| start + at))
    })
}

/// Where the first placeholder or address begins and ends.
fn first_gap(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = memchr2(b'<', b':', bytes.get(from..)?) {
        let at = from + found;
        let gap = match bytes.get(at) {
            Some(b'<') => placeholder(text.get(at..)?).map(|length| (at, at + length)),
            Some(_) | None => address(text, at),
        };
        if gap.is_some() {
            return gap;
        }
        from = at + 1;
    }
    None
}

/// The length of the placeholder that `text` begins with.
fn placeholder(text: &str) -> Option<usize> {
    let name = text.strip_prefix('<')?;
    let end = name.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))?;
    let is_one = name.starts_with(|c: char| c.is_ascii_uppercase());
    (is_one && name.as_bytes().get(end) == Some(&b'>')).then_some(end + 2)
}

/// The address whose colon is at `colon`.
fn address(text: &str, colon: usize) -> Option<(usize, usize)> {
    let (before, behind) = (text.get(..colon)?, text.get(colon..)?.strip_prefix("://")?);
    let scheme = SCHEMES.into_iter().find(|scheme| before.ends_with(scheme))?;
    let is_end = |(at, c): &(usize, char)| {
        is_blank(*c) || (*c == '<' && placeholder(&behind[*at..]).is_some())
    };
    let length = behind.char_indices().find(is_end).map_or(behind.len(), |(at, _)| at);
    (length > 0).then_some((colon - scheme.len(), colon + "://".len() + length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(pieces(text).map(|range| &text[range]).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn placeholders_and_addresses_hold_no_words() {
        check("write to <EMAIL> or <CREDIT_CARD>", &["write to ", " or ", ""]);
        check("see https://example.com/A?b=c, then", &["see ", " then"]);
        check("(http://a)", &["(", ""]);
        check("https://a.example/<EMAIL>/b", &["", "", "/b"]);
    }

    #[test]
    fn other_brackets_and_colons_are_text() {
        for text in ["a < b", "Vec<T>", "<T", "<Email>", "a: b", "http:// a", "ftp://a", "<>"] {
            let whole: String = pieces(text).map(|range| &text[range]).collect();
            assert_eq!(whole, if text == "Vec<T>" { "Vec" } else { text });
        }
    }

    proptest! {
        #[test]
        fn pieces_are_parts_of_the_text_in_order(text in "(.|<A>|https?://|:|<){0,40}") {
            let mut from = 0;
            for piece in pieces(&text) {
                prop_assert!(from <= piece.start && text.get(piece.clone()).is_some());
                from = piece.end;
            }
        }
    }
}
