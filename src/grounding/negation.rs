//! Evidence that says the opposite of its claim: "keep Redis" where somebody said "not Redis".

use crate::domain::{Claim, Evidence, Slice};
use crate::text::negation::NEGATIONS;
use crate::text::tokens::words;
use std::collections::HashSet;

/// Beginnings of words with which a claim itself says that something is not, or is taken away.
const CONTRASTS: [&str; 22] = [
    "instead", "rather", "avoid", "stop", "drop", "remov", "refus", "reject", "skip", "disabl",
    "fail", "unable", "against", "declin", "den", "forbid", "prevent", "exclud", "ignor", "delet",
    "lack", "miss",
];
/// Words before a claim's word in which a negation turns it round.
const REACH_WORDS: usize = 2;
/// Share of a field's words that a sentence must hold to be about it, in percent.
const ABOUT_PERCENT_MIN: usize = 50;

/// Letters that end a sentence, or a line.
const SENTENCE_ENDS: [char; 4] = ['.', '!', '?', '\n'];

/// The main field of `claim` whose evidence says the opposite, if there is one.
pub(super) fn negated(claim: &Claim, evidence: &[Evidence], slice: &Slice) -> Option<&'static str> {
    if claim.strings().iter().any(|(_, text)| is_negative(text)) {
        return None;
    }
    let fields = match claim {
        Claim::Decision(it) => vec![("chosen", it.chosen.as_str())],
        Claim::Attempt(it) if it.succeeded => {
            vec![("action", it.action.as_str()), ("result", it.result.as_str())]
        }
        Claim::Attempt(_) | Claim::Discussion(_) | Claim::Request(_) => Vec::new(),
    };
    fields
        .into_iter()
        .find(|(field, text)| is_turned(text, field, evidence, slice))
        .map(|(field, _)| field)
}

/// Returns whether every sentence of the evidence that is about `text` negates one of its words.
fn is_turned(text: &str, field: &str, evidence: &[Evidence], slice: &Slice) -> bool {
    let mut wanted = HashSet::new();
    words(text, |word| {
        wanted.insert(word.key);
    });
    let ours = evidence.iter().filter(|it| it.field == field);
    let sentences = ours.flat_map(|it| whole_sentences(it, slice).split_inclusive(SENTENCE_ENDS));
    let mut turned = false;
    for sentence in sentences {
        let mut held = HashSet::new();
        words(sentence, |word| {
            held.extend(wanted.contains(&word.key).then_some(word.key));
        });
        if held.is_empty() || held.len() * 100 < wanted.len() * ABOUT_PERCENT_MIN {
            continue;
        }
        if !negates(sentence, &held) {
            return false;
        }
        turned = true;
    }
    turned
}

/// The words of `evidence` from the beginning of their first sentence on.
fn whole_sentences<'a>(evidence: &Evidence, slice: &'a Slice) -> &'a str {
    let parts = slice.parts.iter().filter(|part| part.ordinal == evidence.ordinal);
    let mut texts = parts.filter_map(|part| {
        let from = evidence.bytes.start.checked_sub(part.entry_offset)?;
        let words = slice.text.as_str().get(part.span.clone())?;
        let before = words.get(..from)?;
        let start = before.rfind(SENTENCE_ENDS).map_or(0, |at| at + 1);
        words.get(start..from + evidence.words.len())
    });
    texts.next().unwrap_or_default()
}

/// Returns whether a negation stands close before one of the words in `held`. A question does not.
fn negates(sentence: &str, held: &HashSet<u64>) -> bool {
    let plain: Vec<&str> = sentence
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '’')
        .filter(|word| !word.is_empty())
        .collect();
    let is_held = |word: &str| {
        let mut found = false;
        words(word, |word| found |= held.contains(&word.key));
        found
    };
    let turns = |at: usize| {
        let after = plain.iter().skip(at + 1).take(REACH_WORDS);
        let only = plain.get(at + 1).is_some_and(|next| matches!(*next, "only" | "just" | "nur"));
        is_negation(plain[at]) && !only && after.into_iter().any(|word| is_held(word))
    };
    !sentence.trim_end().ends_with('?') && (0..plain.len()).any(turns)
}

fn is_negation(word: &str) -> bool {
    let word = word.to_lowercase();
    NEGATIONS.contains(word.as_str()) || word.ends_with("n't") || word.ends_with("n’t")
}

fn is_negative(text: &str) -> bool {
    let mut words =
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '’');
    words.any(|word| {
        let lower = word.to_lowercase();
        is_negation(word) || CONTRASTS.iter().any(|stem| lower.starts_with(stem))
    })
}
