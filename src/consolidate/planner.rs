//! Makes a plan: takes the records in order of time, applies the rules to each and its candidates,
//! and folds each operation into a working set for the records that follow.

use super::candidates::{Candidate, Memories, RELATED_NEAR, WorkingSet};
use super::cross_kind::{View, across, followed};
use super::incoming::{Incoming, Order, RecordPlace, record_place};
use super::rules::{REPLACED, REVISED, RULES, RulePair, Ruling, is_protected};
use super::subject::{Likeness, Subject};
use super::verdict::{OpenPair, Verdict, Verdicts};
use crate::domain::{
    Claim, ClaimKind, Disposition, Effect, Facts, Finding, JUDGED, LeftOpen, Match, Memory,
    MemoryId, MemoryState, Merging, Operation, PARTLY, Plan, RELATED, Record, RecordId,
    RecordState, Settlement, Severity, Stage, Timestamp, is_partly,
};
use foldhash::{HashMap, HashSet};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Maximum number of open pairs per record with a contradiction or repetition.
const OPEN_MAX: usize = 3;
/// Maximum number of open pairs per record that may be related; a model is shown the other memories in short.
const RELATED_MAX: usize = 3;
/// Minimum share of the nearness of the nearest one for the others.
const RELATED_SHARE_MIN: f64 = 0.9;

/// Plans one operation for each of `records` that was not processed yet, in the namespace of `memories`. `verdicts`
/// decide where the rules do not; without one, both sides are kept and the pair is left open.
pub fn consolidate(
    records: &[Record],
    memories: &Memories,
    verdicts: &Verdicts,
) -> (Plan, Vec<Finding>) {
    let Draft { plan, findings, .. } = Draft::of(records, &[], memories, verdicts);
    (plan, findings)
}

/// Plan made from the loaded memories.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) plan: Plan,
    pub(crate) findings: Vec<Finding>,
    /// Indexed memories that must be loaded for the plan to be the one that all memories give. Once
    /// they are loaded, more may be missing.
    pub(crate) missing: BTreeSet<MemoryId>,
}

impl Draft {
    /// Like [`consolidate`], but first settles the pairs that earlier plans left `open` and that have
    /// verdicts, because they were said earlier. Other pairs stay open.
    pub(crate) fn of(
        records: &[Record],
        open: &[OpenPair],
        memories: &Memories,
        verdicts: &Verdicts,
    ) -> Draft {
        let verdicts = verdicts.mirrored(memories.namespace(), records);
        let Planner { mut working, operations, open, findings, .. } =
            Planner::run(records, open, memories, verdicts);
        let before = std::mem::take(&mut working.before).into_values().collect();
        let loaded = memories.loaded();
        let mut missing = working.missing.into_inner();
        let successors = loaded.values().filter_map(|it| it.superseded_by);
        missing.extend(successors.filter(|id| !loaded.contains_key(id)));
        let namespace = memories.namespace().to_owned();
        let plan = Plan::new(namespace, operations, before, open.into_iter().collect());
        Draft { plan, findings, missing }
    }
}

/// Unprocessed records, earliest first; those without a time come last, each conversation in order.
fn in_order<'a>(records: &'a [Record], memories: &Memories) -> Vec<&'a Record> {
    let mut seen = HashSet::default();
    let fresh = |record: &&Record| !memories.has_taken(record.id) && seen.insert(record.id);
    let mut ordered: Vec<&Record> = records.iter().filter(fresh).collect();
    ordered.sort_by_cached_key(|record| {
        let at = record.provenance.at;
        (at.is_none(), at, record_place(record), record.id)
    });
    ordered
}

