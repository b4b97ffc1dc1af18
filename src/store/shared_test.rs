//! Behaviour that SQLite and PostgreSQL share.

use super::fixture::*;
use super::*;
use crate::domain::*;
use std::ops::ControlFlow;

#[tokio::test]
async fn every_character_is_kept() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let odd = "a\0b\u{e000}0c\u{e000}\0é'?1$1\\";
        let session = Session { title: Some(words(odd)), ..session };
        begin(&store, &session).await.unwrap();
        let mut odd_one = staging(&session, "r", 0, &[odd]);
        odd_one.entries[0].entry.text = words(odd);
        stage(&store, odd_one.clone()).await.unwrap();
        let known = store.status().await.unwrap().sessions.remove(0).session;
        assert_eq!(known, session);
        let entries = store.entries_of(session.id, 0..1).await.unwrap();
        assert_eq!(entries[0], odd_one.entries[0].entry);
        let records = store.records(RecordFilter::default()).await.unwrap();
        assert_eq!(records[0].record, odd_one.records[0]);
    })
    .await;
}

#[tokio::test]
async fn a_reading_sees_one_moment() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let later = Session { started_at: Some(Timestamp(2_000)), ..conversation("later") };
        begin(&store, &later).await.unwrap();
        stage(&store, staging(&session, "r", 0, &["a"])).await.unwrap();
        let (begin, mut begun) = tokio::sync::mpsc::channel(1);
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let reading = store.fold_records(RecordFilter::default(), 0, move |seen, _| {
            *seen += 1;
            begin.blocking_send(()).unwrap();
            wait.recv().unwrap();
            ControlFlow::Continue(())
        });
        let writing = async {
            begun.recv().await.unwrap();
            stage(&store, staging(&later, "s", 0, &["b"])).await.unwrap();
            go_on.send(()).unwrap();
        };
        assert_eq!(tokio::join!(reading, writing).0.unwrap(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_is_remembered_of_a_session_is_what_was_handed_over_last() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        assert_eq!(store.remembered(session.id).await.unwrap(), None);
        for next in [3, 1] {
            let remembered = ConversationState {
                settings: Digest::of(&["settings"]),
                next,
                dialog: format!("{{\"turns\": {next}}}"),
                conversation: "{}".to_owned(),
            };
            read_whole(&store, &session, Some(remembered.clone())).await;
            assert_eq!(store.remembered(session.id).await.unwrap(), Some(remembered));
        }
        read_whole(&store, &session, None).await;
        assert_eq!(store.remembered(session.id).await.unwrap().unwrap().next, 1, "left as it is");
    })
    .await;
}

/// Ingests a session of three entries as a replay does.
async fn read_whole(store: &Store, session: &Session, remembered: Option<ConversationState>) {
    let part = BatchPart {
        batch: "batch".to_owned(),
        session: session.clone(),
        begins: true,
        entries: (0..3).map(entry).collect(),
        jobs: vec![],
        asking: Digest::of(&["asking"]),
        end: Some(PartEnd { entries: 3, remembered, card: None }),
        at: Timestamp(9_000),
    };
    store.enqueue_part(part).await.unwrap();
}

#[tokio::test]
async fn a_card_is_due_until_it_knows_all_entries() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let due = async || store.cards_due(9).await.unwrap();
        let cards = async || store.cards(None, Some(session.namespace.clone())).await.unwrap();
        store.end_session(session.id, ended(3, &[])).await.unwrap();
        assert!(cards().await.is_empty() && due().await.is_empty());
        store.keep_card(session.id, 2, "{}".to_owned()).await.unwrap();
        assert_eq!(due().await, [(session.id, 3)], "one entry came while it was made");
        store.keep_card(session.id, 3, "{\"title\": \"x\"}".to_owned()).await.unwrap();
        assert!(due().await.is_empty());
        let kept = cards().await.remove(0);
        assert_eq!((kept.entries, kept.due, kept.session), (3, false, session.clone()));
        assert!(store.cards(None, Some("other".to_owned())).await.unwrap().is_empty());
        let prefix = IdPrefix::from(session.id.0);
        assert_eq!(store.cards(Some(prefix), None).await.unwrap().len(), 1);
        let unknown = store.keep_card(conversation("nobody").id, 1, "{}".to_owned()).await;
        assert!(matches!(unknown.unwrap_err().kind, StoreErrorKind::UnknownSession(_)));
    })
    .await;
}
