//! Policy for a record and a memory of the same kind, rule by rule. The first rule that applies
//! decides; if none does, the two may be related.
//!
//! A person's words change only by a person's later words. As a rule, nothing changes without words
//! of change. Tools and the web alone change nothing. When in doubt, both are kept.

use super::incoming::{Incoming, Order};
use super::parts::shared;
use super::statement::Statement;
use super::subject::{Likeness, Subject};
use crate::domain::{
    ClaimKind, FOR_A_TIME, Memory, MemoryState, Merging, NARROWER, Speaker, Stage, Timestamp,
};
use crate::text::ends::decision_end;

/// A record beside a memory that it may touch.
#[derive(Debug)]
pub(super) struct RulePair<'a> {
    pub(super) new: &'a Incoming<'a>,
    pub(super) memory: &'a Memory,
    pub(super) subject: &'a Subject,
    pub(super) like: Likeness,
    pub(super) order: Order,
    pub(super) together: bool,
    /// True if a person agreed to the record, in words near its evidence.
    pub(super) agreed: bool,
}

/// Outcome of a rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ruling {
    Unrelated,
    Duplicate,
    Merge(Merging),
    /// The same attempt with another outcome, and the resulting stage.
    Outcome(Stage),
    Supersede,
    /// The memory replaced the record before the record arrived.
    Late,
    /// The record succeeds where the memory failed.
    Solves,
    /// The memory is later and succeeds where the record failed.
    Solved,
    Discard,
    /// Both cannot hold, or it is unclear whether both do.
    Conflict,
    /// Words of change with the memory's value or many of its words, or another value: one may be
    /// outdated.
    Suspect,
    /// Both may have the same topic; nothing else is known.
    Related,
}

impl Ruling {
    /// True if a model may decide instead.
    pub(super) fn is_uncertain(self) -> bool {
        matches!(self, Ruling::Conflict | Ruling::Suspect | Ruling::Related)
    }
}

