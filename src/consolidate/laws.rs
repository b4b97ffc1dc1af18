use super::fixture::*;
use super::{Draft, SearchKeys, as_of, consolidate, forget, looked_up_keys};
use super::{Index, Memories, Verdict, Verdicts};
use crate::domain::{Claim, MemoryMap, MemoryState, Plan, Record, RecordId, Speaker};
use proptest::prelude::*;
use std::collections::BTreeSet;

const SUBJECTS: [&str; 4] = [
    "queue worker restart", "uploader retry backoff", "session cookie expiry", "src/lib.rs naming",
];
const MARKS: [&str; 4] = ["", " instead", " after all", "!"];
const VERDICTS: [Verdict; 8] = [
    Verdict::Unrelated,
    Verdict::Same,
    Verdict::Covered,
    Verdict::Covers,
    Verdict::Replaces { agreed: false },
    Verdict::Conflict,
    Verdict::Partly,
    Verdict::Nothing,
];
const SPEAKERS: [Speaker; 4] = [Speaker::Person, Speaker::Assistant, Speaker::Tool, Speaker::Web];

/// Claims that often relate to one another: few subjects, few values, few wordings.
fn claim() -> impl Strategy<Value = Claim> {
    (0..4_usize, 0..4_usize, 0..4_usize, 0..7_u8).prop_map(|(subject, value, mark, kind)| {
        let (about, mark) = (SUBJECTS[subject], MARKS[mark]);
        let values = ["Redis", "Postgres", "30 seconds", "60 seconds"];
        let value = values[value];
        match kind {
            0 => decision(&["Redis", "Postgres"], value, &format!("{about} needs it{mark}")),
            1 => decision(&[], &format!("Always use {value} for {about}"), "a rule"),
            2 => discussion(&format!("Redis or Postgres for the {about}"), &[value, about]),
            3 => attempt(
                &format!("Moved the {about} to {value} in staging{mark}"),
                value,
                value == "Redis",
            ),
            4 => {
                attempt(&format!("Moved the {about} to {value} in staging"), mark, mark.is_empty())
            }
            5 => request(&format!("Move the {about} to {value} in staging{mark}")),
            _ => request(&format!("yesterday: never move the {about} to {value}{mark}")),
        }
    })
}

pub(super) fn records() -> impl Strategy<Value = Vec<Record>> {
    let one = (claim(), 0..4_usize, 0..4_usize, 0..12_i64, prop::bool::weighted(0.1));
    let one = one.prop_map(|(claim, first, second, on, timeless)| {
        let words: Vec<&str> = claim.strings().into_iter().map(|(_, text)| text).collect();
        let words = words.join("; ");
        let said = [(SPEAKERS[first], words.as_str()), (SPEAKERS[second], "so it is")];
        let mut record = record_of(claim, &said, on);
        record.provenance.at = record.provenance.at.filter(|_| !timeless);
        record
    });
    prop::collection::vec(one, 0..24)
}

/// Plans and applies each batch; returns the plans.
pub(super) fn run(batches: &[&[Record]], state: &mut MemoryMap) -> Vec<Plan> {
    batches.iter().map(|records| plan(records, state)).collect()
}

pub(super) fn consolidated(records: &[Record], state: &MemoryMap, verdicts: &Verdicts) -> Plan {
    consolidate(records, &Memories::of(NAMESPACE, state), verdicts).0
}

