//! Main string of a claim, analysed for the rules: topic words, values, negation. Two statements
//! have the same topic if neither has a topic word that the other lacks.

use super::deed::{Deed, without_means};
use super::parts::{Parts, WordOrder, before_reason, both, bound_of, shared, sort, without};
use super::phrases::{
    WordList, all_topic_keys, is_double_negation, is_stop_word, list, says_change, says_no,
};
use super::quantity::{days, has_day, key, quantity, words_of};
use super::question::{question, wish};
use super::stated::Stated;
use crate::domain::Claim;
use crate::text::tokens::folded;

/// Minimum number of shared topic words; with fewer there is no topic.
const TOPIC_WORDS_MIN: usize = 2;
/// Maximum number of topic words that a later statement may omit if it names the value it replaces.
const LEFT_OUT_MAX: usize = 3;

/// Main string of a claim, and what the rest says about values and change.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// The main string.
    head: Parts,
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
    /// Exact names and bare numbers of a request, sorted.
    named: Vec<u64>,
    /// Says that something holds beside what holds already.
    adds: bool,
}

impl Statement {
    pub(super) fn of(claim: &Claim) -> Statement {
        let mut head = match claim {
            Claim::Decision(_) => Parts::of(before_reason(&folded(claim.headline()))),
            Claim::Request(it) => Parts::of(before_reason(&folded(wish(&it.summary)))),
            Claim::Discussion(it) => Parts::of(question(&it.topic)),
            Claim::Attempt(_) => Parts::of(claim.headline()),
        };
        let whole = text(claim);
        let flat = folded(&whole);
        let stated = Stated::of(&head.folded);
        let needs_permission = needs_permission(&head.folded);
        if needs_permission {
            head.topic.retain(|key| list("permission").keys().binary_search(key).is_err());
            head.bounds.clear();
            head.order = WordOrder::default();
        }
        let says_no = !needs_permission
            && !stated.nobody_else
            && says_no(&head.folded)
            && !is_double_negation(&head.folded);
        let is_change = says_change(&head.folded);
        let deed = Deed::of(claim, &head.folded);
        let is_attempt = matches!(claim, Claim::Attempt(_));
        let things = || {
            let words = words_and_values(&without_means(&head.folded));
            without(&words, &Vec::from_iter(deed.first_word()))
        };
        let is_request = matches!(claim, Claim::Request(_));
        if says_no || stated.only.is_some() {
            head.bounds.retain(|bound| Some(bound) != bound_of("may"));
        }
        // Elsewhere `too` is a degree.
        let mut clauses = head.folded.split([',', ';', '.', ':']);
        let ends_with_too = clauses.any(|clause| clause.trim_end().ends_with(" too"));
        Statement {
            says_no,
            withdraws: list("withdrawn").are_in(&head.folded),
            is_change,
            denies: says_no && !is_change,
            needs_permission,
            says_change: says_change(&flat),
            named: if is_request { head.names.clone() } else { Vec::new() },
            adds: list("additions").are_in(&head.folded) || ends_with_too,
            stated,
            says_again: list("repeats").are_in(&flat),
            may_say_again: list("reminds").are_in(&flat),
            things: if is_attempt { things() } else { Vec::new() },
            deed,
            is_preparation: list("preparation").are_in(&head.folded),
            is_finished: !list("unfinished").are_in(&flat),
            choices: choices(claim, &head.folded),
            all: words_and_values(&affirmed(claim, &whole)),
            head,
        }
    }

    /// True if both say the same about the same topic.
    pub(super) fn repeats(&self, other: &Statement) -> bool {
        let topic = without(&self.head.topic, list("classes").keys());
        let binding = usize::from(self.needs_permission) + usize::from(self.says_no);
        let weight =
            self.head.topic.len() + self.head.values.len() + self.head.bounds.len() + binding;
        self.is_bound_as(other)
            && topic == without(&other.head.topic, list("classes").keys())
            && self.is_ordered_as(other)
            && weight > TOPIC_WORDS_MIN
    }

    /// True if this chose to keep what `former` says, without a topic word that `former` lacks.
    pub(super) fn retains(&self, former: &Statement) -> bool {
        let chosen = both(&self.head.topic, &self.choices);
        let left_out = without(&former.head.topic, &self.head.topic);
        self.head.keeps
            && self.is_bound_as(former)
            && (!chosen.is_empty() || !self.head.values.is_empty())
            && (self.head.topic.len() + self.head.values.len() > TOPIC_WORDS_MIN
                || self.head.topic == former.head.topic)
            && without(&self.head.topic, &former.head.topic).is_empty()
            && left_out.iter().all(|key| former.is_verb(key))
    }

