//! Plans for a person's verdicts on memories: ordinary operations that can be undone. No verdict is
//! made here.

use crate::domain::{
    Claim, Disposition, Effect, Facts, Memory, MemoryId, MemoryMap, MemoryState, Operation, Plan,
    RecordId, Settlement, Speaker, Stage, Timestamp,
};
use crate::text::truncate;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Maximum letters of a memory that a message names.
const NAME_LETTERS: usize = 80;

/// A verdict on one memory or two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PersonVerdict {
    /// Both are valid.
    KeepBoth { one: MemoryId, other: MemoryId },
    /// The new one supersedes the old one.
    Supersede { old: MemoryId, new: MemoryId },
    /// The request is fulfilled, the question answered or the failure solved.
    Close { memory: MemoryId },
    /// Reopens the memory, or puts it back into use.
    Reopen { memory: MemoryId },
    /// The memory is wrong and has no replacement.
    Retract { memory: MemoryId },
}

impl PersonVerdict {
    fn rule(self) -> &'static str {
        match self {
            PersonVerdict::KeepBoth { .. } => "person-kept-both",
            PersonVerdict::Supersede { .. } => "person-superseded",
            PersonVerdict::Close { .. } => "person-closed",
            PersonVerdict::Reopen { .. } => "person-reopened",
            PersonVerdict::Retract { .. } => "person-retracted",
        }
    }

    pub(crate) fn memories(self) -> Vec<MemoryId> {
        match self {
            PersonVerdict::KeepBoth { one, other } => vec![one, other],
            PersonVerdict::Supersede { old, new } => vec![old, new],
            PersonVerdict::Close { memory }
            | PersonVerdict::Reopen { memory }
            | PersonVerdict::Retract { memory } => vec![memory],
        }
    }

    /// The reason why it would change nothing: it is in force, and none of the pairs in `open` waits for it.
    pub(crate) fn in_force(self, memories: &MemoryMap, open: &[UnsettledPair]) -> Option<String> {
        let get = |id: MemoryId| memories.get(&id);
        let is_active = |it: &Memory| it.state == MemoryState::Active;
        // What a rule did, a person may confirm.
        let by_person =
            |it: &Memory| it.decided.as_ref().is_some_and(|last| last.rule == self.rule());
        let is_asked = || {
            let ids = self.memories();
            open.iter().any(|it| match ids[..] {
                [one] => it.home == one || it.memory == one,
                _ => ids.contains(&it.home) && ids.contains(&it.memory),
            })
        };
        match self {
            PersonVerdict::KeepBoth { one, other } => {
                let (one, other) = (get(one)?, get(other)?);
                // One verdict, which is the last on both.
                let is_kept = one.id != other.id && one.decided == other.decided && by_person(one);
                (is_kept && !is_asked() && is_active(one) && is_active(other))
                    .then(|| "a person already decided that both hold: nothing to do".to_owned())
            }
            PersonVerdict::Supersede { old, new } => {
                let (old, new) = (get(old)?, get(new)?);
                let is_replaced = old.superseded_by == Some(new.id) && is_active(new);
                (is_replaced && by_person(old) && !is_asked())
                    .then(|| format!("{} has already superseded {}", named(new), named(old)))
            }
            PersonVerdict::Close { memory } => {
                let of = get(memory).filter(|it| is_active(it) && it.stage_once(true).is_some())?;
                (!of.is_open() && by_person(of) && !is_asked())
                    .then(|| format!("{} is already closed", named(of)))
            }
            PersonVerdict::Reopen { memory } => {
                let of = get(memory).filter(|it| is_active(it) && it.stage_once(false).is_some());
                of.filter(|of| of.is_open() && by_person(of))
                    .map(|of| format!("{} is already open", named(of)))
            }
            // What is out of use is not retracted.
            PersonVerdict::Retract { .. } => None,
        }
    }
}

/// Pair that was left open: a record, the memory that rests on it, and the other one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct UnsettledPair {
    pub record: RecordId,
    pub home: MemoryId,
    pub memory: MemoryId,
}

