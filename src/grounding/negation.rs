//! Detects evidence that contradicts its claim: "keep Redis" where somebody said "not Redis".

use crate::domain::{Claim, Evidence, Slice};
use crate::text::stems::is_no;
use crate::text::stems::lowered;
use crate::text::tokens::words;
use foldhash::HashSet;
use std::ops::Range;

/// Stems of words by which a claim itself negates or removes something.
const NEGATIVE_STEMS: [&str; 22] = [
    "instead", "rather", "avoid", "stop", "drop", "remov", "refus", "reject", "skip", "disabl",
    "fail", "unable", "against", "declin", "den", "forbid", "prevent", "exclud", "ignor", "delet",
    "lack", "miss",
];
/// Words by which a claim excludes everything else.
const EXCLUSIVE: [&str; 9] =
    ["only", "unless", "except", "nur", "außer", "seulement", "uniquement", "sólo", "solamente"];
/// Verbs that remove something together with one of `AWAY`, unlike "rolled it out".
const TAKING: [&str; 7] = ["take", "took", "taken", "leave", "left", "cut", "crossed"];
const AWAY: [&str; 2] = ["out", "off"];
/// Nouns whose negation allows something, as in "that is no problem".
const OBJECTIONS: [&str; 14] = [
    "problem", "problems", "objection", "objections", "worries", "issue", "trouble", "einwand",
    "einwände", "bedenken", "problème", "souci", "problema", "inconveniente",
];
/// Verbs by which a negation tells that something is not there: "there are no labels".
const LACKS: [&str; 9] = ["have", "has", "had", "is", "are", "was", "were", "hat", "gibt"];
/// Counts of nothing.
const ZEROS: [&str; 2] = ["0", "zero"];
/// Words before a zero that is a status.
const STATUS_WORDS: [&str; 3] = ["exit", "code", "status"];
/// Negations that follow the word they negate.
const TRAILING_NEGATIONS: [&str; 3] = ["değil", "yok", "olmadan"];
/// Negations of one thing among others: "without photos we lose" denies little else.
const PARTIAL_NEGATIONS: [&str; 5] = ["without", "ohne", "sans", "sin", "olmadan"];
/// Maximum number of words that a sentence shares with a claim for `PARTIAL_NEGATIONS` to count.
const SHARED_WORDS_MAX: usize = 2;
/// Infixes of negated Turkish verbs.
const TURKISH_NEGATION_INFIXES: [&str; 4] = ["mıyor", "miyor", "muyor", "müyor"];
/// Number of words after a negation that it negates.
const NEGATION_SCOPE_WORDS: usize = 2;
/// Minimum share of a field's words in a sentence about the field, in percent; all of them for a result of few words,
/// such as `changed as asked`, which other sentences have by chance.
const ABOUT_PERCENT_MIN: usize = 50;
const FEW_WORDS: usize = 2;
/// Same, for a sentence that affirms a word which another one negates.
const AFFIRMING_PERCENT_MIN: usize = 33;

/// Conditions of SQL statements, which deny nothing.
const IF_NOT_EXISTS: [&str; 3] = ["if", "not", "exists"];

/// Characters that end a sentence or line.
const SENTENCE_ENDS: [char; 4] = ['.', '!', '?', '\n'];
/// Characters that end a clause within one.
const CLAUSE_ENDS: [char; 5] = [',', ';', ':', '(', ')'];

/// Words that may precede the verb of a wish.
const BEFORE_WISH: [&str; 11] =
    ["and", "but", "so", "also", "please", "just", "und", "aber", "bitte", "por", "favor"];
/// Words by which a negated wish says what to do: `don't forget to …`, `not … but …`.
const AFFIRMING: [&str; 10] = [
    "but", "instead", "rather", "sondern", "mais", "sino", "forget", "hesitate", "fail",
    "vergessen",
];
/// Minimum share of a wish's words in a prohibition of it, in percent.
const FORBIDDEN_PERCENT_MIN: usize = 80;

/// Returns the main field of `claim` that its evidence contradicts.
pub(super) fn negated(claim: &Claim, evidence: &[Evidence], slice: &Slice) -> Option<&'static str> {
    if let Claim::Request(it) = claim {
        return is_forbidden(&it.summary, evidence, slice).then_some("summary");
    }
    let fields = match claim {
        Claim::Decision(it) => vec![("chosen", it.chosen.as_str())],
        Claim::Attempt(it) if it.succeeded => {
            vec![("action", it.action.as_str()), ("result", it.result.as_str())]
        }
        Claim::Attempt(_) | Claim::Discussion(_) | Claim::Request(_) => Vec::new(),
    };
    // Skips negative claims. A rationale may be negative; action and result count as one.
    if fields.iter().any(|(_, text)| is_negative(text)) {
        return None;
    }
    fields
        .into_iter()
        .find(|(field, text)| is_contradicted(text, field, evidence, slice))
        .map(|(field, _)| field)
}

