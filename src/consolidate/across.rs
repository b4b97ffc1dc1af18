//! What follows between memories of different kinds: an attempt completes a request, a decision settles a question.
//! The later one changes the earlier one, whichever comes in first. A request only moves on, its words stay; a
//! question goes out of use, so where a person asked it a person must have decided.

use super::incoming::{Incoming, Order, Place};
use super::likeness::is_generic;
use super::memories::Desk;
use super::rules::is_protected;
use super::subject::{Subject, shared};
use super::verdict::{Verdict, Verdicts};
use crate::domain::{
    Claim, ClaimKind, Effect, LeftOpen, Memory, MemoryId, MemoryState, Speaker, Stage, Timestamp,
};
use std::borrow::Cow;
use std::collections::HashMap;

/// The share of the request's or question's words that the other must have for the two to belong together.
const COVERED: f64 = 0.7;
/// The same for being left open.
const COVERED_MAYBE: f64 = 0.5;
/// Words in common below which nothing follows; an exact word, such as a path, counts as two.
const WORDS_MIN: usize = 3;

/// What follows, and what may.
#[derive(Debug, Default)]
pub(super) struct Across {
    pub(super) effects: Vec<Effect>,
    pub(super) open: Vec<LeftOpen>,
}

/// What is looked at.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) desk: &'a Desk<'a>,
    /// Where memories that the plan begins were first said.
    pub(super) places: &'a HashMap<MemoryId, Place>,
    pub(super) verdicts: &'a Verdicts,
}

/// What follows from the record for memories of other kinds, and from them for `home`, the memory that rests on it.
pub(super) fn across(new: &Incoming<'_>, home: MemoryId, view: View<'_>) -> Across {
    let Some(home) = view.desk.get(home).filter(|home| home.state == MemoryState::Active) else {
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
    for memory in view.desk.candidates(&new.subject, kind) {
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
    let order = Order::of((new.facts.at, new.place), (link.memory.valid_from, there));
    let order = if earlier { order } else { order.turned() };
    match view.verdicts.get(new.record.id, link.memory.id) {
        Some(Verdict::Replaces) => link.judged(order),
        Some(Verdict::Unrelated | Verdict::Same | Verdict::Conflict | Verdict::Nothing) => {
            Across::default()
        }
        None => link.follow(covered >= COVERED, order),
    }
}

/// What follows from the record behind `home` for `memory`, of another kind, as a model judged; empty where the policy
/// does not allow it.
pub(super) fn followed(
    new: &Incoming<'_>,
    (home, memory): (&Memory, &Memory),
    order: Order,
) -> Vec<Effect> {
    let earlier = match new.subject.kind {
        ClaimKind::Attempt | ClaimKind::Decision => true,
        ClaimKind::Request | ClaimKind::Discussion => false,
    };
    let order = if earlier { order } else { order.turned() };
    Link { new, home, memory, earlier }.judged(order).effects
}

/// A record beside a memory of another kind.
struct Link<'a> {
    new: &'a Incoming<'a>,
    /// The memory that rests on the record.
    home: &'a Memory,
    memory: &'a Memory,
    /// Whether the memory is the request or question, and the record its answer.
    earlier: bool,
}

/// What is asked, as far as it matters here.
struct Asked {
    id: MemoryId,
    stage: Stage,
    protected: bool,
    confirmed: bool,
}

/// What answers it.
struct Answer<'a> {
    id: MemoryId,
    claim: &'a Claim,
    stage: Stage,
    at: Option<Timestamp>,
    person: bool,
    hearsay: bool,
}

impl Link<'_> {
    /// As if the rules were sure; told apart from what they are sure of by its name.
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
        let Link { new, home, memory, earlier } = self;
        let by_tools = matches!(memory.said_by, Speaker::Tool | Speaker::Web);
        let kept = (memory.id, memory.stage, memory.valid_from);
        let facts = &new.facts;
        let came = (home.id, home.stage, facts.at);
        let (asked, answer) = if *earlier { (kept, came) } else { (came, kept) };
        let asked = Asked {
            id: asked.0,
            stage: asked.1,
            protected: is_protected(if *earlier { memory } else { home }),
            confirmed: if *earlier { memory.confirmed } else { home.confirmed },
        };
        let answer = Answer {
            id: answer.0,
            stage: answer.1,
            at: answer.2,
            claim: if *earlier { &facts.claim } else { &memory.claim },
            person: if *earlier { new.person } else { is_protected(memory) },
            hearsay: if *earlier { new.hearsay } else { by_tools },
        };
        if matches!(order, Order::Earlier | Order::Unknown) || answer.hearsay {
            return Across::default();
        }
        match answer.claim {
            Claim::Attempt(_) => self.move_on(&asked, &answer, sure && order == Order::Later),
            Claim::Decision(_) => self.settle(&asked, &answer, sure),
            Claim::Discussion(_) | Claim::Request(_) => Across::default(),
        }
    }

    /// An attempt moves a request on. What a person put into the directory waits for a person.
    fn move_on(&self, asked: &Asked, answer: &Answer<'_>, sure: bool) -> Across {
        let (stage, rule) = match answer.stage {
            Stage::Decided => (Stage::Decided, "completed"),
            Stage::Proposed | Stage::Attempted | Stage::Refuted => (Stage::Attempted, "attempted"),
        };
        if !asked.stage.may_become(stage) {
            return Across::default();
        }
        if sure && (!asked.confirmed || answer.person) {
            return self.effect(asked, answer, Some(stage), rule);
        }
        self.leave_open("may-complete")
    }

    /// A decision settles a question and takes its place.
    fn settle(&self, asked: &Asked, answer: &Answer<'_>, sure: bool) -> Across {
        if asked.stage != Stage::Proposed {
            return Across::default();
        }
        if sure && (!asked.protected || answer.person) {
            return self.effect(asked, answer, Some(Stage::Decided), "settled");
        }
        self.leave_open("may-settle")
    }

    fn effect(
        &self,
        asked: &Asked,
        answer: &Answer<'_>,
        stage: Option<Stage>,
        rule: &'static str,
    ) -> Across {
        let effect = Effect {
            memory: asked.id,
            by: answer.id,
            stage,
            supersedes: matches!(answer.claim, Claim::Decision(_)),
            restores: false,
            at: answer.at,
            rule: Cow::Borrowed(rule),
        };
        Across { effects: vec![effect], open: Vec::new() }
    }

    fn leave_open(&self, rule: &'static str) -> Across {
        let open = LeftOpen {
            record: self.new.record.id,
            memory: self.memory.id,
            rule: Cow::Borrowed(rule),
        };
        Across { effects: Vec::new(), open: vec![open] }
    }
}

/// Which share of what is asked the answer speaks of; zero where too little is in common.
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