    /// True if word order makes no difference between the two: `Ann asks Bob` is not `Bob asks Ann`.
    pub(super) fn is_ordered_as(&self, other: &Statement) -> bool {
        // Who is asked, or the only one, is known without the order.
        let is_told = self.needs_permission || self.stated.only.is_some();
        // `insure no parcels` is `parcels are not insured`.
        let is_free = |key: &u64| self.is_verb(key) && other.is_verb(key);
        let in_order = || self.stated.is_in_order_of(&other.stated, &self.head.values, is_free);
        let is_ordered = is_told || in_order();
        self.head.order.says_as(&other.head.order)
            && self.stated.only == other.stated.only
            && is_ordered
    }

    /// True if both have the same values and bounds, and deny or drop something or do not.
    pub(super) fn is_bound_as(&self, other: &Statement) -> bool {
        self.head.values == other.head.values
            && self.says_no == other.says_no
            && self.withdraws == other.withdraws
            && self.is_bounded_as(other)
    }

    fn is_bounded_as(&self, other: &Statement) -> bool {
        self.head.bounds == other.head.bounds
            && self.needs_permission == other.needs_permission
            && self.stated.only == other.stated.only
    }

    /// True if this later statement gives the exact topic of `former` another value. It may add no
    /// topic word, and omit some only if it names the former value.
    pub(super) fn revises(&self, former: &Statement) -> bool {
        let SharedTopic { choices, own, before, common } = self.beside(former);
        let leaves_out = before.len() - common;
        let given_up = shared(&self.all, &former.head.values) > 0
            || shared(&self.all, &both(&former.head.topic, &choices)) > 0;
        let differs = self.head.values != former.head.values
            || self.says_no != former.says_no
            || without(&self.head.topic, &own) != without(&former.head.topic, &before)
            || (given_up && self.says_change);
        let enough = common >= TOPIC_WORDS_MIN || (common == 1 && leaves_out == 0 && given_up);
        let is_left_out = given_up && leaves_out <= LEFT_OUT_MAX && !self.loses_part_of(former);
        let whole = leaves_out == 0 || is_left_out;
        // To deny another value or choice leaves the former one.
        let chosen = both(&self.head.topic, &choices);
        let is_other = self.head.values != former.head.values
            || !without(&chosen, &former.head.topic).is_empty();
        let denies_other = self.denies && is_other;
        differs && enough && own.len() == common && whole && !denies_other && !self.narrows(former)
    }

    /// True if it is about another named thing than `former`, or adds to it, and names nothing of it.
    pub(super) fn is_of_another(&self, former: &Statement) -> bool {
        let differs =
            |it: &Statement, other: &Statement| !without(&it.named, &other.head.values).is_empty();
        let is_another = differs(self, former) && differs(former, self);
        (self.adds || is_another) && !self.knows(former)
    }

    /// True if one of the two is about a named thing of which the other may be another, as in `lock room 7` and `lock room 9`.
    pub(super) fn may_be_of_another(&self, former: &Statement) -> bool {
        let lacks = |it: &Statement, names: &[u64]| !without(names, &it.head.values).is_empty();
        let is_another = |one: &Statement, other: &Statement| {
            lacks(other, &one.head.instances) && lacks(one, &other.head.names)
        };
        (is_another(self, former) || is_another(former, self)) && !self.knows(former)
    }

    /// True if the two have other values or words, or one denies what the other says.
    pub(super) fn may_contradict(&self, other: &Statement) -> bool {
        let lacks = |it: &Statement, other: &Statement| !it.is_within(other);
        let dismisses = |it: &Statement, other: &Statement| {
            let said = without(&other.stated.keys, &other.stated.dismissed);
            shared(&it.stated.dismissed, &said) > 0
        };
        self.head.values != other.head.values
            || self.says_no != other.says_no
            || self.head.order.is_turned(&other.head.order)
            || dismisses(self, other)
            || lacks(self, other) && lacks(other, self)
    }

