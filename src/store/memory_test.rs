//! Memory on each kind of store.

use super::fixture::*;
use super::*;
use crate::adapters::process;
use crate::consolidate::{
    Index, Memories, PersonVerdict, Posting, Postings, SearchKeys, Verdicts, Withdrawn,
};
use crate::consolidate::{consolidate, decide, entered_keys, withdraw};
use crate::domain::*;
use crate::domain::{Memory, MemoryMap, Plan};
use crate::search::Query;
use std::collections::{BTreeMap, BTreeSet};

/// Stages a run with one record per claim.
async fn with_records(store: &Store, session: &Session, claims: &[&str]) {
    stage(store, staging(session, "run", 0, claims)).await.unwrap();
}

/// Returns the plan for the records that wait.
async fn planned(store: &Store) -> Plan {
    let known = store.memories(Some("project")).await.unwrap();
    let records = store.waiting_records("project", 99).await.unwrap();
    consolidate(&records, &Memories::of("project", &known), &Verdicts::none()).0
}

/// Checks that the index matches the memories and has no key that only `gone` has.
async fn check_index(store: &Store, gone: &Plan) {
    let mut expected = Index::default();
    let memories = store.memories(Some("project")).await.unwrap();
    memories.values().for_each(|it| expected.insert(it.id, &SearchKeys::of(&it.claim)));
    let gone = gone.operations.iter().map(|it| SearchKeys::of(&it.facts.claim));
    let gone: Vec<u64> =
        gone.flat_map(|it| entered_keys(&it).map(|(key, _)| key).collect::<Vec<_>>()).collect();
    let gone = gone.into_iter();
    let keys = gone.chain(expected.keys.keys().copied()).collect();
    let index = store.memory_index("project", keys).await.unwrap().unwrap();
    let rows = |index: &Index| -> BTreeMap<u64, BTreeSet<String>> {
        let row = |it: &Postings| {
            let name = |it: &Posting| {
                format!("{:?} {} {}", index.numbers.memory(it.memory), it.times, it.length)
            };
            it.list.iter().map(name).collect()
        };
        index.keys.iter().map(|(key, it)| (*key, row(it))).collect()
    };
    assert_eq!(rows(&index), rows(&expected));
    assert_eq!((index.memories, index.words), (expected.memories, expected.words));
}

async fn lease(store: &Store, now: i64) -> NamespaceLease {
    take(store, REQUEST, now, now + 100).await.unwrap()
}

async fn take(
    store: &Store,
    request: LeaseRequest<'_>,
    now: i64,
    until: i64,
) -> Option<NamespaceLease> {
    store.lease_namespace(request, Timestamp(now), Timestamp(until)).await.unwrap()
}

/// Returns the name of a process on this machine that has ended.
fn ended_process() -> String {
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let pid = |id: u32| format!(":{id}:");
    process::name().replace(&pid(std::process::id()), &pid(ended.id()))
}

const REQUEST: LeaseRequest<'static> =
    LeaseRequest { namespace: "project", holder: "w", clock: || Timestamp(0), waits: false };
const CLAIMS: [&str; 2] = ["Replaced the seal of the pump", "Measured the flow at valve seven"];
/// Says the same as the first claim.
const AGAIN: &str = "replaced the seal of the pump!";

