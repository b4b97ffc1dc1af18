//! Word lists of the rules, from `words.txt`.

use std::collections::HashSet;
use std::sync::LazyLock;

type Words = LazyLock<HashSet<&'static str>>;

/// Words that code and prose put there.
pub(super) static PLAIN: Words = LazyLock::new(|| list("plain"));
/// Words that may follow the word that names a secret.
pub(super) static QUALIFIERS: Words = LazyLock::new(|| list("qualifiers"));
/// Purposes of secret keys.
pub(super) static KEYS_OF: Words = LazyLock::new(|| list("keys-of"));
/// Keys that are no secret.
pub(super) static KEYS_NOT: Words = LazyLock::new(|| list("keys-not"));
/// Words that may stand between a name and the mark behind it.
pub(super) static LINKS: Words = LazyLock::new(|| list("links"));
/// Links that need no mark.
pub(super) static VERBS: Words = LazyLock::new(|| list("verbs"));
/// Names behind which a blank is enough.
pub(super) static SET: Words = LazyLock::new(|| list("set"));
/// Tokens of texts, pages and tests rather than of logins.
pub(super) static TOKENS_OF: Words = LazyLock::new(|| list("tokens-of"));
/// Words that a schema or a form says about a secret.
pub(super) static ABOUT: Words = LazyLock::new(|| list("about"));
/// Parts of names that code gives to what holds a secret.
pub(super) static HOLDERS: Words = LazyLock::new(|| list("holders"));
/// Types and names of methods that have digits in them.
pub(super) static TYPES: Words = LazyLock::new(|| list("types"));
/// Words that make several words a sentence.
pub(super) static GRAMMAR: Words = LazyLock::new(|| list("grammar"));

/// The sections of a table: a name in brackets, then lines.
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

/// The lines of a section of `words.txt`.
pub(super) fn lines(section: &str) -> Vec<&'static str> {
    sections(include_str!("words.txt"))
        .find(|(name, _)| *name == section)
        .map_or_else(Vec::new, |it| it.1)
}

/// The words of a section that may have blanks in them.
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