proptest! {
    // Five hundred cases of two plans each, all of them undone.
    #![proptest_config(crate::testing::cases(500))]

    #[test]
    fn every_plan_is_sound_repeatable_and_undone_to_the_same(
        first in records(), second in records(), seed in any::<u64>(),
    ) {
        let mut state = MemoryMap::new();
        // `plan` checks each plan, applies it twice, undoes it, and plans again.
        let plans = run(&[&first, &second], &mut state);
        let mut shuffled = second.clone();
        shuffled.sort_by_key(|record| record.id.0.short().wrapping_mul(seed | 1));
        let mut before = MemoryMap::new();
        plans[0].apply(&mut before).unwrap();
        prop_assert_eq!(&consolidated(&shuffled, &before, &Verdicts::none()), &plans[1]);
        plans[1].undo(&mut state).unwrap();
        prop_assert_eq!(&state, &before);
        plans[0].undo(&mut state).unwrap();
        prop_assert_eq!(state, MemoryMap::new());
        let text = serde_json::to_string(&plans[1]).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Plan>(&text).unwrap(), &plans[1]);
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(40))]

    #[test]
    fn a_plan_from_the_index_is_the_plan_from_all_memories(
        old in records(), new in records(), said in prop::collection::vec(0..5_u8, 24),
    ) {
        let mut state = MemoryMap::new();
        run(&[&old], &mut state);
        let whole = Memories::of(NAMESPACE, &state);
        let mut verdicts = Verdicts::none();
        for (open, said) in consolidate(&new, &whole, &verdicts).0.left_open.iter().zip(said) {
            verdicts.insert(open.record, open.memory, VERDICTS[usize::from(said)]);
        }
        let mut index = Index::default();
        state.values().rev().for_each(|it| index.insert(it.id, &SearchKeys::of(&it.claim)));
        for stranger in &new {
            let id = crate::domain::MemoryId(stranger.id.0);
            index.insert(id, &SearchKeys::of(&stranger.claim));
            index.remove(id, &SearchKeys::of(&stranger.claim));
        }
        let keys = looked_up_keys(&new);
        index.keys.retain(|key, postings| keys.contains(key) && postings.count > 0);
        let mut partial = Memories::indexed(NAMESPACE, index);
        loop {
            let missing = Draft::of(&new, &[], &partial, &verdicts).missing;
            if missing.is_empty() {
                break;
            }
            missing.iter().for_each(|id| partial.load(state[id].clone()));
        }
        prop_assert_eq!(consolidate(&new, &partial, &verdicts), consolidate(&new, &whole, &verdicts));
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(120))]

    #[test]
    fn what_a_person_said_changes_by_a_persons_words_only(old in records(), new in records()) {
        let mut state = MemoryMap::new();
        run(&[&old], &mut state);
        let before = state.clone();
        let new: Vec<Record> = new
            .into_iter()
            .filter(|record| record.evidence.iter().all(|it| it.speaker != Speaker::Person))
            .collect();
        run(&[&new], &mut state);
        for (id, was) in before {
            let is = &state[&id];
            if was.said_by == Speaker::Person {
                prop_assert_eq!(&is.claim, &was.claim);
                prop_assert_eq!(is.state, was.state);
            }
            prop_assert!(was.sources.iter().all(|source| is.sources.contains(source)));
        }
    }

    #[test]
    fn a_stranger_is_left_as_it_was(old in records(), text in "[bcdfg]{4,8} [hjklm]{4,8} [npqrs]{4,8}") {
        let mut state = MemoryMap::new();
        run(&[&old], &mut state);
        let before = state.clone();
        run(&[&[record(request(&format!("{text} instead")), Speaker::Person, 20)]], &mut state);
        prop_assert!(before.iter().all(|(id, memory)| state[id] == *memory));
        prop_assert_eq!(state.len(), before.len() + 1);
    }

    #[test]
    fn nothing_forged_makes_an_unsound_plan(
        old in records(), new in records(), said in prop::collection::vec(0..5_u8, 24),
    ) {
        let mut state = MemoryMap::new();
        run(&[&old], &mut state);
        let open = consolidated(&new, &state, &Verdicts::none()).left_open;
        let mut verdicts = Verdicts::none();
        for (open, said) in open.iter().zip(said) {
            verdicts.insert(open.record, open.memory, VERDICTS[usize::from(said)]);
        }
        let memories = Memories::of(NAMESPACE, &state);
        let (plan, _) = consolidate(&new, &memories, &verdicts);
        finish(&new, &plan, memories, &mut state);
    }

    #[test]
    fn forgetting_is_as_if_it_had_never_been(first in records(), second in records(), keep in any::<u64>()) {
        let mut state = MemoryMap::new();
        let plans = run(&[&first, &second], &mut state);
        let unknown = BTreeSet::from([record(request("never said"), Speaker::Person, 1).id]);
        let nothing = forget(&unknown, &state, &plans);
        prop_assert!(nothing.changes.is_empty() && nothing.plans.is_empty());
        let all: BTreeSet<RecordId> = first.iter().chain(&second).map(|it| it.id).collect();
        let mut empty = state.clone();
        forget(&all, &state, &plans).apply(&mut empty);
        prop_assert_eq!(empty, MemoryMap::new());
        let some: BTreeSet<RecordId> =
            all.iter().copied().filter(|id| id.0.short() & keep & 3 == 0).collect();
        let mut rest = state.clone();
        let forgotten = forget(&some, &state, &plans);
        forgotten.apply(&mut rest);
        for memory in rest.values() {
            prop_assert!(memory.sources.iter().all(|source| !some.contains(source)));
            prop_assert!(!memory.sources.is_empty());
            let by = memory.superseded_by;
            prop_assert!(by.is_none_or(|by| rest.contains_key(&by)), "{memory:?}");
            prop_assert_eq!(by.is_some(), memory.state == MemoryState::Superseded);
        }
        for plan in &forgotten.plans {
            let text = serde_json::to_string(plan).unwrap();
            prop_assert!(some.iter().all(|id| !text.contains(&id.to_string())));
        }
        // What is left can still be undone, plan by plan.
        for plan in plans.iter().rev() {
            let cleared = forgotten.plans.iter().find(|it| it.id == plan.id).unwrap_or(plan);
            cleared.undo(&mut rest).unwrap();
        }
        prop_assert_eq!(rest, MemoryMap::new());
    }

    #[test]
    fn forgetting_the_last_batch_undoes_it(first in records(), second in records()) {
        let mut state = MemoryMap::new();
        let plans = run(&[&first, &second], &mut state);
        let taken: BTreeSet<RecordId> = plans[1].operations.iter().map(|it| it.record).collect();
        let mut rest = state.clone();
        forget(&taken, &state, &plans).apply(&mut rest);
        let mut before = MemoryMap::new();
        plans[0].apply(&mut before).unwrap();
        prop_assert_eq!(rest, before);
    }

    #[test]
    fn at_the_end_of_time_it_is_what_is_believed_now(first in records(), second in records()) {
        let mut state = MemoryMap::new();
        let plans = run(&[&first, &second], &mut state);
        prop_assert_eq!(as_of(day(10_000), &state, &plans), state.clone());
        for memory in as_of(day(5), &state, &plans).values() {
            prop_assert!(memory.valid_from.is_none_or(|from| from <= day(5)));
            prop_assert!(memory.valid_until.is_none_or(|until| until <= day(5)));
        }
    }

    #[test]
    fn any_text_can_be_planned(texts in prop::collection::vec("\\PC{0,40}", 0..12)) {
        let made: Vec<Record> = texts
            .iter()
            .enumerate()
            .flat_map(|(n, text)| {
                let on = i64::try_from(n).unwrap();
                let claims = [request(text), decision(&[text, ""], text, ""), discussion(text, &[text]), attempt(text, "", n % 2 == 0)];
                claims.map(|claim| record_of(claim, &[(Speaker::Person, text)], on))
            })
            .collect();
        run(&[&made], &mut MemoryMap::new());
    }
}