#[tokio::test]
async fn a_plan_is_applied_once_and_taken_back_whole() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        with_records(&store, &session, &CLAIMS).await;
        let backlog = store.backlog().await.unwrap().remove(0);
        assert_eq!((backlog.namespace.as_str(), backlog.records), ("project", 2));
        let plan = planned(&store).await;
        assert_eq!(plan.operations.len(), 2);
        let lease = lease(&store, 0).await;
        for _ in 0..2 {
            store.apply_plan(&lease, &plan, &[], Timestamp(10)).await.unwrap().unwrap();
        }
        assert_eq!(store.plans(None).await.unwrap().len(), 1, "twice is once");
        check_index(&store, &plan).await;
        let memories = store.memories(Some("project")).await.unwrap();
        assert_eq!(memories, plan.after());
        for all in [false, true] {
            assert_eq!(store.latest_memories("project", all, 9).await.unwrap().len(), 2, "{all}");
        }
        assert_eq!(store.memories(None).await.unwrap(), memories);
        assert!(store.memories(Some("other")).await.unwrap().is_empty());
        assert!(store.waiting_records("project", 9).await.unwrap().is_empty());
        assert!(store.backlog().await.unwrap().is_empty());
        assert!(planned(&store).await.is_empty(), "a second plan has nothing to do");
        for _ in 0..2 {
            store.undo_plan(&lease, &plan, Timestamp(20)).await.unwrap().unwrap();
        }
        assert_eq!(store.memories(None).await.unwrap(), MemoryMap::new());
        check_index(&store, &plan).await;
        assert!(planned(&store).await.is_empty(), "an undo is remembered");
        assert!(store.backlog().await.unwrap().is_empty());
        for count in [2, 0] {
            let released = store.release_undone(&lease, plan.id, Timestamp(25)).await.unwrap();
            assert_eq!(released, count);
        }
        assert_eq!(planned(&store).await, plan, "what was released waits again");
        store.apply_plan(&lease, &plan, &[], Timestamp(30)).await.unwrap().unwrap();
        let plans = store.plans(Some("project")).await.unwrap();
        let undone: Vec<Option<Timestamp>> = plans.iter().map(|it| it.undone_at).collect();
        assert_eq!(undone, [Some(Timestamp(20)), None]);
        let listed = store.latest_plans(PageRange { skip: 0, take: 9 }).await.unwrap();
        assert_eq!(listed.iter().map(|it| it.at).collect::<Vec<_>>(), [Timestamp(30)]);
        let PrefixLookup::One(found) = store.plan(plan.id.0.into()).await.unwrap() else {
            panic!()
        };
        assert_eq!((found.at, found.plan), (Timestamp(30), plan));
    })
    .await;
}

/// Applies the plan for the records that wait, and returns it.
async fn consolidated(store: &Store, lease: &NamespaceLease, at: i64) -> Plan {
    let plan = planned(store).await;
    store.apply_plan(lease, &plan, &[], Timestamp(at)).await.unwrap().unwrap();
    plan
}

#[tokio::test]
async fn records_of_a_memory_that_an_undo_kept_do_not_wait_again() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        with_records(&store, &session, &CLAIMS).await;
        // It says the same as the first.
        stage(&store, staging(&session, "more", 5, &[AGAIN])).await.unwrap();
        let lease = lease(&store, 0).await;
        let plan = consolidated(&store, &lease, 10).await;
        let memories = store.memories(None).await.unwrap();
        let before = memories.into_values().find(|it| it.sources.len() == 2).unwrap();
        let after = Memory { confirmed: true, edited: Some("mine".to_owned()), ..before.clone() };
        let edit = vec![(before, after.clone())];
        store.amend_memories(&lease, edit, "person-edited", Timestamp(15)).await.unwrap().unwrap();
        store.undo_plan(&lease, &plan, Timestamp(20)).await.unwrap().unwrap();
        let released = store.release_undone(&lease, plan.id, Timestamp(25)).await.unwrap();
        assert_eq!((released, store.backlog().await.unwrap()[0].records), (1, 1));
        for source in &after.sources {
            let found = store.memory_on(*source).await.unwrap();
            assert_eq!(found.map(|it| it.id), Some(after.id));
        }
        consolidated(&store, &lease, 30).await;
        assert!(store.backlog().await.unwrap().is_empty());
        assert!(store.set_aside(None).await.unwrap().is_empty());
    })
    .await;
}

/// Order in which all of four plans are tried to be undone, by its number.
fn permutation(mut number: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..4).collect();
    let take = |size: usize| {
        let at = number % size;
        number /= size;
        left.remove(at)
    };
    (1..=4).rev().map(take).collect()
}

