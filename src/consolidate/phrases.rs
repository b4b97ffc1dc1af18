//! Words that decide how two statements relate: words of change, words that turn a statement round, and words that name
//! a thing exactly. English, German, Turkish, Spanish, French, Japanese, Chinese.

use crate::text::negation::NEGATIONS;
use crate::text::tokens::hash;
use aho_corasick::AhoCorasick;
use std::collections::HashSet;
use std::sync::LazyLock;

const CHANGES: &str = "instead|after all|no longer|not any more|not anymore|switch|switched|switching|\
     changed my mind|change my mind|changed our mind|on second thought|scratch that|go back to|\
     went back to|revert|reverted|replace|replaces|replaced|drop|dropped|no,|no:|from now on|\
     statt|stattdessen|anstatt|anstelle|doch lieber|lieber doch|doch nicht|nicht mehr|\
     umgestiegen|ersetzt|ersetzen|zurück zu|ab jetzt|nein,|yerine|artık|vazgeçtik|vazgeçtim|\
     fikrimi değiştirdim|hayır,|bundan sonra|en lugar de|en vez de|ya no|cambio de idea|\
     cambié de idea|a partir de ahora|volvamos a|plutôt|au lieu de|finalement|ne plus|\
     changé d'avis|désormais|non,|やっぱり|やはり|ではなく|じゃなくて|代わりに|に変更|に戻|やめて|改用|还是用|換成|换成|不再";

/// Words that set the bounds of a statement, folded: two statements that differ in one of them, or in one of [`NEGATIONS`], do
/// not say the same, however many others they share.
const TURNS: &str = "avoid|stop|disable|before|after|only|until|unless|except|if|off|out|down|under|below|over|\
     above|less|instead|all|every|any|nur|vor|nach|bis|aus|sadece|önce|sonra|solo|sólo|antes|\
     después|ne|seulement|avant|après";

const TURNS_INSIDE: &[&str] = &["だけ", "只", "前に", "後に"];

const NOES_INSIDE: &[&str] = &["ない", "ません", "禁止", "不", "别", "勿", "没"];

static TURN_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| TURNS.split('|').chain(NEGATIONS.iter().copied()).collect());
static CHANGED: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(CHANGES.split('|')).ok());

pub(super) fn says_change(folded: &str) -> bool {
    let Some(finder) = CHANGED.as_ref() else { return false };
    finder.find_overlapping_iter(folded).any(|found| {
        let word = folded.get(found.range()).unwrap_or_default();
        let begins = word.chars().next().is_some_and(spelled);
        let ends = word.chars().next_back().is_some_and(spelled);
        let before = folded.get(..found.start()).and_then(|text| text.chars().next_back());
        let after = folded.get(found.end()..).and_then(|text| text.chars().next());
        let glued =
            |at_end: bool, next: Option<char>| at_end && next.is_some_and(char::is_alphanumeric);
        !(glued(begins, before) || glued(ends, after))
    })
}

/// A letter of a script that puts blanks between words.
fn spelled(letter: char) -> bool {
    letter.is_alphabetic() && u32::from(letter) < 0x0E00
}

/// The words of `folded` that must not differ between equal statements: turning words, and exact names (numbers,
/// versions, paths, identifiers). Hashes, sorted, with repetitions.
pub(super) fn hard_words(folded: &str) -> Vec<u64> {
    let mut hard = Vec::new();
    for word in folded.split(' ').map(bare) {
        if is_exact(word) || TURN_WORDS.contains(word) {
            hard.push(hash(word));
        }
    }
    if !folded.is_ascii() {
        let inside = TURNS_INSIDE.iter().chain(NOES_INSIDE);
        let inside = inside.filter(|word| folded.contains(**word));
        hard.extend(inside.map(|word| hash(word)));
    }
    hard.sort_unstable();
    hard
}

/// The words of `folded` that name a thing exactly. Hashes, in their order.
pub(super) fn exact_words(folded: &str) -> impl Iterator<Item = u64> + '_ {
    folded.split(' ').map(bare).filter(|word| is_exact(word)).map(hash)
}

pub(super) fn says_no(folded: &str) -> bool {
    let inside = || NOES_INSIDE.iter().any(|word| folded.contains(*word));
    folded.split(' ').map(bare).any(|word| NEGATIONS.contains(word))
        || (!folded.is_ascii() && inside())
}

/// `folded` without the words that name a thing exactly.
pub(super) fn without_exact(folded: &str) -> String {
    let words: Vec<&str> = folded.split(' ').filter(|word| !is_exact(bare(word))).collect();
    words.join(" ")
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|letter: char| !letter.is_alphanumeric())
}

fn is_exact(word: &str) -> bool {
    let inner = |letter: char| matches!(letter, '_' | '/' | '\\' | '.' | ':' | '@' | '=' | '<');
    word.chars().any(|letter| letter.is_numeric() || inner(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokens::folded;

    #[test]
    fn change_is_heard_in_whole_words_only() {
        for text in [
            "No, take Postgres after all",
            "Wir nehmen doch lieber SQLite",
            "Redis YERİNE Postgres kullanalım",
            "mejor SQLite en vez de Redis",
            "On prend plutôt SQLite",
            "やっぱりPostgresにする",
        ] {
            assert!(says_change(&folded(text)), "{text}");
        }
        for text in ["Take Postgres", "the raindrops fell", "Stattliche Zahlen", "a switchboard"] {
            assert!(!says_change(&folded(text)), "{text}");
        }
    }

    #[test]
    fn numbers_paths_and_negations_are_hard() {
        let hard = |text: &str| hard_words(&folded(text));
        assert_ne!(hard("use port 5432"), hard("use port 5433"));
        assert_ne!(hard("Push to main."), hard("Never push to main."));
        assert_ne!(hard("看 src/a.rs"), hard("看 src/b.rs"));
        assert_ne!(hard("テストを消す"), hard("テストを消さない"));
        assert_eq!(hard("Add tests, please"), hard("add Tests"));
    }
}
