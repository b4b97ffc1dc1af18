//! Effects between memories of different kinds: an attempt completes a request; a decision, or as a model finds also an
//! attempt, settles a question; a decision withdraws a request, or as a model finds ends the result of an attempt. The
//! later one changes the earlier one, in whatever order they arrive. Completion only changes a request's stage; to
//! supersede what a person asked, a person must have decided.

use super::candidates::{Candidate, WorkingSet, keys};
use super::incoming::{Incoming, Order, RecordPlace, is_hearsay};
use super::parts::{shared, without};
use super::phrases::{list, says_no};
use super::quantity::words_of;
use super::question::{is_settled, question};
use super::rules::is_protected;
use super::stated::clauses;
use super::statement::{Statement, needs_permission, text};
use super::subject::{SearchKeys, Subject};
use super::verdict::{Verdict, Verdicts};
use crate::domain::{
    Claim, ClaimKind, Effect, JUDGED, LAID_DOWN, LeftOpen, Memory, MemoryId, MemoryState,
    PERSON_EDITED, Record, RecordId, Stage, WISH_GRANTED, WISH_REFUSED, WISH_WITHDRAWN,
};
use crate::text::ends::is_of_day;
use crate::text::phrase::without_asides;
use crate::text::stems::is_no;
use crate::text::tokens::folded;
use crate::text::wording::{self, is_constraint, is_prohibition};
use foldhash::HashMap;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Minimum share of a question's words in a decision that answers it, and in one that may.
const COVERED: f64 = 0.7;
const COVERED_MAYBE: f64 = 0.5;
/// Minimum number of shared words; an exact word such as a path counts as two.
const WORDS_MIN: usize = 3;
/// Minimum share of a request's words in an attempt, and in its action.
const DONE: f64 = 0.65;
const DONE_BY_ACTION: f64 = 0.5;
/// Minimum share of a request's words in a decision that withdraws it.
const WITHDRAWN_SHARE: f64 = 0.5;
/// Minimum share of a request's words in a decision that says the same.
const GRANTED: f64 = 0.65;
/// Minimum share of a request for several things that an answer must name.
const OF_SEVERAL: f64 = 0.8;
/// Minimum number of a request's words in a decision that merely negates or drops it.
const REQUEST_WORDS_MIN: usize = 2;
/// Maximum number of memories of another kind that one record is compared with.
const ACROSS_MAX: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Across {
    pub(super) effects: Vec<Effect>,
    pub(super) open: Vec<LeftOpen>,
    /// Possibly related memories, and how near they are.
    pub(super) related: Vec<(f64, MemoryId)>,
}

#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) working: &'a WorkingSet<'a>,
    pub(super) places: &'a HashMap<MemoryId, RecordPlace>,
    /// Places at which memories were last said again.
    pub(super) again: &'a HashMap<MemoryId, RecordPlace>,
    pub(super) verdicts: &'a Verdicts,
}

/// Kinds that may relate to a record of `kind`, and whether the record answers them. Only a model relates an attempt to
/// a question, to a decision that ends what it left behind, or to one that held until it succeeded.
fn others(kind: ClaimKind) -> &'static [(ClaimKind, bool)] {
    match kind {
        ClaimKind::Attempt => &[
            (ClaimKind::Request, true),
            (ClaimKind::Discussion, true),
            (ClaimKind::Decision, false),
        ],
        ClaimKind::Decision => {
            &[(ClaimKind::Discussion, true), (ClaimKind::Request, true), (ClaimKind::Attempt, true)]
        }
        ClaimKind::Request => &[
            (ClaimKind::Attempt, false),
            (ClaimKind::Decision, false),
            (ClaimKind::Discussion, false),
        ],
        ClaimKind::Discussion => {
            &[(ClaimKind::Decision, false), (ClaimKind::Attempt, false), (ClaimKind::Request, true)]
        }
    }
}

/// True for a request that holds from then on.
fn is_rule(wish: &str) -> bool {
    is_constraint(wish) || is_prohibition(wish)
}

/// True if words can relate memories of these kinds.
fn is_by_words(record: ClaimKind, other: ClaimKind) -> bool {
    use ClaimKind::{Attempt, Decision, Discussion, Request};
    let is_judged = |one, other| {
        matches!((one, other), (Discussion, Request) | (Attempt, Discussion | Decision))
    };
    !is_judged(record, other) && !is_judged(other, record)
}

