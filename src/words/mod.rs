//! Words as they are compared: lower case, light suffixes off, one by one in scripts without blanks.
//! Whoever looks for a claim in a text or compares two claims asks here, so that they agree on what a word is.

mod letter;

pub(crate) use letter::{Fold, fold, folded, lower};

/// The longest word that is compared, in bytes; longer runs are digests and base64.
const WORD_BYTES_MAX: usize = 64;

/// Words that say nothing about what a text is about. English, since claims are mostly written in
/// it; words of other languages are weighed by how rare they are.
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

/// A word of a text: its key for comparing and its bytes in the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Word {
    /// Hash of the folded word.
    pub(crate) key: u64,
    /// Where it begins.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
}

/// Calls `each` with every word of `text`, stop words left out.
pub(crate) fn words(text: &str, mut each: impl FnMut(Word)) {
    let bytes = text.as_bytes();
    let mut folded = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
            at += 1;
        }
        let ascii = at == bytes.len() || bytes[at].is_ascii();
        if at > start && ascii {
            let word = &text[start..at];
            if let Some(key) = ascii_key(word.as_bytes()) {
                each(Word { key, start, end: at });
            }
        } else if ascii {
            at += 1;
        } else {
            at = other_word(text, start, &mut folded, &mut each);
        }
    }
}

/// A word, or what stands between words, that begins at `start` and is not ASCII alone; gives where
/// it ends.
fn other_word(text: &str, start: usize, folded: &mut String, each: &mut impl FnMut(Word)) -> usize {
    let mut end = start;
    for letter in text[start..].chars() {
        let alone = stands_alone(letter);
        if !letter.is_alphanumeric() || (alone && end > start) {
            break;
        }
        end += letter.len_utf8();
        if alone {
            break;
        }
    }
    if end == start {
        return start + text[start..].chars().next().map_or(1, char::len_utf8);
    }
    if end - start <= WORD_BYTES_MAX
        && let Some(key) = key_of(&text[start..end], folded)
    {
        each(Word { key, start, end });
    }
    end
}

/// The key of a word of ASCII letters and digits; the same as [`key_of`] gives, without a copy on
/// the heap.
fn ascii_key(word: &[u8]) -> Option<u64> {
    let mut lower = [0; WORD_BYTES_MAX];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    key(std::str::from_utf8(lower).ok()?)
}

/// Whether `word` is one of the stop words; `word` must be in lower case.
pub(crate) fn is_stop(word: &str) -> bool {
    let mut slot = hash(word) as usize % STOP_SLOTS;
    // Ends at an empty slot; most are.
    while STOP_TABLE[slot] != 0 {
        if STOP[STOP_TABLE[slot] as usize - 1] == word {
            return true;
        }
        slot = (slot + 1) % STOP_SLOTS;
    }
    false
}

/// Slots of the table of stop words, eight times as many as there are words.
const STOP_SLOTS: usize = 1024;
/// Stop words by hash, each by its place in the list from 1: half of all words are looked up here
/// and found.
static STOP_TABLE: [u8; STOP_SLOTS] = {
    let mut table = [0; STOP_SLOTS];
    let mut at = 0;
    while at < STOP.len() {
        let mut slot = hash(STOP[at]) as usize % STOP_SLOTS;
        while table[slot] != 0 {
            slot = (slot + 1) % STOP_SLOTS;
        }
        table[slot] = at as u8 + 1;
        at += 1;
    }
    table
};
const _: () = assert!(STOP.len() < 256 && STOP.len() * 8 < STOP_SLOTS * 2);

fn key_of(word: &str, folded: &mut String) -> Option<u64> {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(word);
        folded.make_ascii_lowercase();
    } else {
        // U+0307 is what lowering a dotted capital I leaves behind.
        let lower = word.chars().flat_map(char::to_lowercase);
        folded.extend(lower.filter(|letter| *letter != '\u{307}'));
    }
    key(folded)
}

/// The key of a folded word, if it says anything.
fn key(folded: &str) -> Option<u64> {
    let single = folded.len() == 1 && !folded.as_bytes()[0].is_ascii_digit();
    (!single && !is_stop(folded)).then(|| hash(stem(folded)))
}

/// Cuts the endings that a paraphrase changes most: `caches`, `caching`, `cached` meet in `cach`.
fn stem(word: &str) -> &str {
    /// Shorter stems would make strangers meet.
    const STEM_BYTES_MIN: usize = 4;
    const ENDINGS: [&str; 8] = ["ations", "ation", "ings", "ing", "ies", "ed", "es", "s"];
    if !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return word;
    }
    let cut = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
    let stem = cut.filter(|stem| stem.len() >= STEM_BYTES_MIN).unwrap_or(word);
    let bare = stem.strip_suffix('e').filter(|bare| bare.len() >= STEM_BYTES_MIN);
    bare.unwrap_or(stem)
}

/// Scripts written without blanks: each character is a word.
pub(crate) fn stands_alone(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0E00..=0x0EFF | 0x1100..=0x11FF | 0x2E80..=0x9FFF | 0xAC00..=0xD7FF | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

/// FNV-1a: short keys, no adversary.
pub(crate) const fn hash(text: &str) -> u64 {
    let (bytes, mut hash, mut at) = (text.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(one: &str, other: &str, expected: bool) {
        let keys = |text| {
            let mut keys = Vec::new();
            words(text, |word| keys.push(word.key));
            keys
        };
        assert_eq!(keys(one) == keys(other), expected, "{one} / {other}");
    }

    #[test]
    fn endings_and_case_do_not_part_words() {
        same("Caching", "caches", true);
        same("the tests failed", "test fail", true);
        same("İstanbul", "istanbul", true);
        same("port", "post", false);
        same("HTTP2", "HTTP1", false);
    }

    #[test]
    fn every_stop_word_is_found_and_no_other() {
        assert!(STOP.iter().all(|word| is_stop(word)));
        assert!(!["", "thee", "queue", "postgres"].iter().any(|word| is_stop(word)));
    }
}
