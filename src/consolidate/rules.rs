//! The policy between a record and a memory of the same kind, rule by rule. The first rule that knows the case
//! decides it; where none does, the two have nothing to do with one another, and nothing is touched.
//!
//! What a person said or confirmed changes only with a person's later words; nothing changes without words that
//! speak of a change; what rests on tools or the web alone changes nothing. In doubt both are kept.

use super::incoming::{Incoming, Order};
use super::likeness::Likeness;
use super::subject::Subject;
use crate::domain::{ClaimKind, Memory, MemoryState, Merging, Speaker, Stage};

/// A record beside a memory that it may touch.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    pub(super) new: &'a Incoming<'a>,
    pub(super) memory: &'a Memory,
    pub(super) subject: &'a Subject,
    pub(super) like: Likeness,
    /// The record's time against the memory's beginning.
    pub(super) order: Order,
    /// Whether both are of one conversation.
    pub(super) together: bool,
}

/// What a rule says of a pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ruling {
    /// They have nothing to do with one another.
    Strangers,
    /// The memory says it already.
    Duplicate,
    /// The memory says it already, or may learn it.
    Merge(Merging),
    /// The same attempt ended otherwise; the stage it comes to.
    Outcome(Stage),
    /// The record takes the memory's place.
    Supersede,
    /// The memory had taken the record's place before it came.
    Late,
    /// It is not to become a memory again.
    Discard,
    /// They contradict one another.
    Conflict,
    /// They may.
    Doubt,
}

/// A rule: its name in the ledger, what it must leave alone, and when it applies.
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// For people who read or change the table.
    leaves: &'static str,
    pub(super) judge: fn(&Pair<'_>) -> Option<Ruling>,
}

/// The rules in the order in which they are asked.
pub(super) const RULES: &[Rule] = &[
    Rule { name: "retracted", leaves: "what a person brings up again", judge: retracted },
    Rule { name: "past", leaves: "what was said after the memory went out of use", judge: past },
    Rule { name: "asked-again", leaves: "a request that is still open", judge: asked_again },
    Rule { name: "equal", leaves: "all but who says it", judge: equal },
    Rule { name: "outcome", leaves: "another attempt of the same name", judge: outcome },
    Rule { name: "reaffirmed", leaves: "the same answer to another question", judge: reaffirmed },
    Rule { name: "reversal", leaves: "choices nobody took back", judge: reversal },
    Rule { name: "near-duplicate", leaves: "other numbers, names, order, negation", judge: near },
    Rule { name: "revised", leaves: "what differs in more than a value", judge: revised },
    Rule { name: "alike", leaves: "what shares some words only", judge: alike },
];

/// The rules between a record and a memory of its kind, by name, each with what it must leave alone.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    RULES.iter().map(|rule| (rule.name, rule.leaves))
}

/// Days within which the same action, done again, is the same attempt: two weeks of working at one thing.
const EPISODE_DAYS_MAX: u64 = 14;
/// Words that an action must have to be known again in another conversation; `ran cargo test` has fewer.
const EPISODE_WORDS_MIN: usize = 4;
/// Words that a revision may add to those of the memory, such as `switch` and the new value.
const REVISED_WORDS_MAX: usize = 3;
/// Words that are left of a memory without its values, so that a revision of it can be told.
const REVISED_WORDS_MIN: usize = 2;
/// The share of words above which two statements may be about the same, where only one says more.
const ALIKE_ONE_SIDED: f64 = 0.6;
/// The same where each says something that the other does not.
const ALIKE_TWO_SIDED: f64 = 0.75;

