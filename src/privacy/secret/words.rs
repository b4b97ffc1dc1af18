//! Word lists of the rules, from `words.txt`.

use std::collections::HashSet;
use std::sync::LazyLock;

type Words = LazyLock<HashSet<&'static str>>;

/// Words that code and prose use as values of such names.
pub(super) static PLAIN: Words = LazyLock::new(|| list("plain"));
/// Words that may follow the noun in a secret's name.
pub(super) static QUALIFIERS: Words = LazyLock::new(|| list("qualifiers"));
/// Purposes of secret keys.
pub(super) static KEYS_OF: Words = LazyLock::new(|| list("keys-of"));
/// Keys that are not secret.
pub(super) static KEYS_NOT: Words = LazyLock::new(|| list("keys-not"));
/// Words that may occur between a name and its separator.
pub(super) static LINKS: Words = LazyLock::new(|| list("links"));
/// Link words that need no separator.
pub(super) static VERBS: Words = LazyLock::new(|| list("verbs"));
/// Names that a blank separates from the value.
pub(super) static SET: Words = LazyLock::new(|| list("set"));
/// Tokens of texts, pages and tests, not credentials.
pub(super) static TOKENS_OF: Words = LazyLock::new(|| list("tokens-of"));
/// Words that schemas and forms use to describe a secret.
pub(super) static ABOUT: Words = LazyLock::new(|| list("about"));
/// Parts of variable names that hold a secret.
pub(super) static HOLDERS: Words = LazyLock::new(|| list("holders"));
/// Types and method names that contain digits.
pub(super) static TYPES: Words = LazyLock::new(|| list("types"));
/// Function words that mark several words as a sentence.
pub(super) static GRAMMAR: Words = LazyLock::new(|| list("grammar"));

/// Parses a table into sections: a name in brackets, then lines.
pub(super) fn sections(
    table: &'static str,
) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let mut lines =
        table.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).peekable();
    std::iter::from_fn(move || {
        let name = lines.next()?.trim_matches(['[', ']']);
        Some((name, std::iter::from_fn(|| lines.next_if(|line| !line.starts_with('['))).collect()))
    })
}

pub(super) fn lines(section: &str) -> Vec<&'static str> {
    sections(include_str!("words.txt"))
        .find(|(name, _)| *name == section)
        .map_or_else(Vec::new, |it| it.1)
}

/// Phrases of a section, which may contain blanks.
pub(super) fn phrases(section: &str) -> Vec<&'static str> {
    lines(section).into_iter().flat_map(|line| line.split(", ")).collect()
}

fn list(section: &str) -> HashSet<&'static str> {
    lines(section).into_iter().flat_map(str::split_whitespace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_its_words() {
        let lists = [
            &PLAIN, &QUALIFIERS, &KEYS_OF, &KEYS_NOT, &TOKENS_OF, &ABOUT, &HOLDERS, &TYPES,
            &GRAMMAR, &LINKS, &VERBS, &SET,
        ];
        assert!(lists.iter().all(|list| list.len() > 5));
        assert!(lines("commands").len() > 10 && lines("names").len() > 5);
    }
}