/// A rule; `None` if it does not apply.
type Rule = fn(&RulePair<'_>) -> Option<Ruling>;

/// Rules in order of precedence, with their names in the ledger.
pub(super) const RULES: [(&str, Rule); 14] = [
    ("retracted", retracted),
    ("past", past),
    ("asked-again", asked_again),
    ("equal", equal),
    ("solved", solved),
    ("outcome", outcome),
    ("reversal", reversal),
    ("near-duplicate", near),
    ("restated", restated),
    ("said-again", said_again),
    (REPLACED, replaced),
    (REVISED, revised),
    ("alike", alike),
    ("may-replace", may_replace),
];

/// Rules by which a later decision takes the place of an earlier one, unless a model knows better.
pub(super) const REPLACED: &str = "replaced";
pub(super) const REVISED: &str = "revised";

/// Days within which a repeated action is the same attempt: two weeks of work on one thing.
const EPISODE_DAYS_MAX: u64 = 14;
/// Minimum words of an action for a match across conversations; `ran cargo test` has fewer.
const EPISODE_WORDS_MIN: usize = 4;
/// Minimum share of a failed action's words in a later one that retries it.
const SOLVED: f64 = 0.6;
/// Minimum number of shared words and exact names, unless the later one has all words.
const SOLVED_WORDS_MIN: usize = 3;
/// Minimum share of words of statements that may agree: if one contains the other, and if not.
const ALIKE_ONE_SIDED: f64 = 0.6;
const ALIKE_TWO_SIDED: f64 = 0.75;
/// Minimum share of common words at which words of change may be about the memory.
const REPLACED_WORDS: f64 = 0.3;

impl RulePair<'_> {
    /// The later statement and the former one, if the order is known.
    fn in_time(&self) -> Option<(&Statement, &Statement)> {
        let (new, old) = (&self.new.subject.statement, &self.subject.statement);
        match self.order {
            Order::Later => Some((new, old)),
            Order::Earlier => Some((old, new)),
            Order::Same | Order::Unknown => None,
        }
    }

    pub(super) fn may_extend(&self) -> bool {
        !self.new.hearsay && (!is_protected(self.memory) || self.new.person || self.agreed)
    }

    /// True if the record mentions a change; a person's words need a person.
    fn is_change_heard(&self) -> bool {
        match self.new.change_by {
            Some(Speaker::Person) => true,
            Some(Speaker::Assistant) => !is_protected(self.memory) || self.agreed,
            Some(Speaker::Tool | Speaker::Web | Speaker::Client) | None => false,
        }
    }

    /// True if the record is later and may change the memory.
    pub(super) fn may_follow(&self) -> bool {
        self.may_extend() && self.order == Order::Later && self.is_active() && !self.is_decided()
    }

    /// True if a person decided on the memory after the record was said.
    fn is_decided(&self) -> bool {
        self.memory.is_decided_after(self.new.facts.at)
    }

    /// True if the memory is later and no less trusted.
    pub(super) fn may_precede(&self) -> bool {
        let trusted = self.memory.confirmed || self.memory.said_by <= self.new.facts.said_by;
        self.order == Order::Earlier && self.is_active() && trusted
    }

    /// True if the memory was said again after the record, by a speaker no less trusted.
    pub(super) fn is_said_since(&self) -> bool {
        let trusted = self.memory.confirmed || self.memory.said_by <= self.new.facts.said_by;
        trusted && self.memory.is_said_after(self.new.facts.at)
    }

    /// Time from which the memory holds instead of the record, if it does.
    pub(super) fn holds_since(&self) -> Option<Timestamp> {
        let again = self.memory.last_said.filter(|_| self.order == Order::Later);
        again.or(self.memory.valid_from)
    }

    /// Rule by which the later one of two decisions changes only a part of the other: it names its own end and the other one
    /// none, so that holds again afterwards, or it is about a case of it. That counts if a model found the change.
    pub(super) fn in_part(&self, is_judged: bool) -> Option<&'static str> {
        let (later, former) = self.in_time()?;
        let (new, held) = (&self.new.facts, self.memory.current_claim());
        let own = (decision_end(&new.claim, new.at), new.ends);
        let other = (decision_end(&held, self.memory.valid_from), self.memory.ends);
        let is_later = self.order == Order::Later;
        let ((until, _), (end, told)) = if is_later { (own, other) } else { (other, own) };
        // What was about one day alone does not hold again.
        if until.is_some() && end.is_none() && told.is_none() {
            return Some(FOR_A_TIME);
        }
        let is_case = is_judged && self.kind() == ClaimKind::Decision && later.is_case_of(former);
        is_case.then_some(NARROWER)
    }

    /// True if the record may tell of a deed that undid the memory's: a fact, whoever did it.
    pub(super) fn may_undo(&self) -> bool {
        let is_later = self.order == Order::Later && !self.new.hearsay;
        is_later && self.is_active() && !self.is_decided()
    }

    /// Ruling on a failed attempt and a later one that may solve it.
    fn solving(&self) -> Option<Ruling> {
        match (self.memory.stage, self.new.facts.stage, self.order) {
            (Stage::Attempted, Stage::Decided, Order::Later) => Some(Ruling::Solves),
            (Stage::Decided, Stage::Attempted, Order::Earlier) => Some(Ruling::Solved),
            _ => None,
        }
    }

    fn is_active(&self) -> bool {
        self.memory.state == MemoryState::Active
    }

    /// True for an active request or decision.
    fn is_directive(&self) -> bool {
        self.is_active() && matches!(self.kind(), ClaimKind::Request | ClaimKind::Decision)
    }

    fn is_active_decision(&self) -> bool {
        self.is_active() && self.kind() == ClaimKind::Decision
    }

    fn kind(&self) -> ClaimKind {
        self.subject.search.kind
    }

    fn is_equal(&self) -> bool {
        self.new.subject.search.content == self.subject.search.content
    }

    /// True if the record asks for what was done, or raises what was settled, before.
    fn asks_again(&self) -> bool {
        let is_wish = matches!(self.kind(), ClaimKind::Request | ClaimKind::Discussion);
        let done = is_wish && self.memory.stage == Stage::Decided;
        done && self.new.facts.stage == Stage::Proposed && self.order == Order::Later
    }

    /// True if the record asks in other words for what was done. What a decision granted is not asked for again, and an
    /// assistant's words do not repeat a person's request.
    pub(super) fn reopens(&self) -> bool {
        self.asks_again() && self.may_extend() && !self.memory.is_granted()
    }

    /// True if both have the same values for the same topic, in other words.
    fn is_restated(&self) -> bool {
        let (new, old) = (&self.new.subject.statement, &self.subject.statement);
        let same = new.repeats(old) || (self.order == Order::Later && new.retains(old));
        // The same choice between other alternatives is about another matter.
        let [one, other] = [&self.new.subject, self.subject].map(|it| &it.alternatives);
        let is_apart =
            self.same_choice() && one.len().min(other.len()) > 1 && shared(one, other) < 2;
        self.is_directive() && same && !is_apart
    }

    fn is_repeated(&self) -> bool {
        self.is_equal() || (self.like.is_near && self.same_choice())
    }

    /// True if both choose the same among alternatives, or say the same in nearly the same words.
    fn same_choice(&self) -> bool {
        let (new, old) = (&self.new.subject, self.subject);
        let named = new.named.first();
        let is_worded = || {
            named == old.named.first()
                && named.is_none_or(|it| !it.is_empty())
                && new.hard == old.hard
                && new.statement.is_bound_as(&old.statement)
                && new.statement.is_ordered_as(&old.statement)
        };
        (new.chosen.is_some() && new.chosen == old.chosen) || is_worded()
    }
}

