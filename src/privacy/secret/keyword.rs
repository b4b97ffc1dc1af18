//! Finds the words of the rules, in any case, at about a byte a cycle: a table says for each two
//! letters whether they are the rarest two of some word; only where they are, the word is compared.
//! An automaton over the same words waits for each letter before it can look at the next, and took
//! twice as long.

use super::{RULES, Rule};
use std::ops::Range;
use std::sync::LazyLock;

/// Two letters, without their case, as a number.
const PAIRS: usize = 1 << 16;
/// Places looked at together.
const LANE: usize = 8;
/// Letters of code and prose, from the most common on; a guess is enough.
const COMMON: &[u8] = b" etaoinsrlcdpmuhfg.-/\x7fy\"b:,0(1w)=v2k'3x4;5[68j79q&?z";

/// Two letters that are common together though neither is common alone.
const COMMON_PAIRS: [&[u8]; 7] = [b"co", b"ng", b"si", b"ck", b"ok", b"rk", b"/w"];

/// A word of a rule.
struct Word {
    letters: &'static [u8],
    /// How far its rarest two letters stand from its start.
    rarest: usize,
    rule: &'static Rule,
}

/// The words by their rarest two letters.
pub(super) struct Keywords {
    /// For each two letters, which of the buckets their words are in; 0 if in none.
    bucket: Box<[u8; PAIRS]>,
    buckets: Vec<Vec<Word>>,
}

/// All words of all rules.
pub(super) static KEYWORDS: LazyLock<Keywords> = LazyLock::new(Keywords::new);

/// Two bytes as a number, upper and lower case as one. Some marks fall together too; the words are
/// compared anyway.
fn pair(first: u8, second: u8) -> usize {
    usize::from(u16::from_le_bytes([first, second]) | 0x2020)
}

/// How common two letters are together, roughly.
fn commonness(two: &[u8]) -> usize {
    let of = |letter: &u8| {
        let place = COMMON.iter().position(|common| *common == letter | 0x20);
        place.map_or(1, |place| COMMON.len() + 1 - place)
    };
    let together = COMMON_PAIRS.iter().any(|pair| two.eq_ignore_ascii_case(pair));
    let alone: usize = two.iter().map(of).product();
    if together { alone * COMMON.len() } else { alone }
}

impl Keywords {
    fn new() -> Keywords {
        let mut keywords = Keywords { bucket: Box::new([0; PAIRS]), buckets: vec![Vec::new()] };
        for rule in RULES {
            for word in rule.words {
                keywords.add(word.as_bytes(), rule);
            }
        }
        keywords
    }

    fn add(&mut self, letters: &'static [u8], rule: &'static Rule) {
        let pairs = letters.windows(2).enumerate().filter_map(|(at, two)| match two {
            [first, second] => Some((commonness(two), at, pair(*first, *second))),
            _ => None,
        });
        let Some((_, rarest, pair)) = pairs.min() else { return };
        let Some(bucket) = self.bucket.get_mut(pair) else { return };
        if *bucket == 0 {
            // More than 255 buckets do not fit; the words then share the last one, and are still
            // compared.
            *bucket = u8::try_from(self.buckets.len()).unwrap_or(u8::MAX);
            if self.buckets.len() <= usize::from(*bucket) {
                self.buckets.push(Vec::new());
            }
        }
        if let Some(words) = self.buckets.get_mut(usize::from(*bucket)) {
            words.push(Word { letters, rarest, rule });
        }
    }

    /// Calls `read` for every word in the text, in the order of their rarest letters.
    pub(super) fn find(&self, bytes: &[u8], mut read: impl FnMut(&'static Rule, Range<usize>)) {
        let mut at = 0;
        while at + 1 < bytes.len() {
            if let Some(lane) = bytes.get(at..).and_then(|rest| rest.first_chunk::<{ LANE + 1 }>())
            {
                let mut any = 0;
                for place in 0..LANE {
                    any |= self.bucket[pair(lane[place], lane[place + 1])];
                }
                if any == 0 {
                    at += LANE;
                    continue;
                }
            }
            for at in at..(at + LANE).min(bytes.len() - 1) {
                self.compare(bytes, at, &mut read);
            }
            at += LANE;
        }
    }

    fn compare(&self, bytes: &[u8], at: usize, read: &mut impl FnMut(&'static Rule, Range<usize>)) {
        let Some([first, second]) = bytes.get(at..at + 2) else { return };
        let bucket = self.bucket[pair(*first, *second)];
        if bucket == 0 {
            return;
        }
        for word in self.buckets.get(usize::from(bucket)).into_iter().flatten() {
            let Some(start) = at.checked_sub(word.rarest) else { continue };
            let range = start..start + word.letters.len();
            let here = bytes
                .get(range.clone())
                .is_some_and(|here| here.eq_ignore_ascii_case(word.letters));
            if here {
                read(word.rule, range);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_wherever_it_stands() {
        for word in RULES.iter().flat_map(|rule| rule.words) {
            for before in 0..20 {
                let text = format!("{}{}", " ".repeat(before), word.to_uppercase());
                let mut found = false;
                KEYWORDS.find(text.as_bytes(), |rule, at| {
                    found |= rule.words.contains(word) && text[at].eq_ignore_ascii_case(word);
                });
                assert!(found, "{word} after {before}");
            }
        }
    }
}