/// Plans `verdict` on its memories in `memories`; `open` are their open pairs. The error says why
/// the verdict makes no sense.
pub(crate) fn decide(
    verdict: PersonVerdict,
    memories: &MemoryMap,
    open: &[UnsettledPair],
    now: Timestamp,
) -> Result<Plan, String> {
    let deciding = Deciding { verdict, memories, open, now };
    let operations = match verdict {
        PersonVerdict::KeepBoth { one, other } => deciding.keep_both(deciding.two(one, other)?)?,
        PersonVerdict::Supersede { old, new } => deciding.supersede(deciding.two(old, new)?)?,
        PersonVerdict::Close { memory } => deciding.close(deciding.get(memory)?)?,
        PersonVerdict::Reopen { memory } => deciding.reopen(deciding.get(memory)?)?,
        PersonVerdict::Retract { memory } => deciding.retract(deciding.get(memory)?)?,
    };
    let touched: BTreeSet<MemoryId> = operations.iter().flat_map(Operation::touches).collect();
    let before: Vec<Memory> = touched.iter().filter_map(|id| memories.get(id).cloned()).collect();
    let namespace = before.first().map(|it| it.namespace.clone()).unwrap_or_default();
    Ok(Plan::new(namespace, operations, before, Vec::new()))
}

struct Deciding<'a> {
    verdict: PersonVerdict,
    memories: &'a MemoryMap,
    open: &'a [UnsettledPair],
    now: Timestamp,
}

