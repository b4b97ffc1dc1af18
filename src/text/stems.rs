//! Words of several languages: their stems, function words and negations, and the language of a text.

use foldhash::{HashMap, HashSet};
use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Number of first letters that serve as the stem in languages with unknown endings.
const BEGINNING_LETTERS: usize = 5;

/// Length of the longest function word, in bytes.
pub(crate) const FUNCTION_BYTES_MAX: usize = 8;

/// Languages with known endings, in the order of their bits in [`FUNCTION_WORDS`]. Of equal counts the
/// last one wins: English.
const LANGUAGES: [Algorithm; 7] = [
    Algorithm::German,
    Algorithm::French,
    Algorithm::Spanish,
    Algorithm::Italian,
    Algorithm::Portuguese,
    Algorithm::Dutch,
    Algorithm::English,
];
/// Bit of English, in which most claims are: its function words are the stop words of all texts.
/// Words of other languages are weighted by their rarity instead.
const ENGLISH: u8 = 1 << (LANGUAGES.len() - 1);

/// Languages of each function word, as a bit set. The file has a language a line, named first.
static FUNCTION_WORDS: LazyLock<HashMap<&'static str, u8>> = LazyLock::new(|| {
    let mut found: HashMap<&str, u8> = HashMap::default();
    for (at, line) in include_str!("function_words.txt").lines().enumerate() {
        for word in line.split(' ').skip(1) {
            *found.entry(word).or_default() |= 1 << at;
        }
    }
    found
});

/// True for a folded English stop word.
pub(super) fn is_stop_word(folded: &str) -> bool {
    languages_with(folded) & ENGLISH != 0
}

/// `word` in lower case, without a copy if it already is.
pub(crate) fn lowered(word: &str) -> Cow<'_, str> {
    match word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(word.to_lowercase()),
    }
}

/// Languages that have a folded function word, as a bit set.
fn languages_with(folded: &str) -> u8 {
    let may_be = folded.len() <= FUNCTION_BYTES_MAX;
    may_be.then(|| FUNCTION_WORDS.get(folded).copied()).flatten().unwrap_or(0)
}

/// True for a folded function word of English alone, false for one of other languages only.
pub(crate) fn is_english(folded: &str) -> Option<bool> {
    match languages_with(folded) {
        0 => None,
        ENGLISH => Some(true),
        languages => (languages & ENGLISH == 0).then_some(false),
    }
}

/// Endings and function words of one language.
#[derive(Clone, Copy)]
pub(super) struct Stems {
    at: usize,
    is_known: bool,
}

impl Stems {
    /// Detects the language with the most function words in `text`.
    pub(super) fn of(text: &str) -> Stems {
        let mut counts = [0_usize; LANGUAGES.len()];
        for word in text.split(|letter: char| !letter.is_alphanumeric()) {
            if FUNCTION_BYTES_MAX < word.len() {
                continue;
            }
            let bits = languages_with(&lowered(word));
            if bits > 0 {
                let each = counts.iter_mut().enumerate();
                each.for_each(|(at, count)| *count += usize::from(bits >> at & 1));
            }
        }
        let best = counts.iter().enumerate().max_by_key(|(_, count)| **count);
        best.map_or(Stems { at: 0, is_known: false }, |(at, count)| Stems {
            at,
            is_known: *count > 0,
        })
    }

    pub(super) fn is_function_word(self, folded: &str) -> bool {
        self.is_known && languages_with(folded) >> self.at & 1 == 1
    }

    /// Index of the language; past the last one if it is unknown and the word not ASCII.
    pub(super) fn language(self, folded: &str) -> usize {
        if self.is_known || folded.is_ascii() { self.at } else { LANGUAGES.len() }
    }

    /// Stem of a folded word; its first letters if the language is unknown and the word not ASCII.
    pub(super) fn stem(self, folded: &str) -> String {
        match LANGUAGES.get(self.language(folded)) {
            Some(language) => Stemmer::create(*language).stem(folded).into_owned(),
            None => folded.chars().take(BEGINNING_LETTERS).collect(),
        }
    }
}

/// Function words of Turkish, and how many of them make a text Turkish.
const TURKISH: [&str; 8] = ["ve", "bir", "bu", "için", "değil", "ile", "ama", "çok"];
const TURKISH_MIN: usize = 3;

/// Language of `text` by its function words; `None` for English and unknown ones.
pub(crate) fn foreign(text: &str) -> Option<Algorithm> {
    let words = text.split(|letter: char| !letter.is_alphabetic());
    let turkish = words.filter(|word| TURKISH.contains(&&*lowered(word))).count();
    if turkish >= TURKISH_MIN {
        return Some(Algorithm::Turkish);
    }
    let found = Stems::of(text);
    let language = LANGUAGES.get(found.at).copied().filter(|_| found.is_known);
    language.filter(|it| *it != Algorithm::English)
}

/// Distinct stems of a folded word in all languages: a query is too short to tell its language.
pub(super) fn all_stems(folded: &str) -> Vec<String> {
    let of_languages = (0..LANGUAGES.len()).map(|at| Stems { at, is_known: true });
    let unknown = Stems { at: LANGUAGES.len(), is_known: false };
    let each = of_languages.chain((!folded.is_ascii()).then_some(unknown));
    let mut stems: Vec<String> = each.map(|it| it.stem(folded)).collect();
    stems.sort_unstable();
    stems.dedup();
    stems
}

/// Length of the longest negation, in bytes.
const NEGATION_BYTES_MAX: usize = 9;

/// Folded negations. Every comparison of statements uses these.
pub(crate) static NEGATIONS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("negations.txt").split_whitespace().collect());

/// True for a folded negation.
pub(crate) fn is_no(word: &str) -> bool {
    word.len() <= NEGATION_BYTES_MAX && NEGATIONS.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stop_word_is_found_and_nothing_else() {
        let english = include_str!("function_words.txt").lines().last().unwrap();
        let words = english.strip_prefix("English ").unwrap();
        assert!(words.split(' ').all(is_stop_word));
        assert!(["", "thee", "zebra", "queue", "über", "9"].iter().all(|word| !is_stop_word(word)));
        let longest = FUNCTION_WORDS.keys().map(|word| word.len()).max();
        assert_eq!(longest, Some(FUNCTION_BYTES_MAX));
    }

    #[test]
    fn no_negation_is_longer_than_is_looked_for() {
        let longest = NEGATIONS.iter().map(|word| word.len()).max();
        assert_eq!(longest, Some(NEGATION_BYTES_MAX));
        assert!(is_no("shouldn't") && !is_no("shoulders"));
    }
}
