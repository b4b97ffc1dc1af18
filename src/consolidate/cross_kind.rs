//! Effects between memories of different kinds: an attempt completes a request, a decision settles a question. The later
//! one changes the earlier one, whichever comes in first. A request only moves on, its words stay; a question goes out of
//! use, so where a person asked it a person must have decided.

use super::candidates::WorkingSet;
use super::incoming::{Incoming, Order, RecordPlace};
use super::rules::is_protected;
use super::subject::{Subject, is_generic, shared};
use super::verdict::{Verdict, Verdicts};
use crate::domain::{
    Claim, ClaimKind, Effect, LeftOpen, Memory, MemoryId, MemoryState, PERSON_EDITED, Speaker,
    Stage,
};
use std::borrow::Cow;
use std::collections::HashMap;

/// The share of the request's or question's words that the other must have for the two to belong together.
const COVERED: f64 = 0.7;
const COVERED_MAYBE: f64 = 0.5;
/// Words in common below which nothing follows; an exact word, such as a path, counts as two.
const WORDS_MIN: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Across {
    pub(super) effects: Vec<Effect>,
    pub(super) open: Vec<LeftOpen>,
}

#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) working: &'a WorkingSet<'a>,
    pub(super) places: &'a HashMap<MemoryId, RecordPlace>,
    pub(super) verdicts: &'a Verdicts,
}

pub(super) fn across(new: &Incoming<'_>, home: MemoryId, view: View<'_>) -> Across {
    let Some(home) = view.working.get(home).filter(|home| home.state == MemoryState::Active) else {
        return Across::default();
    };
    let (kind, earlier) = match new.subject.kind {
        ClaimKind::Attempt => (ClaimKind::Request, true),
        ClaimKind::Decision => (ClaimKind::Discussion, true),
        ClaimKind::Request => (ClaimKind::Attempt, false),
        ClaimKind::Discussion => (ClaimKind::Decision, false),
    };
    // An older record that joins a question must not let an older answer close what was raised again since.
    if !earlier && home.id != new.own {
        return Across::default();
    }
    let mut best: Option<(f64, Link<'_>)> = None;
    for memory in view.working.candidates(&new.subject, kind) {
        if memory.state != MemoryState::Active {
            continue;
        }
        let subject = Subject::of(&memory.claim);
        let (asked, answer) =
            if earlier { (&subject, &new.subject) } else { (&new.subject, &subject) };
        let covered = cover(asked, answer);
        // Candidates come in a fixed order, so the first of equals is always the same.
        let better = best.as_ref().is_none_or(|(most, _)| *most < covered);
        if covered >= COVERED_MAYBE && better {
            best = Some((covered, Link { new, home, memory, earlier }));
        }
    }
    let Some((covered, link)) = best else { return Across::default() };
    let there = view.places.get(&link.memory.id).copied();
    let order = new.order_to(link.memory, there);
    let order = if earlier { order } else { order.turned() };
    match view.verdicts.get(new.record.id, link.memory.id) {
        Some(Verdict::Replaces) => link.judged(order),
        Some(Verdict::Unrelated | Verdict::Same | Verdict::Conflict | Verdict::Nothing) => {
            Across::default()
        }
        None => link.follow(covered >= COVERED, order),
    }
}

/// Effects of the record behind `home` on `memory`, of another kind, as a model judged; empty where the policy forbids
/// it.
pub(super) fn followed(
    new: &Incoming<'_>,
    home: &Memory,
    memory: &Memory,
    order: Order,
) -> Vec<Effect> {
    let earlier = matches!(new.subject.kind, ClaimKind::Attempt | ClaimKind::Decision);
    let order = if earlier { order } else { order.turned() };
    Link { new, home, memory, earlier }.judged(order).effects
}

/// A record beside a memory of another kind.
struct Link<'a> {
    new: &'a Incoming<'a>,
    /// The memory that rests on the record.
    home: &'a Memory,
    memory: &'a Memory,
    /// The memory is the request or question, and the record its answer.
    earlier: bool,
}

impl Link<'_> {
    /// Follows as if the rules were sure, under rule names of its own.
    fn judged(&self, order: Order) -> Across {
        let mut found = self.follow(true, order);
        for effect in &mut found.effects {
            effect.rule = Cow::Borrowed(match effect.rule.as_ref() {
                "completed" => "judged-completed",
                "attempted" => "judged-attempted",
                _ => "judged-settled",
            });
        }
        found
    }

    fn follow(&self, sure: bool, order: Order) -> Across {
        let Link { new, home, memory, earlier } = *self;
        let (asked, answer) = if earlier { (memory, home) } else { (home, memory) };
        let by_tools = matches!(memory.said_by, Speaker::Tool | Speaker::Web);
        let (claim, at, person, hearsay) = match earlier {
            true => (&new.facts.claim, new.facts.at, new.person, new.hearsay),
            false => (&memory.claim, memory.valid_from, is_protected(memory), by_tools),
        };
        // Words that a person edited say nothing of the stage; any other decision does.
        let is_edit = asked.decided.as_ref().is_some_and(|it| it.rule == PERSON_EDITED);
        let is_decided = !is_edit && asked.is_decided_after(at);
        if matches!(order, Order::Earlier | Order::Unknown) || hearsay || is_decided {
            return Across::default();
        }
        let (stage, rule, open_rule, is_free) = match claim {
            Claim::Attempt(_) => {
                let (stage, rule) = match answer.stage {
                    Stage::Decided => (Stage::Decided, "completed"),
                    Stage::Proposed | Stage::Attempted | Stage::Refuted => {
                        (Stage::Attempted, "attempted")
                    }
                };
                if !asked.stage.may_become(stage) {
                    return Across::default();
                }
                // What a person confirmed is closed by a deed that succeeded, and else waits for a person.
                let may_move = !asked.confirmed || person || stage == Stage::Decided;
                let is_free = order == Order::Later && may_move;
                (stage, rule, "may-complete", is_free)
            }
            Claim::Decision(_) if asked.stage != Stage::Proposed => return Across::default(),
            Claim::Decision(_) => {
                (Stage::Decided, "settled", "may-settle", !is_protected(asked) || person)
            }
            Claim::Discussion(_) | Claim::Request(_) => return Across::default(),
        };
        if sure && is_free {
            let effect = Effect {
                memory: asked.id,
                by: answer.id,
                stage: Some(stage),
                supersedes: matches!(claim, Claim::Decision(_)),
                restores: false,
                at,
                rule: Cow::Borrowed(rule),
            };
            return Across { effects: vec![effect], open: Vec::new() };
        }
        let rule = Cow::Borrowed(open_rule);
        let open = LeftOpen { record: new.record.id, memory: memory.id, rule };
        Across { effects: Vec::new(), open: vec![open] }
    }
}

/// Share of the question that the answer covers; zero with too little in common.
fn cover(asked: &Subject, answer: &Subject) -> f64 {
    let (whole, all) = (asked.all(), answer.all());
    let exact = shared(&asked.hard, &answer.hard);
    // A question about what was then decided among names the alternatives, be its other words what they may.
    let named = answer
        .named
        .iter()
        .filter(|it| !it.is_empty() && !is_generic(it) && shared(it, &whole) == it.len());
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
