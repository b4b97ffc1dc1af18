use super::fixture::*;
use super::laws::{consolidated, records, run};
use super::{
    Memories, PersonVerdict, Verdicts, Withdrawn, as_of, decide, forget, history,
    one_after_another, withdraw, withdraw_first,
};
use crate::domain::{
    Claim, Disposition, Memory, MemoryMap, MemoryState, Merging, Plan, Record, RecordId, Speaker,
    Stage,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn chosen(name: &str, by: &str, on: i64) -> Record {
    let claim = decision(&["Redis", "Postgres"], name, "the queue must survive a restart");
    record_of(claim, &[(Speaker::Person, by)], on)
}

/// `record`, as extracted again from the same conversation.
fn anew(record: &Record) -> Record {
    let words = record.evidence[0].words.as_str().to_owned() + ".";
    let mut anew = record_of(record.claim.clone(), &[(record.evidence[0].speaker, &words)], 0);
    anew.provenance.session = record.provenance.session;
    anew.provenance.at = record.provenance.at;
    anew
}

fn gone(records: &[&Record], plans: &[Plan]) -> Vec<Withdrawn> {
    let home = |record: &Record| {
        let all = plans.iter().flat_map(|plan| &plan.operations);
        let mut own = all.filter(|it| it.record == record.id && !it.disposition.is_revision());
        own.next().and_then(|it| it.disposition.home())
    };
    let all = records
        .iter()
        .filter_map(|record| Some(Withdrawn { record: (*record).clone(), memory: home(record)? }));
    all.collect()
}

/// Plans `new` and the withdrawal of `old`, and applies both, as a worker does.
#[track_caller]
fn reread(new: &[Record], old: &[&Record], plans: &mut Vec<Plan>, state: &mut MemoryMap) {
    let gone = gone(old, plans);
    let plan = withdraw(planned(new, &gone, plans, state), &gone, state, plans.clone());
    finish(new, &plan, Memories::of(NAMESPACE, state), state);
    plans.push(plan);
}

/// Plans `new`, after the withdrawal of what puts others back in use.
fn planned(new: &[Record], gone: &[Withdrawn], plans: &[Plan], state: &MemoryMap) -> Plan {
    let mut plan = consolidated(new, state, &Verdicts::none());
    if let Some(first) = withdraw_first(&plan, gone, state, plans) {
        let mut now = state.clone();
        first.apply(&mut now).unwrap();
        plan = one_after_another(first, consolidated(new, &now, &Verdicts::none()), state);
    }
    plan
}

#[test]
fn what_a_newer_reading_says_too_keeps_its_place_and_takes_its_words() {
    let ask = |text: &str| record(request(text), Speaker::Person, 1);
    let old = [ask("Please add a retry with backoff to the uploader"), ask("Rename the crate")];
    let new = [ask("add a retry with backoff to the uploader")];
    let mut state = MemoryMap::new();
    let mut plans = vec![plan(&old, &mut state)];
    let kept = of(&state, &old[0]).id;
    reread(&new, &[&old[0], &old[1]], &mut plans, &mut state);
    assert_eq!(
        told(&plans[1]),
        ["merge near-duplicate", "restate read-anew", "withdraw read-anew", "withdraw read-anew"]
    );
    let memory = &state[&kept];
    assert_eq!((&memory.claim, memory.sources.as_slice()), (&new[0].claim, [new[0].id].as_slice()));
    assert_eq!(memory.state, MemoryState::Active);
    let lost = &state[&Memory::id_of(NAMESPACE, old[1].id)];
    assert!(lost.is_hollow());
    assert_eq!(lost.reason.as_deref(), Some("read-anew"));
    let events = history(lost.id, &plans);
    assert_eq!(events.iter().map(|it| it.disposition).collect::<Vec<_>>(), ["add", "withdraw"]);
    assert_eq!(as_of(day(9), &state, &plans), state, "what was never said was never believed");
}

#[test]
fn what_a_withdrawn_record_had_done_to_others_is_taken_back() {
    let asked =
        record(request("Make waiting jobs survive a restart of the worker"), Speaker::Person, 1);
    let done = attempt("Made waiting jobs survive a worker restart", "exit 0", true);
    let done = record(done, Speaker::Assistant, 6);
    let first = chosen("Redis", "Redis it is", 1);
    let second = chosen("Postgres", "Postgres after all", 4);
    let mut state = MemoryMap::new();
    let mut plans = vec![plan(&[asked.clone(), first.clone()], &mut state)];
    let before = state.clone();
    plans.push(plan(&[done.clone(), second.clone()], &mut state));
    assert_eq!(of(&state, &asked).stage, Stage::Decided);
    assert_eq!(of(&state, &first).state, MemoryState::Superseded);
    reread(&[], &[&done, &second], &mut plans, &mut state);
    assert!(before.iter().all(|(id, memory)| state[id] == *memory));
    assert_eq!(state.values().filter(|memory| memory.is_hollow()).count(), 2);
    // Back to the older reading.
    reread(&[done.clone(), second.clone()], &[], &mut plans, &mut state);
    assert_eq!(of(&state, &second).state, MemoryState::Active);
    assert_eq!(of(&state, &asked).stage, Stage::Decided);
    assert_eq!(of(&state, &first).superseded_by, Some(of(&state, &second).id));
}

#[test]
fn what_a_person_wrote_or_took_back_stays_so() {
    let (kept, taken) = (
        chosen("Redis", "Redis it is", 1),
        record(request("Rename the crate"), Speaker::Person, 1),
    );
    let mut state = MemoryMap::new();
    let mut plans = vec![plan(&[kept.clone(), taken.clone()], &mut state)];
    let (ours, theirs) = (of(&state, &taken).id, of(&state, &kept).id);
    state.get_mut(&ours).unwrap().state = MemoryState::Retracted;
    let edited = state.get_mut(&theirs).unwrap();
    edited.claim = decision(&[], "Redis, but only in staging", "the team agreed");
    edited.confirmed = true;
    let before = state.clone();
    reread(&[], &[&kept, &taken], &mut plans, &mut state);
    assert_eq!(state[&ours], before[&ours]);
    assert_eq!(state[&theirs], Memory { sources: vec![], ..before[&theirs].clone() });
    reread(&[taken], &[], &mut plans, &mut state);
    assert_eq!(state[&ours], before[&ours], "a person took it back");
}

#[test]
fn a_later_outcome_that_was_misread_gives_way_to_the_one_before() {
    let outcome = |result: &str, succeeded, on| {
        let claim =
            attempt("Moved the queue of the uploader to Postgres in staging", result, succeeded);
        record(claim, Speaker::Assistant, on)
    };
    let (worked, broke) = (outcome("exit 0", true, 1), outcome("rows were lost", false, 2));
    let mut state = MemoryMap::new();
    let mut plans = vec![plan(std::slice::from_ref(&worked), &mut state)];
    let before = state.clone();
    plans.push(plan(std::slice::from_ref(&broke), &mut state));
    let how = Merging::Outcome;
    let into = of(&state, &worked).id;
    assert_eq!(plans[1].operations[0].disposition, Disposition::Merge { into, how });
    reread(&[], &[&broke], &mut plans, &mut state);
    assert_eq!(state, before);
}

#[test]
fn reading_the_same_again_takes_back_no_change_and_no_verdict() {
    let (old, new) =
        (chosen("Redis", "Redis it is", 1), chosen("Postgres", "Postgres after all", 4));
    let ask = record(request("Rename the crate"), Speaker::Person, 1);
    let mut state = MemoryMap::new();
    let mut plans = vec![plan(&[old.clone(), ask.clone()], &mut state)];
    plans.push(plan(std::slice::from_ref(&new), &mut state));
    let closed = PersonVerdict::Close { memory: of(&state, &ask).id };
    let verdict = decide(closed, &state, &[], day(6)).unwrap();
    verdict.apply(&mut state).unwrap();
    plans.push(verdict);
    let uses = |state: &MemoryMap| -> Vec<_> {
        state.values().map(|it| (it.id, it.state, it.superseded_by, it.stage)).collect()
    };
    let before = uses(&state);
    for record in [&new, &old, &ask] {
        let again = anew(record);
        reread(std::slice::from_ref(&again), &[record], &mut plans, &mut state);
        assert_eq!(uses(&state), before, "{:?}", record.claim);
        assert_eq!(of(&state, &again).sources, [again.id]);
    }
}

#[test]
fn going_back_to_an_earlier_reading_reopens_nothing() {
    let topic = discussion("Where waiting jobs are kept: Redis or Postgres", &["latency"]);
    let choice = decision(&["Redis", "Postgres"], "Redis", "the queue needs low latency");
    let deed = attempt("Added pagination to the orders endpoint", "all tests pass", true);
    let first = [
        record(request("Add pagination to the orders endpoint"), Speaker::Person, 1),
        record(topic, Speaker::Person, 1),
        record(choice, Speaker::Person, 5),
        record(deed, Speaker::Assistant, 5),
    ];
    let second = first.each_ref().map(anew);
    let mut state = MemoryMap::new();
    let mut plans = vec![plan(&first, &mut state)];
    let before = state.clone();
    let [old, new] = [&first, &second].map(|it| it.each_ref());
    for (now, gone) in [(&second, old), (&first, new), (&second, old)] {
        reread(now, &gone, &mut plans, &mut state);
        let same = |it: &Memory| Memory { sources: before[&it.id].sources.clone(), ..it.clone() };
        assert!(state.values().all(|it| same(it) == before[&it.id]), "{state:#?}");
    }
    reread(&first, &new, &mut plans, &mut state);
    let gone: BTreeSet<RecordId> = second.iter().map(|it| it.id).collect();
    forget(&gone, &state.clone(), &plans).apply(&mut state);
    assert_eq!(state, before, "nor does forgetting the other one");
}

#[test]
fn what_a_better_reading_says_in_other_words_changes_the_same() {
    let port = |text: &str, on| record(decision(&[], text, "so it is"), Speaker::Person, on);
    let tried = |action: &str, worked, on| {
        record(
            attempt(action, if worked { "exit 0" } else { "exit 1" }, worked),
            Speaker::Assistant,
            on,
        )
    };
    let wish = "Add a CSV export to the report page";
    let old = [
        port("the dev server uses port 8080", 1),
        record(request(wish), Speaker::Person, 1),
        tried("Ran cargo test --test pdf", false, 2),
        port("the dev server port changes from 8080 to 9090", 4),
        tried("Added the CSV export to the report page", true, 4),
        tried("Installed the fonts and ran cargo test --test pdf", true, 4),
    ];
    let new = [
        port("the dev server port is 9090 instead of 8080", 4),
        tried("Added a CSV export to the report page behind the menu", true, 4),
        tried("Ran cargo test --test pdf with the fonts of Debian", true, 4),
    ];
    let mut state = MemoryMap::new();
    let mut plans = vec![plan(&old, &mut state)];
    reread(&new, &[&old[3], &old[4], &old[5]], &mut plans, &mut state);
    let by = new.each_ref().map(|it| of(&state, it).id);
    assert_eq!(of(&state, &old[0]).superseded_by, Some(by[0]), "{state:#?}");
    for (ended, by) in [(&old[1], by[1]), (&old[2], by[2])] {
        assert_eq!(of(&state, ended).settler(), Some(by), "{state:#?}");
    }
}

#[test]
fn a_point_that_was_never_learned_is_not_restated() {
    let raised = |points: &[&str], on| {
        let claim = discussion("Redis or Postgres for the session cookie expiry", points);
        record(claim, Speaker::Person, on)
    };
    let (old, more) = (raised(&["Redis is small"], 4), raised(&["Postgres is there"], 4));
    let choice = decision(&["Redis", "Postgres"], "Redis", "the session cookie expiry needs it");
    let choice = record(choice, Speaker::Person, 5);
    let mut state = MemoryMap::new();
    let mut plans = vec![plan(&[old.clone(), more.clone(), choice], &mut state)];
    assert_eq!(of(&state, &old).state, MemoryState::Superseded);
    let (again, early) = ([anew(&old), anew(&more)], raised(&["both are free"], 1));
    let new = [again[0].clone(), again[1].clone(), early.clone()];
    reread(&new, &[&old, &more], &mut plans, &mut state);
    let Claim::Discussion(it) = sorted(of(&state, &early)).claim else { panic!("{state:#?}") };
    assert_eq!(it.points, ["Postgres is there", "Redis is small"]);
}

fn sorted(memory: &Memory) -> Memory {
    let mut memory = memory.clone();
    memory.sources.sort();
    match &mut memory.claim {
        Claim::Decision(it) => it.options.sort(),
        Claim::Discussion(it) => it.points.sort(),
        Claim::Attempt(_) | Claim::Request(_) => {}
    }
    memory
}

proptest! {
    #![proptest_config(crate::testing::cases(200))]

    #[test]
    fn it_is_as_if_what_was_misread_had_never_been_read(
        first in records(), second in records(), new in records(), pick in any::<u64>(), again in any::<bool>(),
    ) {
        let mut state = MemoryMap::new();
        let mut plans = run(&[&first, &second], &mut state);
        let is_old = |record: &&Record| record.id.0.short() & pick & 1 == 0;
        let old: Vec<&Record> = first.iter().chain(&second).filter(is_old).collect();
        // No record is both new and withdrawn.
        let mut new = new;
        new.retain(|record| old.iter().all(|it| it.id != record.id));
        if again {
            new.extend(old.iter().map(|record| anew(record)));
        }
        let plan = planned(&new, &gone(&old, &plans), &plans, &state);
        let mut read = state.clone();
        plan.apply(&mut read).unwrap();
        let ids: BTreeSet<RecordId> = old.iter().map(|record| record.id).collect();
        let mut all = plans.clone();
        all.push(plan);
        let mut never = read.clone();
        forget(&ids, &read, &all).apply(&mut never);
        reread(&new, &old, &mut plans, &mut state);
        for (id, memory) in &state {
            match never.get(id) {
                Some(other) => {
                    let (mut memory, other) = (sorted(memory), sorted(other));
                    // It ended when that was first said, even if only a later record still says so.
                    if memory.superseded_by.is_some() {
                        memory.valid_until = other.valid_until;
                    }
                    prop_assert_eq!(memory, other);
                }
                None => prop_assert!(memory.is_hollow()),
            }
            prop_assert!(memory.sources.iter().all(|source| !ids.contains(source)));
        }
        // Records forgotten later leave no words in the plans.
        let some: BTreeSet<RecordId> =
            new.iter().chain(&first).map(|it| it.id).filter(|id| id.0.short() & 2 == 0).collect();
        let forgotten = forget(&some, &state, &plans);
        for plan in &forgotten.plans {
            let text = serde_json::to_string(plan).unwrap();
            prop_assert!(some.iter().all(|id| !text.contains(&id.to_string())));
        }
        // Back to the older reading.
        let back: Vec<Record> = old.into_iter().cloned().collect();
        reread(&back, &[], &mut plans, &mut state);
    }
}
