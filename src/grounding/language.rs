//! Whether a slice is in another language than a claim about it. Words that only share a meaning
//! cannot be compared.

use crate::domain::{Slice, Speaker};
use crate::words::hash;
use std::cmp::Ordering;

/// Function words that English text cannot do without.
const ENGLISH: &[&str] = &["the", "and", "to", "of", "is", "that", "it", "for", "this", "with"];
/// The same of languages in Latin letters that agents are talked to in; none is an English word.
const OTHER: &[&str] = &[
    "und", "der", "nicht", "ist", "das", "ich", "wir", "mit", "que", "los", "para", "por", "una",
    "el", "les", "des", "est", "pas", "nous", "pour", "dans", "che", "di", "per", "non", "sono",
    "het", "een", "niet", "van", "ve", "bir", "bu", "için", "değil", "ile", "não", "uma", "com",
    "się", "nie", "jest", "och", "att", "det", "ikke",
];
/// The longest of them, in bytes.
const FUNCTION_WORD_BYTES_MAX: usize = 6;
static ENGLISH_KEYS: [u64; ENGLISH.len()] = keys(ENGLISH);
static OTHER_KEYS: [u64; OTHER.len()] = keys(OTHER);

const fn keys<const N: usize>(words: &[&str]) -> [u64; N] {
    let mut keys = [0; N];
    let mut at = 0;
    while at < N {
        keys[at] = hash(words[at]);
        at += 1;
    }
    keys
}

/// The share of letters outside Latin above which a text is in another script, in percent.
const OTHER_SCRIPT_PERCENT: usize = 15;
/// How much of a text is looked at, in bytes.
const LOOK_BYTES_MAX: usize = 3 * 1024;

/// What a text is written in, as far as words need to know that are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tongue {
    /// Latin letters, mostly with English function words.
    English,
    /// Latin letters, with function words of another language.
    OtherLatin,
    /// Letters of another script.
    OtherScript,
    /// Latin letters, and no function words that tell.
    Unknown,
}

impl Tongue {
    /// What people and assistants speak in `slice`.
    pub(super) fn of_slice(slice: &Slice) -> Tongue {
        let said = slice.parts.iter();
        let said = said
            .filter(|part| matches!(part.speaker, Speaker::Person | Speaker::Assistant))
            .map(|part| slice.text.as_str().get(part.span.clone()).unwrap_or_default());
        Tongue::of(said)
    }

    /// What `texts` are written in, taken together.
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Tongue {
        let mut counts = Counts::default();
        for text in texts {
            if counts.looked > LOOK_BYTES_MAX {
                break;
            }
            counts.add(&text[..text.floor_char_boundary(LOOK_BYTES_MAX)]);
        }
        counts.tongue()
    }

    /// Whether words of a claim in `claim` cannot be compared with those of a slice in this.
    pub(super) fn is_foreign_to(self, claim: Tongue) -> bool {
        match self {
            Tongue::English | Tongue::Unknown => false,
            Tongue::OtherLatin => matches!(claim, Tongue::English | Tongue::OtherScript),
            Tongue::OtherScript => claim != Tongue::OtherScript,
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
            // Most words need no look.
            if (2..=FUNCTION_WORD_BYTES_MAX).contains(&word.len()) {
                lower.clear();
                lower.push_str(word);
                lower.make_ascii_lowercase();
                let key = hash(&lower);
                self.english += usize::from(ENGLISH_KEYS.contains(&key));
                self.other += usize::from(OTHER_KEYS.contains(&key));
            }
        }
    }

    fn tongue(&self) -> Tongue {
        if self.other_script * 100 > self.letters * OTHER_SCRIPT_PERCENT {
            return Tongue::OtherScript;
        }
        match self.other.cmp(&self.english) {
            Ordering::Greater => Tongue::OtherLatin,
            Ordering::Less => Tongue::English,
            Ordering::Equal => Tongue::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_foreign_only_to_a_slice_in_another_language() {
        let tongue = |text: &str| Tongue::of(std::iter::once(text));
        let (german, english) = ("das ist nicht der Port", "that is not the port");
        let (chinese, bare) = ("端口不是这个", "Postgres port");
        let check = |slice: &str, claim: &str| tongue(slice).is_foreign_to(tongue(claim));
        assert!(check(german, english) && check(german, chinese));
        assert!(check(chinese, english) && check(chinese, german) && check(chinese, bare));
        assert!(!check(german, german) && !check(german, bare) && !check(chinese, chinese));
        assert!(!check(english, english) && !check(english, german));
    }
}
