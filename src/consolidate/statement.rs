//! Main string of a claim, analysed for the rules: topic words, values, negation. Two statements
//! have the same topic if neither has a topic word that the other lacks.

use super::deed::{Deed, without_means};
use super::parts::{Parts, WordOrder, before_reason, both, bound_of, shared, sort, without};
use super::phrases::{
    WordList, all_topic_keys, is_double_negation, is_stop_word, list, says_change, says_no,
};
use super::quantity::{days, has_day, key, quantity, words_of};
use super::question::{question, wish};
use super::retraction::{Retraction, Stated};
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
    /// Exact names that a decision is about, or all that a request has, sorted.
    named: Vec<u64>,
    /// Says that something holds beside what holds already.
    adds: bool,
    /// Words and values of rejected options, sorted.
    weighed: Vec<u64>,
    /// Words and values of each option, sorted.
    options: Vec<Vec<u64>>,
    pub(super) retraction: Retraction,
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
        let says_change_anywhere = says_change(&flat);
        let stated = Stated::of(&head.folded, says_change_anywhere);
        let options = options(claim);
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
        let is_decision = matches!(claim, Claim::Decision(_));
        let things = || {
            let words = words_and_values(&without_means(&head.folded));
            without(&words, &Vec::from_iter(deed.first_word()))
        };
        let named = if matches!(claim, Claim::Request(_)) { &head.names } else { &head.subjects };
        if says_no || stated.only.is_some() {
            head.bounds.retain(|bound| Some(bound) != bound_of("may"));
        }
        // Elsewhere `too` is a degree.
        let mut clauses = head.folded.split([',', ';', '.', ':']);
        let ends_with_too = clauses.any(|clause| clause.trim_end().ends_with(" too"));
        let retraction = || Retraction::of(&folded(&whole.replace('\n', ". ")));
        Statement {
            says_no,
            withdraws: list("withdrawn").are_in(&head.folded),
            is_change,
            denies: says_no && !is_change,
            needs_permission,
            says_change: says_change_anywhere,
            named: named.clone(),
            adds: list("additions").are_in(&head.folded) || ends_with_too,
            weighed: weighed(&options, &stated),
            options,
            stated,
            retraction: if is_decision { retraction() } else { Retraction::default() },
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
        // Words that one states and the other retracts.
        let lost = |it: &Statement, from: &Statement| {
            shared(&without(&it.stated.keys, &from.stated.keys), &from.head.topic)
        };
        // Who is asked, or the only one, is known without the order.
        let is_told = self.needs_permission || self.stated.only.is_some();
        // `insure no parcels` is `parcels are not insured`.
        let is_free = |key: &u64| self.is_verb(key) && other.is_verb(key);
        let in_order = || self.stated.is_in_order_of(&other.stated, &self.head.values, is_free);
        let is_ordered = is_told || in_order();
        self.head.order.says_as(&other.head.order)
            && self.stated.only == other.stated.only
            && is_ordered
            && lost(self, other) + lost(other, self) == 0
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

    /// True if in this later statement a choice and what it dismisses have changed places, as in `8080, not 9090`
    /// after `9090, not 8080`, and it names nothing else.
    pub(super) fn turns_around(&self, former: &Statement) -> bool {
        let mentioned = |it: &Statement| union(&it.head.topic, &it.head.values);
        without(&mentioned(self), &mentioned(former)).is_empty()
            && self.stated.turns_around(&former.stated)
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
        self.head.values != other.head.values
            || self.says_no != other.says_no
            || self.head.order.is_turned(&other.head.order)
            || lacks(self, other) && lacks(other, self)
    }

    /// True if this later statement, which mentions a change, negates the topic of `former` or
    /// gives it another value in fewer words: words of change refer to an earlier statement.
    pub(super) fn presupposes(&self, former: &Statement) -> bool {
        let SharedTopic { own, before, common, .. } = self.beside(former);
        let measured = !both(&before, list("measures").keys()).is_empty();
        let adds =
            without(&without(&own, &before), if measured { &[] } else { list("measures").keys() });
        let leaves_out = before.len() - common;
        let valued = !self.head.values.is_empty() && !former.head.values.is_empty();
        // It may negate one of its own alternatives. Negating the whole negates a part of it.
        let turns = self.says_no && !former.says_no && self.is_within(former);
        let least = if turns { LEFT_OUT_MAX } else { common.min(LEFT_OUT_MAX) };
        let is_about_it = common >= TOPIC_WORDS_MIN
            && leaves_out <= least
            && adds.is_empty()
            && (turns || !self.loses_part_of(former));
        let differs = turns || (valued && self.head.values != former.head.values);
        is_about_it && differs && !self.narrows(former)
    }

    /// True if another value of `former` is that of a part which this one does not mention, such as the limit `for guests`.
    fn loses_part_of(&self, former: &Statement) -> bool {
        let gone = without(&former.head.values, &self.stated.keys);
        let came = without(&self.head.values, &former.head.values);
        !gone.is_empty() && !came.is_empty() && self.stated.loses_part_of(&former.stated, &self.all)
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
    pub(super) fn says_again(&self, other: &Statement, retraction: &Retraction) -> bool {
        let common = shared(&self.head.topic, &other.head.topic);
        let (adds, leaves_out) = (self.head.topic.len() - common, other.head.topic.len() - common);
        let told = retraction.says_again && (common > TOPIC_WORDS_MIN || adds.min(leaves_out) == 0);
        let close = (self.says_again || told) && common >= adds.max(leaves_out);
        let may = self.may_say_again && !self.says_change;
        let within = may && adds.min(leaves_out) == 0 && adds.max(leaves_out) <= common;
        self.head.values == other.head.values
            && self.says_no == other.says_no
            && common + usize::from(self.needs_permission) >= TOPIC_WORDS_MIN
            && self.is_bounded_as(other)
            && !self.head.order.is_turned(&other.head.order)
            && !self.replaces(other, retraction)
            && (close || within)
    }

    /// True if the rest of the claim names a value of `former`, or it rejected what `former` chose, so
    /// that it knows of it.
    pub(super) fn knows(&self, former: &Statement) -> bool {
        let rest = without(&self.all, &self.head.values);
        (!self.head.values.is_empty() && shared(&rest, &former.head.values) > 0)
            || shared(&self.weighed, &former.head.topic) > 0
    }

    /// True if this later statement drops what `former` says and puts something else in its place.
    /// `retraction` is about the whole claim.
    pub(super) fn replaces(&self, former: &Statement, retraction: &Retraction) -> bool {
        let (own, before) = (&self.stated, &former.stated);
        let lost = without(&before.keys, &own.keys);
        let given = retraction.retracted_of(&union(&own.keys, &before.keys));
        let given = union(&given, &self.weighed);
        let (common, named) = (shared(&own.keys, &before.keys), shared(&lost, &given));
        // A lost verb may have been exchanged; most other lost words must be mentioned.
        let untold = without(&lost, &retraction.all);
        // A year in common is no matter in common.
        let matter = without(&both(&own.keys, &before.keys), &former.head.values);
        let swapped =
            !matter.is_empty() && before.keys.len() > 1 && untold.is_empty() && own.swaps(before);
        // Another word in the place of one that is not mentioned: it is about something else.
        let kept: Vec<u64> = untold.iter().copied().filter(|key| !former.is_verb(key)).collect();
        let is_elsewhere = own.puts_others_for(&kept, before);
        let enough = match common {
            0 => false,
            1 => untold.iter().all(|key| former.is_verb(key)),
            _ => untold.len() < LEFT_OUT_MAX,
        };
        let (gone, came) = (
            without(&former.head.values, &own.keys),
            without(&self.head.values, &former.head.values),
        );
        let of_amount = !gone.is_empty() && !came.is_empty();
        enough
            && own.keys.len() > common
            && (named > 0 || swapped)
            && !is_elsewhere
            && !retraction.refuses
            && !self.denies
            && !self.narrows(former)
            && !(of_amount && own.loses_part_of(before, &retraction.all))
            && !own.narrows(before, of_amount, &retraction.all)
    }

    /// True if this later statement names the option that `former` took as retracted, or as rejected with
    /// words of change, and takes another one. At most one of them may be about something that the other lacks.
    pub(super) fn takes_another(&self, former: &Statement, retraction: &Retraction) -> bool {
        let (Some(own), Some(before)) = (self.taken(), former.taken()) else { return false };
        let is_known = self.options.contains(before)
            && (without(before, &retraction.retracted).is_empty()
                || (self.says_change && former.options.contains(own)));
        let named = union(&self.options.concat(), &former.options.concat());
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
        self.head.predicates.binary_search(key).is_ok() || self.stated.sequence.first() == Some(key)
    }

    /// True if this later statement says something else about the subject of `former` and retracts
    /// what was said about it.
    pub(super) fn takes_back(&self, former: &Statement, retraction: &Retraction) -> bool {
        let (own, before) = (&self.stated, &former.stated);
        let common = shared(&own.keys, &before.keys);
        // `I changed my mind` does not say about what: a single word may be the subject of many decisions.
        let is_same_matter =
            common * 2 >= before.keys.len() || shared(&retraction.retracted, &before.keys) > 0;
        let regrets = |words: &Vec<u64>| {
            let is_bare = without(words, list("former").keys()).is_empty();
            shared(words, &before.keys) > 0 || is_bare && is_same_matter
        };
        let denied = own.denied.len() >= TOPIC_WORDS_MIN
            && without(&own.denied, &before.keys).is_empty()
            && retraction.changes
            && !former.says_no;
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
            let new = without(&self.head.values, &request.head.values);
            own.sequence.retain(|key| new.binary_search(key).is_err());
        }
        own.exchanges(asked)
    }

    /// True if this decision retracts something of `request`, or mentions a change that it does not ask for.
    pub(super) fn opposes(&self, request: &Statement) -> bool {
        shared(&self.retraction.retracted, &request.head.topic) > 0
            || (self.is_change && !request.is_change && !self.adds)
    }

    /// True if this attempt retries or repairs what `failed` tried, and on nothing else, such as another site.
    pub(super) fn retries(&self, failed: &Statement) -> bool {
        let lacks = |it: &Statement, key: &u64| it.all.binary_search(key).is_err();
        let adds = self.things.iter().any(|key| lacks(failed, key));
        let loses = failed.things.iter().any(|key| lacks(self, key));
        let is_same = || self.deed.repeats(&failed.deed) && !(adds && loses);
        !self.deed.gives_up(&failed.deed) && (self.deed.mends(&failed.deed) || is_same())
    }

    /// True if it names all that the attempt `failed` was done to, whatever its means.
    pub(super) fn names_things_of(&self, failed: &Statement) -> bool {
        failed.things.len() > 1 && without(&failed.things, &self.all).is_empty()
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
        let values = &former.head.values;
        !values.is_empty() && !self.head.values.is_empty() && shared(values, &self.all) == 0
    }

    /// True if it names an alternative of `question` and everything else that is asked.
    pub(super) fn answers(&self, question: &Statement) -> bool {
        let about = without(&question.head.topic, &question.choices);
        let named = shared(&question.choices, &self.head.topic);
        // A question may consist of its alternatives.
        let least = if about.is_empty() { TOPIC_WORDS_MIN } else { 1 };
        named >= least && without(&about, &self.head.topic).is_empty()
    }

    /// True if it names an alternative of `question`, or that has none.
    pub(super) fn names_choice(&self, question: &Statement) -> bool {
        question.choices.is_empty() || shared(&question.choices, &self.all) > 0
    }

    /// Topic words of the main string, sorted.
    pub(super) fn topic(&self) -> &[u64] {
        &self.head.topic
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

    /// True if a later claim retracts one of its quantities or exact names.
    pub(super) fn is_retracted_by(&self, retraction: &Retraction) -> bool {
        shared(&retraction.retracted, &self.head.values) > 0
    }

    /// True if it has other exact names or numbers than `request`, such as another issue or fewer pages.
    pub(super) fn names_others(&self, request: &Statement) -> bool {
        !without(&request.head.names, &self.all).is_empty()
            && !without(&self.head.names, &request.all).is_empty()
    }

    /// True if it lacks a value of `question`, or has more than one other name or number.
    pub(super) fn names_other_than(&self, question: &Statement) -> bool {
        let others = without(&self.head.names, &question.all);
        !self.lacks_nothing(question) || others.len() > 1
    }

    /// True if it has no topic word but those of `topic` and words for a measure.
    pub(super) fn says_nothing_else(&self, topic: &[u64]) -> bool {
        let is_known =
            |key: &u64| topic.contains(key) || list("measures").keys().binary_search(key).is_ok();
        self.head.topic.iter().all(is_known)
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