struct Planner<'a> {
    working: WorkingSet<'a>,
    namespace: &'a str,
    verdicts: Verdicts,
    /// Records with a verdict that changes something about a memory, by the memory.
    judged: HashMap<MemoryId, Vec<RecordId>>,
    places: HashMap<MemoryId, RecordPlace>,
    /// Places at which memories were last said again.
    again: HashMap<MemoryId, RecordPlace>,
    /// Memories that say the same as others and stand for them.
    stand_ins: HashMap<MemoryId, MemoryId>,
    operations: Vec<Operation>,
    open: BTreeSet<LeftOpen>,
    /// Memories with which the current record was left open.
    beside: Vec<MemoryId>,
    /// Possibly related memories of the current record, and how near they are.
    related: Vec<(f64, MemoryId)>,
    findings: Vec<Finding>,
}

/// A ruling about a memory, with its rank.
#[derive(Clone, Debug)]
struct RankedRuling {
    memory: MemoryId,
    ruling: Ruling,
    rule: &'static str,
    words: f64,
    near: f64,
    since: Option<Timestamp>,
    active: bool,
    open: bool,
    /// True if the record names a value of the memory.
    is_named: bool,
}

impl RankedRuling {
    /// Active memories first, then duplicates, the nearest, the earliest; ties by id.
    fn order(&self, other: &RankedRuling) -> Ordering {
        let near = other.words.total_cmp(&self.words);
        let exact = |it: &RankedRuling| it.ruling != Ruling::Duplicate;
        let first = (!self.active, exact(self)).cmp(&(!other.active, exact(other)));
        first.then(near).then((self.since, self.memory).cmp(&(other.since, other.memory)))
    }
}

struct Choice {
    disposition: Disposition,
    rule: &'static str,
    effects: Vec<Effect>,
    stage: Option<Stage>,
}

impl Choice {
    fn new(disposition: Disposition, rule: &'static str) -> Choice {
        Choice { disposition, rule, effects: Vec::new(), stage: None }
    }
}