#[tokio::test]
async fn in_whatever_order_plans_and_verdicts_are_undone_memory_is_what_the_others_make() {
    on_each_store(async |kind| {
        for number in (0..24).step_by(5) {
            let (_place, store, session) = kind.begun().await;
            let lease = lease(&store, 0).await;
            with_records(&store, &session, &CLAIMS).await;
            let mut plans = vec![consolidated(&store, &lease, 10).await];
            let verdict = async |memory, at| {
                let memories = store.memories(None).await.unwrap();
                let verdict = PersonVerdict::Retract { memory };
                let plan = decide(verdict, &memories, &[], Timestamp(at)).unwrap();
                store.apply_plan(&lease, &plan, &[], Timestamp(at)).await.unwrap().unwrap();
                plan
            };
            let home = |of: &Plan, at: usize| of.operations[at].disposition.home().unwrap();
            plans.push(verdict(home(&plans[0], 1), 20).await);
            let more = ["Painted the pump house", AGAIN];
            stage(&store, staging(&session, "more", 5, &more)).await.unwrap();
            plans.push(consolidated(&store, &lease, 30).await);
            plans.push(verdict(home(&plans[2], 1), 40).await);
            let mut standing: Vec<&Plan> = plans.iter().collect();
            let order = permutation(number);
            // What is refused until others are undone is tried again.
            for at in order.iter().cycle().take(16) {
                let undone = store.undo_plan(&lease, &plans[*at], Timestamp(50)).await.unwrap();
                if undone.is_ok() {
                    standing.retain(|it| it.id != plans[*at].id);
                }
                let mut expected = MemoryMap::new();
                standing.iter().for_each(|it| it.apply(&mut expected).unwrap());
                assert_eq!(store.memories(None).await.unwrap(), expected, "{order:?} {at}");
            }
            assert!(standing.is_empty(), "{order:?}");
            for plan in &plans {
                store.release_undone(&lease, plan.id, Timestamp(60)).await.unwrap();
            }
            assert_eq!(store.backlog().await.unwrap()[0].records, 4);
            consolidated(&store, &lease, 70).await;
            assert!(store.backlog().await.unwrap().is_empty());
        }
    })
    .await;
}

#[tokio::test]
async fn one_at_a_time_changes_the_memory_of_a_namespace() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        with_records(&store, &session, &CLAIMS).await;
        let plan = planned(&store).await;
        let late = lease(&store, 0).await;
        let x = LeaseRequest { holder: "x", ..REQUEST };
        assert_eq!(take(&store, x, 99, 999).await, None, "it is held");
        let other = LeaseRequest { namespace: "other", ..x };
        assert!(take(&store, other, 0, 999).await.is_some(), "another namespace is not");
        let next = take(&store, x, 100, 999).await.unwrap();
        let lost = store.apply_plan(&late, &plan, &[], Timestamp(101)).await.unwrap_err();
        assert_eq!(lost.kind, StoreErrorKind::NamespaceLeaseLost("project".to_owned()));
        assert!(store.memories(None).await.unwrap().is_empty(), "nothing was written");
        store.apply_plan(&next, &plan, &[], Timestamp(101)).await.unwrap().unwrap();
        store.release_namespace(&late, Some(Timestamp(102))).await.unwrap();
        assert_eq!(take(&store, x, 103, 999).await, None, "who lost it gives nothing back");
        store.release_namespace(&next, Some(Timestamp(104))).await.unwrap();
        let holder = ended_process();
        let ended = LeaseRequest { holder: &holder, ..REQUEST };
        assert!(take(&store, ended, 105, 999).await.is_some());
        // On systems that cannot tell, no process counts as gone.
        let now = if process::is_gone(&holder) { 106 } else { 999 };
        let heir = take(&store, REQUEST, now, 2_000).await.unwrap();
        assert!(store.renew_namespace(&heir, Timestamp(3_000)).await.unwrap());
        assert!(!store.renew_namespace(&next, Timestamp(9_000)).await.unwrap(), "it is another's");
        assert_eq!(take(&store, x, 2_999, 9_000).await, None, "it was prolonged");
        assert!(take(&store, x, 3_000, 9_000).await.is_some());
        // A lease that ends too late came from a wrong clock.
        assert!(take(&store, REQUEST, 9_000, 200_000).await.is_some());
        assert_eq!(take(&store, x, 125_000, 126_000).await, None);
        assert!(take(&store, x, 124_999, 126_000).await.is_some());
    })
    .await;
}

