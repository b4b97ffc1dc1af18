//! A text folded for comparing: lower case, runs of blanks as one, quotes and dashes of one kind,
//! marks of Markdown left out; with the way back to the bytes of the original.

use std::ops::Range;

/// Folded text and where each of its bytes came from.
#[derive(Debug)]
pub(super) struct Folded {
    text: String,
    /// For each byte of `text`, the byte of the original that it came from.
    from: Vec<u32>,
}

impl Folded {
    pub(super) fn new(original: &str) -> Folded {
        let mut text = String::with_capacity(original.len());
        let mut from: Vec<u32> = Vec::with_capacity(original.len());
        for (at, letter) in original.char_indices() {
            let before = text.len();
            match fold(letter) {
                Kind::Blank => {
                    if !text.is_empty() && !text.ends_with(' ') {
                        text.push(' ');
                    }
                }
                Kind::Nothing => {}
                Kind::As(other) => text.push(other),
                Kind::Letter if letter.is_ascii() => text.push(letter.to_ascii_lowercase()),
                Kind::Letter => text.extend(letter.to_lowercase().filter(|l| *l != '\u{307}')),
            }
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            from.extend(std::iter::repeat_n(at, text.len() - before));
        }
        Folded { text, from }
    }

    /// The folded text.
    pub(super) fn as_str(&self) -> &str {
        self.text.trim_end()
    }

    /// Where `needle`, folded too, stands in the original: every place, in order.
    pub(super) fn find<'a>(&'a self, needle: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let found = memchr::memmem::find_iter(self.text.as_bytes(), needle.as_bytes());
        found.map(|start| self.original(start, start + needle.len()))
    }

    /// Whether `needle`, folded too, occurs; where it begins or ends with a letter or digit, only as
    /// whole words.
    pub(super) fn has_whole(&self, needle: &str) -> Option<Range<usize>> {
        self.has_apart(needle, char::is_alphanumeric)
    }

    /// Whether `needle`, a number, occurs as a whole one; a unit may follow at once.
    pub(super) fn has_number(&self, needle: &str) -> Option<Range<usize>> {
        self.has_apart(needle, |letter| letter.is_ascii_digit())
    }

    fn has_apart(&self, needle: &str, one: fn(char) -> bool) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let glued = |inside: Option<char>, outside: Option<char>| {
            inside.is_some_and(one) && outside.is_some_and(one)
        };
        let mut found = memchr::memmem::find_iter(bytes, needle.as_bytes());
        found.find_map(|start| {
            let end = start + needle.len();
            let before = self.text.get(..start)?.chars().next_back();
            let after = self.text.get(end..)?.chars().next();
            let whole =
                !glued(needle.chars().next(), before) && !glued(needle.chars().next_back(), after);
            whole.then(|| self.original(start, end))
        })
    }

    fn original(&self, start: usize, end: usize) -> Range<usize> {
        let at = |index: usize| self.from.get(index).map_or(usize::MAX, |at| *at as usize);
        let last = at(end.saturating_sub(1));
        // The byte after the last one may be far away, behind marks that were left out.
        at(start)..last.saturating_add(1)
    }
}

enum Kind {
    Letter,
    Blank,
    Nothing,
    As(char),
}

fn fold(letter: char) -> Kind {
    match letter {
        '‘' | '’' | '‚' | '′' => Kind::As('\''),
        '“' | '”' | '„' | '«' | '»' | '″' => Kind::As('"'),
        '‐' | '‑' | '‒' | '–' | '—' | '−' => Kind::As('-'),
        '`' | '*' | '\u{200b}' | '\u{feff}' | '\u{ad}' => Kind::Nothing,
        _ if letter.is_whitespace() => Kind::Blank,
        _ => Kind::Letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_leads_back_to_the_original() {
        let original = "We’ll  use **Postgres** –\nfor now";
        let folded = Folded::new(original);
        let needle = Folded::new("we'll use postgres - for");
        let found: Vec<_> = folded.find(needle.as_str()).collect();
        assert_eq!(&original[found[0].clone()], "We’ll  use **Postgres** –\nfor");
    }

    #[test]
    fn part_of_a_word_is_no_whole_word() {
        let folded = Folded::new("port 54321, a.rs");
        assert!(folded.has_whole("5432").is_none());
        assert!(folded.has_whole("54321").is_some() && folded.has_whole("a.rs").is_some());
    }
}
