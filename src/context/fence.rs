//! The fence around the directory and around each part of a conversation. Its text never changes, so that prompt caches
//! hit. Brackets in the text inside that could pass for a fence are replaced.

use crate::memory_dir::joined;
use crate::privacy::Redacted;
pub(crate) use crate::text::own_output::{CLOSE, OPEN, PREAMBLE};
use std::borrow::Cow;

/// End of the opening tag, after the name.
pub(super) const OPENED: &str = "\">\n";

/// Names of our tags; annalist also reads people's private blocks.
const TAGS: [&str; 2] = ["memory", "private"];
/// Characters that look like the bracket of a tag.
const BRACKETS: [char; 3] = ['<', '\u{ff1c}', '\u{fe64}'];
/// Replacement for a bracket: one character, and none that the gate takes for the bracket of a tag.
const HARMLESS: &str = "(";

/// Removes invisible characters, which could tell a model what no person sees. Joiners of letters
/// and emoji stay.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    match text.contains(is_hidden) {
        true => Cow::Owned(text.chars().filter(|letter| !is_hidden(*letter)).collect()),
        false => Cow::Borrowed(text),
    }
}

/// True for controls, zero-width blanks, direction marks, tags, and selectors that select no emoji.
fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        letter if letter.is_ascii() => letter.is_ascii_control(),
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' => true,
        '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}' => true,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// True if a character inside a tag does not change which tag it is.
fn is_skipped(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(letter, '/' | '\\' | '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
        || ('\u{300}'..='\u{36f}').contains(&letter)
        || is_hidden(letter)
}

/// Replaces every bracket that could begin one of our tags. The length stays.
pub(super) fn harmless(text: &Redacted) -> Redacted {
    let places = brackets(text.as_str());
    if places.is_empty() {
        return text.clone();
    }
    let mut kept: Vec<Redacted> = Vec::new();
    let mut from = 0;
    for (at, length) in places {
        kept.push(text.cut(from..at));
        from = at + length;
    }
    kept.push(text.cut(from..text.len()));
    joined(&kept, HARMLESS)
}

/// Positions and byte lengths of those brackets. Letters of other scripts count as any letter,
/// since many look alike.
fn brackets(text: &str) -> Vec<(usize, usize)> {
    if !text.contains(BRACKETS) {
        return Vec::new();
    }
    let letters: Vec<(usize, char)> =
        text.char_indices().filter(|(_, letter)| !is_skipped(*letter)).collect();
    let is_letter = |(own, (_, letter)): (char, &(usize, char))| {
        letter.eq_ignore_ascii_case(&own) || (!letter.is_ascii() && letter.is_alphanumeric())
    };
    let begins = |rest: &[(usize, char)], tag: &str| {
        rest.len() >= tag.len() && tag.chars().zip(rest).all(is_letter)
    };
    let tags = letters.iter().enumerate().filter(|(at, (_, letter))| {
        let rest = letters.get(at + 1..).unwrap_or_default();
        BRACKETS.contains(letter) && TAGS.iter().any(|tag| begins(rest, tag))
    });
    tags.map(|(_, (at, letter))| (*at, letter.len_utf8())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Gate;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let text = Gate::new(&[]).redact(text);
        let once = harmless(&text);
        assert_eq!(once.as_str(), expected);
        assert_eq!(once.as_str().chars().count(), text.as_str().chars().count());
        assert_eq!(harmless(&once), once, "twice is once");
    }

    #[test]
    fn nothing_inside_can_be_taken_for_the_fence() {
        check("a</memory>b", "a(/memory>b");
        check("<Memory name=\"x\">", "(Memory name=\"x\">");
        check("< / mem\u{200d}ory >", "( / mem\u{200d}ory >");
        check("\u{ff1c}/memory\u{ff1e}", "(/memory\u{ff1e}");
        check("<\n/m\u{435}m\u{43e}ry>", "(\n/m\u{435}m\u{43e}ry>");
        check("<</memory>", "<(/memory>");
        check("write `<private>` here", "write `(private>` here");
    }

    #[test]
    fn other_brackets_stay() {
        for text in ["Vec<String>", "a < b", "<EMAIL>", "<!-- @tag: memory -->", "<mem", "a<m>y"] {
            check(text, text);
        }
    }

    #[test]
    fn what_nobody_sees_is_taken_out() {
        assert_eq!(visible("a\u{200b}b\u{e0041}\u{e007f}c\u{202e}\u{1b}[0m\r\n\td"), "abc[0m\n\td");
        let family = "👩\u{200d}👧 ❤\u{fe0f} می\u{200c}خواهم";
        assert_eq!(visible(family), family);
    }
}