    /// True if another value of `former` is that of a part which this one does not mention, such as the limit `for guests`.
    fn loses_part_of(&self, former: &Statement) -> bool {
        let came = without(&self.head.values, &former.head.values);
        let is_known = |key: &u64| self.stated.keys.binary_search(key).is_ok() || self.has(*key);
        !former.head.values.is_empty()
            && !came.is_empty()
            && !former.stated.qualifiers.iter().all(is_known)
    }

    /// True if its value holds only on a day of the week.
    fn narrows(&self, former: &Statement) -> bool {
        has_day(&self.head.values)
            && !has_day(&former.head.values)
            && !former.head.values.is_empty()
    }

    fn beside(&self, former: &Statement) -> SharedTopic {
        let choices = union(&self.choices, &former.choices);
        let own = without(&self.head.topic, &choices);
        let before = without(&former.head.topic, &choices);
        SharedTopic { common: shared(&own, &before), choices, own, before }
    }

    /// True if this statement says that it repeats something, and `other` says the same in other words.
    /// If it is unclear whether it says so, one must contain the other.
    pub(super) fn says_again(&self, other: &Statement) -> bool {
        let common = shared(&self.head.topic, &other.head.topic);
        let (adds, leaves_out) = (self.head.topic.len() - common, other.head.topic.len() - common);
        let may = self.may_say_again && adds.min(leaves_out) == 0;
        self.head.values == other.head.values
            && self.says_no == other.says_no
            && common + usize::from(self.needs_permission) >= TOPIC_WORDS_MIN
            && self.is_bounded_as(other)
            && !self.head.order.is_turned(&other.head.order)
            && !self.says_change
            && (self.says_again || may)
            && common >= adds.max(leaves_out)
    }

    /// True if this later statement is `former` with something else in one place, and the rest of the claim tells what was
    /// there, as in `labels are printed in A5`, `A6 was too small`.
    pub(super) fn replaces(&self, former: &Statement) -> bool {
        let common = both(&self.stated.keys, &former.stated.keys);
        let lost = without(&former.stated.keys, &common);
        // A year in common is no matter in common.
        let matter = without(&common, &former.head.values);
        // A word more may be a condition.
        !matter.is_empty()
            && self.stated.keys.len() <= former.stated.keys.len()
            && self.says_no == former.says_no
            && self.stated.swaps(&former.stated)
            && lost.iter().all(|key| self.has(*key))
            && !self.narrows(former)
    }

    /// True if this later statement leaves out a word of `former` and tells it in the rest of the claim, or dismisses it, beside
    /// another word of it.
    pub(super) fn tells_lost_of(&self, former: &Statement) -> bool {
        let (own, before) = (&self.stated, &former.stated);
        let said = without(&before.keys, &before.dismissed);
        let stated = without(&own.keys, &own.dismissed);
        let lost = without(&said, &stated);
        lost.len() < said.len() && lost.iter().any(|key| self.has(*key))
    }

    /// True if the rest of the claim names a value of `former`, so that it knows of it.
    pub(super) fn knows(&self, former: &Statement) -> bool {
        let rest = without(&self.all, &self.head.values);
        !self.head.values.is_empty() && shared(&rest, &former.head.values) > 0
    }

    /// True for a predicate, or for the first word, which may be one.
    fn is_verb(&self, key: &u64) -> bool {
        self.head.predicates.binary_search(key).is_ok() || self.stated.sequence.first() == Some(key)
    }

    /// True if it has another thing in the place of one of `request`, such as another module. The name
    /// of what was made is none.
    pub(super) fn exchanges(&self, request: &Statement) -> bool {
        let (mut own, asked) = (self.stated.clone(), &request.stated);
        if self.lacks_nothing(request) {
            let new = without(&self.head.values, &request.head.values);
            own.sequence.retain(|key| new.binary_search(key).is_err());
        }
        own.exchanges(asked)
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
        let common = shared(&self.head.topic, &other.head.topic);
        let least =
            self.head.topic.len().min(other.head.topic.len()).div_ceil(2).max(TOPIC_WORDS_MIN);
        let valued = !self.head.values.is_empty() && !other.head.values.is_empty();
        let is_whole = common > 0 && self.head.topic == other.head.topic;
        valued && self.head.values != other.head.values && (common >= least || is_whole)
    }

    /// True if both have values, and it has none of those of `former`.
    pub(super) fn has_other_values(&self, former: &Statement) -> bool {
        let both_have = !former.head.values.is_empty() && !self.head.values.is_empty();
        both_have && !self.names_value_of(former)
    }

