//! Makes a plan: takes the records in the order of time, asks the rules about each and the memories that it may
//! touch, and lets what it becomes stand beside those memories for the records that follow.

use super::across::{View, across};
use super::incoming::{Incoming, Order, Place, place};
use super::likeness::Likeness;
use super::memories::{Desk, Memories};
use super::rules::{Pair, RULES, Ruling};
use super::settle::OpenPair;
use super::subject::Subject;
use super::verdict::{Verdict, Verdicts};
use crate::domain::{
    Claim, ClaimKind, Disposition, Effect, Facts, Finding, LeftOpen, Memory, MemoryId, MemoryState,
    Merging, Operation, Plan, Record, RecordId, RecordState, Severity, Stage, Timestamp,
};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Memories of which one record is left open.
const OPEN_MAX: usize = 3;

/// Plans what becomes of `records` in the namespace of `memories`: one operation for each that was not dealt with
/// yet. `verdicts` decide what the rules leave open; without any, that is kept as it is and listed.
///
/// The order of `records` does not count, and planning again after the plan was applied gives an empty one.
pub fn consolidate(
    records: &[Record],
    memories: &Memories,
    verdicts: &Verdicts,
) -> (Plan, Vec<Finding>) {
    consolidate_with(records, &[], memories, verdicts)
}

/// As [`consolidate`], and first settles what earlier plans left `open` between memories, where `verdicts` say how: it
/// was said before, so what comes in meets the memories as they are then. A pair without a verdict stays open.
pub fn consolidate_with(
    records: &[Record],
    open: &[OpenPair],
    memories: &Memories,
    verdicts: &Verdicts,
) -> (Plan, Vec<Finding>) {
    let mut planner = Planner {
        desk: Desk::new(memories),
        namespace: memories.namespace(),
        verdicts,
        places: HashMap::new(),
        operations: Vec::new(),
        open: BTreeSet::new(),
        findings: Vec::new(),
    };
    for pair in open {
        planner.settle_pair(pair);
    }
    for record in in_order(records, memories) {
        planner.take(record);
    }
    let Planner { desk, operations, open, findings, .. } = planner;
    let before = desk.before.into_values().collect();
    let namespace = memories.namespace().to_owned();
    (Plan::new(namespace, operations, before, open.into_iter().collect()), findings)
}

/// The records to deal with, the earliest first; those without a time come last, each conversation in its order.
fn in_order<'a>(records: &'a [Record], memories: &Memories) -> Vec<&'a Record> {
    let mut seen = HashSet::new();
    let fresh = |record: &&Record| !memories.has_taken(record.id) && seen.insert(record.id);
    let mut ordered: Vec<&Record> = records.iter().filter(fresh).collect();
    ordered.sort_by_cached_key(|record| {
        let at = record.provenance.at;
        (at.is_none(), at, place(record), record.id)
    });
    ordered
}

pub(super) struct Planner<'a> {
    pub(super) desk: Desk<'a>,
    pub(super) namespace: &'a str,
    pub(super) verdicts: &'a Verdicts,
    /// Where memories that this plan begins were first said.
    places: HashMap<MemoryId, Place>,
    pub(super) operations: Vec<Operation>,
    open: BTreeSet<LeftOpen>,
    findings: Vec<Finding>,
}

/// A memory, what a rule says of it, and how near it is.
#[derive(Clone, Debug)]
struct Judged {
    memory: MemoryId,
    ruling: Ruling,
    rule: &'static str,
    words: f64,
    since: Option<Timestamp>,
    active: bool,
    /// Whether a model or a person may still decide.
    open: bool,
}

impl Judged {
    /// The nearest first; of equals the earliest, then by id.
    fn order(&self, other: &Judged) -> Ordering {
        let near = other.words.total_cmp(&self.words);
        let exact = |it: &Judged| it.ruling != Ruling::Duplicate;
        let first = (!self.active, exact(self)).cmp(&(!other.active, exact(other)));
        first.then(near).then((self.since, self.memory).cmp(&(other.since, other.memory)))
    }
}

/// What becomes of a record, before what follows from it.
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

