//! Words of other languages for English ones, so that an English claim can be compared with what was said in another
//! language. A file for each language, a headword a line: `bar: takt takte takten`.

use super::stems::{self, Foreign, english_stem};
use foldhash::HashMap;
use std::sync::LazyLock;

/// Words of a language by the stem of their English headword.
pub(crate) struct Lexicon(HashMap<String, &'static str>);

macro_rules! lexicons {
    ($($name:ident $file:literal)*) => {
        $(static $name: LazyLock<Lexicon> =
            LazyLock::new(|| Lexicon::parse(include_str!(concat!("lexicon/", $file, ".txt"))));)*
    };
}

lexicons! { GERMAN "de" FRENCH "fr" SPANISH "es" ITALIAN "it" PORTUGUESE "pt" DUTCH "nl" TURKISH "tr" }

impl Lexicon {
    fn parse(text: &'static str) -> Lexicon {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        Lexicon(lines.map(|(head, words)| (english_stem(head), words)).collect())
    }

    /// The lexicon of the language that most function words of `text` are of; `None` for English and unknown ones.
    pub(crate) fn of(text: &str) -> Option<&'static Lexicon> {
        Some(match stems::foreign(text)? {
            Foreign::German => &GERMAN,
            Foreign::French => &FRENCH,
            Foreign::Spanish => &SPANISH,
            Foreign::Italian => &ITALIAN,
            Foreign::Portuguese => &PORTUGUESE,
            Foreign::Dutch => &DUTCH,
            Foreign::Turkish => &TURKISH,
        })
    }

    /// Words for a lower-case English word in any form.
    pub(crate) fn words(&self, english: &str) -> impl Iterator<Item = &'static str> {
        self.0.get(&english_stem(english)).into_iter().flat_map(|words| words.split(' '))
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
    fn words_are_found_by_any_form_of_the_english_one_in_the_language_of_the_text() {
        let has = |text: &str, english: &str, other: &str| {
            let lexicon = Lexicon::of(text);
            lexicon.is_some_and(|it| it.words(english).any(|word| word == other))
        };
        let german = "das ist nicht so, wie wir es wollten";
        assert!(has(german, "bars", "takt") && has(german, "sleeping", "schläft"));
        assert!(!has(german, "files", "fichier"));
        assert!(has("ce n'est pas ce que nous voulions", "files", "fichier"));
        assert!(has("bu böyle değil, ama bir gün için", "file", "dosya"));
        assert!(Lexicon::of("this is not what we wanted").is_none());
    }
}