impl<'a> Planner<'a> {
    fn run(
        records: &[Record],
        open: &[OpenPair],
        memories: &'a Memories,
        verdicts: Verdicts,
    ) -> Planner<'a> {
        let mut planner = Planner {
            working: WorkingSet::new(memories),
            namespace: memories.namespace(),
            judged: verdicts.by_memory(),
            verdicts,
            places: HashMap::default(),
            again: HashMap::default(),
            stand_ins: HashMap::default(),
            operations: Vec::new(),
            open: BTreeSet::new(),
            beside: Vec::new(),
            related: Vec::new(),
            findings: Vec::new(),
        };
        for pair in open {
            planner.settle_pair(pair);
        }
        for record in in_order(records, memories) {
            planner.take(record);
        }
        planner
    }

    fn take(&mut self, record: &Record) {
        let own = Memory::id_of(self.namespace, record.id);
        let mut new = Incoming::new(record, own);
        new.facts.ends = self.verdicts.end_of(record.id);
        // Other records kept its memory alive after it was withdrawn.
        let came_back = self.working.get(own).is_some_and(|memory| !memory.is_hollow());
        let choice = match self.refuse(&new) {
            Some(rule) => Choice::new(Disposition::Discard, rule),
            None if came_back => Choice::new(Disposition::Duplicate { of: own }, "came-back"),
            None => self.choose(&new),
        };
        self.settle(&new, choice);
    }

    /// Reason why a record becomes no memory, regardless of other memories.
    fn refuse(&self, new: &Incoming<'_>) -> Option<&'static str> {
        let record = new.record;
        let says_what_is_to_be =
            matches!(new.subject.search.kind, ClaimKind::Decision | ClaimKind::Request);
        let reasons = [
            (record.provenance.namespace != self.namespace, "other-namespace"),
            (record.state != RecordState::Staged, "not-staged"),
            (record.evidence.is_empty(), "no-evidence"),
            (record.evidence.iter().all(|it| it.found == Match::Noted), "agent-note"),
            (new.subject.is_empty(), "says-nothing"),
            (says_what_is_to_be && new.hearsay, "tools-and-web-only"),
        ];
        reasons.into_iter().find(|(applies, _)| *applies).map(|(_, rule)| rule)
    }

    /// Chooses the ruling that keeps the most.
    fn choose(&mut self, new: &Incoming<'_>) -> Choice {
        let mut judged = self.judge(new);
        judged.sort_by(RankedRuling::order);
        // Words of change are about one memory: the one whose value they name.
        let is_guess = |it: &RankedRuling| {
            it.ruling == Ruling::Supersede && [REPLACED, REVISED].contains(&it.rule)
        };
        if judged.iter().any(|it| is_guess(it) && it.is_named) {
            let others = judged.iter_mut().filter(|it| is_guess(it) && !it.is_named);
            others.for_each(|it| it.ruling = Ruling::Conflict);
        }
        let mut choice = self.decide(new, &judged);
        if let Some(home) = choice.disposition.home() {
            let solving = judged.iter().filter(|it| it.ruling == Ruling::Solves);
            let solved = solving.map(|it| solved(it.memory, home, new.facts.at, it.rule));
            choice.effects.extend(solved);
        }
        if choice.disposition.home() == Some(new.own) {
            let by =
                judged.iter().filter(|it| it.ruling == Ruling::Solved).min_by_key(|it| it.since);
            choice.effects.extend(by.map(|it| solved(new.own, it.memory, it.since, it.rule)));
            let related = judged.iter().filter(|it| it.ruling == Ruling::Related && it.active);
            self.related.extend(related.map(|it| (it.near, it.memory)));
        }
        choice
    }

    fn decide(&mut self, new: &Incoming<'_>, judged: &[RankedRuling]) -> Choice {
        let of = |wanted: fn(&Ruling) -> bool| judged.iter().filter(move |it| wanted(&it.ruling));
        let twin =
            of(|it| matches!(it, Ruling::Duplicate | Ruling::Merge(_) | Ruling::Outcome(_))).next();
        let rivals: Vec<&RankedRuling> = of(|it| *it == Ruling::Supersede).collect();
        if let Some((first, rest)) = rivals.split_first() {
            let doubts = of(|it| matches!(it, Ruling::Conflict | Ruling::Suspect))
                .filter(|it| it.active)
                .filter(|it| is_partly(it.rule) || it.open && it.ruling == Ruling::Conflict);
            doubts.for_each(|it| self.leave_open(new.record.id, it.memory, it.rule));
            let memory = twin.filter(|twin| twin.active).map_or(new.own, |twin| twin.memory);
            let disposition = Disposition::Supersede { old: first.memory, memory };
            let effects = rest.iter().map(|it| replaced(it.memory, memory, new.facts.at, it.rule));
            let effects = effects.collect();
            return Choice { effects, ..Choice::new(disposition, first.rule) };
        }
        if let Some(twin) = twin {
            return join(twin);
        }
        let late = of(|it| *it == Ruling::Late);
        if let Some(late) = late.min_by_key(|it| (it.since, it.memory)) {
            let effects = vec![replaced(new.own, late.memory, late.since, late.rule)];
            return Choice { effects, ..Choice::new(Disposition::Add { memory: new.own }, "late") };
        }
        if let Some(taken_back) = of(|it| *it == Ruling::Discard).next() {
            return Choice::new(Disposition::Discard, taken_back.rule);
        }
        let doubts: Vec<&RankedRuling> = of(|it| *it == Ruling::Conflict).collect();
        let open = doubts.iter().take(OPEN_MAX).filter(|it| it.open);
        open.for_each(|it| self.leave_open(new.record.id, it.memory, it.rule));
        let suspects = of(|it| *it == Ruling::Suspect).filter(|it| it.active);
        let room = OPEN_MAX.saturating_sub(doubts.len());
        suspects.take(room).for_each(|it| self.leave_open(new.record.id, it.memory, it.rule));
        if let Some(doubt) = doubts.first() {
            let disposition = Disposition::Conflict { with: doubt.memory, memory: new.own };
            return Choice::new(disposition, doubt.rule);
        }
        let apart = judged.iter().any(|it| it.rule == UNRELATED);
        let rule = if apart { UNRELATED } else { "new" };
        Choice::new(Disposition::Add { memory: new.own }, rule)
    }

    fn judge(&mut self, new: &Incoming<'_>) -> Vec<RankedRuling> {
        let mut judged = Vec::new();
        let kind = new.subject.search.kind;
        let mut found = self.working.candidates(new, kind);
        let named = self.verdicts.memories_of(new.record.id).filter(|id| *id != new.own);
        let named = self.working.named(new, named, kind, &found);
        found.extend(named);
        for Candidate { memory, subject, near } in found {
            let there = self.places.get(&memory.id).copied();
            let verdict = self.verdicts.get(new.record.id, memory.id);
            let pair = RulePair {
                new,
                memory,
                subject: &subject,
                like: Likeness::of(&new.subject, &subject),
                order: new.order_to(memory, there),
                together: there.is_some_and(|there| there.session == new.place.session),
                agreed: self.verdicts.is_agreed(new.record.id, memory.id),
            };
            let found = RULES.iter().find_map(|(name, judge)| Some((*name, judge(&pair)?)));
            let (mut rule, mut ruling) = found.unwrap_or((RELATED, Ruling::Related));
            let mut open = true;
            let is_guess = ruling.is_uncertain() || [REPLACED, REVISED].contains(&rule);
            match verdict.filter(|_| is_guess).map(|verdict| apply(verdict, &pair)) {
                Some(Some(said)) => ((rule, ruling), open) = (said, false),
                Some(None) => {
                    self.findings.push(refusal(new.record.id, memory.id));
                    ruling = if ruling.is_uncertain() { ruling } else { Ruling::Suspect };
                }
                None => {}
            }
            (rule, ruling) = or_in_part(rule, ruling, &pair);
            judged.push(RankedRuling {
                memory: memory.id,
                ruling,
                rule,
                words: pair.like.words,
                near,
                since: pair.holds_since(),
                active: memory.state == MemoryState::Active,
                open,
                is_named: new.subject.statement.names_value_of(&subject.statement),
            });
        }
        judged
    }

    /// Adds the operation to the plan and applies it to the working set.
    fn settle(&mut self, new: &Incoming<'_>, choice: Choice) {
        let Choice { disposition, rule, effects, stage } = choice;
        let stage = stage.unwrap_or(new.facts.stage);
        let former = disposition.other().filter(|_| rule == RESTATED);
        let former = former.and_then(|id| self.working.get(id)).and_then(|it| it.ends);
        let ends = new.facts.ends.or(former);
        let mut operation = Operation {
            record: new.record.id,
            disposition,
            rule: Cow::Borrowed(rule),
            facts: Facts { stage, ends, ..new.facts.clone() },
            effects,
        };
        operation.touches().for_each(|id| self.working.touch(id));
        let former = disposition.home().and_then(|home| self.working.get(home));
        let former = former.map(|memory| memory.claim.clone());
        operation.fold(self.namespace, &mut self.working.map);
        if let Some(home) = disposition.home() {
            self.enter(home, &new.subject, former);
            let restated = disposition.other().filter(|_| rule == RESTATED);
            let same = restated.unwrap_or(new.own);
            if same != home {
                self.share(new.record.id, same, home);
                self.again.insert(home, new.place);
            }
            operation.effects.extend(self.follow(new, home));
            match home == new.own {
                true => drop(self.places.insert(home, new.place)),
                // What an earlier memory says was compared when that was new.
                false => self.related.clear(),
            }
        }
        self.leave_related(new);
        self.operations.push(operation);
        if disposition.home() == Some(new.own) {
            self.contradict(new);
        }
    }

    /// Marks what a model found to contradict the memory that the record made: a wish beside a decision. What was there before
    /// may have been decided on, and two memories of one kind have been compared.
    fn contradict(&mut self, new: &Incoming<'_>) {
        let (record, own) = (new.record.id, new.own);
        let in_use = |id| self.working.get(id).filter(|it| it.state == MemoryState::Active);
        let is_opposed = |id: &MemoryId| {
            let kinds = [own, *id].map(|id| in_use(id).map(|it| it.claim.kind()));
            self.verdicts.get(record, *id) == Some(Verdict::Conflict)
                && kinds.contains(&Some(ClaimKind::Decision))
                && kinds.contains(&Some(ClaimKind::Request))
        };
        let opposed: Vec<MemoryId> = self.verdicts.memories_of(record).filter(is_opposed).collect();
        for with in opposed {
            self.working.touch(with);
            self.operations.push(Operation {
                record,
                disposition: Disposition::Settle { memory: own, with, how: Settlement::Beside },
                rule: Cow::Borrowed(CONFLICT),
                facts: new.facts.clone(),
                effects: Vec::new(),
            });
        }
    }

    /// Leaves the nearest possibly related pairs open, if the record has few other open pairs and no model has seen it
    /// among the memories of the project.
    fn leave_related(&mut self, new: &Incoming<'_>) {
        let record = new.record.id;
        let mut related = std::mem::take(&mut self.related);
        let open = std::mem::take(&mut self.beside);
        let asked = self.verdicts.has(record);
        related.retain(|(near, id)| *near >= RELATED_NEAR && !asked && !open.contains(id));
        related.sort_by(|(one, id), (other, than)| other.total_cmp(one).then(id.cmp(than)));
        let least = related.first().map_or(0.0, |(near, _)| near * RELATED_SHARE_MIN);
        related.retain(|(near, _)| *near >= least);
        for (_, memory) in related.into_iter().take(RELATED_MAX.saturating_sub(open.len())) {
            self.open.insert(LeftOpen { record, memory, rule: Cow::Borrowed(RELATED) });
        }
    }

    fn leave_open(&mut self, record: RecordId, memory: MemoryId, rule: &'static str) {
        self.open.insert(LeftOpen { record, memory, rule: Cow::Borrowed(rule) });
        self.beside.push(memory);
    }

    /// Lets verdicts on the memory `from` count for `home`, which says the same, and those on either count for `record`,
    /// on which `home` rests from now on.
    fn share(&mut self, record: RecordId, from: MemoryId, home: MemoryId) {
        let judged = self.judged.remove(&from).unwrap_or_default();
        let judged = judged.into_iter().map(|it| (it, from));
        let on_home = self.judged.remove(&home).unwrap_or_default();
        let judged = judged.chain(on_home.into_iter().map(|it| (it, home)));
        for (other, memory) in judged.filter(|(other, _)| *other != record) {
            let Some(verdict) = self.verdicts.get(other, memory) else { continue };
            self.verdicts.add(other, home, verdict);
            self.verdicts.add(record, Memory::id_of(self.namespace, other), verdict);
            self.judged.entry(home).or_default().push(other);
        }
        self.stand_ins.insert(from, home);
    }

    fn follow(&mut self, new: &Incoming<'_>, home: MemoryId) -> Vec<Effect> {
        let Planner { working, places, again, verdicts, .. } = self;
        let found = across(new, home, View { working, places, again, verdicts });
        self.related.extend(found.related);
        let judged = |open: &LeftOpen| self.verdicts.get(open.record, open.memory).is_some();
        let open: Vec<LeftOpen> = found.open.into_iter().filter(|open| !judged(open)).collect();
        self.beside.extend(open.iter().map(|open| open.memory));
        self.open.extend(open);
        for effect in &found.effects {
            self.working.touch(effect.memory);
            self.working.touch(effect.by);
            effect.fold(&mut self.working.map);
        }
        found.effects
    }

    fn enter(&mut self, home: MemoryId, subject: &Rc<Subject>, former: Option<Claim>) {
        let Some(former) = former else { return self.working.enter(home, subject) };
        let now = self.working.get(home).filter(|memory| memory.claim != former);
        if let Some(now) = now.map(|memory| Rc::new(Subject::of(&memory.claim))) {
            self.working.enter(home, &now);
        }
    }
}

