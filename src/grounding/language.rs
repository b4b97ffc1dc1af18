//! Language of a slice and of its claims. Across languages, words cannot be compared.

use crate::domain::{Slice, Speaker};
use foldhash::HashMap;
use regex::Regex;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::LazyLock;

/// English function words.
const ENGLISH: [&str; 24] = [
    "the", "and", "to", "of", "is", "that", "it", "for", "this", "with", "are", "not", "were",
    "have", "been", "from", "when", "they", "who", "what", "before", "after", "than", "out",
];
/// Quoted text and text in parentheses.
static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#""[^"]*"|„[^“”"]*[“”"]|“[^”]*”|«[^»]*»|\([^()]*\)"#).ok());
/// Function words of other languages in Latin script; none is an English word.
const OTHER: [&str; 46] = [
    "und", "der", "nicht", "ist", "das", "ich", "wir", "mit", "que", "los", "para", "por", "una",
    "el", "les", "des", "est", "pas", "nous", "pour", "dans", "che", "di", "per", "non", "sono",
    "het", "een", "niet", "van", "ve", "bir", "bu", "için", "değil", "ile", "não", "uma", "com",
    "się", "nie", "jest", "och", "att", "det", "ikke",
];
/// All of these words; true for English ones.
static FUNCTION_WORDS: LazyLock<HashMap<&str, bool>> = LazyLock::new(|| {
    let all = ENGLISH.map(|it| (it, true)).into_iter().chain(OTHER.map(|it| (it, false)));
    all.collect()
});
/// Maximum length of these words, in bytes.
const FUNCTION_WORD_BYTES_MAX: usize = 6;
/// Share of non-Latin letters above which a text counts as another script, in percent.
const OTHER_SCRIPT_PERCENT: usize = 15;
/// Size of the sample, in bytes.
const LOOK_BYTES_MAX: usize = 3 * 1024;

/// Language of a text, as coarse as word comparison needs it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Language {
    /// Latin letters, mostly with English function words.
    English,
    /// Latin letters, with function words of another language.
    OtherLatin,
    /// Letters of another script.
    OtherScript,
    /// Latin letters, without enough function words to tell.
    Unknown,
}

impl Language {
    /// Language of what people and assistants say in `slice`.
    pub(super) fn of_slice(slice: &Slice) -> Language {
        let said = slice.parts.iter();
        let said = said
            .filter(|part| matches!(part.speaker, Speaker::Person | Speaker::Assistant))
            .map(|part| slice.text.as_str().get(part.span.clone()).unwrap_or_default());
        Language::of(said)
    }

    /// Language of a claim's `texts`, without what they quote, which may be in another one.
    pub(super) fn of_claim<'a>(texts: impl Iterator<Item = &'a str>) -> Language {
        let own = |text: &'a str| match QUOTED.as_ref() {
            Some(quoted) => quoted.replace_all(text, " "),
            None => Cow::Borrowed(text),
        };
        let own: Vec<Cow<'_, str>> = texts.map(own).collect();
        Language::of(own.iter().map(|text| &**text))
    }

    /// Language of `texts` taken together.
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Language {
        let mut counts = Counts::default();
        for text in texts {
            if counts.looked > LOOK_BYTES_MAX {
                break;
            }
            counts.add(&text[..text.floor_char_boundary(LOOK_BYTES_MAX)]);
        }
        counts.language()
    }

    /// True if the words of a claim in `claim` cannot be compared with a slice in this language.
    /// False if no claim is foreign to text in this language.
    pub(super) fn may_be_foreign(self) -> bool {
        matches!(self, Language::OtherLatin | Language::OtherScript)
    }

    pub(super) fn is_foreign_to(self, claim: Language) -> bool {
        match self {
            Language::English | Language::Unknown => false,
            Language::OtherLatin => matches!(claim, Language::English | Language::OtherScript),
            Language::OtherScript => claim != Language::OtherScript,
        }
    }
}

#[derive(Default)]
struct Counts {
    letters: usize,
    other_script: usize,
    english: usize,
    other: usize,
    looked: usize,
}

impl Counts {
    fn add(&mut self, text: &str) {
        self.looked += text.len();
        for letter in text.chars().filter(|letter| letter.is_alphabetic()) {
            self.letters += 1;
            self.other_script += usize::from(u32::from(letter) > 0x24F);
        }
        let mut lower = String::with_capacity(FUNCTION_WORD_BYTES_MAX);
        for word in text.split(|letter: char| !letter.is_alphabetic()) {
            // Other words cannot be in the lists.
            if (2..=FUNCTION_WORD_BYTES_MAX).contains(&word.len()) {
                lower.clear();
                lower.push_str(word);
                lower.make_ascii_lowercase();
                match FUNCTION_WORDS.get(lower.as_str()) {
                    Some(true) => self.english += 1,
                    Some(false) => self.other += 1,
                    None => {}
                }
            }
        }
    }

    fn language(&self) -> Language {
        if self.other_script * 100 > self.letters * OTHER_SCRIPT_PERCENT {
            return Language::OtherScript;
        }
        match self.other.cmp(&self.english) {
            Ordering::Greater => Language::OtherLatin,
            Ordering::Less => Language::English,
            Ordering::Equal => Language::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_foreign_only_to_a_slice_in_another_language() {
        let language = |text: &str| Language::of(std::iter::once(text));
        let (german, english) = ("das ist nicht der Port", "that is not the port");
        let (chinese, bare) = ("端口不是这个", "Postgres port");
        let check = |slice: &str, claim: &str| language(slice).is_foreign_to(language(claim));
        assert!(check(german, english) && check(german, chinese));
        assert!(check(chinese, english) && check(chinese, german) && check(chinese, bare));
        assert!(!check(german, german) && !check(german, bare) && !check(chinese, chinese));
        assert!(!check(english, english) && !check(english, german));
        let quoting = "accounts are abolished (Konten): \"das ist nicht der Port\"";
        let claim = Language::of_claim(std::iter::once(quoting));
        assert!(language(german).is_foreign_to(claim));
    }
}
