//! Main string of a claim, analysed for the rules: topic words, values, negation. Two statements
//! have the same topic if neither has a topic word that the other lacks.

use super::deed::{Deed, without_means};
use super::key_set::{both, shared, sort, without};
use super::parts::{Parts, WordOrder};
use super::phrases::{
    BEFORE_PERMITTED, MEASURE_NOUNS, PERMISSION, is_double_negation, is_finished, is_in,
    is_preparation, is_stop_word, may_say_again, says_again, says_change, says_no, says_shift,
    says_withdrawn, topic_keys,
};
use super::quantity::{days, has_day, quantity, words_of};
use super::retraction::{Retraction, Stated};
use crate::domain::Claim;
use crate::text::tokens::folded;
use std::sync::LazyLock;

/// Minimum number of shared topic words; with fewer there is no topic.
const TOPIC_WORDS_MIN: usize = 2;
/// Maximum number of topic words that a later statement may omit if it names the value it replaces.
const LEFT_OUT_MAX: usize = 3;

/// Main string of a claim, and what the rest says about values and change.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// Topic words, sorted.
    topic: Vec<u64>,
    /// Quantities and exact names of the main string, sorted.
    values: Vec<u64>,
    /// Quantities, exact names and words of the whole claim, sorted.
    all: Vec<u64>,
    /// Words that only some options have, or that the main string contrasts; they count as values.
    choices: Vec<u64>,
    pub(super) says_no: bool,
    /// Its main string drops something.
    pub(super) withdraws: bool,
    /// Its main string mentions a change.
    pub(super) is_change: bool,
    /// Only denies something, which puts nothing in the place of anything.
    denies: bool,
    /// Requires a person's permission, as `ask before …` and `not … without asking` do.
    needs_permission: bool,
    /// Topic words in order, if the order carries meaning, as in `from A to B`.
    order: WordOrder,
    /// Bounds set by stop words such as `before` and `below`, sorted.
    bounds: Vec<usize>,
    /// Topic words right after a form of `be`, as in `mails are sent`, sorted.
    predicates: Vec<u64>,
    /// Says that something stays as it is.
    keeps: bool,
    pub(super) says_change: bool,
    /// Says that it was said before.
    says_again: bool,
    may_say_again: bool,
    pub(super) deed: Deed,
    /// Words and values of an attempt's action, without its first word and its means, sorted.
    things: Vec<u64>,
    /// Only investigates, plans or begins something.
    pub(super) is_preparation: bool,
    /// Leaves nothing to do.
    pub(super) is_finished: bool,
    stated: Stated,
    /// Words and values of rejected options, sorted.
    weighed: Vec<u64>,
    /// Words and values of each option, sorted.
    options: Vec<Vec<u64>>,
    pub(super) retraction: Retraction,
}