impl Pair<'_> {
    /// Whether a person said or confirmed what the memory says.
    fn is_protected(&self) -> bool {
        is_protected(self.memory)
    }

    /// Whether the memory may learn from the record.
    fn may_extend(&self) -> bool {
        !self.new.hearsay && (!self.is_protected() || self.new.person)
    }

    /// Whether the record may take the memory's place: it is later, somebody says that something changed, and
    /// against a person's word a person does.
    pub(super) fn may_supersede(&self) -> bool {
        let heard = match self.new.change_by {
            Some(Speaker::Person) => true,
            Some(Speaker::Assistant) => !self.is_protected(),
            Some(Speaker::Tool | Speaker::Web | Speaker::Client) | None => false,
        };
        heard && self.may_follow()
    }

    /// The same for a change that a model found the words of.
    pub(super) fn may_follow(&self) -> bool {
        let trusted = !self.new.hearsay && (!self.is_protected() || self.new.person);
        trusted && self.order == Order::Later && self.memory.state == MemoryState::Active
    }

    fn is_active(&self) -> bool {
        self.memory.state == MemoryState::Active
    }

    fn kind(&self) -> ClaimKind {
        self.subject.kind
    }

    fn is_equal(&self) -> bool {
        self.new.subject.content == self.subject.content
    }

    fn is_repeated(&self) -> bool {
        self.is_equal() || (self.like.is_near() && self.same_choice())
    }

    fn same_choice(&self) -> bool {
        let (new, old) = (&self.new.subject, self.subject);
        let worded = new.named.first() == old.named.first() && new.hard == old.hard;
        new.chosen == old.chosen || (worded && new.named.first().is_some_and(|it| !it.is_empty()))
    }
}

/// Whether a person said or confirmed what `memory` says.
pub(super) fn is_protected(memory: &Memory) -> bool {
    memory.confirmed || memory.said_by == Speaker::Person
}

/// What was taken back does not come again by itself.
fn retracted(pair: &Pair<'_>) -> Option<Ruling> {
    if pair.memory.state != MemoryState::Retracted {
        return None;
    }
    let then = pair.memory.valid_until.or(pair.memory.valid_from);
    let later = pair.new.facts.at.zip(then).is_some_and(|(at, then)| then < at);
    let again = pair.new.person && later;
    Some(if pair.is_repeated() && !again { Ruling::Discard } else { Ruling::Strangers })
}

/// What is out of use stays as it is; who said it then may be told.
fn past(pair: &Pair<'_>) -> Option<Ruling> {
    if pair.memory.state != MemoryState::Superseded {
        return None;
    }
    let held = match (pair.new.facts.at, pair.memory.valid_until) {
        (Some(at), Some(until)) => at < until,
        (None, _) | (_, None) => false,
    };
    Some(if held && pair.is_repeated() { Ruling::Duplicate } else { Ruling::Strangers })
}

/// A request that was fulfilled can be made again.
fn asked_again(pair: &Pair<'_>) -> Option<Ruling> {
    let done = pair.kind() == ClaimKind::Request && pair.memory.stage == Stage::Decided;
    (done && pair.order == Order::Later && pair.is_repeated()).then_some(Ruling::Strangers)
}

fn equal(pair: &Pair<'_>) -> Option<Ruling> {
    pair.is_equal().then_some(Ruling::Duplicate)
}

/// The same thing was tried: the later outcome stands, the earlier one is told by the ledger.
fn outcome(pair: &Pair<'_>) -> Option<Ruling> {
    if pair.kind() != ClaimKind::Attempt {
        return None;
    }
    if !pair.like.is_near() {
        return Some(Ruling::Strangers);
    }
    let (at, then) = (pair.new.facts.at, pair.memory.valid_from);
    let days = at.zip(then).map(|(at, then)| at.since(then).max(then.since(at)).as_secs() / 86_400);
    let near = days.is_some_and(|days| days <= EPISODE_DAYS_MAX);
    let known = pair.subject.weight() >= EPISODE_WORDS_MIN;
    if !(pair.together || (near && known)) {
        return Some(Ruling::Strangers);
    }
    Some(match pair.order {
        Order::Earlier => Ruling::Merge(Merging::Provenance),
        Order::Same | Order::Unknown => Ruling::Strangers,
        Order::Later if !pair.may_extend() => Ruling::Conflict,
        Order::Later => match (pair.memory.stage, pair.new.facts.stage) {
            (Stage::Refuted, Stage::Decided) => Ruling::Supersede,
            (Stage::Decided, Stage::Attempted) => Ruling::Outcome(Stage::Refuted),
            (_, stage) => Ruling::Outcome(stage),
        },
    })
}