/// True if the evidence prohibits what a wish without a negation asks for, and asks for it nowhere. A problem that it
/// describes (`the app does not check the size`) is no prohibition.
fn is_forbidden(wish: &str, evidence: &[Evidence], slice: &Slice) -> bool {
    if plain(wish).any(is_negation) {
        return false;
    }
    let wanted = keys_of(wish);
    let sentences =
        evidence.iter().flat_map(|it| whole_sentences(it, slice).split_inclusive(SENTENCE_ENDS));
    // A question, as in `can't you add it?`, prohibits nothing.
    let told = sentences.filter(|sentence| !sentence.ends_with('?'));
    let clauses = told.flat_map(|sentence| sentence.split(CLAUSE_ENDS));
    let mut forbids = false;
    for clause in clauses {
        let held = keys_of(clause).intersection(&wanted).count() * 100;
        let mut from_verb = plain(clause).skip_while(|word| BEFORE_WISH.contains(&&*lowered(word)));
        let begin = from_verb.find(|word| !word.eq_ignore_ascii_case("do"));
        let is_prohibition = begin.is_some_and(is_negation)
            && !from_verb.any(|word| AFFIRMING.contains(&&*lowered(word)));
        if is_prohibition {
            forbids |= FORBIDDEN_PERCENT_MIN * wanted.len() <= held;
        } else if ABOUT_PERCENT_MIN * wanted.len() <= held {
            return false;
        }
    }
    forbids
}

fn keys_of(text: &str) -> HashSet<u64> {
    let mut keys = HashSet::default();
    words(text, |word| {
        keys.insert(word.key);
    });
    keys
}

/// True if the evidence has sentences about `text`, each negates one of its words, and none affirms that word.
fn is_contradicted(text: &str, field: &str, evidence: &[Evidence], slice: &Slice) -> bool {
    let wanted = keys_of(text);
    let about_min = match field {
        "result" if wanted.len() <= FEW_WORDS => 100,
        _ => ABOUT_PERCENT_MIN,
    };
    let ours = evidence.iter().filter(|it| it.field == field);
    let sentences = ours.flat_map(|it| whole_sentences(it, slice).split_inclusive(SENTENCE_ENDS));
    let (mut turned, mut affirmed) = (HashSet::default(), HashSet::default());
    // Words of what is not there, unless the field is stated elsewhere.
    let (mut missing, mut is_stated) = (HashSet::default(), false);
    for sentence in sentences {
        let mut held = HashSet::default();
        words(sentence, |word| {
            held.extend(wanted.contains(&word.key).then_some(word.key));
        });
        // A question neither affirms nor denies.
        let asks = sentence.trim_end().ends_with('?');
        let is_about = |percent| wanted.len() * percent <= held.len() * 100;
        if asks || held.is_empty() || !is_about(AFFIRMING_PERCENT_MIN) {
            continue;
        }
        let said = negated_words(sentence, &held);
        if is_about(about_min) && said.negated.is_empty() {
            return false;
        }
        is_stated |= said.negated.is_empty();
        affirmed.extend(said.affirmed);
        if is_about(about_min) {
            let of = if tells_lack(sentence) { &mut missing } else { &mut turned };
            of.extend(said.negated);
        }
    }
    if !is_stated {
        turned.extend(missing);
    }
    turned.difference(&affirmed).next().is_some()
}

/// True if every negation in the sentence tells that something is not there.
fn tells_lack(sentence: &str) -> bool {
    let words: Vec<&str> = plain(sentence).collect();
    let mut negated = (0..words.len()).filter(|at| is_negation(words[*at]));
    negated
        .all(|at| at.checked_sub(1).is_some_and(|before| LACKS.contains(&&*lowered(words[before]))))
}

/// Words of `evidence`, extended back to the start of its first sentence.
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

/// Words of a field in a sentence.
struct HeldWords {
    /// Negated in a clause, and affirmed in none.
    negated: HashSet<u64>,
    affirmed: HashSet<u64>,
}