#[tokio::test]
async fn what_somebody_changed_meanwhile_is_not_written_over() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        with_records(&store, &session, &CLAIMS).await;
        let (plan, lease) = (planned(&store).await, lease(&store, 0).await);
        store.apply_plan(&lease, &plan, &[], Timestamp(10)).await.unwrap().unwrap();
        let before = store.memories(None).await.unwrap().into_values().next().unwrap();
        let after = Memory { confirmed: true, ..before.clone() };
        let amend = async |changes: (&Memory, &Memory)| {
            let changes = vec![(changes.0.clone(), changes.1.clone())];
            store.amend_memories(&lease, changes, "person-edited", Timestamp(20)).await.unwrap()
        };
        for _ in 0..2 {
            amend((&before, &after)).await.unwrap();
        }
        let PrefixLookup::One(kept) = store.memory(before.id.0.into()).await.unwrap() else {
            panic!()
        };
        assert_eq!(*kept, after);
        let other = Memory { confirmed: false, reason: Some("x".to_owned()), ..before.clone() };
        assert_eq!(amend((&other, &before)).await, Err(vec![before.id]));
        store.undo_plan(&lease, &plan, Timestamp(30)).await.unwrap().unwrap();
        let left: Vec<Memory> = store.memories(None).await.unwrap().into_values().collect();
        assert_eq!(left, [after], "what a person confirmed stays");
    })
    .await;
}

#[tokio::test]
async fn what_a_memory_settled_is_found() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        with_records(&store, &session, &CLAIMS).await;
        let (plan, lease) = (planned(&store).await, lease(&store, 0).await);
        store.apply_plan(&lease, &plan, &[], Timestamp(10)).await.unwrap().unwrap();
        let before = store.memories(None).await.unwrap().into_values().next().unwrap();
        let (by, other) = (MemoryId(Digest::of(&["by"])), MemoryId(Digest::of(&["other"])));
        let after = Memory { settled_by: Some(by), ..before.clone() };
        let changes = vec![(before, after.clone())];
        store.amend_memories(&lease, changes, "test", Timestamp(20)).await.unwrap().unwrap();
        let of = &after.namespace;
        assert_eq!(store.settled_by(of, by, 9).await.unwrap(), std::slice::from_ref(&after));
        assert_eq!(store.settled_by(of, other, 9).await.unwrap(), []);
        assert_eq!(store.settled_by("elsewhere", by, 9).await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn the_ledger_tells_every_deed_without_a_word() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        with_records(&store, &session, &CLAIMS).await;
        let (plan, lease) = (planned(&store).await, lease(&store, 0).await);
        store.apply_plan(&lease, &plan, &[], Timestamp(10)).await.unwrap().unwrap();
        store.undo_plan(&lease, &plan, Timestamp(20)).await.unwrap().unwrap();
        let ledger = store.ledger(None).await.unwrap();
        let deeds: Vec<&str> = ledger.iter().map(|it| it.deed.as_str()).collect();
        assert_eq!(deeds, ["add", "add", "undo"]);
        assert!(!format!("{ledger:?}").contains("pump"));
        let first = plan.operations[0].disposition.home();
        let of_one = store.ledger(first).await.unwrap();
        assert_eq!((of_one.len(), of_one[0].record), (1, Some(plan.operations[0].record)));
    })
    .await;
}