/// True if a decision says what a wish says, in most of its words.
fn is_said_by(asked: &Statement, answer: &Statement) -> bool {
    // The reason of a rule may be part of the wish.
    let (said, all) = answer.covers(asked);
    let named = answer.names(asked);
    answer.says_no == asked.says_no
        && answer.withdraws == asked.withdraws
        && answer.lacks_nothing(asked)
        && (asked.is_change || !answer.is_change)
        && named >= REQUEST_WORDS_MIN
        && named * 2 >= all
        && said as f64 >= GRANTED * all as f64
}

/// Keys under which a plan for `records` looks up memories.
pub(crate) fn looked_up_keys(records: &[Record]) -> BTreeSet<u64> {
    let mut found = Vec::new();
    for record in records {
        let search = SearchKeys::of(&record.claim);
        let kinds = others(search.kind).iter().map(|(kind, _)| *kind).chain([search.kind]);
        let kinds = kinds.filter(|kind| is_by_words(search.kind, *kind));
        kinds.for_each(|kind| found.extend(keys(&search, kind).map(|(key, _)| key)));
    }
    found.into_iter().collect()
}

pub(super) fn across(new: &Incoming<'_>, home: MemoryId, view: View<'_>) -> Across {
    let mut all = Across::default();
    let Some(home) = view.working.get(home).filter(|home| home.state == MemoryState::Active) else {
        return all;
    };
    // What is said again answers as much as all that was said of it.
    let subject = || view.working.subject(home, new.facts.at);
    let whole = (home.id != new.own).then(|| Incoming { subject: subject(), ..new.clone() });
    for (kind, earlier) in others(new.subject.search.kind) {
        // By words, an older answer must not close a question that was raised again since.
        let is_raised_again = !earlier && home.id != new.own;
        let active = |it: &Candidate<'_>| {
            it.memory.state == MemoryState::Active && !it.memory.is_fulfilled()
        };
        let mut found = Vec::new();
        if is_by_words(new.subject.search.kind, *kind) && !is_raised_again {
            let near = view.working.candidates(new, *kind).into_iter().filter(active);
            found.extend(near.take(ACROSS_MAX));
        }
        let named = view.verdicts.memories_of(new.record.id);
        let named = view.working.named(new, named, *kind, &found);
        found.extend(named.into_iter().filter(active));
        let mut strongest: Option<(f64, LeftOpen)> = None;
        for Candidate { memory, subject, near } in found {
            let again = view.again.get(&memory.id).filter(|it| it.session == new.place.session);
            let is_asked = |it: ClaimKind| matches!(it, ClaimKind::Discussion | ClaimKind::Request);
            let again = again.filter(|_| is_asked(new.subject.search.kind));
            let there = again.or(view.places.get(&memory.id)).copied();
            let is_together = there.is_some_and(|there| there.session == new.place.session);
            let order = new.order_to(memory, there);
            let verdict = view.verdicts.get(new.record.id, memory.id);
            let is_replaced = matches!(verdict, Some(Verdict::Replaces { .. }));
            let link = Link { is_together, ..Link::of(new, home, memory, order, is_replaced) };
            let order = link.order(order);
            let is_granted = is_together && link.is_granted(&subject);
            let whole = whole.as_ref().filter(|_| *kind == ClaimKind::Discussion);
            let by_whole = whole.map(|whole| Link { new: whole, ..link }.covers(&subject));
            let found = by_whole.into_iter().chain([link.covers(&subject)]);
            let best = found
                .max_by(|(one, sure), (other, than)| sure.cmp(than).then(one.total_cmp(other)));
            let (covered, sure) = best.unwrap_or_default();
            if let Some(Verdict::Replaces { agreed }) = verdict {
                all.effects.extend(link.judged(order, agreed));
            }
            if is_raised_again || matches!(verdict, Some(Verdict::Replaces { .. })) {
                continue;
            }
            let is_said = matches!(verdict, Some(Verdict::Same | Verdict::Covered));
            if is_granted || is_together && is_said {
                // Both were said together, in whatever order.
                let found = link.follow(link.laid_down(), true, Order::Later, false);
                all.effects.extend(found.and_then(Result::ok));
                continue;
            }
            let sure = sure && covered >= COVERED_MAYBE;
            let found = link.follow(link.consequence(), sure, order, false);
            let open = found.and_then(|found| found.map(|effect| all.effects.push(effect)).err());
            // Only a model can tell whether a wish overrules an earlier decision.
            let may_overrule = !earlier && link.overruled(order).is_some();
            if verdict.is_none() && (may_overrule || open.is_some()) {
                all.related.push((near, memory.id));
            }
            let better = |(most, _): &(f64, LeftOpen)| *most < covered;
            let is_likely = covered >= COVERED_MAYBE && strongest.as_ref().is_none_or(better);
            if let Some(open) = open.filter(|_| verdict.is_none() && is_likely) {
                strongest = Some((covered, open));
            }
        }
        all.open.extend(strongest.map(|(_, open)| open));
    }
    // A record's question may have several answers; the nearest one counts.
    all.effects.dedup_by_key(|effect| effect.memory);
    let ended: Vec<Effect> = all.effects.iter().flat_map(|it| overruled(it, view)).collect();
    all.effects.extend(ended);
    all
}

