//! Secrets, by shape and by name. One look finds the words that begin or announce a secret; what
//! stands around each is then read by the rule the word belongs to. A text without such words is
//! read once and not copied.
//!
//! The table is [`RULES`]: the name that appears in reports, the words, and the function that
//! reads. Rules only mark places. A place never holds a quote, a brace or half an escape of the
//! text around it, so JSON stays JSON, also when it is JSON in a string.

mod escape;
mod header;
mod keyword;
mod name;
mod named;
mod pair;
mod pem;
mod plain;
mod shape;
mod url;
mod value;

use super::mask::Report;
use std::ops::Range;

/// What stands in the place of a secret.
pub(super) const PLACEHOLDER: &str = "<SECRET>";

/// One rule.
struct Rule {
    /// Its name, for ever.
    name: &'static str,
    /// Words that make it look, in any case.
    words: &'static [&'static str],
    /// Reads around one of the words and marks what is secret.
    read: fn(&mut Scan<'_>, Range<usize>),
}

/// Every rule. Where two mark the same place the earlier one is counted.
static RULES: &[Rule] = &[
    Rule { name: "private-key", words: &["-----BEGIN "], read: pem::read },
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
        read: url::webhook,
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
    Rule { name: "url-password", words: &["://"], read: url::password },
    Rule { name: "basic-login", words: &["curl", "mysql", "mariadb"], read: header::command_login },
    Rule { name: "named-secret", words: name::WORDS, read: named::read },
];

/// A place to mask.
#[derive(Debug)]
struct Hit {
    at: Range<usize>,
    rule: &'static str,
    /// Put in quotes as deep as this: the value of a JSON key that had none.
    quotes: Option<usize>,
}

/// A text on its way through the rules.
struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// The rule that reads now.
    rule: &'static str,
    hits: Vec<Hit>,
    /// Names before this place have been read.
    named_to: usize,
    /// Where the next end of a key block stands, once looked up; the length of the text if there is
    /// none.
    pem_end: Option<usize>,
}

impl Scan<'_> {
    /// Marks a place.
    fn mark(&mut self, at: Range<usize>) {
        self.mark_as(at, None);
    }

    fn mark_as(&mut self, at: Range<usize>, quotes: Option<usize>) {
        if !at.is_empty() && self.piece(at.clone()) != PLACEHOLDER {
            self.hits.push(Hit { at, rule: self.rule, quotes });
        }
    }

    /// A piece of the text; empty if the range is none.
    fn piece(&self, at: Range<usize>) -> &str {
        self.text.get(at).unwrap_or_default()
    }

    /// What stands from a place on.
    fn from(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or_default()
    }

    /// The byte at a place; zero beyond the ends.
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The byte before a place; zero at the start.
    fn before(&self, at: usize) -> u8 {
        at.checked_sub(1).map_or(0, |at| self.byte(at))
    }

    /// Where the run of bytes that fit, from `at` on, ends.
    fn run(&self, at: usize, fits: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len())
    }

    /// The same, at most `most` bytes on: what lies further would be read again for every word
    /// before it.
    fn run_within(&self, at: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(at..self.bytes.len().min(at + most)).unwrap_or_default();
        let length = rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len());
        self.text.floor_char_boundary(at + length).max(at)
    }

    /// Where the run of bytes that fit, back from `at`, starts; at most `most` bytes back.
    fn run_back(&self, at: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
        let head = self.bytes.get(at.saturating_sub(most)..at).unwrap_or_default();
        at - head.iter().rev().take_while(|byte| fits(**byte)).count()
    }
}

/// The names of the rules.
pub(super) fn rules() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.name)
}

/// Masks every secret and counts them; none if there is nothing to mask.
pub(super) fn mask(text: &str, report: &mut Report) -> Option<String> {
    let bytes = text.as_bytes();
    let mut scan = Scan { text, bytes, rule: "", hits: Vec::new(), named_to: 0, pem_end: None };
    keyword::KEYWORDS.find(bytes, |rule, at| {
        scan.rule = rule.name;
        (rule.read)(&mut scan, at);
    });
    if scan.hits.is_empty() {
        return None;
    }
    Some(replace(text, joined(scan.hits), report))
}

/// The places in order, overlapping ones as one.
fn joined(mut hits: Vec<Hit>) -> Vec<Hit> {
    let rank = |name: &str| RULES.iter().position(|rule| rule.name == name);
    hits.sort_by_key(|hit| (hit.at.start, hit.at.end, rank(hit.rule)));
    let mut joined: Vec<Hit> = Vec::with_capacity(hits.len());
    for hit in hits {
        match joined.last_mut() {
            Some(last) if hit.at.start < last.at.end => {
                last.at.end = last.at.end.max(hit.at.end);
                if rank(hit.rule) < rank(last.rule) {
                    last.rule = hit.rule;
                }
            }
            Some(_) | None => joined.push(hit),
        }
    }
    joined
}

fn replace(text: &str, hits: Vec<Hit>, report: &mut Report) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut kept_to = 0;
    for hit in hits {
        masked.push_str(text.get(kept_to..hit.at.start).unwrap_or_default());
        let quote = |masked: &mut String| {
            if let Some(depth) = hit.quotes {
                masked.extend(std::iter::repeat_n('\\', depth));
                masked.push('"');
            }
        };
        quote(&mut masked);
        masked.push_str(PLACEHOLDER);
        quote(&mut masked);
        report.add(hit.rule, 1);
        kept_to = hit.at.end;
    }
    masked.push_str(text.get(kept_to..).unwrap_or_default());
    masked
}

#[cfg(test)]
mod tests;
