//! Whether a slice is in another language than the claims about it may be. Claims are written in the
//! configured language; words that only share a meaning cannot be compared.

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
        for word in text.split(|letter: char| !letter.is_alphabetic()) {
            // Function words are short; most words need no look.
            if (2..=6).contains(&word.len()) {
                let is = |list: &[&str]| list.iter().any(|it| word.eq_ignore_ascii_case(it));
                english += usize::from(is(ENGLISH));
                other += usize::from(is(OTHER));
            }
        }
    }
    other_script * 100 > letters * OTHER_SCRIPT_PERCENT || other > english
}
