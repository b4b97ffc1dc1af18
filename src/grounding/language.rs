//! Language of a slice and of its claims. Across languages, words are compared only through a lexicon.

use crate::domain::{EntryKind, Part, Slice, Speaker};
use crate::text::stems::{FUNCTION_BYTES_MAX, is_english, lowered};
use regex::Regex;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::LazyLock;

/// Quoted text and text in parentheses.
static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#""[^"]*"|„[^“”"]*[“”"]|“[^”]*”|«[^»]*»|\([^()]*\)"#).ok());
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
        Counts::of(said).language()
    }

    /// Language of a claim's `texts`, without what they quote, which may be in another one.
    pub(super) fn of_claim<'a>(texts: impl Iterator<Item = &'a str>) -> Language {
        let own = |text: &'a str| match QUOTED.as_ref() {
            Some(quoted) => quoted.replace_all(text, " "),
            None => Cow::Borrowed(text),
        };
        let own: Vec<Cow<'_, str>> = texts.map(own).collect();
        Counts::of(own.iter().map(|text| &**text)).clear_language()
    }

    /// True if the words of a claim in `claim` cannot be compared with a slice in this language.
    pub(super) fn is_foreign_to(self, claim: Language) -> bool {
        let are_known = self != Language::Unknown && claim != Language::Unknown;
        self != claim && (are_known || self == Language::OtherScript)
    }
}

/// Messages of `slice` in another language than `language`, which most of it is in, with the calls and outputs after
/// them. `None` if there are none.
pub(super) fn foreign_passage(slice: &Slice, language: Language) -> Option<Slice> {
    if matches!(language, Language::OtherLatin | Language::OtherScript) {
        return None;
    }
    let mut is_foreign = false;
    let in_passage = |part: &&Part| {
        let is_said = matches!(part.speaker, Speaker::Person | Speaker::Assistant);
        if is_said && part.kind != EntryKind::ToolCall {
            let text = slice.text.as_str().get(part.span.clone());
            is_foreign = match Counts::of(text.into_iter()).clear_language() {
                Language::OtherLatin | Language::OtherScript => true,
                Language::English => false,
                Language::Unknown => is_foreign,
            };
        }
        is_foreign
    };
    let parts: Vec<Part> = slice.parts.iter().filter(in_passage).cloned().collect();
    (!parts.is_empty()).then(|| Slice { parts, ..slice.clone() })
}

/// True for a function word of a language in Latin script whose stems are not known.
#[rustfmt::skip]
fn is_further_word(word: &str) -> bool {
    matches!(word, "ve" | "bir" | "bu" | "için" | "değil" | "ile" | "się" | "nie" | "jest" | "och" | "att" | "det" | "ikke")
}

#[derive(Default)]
struct Counts {
    letters: usize,
    other_script: usize,
    english: usize,
    other: usize,
    looked: usize,
}

/// Minimum number of function words by which another language outnumbers English in a text that is clearly in it.
const CLEAR_WORDS_MIN: usize = 2;

impl Counts {
    /// Counts of `texts` taken together.
    fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Counts {
        let mut counts = Counts::default();
        for text in texts {
            if counts.looked > LOOK_BYTES_MAX {
                break;
            }
            counts.add(&text[..text.floor_char_boundary(LOOK_BYTES_MAX)]);
        }
        counts
    }

    fn add(&mut self, text: &str) {
        self.looked += text.len();
        for word in text.split(|letter: char| !letter.is_alphabetic()) {
            if word.is_ascii() {
                self.letters += word.len();
            } else {
                self.letters += word.chars().count();
                self.other_script += word.chars().filter(|it| u32::from(*it) > 0x24F).count();
            }
            if (2..=FUNCTION_BYTES_MAX).contains(&word.len()) {
                let word = lowered(word);
                let of_others = || is_further_word(&word).then_some(false);
                match is_english(&word).or_else(of_others) {
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

    /// Language; unknown if a name such as "van der Berg" may be all that is not English.
    fn clear_language(&self) -> Language {
        let is_clear = self.other >= self.english + CLEAR_WORDS_MIN;
        let language = self.language();
        if language == Language::OtherLatin && !is_clear { Language::Unknown } else { language }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_foreign_to_a_slice_in_another_language() {
        let language = |text: &str| Counts::of(std::iter::once(text)).language();
        let (german, english) = ("das ist nicht der Port", "that is not the port");
        let (chinese, bare) = ("端口不是这个", "Postgres port");
        let check = |slice: &str, claim: &str| language(slice).is_foreign_to(language(claim));
        assert!(check(german, english) && check(german, chinese));
        assert!(check(chinese, english) && check(chinese, german) && check(chinese, bare));
        assert!(!check(german, german) && !check(german, bare) && !check(chinese, chinese));
        assert!(!check(english, english) && check(english, german) && !check(english, bare));
        let quoting = "accounts are abolished (Konten): \"das ist nicht der Port\"";
        let claim = Language::of_claim(std::iter::once(quoting));
        assert!(language(german).is_foreign_to(claim));
        let named = Language::of_claim(std::iter::once("Ask Jan van Dam"));
        assert!(!language(english).is_foreign_to(named));
    }
}
