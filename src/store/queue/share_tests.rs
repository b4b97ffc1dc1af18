//! Rates, caps and the worker registry, shared by several processes.

use super::super::fixture::{Place, on_each_store, stage, staging};
use super::*;
use crate::domain::*;
use crate::store::{OpenMode, Store};
use std::sync::atomic::{AtomicU64, Ordering};

const NOON: Timestamp = Timestamp(43_200_000);

fn rates(requests: Option<u32>, tokens: Option<u64>) -> Rates {
    let endpoint = "http://here/v1".to_owned();
    Rates { endpoint, requests_per_minute: requests, tokens_per_minute: tokens }
}

/// Opens a second connection to the same database, as another process does.
fn beside(place: &Place) -> Store {
    Store::open(&place.url(), OpenMode::Existing).unwrap()
}

/// Returns the seconds after `NOON` at which calls with these tokens may start, all drawn at noon.
async fn begins(stores: &[Store], rates: &Rates, tokens: &[u64]) -> Vec<i64> {
    let mut begins = Vec::new();
    for (tokens, store) in tokens.iter().zip(stores.iter().cycle()) {
        let begin = store.draw(rates.clone(), *tokens, NOON).await.unwrap();
        begins.push((begin.0 - NOON.0) / 1000);
    }
    begins
}

#[tokio::test]
async fn workers_keep_the_requests_of_a_minute_together() {
    on_each_store(async |kind| {
        let (place, store, _) = kind.begun().await;
        let stores = [store.clone(), beside(&place)];
        let drawn = begins(&stores, &rates(Some(60), None), &[0; 9]).await;
        assert_eq!(drawn, [0, 1, 2, 3, 4, 5, 6, 7, 8], "one a second");
        let slow = Rates { endpoint: "http://there/v1".to_owned(), ..rates(Some(1), None) };
        assert_eq!(
            begins(&stores, &slow, &[0, 0, 0]).await,
            [0, 61, 122],
            "another endpoint's own"
        );
    })
    .await;
}

#[tokio::test]
async fn no_minute_holds_more_requests_than_the_limit_and_a_burst_is_small() {
    on_each_store(async |kind| {
        let (place, store, _) = kind.begun().await;
        let (stores, limit) = ([store, beside(&place)], 120);
        let mut begins = Vec::new();
        for store in stores.iter().cycle().take(2 * limit) {
            let begin = store.draw(rates(Some(120), None), 0, NOON).await.unwrap();
            begins.push(begin.0 - NOON.0);
        }
        for (first, beyond) in begins.iter().zip(&begins[limit..]) {
            assert!(60_000 <= beyond - first, "{first} ms and {beyond} ms");
        }
        let within = |secs: i64| begins.iter().filter(|begin| **begin < secs * 1000).count();
        assert_eq!([1, 15].map(within), [3, 31], "two a second, and two more at once");
    })
    .await;
}

#[tokio::test]
async fn tokens_that_do_not_fit_at_once_wait_until_nothing_is_taken() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        let stores = [store.clone()];
        let per_second_100 = rates(None, Some(6_000));
        assert_eq!(begins(&stores, &per_second_100, &[2_000, 100, 2_000]).await, [0, 20, 21]);
    })
    .await;
}

#[tokio::test]
async fn tokens_that_were_not_used_are_given_back_and_those_beyond_are_owed() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        let both = rates(Some(600), Some(6_000));
        let stores = [store.clone()];
        assert_eq!(begins(&stores, &both, &[500, 500]).await, [0, 5]);
        store.settle_rate(both.clone(), 500, Some(0)).await.unwrap();
        store.settle_rate(both.clone(), 500, None).await.unwrap();
        // The request allowance still counts the returned call's time slot.
        assert_eq!(begins(&stores, &both, &[500]).await, [4]);
        store.settle_rate(both.clone(), 500, Some(1_500)).await.unwrap();
        assert_eq!(begins(&stores, &both, &[500]).await, [19]);
    })
    .await;
}

#[tokio::test]
async fn what_was_drawn_before_the_clock_went_back_is_forgotten() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        let rates = rates(Some(60), None);
        let next_year = Timestamp(NOON.0 + 365 * 86_400_000);
        for _ in 0..9 {
            store.draw(rates.clone(), 0, next_year).await.unwrap();
        }
        assert_eq!(begins(&[store], &rates, &[0]).await, [0]);
    })
    .await;
}

fn cap(scope: CapScope, most: u64) -> Cap {
    Cap { scope, sort: CapUnit::Tokens, most }
}

fn busy(cap: Cap, needed: u64) -> CapReached {
    CapReached { cap, needed, is_transient: true }
}

/// A call of its own that costs so many tokens at most.
fn tokens(prompt_tokens: u64) -> SentCall {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let number = CALLS.fetch_add(1, Ordering::Relaxed).to_string();
    SentCall {
        id: Digest::of(&[&number]),
        at: NOON,
        namespace: "project".to_owned(),
        session: None,
        usage: Usage { prompt_tokens, ..Usage::default() },
        cost_micros: 0,
    }
}

