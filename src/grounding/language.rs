//! Whether a slice is in another language than the claims about it may be. Claims are written in the
//! configured language; words that only share a meaning cannot be compared.

use super::words::hash;
use crate::domain::{Slice, Speaker};

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

/// The share of letters outside Latin above which a slice is in another script, in percent.
const OTHER_SCRIPT_PERCENT: usize = 15;
/// How much of a slice is looked at, in bytes.
const LOOK_BYTES_MAX: usize = 3 * 1024;

/// Whether people and assistants speak another language than English in `slice`.
pub(super) fn is_foreign(slice: &Slice) -> bool {
    let (mut letters, mut other_script, mut english, mut other, mut looked) = (0, 0, 0, 0, 0);
    for part in &slice.parts {
        if !matches!(part.speaker, Speaker::Person | Speaker::Assistant) || looked > LOOK_BYTES_MAX
        {
            continue;
        }
        let text = slice.text.as_str().get(part.span.clone()).unwrap_or_default();
        let text = &text[..text.floor_char_boundary(LOOK_BYTES_MAX)];
        looked += text.len();
        for letter in text.chars().filter(|letter| letter.is_alphabetic()) {
            letters += 1;
            other_script += usize::from(u32::from(letter) > 0x24F);
        }
        let mut lower = String::with_capacity(FUNCTION_WORD_BYTES_MAX);
        for word in text.split(|letter: char| !letter.is_alphabetic()) {
            // Most words need no look.
            if (2..=FUNCTION_WORD_BYTES_MAX).contains(&word.len()) {
                lower.clear();
                lower.push_str(word);
                lower.make_ascii_lowercase();
                let key = hash(&lower);
                english += usize::from(ENGLISH_KEYS.contains(&key));
                other += usize::from(OTHER_KEYS.contains(&key));
            }
        }
    }
    other_script * 100 > letters * OTHER_SCRIPT_PERCENT || other > english
}
