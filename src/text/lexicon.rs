//! Words of several languages: for English ones, so that an English claim can be compared with what was said in another
//! language (a file for each language, a headword a line: `bar: takt takte takten`), and for numbers, units and days.

use super::stems::{foreign, lowered};
use super::tokens::hash;
use foldhash::HashMap;
use rust_stemmers::{Algorithm, Stemmer};
use std::sync::{LazyLock, OnceLock};

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

/// A number a line: its digits, then its words. Those that are also common English words, such as the Spanish `once`,
/// are left out.
static NUMBER_WORDS: LazyLock<HashMap<&str, u64>> = LazyLock::new(|| {
    let numbers = include_str!("numbers.txt").lines().filter_map(|line| line.split_once(' '));
    numbers
        .flat_map(|(value, words)| words.split(' ').map(move |word| (word, value)))
        .filter_map(|(word, value)| Some((word, value.parse().ok()?)))
        .collect()
});
/// A unit a line: its dimension, its amount in the smallest unit of the dimension, its words. Months
/// and years are not multiples of days.
static UNIT_WORDS: LazyLock<HashMap<&str, Unit>> = LazyLock::new(|| {
    let mut units = HashMap::default();
    for line in include_str!("units.txt").lines() {
        let mut words = line.split(' ');
        let (dimension, scale) = (words.next(), words.next().and_then(|it| it.parse().ok()));
        let Some((dimension, scale)) = dimension.zip(scale) else { continue };
        units.extend(words.map(|word| (word, Unit { dimension, scale })));
    }
    units
});

/// Days of the week, in several languages.
pub(crate) const WEEKDAYS: [&str; 7] = [
    "monday mondays montag montags lundi lundis lunes lunedì понедельник понедельникам",
    "tuesday tuesdays dienstag dienstags mardi mardis martes martedì вторник вторникам",
    "wednesday wednesdays mittwoch mittwochs mercredi mercredis miércoles mercoledì среда среду средам",
    "thursday thursdays donnerstag donnerstags jeudi jeudis jueves giovedì четверг четвергам",
    "friday fridays freitag freitags vendredi vendredis viernes venerdì пятница пятницу пятницам",
    "saturday saturdays samstag samstags samedi samedis sábado sábados sabato суббота субботу субботам",
    "sunday sundays sonntag sonntags dimanche dimanches domingo domingos domenica воскресенье",
];

/// Line of each word: numbers from two on, since `un` is also an article; units, days.
static TRANSLATIONS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let numbers = include_str!("numbers.txt").lines().skip(2);
    let units = include_str!("units.txt").lines().filter_map(|line| line.splitn(3, ' ').nth(2));
    let lines = numbers.chain(units).chain(WEEKDAYS);
    lines.flat_map(|line| line.split(' ').map(move |word| (word, line))).collect()
});

/// A unit of measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Unit {
    pub(crate) dimension: &'static str,
    /// Amount in the smallest unit of the dimension.
    pub(crate) scale: u64,
}

/// Number that a folded word means.
pub(crate) fn number(word: &str) -> Option<u64> {
    NUMBER_WORDS.get(word).copied()
}

/// Unit that a lower-case word means.
pub(crate) fn unit(word: &str) -> Option<Unit> {
    UNIT_WORDS.get(word).copied()
}

/// Words in several languages for the number, unit or day that a lower-case word or number means, itself included.
pub(crate) fn translations(word: &str) -> impl Iterator<Item = &'static str> {
    TRANSLATIONS.get(word).into_iter().flat_map(|line| line.split(' '))
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
