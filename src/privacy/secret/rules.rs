//! The rules, and the search for their words: a table says for each two letters whether they are the
//! rarest two of some word; only where they are, the word is compared. That takes about a cycle a byte,
//! half the time of an automaton over the same words.

use super::scan::Scan;
use super::{header, name, named, shape};
use std::ops::Range;
use std::sync::LazyLock;

pub(super) struct Rule {
    /// Its name, for ever.
    pub(super) name: &'static str,
    /// Words that make it look, in any case.
    pub(super) words: &'static [&'static str],
    /// Reads around one of the words and marks what is secret.
    pub(super) read: fn(&mut Scan<'_>, Range<usize>),
}

/// Every rule. Where two mark the same place the earlier one is counted.
pub(super) static RULES: &[Rule] = &[
    Rule { name: "private-key", words: &["-----BEGIN "], read: shape::private_key },
    Rule { name: "jwt", words: &["eyJ"], read: shape::jwt },
    Rule { name: "openai-key", words: &["sk-"], read: shape::prefixed },
    Rule { name: "anthropic-key", words: &["sk-ant-"], read: shape::prefixed },
    Rule { name: "openrouter-key", words: &["sk-or-"], read: shape::prefixed },
    Rule { name: "aws-access-key", words: &["AKIA", "ASIA"], read: shape::prefixed },
    Rule {
        name: "github-token",
        words: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        read: shape::prefixed,
    },
    Rule {
        name: "gitlab-token",
        words: &[
            "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "glimt-", "glagent-",
            "glsoat-", "gloas-",
        ],
        read: shape::prefixed,
    },
    Rule { name: "slack-token", words: &["xox", "xapp-"], read: shape::slack },
    Rule {
        name: "webhook-url",
        words: &["hooks.slack.com/", "/api/webhooks/"],
        read: shape::webhook,
    },
    Rule { name: "google-key", words: &["AIza", "ya29.", "GOCSPX-"], read: shape::prefixed },
    Rule {
        name: "stripe-key",
        words: &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"],
        read: shape::prefixed,
    },
    Rule { name: "npm-token", words: &["npm_"], read: shape::prefixed },
    Rule { name: "pypi-token", words: &["pypi-AgEI"], read: shape::prefixed },
    Rule { name: "huggingface-token", words: &["hf_"], read: shape::prefixed },
    Rule { name: "sendgrid-key", words: &["SG."], read: shape::sendgrid },
    Rule {
        name: "twilio-key",
        words: &[
            "SK0", "SK1", "SK2", "SK3", "SK4", "SK5", "SK6", "SK7", "SK8", "SK9", "SKa", "SKb",
            "SKc", "SKd", "SKe", "SKf",
        ],
        read: shape::twilio,
    },
    Rule {
        name: "digitalocean-token",
        words: &["dop_v1_", "doo_v1_", "dor_v1_"],
        read: shape::prefixed,
    },
    Rule { name: "telegram-token", words: &[":AA"], read: shape::telegram },
    Rule { name: "age-key", words: &["AGE-SECRET-KEY-1"], read: shape::prefixed },
    Rule {
        name: "authorization",
        words: &["authorization", "bearer "],
        read: header::authorization,
    },
    Rule { name: "cookie", words: &["cookie"], read: header::cookie },
    Rule { name: "url-password", words: &["://"], read: shape::url_password },
    Rule { name: "basic-login", words: &["curl", "mysql", "mariadb"], read: header::command_login },
    Rule { name: "named-secret", words: name::WORDS, read: named::read },
];

/// Two letters, without their case, as a number.
const PAIRS: usize = 1 << 16;
/// Places looked at together.
const LANE: usize = 8;
/// Letters of code and prose, from the most common on; a guess is enough.
const COMMON: &[u8] = b" etaoinsrlcdpmuhfg.-/\x7fy\"b:,0(1w)=v2k'3x4;5[68j79q&?z";

/// Two letters that are common together though neither is common alone.
const COMMON_PAIRS: [&[u8]; 7] = [b"co", b"ng", b"si", b"ck", b"ok", b"rk", b"/w"];

struct Word {
    letters: &'static [u8],
    /// Offset of its rarest two letters.
    rarest: usize,
    rule: &'static Rule,
}

/// The words by their rarest two letters.
pub(super) struct Keywords {
    /// For each two letters, which of the buckets their words are in; 0 if in none.
    bucket: Box<[u8; PAIRS]>,
    buckets: Vec<Vec<Word>>,
}

pub(super) static KEYWORDS: LazyLock<Keywords> = LazyLock::new(Keywords::new);

/// Two bytes as a number, upper and lower case as one. Some marks fall together too; the words are
/// compared anyway.
fn pair(first: u8, second: u8) -> usize {
    usize::from(u16::from_le_bytes([first, second]) | 0x2020)
}

/// Rough frequency of two adjacent letters.
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