impl<'a> Deciding<'a> {
    fn get(&self, id: MemoryId) -> Result<&'a Memory, String> {
        self.memories.get(&id).ok_or_else(|| {
            format!(
                "memory {id} does not exist any more: `annalist memory list` shows those that do"
            )
        })
    }

    fn two(&self, one: MemoryId, other: MemoryId) -> Result<[&'a Memory; 2], String> {
        let (one, other) = (self.get(one)?, self.get(other)?);
        if one.id == other.id {
            let it = named(one);
            return Err(format!("both IDs name the same memory, {it}: name two different ones"));
        }
        if one.namespace != other.namespace {
            let (one, other) = (&one.namespace, &other.namespace);
            return Err(format!(
                "the two memories are in different namespaces, `{one}` and `{other}`: name two of \
                 one namespace"
            ));
        }
        Ok([one, other])
    }

    fn keep_both(&self, [one, other]: [&Memory; 2]) -> Result<Vec<Operation>, String> {
        let effects = [self.revived(one, other)?, self.revived(other, one)?];
        Ok(self.settle([one, other], effects.into_iter().flatten().collect()))
    }

    fn supersede(&self, [old, new]: [&Memory; 2]) -> Result<Vec<Operation>, String> {
        let revived = self.revived(new, old)?;
        if old.state != MemoryState::Active && old.superseded_by != Some(new.id) {
            return Err(out_of_use(old));
        }
        let mut operations = self.settle([new, old], revived.into_iter().collect());
        let settles = |it: &&mut Operation| it.disposition.home() == Some(new.id);
        if let Some(operation) = operations.iter_mut().find(settles) {
            let (memory, with, how) = (new.id, old.id, Settlement::Replaced);
            operation.disposition = Disposition::Settle { memory, with, how };
        } else if let Some(first) = operations.first_mut() {
            first.effects.push(Effect { supersedes: true, ..self.effect(old, new) });
        }
        Ok(operations)
    }

    fn close(&self, memory: &Memory) -> Result<Vec<Operation>, String> {
        if memory.state != MemoryState::Active {
            return Err(out_of_use(memory));
        }
        let stage = memory.stage_once(true).ok_or_else(|| {
            let (id, kind) = (memory.id, memory.claim.kind().name());
            format!(
                "{} is a {kind}, and only open requests, questions and failures are closed: if \
                 another memory replaces it, `annalist memory supersede {id} OTHER`; if it is \
                 wrong, `annalist memory retract {id}`",
                named(memory)
            )
        })?;
        let stage = Some(stage).filter(|_| memory.is_open());
        let mut operations = self.alone(memory, Effect { stage, ..self.effect(memory, memory) });
        // Settles the pairs that ask what closed it.
        let of_it = |it: &&UnsettledPair| it.home == memory.id || it.memory == memory.id;
        operations.extend(self.open.iter().filter(of_it).map(|pair| {
            let (home, with) = (pair.home, pair.memory);
            let settled = Disposition::Settle { memory: home, with, how: Settlement::Followed };
            Operation { record: pair.record, ..self.operation(memory, settled) }
        }));
        Ok(operations)
    }

    fn reopen(&self, memory: &Memory) -> Result<Vec<Operation>, String> {
        let is_active = memory.state == MemoryState::Active;
        let stage = memory.stage_once(false).filter(|_| !memory.is_open());
        if is_active && memory.stage_once(false).is_none() {
            let kind = memory.claim.kind().name();
            return Err(format!(
                "{} is a {kind} in use: there is nothing to reopen",
                named(memory)
            ));
        }
        let by = memory.superseded_by.and_then(|by| self.memories.get(&by)).unwrap_or(memory);
        let effect = self.effect(memory, by);
        // A memory that comes back into use keeps its stage, unless it is a question.
        let is_question = matches!(memory.claim, Claim::Discussion(_));
        let stage = stage.filter(|_| is_active || is_question);
        Ok(self.alone(memory, Effect { stage, restores: true, ..effect }))
    }

    fn retract(&self, memory: &Memory) -> Result<Vec<Operation>, String> {
        if memory.state != MemoryState::Active {
            return Err(out_of_use(memory));
        }
        let mut operations =
            self.alone(memory, Effect { retracts: true, ..self.effect(memory, memory) });
        // What it answered, completed or solved is open again.
        let is_settled = |it: &&Memory| match it.state {
            MemoryState::Active => it.settler() == Some(memory.id),
            MemoryState::Superseded => it.is_answered() && it.superseded_by == Some(memory.id),
            MemoryState::Retracted => false,
        };
        let settled = self.memories.values().filter(is_settled).map(|it| {
            let is_failure = matches!(it.claim, Claim::Attempt(_));
            let stage = Some(if is_failure { Stage::Attempted } else { Stage::Proposed });
            Effect { stage, restores: true, ..self.effect(it, memory) }
        });
        operations.iter_mut().for_each(|it| it.effects.extend(settled.clone()));
        Ok(operations)
    }

    /// Effect that restores `memory` beside `other`, if that superseded it.
    fn revived(&self, memory: &Memory, other: &Memory) -> Result<Option<Effect>, String> {
        if memory.state == MemoryState::Active {
            return Ok(None);
        }
        if memory.superseded_by != Some(other.id) {
            return Err(out_of_use(memory));
        }
        Ok(Some(Effect { restores: true, ..self.effect(memory, other) }))
    }

    fn effect(&self, memory: &Memory, by: &Memory) -> Effect {
        Effect::new(memory.id, by.id, Some(self.now), self.verdict.rule())
    }

    /// Settles every open pair of the two, or a new one if there is none.
    fn settle(&self, [one, other]: [&Memory; 2], effects: Vec<Effect>) -> Vec<Operation> {
        let ids = [(one.id, other.id), (other.id, one.id)];
        let of_two = |it: &&UnsettledPair| ids.contains(&(it.home, it.memory));
        let mut pairs: Vec<UnsettledPair> = self.open.iter().filter(of_two).copied().collect();
        if pairs.is_empty() {
            pairs.push(UnsettledPair { record: first_record(one), home: one.id, memory: other.id });
        }
        let operation = |pair: &UnsettledPair| {
            let home = if pair.home == one.id { one } else { other };
            let (memory, with) = (pair.home, pair.memory);
            let disposition = Disposition::Settle { memory, with, how: Settlement::Apart };
            Operation { record: pair.record, ..self.operation(home, disposition) }
        };
        let mut operations: Vec<Operation> = pairs.iter().map(operation).collect();
        if let Some(last) = operations.last_mut() {
            last.effects = effects;
        }
        operations
    }

    fn alone(&self, memory: &Memory, effect: Effect) -> Vec<Operation> {
        let disposition = Disposition::Decide { memory: memory.id };
        vec![Operation { effects: vec![effect], ..self.operation(memory, disposition) }]
    }

    fn operation(&self, memory: &Memory, disposition: Disposition) -> Operation {
        let (claim, stage) = (memory.claim.clone(), memory.stage);
        let facts =
            Facts { claim, stage, said_by: Speaker::Person, at: Some(self.now), ends: None };
        let rule = Cow::Borrowed(self.verdict.rule());
        Operation { record: first_record(memory), disposition, rule, facts, effects: Vec::new() }
    }
}

