//! Adjudication of memory on each kind of store: open pairs, answers, bills.

use super::fixture::*;
use super::*;
use crate::domain::*;
use crate::domain::{
    Disposition, Effect, Facts, Finish, LeftOpen, Memory, MemoryId, Operation, PARTLY, Plan,
    Purpose, Record, Settlement, Speaker, Stage, Usage,
};

const CLAIMS: [&str; 2] = ["Replaced the seal of the pump", "Measured the flow at valve seven"];

/// Returns the store's two records and a plan that keeps both and leaves open how they relate.
async fn begun_open(store: &Store, session: &Session) -> (Vec<Record>, Plan) {
    stage(store, staging(session, "run", 0, &CLAIMS)).await.unwrap();
    let records = store.waiting_records("project", 9).await.unwrap();
    let homes: Vec<MemoryId> = records.iter().map(|it| Memory::id_of("project", it.id)).collect();
    let dispositions = [
        Disposition::Add { memory: homes[0] },
        Disposition::Conflict { with: homes[0], memory: homes[1] },
    ];
    let operations =
        records.iter().zip(dispositions).map(|(it, disposition)| operation(it, disposition));
    let left = LeftOpen { record: records[1].id, memory: homes[0], rule: "alike".into() };
    let plan = Plan::new("project".to_owned(), operations.collect(), vec![], vec![left]);
    (records, plan)
}

fn operation(record: &Record, disposition: Disposition) -> Operation {
    let facts = Facts {
        claim: record.claim.clone(),
        stage: Stage::Decided,
        said_by: Speaker::Person,
        at: record.provenance.at,
        ends: None,
    };
    Operation {
        record: record.id,
        disposition,
        rule: "alike".into(),
        facts,
        effects: Vec::<Effect>::new(),
    }
}

/// Leases the namespace from `now` to `until`.
async fn lease(
    store: &Store,
    holder: &'static str,
    now: i64,
    until: i64,
) -> Option<NamespaceLease> {
    let clock = || Timestamp(0);
    let request = LeaseRequest { namespace: "project", holder, clock, waits: false };
    store.lease_namespace(request, Timestamp(now), Timestamp(until)).await.unwrap()
}

async fn held(store: &Store) -> NamespaceLease {
    lease(store, "w", 0, 1_000).await.unwrap()
}

fn answer(name: &str, about: &[Digest]) -> JournalEntry {
    let reply = Reply {
        calls: vec![],
        content: words(name),
        refusal: None,
        finish: Finish::Stop,
        usage: Usage::default(),
    };
    JournalEntry {
        digest: RequestDigest(Digest::of(&[name])),
        run: RunId(Digest::of(&["judging"])),
        session: None,
        model: "small".to_owned(),
        rung: OutputMode::Text,
        at: Timestamp(90_000_000),
        reply,
        spare_bill: None,
        bill: Some(Bill {
            purpose: Purpose::Consolidate,
            namespace: "project".to_owned(),
            usage: Usage { prompt_tokens: 100, cached_tokens: 40, completion_tokens: 10 },
            cost_micros: 5,
            about: about.to_vec(),
        }),
    }
}

