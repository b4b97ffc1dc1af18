//! What earlier plans left open between two memories, decided now that a model was asked. What may change is what
//! may change in a plan: a person's word only by a person's, nothing without words of a change, nothing by hearsay.

use super::across::followed;
use super::incoming::{Incoming, Order, place};
use super::likeness::Likeness;
use super::planner::{Planner, UNRELATED};
use super::rules::{Pair, is_protected};
use super::subject::Subject;
use super::verdict::Verdict;
use crate::domain::{
    Disposition, Effect, Memory, MemoryId, MemoryState, Operation, Record, Settlement,
};
use std::borrow::Cow;

/// A pair that an earlier plan left open: a record that became a memory of its own, and the memory beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenPair {
    /// The record.
    pub record: Record,
    /// The memory that rests on it.
    pub home: MemoryId,
    /// The one that it may touch.
    pub memory: MemoryId,
    /// The record that began that one, where it is known: tells the order within one conversation.
    pub first: Option<Record>,
    /// The rule that could not decide.
    pub rule: String,
}

/// What a verdict comes to, and why.
struct Settled {
    how: Settlement,
    rule: &'static str,
    effects: Vec<Effect>,
}

impl Settled {
    fn new(how: Settlement, rule: &'static str) -> Settled {
        Settled { how, rule, effects: Vec::new() }
    }
}

impl Planner<'_> {
    /// Settles `pair` if there is a verdict that the policy allows; else it stays open.
    pub(super) fn settle_pair(&mut self, pair: &OpenPair) {
        let record = &pair.record;
        let Some(verdict) = self.verdicts.get(record.id, pair.memory) else { return };
        let both = self.desk.get(pair.home).zip(self.desk.get(pair.memory));
        let in_use = |it: &Memory| it.state == MemoryState::Active;
        // What another settlement took out of use is decided already.
        let Some((home, memory)) = both.filter(|(home, memory)| in_use(home) && in_use(memory))
        else {
            return;
        };
        let new = Incoming::new(record, pair.home);
        let Some(settled) = decide(verdict, &new, (home, memory), pair) else {
            self.note(record.id, pair.memory);
            return;
        };
        let operation = Operation {
            record: record.id,
            disposition: Disposition::Settle {
                memory: pair.home,
                with: pair.memory,
                how: settled.how,
            },
            rule: Cow::Borrowed(settled.rule),
            facts: new.facts.clone(),
            effects: settled.effects,
        };
        for id in operation.touches() {
            self.desk.touch(id);
        }
        operation.fold(self.namespace, &mut self.desk.map);
        self.operations.push(operation);
    }
}

/// None where the policy does not allow it.
fn decide(
    verdict: Verdict,
    new: &Incoming<'_>,
    (home, memory): (&Memory, &Memory),
    pair: &OpenPair,
) -> Option<Settled> {
    let there = pair.first.as_ref().map(place);
    let order = Order::of((new.facts.at, new.place), (memory.valid_from, there));
    let alike = memory.claim.kind() == new.subject.kind;
    Some(match verdict {
        Verdict::Unrelated => Settled::new(Settlement::Apart, UNRELATED),
        Verdict::Conflict => Settled::new(Settlement::Beside, "judged-conflict"),
        // What is of another kind says something else; it is not for the host to say that it has nothing to do with it.
        Verdict::Same | Verdict::Nothing if !alike => return None,
        // The words that stay must not be those of somebody who is trusted less.
        Verdict::Same if is_protected(home) && !is_protected(memory) => return None,
        Verdict::Same if home.confirmed && !memory.confirmed => return None,
        Verdict::Same => Settled::new(Settlement::Joined, "judged-same"),
        Verdict::Nothing if new.person || is_protected(home) || home.sources.len() > 1 => {
            return None;
        }
        Verdict::Nothing => Settled::new(Settlement::Dropped, "judged-nothing"),
        Verdict::Replaces if alike => {
            let subject = Subject::of(&memory.claim);
            let like = Likeness::of(&new.subject, &subject);
            let together = there.is_some_and(|there| there.session == new.place.session);
            let pair = Pair { new, memory, subject: &subject, like, order, together };
            if !pair.may_follow() {
                return None;
            }
            Settled::new(Settlement::Replaced, "judged-replaced")
        }
        Verdict::Replaces => {
            let effects = followed(new, (home, memory), order);
            if effects.is_empty() {
                return None;
            }
            Settled { effects, ..Settled::new(Settlement::Followed, "judged-followed") }
        }
    })
}
