//! Words of other languages for English ones, so that an English claim can be compared with what was said in another
//! language. A file for each language, a headword a line: `bar: takt takte takten`.

use super::stems::{english_stem, foreign, foreign_stem, lowered};
use super::tokens::hash;
use foldhash::HashMap;
use std::sync::LazyLock;

/// Words of a language by the stem of their English headword.
pub(crate) struct Lexicon {
    words: HashMap<String, &'static str>,
    /// Index of the language.
    language: usize,
}

/// Lexicons in the order of languages in `stems`.
static LEXICONS: [LazyLock<Lexicon>; 7] = [
    LazyLock::new(|| Lexicon::parse(include_str!("lexicon/de.txt"), 0)),
    LazyLock::new(|| Lexicon::parse(include_str!("lexicon/fr.txt"), 1)),
    LazyLock::new(|| Lexicon::parse(include_str!("lexicon/es.txt"), 2)),
    LazyLock::new(|| Lexicon::parse(include_str!("lexicon/it.txt"), 3)),
    LazyLock::new(|| Lexicon::parse(include_str!("lexicon/pt.txt"), 4)),
    LazyLock::new(|| Lexicon::parse(include_str!("lexicon/nl.txt"), 5)),
    LazyLock::new(|| Lexicon::parse(include_str!("lexicon/tr.txt"), 6)),
];

impl Lexicon {
    fn parse(text: &'static str, language: usize) -> Lexicon {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        let words = lines.map(|(head, words)| (english_stem(head), words)).collect();
        Lexicon { words, language }
    }

    /// The lexicon of the language that most function words of `text` are of; `None` for English and unknown ones.
    pub(crate) fn of(text: &str) -> Option<&'static Lexicon> {
        LEXICONS.get(foreign(text)?).map(|it| &**it)
    }

    /// Keys of the words for a lower-case English word in any form.
    pub(crate) fn keys(&self, english: &str) -> impl Iterator<Item = u64> {
        let words = self.words.get(&english_stem(english));
        words.into_iter().flat_map(|words| words.split(' ')).map(|word| self.key(word))
    }

    /// Key of a word of the language in any form.
    pub(crate) fn key(&self, word: &str) -> u64 {
        hash(&foreign_stem(&lowered(word), self.language))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_one_headword_and_its_words() {
        let files = [
            include_str!("lexicon/de.txt"),
            include_str!("lexicon/fr.txt"),
            include_str!("lexicon/es.txt"),
            include_str!("lexicon/it.txt"),
            include_str!("lexicon/pt.txt"),
            include_str!("lexicon/nl.txt"),
            include_str!("lexicon/tr.txt"),
        ];
        for file in files {
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