#[tokio::test]
async fn a_cap_holds_for_all_workers_and_what_goes_beyond_one_is_reserved_under_none() {
    on_each_store(async |kind| {
        let (place, store, session) = kind.begun().await;
        let other = beside(&place);
        let mine = cap(CapScope::Session(session.id), 100);
        let day = cap(CapScope::Day(NOON.midnight()), 120);
        let both = vec![day.clone(), mine.clone()];
        let call = tokens(90);
        assert_eq!(store.reserve(both.clone(), call.clone()).await.unwrap(), None);
        assert_eq!(other.reserve(both.clone(), tokens(20)).await.unwrap(), Some(busy(mine, 20)));
        assert_eq!(other.reserve(vec![day.clone()], tokens(30)).await.unwrap(), None);
        assert_eq!(other.reserve(vec![day.clone()], tokens(1)).await.unwrap(), Some(busy(day, 1)));
        let cost = Charge { tokens: 40, micros: 0 };
        other.settle(both.clone(), call, CallEnd::Paid(cost)).await.unwrap();
        assert_eq!(store.reserve(both, tokens(50)).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_cap_begins_with_what_runs_cost_and_the_next_day_with_nothing() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        // 110 tokens, finished in the first minute of 1970.
        stage(&store, staging(&session, "run", 0, &["it ran"])).await.unwrap();
        let day = |at: Timestamp| vec![cap(CapScope::Day(at.midnight()), 111)];
        let of = |namespace: &str, at: Timestamp| {
            vec![cap(CapScope::NamespaceDay(namespace.to_owned(), at.midnight()), 111)]
        };
        for caps in [day(NOON), of("project", NOON), vec![cap(CapScope::Session(session.id), 111)]]
        {
            assert!(store.reserve(caps.clone(), tokens(2)).await.unwrap().is_some(), "{caps:?}");
            assert_eq!(store.reserve(caps, tokens(1)).await.unwrap(), None);
        }
        assert_eq!(store.reserve(of("other", NOON), tokens(111)).await.unwrap(), None);
        let tomorrow = Timestamp(NOON.0 + 86_400_000);
        assert_eq!(store.reserve(day(tomorrow), tokens(111)).await.unwrap(), None);
        assert!(store.reserve(of("project", NOON), tokens(1)).await.unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn what_the_dead_reserved_counts_as_spent_and_what_others_reserved_may_become_free() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let mine = cap(CapScope::Session(session.id), 100);
        let caps = vec![cap(CapScope::Day(NOON.midnight()), 100), mine.clone()];
        let call = SentCall { session: Some(session.id), ..tokens(100) };
        let worker = |seen_at| WorkerStatus {
            id: "here".to_owned(),
            started_at: NOON,
            seen_at,
            stopped: None,
        };
        store.seen(worker(NOON)).await.unwrap();
        assert_eq!(store.reserve(caps.clone(), call.clone()).await.unwrap(), None);
        let now = async |one: &Cap| {
            let reached = store.reserve(vec![one.clone()], tokens(1)).await.unwrap();
            reached.map(|it| it.is_transient)
        };
        store.recount(Vec::new(), Timestamp(NOON.0 + 10_000)).await.unwrap();
        for one in &caps {
            assert_eq!(now(one).await, Some(true));
        }
        assert_eq!(store.status().await.unwrap().spent.calls, 0);
        store.recount(Vec::new(), Timestamp(NOON.0 + 600_000)).await.unwrap();
        for one in &caps {
            assert_eq!(now(one).await, Some(false));
        }
        let line = store.status().await.unwrap().bill.remove(0);
        assert_eq!((line.purpose, line.spent.calls), (Purpose::Unanswered, 1));
        // It was not dead, and its answer costs less.
        store
            .settle(caps.clone(), call, CallEnd::Paid(Charge { tokens: 99, micros: 0 }))
            .await
            .unwrap();
        assert_eq!(now(&mine).await, None);
        assert_eq!(store.status().await.unwrap().spent.calls, 0);
    })
    .await;
}

#[tokio::test]
async fn a_call_without_an_answer_is_spent_at_its_worst_case_with_and_without_a_cap() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        let caps = vec![cap(CapScope::Day(NOON.midnight()), 100)];
        let call = tokens(60);
        assert_eq!(store.reserve(caps.clone(), call.clone()).await.unwrap(), None);
        for _ in 0..2 {
            store.settle(caps.clone(), call.clone(), CallEnd::Unanswered).await.unwrap();
        }
        let reached = CapReached { cap: caps[0].clone(), needed: 41, is_transient: false };
        assert_eq!(store.reserve(caps.clone(), tokens(41)).await.unwrap(), Some(reached));
        assert_eq!(store.reserve(caps, tokens(40)).await.unwrap(), None);
        store.settle(Vec::new(), tokens(7), CallEnd::Unanswered).await.unwrap();
        let spent = store.status().await.unwrap().spent;
        assert_eq!((spent.calls, spent.usage.prompt_tokens), (2, 67));
        store.settle(Vec::new(), tokens(8), CallEnd::Failed).await.unwrap();
        let spent = store.status().await.unwrap().spent;
        assert_eq!((spent.calls, spent.usage.prompt_tokens), (3, 67), "a refusal costs nothing");
    })
    .await;
}

#[tokio::test]
async fn workers_are_seen_until_they_leave_or_are_long_gone() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        let worker = |id: &str, seen_at| WorkerStatus {
            id: id.to_owned(),
            started_at: NOON,
            seen_at,
            stopped: (id == "b").then(|| "set the key".to_owned()),
        };
        for id in ["a", "b", "c"] {
            store.seen(worker(id, NOON)).await.unwrap();
        }
        store.leave("a").await.unwrap();
        assert_eq!(store.workers().await.unwrap(), [worker("b", NOON), worker("c", NOON)]);
        let later = Timestamp(NOON.0 + 2 * 86_400_000);
        store.seen(worker("c", later)).await.unwrap();
        assert_eq!(store.workers().await.unwrap(), [worker("c", later)]);
    })
    .await;
}
