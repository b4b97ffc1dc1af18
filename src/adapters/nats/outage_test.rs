//! Tests that need an own server: outages, permissions, and a stream that holds every subject.

use super::config::{CONSUMER, DEAD_STREAM};
use super::fixture::{Pending, Place, Server};
use super::*;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use std::io::Write;
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(20);
/// Timeout for calls that would otherwise hang.
const FOR_EVER: Duration = Duration::from_secs(60);
/// Maximum number of fetches after an outage.
const TRIES_MAX: u32 = 300;

#[tokio::test]
async fn outage_is_told_at_once_and_passes() {
    let Some(mut server) = Server::start(&[]).await else { return };
    let place = Place::at(&server.url("")).await.unwrap();
    place.make_stream().await;
    place.publish(1..=2).await;
    let source = place.source().await;
    let mut held = source.fetch(2, LONG).await.unwrap();
    let (acknowledged, rejected) = (held.remove(0), held.remove(0));

    let waiting = tokio::spawn({
        let source = source.clone();
        async move { source.fetch(1, LONG).await }
    });
    let stream = place.context.get_stream(&place.stream).await.unwrap();
    while stream.consumer_info(CONSUMER).await.unwrap().num_waiting == 0 {
        tokio::task::yield_now().await;
    }
    server.kill();
    let error = timeout(LONG / 2, waiting).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind, NatsErrorKind::Unavailable, "{error}");
    assert!(error.retry_after().is_some());
    let during = async {
        let fetched = source.fetch(1, LONG).await.unwrap_err();
        [fetched, acknowledged.ack().await.unwrap_err(), rejected.reject("odd").await.unwrap_err()]
    };
    for error in timeout(FOR_EVER, during).await.unwrap() {
        assert_eq!(error.kind, NatsErrorKind::Unavailable, "{error}");
    }

    server.revive().await;
    place.publish(3..=3).await;
    for _ in 0..TRIES_MAX {
        match source.fetch(1, LONG).await {
            Ok(fetched) if fetched.iter().any(|it| it.sequence() == 3) => return,
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind, NatsErrorKind::Unavailable, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nothing came after the outage");
}

#[tokio::test]
async fn server_that_is_not_there_or_lets_nobody_in_is_told_without_the_password() {
    let Some(mut server) = Server::start(&["--user", "me", "--pass", "a/b@c"]).await else {
        return;
    };
    let place = Place::at(&server.url("me:a%2Fb%40c@")).await.unwrap_or_else(|| panic!("no entry"));
    place.make_stream().await;
    place.source().await;
    for login in ["", "me:hush@", "hush@"] {
        let url = NatsUrl::parse(&format!("{}/W", server.url(login))).unwrap();
        let error = Source::connect(&url, place.config).await.unwrap_err();
        assert_eq!(error.kind, NatsErrorKind::Unauthorised, "{login}");
        assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
    }
    server.kill();
    let error = place.connect().await.unwrap_err();
    assert_eq!(error.kind, NatsErrorKind::Unavailable);
    assert!(!error.to_string().contains("a/b@c"), "{error}");
}

/// Permissions for everything except fetching messages.
const NO_MESSAGES: &str = r#"authorization: { users: [{ user: me, password: hush,
    permissions: { publish: { deny: ["$JS.API.CONSUMER.MSG.NEXT.>"] } } }] }"#;

#[tokio::test]
async fn what_a_user_may_not_do_is_told_as_that_and_not_as_an_outage() {
    let mut settings = tempfile::NamedTempFile::new().unwrap();
    settings.write_all(NO_MESSAGES.as_bytes()).unwrap();
    let path = settings.path().to_str().unwrap();
    let Some(server) = Server::start(&["-c", path]).await else { return };
    let place = Place::at(&server.url("me:hush@")).await.unwrap();
    place.make_stream().await;
    let source = place.source().await;
    let error = source.fetch(1, Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind, NatsErrorKind::Unauthorised, "{error}");
    assert_eq!(error.retry_after(), None);
}

#[tokio::test]
async fn stream_that_holds_everything_keeps_its_dead_letters_and_is_not_fed_them() {
    let Some(server) = Server::start(&[]).await else { return };
    let place = Place::at(&server.url("")).await.unwrap();
    let subjects = vec![place.subject(), "annalist.>".to_owned()];
    let all = Config { subjects, ..place.stream_config() };
    place.context.create_stream(&all).await.unwrap();
    place.publish(1..=1).await;
    let source = place.source().await;
    let fetched = source.fetch(1, LONG).await.unwrap();
    for delivery in fetched {
        delivery.reject("odd").await.unwrap();
    }
    place.publish(2..=2).await;
    let mut sequences = Vec::new();
    // The dead letter may arrive alone, and then the fetch returns nothing.
    while sequences.is_empty() {
        for delivery in source.fetch(9, LONG).await.unwrap() {
            sequences.push(delivery.sequence());
            delivery.ack().await.unwrap();
        }
    }
    assert_eq!(sequences, [3]);
    assert_eq!(source.pending().await.unwrap(), Pending { waiting: 0, held: 0 });
    let (count, letter) = place.dead_letters().await;
    assert_eq!((count, letter.sequence), (1, 2));

    // A stream that deletes acknowledged messages would lose them.
    place.context.delete_stream(&place.stream).await.unwrap();
    let queue = Config { retention: RetentionPolicy::WorkQueue, ..all };
    place.context.create_stream(queue).await.unwrap();
    let error = place.connect().await.unwrap_err();
    assert!(matches!(error.kind, NatsErrorKind::NoDeadLetterStream(_)), "{error}");
    assert!(error.to_string().contains("narrow its subjects"), "{error}");
}

#[tokio::test]
async fn dead_letters_are_not_taken_for_work() {
    let Some(server) = Server::start(&[]).await else { return };
    let place = Place::at(&server.url("")).await.unwrap();
    place.make_stream().await;
    place.source().await;
    let url = NatsUrl::parse(&format!("{}/{DEAD_STREAM}", server.url(""))).unwrap();
    let error = Source::connect(&url, place.config).await.unwrap_err();
    assert!(matches!(error.kind, NatsErrorKind::NoDeadLetterStream(_)), "{error}");
}

#[tokio::test]
async fn workers_that_start_together_on_an_empty_server_all_get_in() {
    let Some(server) = Server::start(&[]).await else { return };
    let place = Place::at(&server.url("")).await.unwrap();
    place.make_stream().await;
    let (one, two, three) = tokio::join!(place.connect(), place.connect(), place.connect());
    for source in [one, two, three] {
        assert_eq!(source.unwrap().pending().await.unwrap(), Pending { waiting: 0, held: 0 });
    }
}