/// A verdict that the policy forbids.
fn refusal(record: RecordId, memory: MemoryId) -> Finding {
    let detail = format!("record {record} may not change memory {memory} so; both are kept");
    Finding::new(Severity::Warning, "verdict-refused", 0, detail)
}

/// Rule of a memory that says the same, and of one that does so with a value or a condition more.
const SAME: &str = "judged-same";
const RESTATED: &str = "judged-restated";

/// Rule of two memories that cannot both hold, although nothing tells that anything changed.
const CONFLICT: &str = "judged-conflict";

/// Rule of a wish or a question that is raised again, after it was fulfilled or settled.
const ASKED_AGAIN: &str = "judged-asked-again";

/// Rule of a memory that a model judged unrelated.
pub(crate) const UNRELATED: &str = "judged-unrelated";

/// True if a model decided by this rule.
pub(crate) fn is_judged(rule: &str) -> bool {
    rule.starts_with(JUDGED)
}

/// The ruling, or that of a change in part if it ends one of the two and the other one changes only a part of it. What was
/// said again after the record holds instead of it.
fn or_in_part(rule: &'static str, ruling: Ruling, pair: &RulePair<'_>) -> (&'static str, Ruling) {
    let ends_one = matches!(ruling, Ruling::Supersede | Ruling::Late) && rule != RESTATED;
    let part = ends_one.then(|| pair.in_part(is_judged(rule))).flatten();
    let is_past = ends_one && ruling == Ruling::Supersede && pair.is_said_since();
    let ruling = if is_past { Ruling::Late } else { ruling };
    part.map_or((rule, ruling), |part| (part, Ruling::Suspect))
}

