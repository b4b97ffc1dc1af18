//! Store tests that apply only to a server.

use super::super::error::Refusal;
use super::super::fixture::server::{self, Schema};
use super::super::fixture::{begin, begun, conversation, ended, stage, staging};
use super::super::handle::Backend;
use super::super::{OpenMode, RecordFilter, Staging, Store, StoreError, StoreErrorKind};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Barrier;

/// Returns a fresh schema if a server is available.
fn schema() -> Option<Schema> {
    server::url().map(Schema::new)
}

#[tokio::test]
async fn connections_that_are_cut_lose_nothing_and_the_work_goes_on() {
    let Some(schema) = schema() else { return };
    let url = format!("{}&application_name={}", schema.url(), schema.name);
    let store = Store::open(&url, OpenMode::Create).unwrap();
    let session = conversation("one");
    begin(&store, &session).await.unwrap();
    let names: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    let stagings: Vec<Staging> = (names.iter().zip(0..))
        .map(|(name, n)| staging(&session, name, n * 10, &["a", "b"]))
        .collect();
    let mut tasks = tokio::task::JoinSet::new();
    for staging in stagings.clone() {
        let store = store.clone();
        tasks.spawn(async move { stage(&store, staging).await.map(|_| ()) });
    }
    let cut = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = '{}' AND pid <> pg_backend_pid()",
        schema.name
    );
    for done in 0..names.len() {
        if done % 15 == 0 {
            schema.run(&cut);
        }
        tasks.join_next().await.unwrap().unwrap().unwrap();
    }
    let all: Vec<&Staging> = stagings.iter().collect();
    store.end_session(session.id, ended(600, &all)).await.unwrap();
    schema.run(&cut);
    let status = store.status().await.unwrap();
    assert!(status.sessions[0].is_balanced());
    assert_eq!(status.spent.calls, 60);
    assert_eq!(store.records(RecordFilter::default()).await.unwrap().len(), 120);
}

#[test]
fn stores_that_open_an_empty_database_at_once_all_find_one() {
    let Some(schema) = schema() else { return };
    let url = schema.url();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Store::open(&url, OpenMode::Create).unwrap());
        }
    });
    assert_eq!(schema.number("SELECT count(*) FROM annalist"), 1);
    Store::open(&url, OpenMode::Existing).unwrap();
}

#[tokio::test]
async fn one_run_staged_by_two_at_once_is_what_the_later_says() {
    let Some(schema) = schema() else { return };
    let url = schema.url();
    let stores = [(); 2].map(|()| Store::open(&url, OpenMode::Create).unwrap());
    let session = conversation("one");
    begin(&stores[0], &session).await.unwrap();
    for n in 0..20 {
        let (name, together) = (n.to_string(), Arc::new(Barrier::new(2)));
        let stage = |store: &Store, claim: &str| {
            let (store, together) = (store.clone(), Arc::clone(&together));
            let staging = staging(&session, &name, n * 10, &[claim]);
            tokio::spawn(async move {
                together.wait().await;
                stage(&store, staging).await.unwrap();
            })
        };
        let tasks = [stage(&stores[0], "left"), stage(&stores[1], "right")];
        for task in tasks {
            task.await.unwrap();
        }
        let records = stores[0].records(RecordFilter::default()).await.unwrap();
        assert_eq!(records.len() as u32, n + 1, "{records:#?}");
    }
}

#[track_caller]
fn check(url: &str, open: OpenMode, expected: &[StoreErrorKind]) -> StoreError {
    let error = Store::open(url, open).map(|_| ()).unwrap_err();
    assert!(expected.contains(&error.kind), "{error:?}");
    let line = error.to_string();
    assert!(!line.contains('\n') && !format!("{error:?}").contains("hunter"), "{error:?}");
    error
}

#[test]
fn what_is_not_ours_is_refused_untouched() {
    let Some(schema) = schema() else { return };
    let url = schema.url();
    check(&url, OpenMode::Existing, &[StoreErrorKind::Missing]);
    schema.run(&format!("CREATE SCHEMA {}; CREATE TABLE notes (a TEXT)", schema.name));
    check(&url, OpenMode::Create, &[StoreErrorKind::Refused(Refusal::Foreign)]);
    schema.run("CREATE TABLE annalist (notes TEXT)");
    check(&url, OpenMode::Create, &[StoreErrorKind::Refused(Refusal::Foreign)]);
    schema.run("DROP TABLE annalist, notes");
    drop(Store::open(&url, OpenMode::Create).unwrap());
    schema.run("UPDATE annalist SET version = 99");
    let known = super::super::KNOWN;
    check(&url, OpenMode::Existing, &[StoreErrorKind::Newer { found: 99, known }]);
}

#[test]
fn who_is_not_let_in_hears_why_and_what_to_do() {
    let at = |place: &str| format!("postgres://postgres:hunter@{place}");
    check(&at("127.0.0.1:1/test"), OpenMode::Create, &[StoreErrorKind::Unavailable]);
    check(
        &at("127.0.0.1:x/test"),
        OpenMode::Create,
        &[StoreErrorKind::BadUrl("postgres".to_owned())],
    );
    let Some(url) = server::url() else { return };
    let more = if url.contains('?') { '&' } else { '?' };
    let unknown = format!("{url}{more}dbname=annalist_nowhere");
    check(&unknown, OpenMode::Create, &[StoreErrorKind::Refused(Refusal::Database)]);
    let secret = format!("{url}{more}sslmode=verify-full");
    let refused = [Refusal::Tls, Refusal::Certificate].map(StoreErrorKind::Refused);
    check(&secret, OpenMode::Create, &refused);
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_read_all_the_same() {
    let Some(schema) = schema() else { return };
    drop(Store::open(&schema.url(), OpenMode::Create).unwrap());
    let url = format!("{}%20-cdefault_transaction_read_only%3Don", schema.url());
    let store = Store::open(&url, OpenMode::Existing).unwrap();
    assert!(store.status().await.unwrap().sessions.is_empty());
    let error = begin(&store, &conversation("one")).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Refused(Refusal::ReadOnly));
}

/// Otherwise a migration missing from one database would be found only by its users.
#[tokio::test]
async fn both_databases_have_the_same_columns() {
    let Some(schema) = schema() else { return };
    let server = Store::open(&schema.url(), OpenMode::Create).unwrap();
    let (_folder, file, _) = begun().await;
    // Each database has its own full-text index.
    let of_server = "SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name NOT IN ('annalist', 'search')";
    let of_file = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'search%'";
    let columns = async |store: &Store, sql: &'static str| -> BTreeSet<(String, String)> {
        let read = store.read("reading columns", move |from| from.all(sql, &[]));
        read.await.unwrap().into_iter().collect()
    };
    assert!(matches!(server.backend(), Backend::Server(_)));
    assert_eq!(columns(&server, of_server).await, columns(&file, of_file).await);
}
