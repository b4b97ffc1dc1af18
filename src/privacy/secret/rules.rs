//! The rules, and the search for their keywords. A table indexed by three letters says whether they
//! are the rarest three of some keyword; only then is the keyword compared. This takes about two
//! cycles per byte, however many keywords there are: half the time of an automaton.

use super::scan::Scan;
use super::words::{self, phrases};
use super::{code, command, file, header, named, sentence, shape};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Reads the text around a keyword and marks what is secret.
type Read = fn(&mut Scan<'_>, Range<usize>);

pub(super) struct Rule {
    /// Name in reports; never changes.
    pub(super) name: &'static str,
    /// Keywords that trigger the rule, in any case.
    pub(super) words: Vec<&'static str>,
    pub(super) read: Read,
}

/// Every rule. If two mark the same range, the earlier one is counted.
pub(super) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rule = |name, read, words| Rule { name, words, read };
    let tokens = words::sections(shape::TOKENS).map(|(name, lines)| {
        rule(name, shape::prefixed, lines.into_iter().filter_map(shape::prefix).collect())
    });
    let first = [
        rule("private-key", shape::private_key, vec!["-----BEGIN ", "---- BEGIN "]),
        rule("private-key", file::headless_key, phrases("key-starts")),
        rule("private-key", file::headless_end, vec!["-----END "]),
        rule("jwt", shape::jwt, vec!["eyJ"]),
    ];
    let last = [
        rule("webhook-url", shape::webhook, phrases("hooks")),
        rule("authorization", header::authorization, vec!["authorization", "bearer ", "basic "]),
        rule("cookie", header::cookie, vec!["cookie"]),
        rule("url-password", shape::url_password, vec!["://"]),
        rule("basic-login", command::login, command::COMMANDS.keys().copied().collect()),
        rule("basic-login", command::piped, phrases("piped")),
        rule("basic-login", command::sent, vec!["send \"", "send \\", "send -- ", "sendline("]),
        rule("basic-login", command::written, vec!["echo ", "printf "]),
        rule("secret-file", file::formatted, file::FORMATS.keys().copied().collect()),
        rule("secret-file", file::manifest, phrases("manifests")),
        rule("secret-file", file::web_key, vec!["\"kty"]),
        rule("named-secret", file::inserted, vec!["insert into "]),
        rule("named-secret", command::login_pair, phrases("login-pairs")),
        rule("named-secret", command::login_pair, phrases("access")),
        rule("named-secret", command::admitted, phrases("admits")),
        rule("named-secret", command::called, command::CALLS.keys().copied().collect()),
        rule("named-secret", named::read, phrases("names")),
        rule("named-secret", sentence::told, phrases("told")),
        rule("named-secret", sentence::told, phrases("told-tokens")),
        rule("named-secret", code::told, phrases("pins")),
        rule("named-secret", code::told, phrases("code-nouns")),
        rule("named-secret", sentence::printed, phrases("prints")),
        rule("named-secret", command::unlocked, phrases("vaults")),
        rule("named-secret", sentence::seed, phrases("seeds")),
        rule("named-secret", sentence::setup_key, phrases("setup-keys")),
        rule("named-secret", sentence::codes, phrases("codes")),
        rule("named-secret", sentence::network, phrases("networks")),
    ];
    first.into_iter().chain(tokens).chain(last).collect()
});

/// Number of letter triples, at five bits per letter.
const TRIPLES: usize = 1 << 15;
/// Positions that are tested together.
const LANE: usize = 8;
/// Letter triples that are common in code and prose, most common first; a guess is enough. A blank
/// is `@`, and each letter stands for those with the same five low bits.
static COMMON: &str = include_str!("common_triples.txt");

struct Word {
    letters: &'static [u8],
    /// Offset of the rarest triple.
    rarest: usize,
    rule: &'static Rule,
}