/// Sorts the words in `held` by whether a clause of the sentence negates them.
fn negated_words(sentence: &str, held: &HashSet<u64>) -> HeldWords {
    let (mut negated, mut affirmed) = (HashSet::default(), HashSet::default());
    for clause in sentence.split(CLAUSE_ENDS) {
        let clause: Vec<&str> = plain(clause).collect();
        let mut near = HashSet::default();
        let is_partial = |word| SHARED_WORDS_MAX < held.len() && PARTIAL_NEGATIONS.contains(&word);
        let is_condition = |at: usize| {
            let around = at.checked_sub(1).and_then(|before| clause.get(before..at + 2));
            let is_null = clause.get(at + 1).is_some_and(|it| it.eq_ignore_ascii_case("null"));
            is_null
                || around.is_some_and(|it| {
                    IF_NOT_EXISTS.iter().zip(it).all(|(a, b)| a.eq_ignore_ascii_case(b))
                })
        };
        let allows = |at: usize| {
            clause.get(at + 1).is_some_and(|next| OBJECTIONS.contains(&&*lowered(next)))
        };
        let denies = |at: &usize| {
            let word = clause[*at];
            is_negation(word) && !is_partial(word) && !is_condition(*at) && !allows(*at)
        };
        let denials: Vec<usize> = (0..clause.len()).filter(denies).collect();
        // "A doesn't block; B does" affirms the verb, of B.
        let elides = clause.last().is_some_and(|it| matches!(*it, "do" | "does" | "did"));
        if denials.is_empty() && elides {
            let mut is_of_field = false;
            words(&clause.join(" "), |word| is_of_field |= held.contains(&word.key));
            affirmed.extend(negated.iter().filter(|_| is_of_field));
        }
        for at in denials {
            let only = clause.get(at + 1).is_some_and(|it| matches!(*it, "only" | "just" | "nur"));
            near.extend(match TRAILING_NEGATIONS.contains(&clause[at]) {
                true => at.saturating_sub(1)..at,
                false if only => at..at,
                false => at + 1..at + 1 + NEGATION_SCOPE_WORDS,
            });
        }
        for (at, word) in clause.iter().enumerate() {
            let to = if near.contains(&at) { &mut negated } else { &mut affirmed };
            words(word, |word| to.extend(held.contains(&word.key).then_some(word.key)));
        }
    }
    negated.retain(|word| !affirmed.contains(word));
    HeldWords { negated, affirmed }
}

fn plain(text: &str) -> impl Iterator<Item = &str> {
    let words =
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '’');
    words.filter(|word| !word.is_empty())
}

/// Positions of the negations in `text`.
pub(super) fn negations(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    plain(text).filter(|word| is_negation(word)).map(|word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        start..start + word.len()
    })
}

fn is_negation(word: &str) -> bool {
    let word = lowered(word);
    is_no(&word)
        || ["n't", "n’t"].iter().any(|ending| word.ends_with(ending))
        || word.contains('y') && TURKISH_NEGATION_INFIXES.iter().any(|inside| word.contains(inside))
}

/// True if `text` takes something out: `took the address off`, `took the address of the trailer out of the plan`.
fn takes_away(text: &str) -> bool {
    let words: Vec<_> = plain(text).map(lowered).collect();
    let is_away = |word: &&str| AWAY.contains(word);
    let mut taking = (0..words.len()).filter(|at| TAKING.contains(&&*words[*at]));
    taking.any(|at| {
        let rest: Vec<&str> = words[at + 1..].iter().map(|it| &**it).collect();
        rest.iter().take(2 * NEGATION_SCOPE_WORDS).any(is_away)
            || rest.windows(2).any(|it| it == ["out", "of"])
    })
}

fn is_negative(text: &str) -> bool {
    // In `exit 0: tests pass` and `0.3 s` nothing is counted.
    let counted: Vec<&str> = text.split_whitespace().collect();
    let counts_nothing = |at: usize| {
        ZEROS.iter().any(|zero| zero.eq_ignore_ascii_case(counted[at]))
            && counted.get(at + 1).is_some_and(|next| next.starts_with(char::is_alphabetic))
            && at.checked_sub(1).is_none_or(|before| !STATUS_WORDS.contains(&counted[before]))
    };
    (0..counted.len()).any(counts_nothing)
        || takes_away(text)
        || plain(text).any(|word| {
            let lower = lowered(word);
            is_negation(word)
                || EXCLUSIVE.contains(&&*lower)
                || NEGATIVE_STEMS.iter().any(|stem| lower.starts_with(stem))
        })
}