impl Statement {
    pub(super) fn of(claim: &Claim) -> Statement {
        let mut head = Parts::of(main_text(claim));
        let strings = claim.strings();
        let whole: Vec<&str> = strings.into_iter().map(|(_, text)| text).collect();
        let whole = whole.join("\n");
        let flat = folded(&whole);
        let changes = says_change(&flat);
        let stated = Stated::of(&head.folded, changes);
        let options = options(claim);
        let needs_leave = needs_permission(&head.folded);
        if needs_leave {
            head.topic.retain(|key| LEAVE_WORDS.binary_search(key).is_err());
            head.bounds.clear();
            head.order = WordOrder { words: Vec::new(), turn: None };
        }
        let Parts { topic: words, values, .. } = Parts::of(&affirmed(claim, &whole));
        let mut all = [words, values].concat();
        sort(&mut all);
        let says_no = !needs_leave
            && !stated.nobody_else
            && says_no(&head.folded)
            && !is_double_negation(&head.folded);
        let is_change = says_change(&head.folded);
        let deed = Deed::of(claim, &head.folded);
        Statement {
            says_no,
            withdraws: says_withdrawn(&head.folded),
            is_change,
            denies: says_no && !is_change,
            needs_permission: needs_leave,
            order: head.order,
            bounds: head.bounds,
            predicates: head.predicates,
            keeps: head.keeps,
            says_change: changes,
            weighed: weighed(&options, &stated),
            options,
            stated,
            retraction: match claim {
                Claim::Decision(_) => Retraction::of(&folded(&whole.replace('\n', ". "))),
                Claim::Discussion(_) | Claim::Attempt(_) | Claim::Request(_) => {
                    Retraction::default()
                }
            },
            says_again: says_again(&flat),
            may_say_again: may_say_again(&flat),
            things: match claim {
                Claim::Attempt(_) => things(&deed, &head.folded),
                Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_) => Vec::new(),
            },
            deed,
            is_preparation: is_preparation(&head.folded),
            is_finished: is_finished(&flat),
            choices: choices(claim, &head.folded),
            topic: head.topic,
            values: head.values,
            all,
        }
    }

    /// True if both say the same about the same topic.
    pub(super) fn repeats(&self, other: &Statement) -> bool {
        let topic = without(&self.topic, &CLASSES);
        let binding = usize::from(self.needs_permission) + usize::from(self.says_no);
        let weight = self.topic.len() + self.values.len() + self.bounds.len() + binding;
        self.is_bound_as(other)
            && topic == without(&other.topic, &CLASSES)
            && self.is_ordered_as(other)
            && weight > TOPIC_WORDS_MIN
    }

    /// True if this chose to keep what `former` says, without a topic word that `former` lacks.
    pub(super) fn retains(&self, former: &Statement) -> bool {
        let chosen = both(&self.topic, &self.choices);
        let left_out = without(&former.topic, &self.topic);
        self.keeps
            && self.is_bound_as(former)
            && (!chosen.is_empty() || !self.values.is_empty())
            && self.topic.len() + self.values.len() > TOPIC_WORDS_MIN
            && without(&self.topic, &former.topic).is_empty()
            && left_out.iter().all(|key| former.is_verb(key))
    }

    /// True if word order makes no difference between the two: `Ann asks Bob` is not `Bob asks Ann`.
    pub(super) fn is_ordered_as(&self, other: &Statement) -> bool {
        // Words that one states and the other retracts.
        let lost = |it: &Statement, from: &Statement| {
            shared(&without(&it.stated.keys, &from.stated.keys), &from.topic)
        };
        // Who is asked, or the only one, is known without the order.
        let is_told = self.needs_permission || self.stated.only.is_some();
        // `insure no parcels` is `parcels are not insured`.
        let is_free = |key: &u64| self.is_verb(key) && other.is_verb(key);
        let in_order = || self.stated.is_in_order_of(&other.stated, &self.values, is_free);
        let is_ordered = is_told || in_order();
        self.order.says_as(&other.order)
            && self.stated.only == other.stated.only
            && is_ordered
            && lost(self, other) + lost(other, self) == 0
    }

    /// True if both have the same values and bounds, and deny or drop something or do not.
    pub(super) fn is_bound_as(&self, other: &Statement) -> bool {
        self.values == other.values
            && self.says_no == other.says_no
            && self.withdraws == other.withdraws
            && self.is_bounded_as(other)
    }

    fn is_bounded_as(&self, other: &Statement) -> bool {
        self.bounds == other.bounds
            && self.needs_permission == other.needs_permission
            && self.stated.only == other.stated.only
    }

    /// True if this later statement gives the exact topic of `former` another value. It may add no
    /// topic word, and omit some only if it names the former value.
    pub(super) fn revises(&self, former: &Statement) -> bool {
        let SharedTopic { choices, own, before, common } = self.beside(former);
        let leaves_out = before.len() - common;
        let given_up = self.names_value(former, &choices);
        let differs = self.values != former.values
            || self.says_no != former.says_no
            || without(&self.topic, &own) != without(&former.topic, &before)
            || (given_up && self.says_change);
        let enough = common >= TOPIC_WORDS_MIN || (common == 1 && leaves_out == 0 && given_up);
        let whole = leaves_out == 0 || (given_up && leaves_out <= LEFT_OUT_MAX);
        // To deny another value or choice leaves the former one.
        let chosen = both(&self.topic, &choices);
        let is_other = self.values != former.values || !without(&chosen, &former.topic).is_empty();
        let denies_other = self.denies && is_other;
        differs && enough && own.len() == common && whole && !denies_other && !self.narrows(former)
    }

    /// True if this later statement, which mentions a change, negates the topic of `former` or
    /// gives it another value in fewer words: words of change refer to an earlier statement.
    pub(super) fn presupposes(&self, former: &Statement) -> bool {
        let SharedTopic { own, before, common, .. } = self.beside(former);
        let measured = !both(&before, &MEASURES).is_empty();
        let adds = without(&without(&own, &before), if measured { &[] } else { &MEASURES });
        let leaves_out = before.len() - common;
        let valued = !self.values.is_empty() && !former.values.is_empty();
        // It may negate one of its own alternatives. Negating the whole negates a part of it.
        let turns = self.says_no && !former.says_no && self.is_within(former);
        let least = if turns { LEFT_OUT_MAX } else { common.min(LEFT_OUT_MAX) };
        let is_about_it = common >= TOPIC_WORDS_MIN && leaves_out <= least && adds.is_empty();
        let differs = turns || (valued && self.values != former.values);
        is_about_it && differs && !self.narrows(former)
    }

    /// True if its value holds only on a day of the week.
    fn narrows(&self, former: &Statement) -> bool {
        has_day(&self.values) && !has_day(&former.values) && !former.values.is_empty()
    }

    fn beside(&self, former: &Statement) -> SharedTopic {
        let mut choices = [self.choices.as_slice(), former.choices.as_slice()].concat();
        sort(&mut choices);
        let own = without(&self.topic, &choices);
        let before = without(&former.topic, &choices);
        SharedTopic { common: shared(&own, &before), choices, own, before }
    }

    /// True if this statement says that it repeats something, and `other` says it in other words.
    /// If it only may say so, one must contain the other.
    pub(super) fn says_again(&self, other: &Statement, retraction: &Retraction) -> bool {
        let common = shared(&self.topic, &other.topic);
        let (adds, leaves_out) = (self.topic.len() - common, other.topic.len() - common);
        let told = retraction.says_again && (common > TOPIC_WORDS_MIN || adds.min(leaves_out) == 0);
        let close = (self.says_again || told) && common >= adds.max(leaves_out);
        let may = self.may_say_again && !self.says_change;
        let within = may && adds.min(leaves_out) == 0 && adds.max(leaves_out) <= common;
        self.values == other.values
            && self.says_no == other.says_no
            && common + usize::from(self.needs_permission) >= TOPIC_WORDS_MIN
            && self.is_bounded_as(other)
            && !self.order.is_turned(&other.order)
            && (close || within)
    }

    /// True if the rest of the claim names a value of `former`, or it rejected what `former` chose, so
    /// that it knows of it.
    pub(super) fn knows(&self, former: &Statement) -> bool {
        let rest = without(&self.all, &self.values);
        (!self.values.is_empty() && shared(&rest, &former.values) > 0)
            || shared(&self.weighed, &former.topic) > 0
    }

    /// True if this later statement drops what `former` says and puts something else in its place.
    /// `retraction` is about the whole claim.
    pub(super) fn replaces(&self, former: &Statement, retraction: &Retraction) -> bool {
        let (own, before) = (&self.stated, &former.stated);
        let lost = without(&before.keys, &own.keys);
        let mut given = [retraction.retracted.as_slice(), &self.weighed].concat();
        sort(&mut given);
        let (common, named) = (shared(&own.keys, &before.keys), shared(&lost, &given));
        // A lost verb may have been exchanged; most other lost words must be mentioned.
        let untold = without(&lost, &retraction.all);
        let swapped = before.keys.len() > 1 && untold.is_empty() && own.swaps(before);
        let enough = match common {
            0 => false,
            1 => untold.iter().all(|key| former.is_verb(key)),
            _ => untold.len() < LEFT_OUT_MAX,
        };
        let (gone, came) =
            (without(&former.values, &own.keys), without(&self.values, &former.values));
        let of_amount = !gone.is_empty() && !came.is_empty();
        enough
            && own.keys.len() > common
            && (named > 0 || swapped)
            && !retraction.refuses
            && !self.denies
            && !self.narrows(former)
            && !own.narrows(before, of_amount, &retraction.all)
    }

    /// True if this later statement names the option that `former` took as retracted, or as rejected with
    /// words of change, and takes another one. At most one of them may be about something that the other lacks.
    pub(super) fn takes_another(&self, former: &Statement, retraction: &Retraction) -> bool {
        let (Some(own), Some(before)) = (self.taken(), former.taken()) else { return false };
        let is_known = self.options.contains(before)
            && (without(before, &retraction.retracted).is_empty()
                || (self.says_change && former.options.contains(own)));
        let named = words_of_options(&self.options, &former.options);
        let rest =
            |it: &Statement| without(&without(&it.stated.keys, &named), &retraction.retracted);
        let (own_rest, rest) = (rest(self), rest(former));
        is_known
            && own != before
            && !retraction.refuses
            && !self.denies
            && (without(&own_rest, &rest).is_empty() || without(&rest, &own_rest).is_empty())
            && !self.narrows(former)
            && !self.stated.has_new_qualifier(&former.stated, false, &retraction.all)
    }

    /// The only option that the main string states.
    fn taken(&self) -> Option<&Vec<u64>> {
        let mut taken = self.options.iter().filter(|it| without(it, &self.stated.keys).is_empty());
        taken.next().filter(|_| taken.next().is_none())
    }

    /// True for a predicate, or for the first word, which may be one.
    fn is_verb(&self, key: &u64) -> bool {
        self.predicates.binary_search(key).is_ok() || self.stated.sequence.first() == Some(key)
    }

    /// True if this later statement says something else about the subject of `former` and retracts
    /// what was said about it.
    pub(super) fn takes_back(&self, former: &Statement, retraction: &Retraction) -> bool {
        let (own, before) = (&self.stated, &former.stated);
        let regrets = |words: &Vec<u64>| {
            shared(words, &before.keys) > 0 || without(words, &FORMER).is_empty()
        };
        let denied = own.denied.len() >= TOPIC_WORDS_MIN
            && without(&own.denied, &before.keys).is_empty()
            && retraction.changes
            && !former.says_no;
        let common = shared(&own.keys, &before.keys);
        let back = retraction.regrets.as_ref().is_some_and(regrets)
            && common > 0
            && (common < before.keys.len() || (self.says_no && !former.says_no))
            && !retraction.refuses
            && own.is_of_subject(before);
        denied || (back && !own.has_new_qualifier(before, false, &retraction.all))
    }

    /// True if it has another thing in the place of one of `request`, such as another module. The name
    /// of what was made is none.
    pub(super) fn exchanges(&self, request: &Statement) -> bool {
        let (mut own, asked) = (self.stated.clone(), &request.stated);
        if self.lacks_nothing(request) {
            let new = without(&self.values, &request.values);
            own.sequence.retain(|key| new.binary_search(key).is_err());
        }
        own.exchanges(asked)
    }

    /// True if this decision retracts something of `request`, or mentions a change that it does not ask for.
    pub(super) fn opposes(&self, request: &Statement) -> bool {
        shared(&self.retraction.retracted, &request.topic) > 0
            || (self.is_change && !request.is_change)
    }

    /// True if this attempt retries or repairs what `failed` tried, and on nothing else, such as another site.
    pub(super) fn retries(&self, failed: &Statement) -> bool {
        let lacks = |it: &Statement, key: &u64| it.all.binary_search(key).is_err();
        let adds = self.things.iter().any(|key| lacks(failed, key));
        let loses = failed.things.iter().any(|key| lacks(self, key));
        let is_same = || self.deed.repeats(&failed.deed) && !(adds && loses);
        !self.deed.gives_up(&failed.deed) && (self.deed.mends(&failed.deed) || is_same())
    }

    /// True if both have values for about the same topic, but not the same ones.
    pub(super) fn is_valued_otherwise(&self, other: &Statement) -> bool {
        let common = shared(&self.topic, &other.topic);
        let least = self.topic.len().min(other.topic.len()).div_ceil(2).max(TOPIC_WORDS_MIN);
        let valued = !self.values.is_empty() && !other.values.is_empty();
        valued && self.values != other.values && common >= least
    }

    /// True if it names an alternative of `question` and everything else that is asked.
    pub(super) fn answers(&self, question: &Statement) -> bool {
        let about = without(&question.topic, &question.choices);
        let named = shared(&question.choices, &self.topic);
        // A question may consist of its alternatives.
        let least = if about.is_empty() { TOPIC_WORDS_MIN } else { 1 };
        named >= least && without(&about, &self.topic).is_empty()
    }

    /// True if it names an alternative of `question`, or that has none.
    pub(super) fn names_choice(&self, question: &Statement) -> bool {
        question.choices.is_empty() || shared(&question.choices, &self.all) > 0
    }

    /// Topic words of the main string, sorted.
    pub(super) fn topic(&self) -> &[u64] {
        &self.topic
    }

    /// True if it names a day of the week that `question` names, or `question` names none.
    pub(super) fn is_on_day_of(&self, question: &Statement) -> bool {
        let mut asked = days(&question.values).peekable();
        asked.peek().is_none() || asked.any(|day| self.all.binary_search(&day).is_ok())
    }

    /// True if it has no topic word that `other` lacks.
    pub(super) fn is_within(&self, other: &Statement) -> bool {
        without(&self.topic, &other.all).is_empty()
    }

    /// True if it names a value of the earlier `former`, or what that chose among alternatives, beside another word
    /// of its topic. If only this one has alternatives, `former` must have several of their words, or share the topic.
    pub(super) fn gives_up(&self, former: &Statement) -> bool {
        let own = both(&former.topic, &self.choices);
        let topic = both(&self.topic, &former.topic);
        let beside = |named: &[u64]| !named.is_empty() && !without(&topic, named).is_empty();
        beside(&both(&self.all, &former.values))
            || beside(&both(&topic, &former.choices))
            || own.len() > 1
            || (!own.is_empty() && topic.len() > own.len())
    }

    /// True if it names a value of `former`, or one of its topic words in `choices`.
    fn names_value(&self, former: &Statement, choices: &[u64]) -> bool {
        shared(&self.all, &former.values) > 0
            || shared(&self.all, &both(&former.topic, choices)) > 0
    }

    /// True if the main string has neither quantities nor exact names.
    pub(super) fn has_no_value(&self) -> bool {
        self.values.is_empty()
    }

    /// True if it has every value of `other`.
    pub(super) fn lacks_nothing(&self, other: &Statement) -> bool {
        without(&other.values, &self.values).is_empty()
    }

    /// Number of topic words of `other` that this claim has anywhere, and number of all of them.
    pub(super) fn covers(&self, other: &Statement) -> (usize, usize) {
        (shared(&self.all, &other.topic), other.topic.len())
    }

    /// True if this claim has the topic word anywhere.
    pub(super) fn has(&self, key: u64) -> bool {
        self.all.binary_search(&key).is_ok()
    }

    /// True if this claim has another word than `request` for the same deed.
    pub(super) fn exchanges_verb(&self, request: &Statement) -> bool {
        let verb = self.deed.verb_of(&request.deed);
        verb.is_some_and(|key| !self.has(key))
    }

    /// Like [`covers`](Statement::covers), for the main string only.
    pub(super) fn names(&self, other: &Statement) -> usize {
        shared(&self.topic, &other.topic)
    }
}