#[tokio::test]
async fn a_pair_is_open_until_it_is_settled_and_again_when_that_is_undone() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let (records, plan) = begun_open(&store, &session).await;
        let lease = held(&store).await;
        assert_eq!(store.open_pairs("project", false, 9).await.unwrap(), []);
        for at in [10, 20] {
            store.apply_plan(&lease, &plan, &[], Timestamp(at)).await.unwrap().unwrap();
        }
        let pair = store.open_pairs("project", false, 9).await.unwrap().remove(0);
        assert_eq!(pair.rule, "alike");
        let [first, second] = [0, 1].map(|n: usize| Memory::id_of("project", records[n].id));
        assert_eq!(
            (pair.record, pair.home, pair.memory, pair.asked),
            (records[1].id, second, first, None)
        );
        assert_eq!(store.open_namespaces().await.unwrap(), ["project"]);
        assert_eq!(store.records_of(vec![records[1].id]).await.unwrap(), records[1..]);
        let question = Digest::of(&["question"]);
        let asked = AskedPair { record: pair.record, memory: pair.memory, question };
        store.note_asked(&lease, vec![asked]).await.unwrap();
        assert_eq!(store.open_pairs("project", false, 9).await.unwrap()[0].asked, Some(question));
        let marks = Disposition::Settle { memory: second, with: first, how: Settlement::Partly };
        let marked = Operation { rule: PARTLY.into(), ..operation(&records[1], marks) };
        let before = store.memories(None).await.unwrap().into_values().collect();
        let marked = Plan::new("project".to_owned(), vec![marked], before, vec![]);
        store.apply_plan(&lease, &marked, &[asked], Timestamp(25)).await.unwrap().unwrap();
        let pair = store.open_pairs("project", true, 9).await.unwrap().remove(0);
        assert_eq!((&*pair.rule, pair.asked), (PARTLY, Some(question)), "it stays open, marked");
        let settle = Disposition::Settle { memory: second, with: first, how: Settlement::Joined };
        let before = store.memories(None).await.unwrap().into_values().collect();
        let settled =
            Plan::new("project".to_owned(), vec![operation(&records[1], settle)], before, vec![]);
        store.apply_plan(&lease, &settled, &[], Timestamp(30)).await.unwrap().unwrap();
        assert_eq!(store.open_pairs("project", false, 9).await.unwrap(), []);
        assert!(store.open_namespaces().await.unwrap().is_empty());
        let memory = &store.memories(None).await.unwrap()[&first];
        assert_eq!(memory.sources, [records[0].id, records[1].id]);
        store.undo_plan(&lease, &settled, Timestamp(40)).await.unwrap().unwrap();
        let pair = store.open_pairs("project", false, 9).await.unwrap().remove(0);
        assert!(pair.is_undone, "no model is asked about it again");
        assert!(store.waiting_records("project", 9).await.unwrap().is_empty(), "none waits again");
        store.undo_plan(&lease, &plan, Timestamp(50)).await.unwrap().unwrap();
        assert!(store.open_namespaces().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn who_lost_a_namespace_notes_nothing_and_holds_nothing() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let (_, plan) = begun_open(&store, &session).await;
        let held = held(&store).await;
        store.apply_plan(&held, &plan, &[], Timestamp(10)).await.unwrap().unwrap();
        assert!(store.renew_namespace(&held, Timestamp(2_000)).await.unwrap());
        assert!(lease(&store, "x", 1_999, 9_000).await.is_none());
        assert!(lease(&store, "x", 2_000, 9_000).await.is_some());
        assert!(!store.renew_namespace(&held, Timestamp(3_000)).await.unwrap());
        let lost = store.note_asked(&held, vec![]).await.unwrap_err();
        assert_eq!(lost.kind, StoreErrorKind::NamespaceLeaseLost("project".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn calls_that_are_no_runs_are_on_the_bill_and_under_the_caps() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        stage(&store, staging(&session, "run", 0, &CLAIMS)).await.unwrap();
        for _ in 0..2 {
            store.journal(answer("one", &[])).await.unwrap();
        }
        let calls = async |since, namespace, session| {
            spent(&store, Timestamp(since), namespace, session).await.unwrap().calls
        };
        assert_eq!(calls(0, None, None).await, 2, "written twice it is there once, beside the run");
        assert_eq!(calls(90_000_000, Some("project"), None).await, 1);
        assert_eq!(calls(0, Some("other"), None).await, 0);
        assert_eq!(calls(0, None, Some(session.id)).await, 1, "it is of no session");
        let later = JournalEntry { at: Timestamp(90_000_001), ..answer("one", &[]) };
        store.journal(later).await.unwrap();
        assert_eq!(calls(90_000_000, None, None).await, 2, "who asked the same at once paid too");
        let bill = store.status().await.unwrap().bill;
        let lines: Vec<_> = bill
            .iter()
            .map(|it| (it.day.0, it.purpose, it.spent.calls, it.spent.cost_micros))
            .collect();
        assert_eq!(lines, [(86_400_000, Purpose::Consolidate, 2, 10), (0, Purpose::Extract, 1, 7)]);
        // A starting worker adds up past spending.
        store.recount(Vec::new(), Timestamp(90_000_002)).await.unwrap();
        let cap = |most| Cap {
            scope: CapScope::NamespaceDay("project".to_owned(), Timestamp(86_400_000)),
            sort: CapUnit::Tokens,
            most,
        };
        let charge = SentCall {
            id: Digest::of(&["call"]),
            at: Timestamp(90_000_002),
            namespace: "project".to_owned(),
            session: None,
            usage: Usage { prompt_tokens: 1, ..Usage::default() },
            cost_micros: 0,
        };
        assert_eq!(
            store.reserve(vec![cap(220)], charge.clone()).await.unwrap(),
            Some(CapReached { cap: cap(220), needed: 1, is_transient: false })
        );
        assert_eq!(store.reserve(vec![cap(221)], charge).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn an_answer_is_erased_with_any_record_or_memory_that_it_is_about() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let (records, plan) = begun_open(&store, &session).await;
        let lease = held(&store).await;
        store.apply_plan(&lease, &plan, &[], Timestamp(10)).await.unwrap().unwrap();
        let first = Memory::id_of("project", records[0].id);
        store.journal(answer("of a record", &[records[1].id.0, Digest::of(&["x"])])).await.unwrap();
        store.journal(answer("of a memory", &[first.0])).await.unwrap();
        store.journal(answer("of others", &[Digest::of(&["y"])])).await.unwrap();
        let there = async |name: &str| {
            store.journaled(RequestDigest(Digest::of(&[name]))).await.unwrap().is_some()
        };
        let memory = store.memories(None).await.unwrap()[&first].clone();
        let change = crate::domain::Change { memory: first, before: Some(memory), after: None };
        let erasure = |records, changes| Erasure { records, changes, ..Erasure::default() };
        let erased = store.erase(&lease, erasure(vec![], vec![change]), Timestamp(20)).await;
        assert_eq!(erased.unwrap().unwrap().answers, 1);
        assert!(!there("of a memory").await && there("of a record").await);
        assert_eq!(store.open_namespaces().await.unwrap(), Vec::<String>::new());
        let erased = store.erase(&lease, erasure(vec![records[1].id], vec![]), Timestamp(20)).await;
        assert_eq!(erased.unwrap().unwrap().answers, 1);
        let all = Erasure { sessions: vec![session.id], ..erasure(vec![records[0].id], vec![]) };
        store.erase(&lease, all, Timestamp(30)).await.unwrap().unwrap();
        assert!(!there("of a record").await && there("of others").await);
        assert_eq!(spent(&store, Timestamp(0), None, None).await.unwrap().calls, 3, "paid is paid");
    })
    .await;
}