#[tokio::test]
async fn what_was_rendered_last_is_kept_by_directory() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        let files = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_owned(), format!("# {name}\r\n").into())).collect()
        };
        for names in [&["a.md", "b.md"][..], &["b.md"]] {
            let kept = vec![("/here".to_owned(), KeptFiles::All(files(names)))];
            store.keep_rendered(kept).await.unwrap();
            assert_eq!(store.rendered("/here").await.unwrap(), files(names));
        }
        assert!(store.rendered("/there").await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn what_is_erased_is_in_no_text_of_the_store_and_the_rest_is_as_it_was() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        with_records(&store, &session, &CLAIMS).await;
        let other = conversation("two");
        begin(&store, &other).await.unwrap();
        stage(&store, staging(&other, "other", 0, &["Oiled the hinge of door nine"]))
            .await
            .unwrap();
        let (plan, lease) = (planned(&store).await, lease(&store, 0).await);
        store.apply_plan(&lease, &plan, &[], Timestamp(10)).await.unwrap().unwrap();
        let of_session =
            RecordFilter { session: Some(session.id.0.into()), ..RecordFilter::default() };
        let records = store.records(of_session).await.unwrap();
        let records: Vec<RecordId> = records.into_iter().map(|it| it.record.id).collect();
        assert_eq!(records.len(), 2);
        let state = store.memories(Some("project")).await.unwrap();
        let of = records.iter().copied().collect();
        let forgotten = crate::consolidate::forget(&of, &state, std::slice::from_ref(&plan));
        let erasure = Erasure {
            sessions: vec![session.id],
            records,
            changes: forgotten.changes.clone(),
            plans: forgotten.plans.clone(),
        };
        let erased = store.erase(&lease, erasure.clone(), Timestamp(20)).await.unwrap().unwrap();
        assert_eq!((erased.sessions, erased.records, erased.memories_gone), (1, 2, 2));
        let look = |left: &mut Vec<String>, looked: StoredText<'_>| {
            if looked.text.contains("Replaced the seal") || looked.text.contains("valve seven") {
                left.push(looked.place.to_owned());
            }
        };
        let left = store.each_text(Vec::new(), look).await.unwrap();
        assert_eq!(left, [""; 0]);
        assert_eq!(store.memories(None).await.unwrap().len(), 1);
        check_index(&store, &plan).await;
        let again = store.erase(&lease, erasure, Timestamp(30)).await.unwrap();
        assert_eq!(again.unwrap_err().len(), 2, "those memories are gone");
        assert_eq!(store.unscrubbed().await.unwrap(), ["project"]);
        assert!(store.scrub().await.unwrap());
        assert_eq!(store.unscrubbed().await.unwrap(), [""; 0]);
        assert_eq!(store.sessions_of("project").await.unwrap(), [other.id]);
    })
    .await;
}