/// Effects on decisions of earlier conversations in whose place a model found the wish of a person that `effect`
/// completes. A wish that is open has changed nothing yet.
fn overruled(effect: &Effect, view: View<'_>) -> Vec<Effect> {
    let wish = view.working.get(effect.memory).filter(|it| it.claim.kind() == ClaimKind::Request);
    let wish = wish.filter(|it| effect.stage == Some(Stage::Decided) && is_protected(it));
    let Some(wish) = wish else { return Vec::new() };
    let session = |id: MemoryId| view.places.get(&id).map(|place| place.session);
    let is_overruled = |it: &&Memory| {
        it.claim.kind() == ClaimKind::Decision
            && it.state == MemoryState::Active
            && it.id != effect.by
            && it.valid_from < wish.valid_from
            && !it.is_decided_after(wish.valid_from)
            && (session(it.id).is_none() || session(it.id) != session(wish.id))
    };
    let replaces = |record: &RecordId| {
        let verdict = |id| view.verdicts.get(*record, id);
        let all = view.verdicts.memories_of(*record);
        all.filter(|id| matches!(verdict(*id), Some(Verdict::Replaces { .. }))).collect::<Vec<_>>()
    };
    let judged = wish.sources.iter().flat_map(replaces);
    let decisions = judged.filter_map(|id| view.working.get(id)).filter(is_overruled);
    // What granted the wish says what holds now.
    let granted = view.working.get(effect.by).filter(|it| it.claim.kind() == ClaimKind::Decision);
    let by = granted.map_or(wish.id, |it| it.id);
    let ended = |it: &Memory| {
        let effect = Effect::new(it.id, by, wish.valid_from, "judged-replaced");
        Effect { supersedes: true, ..effect }
    };
    decisions.map(ended).collect()
}

/// Share of a request's words in an attempt, and whether it surely does, or tried, what was asked for. The request comes
/// first in both pairs.
fn attempts([asked, tried]: [&Claim; 2], [before, after]: [&Subject; 2]) -> (f64, bool) {
    // One deed does not fulfil a standing rule.
    if is_rule(asked.headline()) {
        return (0.0, false);
    }
    let (said, whole) = after.statement.covers(&before.statement);
    let share = |count: usize| if whole == 0 { 0.0 } else { count as f64 / whole as f64 };
    let failed = matches!(tried, Claim::Attempt(it) if !it.succeeded);
    let (wish, deed) = (folded(&text(asked)), folded(&text(tried)));
    let removes = list("removals").are_in(&deed) && !list("removals").are_in(&wish);
    // Whoever asks to find something out is answered by any way of doing so.
    let finds = before.statement.is_preparation && after.statement.is_preparation;
    let does = finds || after.statement.deed.does(&before.statement.deed);
    // Another verb for the same deed counts as the verb of the request.
    let verb = usize::from(does && after.statement.exchanges_verb(&before.statement));
    let (said, named) = (said + verb, after.statement.names(&before.statement) + verb);
    let exact = shared(&before.hard, &after.hard);
    let enough = said + exact >= WORDS_MIN.min(whole + exact);
    let is_list = before.statement.deed.is_list();
    let prepares = after.statement.is_preparation && (!before.statement.is_preparation || is_list);
    let elsewhere = after.statement.exchanges(&before.statement);
    let is_part = list("a part").are_in(&folded(tried.headline())) && !list("a part").are_in(&wish)
        || after.statement.names_others(&before.statement);
    let is_finished = !is_part && (after.statement.is_finished || failed);
    // One deed does not end what is to go on.
    let goes_on = list("ongoing").are_in(&wish);
    let is_completed = does && is_finished && !prepares && !elsewhere && !removes && !goes_on;
    let least = if is_list { OF_SEVERAL } else { DONE_BY_ACTION };
    let sure = share(named) >= least && share(said) >= DONE && enough;
    (share(said), sure && is_completed && whole > 1)
}

