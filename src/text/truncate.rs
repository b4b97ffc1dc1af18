//! Truncates text without splitting a grapheme, a placeholder or, if there is room, a word.

use unicode_segmentation::UnicodeSegmentation;

/// Maximum length of a redaction placeholder, in characters.
const PLACEHOLDER_CHARS_MAX: usize = 24;

/// The first `chars` characters of `text`, or all of it.
pub(crate) fn chars(text: &str, chars: usize) -> &str {
    let end = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

/// At most `bytes` bytes of `text`, without splitting a character.
pub(crate) fn bytes(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// At most `chars_max` characters of `text`, without splitting a grapheme or a placeholder such as
/// `<EMAIL>`.
pub(crate) fn letters(text: &str, chars_max: usize) -> &str {
    let head = chars(text, chars_max);
    if head.len() == text.len() {
        return text;
    }
    if let Some(open) = head.rfind('<')
        && !head[open..].contains('>')
        && head[open..].chars().count() < PLACEHOLDER_CHARS_MAX
        && head[open + 1..].chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '0'..='9'))
    {
        return &head[..open];
    }
    let starts = text.grapheme_indices(true).map(|(at, _)| at);
    let end = starts.take_while(|at| *at <= head.len()).last().unwrap_or_default();
    &text[..end]
}

/// Whole words within the first `chars_max` characters of `text`; a part of a longer first word.
pub(crate) fn words_within(text: &str, chars_max: usize) -> &str {
    let head = chars(text, chars_max);
    if head.len() == text.len() {
        return text;
    }
    head.rsplit_once(char::is_whitespace).map_or(head, |(words, _)| words).trim_end()
}

/// Ends of clauses.
const CLAUSE_ENDS: [&str; 4] = ["; ", ", ", " (", " – "];

/// `text`, or its longest head of whole clauses and parentheses within `chars_max` characters; `None` if that is less
/// than half of them, which would say little.
pub(crate) fn clauses_within(text: &str, chars_max: usize) -> Option<&str> {
    let head = chars(text, chars_max);
    if head.len() == text.len() {
        return Some(text);
    }
    let is_whole = |head: &&str| head.matches('(').count() == head.matches(')').count();
    let ends = CLAUSE_ENDS.iter().flat_map(|end| text.match_indices(end)).map(|(at, _)| at);
    let heads = ends.filter(|at| *at <= head.len()).filter_map(|at| text.get(..at));
    let longest = heads.filter(is_whole).max_by_key(|head| head.len())?;
    (chars_max <= longest.chars().count() * 2).then_some(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_with_a_whole_clause() {
        let text = "Quiet hours are 23 to 6; alarms (red, loud) come through";
        assert_eq!(clauses_within(text, 30), Some("Quiet hours are 23 to 6"));
        assert_eq!(clauses_within(text, 38), Some("Quiet hours are 23 to 6; alarms"));
        assert_eq!(clauses_within(text, 23), Some("Quiet hours are 23 to 6"));
        assert_eq!(clauses_within(text, 22), None);
        assert_eq!(clauses_within(text, 99), Some(text));
        assert_eq!(clauses_within("No, it is a very long sentence", 20), None);
    }

    #[test]
    fn no_letter_and_no_placeholder_is_cut_in_two() {
        assert_eq!(letters("s\u{327}s\u{327}s\u{327}", 3), "s\u{327}");
        assert_eq!(letters("see <EMAIL> now", 7), "see ");
        assert_eq!(letters("a < b and c", 5), "a < b");
        assert_eq!(letters("short", 5), "short");
        assert_eq!((chars("añb", 2), bytes("añb", 2)), ("añ", "a"));
    }

    #[test]
    fn words_are_kept_whole_where_one_fits() {
        assert_eq!(words_within("one two three", 9), "one two");
        assert_eq!(words_within("abcdefgh", 4), "abcd");
        assert_eq!(words_within("one two", 7), "one two");
    }
}