/// Topic words of two statements, without those of alternatives.
struct SharedTopic {
    choices: Vec<u64>,
    own: Vec<u64>,
    before: Vec<u64>,
    common: usize,
}

/// Main string of a claim: the words that a reader would repeat.
pub(super) fn main_text(claim: &Claim) -> &str {
    match claim {
        Claim::Decision(it) => &it.chosen,
        Claim::Discussion(it) => &it.topic,
        Claim::Attempt(it) => &it.action,
        Claim::Request(it) => &it.summary,
    }
}

/// Full text of a claim, which is `whole`. Leaves out negative clauses of an attempt's result: what
/// is missing was not done.
fn affirmed(claim: &Claim, whole: &str) -> String {
    let Claim::Attempt(it) = claim else { return whole.to_owned() };
    let clauses = it.result.split("; ").flat_map(|part| part.split(", "));
    let clauses = clauses.filter(|clause| !says_no(&folded(clause)));
    let clauses: Vec<&str> = std::iter::once(it.action.as_str()).chain(clauses).collect();
    clauses.join("\n")
}

/// Words that only some options of a decision have, and those that its main string contrasts.
fn choices(claim: &Claim, head: &str) -> Vec<u64> {
    let options = if let Claim::Decision(it) = claim { it.options.as_slice() } else { &[] };
    let options: Vec<Vec<u64>> = options.iter().map(|option| Parts::of(option).topic).collect();
    let mut choices = match claim {
        Claim::Decision(_) => opposed(head, OPPOSED),
        Claim::Discussion(_) => opposed(head, OR),
        Claim::Attempt(_) | Claim::Request(_) => Vec::new(),
    };
    if let Some((first, rest)) = options.split_first().filter(|(_, rest)| !rest.is_empty()) {
        let in_all = |key: &u64| rest.iter().all(|option| option.binary_search(key).is_ok());
        let common: Vec<u64> = first.iter().filter(|key| in_all(key)).copied().collect();
        choices.extend(without(&options.concat(), &common));
    }
    sort(&mut choices);
    choices
}