impl Planner<'_> {
    fn take(&mut self, record: &Record) {
        let own = Memory::id_of(self.namespace, record.id);
        let new = Incoming::new(record, own);
        // It began a memory that others bear since it was withdrawn.
        let came_back = self.desk.get(own).is_some_and(|memory| !memory.is_hollow());
        let choice = match self.refuse(&new) {
            Some(rule) => Choice::new(Disposition::Discard, rule),
            None if came_back => Choice::new(Disposition::Duplicate { of: own }, "came-back"),
            None => self.choose(&new),
        };
        self.settle(&new, choice);
    }

    /// Why a record becomes no memory whatever stands beside it.
    fn refuse(&self, new: &Incoming<'_>) -> Option<&'static str> {
        let record = new.record;
        let told = match new.subject.kind {
            ClaimKind::Decision | ClaimKind::Request => new.hearsay,
            ClaimKind::Discussion | ClaimKind::Attempt => false,
        };
        if record.provenance.namespace != self.namespace {
            Some("other-namespace")
        } else if record.state != RecordState::Staged {
            Some("not-staged")
        } else if record.evidence.is_empty() {
            Some("no-evidence")
        } else if new.subject.is_empty() {
            Some("says-nothing")
        } else {
            told.then_some("tools-and-web-only")
        }
    }

    /// Asks the rules, and of what they say takes what keeps the most.
    fn choose(&mut self, new: &Incoming<'_>) -> Choice {
        let mut judged = self.judge(new);
        judged.sort_by(Judged::order);
        let of = |wanted: fn(&Ruling) -> bool| judged.iter().filter(move |it| wanted(&it.ruling));
        let twin =
            of(|it| matches!(it, Ruling::Duplicate | Ruling::Merge(_) | Ruling::Outcome(_))).next();
        let rivals: Vec<&Judged> = of(|it| *it == Ruling::Supersede).collect();
        if let Some((first, rest)) = rivals.split_first() {
            let memory = twin.filter(|twin| twin.active).map_or(new.own, |twin| twin.memory);
            let disposition = Disposition::Supersede { old: first.memory, memory };
            let mut choice = Choice::new(disposition, first.rule);
            let effects =
                rest.iter().map(|rival| replaced(rival.memory, memory, new.facts.at, rival.rule));
            choice.effects = effects.collect();
            return choice;
        }
        if let Some(twin) = twin {
            return join(twin);
        }
        let late = of(|it| *it == Ruling::Late);
        if let Some(late) = late.min_by_key(|it| (it.since, it.memory)) {
            let mut choice = Choice::new(Disposition::Add { memory: new.own }, "late");
            choice.effects = vec![replaced(new.own, late.memory, late.since, late.rule)];
            return choice;
        }
        if let Some(taken_back) = of(|it| *it == Ruling::Discard).next() {
            return Choice::new(Disposition::Discard, taken_back.rule);
        }
        let doubts: Vec<&Judged> =
            of(|it| matches!(it, Ruling::Conflict | Ruling::Doubt)).collect();
        for doubt in doubts.iter().take(OPEN_MAX) {
            let rule = Cow::Borrowed(doubt.rule);
            let left = LeftOpen { record: new.record.id, memory: doubt.memory, rule };
            if doubt.open {
                self.open.insert(left);
            }
        }
        match doubts.first() {
            Some(doubt) => {
                let with = doubt.memory;
                Choice::new(Disposition::Conflict { with, memory: new.own }, doubt.rule)
            }
            None => {
                let apart = judged.iter().any(|it| it.rule == UNRELATED);
                let rule = if apart { UNRELATED } else { "new" };
                Choice::new(Disposition::Add { memory: new.own }, rule)
            }
        }
    }

    /// What the rules say of every memory of the same kind that the record may touch.
    fn judge(&mut self, new: &Incoming<'_>) -> Vec<Judged> {
        let mut judged = Vec::new();
        let mut refused = Vec::new();
        for memory in self.desk.candidates(&new.subject, new.subject.kind) {
            let subject = Subject::of(&memory.claim);
            let there = self.places.get(&memory.id).copied();
            let pair = Pair {
                new,
                memory,
                subject: &subject,
                like: Likeness::of(&new.subject, &subject),
                order: Order::of((new.facts.at, new.place), (memory.valid_from, there)),
                together: there.is_some_and(|there| there.session == new.place.session),
            };
            let found = RULES.iter().find_map(|rule| Some((rule.name, (rule.judge)(&pair)?)));
            let Some((rule, ruling)) = found else { continue };
            let mut open = true;
            let (rule, ruling) = match ruling {
                Ruling::Conflict | Ruling::Doubt => {
                    let verdict = self.verdicts.get(new.record.id, memory.id);
                    match verdict.map(|verdict| apply(verdict, &pair)) {
                        Some(Some(said)) => {
                            open = false;
                            said
                        }
                        Some(None) => {
                            refused.push(memory.id);
                            (rule, ruling)
                        }
                        None => (rule, ruling),
                    }
                }
                Ruling::Strangers
                | Ruling::Duplicate
                | Ruling::Merge(_)
                | Ruling::Outcome(_)
                | Ruling::Supersede
                | Ruling::Late
                | Ruling::Discard => (rule, ruling),
            };
            judged.push(Judged {
                memory: memory.id,
                ruling,
                rule,
                words: pair.like.words,
                since: memory.valid_from,
                active: memory.state == MemoryState::Active,
                open,
            });
        }
        for id in refused {
            self.note(new.record.id, id);
        }
        judged
    }

    pub(super) fn note(&mut self, record: RecordId, memory: MemoryId) {
        let detail = format!("record {record} may not change memory {memory} so; both are kept");
        self.findings.push(Finding::new(Severity::Warning, REFUSED, 0, detail));
    }

    /// Writes the operation down and lets its results stand for the records that follow.
    fn settle(&mut self, new: &Incoming<'_>, choice: Choice) {
        let Choice { disposition, rule, effects, stage } = choice;
        let stage = stage.unwrap_or(new.facts.stage);
        let mut operation = Operation {
            record: new.record.id,
            disposition,
            rule: Cow::Borrowed(rule),
            facts: Facts { stage, ..new.facts.clone() },
            effects,
        };
        for id in operation.touches() {
            self.desk.touch(id);
        }
        let former = disposition.home().and_then(|home| self.desk.get(home));
        let former = former.map(|memory| memory.claim.clone());
        operation.fold(self.namespace, &mut self.desk.map);
        if let Some(home) = disposition.home() {
            self.enter(home, &new.subject, former);
            if home == new.own {
                self.places.insert(home, new.place);
            }
            operation.effects.extend(self.follow(new, home));
        }
        self.operations.push(operation);
    }

    /// What follows for memories of other kinds, done.
    fn follow(&mut self, new: &Incoming<'_>, home: MemoryId) -> Vec<Effect> {
        let (desk, places) = (&self.desk, &self.places);
        let found = across(new, home, View { desk, places, verdicts: self.verdicts });
        let judged = |open: &LeftOpen| self.verdicts.get(open.record, open.memory).is_some();
        self.open.extend(found.open.into_iter().filter(|open| !judged(open)));
        for effect in &found.effects {
            self.desk.touch(effect.memory);
            self.desk.touch(effect.by);
            effect.fold(&mut self.desk.map);
        }
        found.effects
    }

    fn enter(&mut self, home: MemoryId, subject: &Subject, former: Option<Claim>) {
        let Some(former) = former else { return self.desk.enter(home, subject, None) };
        let Some(claim) = self.desk.get(home).map(|memory| &memory.claim) else { return };
        if *claim != former {
            let now = Subject::of(claim);
            self.desk.enter(home, &now, Some(&Subject::of(&former)));
        }
    }
}