    /// True if this claim has a value of `former` anywhere.
    pub(super) fn names_value_of(&self, former: &Statement) -> bool {
        shared(&former.head.values, &self.all) > 0
    }

    /// True if it names an alternative of `question`, or that has none.
    pub(super) fn names_choice(&self, question: &Statement) -> bool {
        question.choices.is_empty() || shared(&question.choices, &self.all) > 0
    }

    /// Topic words of the main string, sorted.
    pub(super) fn topic(&self) -> &[u64] {
        &self.head.topic
    }

    /// Words that it leaves out, as in `on the 15th, not on the 1st`, sorted.
    pub(super) fn dismissed(&self) -> &[u64] {
        &self.stated.dismissed
    }

    /// True if it names a day of the week that `question` names, or `question` names none.
    pub(super) fn is_on_day_of(&self, question: &Statement) -> bool {
        let mut asked = days(&question.head.values).peekable();
        asked.peek().is_none() || asked.any(|day| self.all.binary_search(&day).is_ok())
    }

    /// True if it has no topic word that `other` lacks.
    pub(super) fn is_within(&self, other: &Statement) -> bool {
        without(&self.head.topic, &other.all).is_empty()
    }

    /// True if it names a value of the earlier `former`, or what that chose among alternatives, beside another word
    /// of its topic. If only this one has alternatives, `former` must have several of their words, or share the topic.
    pub(super) fn gives_up(&self, former: &Statement) -> bool {
        let own = both(&former.head.topic, &self.choices);
        let topic = both(&self.head.topic, &former.head.topic);
        let beside = |named: &[u64]| !named.is_empty() && !without(&topic, named).is_empty();
        beside(&both(&self.all, &former.head.values))
            || beside(&both(&topic, &former.choices))
            || own.len() > 1
            || (!own.is_empty() && topic.len() > own.len())
    }

    /// True if it has other exact names or numbers than `request`, such as another issue or fewer pages.
    pub(super) fn names_others(&self, request: &Statement) -> bool {
        !without(&request.head.names, &self.all).is_empty()
            && !without(&self.head.names, &request.all).is_empty()
    }

    /// True if its main string has a value, a condition or a state of progress that the one of `other` lacks.
    pub(super) fn says_beyond(&self, other: &Statement) -> bool {
        let lacks = |key: &u64| {
            other.head.values.binary_search(key).is_err() && !other.stated.keys.contains(key)
        };
        self.head.values.iter().any(lacks)
            || self.stated.qualifiers.iter().any(lacks)
            || !without(&self.stated.dismissed, &other.all).is_empty()
            || self.has_new("limits", other)
            || self.has_new("progress", other)
    }

    /// True if its main string has a word of the list with this name, and that of `other` has none.
    fn has_new(&self, name: &str, other: &Statement) -> bool {
        let [own, others] = [self, other].map(|it| list(name).are_in(&it.head.folded));
        own && !others
    }

    /// True if this later statement is about a case of what `former` says of all, as `the palm house` of `all houses`, or about one
    /// of two things that it names together.
    pub(super) fn is_case_of(&self, former: &Statement) -> bool {
        let told = words_of(&former.head.folded);
        let item = |word: Option<&&str>| {
            let word = word.filter(|it| !is_stop_word(it) && it.starts_with(char::is_alphabetic));
            all_topic_keys(word.copied().into_iter())
        };
        // `To be listed at all` is about no kind.
        let is_plain = |word: &&str| !is_stop_word(word) && word.chars().all(char::is_alphabetic);
        let is_of_it = |at: usize| {
            let (before, after) = told.split_at(at);
            let items = [before.last(), after.iter().skip(1).find(|it| !list("articles").has(it))]
                .map(item);
            let [named, other] = items.each_ref().map(|keys| keys.iter().all(|key| self.has(*key)));
            list("all of them").has(told[at])
                && (before.last() != Some(&"at") || after.get(1).is_some_and(is_plain))
                && !EACH.contains(&told[at])
                && self.stated.specifies(&items[1], &former.stated)
                || list("and").has(told[at])
                    && items.iter().all(|it| !it.is_empty())
                    && named != other
        };
        let is_whole = |it: &&str| list("all of them").has(it) || list("only").has(it);
        !words_of(&self.head.folded).iter().any(is_whole) && (0..told.len()).any(is_of_it)
    }