/// Rule and ruling by a verdict; `None` if the policy forbids it.
fn apply(verdict: Verdict, pair: &RulePair<'_>) -> Option<(&'static str, Ruling)> {
    let attempts = pair.subject.search.kind == ClaimKind::Attempt;
    let is_question = pair.subject.search.kind == ClaimKind::Discussion;
    let (new, old) = (&pair.new.subject.statement, &pair.subject.statement);
    Some(match verdict {
        Verdict::Unrelated => (UNRELATED, Ruling::Unrelated),
        Verdict::Same | Verdict::Covered | Verdict::Covers if pair.reopens() => {
            (ASKED_AGAIN, Ruling::Unrelated)
        }
        // What was said about an open question stays with it.
        Verdict::Same | Verdict::Covered | Verdict::Covers
            if is_question && pair.memory.is_open() && pair.may_extend() =>
        {
            let is_answered = pair.new.facts.stage == Stage::Decided;
            match (is_answered, pair.may_follow()) {
                // Its topic has the answer.
                (true, true) => (RESTATED, Ruling::Supersede),
                (false, true) if new.limits_beyond(old) => (SAME, Ruling::Merge(Merging::Combine)),
                (true | false, true | false) => (SAME, Ruling::Merge(Merging::Extend)),
            }
        }
        // Loses no value and no condition.
        Verdict::Same if new.says_beyond(old) && pair.may_follow() => match old.says_beyond(new) {
            true if attempts => (SAME, Ruling::Merge(Merging::Provenance)),
            // A remark in passing leaves the fuller statement where it is.
            true if old.leads(new) => (SAME, Ruling::Merge(Merging::Append)),
            true => (SAME, Ruling::Merge(Merging::Combine)),
            // What was granted once is not open because it is said again.
            false if pair.memory.is_granted() => (SAME, Ruling::Merge(Merging::Combine)),
            false => (RESTATED, Ruling::Supersede),
        },
        // An amount or a limit of its own is kept behind the words of the memory; what a ban forbids is no case of it.
        Verdict::Covered if new.limits_beyond(old) => {
            let is_kept = pair.may_follow() && !attempts && (new.says_no || !old.says_no);
            return is_kept.then_some((SAME, Ruling::Merge(Merging::Append)));
        }
        Verdict::Same | Verdict::Covered => (SAME, Ruling::Merge(Merging::Provenance)),
        // The words that remain are those that say more.
        Verdict::Covers => return pair.may_follow().then_some((RESTATED, Ruling::Supersede)),
        Verdict::Conflict => (CONFLICT, Ruling::Conflict),
        Verdict::Partly => (PARTLY, Ruling::Suspect),
        Verdict::Replaces { .. } if attempts => match (pair.memory.stage, pair.new.facts.stage) {
            (Stage::Attempted, Stage::Decided) if pair.order != Order::Earlier => {
                ("judged-solved", Ruling::Solves)
            }
            (Stage::Decided, Stage::Attempted) if pair.order == Order::Earlier => {
                ("judged-solved", Ruling::Solved)
            }
            (Stage::Decided, Stage::Decided) if pair.may_undo() => {
                ("judged-replaced", Ruling::Supersede)
            }
            (Stage::Decided, Stage::Decided) if pair.may_precede() => {
                ("judged-replaced", Ruling::Late)
            }
            _ => return None,
        },
        Verdict::Replaces { .. } if pair.may_follow() => ("judged-replaced", Ruling::Supersede),
        Verdict::Replaces { .. } if pair.may_precede() => ("judged-replaced", Ruling::Late),
        Verdict::Replaces { .. } => return None,
        Verdict::Nothing if pair.new.person => return None,
        Verdict::Nothing => ("judged-nothing", Ruling::Discard),
    })
}

