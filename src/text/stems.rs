//! Stems of words in several languages, and the language of a text.

use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Number of first letters that serve as the stem in languages with unknown endings.
const BEGINNING_LETTERS: usize = 5;

/// English stop words, sorted. Claims are mostly in English; words of other languages are weighted
/// by their rarity instead.
const STOP: &[&str] = &[
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because",
    "been", "before", "but", "by", "can", "could", "did", "do", "does", "each", "for", "from",
    "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "instead", "into", "is",
    "it", "its", "just", "let", "may", "more", "most", "no", "not", "now", "of", "on", "one",
    "only", "or", "other", "our", "out", "over", "per", "same", "she", "should", "so", "some",
    "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "to", "too", "under", "up", "us", "use", "used", "user", "using", "via", "was", "we",
    "were", "what", "when", "where", "which", "while", "who", "will", "with", "without", "would",
    "you", "your",
];

/// Number of stop words that begin with an earlier letter, for each letter.
const STOP_STARTS: [usize; 27] = stop_starts();

const fn stop_starts() -> [usize; 27] {
    let (mut starts, mut at) = ([0; 27], 0);
    while at < STOP.len() {
        let mut behind = (STOP[at].as_bytes()[0] - b'a') as usize + 1;
        while behind < starts.len() {
            starts[behind] += 1;
            behind += 1;
        }
        at += 1;
    }
    starts
}

/// True for a folded English stop word.
pub(super) fn is_stop_word(folded: &str) -> bool {
    let letter = match folded.as_bytes().first() {
        Some(letter @ b'a'..=b'z') => usize::from(letter - b'a'),
        _ => return false,
    };
    STOP[STOP_STARTS[letter]..STOP_STARTS[letter + 1]].contains(&folded)
}

/// Length of the longest function word, in bytes.
const FUNCTION_BYTES_MAX: usize = 8;

/// A language with known endings.
struct Language {
    algorithm: Algorithm,
    /// Function words, which are stop words too. Those of English are [`STOP`].
    words: &'static str,
}

/// Supported languages. Of equal counts the last one wins: English.
const LANGUAGES: [Language; 7] = [
    Language {
        algorithm: Algorithm::German,
        words: "aber als am auch auf aus bei bin bis da das dass dem den der des die durch ein eine einem einen einer \
            es für hat haben ich ihr im in ist kann man mit nach nicht noch nur oder sein sich sie sind so über um und \
            uns von vor war was wenn wer wie wir wird wo wurde zu zum zur",
    },
    Language {
        algorithm: Algorithm::French,
        words: "au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur mais ne nous on ou où \
            par pas plus pour qu que qui sa se ses son sont sur un une vous était",
    },
    Language {
        algorithm: Algorithm::Spanish,
        words: "a al como con de del el ella en es esta este fue ha hay la las lo los me más no nos o para pero por \
            que qué se ser si sin sobre son su sus también un una uno y ya",
    },
    Language {
        algorithm: Algorithm::Italian,
        words: "a al alla anche c che chi come con da dal dei del della delle di e è ed gli ha hanno i il in io la le lo \
            ma nel nella noi non o per più quando quello questo se si sono su sul un una",
    },
    Language {
        algorithm: Algorithm::Portuguese,
        words: "a ao aos as com como da das de do dos e é ela ele em era esta este eu foi mais mas na não nas no nos o os \
            ou para pela pelo por que quem se sem ser seu sua são também um uma",
    },
    Language {
        algorithm: Algorithm::Dutch,
        words: "aan al als bij dan dat de deze die dit door een en er geen had heeft het hij hoe ik in is je kan maar \
            met mijn na naar niet nog of om ook op over te tot uit van voor was wat we wel werd wij worden zijn zo",
    },
    Language { algorithm: Algorithm::English, words: "" },
];

/// Languages of each function word, as a bit set.
static FUNCTION_WORDS: LazyLock<HashMap<&'static str, u8>> = LazyLock::new(|| {
    let mut found: HashMap<&str, u8> = HashMap::new();
    for (at, language) in LANGUAGES.iter().enumerate() {
        let is_english = language.algorithm == Algorithm::English;
        let english = STOP.iter().copied().filter(|_| is_english);
        for word in language.words.split_ascii_whitespace().chain(english) {
            *found.entry(word).or_default() |= 1 << at;
        }
    }
    found
});

/// `word` in lower case, without a copy if it already is.
pub(crate) fn lowered(word: &str) -> Cow<'_, str> {
    match word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(word.to_lowercase()),
    }
}

/// Languages that have a folded function word, as a bit set.
fn languages_with(folded: &str) -> u8 {
    let may_be = folded.len() <= FUNCTION_BYTES_MAX;
    may_be.then(|| FUNCTION_WORDS.get(folded).copied()).flatten().unwrap_or(0)
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
            Some(language) => Stemmer::create(language.algorithm).stem(folded).into_owned(),
            None => folded.chars().take(BEGINNING_LETTERS).collect(),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stop_word_is_found_and_nothing_else() {
        assert!(STOP.iter().all(|word| is_stop_word(word)));
        assert!(["", "thee", "zebra", "queue", "über", "9"].iter().all(|word| !is_stop_word(word)));
        let longest = FUNCTION_WORDS.keys().map(|word| word.len()).max();
        assert_eq!(longest, Some(FUNCTION_BYTES_MAX));
    }
}