/// Words and values of the folded `head` without its first word and its means, sorted.
fn things(deed: &Deed, head: &str) -> Vec<u64> {
    let Parts { topic, values, .. } = Parts::of(&without_means(head));
    let mut all = [topic, values].concat();
    sort(&mut all);
    without(&all, &Vec::from_iter(deed.first_word()))
}

fn words_of_options(one: &[Vec<u64>], other: &[Vec<u64>]) -> Vec<u64> {
    let mut all = [one.concat(), other.concat()].concat();
    sort(&mut all);
    all
}

/// Words and values of each option of a decision, sorted.
fn options(claim: &Claim) -> Vec<Vec<u64>> {
    let Claim::Decision(it) = claim else { return Vec::new() };
    let options = it.options.iter().map(|option| Stated::of(&folded(option), false).keys);
    options.filter(|keys| !keys.is_empty()).collect()
}

/// Words and values of the options other than the `stated` one; none if no option is stated.
fn weighed(options: &[Vec<u64>], stated: &Stated) -> Vec<u64> {
    let is_taken = |option: &Vec<u64>| without(option, &stated.keys).is_empty();
    let mut all = if options.iter().any(is_taken) { options.concat() } else { Vec::new() };
    sort(&mut all);
    without(&all, &stated.keys)
}