/// Effect of the record behind `home` on `memory` of another kind, as a model judged; `None` if the
/// policy forbids it.
pub(super) fn followed(
    new: &Incoming<'_>,
    home: &Memory,
    memory: &Memory,
    order: Order,
    agreed: bool,
    is_together: bool,
) -> Option<Effect> {
    let link = Link { is_together, ..Link::of(new, home, memory, order, true) };
    link.judged(link.order(order), agreed)
}

/// A record beside a memory of another kind.
#[derive(Clone, Copy)]
struct Link<'a> {
    new: &'a Incoming<'a>,
    memory: &'a Memory,
    asked: &'a Memory,
    answer: &'a Memory,
    /// True if the record is the answer, and the memory what it answers: a request, a question, or what it ends.
    earlier: bool,
    /// True if both were said in one conversation.
    is_together: bool,
}

/// True if a successful `attempt` ends `decision`: that holds only for the time being or says what is left to do, as in `tickets
/// are written by hand for now`, `until the printer works`, `the cause is still to be found`; or, as a model found, the attempt
/// sets another value. A standing rule and what needs a permission stay.
fn is_ended(decision: &Memory, attempt: &Memory, is_judged: bool) -> bool {
    let (Claim::Decision(it), Claim::Attempt(deed)) = (&decision.claim, &attempt.claim) else {
        return false;
    };
    let head = folded(&it.chosen);
    let words = words_of(&head);
    // `bis 50 MB` is an amount, and a day needs no deed.
    let is_number = |word: &&str| word.starts_with(|it: char| it.is_ascii_digit());
    let is_until = |at: usize| {
        // `Not used before the cable is right`.
        let is_denied = || words[..at].iter().any(|word| is_no(word));
        let before = || list("before").begin(&words[at..]).filter(|_| is_denied());
        let end = list("until").begin(&words[at..]).or_else(before).map(|length| at + length);
        end.is_some_and(|end| !words[end..].iter().take(2).any(|it| is_number(it) || is_of_day(it)))
    };
    let is_for_a_time = list("interim").are_in(&head)
        || list("unfinished").are_in(&head) && !head.contains([',', ';'])
        || (0..words.len()).any(is_until);
    let is_revalued = || {
        let [before, after] = [decision, attempt].map(|it| Statement::of(&it.claim));
        after.names(&before) > 0 && after.has_other_values(&before)
    };
    // About one thing, as `the total is not told until the rate is set`, it is no rule about all of a kind.
    let is_of_one = || words.first().is_some_and(|it| list("definite articles").has(it));
    let is_rule = wording::is_rule(&it.chosen, &it.rationale);
    let is_over = is_for_a_time && (!is_rule || is_of_one());
    deed.succeeded
        && !needs_permission(&head)
        && (is_over || is_judged && !is_rule && is_revalued())
}

/// True if a clause of the answer denies something, unless that leaves out what nobody wished for (`in English, without
/// ticket numbers` grants English) or what the wish leaves (`on the 15th, not on the 1st`).
fn denies_wish(asked: &Claim, answer: &Claim) -> bool {
    let wish = Subject::of(asked).statement;
    let wanted = without(wish.topic(), wish.dismissed());
    let mut is_named = false;
    clauses(&folded(&without_asides(answer.headline()))).any(|clause| {
        let clause = Subject::of(&answer.in_words(clause)).statement;
        let denies = clause.says_no && (!is_named || shared(clause.topic(), &wanted) > 0);
        is_named |= clause.names(&wish) > 0;
        denies
    })
}