/// The rule of a verdict that the host does not allow.
const REFUSED: &str = "verdict-refused";

/// The rule of a memory that a model held to be about something else.
pub(super) const UNRELATED: &str = "judged-unrelated";

/// Whether a model decided by this rule, within what the policy allows.
pub fn is_judged(rule: &str) -> bool {
    rule.starts_with("judged-")
}

/// What a verdict comes to; none if the policy does not allow it.
fn apply(verdict: Verdict, pair: &Pair<'_>) -> Option<(&'static str, Ruling)> {
    Some(match verdict {
        Verdict::Unrelated => (UNRELATED, Ruling::Strangers),
        Verdict::Same => ("judged-same", Ruling::Merge(Merging::Provenance)),
        Verdict::Conflict => ("judged-conflict", Ruling::Conflict),
        Verdict::Replaces if pair.may_follow() => ("judged-replaced", Ruling::Supersede),
        Verdict::Replaces => return None,
        Verdict::Nothing if pair.new.person => return None,
        Verdict::Nothing => ("judged-nothing", Ruling::Discard),
    })
}

fn join(twin: &Judged) -> Choice {
    let into = twin.memory;
    let (disposition, stage) = match twin.ruling {
        Ruling::Merge(how) => (Disposition::Merge { into, how }, None),
        Ruling::Outcome(stage) => (Disposition::Merge { into, how: Merging::Outcome }, Some(stage)),
        Ruling::Duplicate
        | Ruling::Strangers
        | Ruling::Supersede
        | Ruling::Late
        | Ruling::Discard
        | Ruling::Conflict
        | Ruling::Doubt => (Disposition::Duplicate { of: into }, None),
    };
    Choice { stage, ..Choice::new(disposition, twin.rule) }
}

fn replaced(memory: MemoryId, by: MemoryId, at: Option<Timestamp>, rule: &'static str) -> Effect {
    let rule = Cow::Borrowed(rule);
    Effect { memory, by, stage: None, supersedes: true, restores: false, at, rule }
}
