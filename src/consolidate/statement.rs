//! The head of a claim taken apart for the rules: the words that name its matter, its values, whether it says no. Two
//! statements are of one matter if neither has a word for the matter that the other lacks.

use super::key_set::{both, shared, sort, without};
use super::phrases::{is_deed, is_exact, is_light, says_change, says_no};
use super::quantity::quantity;
use crate::domain::Claim;
use crate::text::tokens::{folded, hash, search_keys};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Words of the matter that both must have, so that they have one at all.
const MATTER_MIN: usize = 2;
/// Words of the matter that a later statement may leave out when it names the value that it replaces.
const LEFT_OUT_MAX: usize = 3;

/// A claim's head, and what else it says about values and change.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// The words that name the matter, sorted.
    matter: Vec<u64>,
    /// Quantities and exact names of the head, sorted.
    values: Vec<u64>,
    /// Quantities, exact names and words of everything the claim says, sorted.
    all: Vec<u64>,
    /// Words that only some of its options have: they are values too.
    choices: Vec<u64>,
    pub(super) says_no: bool,
    /// The matter's words as they stand, where their order makes the meaning, as in `from A to B`.
    order: Vec<u64>,
    pub(super) says_change: bool,
    /// Tells of something that was done, and not only looked into, planned or begun.
    pub(super) is_deed: bool,
}

impl Statement {
    pub(super) fn of(claim: &Claim) -> Statement {
        let head = Parts::of(&head(claim));
        let strings = claim.strings();
        let whole: Vec<&str> = strings.into_iter().map(|(_, text)| text).collect();
        let whole = whole.join("\n");
        let flat = folded(&whole);
        let Parts { matter: words, values, .. } = Parts::of(&whole);
        let mut all = [words, values].concat();
        sort(&mut all);
        Statement {
            says_no: says_no(&head.folded),
            order: head.order,
            says_change: says_change(&flat),
            is_deed: is_deed(&head.folded, &flat),
            choices: choices(claim),
            matter: head.matter,
            values: head.values,
            all,
        }
    }

    /// True if both say the same of the same matter.
    pub(super) fn repeats(&self, other: &Statement) -> bool {
        let weight = self.matter.len() + self.values.len();
        self.matter == other.matter
            && self.values == other.values
            && self.says_no == other.says_no
            && self.order == other.order
            && weight > MATTER_MIN
    }

    /// True if this statement, the later one, is about the very matter of `former` with another value: it adds no word
    /// that narrows the matter, and leaves out some only where it names the former value.
    pub(super) fn revises(&self, former: &Statement) -> bool {
        let mut choices = [self.choices.as_slice(), former.choices.as_slice()].concat();
        sort(&mut choices);
        let matter = without(&self.matter, &choices);
        let before = without(&former.matter, &choices);
        let common = shared(&matter, &before);
        let adds = matter.len() - common;
        let leaves_out = before.len() - common;
        let given_up = without(&former.values, &self.all).len() < former.values.len()
            || shared(&self.all, &without(&former.matter, &before)) > 0;
        let differs = self.values != former.values
            || self.says_no != former.says_no
            || without(&self.matter, &matter) != without(&former.matter, &before)
            || (given_up && self.says_change);
        let enough = common >= MATTER_MIN || (common == 1 && leaves_out == 0 && given_up);
        let whole = leaves_out == 0 || (given_up && leaves_out <= LEFT_OUT_MAX);
        differs && enough && adds == 0 && whole
    }

    /// True if it names a value of `former`, the earlier one, or what that chose among alternatives; of its own
    /// alternatives it must name more than one word of that, or share the matter too.
    pub(super) fn gives_up(&self, former: &Statement) -> bool {
        let named = shared(&self.all, &former.values) > 0
            || shared(&self.all, &both(&former.matter, &former.choices)) > 0;
        let own = both(&former.matter, &self.choices);
        let matter = shared(&self.matter, &former.matter);
        (named && matter > 0) || own.len() > 1 || (!own.is_empty() && matter > own.len())
    }

    /// True if every value of `other` is one of this too.
    pub(super) fn lacks_nothing(&self, other: &Statement) -> bool {
        without(&other.values, &self.values).is_empty()
    }

    /// Number of words that name the matter of `other` and stand anywhere in this one, and of all of them.
    pub(super) fn covers(&self, other: &Statement) -> (usize, usize) {
        (shared(&self.all, &other.matter), other.matter.len())
    }

    /// As [`covers`](Statement::covers), of the head alone.
    pub(super) fn names(&self, other: &Statement) -> usize {
        shared(&self.matter, &other.matter)
    }
}

/// The first thing that a claim says: the words that a reader would repeat.
fn head(claim: &Claim) -> String {
    match claim {
        Claim::Decision(it) => it.chosen.clone(),
        Claim::Discussion(it) => it.topic.clone(),
        Claim::Attempt(it) => it.action.clone(),
        Claim::Request(it) => it.summary.clone(),
    }
}

/// Words that some options of a decision have and others lack.
fn choices(claim: &Claim) -> Vec<u64> {
    let Claim::Decision(decision) = claim else { return Vec::new() };
    let options: Vec<Vec<u64>> =
        decision.options.iter().map(|option| Parts::of(option).matter).collect();
    let Some((first, rest)) = options.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Vec::new();
    };
    let in_all = |key: &u64| rest.iter().all(|option| option.binary_search(key).is_ok());
    let common: Vec<u64> = first.iter().filter(|key| in_all(key)).copied().collect();
    let mut choices = without(&options.concat(), &common);
    sort(&mut choices);
    choices
}

/// A text taken apart.
struct Parts {
    folded: String,
    matter: Vec<u64>,
    values: Vec<u64>,
    order: Vec<u64>,
}

/// Words with which the order of the others counts.
const DIRECTIONS: &str = "from to before after into until von zu nach vor bis desde hasta antes después avant après depuis \
     から まで önce sonra";

static DIRECTION_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| DIRECTIONS.split_whitespace().collect());

impl Parts {
    fn of(text: &str) -> Parts {
        let flat = folded(text);
        let words: Vec<&str> = flat.split(' ').map(bare).filter(|word| !word.is_empty()).collect();
        let (mut matter, mut values, mut directed) = (Vec::new(), Vec::new(), false);
        let mut rest = words.as_slice();
        while let Some((word, after)) = rest.split_first() {
            if let Some(quantity) = quantity(rest) {
                values.push(quantity.key);
                rest = rest.get(quantity.words..).unwrap_or_default();
                continue;
            }
            rest = after;
            directed |= DIRECTION_WORDS.contains(word);
            if is_exact(word) {
                values.push(hash(word));
            } else if !is_light(word) {
                search_keys(word, |key| matter.push(key));
            }
        }
        let order = if directed { matter.clone() } else { Vec::new() };
        sort(&mut matter);
        sort(&mut values);
        Parts { folded: flat, matter, values, order }
    }
}

/// A word without the marks around it; a path keeps its slash.
fn bare(word: &str) -> &str {
    let marks =
        |letter: char| !letter.is_alphanumeric() && !matches!(letter, '/' | '%' | '€' | '$');
    word.trim_end_matches(marks).trim_start_matches(|letter| marks(letter) && letter != ':')
}