pub(super) fn is_protected(memory: &Memory) -> bool {
    memory.confirmed || memory.said_by == Speaker::Person
}

/// A retracted memory stays retracted, unless a person raises it again later.
fn retracted(pair: &RulePair<'_>) -> Option<Ruling> {
    if pair.memory.state != MemoryState::Retracted {
        return None;
    }
    let then = pair.memory.valid_until.or(pair.memory.valid_from);
    let later = pair.new.facts.at.zip(then).is_some_and(|(at, then)| then < at);
    let again = pair.new.person && later;
    Some(if pair.is_repeated() && !again { Ruling::Discard } else { Ruling::Unrelated })
}

/// A superseded memory stays as it is; a record from its time duplicates it.
fn past(pair: &RulePair<'_>) -> Option<Ruling> {
    if pair.memory.state != MemoryState::Superseded {
        return None;
    }
    let held = pair.new.facts.at.zip(pair.memory.valid_until).is_some_and(|(at, until)| at < until);
    Some(if held && pair.is_repeated() { Ruling::Duplicate } else { Ruling::Unrelated })
}

/// A fulfilled request can be made again, and a settled question raised again.
fn asked_again(pair: &RulePair<'_>) -> Option<Ruling> {
    let is_again = pair.asks_again() && pair.is_repeated() || pair.reopens() && pair.is_restated();
    is_again.then_some(Ruling::Unrelated)
}

fn equal(pair: &RulePair<'_>) -> Option<Ruling> {
    pair.is_equal().then_some(Ruling::Duplicate)
}

/// The same attempt again: the later outcome counts.
fn outcome(pair: &RulePair<'_>) -> Option<Ruling> {
    if pair.kind() != ClaimKind::Attempt {
        return None;
    }
    let (new, old) = (&pair.new.subject.statement, &pair.subject.statement);
    if !pair.like.is_near || !new.is_bound_as(old) {
        return None;
    }
    let (at, then) = (pair.new.facts.at, pair.memory.valid_from);
    let days = at.zip(then).map(|(at, then)| at.since(then).max(then.since(at)).as_secs() / 86_400);
    let near = days.is_some_and(|days| days <= EPISODE_DAYS_MAX);
    let known = pair.subject.weight() >= EPISODE_WORDS_MIN;
    if !(pair.together || (near && known)) {
        return Some(Ruling::Unrelated);
    }
    Some(match pair.order {
        Order::Earlier => Ruling::Merge(Merging::Provenance),
        Order::Same | Order::Unknown => Ruling::Unrelated,
        Order::Later if !pair.may_extend() && pair.memory.stage == pair.new.facts.stage => {
            Ruling::Related
        }
        Order::Later if !pair.may_extend() => Ruling::Conflict,
        Order::Later if pair.is_decided() => Ruling::Merge(Merging::Provenance),
        Order::Later => match (pair.memory.stage, pair.new.facts.stage) {
            (Stage::Refuted, Stage::Decided) => Ruling::Supersede,
            (Stage::Decided, Stage::Attempted) => Ruling::Outcome(Stage::Refuted),
            (_, stage) => Ruling::Outcome(stage),
        },
    })
}

/// A different choice among the same alternatives.
fn reversal(pair: &RulePair<'_>) -> Option<Ruling> {
    let (new, old) = (&pair.new.subject, pair.subject);
    let (chosen, former) = (new.chosen?, old.chosen?);
    let weighed = |subject: &Subject, key: u64| subject.alternatives.binary_search(&key).is_ok();
    let matter = pair.like.rationale > 0 || pair.together;
    let rivals = weighed(new, former) && (weighed(old, chosen) || matter);
    if pair.same_choice() || !rivals {
        return None;
    }
    if pair.like.generic >= 2 && pair.like.rationale < 2 {
        return Some(Ruling::Related);
    }
    Some(match pair.order {
        Order::Later if matter && pair.is_change_heard() && pair.may_follow() => Ruling::Supersede,
        Order::Earlier if matter && pair.memory.said_by <= pair.new.facts.said_by => Ruling::Late,
        Order::Later | Order::Earlier | Order::Same | Order::Unknown => Ruling::Conflict,
    })
}

/// The same but for case, punctuation, fillers or a missing word.
fn near(pair: &RulePair<'_>) -> Option<Ruling> {
    // `Yes` says nothing of what about.
    let is_bare = pair.like.generic >= 2 && pair.like.rationale < 2;
    if !pair.like.is_near || !pair.same_choice() || is_bare {
        return None;
    }
    match pair.kind() {
        ClaimKind::Discussion if pair.may_extend() => Some(Ruling::Merge(Merging::Extend)),
        ClaimKind::Discussion if pair.like.says_more => Some(Ruling::Unrelated),
        ClaimKind::Discussion | ClaimKind::Request | ClaimKind::Attempt | ClaimKind::Decision => {
            Some(Ruling::Merge(Merging::Provenance))
        }
    }
}