fn join(twin: &RankedRuling) -> Choice {
    let into = twin.memory;
    let mut choice = Choice::new(Disposition::Duplicate { of: into }, twin.rule);
    if let Ruling::Merge(how) = twin.ruling {
        choice.disposition = Disposition::Merge { into, how };
    } else if let Ruling::Outcome(stage) = twin.ruling {
        choice.disposition = Disposition::Merge { into, how: Merging::Outcome };
        choice.stage = Some(stage);
    }
    choice
}

/// Effect that marks a failure as solved: a lesson, and no longer open.
fn solved(memory: MemoryId, by: MemoryId, at: Option<Timestamp>, rule: &'static str) -> Effect {
    Effect { stage: Some(Stage::Refuted), ..Effect::new(memory, by, at, rule) }
}

fn replaced(memory: MemoryId, by: MemoryId, at: Option<Timestamp>, rule: &'static str) -> Effect {
    Effect { supersedes: true, ..Effect::new(memory, by, at, rule) }
}

impl Planner<'_> {
    /// Settles `pair` if it has a verdict that the policy allows; otherwise it stays open.
    fn settle_pair(&mut self, pair: &OpenPair) {
        let record = &pair.record;
        let verdict = self.verdicts.get(record.id, pair.memory);
        let [home, memory] =
            [pair.home, pair.memory].map(|id| self.stand_ins.get(&id).copied().unwrap_or(id));
        let both = self.working.get(home).zip(self.working.get(memory));
        let in_use = |it: &Memory| it.state == MemoryState::Active;
        // Another settlement may have taken one out of use already.
        let both = both.filter(|(one, other)| in_use(one) && in_use(other) && one.id != other.id);
        let Some(((home, memory), verdict)) = both.zip(verdict) else { return };
        let is_alike = home.claim.kind() == memory.claim.kind();
        if verdict == Verdict::Partly && !is_alike {
            return;
        }
        let new = Incoming::new(record, home.id);
        let place = pair.first.as_ref().map(record_place);
        let Some((how, rule, effect)) = settlement(verdict, &new, home, memory, place) else {
            return self.findings.push(refusal(record.id, pair.memory));
        };
        // What is changed in part stays beside the change, which is marked once.
        if is_partly(rule) && is_partly(&pair.rule) {
            return;
        }
        let (home, memory) = (home.id, memory.id);
        let operation = Operation {
            record: record.id,
            disposition: Disposition::Settle { memory: home, with: memory, how },
            rule: Cow::Borrowed(rule),
            facts: new.facts.clone(),
            effects: effect.into_iter().collect(),
        };
        operation.touches().for_each(|id| self.working.touch(id));
        operation.fold(self.namespace, &mut self.working.map);
        if how == Settlement::Joined {
            self.share(record.id, home, memory);
        } else if rule == RESTATED {
            self.share(record.id, memory, home);
        }
        self.operations.push(operation);
    }
}