/// Words for an earlier statement.
static FORMER: LazyLock<Vec<u64>> = LazyLock::new(|| {
    keys_of(
        "said say earlier former old person decision rule alte ansage gilt gelten entscheidung regel ancienne décision règle \
     antes decisión regla",
    )
});

/// Words between a thing and what it replaces.
const OPPOSED: &str = "instead of|rather than|statt|anstatt|anstelle|au lieu de|en vez de|en lugar de|invece di|вместо";
/// Words between the alternatives of a question.
const OR: &str = "or|oder|ou|o|или";
/// Prepositions for the source of a move, and for its target.
const MOVED_FROM: &str = "from von";
const MOVED_TO: &str = "to auf zu à на";

/// Nouns for the class of a named thing, as in `Parquet files`: they add nothing.
static CLASSES: LazyLock<Vec<u64>> = LazyLock::new(|| {
    keys_of(
        "file files system systems day days datei dateien tag tage fichier fichiers archivo archivos",
    )
});

/// Nouns for measured quantities; optional beside a value.
static MEASURES: LazyLock<Vec<u64>> = LazyLock::new(|| keys_of(MEASURE_NOUNS));

/// Words of the folded `head` on both sides of a phrase in `by`, or after prepositions of a move.
fn opposed(head: &str, by: &str) -> Vec<u64> {
    let words = words_of(head);
    let is_said = |word: &&&str| !is_stop_word(word) && quantity(&[word]).is_none();
    let by: Vec<Vec<&str>> = by.split('|').map(|said| said.split(' ').collect()).collect();
    let is_move = |word: &str| is_in(MOVED_FROM, word) || is_in(MOVED_TO, word);
    // In `switch parcels to Ulm over to rail`, only the last one is the target.
    let target = words.iter().rposition(|word| is_in(MOVED_TO, word));
    // `cut the batches to Gmail down to 80`: the value is the target.
    let is_to_value =
        |it: &[&str]| matches!(it, [word, rest @ ..] if is_move(word) && quantity(rest).is_some());
    let shifts = says_shift(head) && !(0..words.len()).any(|at| is_to_value(&words[at..]));
    let mut found = Vec::new();
    for at in 0..words.len() {
        let (before, after) = words.split_at(at);
        let opposed = by.iter().find(|said| after.starts_with(said));
        let is_moved = |word: &&str| is_in(MOVED_FROM, word) || target == Some(at);
        let moves = shifts && after.first().is_some_and(is_moved);
        if opposed.is_none() && !moves {
            continue;
        }
        let rest = after.iter().skip(opposed.map_or(1, |said| said.len()));
        let rest: Vec<&&str> =
            rest.skip_while(|word| is_stop_word(word)).take_while(is_said).collect();
        // In `five slots instead of eight`, only the numbers are opposed.
        let has_near = opposed.is_some() && !rest.is_empty();
        let near = before.iter().rev().take_while(is_said).filter(|_| has_near);
        rest.into_iter().chain(near).for_each(|word| topic_keys(word, |key| found.push(key)));
    }
    found
}

/// True if the folded main string requires a person's permission.
fn needs_permission(head: &str) -> bool {
    let says = |list: &str| words_of(head).into_iter().any(|word| is_in(list, word));
    says(BEFORE_PERMITTED) && says(PERMISSION)
}

static LEAVE_WORDS: LazyLock<Vec<u64>> = LazyLock::new(|| keys_of(PERMISSION));

fn keys_of(words: &str) -> Vec<u64> {
    let mut keys = Vec::new();
    words.split_whitespace().for_each(|word| topic_keys(word, |key| keys.push(key)));
    sort(&mut keys);
    keys
}
