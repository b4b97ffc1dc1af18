//! Words of other languages for English ones, so that an English claim can be compared with what was said in another
//! language. A file for each language, a headword a line: `bar: takt takte takten`.

use super::stems::{foreign, lowered};
use super::tokens::hash;
use foldhash::HashMap;
use rust_stemmers::{Algorithm, Stemmer};
use std::sync::OnceLock;

/// Words of a language by the stem of their English headword.
pub(crate) struct Lexicon {
    words: HashMap<String, Vec<&'static str>>,
    language: Algorithm,
}

/// Files of the languages with a lexicon.
static FILES: [(Algorithm, &str); 7] = [
    (Algorithm::German, include_str!("lexicon/de.txt")),
    (Algorithm::French, include_str!("lexicon/fr.txt")),
    (Algorithm::Spanish, include_str!("lexicon/es.txt")),
    (Algorithm::Italian, include_str!("lexicon/it.txt")),
    (Algorithm::Portuguese, include_str!("lexicon/pt.txt")),
    (Algorithm::Dutch, include_str!("lexicon/nl.txt")),
    (Algorithm::Turkish, include_str!("lexicon/tr.txt")),
];
/// Lexicons of [`FILES`], read on first use.
static LEXICONS: [OnceLock<Lexicon>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];

/// Stem of a lower-case English word.
fn english_stem(word: &str) -> String {
    Stemmer::create(Algorithm::English).stem(word).into_owned()
}

impl Lexicon {
    fn parse(text: &'static str, language: Algorithm) -> Lexicon {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        let mut words: HashMap<String, Vec<&str>> = HashMap::default();
        // Several headwords may have one stem: `position` and `positive`.
        lines
            .for_each(|(head, of_head)| words.entry(english_stem(head)).or_default().push(of_head));
        Lexicon { words, language }
    }

    /// The lexicon of the language that most function words of `text` are of; `None` for English and unknown ones.
    pub(crate) fn of(text: &str) -> Option<&'static Lexicon> {
        let language = foreign(text)?;
        let mut all = FILES.iter().zip(&LEXICONS);
        let ((_, file), lexicon) = all.find(|((it, _), _)| *it == language)?;
        Some(lexicon.get_or_init(|| Lexicon::parse(file, language)))
    }

    /// Keys of the words for a lower-case English word in any form.
    pub(crate) fn keys(&self, english: &str) -> impl Iterator<Item = u64> {
        let words = self.words.get(&english_stem(english));
        words.into_iter().flatten().flat_map(|words| words.split(' ')).map(|word| self.key(word))
    }

    /// Key of a word of the language in any form.
    pub(crate) fn key(&self, word: &str) -> u64 {
        hash(&Stemmer::create(self.language).stem(&lowered(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headwords_with_one_stem_keep_all_their_words() {
        let text = "position: stellung\npositive: positiv\n";
        let lexicon = Lexicon::parse(text, Algorithm::German);
        let keys: Vec<u64> = lexicon.keys("positions").collect();
        assert!(["stellung", "positiv"].iter().all(|word| keys.contains(&lexicon.key(word))));
    }

    #[test]
    fn every_line_has_one_headword_and_its_words() {
        for (_, file) in FILES {
            let mut last = "";
            for line in file.lines() {
                let (head, words) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
                assert!(head.bytes().all(|it| it.is_ascii_lowercase()), "{line}");
                assert!(last < head, "{last} before {head}");
                let is_word = |word: &str| word.chars().all(char::is_alphabetic);
                assert!(words.split(' ').all(|word| !word.is_empty() && is_word(word)), "{line}");
                assert!(words.split(' ').all(|word| word != head), "{line}");
                last = head;
            }
        }
    }

    #[test]
    fn words_are_found_by_any_form_in_the_language_of_the_text() {
        let has = |text: &str, english: &str, other: &str| {
            Lexicon::of(text).is_some_and(|it| it.keys(english).any(|key| key == it.key(other)))
        };
        let german = "das ist nicht so, wie wir es wollten";
        assert!(has(german, "bars", "Takten") && has(german, "sleeping", "schläft"));
        assert!(!has(german, "files", "fichier"));
        assert!(has("ce n'est pas ce que nous voulions", "files", "fichiers"));
        assert!(has("bu böyle değil, ama bir gün için", "file", "dosyalar"));
        assert!(Lexicon::of("this is not what we wanted").is_none());
    }
}