/// The keywords, indexed by their rarest triple.
pub(super) struct Keywords {
    /// True for the rarest triples. The text is looked up in this table, which is small enough to stay near.
    is_rarest: Box<[bool; TRIPLES]>,
    /// Bucket of each of them; 0, which is empty, for all others.
    bucket: Box<[u16; TRIPLES]>,
    buckets: Vec<Vec<Word>>,
}

pub(super) static KEYWORDS: LazyLock<Keywords> = LazyLock::new(Keywords::new);

/// Index of three bytes, ignoring case. Some punctuation collides with letters, which the
/// comparison resolves.
fn triple(first: u8, second: u8, third: u8) -> usize {
    let low = |byte: u8| usize::from(byte & 0x1f);
    low(first) | low(second) << 5 | low(third) << 10
}

/// Rough frequencies of the triples of [`COMMON`]; all others have none.
fn frequencies() -> HashMap<usize, usize> {
    let rows: Vec<&str> = COMMON.lines().collect();
    let common = rows.iter().flat_map(|row| row.as_bytes().as_chunks::<3>().0).rev();
    common.zip(1..).map(|([a, b, c], place)| (triple(*a, *b, *c), place)).collect()
}

impl Keywords {
    fn new() -> Keywords {
        let frequencies = frequencies();
        let mut keywords = Keywords {
            is_rarest: Box::new([false; TRIPLES]),
            bucket: Box::new([0; TRIPLES]),
            buckets: vec![Vec::new()],
        };
        for rule in RULES.iter() {
            for word in &rule.words {
                keywords.add(word.as_bytes(), rule, &frequencies);
            }
        }
        keywords
    }

    fn add(
        &mut self,
        letters: &'static [u8],
        rule: &'static Rule,
        frequencies: &HashMap<usize, usize>,
    ) {
        let triples = letters.windows(3).enumerate().filter_map(|(at, three)| match three {
            [a, b, c] => {
                let triple = triple(*a, *b, *c);
                Some((frequencies.get(&triple).copied().unwrap_or(0), at, triple))
            }
            _ => None,
        });
        let Some((_, rarest, triple)) = triples.min() else { return };
        if !std::mem::replace(&mut self.is_rarest[triple], true) {
            self.bucket[triple] = u16::try_from(self.buckets.len()).unwrap_or(0);
            self.buckets.push(Vec::new());
        }
        self.buckets[usize::from(self.bucket[triple])].push(Word { letters, rarest, rule });
    }

    /// Calls `read` for every keyword in the text, in the order of their rarest triples.
    pub(super) fn find(&self, bytes: &[u8], mut read: impl FnMut(&'static Rule, Range<usize>)) {
        let mut at = 0;
        while let Some(lane) = bytes.get(at..).and_then(|rest| rest.first_chunk::<{ LANE + 2 }>()) {
            let mut is_hit = [false; LANE];
            for place in 0..LANE {
                is_hit[place] =
                    self.is_rarest[triple(lane[place], lane[place + 1], lane[place + 2])];
            }
            if is_hit != [false; LANE] {
                let hits = (0..LANE).filter(|place| is_hit[*place]);
                hits.for_each(|place| self.compare(bytes, at + place, &mut read));
            }
            at += LANE;
        }
        (at..bytes.len()).for_each(|at| self.compare(bytes, at, &mut read));
    }

    fn compare(&self, bytes: &[u8], at: usize, read: &mut impl FnMut(&'static Rule, Range<usize>)) {
        let Some([first, second, third]) = bytes.get(at..at + 3) else { return };
        let bucket = self.bucket[triple(*first, *second, *third)];
        for word in &self.buckets[usize::from(bucket)] {
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
        for word in RULES.iter().flat_map(|rule| &rule.words) {
            for before in 0..20 {
                let text = format!("{}{}", " ".repeat(before), word.to_ascii_uppercase());
                let mut found = false;
                KEYWORDS.find(text.as_bytes(), |rule, at| {
                    found |= rule.words.contains(word) && text[at].eq_ignore_ascii_case(word);
                });
                assert!(found, "{word} after {before}");
            }
        }
    }
}
