//! Negations in several languages. Every comparison of statements uses these.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Negations, folded and separated by bars.
const WORDS: &str = "not|no|never|nothing|none|nobody|neither|nor|don't|doesn't|didn't|won't|can't|cannot|shouldn't|isn't|aren't|wasn't|weren't|\
     without|nicht|nichts|kein|keine|keinen|keinem|keiner|keines|nie|niemals|ohne|değil|yok|asla|olmadan|nunca|jamás|sin|pas|\
     jamais|sans|aucun|aucune|n'est|ningún|ninguno|ninguna|nessun|nessuna|нет|non|niet|geen|não|не";

/// Length of the longest negation, in bytes.
const BYTES_MAX: usize = 9;

/// Set of all negations.
pub(crate) static NEGATIONS: LazyLock<HashSet<&str>> = LazyLock::new(|| WORDS.split('|').collect());

/// True for a folded negation.
pub(crate) fn is_no(word: &str) -> bool {
    word.len() <= BYTES_MAX && NEGATIONS.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_longer_than_is_looked_for() {
        assert_eq!(WORDS.split('|').map(str::len).max(), Some(BYTES_MAX));
        assert!(is_no("shouldn't") && !is_no("shoulders"));
    }
}