/// A failed attempt was retried and works.
fn solved(pair: &RulePair<'_>) -> Option<Ruling> {
    if pair.kind() != ClaimKind::Attempt || !pair.is_active() {
        return None;
    }
    let (new, old) = (&pair.new.subject.statement, &pair.subject.statement);
    let ruling = pair.solving()?;
    let (failed, works) = if ruling == Ruling::Solves { (old, new) } else { (new, old) };
    let (common, all) = works.covers(failed);
    let exact = shared(&pair.new.subject.hard, &pair.subject.hard);
    let again = common == all && all + exact > 1
        || (common + exact >= SOLVED_WORDS_MIN && common as f64 >= SOLVED * all as f64);
    // In one conversation, a command that works now was mended, whatever was changed before it.
    let is_rerun = pair.together && works.deed.reruns(&failed.deed);
    let is_again = pair.together && works.deed.again && common > 1 && common * 2 >= all;
    let retries = is_again || again && works.retries(failed);
    (is_rerun || retries && works.is_finished && !works.is_preparation).then_some(ruling)
}

fn restated(pair: &RulePair<'_>) -> Option<Ruling> {
    pair.is_restated().then_some(Ruling::Merge(Merging::Provenance))
}

/// The same decision with something else in one place; the rest of the claim tells what was there.
fn replaced(pair: &RulePair<'_>) -> Option<Ruling> {
    let (later, former) = pair.in_time()?;
    let is_heard = pair.new.person || pair.agreed || !is_protected(pair.memory);
    let ruling = match pair.order {
        Order::Later if is_heard && pair.may_follow() => Ruling::Supersede,
        Order::Earlier if pair.may_precede() => Ruling::Late,
        Order::Later | Order::Earlier | Order::Same | Order::Unknown => return None,
    };
    (pair.kind() == ClaimKind::Decision && later.replaces(former)).then_some(ruling)
}

/// Another value for exactly this topic; it replaces the former one if words mention a change.
fn revised(pair: &RulePair<'_>) -> Option<Ruling> {
    let (later, former) = pair.in_time()?;
    if !pair.is_directive() || !later.revises(former) {
        return None;
    }
    if later.is_of_another(former) {
        return Some(Ruling::Related);
    }
    let knows = later.knows(former);
    let (ruling, changes) = match pair.order {
        Order::Earlier => {
            let is_trusted = pair.memory.said_by <= pair.new.facts.said_by;
            (Ruling::Late, (later.says_change || knows) && is_trusted)
        }
        Order::Later | Order::Same | Order::Unknown => {
            let aware = pair.agreed || pair.new.person && knows;
            (Ruling::Supersede, (aware || pair.is_change_heard()) && pair.may_follow())
        }
    };
    Some(if changes && !later.may_be_of_another(former) { ruling } else { Ruling::Conflict })
}

/// A person says that this was said before, and the values are the same.
fn said_again(pair: &RulePair<'_>) -> Option<Ruling> {
    let (later, former) = pair.in_time()?;
    let trusted = pair.new.person || !is_protected(pair.memory);
    (pair.is_active_decision() && trusted && later.says_again(former))
        .then_some(Ruling::Merge(Merging::Provenance))
}

/// So many words in common that a model should decide.
fn alike(pair: &RulePair<'_>) -> Option<Ruling> {
    let limit = if pair.like.is_one_sided { ALIKE_ONE_SIDED } else { ALIKE_TWO_SIDED };
    let many = pair.new.subject.weight().min(pair.subject.weight()) >= 3;
    // Attempts are events: only a later success changes what a failure means.
    let is_about = pair.kind() != ClaimKind::Attempt || pair.solving().is_some();
    let (new, old) = (&pair.new.subject.statement, &pair.subject.statement);
    let may_contradict =
        new.may_contradict(old) && !new.is_of_another(old) && !old.is_of_another(new);
    let ruling = if may_contradict { Ruling::Conflict } else { Ruling::Related };
    (many && is_about && pair.like.words >= limit).then_some(ruling)
}

/// Words of change about something that may be the memory's topic, or another value for it.
fn may_replace(pair: &RulePair<'_>) -> Option<Ruling> {
    let (later, former) = pair.in_time()?;
    let decides = pair.is_active_decision() && !pair.new.hearsay;
    let is_said = pair.new.change_by.is_some();
    let changes = if pair.order == Order::Later { is_said } else { later.says_change };
    let near = later.gives_up(former) || pair.like.words >= REPLACED_WORDS;
    let outdates =
        (changes && near) || later.is_valued_otherwise(former) || later.tells_lost_of(former);
    (decides && outdates).then_some(Ruling::Suspect)
}