/// Consequence of an answer for the memory that asked.
struct Consequence {
    stage: Option<Stage>,
    supersedes: bool,
    rule: &'static str,
    open_rule: &'static str,
}

impl Consequence {
    /// Nothing remains to be done.
    fn done(rule: &'static str) -> Consequence {
        let stage = Some(Stage::Decided);
        Consequence { stage, supersedes: false, rule, open_rule: "may-complete" }
    }
}

impl<'a> Link<'a> {
    /// `home` is the memory that rests on the record. Of a decision and an attempt that ends it, the attempt is the answer.
    fn of(
        new: &'a Incoming<'a>,
        home: &'a Memory,
        memory: &'a Memory,
        order: Order,
        is_replaced: bool,
    ) -> Link<'a> {
        let mut earlier = others(new.subject.search.kind).contains(&(memory.claim.kind(), true));
        if order == Order::Later && is_ended(memory, home, is_replaced) {
            earlier = true;
        } else if order == Order::Earlier && is_ended(home, memory, is_replaced) {
            earlier = false;
        }
        let (asked, answer) = if earlier { (memory, home) } else { (home, memory) };
        Link { new, memory, asked, answer, earlier, is_together: false }
    }

    /// Returns the value of the question and that of the answer.
    fn in_turn<T>(&self, of_memory: T, own: T) -> (T, T) {
        if self.earlier { (of_memory, own) } else { (own, of_memory) }
    }

    /// Order of the answer relative to the question, from that of the record relative to the memory. A question that was
    /// raised again after the answer is later.
    fn order(&self, order: Order) -> Order {
        let is_again = || self.memory.is_said_after(self.new.facts.at);
        match self.earlier {
            true if order == Order::Later && is_again() => Order::Earlier,
            true => order,
            false => order.turned(),
        }
    }

    /// The claim of one of both, in a person's wording if the record is later than that.
    fn claim(&self, memory: &'a Memory) -> Cow<'a, Claim> {
        memory.claim_at(self.new.facts.at)
    }

    fn is_wish_and_decision(&self) -> bool {
        matches!((&self.asked.claim, &self.answer.claim), (Claim::Request(_), Claim::Decision(_)))
    }

    /// Share of the request or question that the answer covers, and whether it surely follows.
    fn covers(&self, subject: &Subject) -> (f64, bool) {
        let [asked, answer] = [self.asked, self.answer].map(|it| self.claim(it));
        let (asked, answer) = (&*asked, &*answer);
        let (before, after) = self.in_turn(subject, &*self.new.subject);
        match (asked, answer) {
            (Claim::Request(_), Claim::Attempt(_)) => attempts([asked, answer], [before, after]),
            (Claim::Request(_), Claim::Decision(_)) => {
                let (wish, words) = (folded(&text(asked)), folded(&text(answer)));
                let says_no = after.statement.says_no && !before.statement.says_no;
                let withdrawn =
                    list("withdrawn").are_in(&words) && !list("withdrawn").are_in(&wish);
                let names = after.statement.names(&before.statement);
                let whole = before.statement.topic().len();
                let share = if whole == 0 { 0.0 } else { names as f64 / whole as f64 };
                // A plain no to the request withdraws it, and so do words of withdrawal.
                let plain =
                    after.statement.is_within(&before.statement) && names >= REQUEST_WORDS_MIN;
                let back = (says_no && withdrawn) || (plain && (says_no || withdrawn));
                let least =
                    if before.statement.deed.is_list() { OF_SEVERAL } else { WITHDRAWN_SHARE };
                // A decision that denies nothing grants the wish or is about something else. In one conversation it
                // says how the wish is granted, unless it begins with a denial.
                let forbids = |claim| is_prohibition(Claim::headline(claim));
                let opposes = match self.is_together {
                    true => says_no && forbids(answer),
                    false => says_no || after.statement.is_change && !before.statement.is_change,
                };
                let opposes = opposes || withdrawn || (forbids(asked) && !after.statement.says_no);
                (if opposes { share } else { 0.0 }, back && share >= least)
            }
            _ => {
                let covered = cover(before, after);
                // A question about Sundays is not answered for Saturdays.
                let is_same_day = after.statement.is_on_day_of(&before.statement);
                // To refuse one way leaves open which one is taken.
                let first = folded(asked.headline());
                let first = first.split([' ', ',']).next().unwrap_or_default();
                let is_open = list("open questions").has(first);
                let refuses = is_open && says_no(first_clause(&folded(answer.headline())));
                let is_of_choice = after.statement.names_choice(&before.statement);
                // To read is no answer to whether they may edit.
                let (said, all) = after.statement.covers(&before.statement);
                let is_whole = is_open || said == all;
                let stays_open =
                    list("postponed").are_in(&folded(&text(answer))) || self.stays_open();
                let fits = is_same_day && is_of_choice && is_whole;
                (covered, covered >= COVERED && fits && !refuses && !stays_open)
            }
        }
    }

    /// True if a decision says what a request says, in most of its words. In one conversation, that grants the wish.
    fn is_granted(&self, subject: &Subject) -> bool {
        let (asked, answer) = self.in_turn(subject, &*self.new.subject);
        self.is_wish_and_decision() && is_said_by(&asked.statement, &answer.statement)
    }

    /// True if a wish asks for what a decision says already: it was granted by it, or says the same.
    fn asks_again(&self) -> bool {
        let says_the_same = || {
            let both = [self.asked, self.answer].map(|it| Subject::of(&self.claim(it)).statement);
            let [asked, answer] = &both;
            is_said_by(asked, answer)
        };
        let is_granted = self.asked.settled_by == Some(self.answer.id);
        self.is_wish_and_decision() && (is_granted || says_the_same())
    }

    /// Consequence of granting a standing rule or a prohibition, which no deed fulfils: the decision is the rule.
    /// `None` for anything else, which remains to be done.
    fn laid_down(&self) -> Option<Consequence> {
        let wish = self.claim(self.asked);
        let wish = wish.headline();
        let is_rule = is_rule(wish);
        let is_open = self.asked.stage != Stage::Decided && !self.asked.confirmed;
        let is_laid_down = is_rule && is_open && !list("postponed").are_in(&folded(wish));
        (is_laid_down && self.is_wish_and_decision()).then(|| Consequence::done(LAID_DOWN))
    }

    /// Effect of a person's request on a decision of an earlier conversation, in whose place a model found it. `order`
    /// is that of the decision relative to the request.
    fn overruled(&self, order: Order) -> Option<Effect> {
        let (asked, answer) = (self.asked, self.answer);
        let person = if self.earlier { is_protected(asked) } else { self.new.person };
        let at = if self.earlier { asked.valid_from } else { self.new.facts.at };
        let is_later = order == Order::Earlier && !self.is_together;
        let holds = is_later && person && !answer.is_decided_after(at);
        let effect = Effect::new(answer.id, asked.id, at, "judged-replaced");
        (holds && self.is_wish_and_decision()).then_some(Effect { supersedes: true, ..effect })
    }

    /// Applies the effect as if the rules were sure, under a name of its own.
    fn judged(&self, order: Order, agreed: bool) -> Option<Effect> {
        let asks_again = self.asks_again();
        if let Some(effect) = self.overruled(order).filter(|_| !asks_again) {
            return Some(effect).filter(|_| !self.asked.is_open());
        }
        // What is only put off stays open, whatever a model found.
        let is_put_off = self.is_wish_and_decision()
            && list("postponed").are_in(&folded(self.claim(self.answer).headline()));
        if is_put_off || self.stays_open() {
            return None;
        }
        // In one conversation, a wish and the decision that grants it rest on the same words, in either order, and a
        // question may be quoted from where it was settled.
        let is_question = matches!(self.asked.claim, Claim::Discussion(_));
        let is_one = self.is_together && (self.is_wish_and_decision() || is_question);
        let is_later = order == Order::Same || is_one || asks_again;
        let order = if is_later { Order::Later } else { order };
        let undone = self.undone();
        let is_bridge = undone.is_some() && is_ended(self.asked, self.answer, false);
        let consequence = self.granted().or_else(|| self.found_out()).or(undone);
        let consequence = consequence.or_else(|| self.consequence());
        // Whether a question is settled or something works again is a fact, whoever brought it about.
        let agreed = agreed || is_question || is_bridge && !self.asked.confirmed;
        let effect = self.follow(consequence, true, order, agreed)?.ok()?;
        Some(Effect { rule: Cow::Owned(format!("{JUDGED}{}", effect.rule)), ..effect })
    }

    /// True if a question was left open at the end of the conversation in which the answer was given, too, or the decision
    /// answers it only for now, which was not the question.
    fn stays_open(&self) -> bool {
        let [asked, answer] = [self.asked, self.answer].map(|it| self.claim(it));
        let Claim::Discussion(it) = &*asked else { return false };
        let is_interim = |text: &str| list("interim").are_in(&folded(text));
        let is_for_now = is_interim(&text(&answer)) && !is_interim(question(&it.topic));
        self.is_together && is_settled(it) == Some(false)
            || answer.kind() == ClaimKind::Decision && is_for_now
    }

    /// Consequence of a decision that a model found to fulfil a request: nothing remains to be done. `None` if the
    /// decision denies or drops what was asked for.
    fn granted(&self) -> Option<Consequence> {
        if !self.is_wish_and_decision() || self.asked.stage == Stage::Decided {
            return None;
        }
        // A model judged the record's answer, which may have been merged into a memory in other words.
        let answer = if self.earlier { &self.new.record.claim } else { &*self.claim(self.answer) };
        let asked = &*self.claim(self.asked);
        let denies_any = |claim: &Claim| Subject::of(claim).statement.says_no;
        let (head, whole) = (answer.headline().to_owned(), text(answer));
        let named =
            |claim: &Claim| Subject::of(answer).statement.names(&Subject::of(claim).statement);
        let is_named = named(asked) > 0;
        // A ban may stand in the intent alone: "no keys in the repository", to keep them in the vault.
        // Without the name of who said it: `marta: no ads`.
        let wish = |intent: &str| {
            let named = intent.split_once(": ").filter(|(name, _)| !name.contains(' '));
            first_clause(named.map_or(intent, |(_, words)| words)).to_owned()
        };
        let is_ban = |claim: &Claim| {
            let topic = Subject::of(claim).statement.topic().len();
            denies_any(claim) && named(claim) * 2 > topic
        };
        let forbids = denies_any(asked)
            || matches!(asked, Claim::Request(it) if is_ban(&asked.in_words(&wish(&folded(&it.intent)))));
        let denies = !forbids && denies_any(answer) && denies_wish(asked, answer);
        let told = if is_named { head } else { whole };
        let drops = list("withdrawn").are_in(&folded(&told))
            && !list("withdrawn").are_in(&folded(&text(asked)));
        // A wish may tell its own end: "Prisma for the queries; refused by Marta".
        let wish = folded(asked.headline());
        let mut ends = wish.split([',', ';', '(']).skip(1).map(|end| end.trim_start().split(' '));
        let is_refused =
            ends.any(|mut end| end.next().is_some_and(|word| list("refusals").has(word)));
        (!denies && !drops && !is_refused).then(|| Consequence::done(WISH_GRANTED))
    }

    /// Consequence of an attempt that a model found to settle a question, by success or by failure, or of a settled question
    /// that tells what was to be found out.
    fn found_out(&self) -> Option<Consequence> {
        // The record may have been merged into a memory in other words.
        let answer = if self.earlier { &self.new.record.claim } else { &self.answer.claim };
        match (&self.asked.claim, answer) {
            (Claim::Discussion(_), Claim::Attempt(_)) if self.asked.stage == Stage::Proposed => {
                Some(Consequence { supersedes: true, ..Consequence::done("settled") })
            }
            (Claim::Request(_), Claim::Discussion(it)) if is_settled(it) == Some(true) => {
                self.asked.is_open().then(|| Consequence::done("completed"))
            }
            _ => None,
        }
    }

    /// Consequence of a decision that a model found to end what a successful attempt left behind, or to give up what a
    /// failed one was to reach, or of an attempt that ends what was decided for the time until then or sets another value.
    fn undone(&self) -> Option<Consequence> {
        let (rule, open_rule) = ("replaced", "may-replace");
        let replaced = Consequence { stage: None, supersedes: true, rule, open_rule };
        let solved = Consequence { stage: Some(Stage::Refuted), ..Consequence::done("solved") };
        match (&self.asked.claim, &self.answer.claim) {
            (Claim::Attempt(tried), Claim::Decision(_)) if tried.succeeded => Some(replaced),
            (Claim::Attempt(_), Claim::Decision(_)) => self.asked.is_open().then_some(solved),
            (Claim::Decision(_), Claim::Attempt(_)) => Some(replaced),
            _ => None,
        }
    }

    fn consequence(&self) -> Option<Consequence> {
        let (asked, answer) = (self.asked, self.answer);
        let consequence = match (&asked.claim, &answer.claim) {
            (Claim::Request(_), Claim::Attempt(_)) if answer.stage == Stage::Decided => {
                Consequence::done("completed")
            }
            (Claim::Request(_), Claim::Attempt(_)) => {
                let stage = Some(Stage::Attempted);
                Consequence { stage, ..Consequence::done("attempted") }
            }
            (Claim::Request(_), Claim::Decision(_)) if asked.stage != Stage::Decided => {
                let rule = if is_protected(answer) { WISH_WITHDRAWN } else { WISH_REFUSED };
                let open_rule = "may-withdraw";
                Consequence { stage: None, supersedes: true, rule, open_rule }
            }
            // Of one whose own record says that it was settled, this is how.
            (Claim::Discussion(_), Claim::Decision(_))
                if asked.is_open() || asked.settled_by.is_none() && asked.decided.is_none() =>
            {
                let stage = Some(Stage::Decided).filter(|_| asked.is_open());
                let (rule, open_rule) = ("settled", "may-settle");
                Consequence { stage, supersedes: true, rule, open_rule }
            }
            _ => return None,
        };
        let may_be = |it: &Consequence| it.stage.is_none_or(|stage| asked.stage.may_become(stage));
        Some(consequence).filter(may_be)
    }

    /// Effect of a consequence if the policy lets it, or the pair that it leaves open.
    fn follow(
        &self,
        consequence: Option<Consequence>,
        sure: bool,
        order: Order,
        agreed: bool,
    ) -> Option<Result<Effect, LeftOpen>> {
        let Link { new, memory, asked, answer, earlier, .. } = *self;
        let (at, person, hearsay) = match earlier {
            true => (new.facts.at, new.person, new.hearsay),
            false => {
                let hearsay = is_hearsay(memory.claim.kind(), memory.said_by);
                (memory.valid_from, is_protected(memory), hearsay)
            }
        };
        // A person's edit tells nothing about the stage; any other decision does.
        let is_edit = asked.decided.as_ref().is_some_and(|it| it.rule == PERSON_EDITED);
        let is_decided = !is_edit && asked.is_decided_after(at);
        let late = matches!(order, Order::Earlier | Order::Unknown);
        let Consequence { stage, supersedes, rule, open_rule } =
            consequence.filter(|_| !late && !hearsay && !is_decided)?;
        // Superseding what a person asked for takes a person. What a person confirmed is closed
        // only by a person or a successful attempt.
        let may_move = !asked.confirmed || person || stage == Some(Stage::Decided);
        let is_free = match supersedes {
            true => !is_protected(asked) || person || agreed,
            false => order == Order::Later && may_move,
        };
        if sure && is_free {
            let effect = Effect::new(asked.id, answer.id, at, rule);
            return Some(Ok(Effect { stage, supersedes, ..effect }));
        }
        let rule = Cow::Borrowed(open_rule);
        Some(Err(LeftOpen { record: new.record.id, memory: memory.id, rule }))
    }
}

/// Text up to the end of its first clause.
fn first_clause(folded: &str) -> &str {
    folded.split([',', ';', ':']).flat_map(|part| part.split(". ")).next().unwrap_or(folded)
}

/// Share of the question's words in the answer; zero with too little in common.
fn cover(asked: &Subject, answer: &Subject) -> f64 {
    let (whole, all) = (asked.all(), answer.all());
    let exact = shared(&asked.hard, &answer.hard);
    // A question about the decision names its alternatives, whatever its other words.
    let named = answer.named.iter().filter(|it| !it.is_empty() && shared(it, &whole) == it.len());
    if named.count() >= 2 {
        let sure = shared(&whole, &all) + exact >= WORDS_MIN;
        return if sure { 1.0 } else { COVERED_MAYBE };
    }
    let words = shared(&asked.words, &all);
    if words + exact < WORDS_MIN || asked.words.is_empty() {
        return 0.0;
    }
    words as f64 / asked.words.len() as f64
}