#[tokio::test]
async fn what_was_read_anew_is_withdrawn_once_and_comes_back_with_the_older_reading() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let (old, new) = (staging(&session, "old", 0, &CLAIMS), staging(&session, "new", 0, &[]));
        stage(&store, old.clone()).await.unwrap();
        let plan = planned(&store).await;
        let lease = lease(&store, 0).await;
        store.apply_plan(&lease, &plan, &[], Timestamp(10)).await.unwrap().unwrap();
        let believed = store.memories(None).await.unwrap();
        assert!(store.outdated_records("project", 9).await.unwrap().is_empty());

        stage(&store, new.clone()).await.unwrap();
        store.end_session(session.id, ended(10, &[&new])).await.unwrap();
        assert_eq!(store.backlog().await.unwrap()[0].records, 2);
        let outdated = store.outdated_records("project", 9).await.unwrap();
        let ids: Vec<RecordId> = outdated.iter().map(|(record, _)| record.id).collect();
        assert_eq!(ids, old.records.iter().map(|it| it.id).collect::<Vec<_>>());
        assert!(outdated.iter().all(|(_, memory)| believed.contains_key(memory)));
        let all = outdated.into_iter().map(|(record, memory)| Withdrawn { record, memory });
        let all: Vec<Withdrawn> = all.collect();
        let next = planned(&store).await;
        assert!(next.is_empty());
        let plan = withdraw(next, &all, &believed, vec![plan]);
        store.apply_plan(&lease, &plan, &[], Timestamp(20)).await.unwrap().unwrap();
        assert!(store.memories(None).await.unwrap().values().all(Memory::is_hollow));
        assert!(store.outdated_records("project", 9).await.unwrap().is_empty());
        assert!(store.backlog().await.unwrap().is_empty());

        store.undo_plan(&lease, &plan, Timestamp(30)).await.unwrap().unwrap();
        assert_eq!(store.memories(None).await.unwrap(), believed);
        assert!(store.outdated_records("project", 9).await.unwrap().is_empty(), "it is remembered");
        store.release_undone(&lease, plan.id, Timestamp(35)).await.unwrap();
        store.apply_plan(&lease, &plan, &[], Timestamp(40)).await.unwrap().unwrap();
        store.end_session(session.id, ended(10, &[&old])).await.unwrap();
        let back = planned(&store).await;
        assert_eq!(back.operations.len(), 2, "they wait again");
        store.apply_plan(&lease, &back, &[], Timestamp(50)).await.unwrap().unwrap();
        assert_eq!(store.memories(None).await.unwrap(), believed);
        for plan in [&back, &plan] {
            store.undo_plan(&lease, plan, Timestamp(60)).await.unwrap().unwrap();
        }
        assert_eq!(store.memories(None).await.unwrap(), believed);
        assert!(planned(&store).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_filter_finds_what_ranks_below_many_others() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let claims: Vec<String> = (0..30).map(|n| format!("Sealed valve {n}")).collect();
        let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
        let mut staged = staging(&session, "run", 0, &claims);
        let intent = "Seal the last valve of the old house by the river before winter".to_owned();
        staged.records[0].claim =
            Claim::Request(PersonRequest { intent, target: None, summary: "asked".to_owned() });
        staged.records[0].id = Record::id_of(staged.run.id, &staged.records[0].claim);
        let id = staged.records[0].id;
        stage(&store, staged).await.unwrap();
        let found = async |kind| {
            let filter = SearchFilter { kind, ..SearchFilter::default() };
            let found = store.candidates(Query::of("valve").keys(), filter, 1).await.unwrap();
            found.records.iter().map(|(it, _)| it.record.id).collect::<Vec<_>>()
        };
        assert_eq!(found(Some(ClaimKind::Request)).await, [id]);
        let best = found(None).await;
        assert!(best.len() == 1 && best != [id], "longer texts rank lower");
    })
    .await;
}

#[tokio::test]
async fn what_is_open_is_found_however_much_came_after_it() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let mut staged = staging(&session, "run", 0, &["Sealed valve one", "two", "three", "four"]);
        let request = |intent: &str| {
            let (intent, summary) = (intent.to_owned(), "asked".to_owned());
            Claim::Request(PersonRequest { intent, target: None, summary })
        };
        for (at, intent) in [(0, "Seal valve one"), (1, "Paint the pump")] {
            staged.records[at].claim = request(intent);
            staged.records[at].id = Record::id_of(staged.run.id, &staged.records[at].claim);
        }
        stage(&store, staged).await.unwrap();
        let open = SearchFilter { open: true, ..SearchFilter::default() };
        let found = async |limit| {
            let found = store.candidates(Vec::new(), open.clone(), limit).await.unwrap();
            let claims = found.records.iter().map(|(it, _)| it.record.claim.headline().to_owned());
            claims.collect::<Vec<_>>()
        };
        assert_eq!(found(99).await.len(), 2, "two requests that wait");
        assert_eq!(found(1).await.len(), 1, "attempts take no place");
        let plan = planned(&store).await;
        let lease = lease(&store, 0).await;
        store.apply_plan(&lease, &plan, &[], Timestamp(10)).await.unwrap().unwrap();
        assert_eq!(found(99).await.len(), 2, "two requests in memory");
        assert_eq!(found(1).await.len(), 1);
    })
    .await;
}