/// First record of a memory; for a memory that a person wrote, an id of its own.
fn first_record(memory: &Memory) -> RecordId {
    memory.sources.first().copied().unwrap_or(RecordId(memory.id.0))
}

/// Words of a memory in a message.
fn named(memory: &Memory) -> String {
    let words = memory.words();
    let head = truncate::letters(words, NAME_LETTERS);
    format!("“{head}{}”", if head.len() < words.len() { "…" } else { "" })
}

fn out_of_use(memory: &Memory) -> String {
    let (id, name, state) = (memory.id, named(memory), memory.standing());
    format!("{name} is already {state}: to decide on it, first `annalist memory reopen {id}`")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::*;
    use super::*;
    use crate::domain::Record;

    /// Two choices, the later one with or without words of change, and what the rules make of them.
    fn choices(words: &str) -> ([MemoryId; 2], MemoryMap, Vec<UnsettledPair>, [Record; 2]) {
        let stores = ["Redis", "Postgres"];
        let old = decision(&stores, "Redis", "the queue needs low latency");
        let new = decision(&stores, "Postgres", "the queue must survive a restart");
        let old = record(old, Speaker::Person, 1);
        let new = record_of(new, &[(Speaker::Person, words)], 4);
        let mut state = MemoryMap::new();
        let made = plan(&[old.clone(), new.clone()], &mut state);
        let ids = [of(&state, &old).id, of(&state, &new).id];
        let pair = |it: &crate::domain::LeftOpen| UnsettledPair {
            record: it.record,
            home: ids[1],
            memory: it.memory,
        };
        let open = made.left_open.iter().map(pair).collect();
        (ids, state, open, [old, new])
    }

    /// Applies a verdict and checks that it can be undone.
    #[track_caller]
    fn apply(verdict: PersonVerdict, state: &mut MemoryMap, open: &[UnsettledPair]) -> Plan {
        let plan = decide(verdict, state, open, day(9)).unwrap();
        assert_eq!(plan.check(&[], state), []);
        let before = state.clone();
        plan.apply(state).unwrap();
        plan.undo(state).unwrap();
        assert_eq!(*state, before);
        plan.apply(state).unwrap();
        plan
    }

    fn states(state: &MemoryMap, ids: [MemoryId; 2]) -> [MemoryState; 2] {
        ids.map(|id| state[&id].state)
    }

    const ACTIVE: MemoryState = MemoryState::Active;
    const GONE: MemoryState = MemoryState::Superseded;

    #[test]
    fn a_pair_that_was_left_open_is_settled() {
        let (ids, state, open, _) = choices("Postgres it is, the queue must survive a restart");
        let [old, new] = ids;
        assert_eq!((open.len(), states(&state, ids)), (1, [ACTIVE; 2]));
        let check = |verdict, expected, settlement| {
            let mut state = state.clone();
            let plan = apply(verdict, &mut state, &open);
            let memory = new;
            let settled = Disposition::Settle { memory, with: old, how: settlement };
            assert_eq!(plan.operations[0].disposition, settled);
            assert_eq!(states(&state, ids), expected);
            assert!(state.values().all(|it| it.confirmed && it.is_decided_after(Some(day(9)))));
        };
        check(PersonVerdict::Supersede { old, new }, [GONE, ACTIVE], Settlement::Replaced);
        check(PersonVerdict::Supersede { old: new, new: old }, [ACTIVE, GONE], Settlement::Apart);
        check(PersonVerdict::KeepBoth { one: old, other: new }, [ACTIVE; 2], Settlement::Apart);
    }

    #[test]
    fn a_wrong_supersession_is_turned_or_taken_back_and_no_rule_brings_it_back() {
        let words = "we switched to Postgres, the queue must survive a restart";
        let (ids, state, open, records) = choices(words);
        let [old, new] = ids;
        assert_eq!(states(&state, ids), [GONE, ACTIVE]);
        for (verdict, expected) in [
            (PersonVerdict::KeepBoth { one: old, other: new }, [ACTIVE; 2]),
            (PersonVerdict::Reopen { memory: old }, [ACTIVE; 2]),
            (PersonVerdict::Supersede { old: new, new: old }, [ACTIVE, GONE]),
        ] {
            let mut state = state.clone();
            apply(verdict, &mut state, &open);
            assert_eq!(states(&state, ids), expected);
            // The later choice was repeated before the person decided.
            let again = record_of(records[1].claim.clone(), &[(Speaker::Person, words)], 5);
            plan(&[again], &mut state);
            assert_eq!(state[&old].state, ACTIVE, "{verdict:?}");
        }
    }

    #[test]
    fn what_is_wrong_goes_out_of_use_and_is_not_believed_again_when_it_is_repeated() {
        let (ids, mut state, _, records) = choices("Postgres it is");
        apply(PersonVerdict::Retract { memory: ids[1] }, &mut state, &[]);
        let [_, wrong] = ids;
        let rule = state[&wrong].reason.as_deref();
        assert_eq!((state[&wrong].state, rule), (MemoryState::Retracted, Some("person-retracted")));
        let again = record_of(records[1].claim.clone(), &[(Speaker::Person, "as before")], 5);
        plan(&[again], &mut state);
        assert_eq!(state[&wrong].state, MemoryState::Retracted);
        let refused = decide(PersonVerdict::Retract { memory: wrong }, &state, &[], day(9));
        assert!(refused.unwrap_err().contains("reopen"));
        apply(PersonVerdict::Reopen { memory: wrong }, &mut state, &[]);
        assert_eq!(state[&wrong].state, ACTIVE);
    }

    #[test]
    fn a_settled_question_is_open_again_if_it_is_reopened_or_its_answer_is_wrong() {
        let topic = discussion("Where waiting jobs are kept: Redis or Postgres", &["latency"]);
        let topic = record(topic, Speaker::Person, 1);
        let chosen = decision(&["Redis", "Postgres"], "Redis", "the queue needs low latency");
        let chosen = record(chosen, Speaker::Person, 2);
        let mut state = MemoryMap::new();
        plan(&[topic.clone(), chosen.clone()], &mut state);
        let [question, answer] = [&topic, &chosen].map(|it| of(&state, it).id);
        assert_eq!(state[&question].superseded_by, Some(answer));
        for verdict in
            [PersonVerdict::Reopen { memory: question }, PersonVerdict::Retract { memory: answer }]
        {
            let mut state = state.clone();
            apply(verdict, &mut state, &[]);
            let after = &state[&question];
            assert_eq!((after.state, after.stage), (ACTIVE, Stage::Proposed), "{verdict:?}");
        }
    }

    #[test]
    fn what_a_retracted_attempt_completed_or_solved_is_open_again() {
        let asked = record(request("Add pagination to the orders endpoint"), Speaker::Person, 1);
        let tried = |result, worked, on| {
            let claim = attempt("Added pagination to the orders endpoint", result, worked);
            record(claim, Speaker::Assistant, on)
        };
        let failed = tried("the tests fail", false, 2);
        let done = attempt("Added pagination to the orders endpoint again", "the tests pass", true);
        let done = record(done, Speaker::Assistant, 4);
        let mut state = MemoryMap::new();
        plan(&[asked.clone(), failed.clone(), done.clone()], &mut state);
        let by = of(&state, &done).id;
        for it in [&asked, &failed] {
            assert_eq!(of(&state, it).settler(), Some(by), "{state:#?}");
        }
        apply(PersonVerdict::Retract { memory: by }, &mut state, &[]);
        for it in [&asked, &failed] {
            let it = of(&state, it);
            assert!(it.is_open() && it.settled_by.is_none() && it.state == ACTIVE, "{it:?}");
        }
    }

    #[test]
    fn a_request_that_was_opened_again_needs_a_later_deed() {
        let asked = record(request("Add pagination to the orders endpoint"), Speaker::Person, 1);
        let done = |on| {
            let claim = attempt("Added pagination to the orders endpoint", "all tests pass", true);
            record(claim, Speaker::Assistant, on)
        };
        let mut state = MemoryMap::new();
        plan(&[asked.clone(), done(2)], &mut state);
        let stage = |state: &MemoryMap| of(state, &asked).stage;
        assert_eq!(stage(&state), Stage::Decided);
        let memory = of(&state, &asked).id;
        apply(PersonVerdict::Reopen { memory }, &mut state, &[]);
        assert_eq!(stage(&state), Stage::Attempted);
        plan(&[done(5)], &mut state);
        assert_eq!(stage(&state), Stage::Attempted, "said before the person's verdict");
        let mut closed = state.clone();
        apply(PersonVerdict::Close { memory }, &mut closed, &[]);
        assert_eq!(stage(&closed), Stage::Decided);
        plan(&[done(30)], &mut state);
        assert_eq!(stage(&state), Stage::Decided);
    }

    #[test]
    fn a_verdict_is_in_force_until_something_waits_for_it_again() {
        let (ids, mut state, open, _) = choices("Postgres it is");
        let [old, new] = ids;
        let kept = PersonVerdict::KeepBoth { one: old, other: new };
        let replaced = PersonVerdict::Supersede { old, new };
        assert_eq!(kept.in_force(&state, &[]), None, "nobody decided so");
        apply(kept, &mut state, &open);
        let turned = PersonVerdict::KeepBoth { one: new, other: old };
        assert!(kept.in_force(&state, &[]).is_some() && turned.in_force(&state, &[]).is_some());
        assert_eq!(kept.in_force(&state, &open), None, "the pair is open again");
        assert_eq!(replaced.in_force(&state, &[]), None);
        apply(replaced, &mut state, &[]);
        assert!(replaced.in_force(&state, &[]).unwrap().contains("already"));
        assert_eq!(kept.in_force(&state, &[]), None);
        assert_eq!(PersonVerdict::Supersede { old: new, new: old }.in_force(&state, &[]), None);
    }

    #[test]
    fn what_is_closed_or_open_already_is_neither_closed_nor_opened() {
        let asked = record(request("Add pagination to the orders endpoint"), Speaker::Person, 1);
        let mut state = MemoryMap::new();
        plan(std::slice::from_ref(&asked), &mut state);
        let memory = of(&state, &asked).id;
        let pair = UnsettledPair { record: asked.id, home: memory, memory };
        let (close, reopen) = (PersonVerdict::Close { memory }, PersonVerdict::Reopen { memory });
        for (verdict, other, word) in [(close, reopen, "closed"), (reopen, close, "open")] {
            apply(verdict, &mut state, &[]);
            let why = verdict.in_force(&state, &[]).unwrap();
            assert!(why.ends_with(&format!("is already {word}")), "{why}");
            assert_eq!(other.in_force(&state, &[]), None);
        }
        apply(close, &mut state, &[]);
        assert_eq!(close.in_force(&state, &[pair]), None, "it closes the question too");
        apply(PersonVerdict::Retract { memory }, &mut state, &[]);
        assert_eq!(close.in_force(&state, &[]), None);
        assert_eq!(reopen.in_force(&state, &[]), None);
    }

    #[test]
    fn a_request_that_is_opened_again_was_begun_only_if_an_attempt_completed_it() {
        for (is_done, stage) in [(false, Stage::Proposed), (true, Stage::Attempted)] {
            let wish = request("Add pagination to the orders endpoint");
            let asked = record(wish, Speaker::Person, 1);
            let tried = attempt("Added pagination to the orders endpoint", "done", true);
            let tried = record(tried, Speaker::Assistant, 2);
            let records = [asked.clone(), tried];
            let mut state = MemoryMap::new();
            plan(&records[..if is_done { 2 } else { 1 }], &mut state);
            let memory = of(&state, &asked).id;
            if !is_done {
                apply(PersonVerdict::Close { memory }, &mut state, &[]);
            }
            apply(PersonVerdict::Reopen { memory }, &mut state, &[]);
            assert_eq!(state[&memory].stage, stage);
        }
    }

    #[test]
    fn a_verdict_that_makes_no_sense_says_why() {
        let (ids, state, _, _) = choices("we switched to Postgres");
        let [old, new] = ids;
        let (two, gone) = (PersonVerdict::KeepBoth { one: old, other: old }, old);
        let foreign = MemoryId(crate::domain::Digest::of(&["x"]));
        for (verdict, why) in [
            (two, "the same memory"),
            (PersonVerdict::Close { memory: new }, "is a decision, and only open requests"),
            (PersonVerdict::Close { memory: gone }, "is already superseded: "),
            (PersonVerdict::Reopen { memory: new }, "nothing to reopen"),
            (PersonVerdict::Supersede { old: foreign, new }, "does not exist any more: "),
        ] {
            let refused = decide(verdict, &state, &[], day(9)).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