/// The same choice among the same things.
fn reaffirmed(pair: &Pair<'_>) -> Option<Ruling> {
    if pair.kind() != ClaimKind::Decision || !pair.same_choice() {
        return None;
    }
    let (new, old) = (&pair.new.subject, pair.subject);
    let among = super::subject::shared(&new.alternatives, &old.alternatives);
    let plain = new.alternatives.len() == 1 || old.alternatives.len() == 1;
    let telling = old.named.first().is_some_and(|words| words.len() >= 3);
    let matter = among >= 2 && pair.like.rationale() > 0 && !pair.like.is_generic(2);
    let same = matter || pair.together || (plain && telling);
    if !same {
        return Some(Ruling::Strangers);
    }
    let learn = pair.may_extend();
    Some(Ruling::Merge(if learn { Merging::Extend } else { Merging::Provenance }))
}

/// Another choice among the same things.
fn reversal(pair: &Pair<'_>) -> Option<Ruling> {
    let (new, old) = (&pair.new.subject, pair.subject);
    let (chosen, former) = (new.chosen?, old.chosen?);
    let weighed = |subject: &Subject, key: u64| subject.alternatives.binary_search(&key).is_ok();
    let matter = pair.like.rationale() > 0 || pair.together;
    let rivals = weighed(new, former) && (weighed(old, chosen) || matter);
    if pair.same_choice() || !rivals {
        return None;
    }
    if pair.like.is_generic(2) && pair.like.rationale() < 2 {
        return Some(Ruling::Strangers);
    }
    Some(match pair.order {
        Order::Later if matter && pair.may_supersede() => Ruling::Supersede,
        Order::Earlier if matter && pair.memory.said_by <= pair.new.facts.said_by => Ruling::Late,
        Order::Later | Order::Earlier | Order::Same | Order::Unknown => Ruling::Conflict,
    })
}

/// Nothing but case, marks, fillers or a word less.
fn near(pair: &Pair<'_>) -> Option<Ruling> {
    if !pair.like.is_near() || !pair.same_choice() {
        return None;
    }
    match pair.kind() {
        ClaimKind::Discussion if pair.may_extend() => Some(Ruling::Merge(Merging::Extend)),
        ClaimKind::Discussion if pair.like.says_more() => Some(Ruling::Strangers),
        ClaimKind::Discussion | ClaimKind::Request | ClaimKind::Attempt | ClaimKind::Decision => {
            Some(Ruling::Merge(Merging::Provenance))
        }
    }
}

/// The same but for a number, a name, a negation, or with the new beside the old; and somebody says so.
fn revised(pair: &Pair<'_>) -> Option<Ruling> {
    let (new, old) = (&pair.new.subject.soft, &pair.subject.soft);
    let all = super::subject::shared(new, old) == old.len();
    let more = new.len().saturating_sub(old.len());
    let about = old.len() >= REVISED_WORDS_MIN && all && more <= REVISED_WORDS_MAX;
    let asks = match pair.kind() {
        ClaimKind::Request | ClaimKind::Decision => true,
        ClaimKind::Discussion | ClaimKind::Attempt => false,
    };
    (asks && about && pair.may_supersede() && pair.is_active()).then_some(Ruling::Supersede)
}

/// So many words in common that somebody should look.
fn alike(pair: &Pair<'_>) -> Option<Ruling> {
    let limit = if pair.like.is_one_sided() { ALIKE_ONE_SIDED } else { ALIKE_TWO_SIDED };
    let many = pair.new.subject.weight().min(pair.subject.weight()) >= 3;
    (many && pair.like.words >= limit).then_some(Ruling::Doubt)
}
