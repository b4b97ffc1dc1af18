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

fn list(section: &str) -> HashSet<&'static str> {
    let lines = include_str!("words.txt").lines().filter(|line| !line.starts_with('#'));
    let header = format!("[{section}]");
    let body = lines.skip_while(|line| **line != *header).skip(1);
    body.take_while(|line| !line.starts_with('[')).flat_map(str::split_whitespace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_its_words() {
        let lists = [&PLAIN, &QUALIFIERS, &KEYS_OF, &TOKENS_OF, &ABOUT, &HOLDERS, &TYPES, &GRAMMAR];
        let sizes = lists.map(|list| list.len());
        assert_eq!(sizes, [218, 34, 31, 40, 34, 36, 44, 30]);
    }
}