    /// True if its main string has an amount or a condition that `other` lacks.
    pub(super) fn limits_beyond(&self, other: &Statement) -> bool {
        // One of a kind is no amount: `51 bytes in one frame`.
        let amounts = without(&without(&self.head.values, &self.head.names), &[key("", 1.0)]);
        !without(&amounts, &other.head.values).is_empty() || self.has_new("limits", other)
    }

    /// True if it has more words and values than a `later` one, which puts no value in the place of one of them.
    pub(super) fn leads(&self, later: &Statement) -> bool {
        let size =
            |it: &Statement| it.head.topic.len() + it.head.values.len() + it.head.bounds.len();
        let is_changed = !self.lacks_nothing(later) && !later.lacks_nothing(self);
        size(later) < size(self) && !later.says_change && !is_changed
    }

    /// True if it has every value of `other`.
    pub(super) fn lacks_nothing(&self, other: &Statement) -> bool {
        without(&other.head.values, &self.head.values).is_empty()
    }

    /// Number of topic words of `other` that this claim has anywhere, and number of all of them.
    pub(super) fn covers(&self, other: &Statement) -> (usize, usize) {
        (shared(&self.all, &other.head.topic), other.head.topic.len())
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
        shared(&self.head.topic, &other.head.topic)
    }
}

/// Topic words of two statements, without those of alternatives.
struct SharedTopic {
    choices: Vec<u64>,
    own: Vec<u64>,
    before: Vec<u64>,
    common: usize,
}

/// Full text of a claim.
pub(super) fn text(claim: &Claim) -> String {
    claim.strings().into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n")
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
        Claim::Decision(_) => opposed(head, list("opposed")),
        Claim::Discussion(_) => opposed(head, list("or")),
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

/// Words and values of a text, sorted.
fn words_and_values(text: &str) -> Vec<u64> {
    let Parts { topic, values, .. } = Parts::of(text);
    union(&topic, &values)
}

fn union(one: &[u64], other: &[u64]) -> Vec<u64> {
    let mut all = [one, other].concat();
    sort(&mut all);
    all
}

/// Those of the words for all that often stand before a time, as in `every night`.
const EACH: [&str; 9] =
    ["every", "each", "jede", "jeden", "jedem", "jedes", "jeder", "chaque", "cada"];

/// Words of the folded `head` on both sides of a phrase in `by`, or after prepositions of a move.
fn opposed(head: &str, by: &WordList) -> Vec<u64> {
    let words = words_of(head);
    let is_said = |word: &&&str| !is_stop_word(word) && quantity(&[word]).is_none();
    let is_move = |word: &str| list("moved from").has(word) || list("moved to").has(word);
    // In `switch parcels to Ulm over to rail`, only the last one is the target.
    let target = words.iter().rposition(|word| list("moved to").has(word));
    // `cut the batches to Gmail down to 80`: the value is the target.
    let is_to_value =
        |it: &[&str]| matches!(it, [word, rest @ ..] if is_move(word) && quantity(rest).is_some());
    let shifts =
        list("shifts").are_in(head) && !(0..words.len()).any(|at| is_to_value(&words[at..]));
    let mut found = Vec::new();
    for at in 0..words.len() {
        let (before, after) = words.split_at(at);
        let opposed = by.begin(after);
        let is_moved = |word: &&str| list("moved from").has(word) || target == Some(at);
        let moves = shifts && after.first().is_some_and(is_moved);
        if opposed.is_none() && !moves {
            continue;
        }
        let rest = after.iter().skip(opposed.unwrap_or(1));
        let rest: Vec<&&str> =
            rest.skip_while(|word| is_stop_word(word)).take_while(is_said).collect();
        // In `five slots instead of eight`, only the numbers are opposed.
        let has_near = opposed.is_some() && !rest.is_empty();
        let near = before.iter().rev().take_while(is_said).filter(|_| has_near);
        found.extend(all_topic_keys(rest.into_iter().chain(near).copied()));
    }
    found
}

/// True if the folded main string requires a person's permission.
pub(super) fn needs_permission(head: &str) -> bool {
    let words = words_of(head);
    let says = |list: &WordList| words.iter().any(|word| list.has(word));
    says(list("before permitted")) && says(list("permission"))
}