/// Settlement of an open pair: of `home`, which rests on the record `new`, and of `memory`, which began at `place`. With its
/// rule in the ledger, and an effect on one of the two. `None` if the policy forbids the verdict.
fn settlement(
    verdict: Verdict,
    new: &Incoming<'_>,
    home: &Memory,
    memory: &Memory,
    place: Option<RecordPlace>,
) -> Option<(Settlement, &'static str, Option<Effect>)> {
    let order = new.order_to(memory, place);
    let together = place.is_some_and(|place| place.session == new.place.session);
    let alike = memory.claim.kind() == new.subject.search.kind;
    let agreed = verdict == Verdict::Replaces { agreed: true };
    if matches!(verdict, Verdict::Replaces { .. }) && !alike {
        let effect = followed(new, home, memory, order, agreed, together)?;
        return Some((Settlement::Followed, "judged-followed", Some(effect)));
    }
    // The remaining words must not be those of a less trusted speaker.
    let is_less_trusted =
        is_protected(home) && !is_protected(memory) || home.confirmed && !memory.confirmed;
    // Memories of different kinds never say the same.
    let may_be = match verdict {
        Verdict::Same | Verdict::Covered => alike && !is_less_trusted,
        Verdict::Covers => alike,
        Verdict::Nothing => alike && !is_protected(home) && home.sources.len() < 2,
        Verdict::Unrelated | Verdict::Conflict | Verdict::Partly | Verdict::Replaces { .. } => true,
    };
    let subject = Subject::of(&memory.claim_at(new.facts.at));
    let like = Likeness::of(&new.subject, &subject);
    let pair = RulePair { new, memory, subject: &subject, like, order, together, agreed };
    let (rule, ruling) = apply(verdict, &pair).filter(|_| may_be)?;
    let (rule, ruling) = or_in_part(rule, ruling, &pair);
    let lacks_nothing = || !subject.statement.says_beyond(&new.subject.statement);
    let (how, effect) = match ruling {
        Ruling::Unrelated => (Settlement::Apart, None),
        Ruling::Conflict => (Settlement::Beside, None),
        Ruling::Suspect => (Settlement::Partly, None),
        Ruling::Discard => (Settlement::Dropped, None),
        // Also of a granted wish, of which both are memories already.
        Ruling::Merge(Merging::Combine) if lacks_nothing() => {
            return Some((Settlement::Replaced, RESTATED, None));
        }
        Ruling::Merge(_) if is_less_trusted => {
            return pair.may_follow().then_some((Settlement::Replaced, RESTATED, None));
        }
        // The words of a memory that is joined to another one are not kept.
        Ruling::Merge(Merging::Append) if verdict == Verdict::Covered => return None,
        Ruling::Merge(_) => (Settlement::Joined, None),
        Ruling::Supersede => (Settlement::Replaced, None),
        Ruling::Late => {
            let late = replaced(home.id, memory.id, pair.holds_since(), rule);
            (Settlement::Followed, Some(late))
        }
        Ruling::Solves => {
            let solved = solved(memory.id, home.id, new.facts.at, rule);
            (Settlement::Followed, Some(solved))
        }
        Ruling::Duplicate | Ruling::Outcome(_) | Ruling::Solved | Ruling::Related => return None,
    };
    Some((how, rule, effect))
}
