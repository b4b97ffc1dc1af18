//! Splits text into sentences and lines, which evidence is quoted by.

use super::EVIDENCE_BYTES_MAX;
use std::ops::Range;

/// Minimum length of a piece of a sentence that is too long, in bytes.
const PIECE_BYTES_MIN: usize = 80;

/// Sentence or line of an entry.
#[derive(Debug)]
pub(super) struct Sentence {
    /// Index of the part.
    pub(super) part: u32,
    /// Byte range in the slice's text.
    pub(super) span: Range<usize>,
    /// Number of words.
    pub(super) words: u32,
}

/// Byte ranges of the sentences and lines of `text` without the blanks around them. Ranges that are too long
/// to be quoted are divided.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut rest = 0..text.len();
    std::iter::from_fn(move || {
        let blank = text[rest.clone()].len() - text[rest.clone()].trim_start().len();
        rest.start += blank;
        let start = rest.start;
        if start == text.len() {
            return None;
        }
        let cut = text.floor_char_boundary(start + EVIDENCE_BYTES_MAX);
        let piece = &text[start..cut];
        let len = end(piece, cut == text.len()).unwrap_or_else(|| {
            let ends = ["; ", ", ", ": ", " "];
            let ends = ends.iter().filter_map(|it| piece.rfind(it).map(|at| at + it.len()));
            ends.filter(|at| *at > PIECE_BYTES_MIN).max().unwrap_or(piece.len())
        });
        rest.start = start + len;
        Some(start..start + piece[..len].trim_end().len())
    })
}

/// End of the first sentence or line of `text`, including its terminator. A full stop counts only before
/// whitespace and after neither a full stop nor a slash, unlike in `main.rs` and `./...`.
fn end(text: &str, is_last: bool) -> Option<usize> {
    let mut letters = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, letter)) = letters.next() {
        let ended = match letter {
            '\n' | '。' | '！' | '？' => true,
            '.' if matches!(before, '.' | '/') => false,
            '.' | '!' | '?' => letters.peek().is_some_and(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ended {
            return Some(at + letter.len_utf8());
        }
        before = letter;
    }
    is_last.then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_divided_at_sentences_lines_and_blanks() {
        let of = |text: &str| sentences(text).map(|it| text[it].to_owned()).collect::<Vec<_>>();
        assert_eq!(of(" Read main.rs. Is it  \n\nlong?"), ["Read main.rs.", "Is it", "long?"]);
        assert_eq!(of("go test ./... && ls . Fine."), ["go test ./... && ls .", "Fine."]);
        assert_eq!(of("长吗？很长。"), ["长吗？", "很长。"]);
        let long = "four words and more ".repeat(50);
        let pieces = of(&long);
        assert!(
            pieces
                .iter()
                .all(|it| it.len() <= EVIDENCE_BYTES_MAX && it.starts_with(char::is_alphabetic))
        );
        assert_eq!(pieces.join(" "), long.trim());
        assert_eq!(of(" \n"), Vec::<String>::new());
    }
}
