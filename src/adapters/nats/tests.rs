//! Properties of the source on a server; each test has its own stream.

use super::config::{CONSUMER, REASON_BYTES_MAX};
use super::fixture::{ID, Pending, on_nats};
use super::*;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use std::collections::BTreeSet;

/// Long enough for a redelivery, which takes half a second.
const LONG: Duration = Duration::from_secs(20);
/// Wait if no message is expected.
const SHORT: Duration = Duration::from_millis(50);

/// Fetches exactly one message.
async fn one(source: &Source) -> Delivery {
    let mut fetched = source.fetch(1, LONG).await.unwrap();
    assert_eq!(fetched.len(), 1);
    fetched.remove(0)
}

const NOTHING: Pending = Pending { waiting: 0, held: 0 };

#[tokio::test]
async fn delivery_without_a_verdict_comes_back() {
    on_nats(async |place| {
        place.make_stream().await;
        place.publish(1..=2).await;
        let source = place.source().await;
        let fetched = source.fetch(2, LONG).await.unwrap();
        let seen = fetched.iter().map(|it| (it.payload(), it.id(), it.sequence(), it.deliveries()));
        let expected = [(b"1".as_slice(), Some(ID), 1, 1), (b"2".as_slice(), None, 2, 1)];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        drop(fetched);
        let mut again = BTreeSet::new();
        while again.len() < 2 {
            for delivery in source.fetch(2, LONG).await.unwrap() {
                assert!(delivery.deliveries() > 1, "{delivery:?}");
                again.insert(delivery.sequence());
            }
        }
        assert_eq!(source.pending().await.unwrap(), Pending { waiting: 0, held: 2 });
    })
    .await;
}

#[tokio::test]
async fn what_was_acknowledged_is_done_for_the_next_source_too() {
    on_nats(async |place| {
        place.make_stream().await;
        place.publish(1..=5).await;
        let source = place.source().await;
        one(&source).await.ack().await.unwrap();
        ack_all(source.fetch(3, LONG).await.unwrap()).await.unwrap();
        assert_eq!(source.pending().await.unwrap(), Pending { waiting: 1, held: 0 });
        drop(source);
        let next = place.source().await;
        assert_eq!(one(&next).await.sequence(), 5);
        // Redelivered, and none before it.
        let last = one(&next).await;
        assert_eq!((last.sequence(), last.deliveries()), (5, 2));
        last.ack().await.unwrap();
        assert_eq!(next.pending().await.unwrap(), NOTHING);
    })
    .await;
}

#[tokio::test]
async fn two_sources_share_a_stream_without_overlap() {
    on_nats(async |place| {
        let place = place.with(SourceConfig::default());
        place.make_stream().await;
        place.publish(1..=40).await;
        let sources = [place.source().await, place.source().await];
        let mut seen = BTreeSet::new();
        while seen.len() < 40 {
            let (one, two) = tokio::join!(sources[0].fetch(4, LONG), sources[1].fetch(4, LONG));
            for delivery in one.unwrap().into_iter().chain(two.unwrap()) {
                assert!(seen.insert(delivery.sequence()), "{delivery:?} was given twice");
                delivery.ack().await.unwrap();
            }
        }
        assert_eq!(seen, (1..=40).collect());
        assert_eq!(sources[0].pending().await.unwrap(), NOTHING);
    })
    .await;
}

#[tokio::test]
async fn fetch_takes_what_is_there_and_no_more_than_asked() {
    on_nats(async |place| {
        place.make_stream().await;
        let source = place.source().await;
        assert!(source.fetch(10, Duration::ZERO).await.unwrap().is_empty());
        place.publish(1..=5).await;
        let first = source.fetch(3, LONG).await.unwrap();
        assert_eq!(first.iter().map(Delivery::sequence).collect::<Vec<_>>(), [1, 2, 3]);
        let rest = source.fetch(BATCH_MAX + 1, LONG).await.unwrap();
        assert_eq!(rest.iter().map(Delivery::sequence).collect::<Vec<_>>(), [4, 5]);
    })
    .await;
}

#[tokio::test]
async fn full_hands_are_given_nothing() {
    on_nats(async |place| {
        let config = SourceConfig { ack_pending_max: 2, ..SourceConfig::default() };
        let place = place.with(config);
        place.make_stream().await;
        place.publish(1..=4).await;
        let source = place.source().await;
        let mut held = source.fetch(4, LONG).await.unwrap();
        assert_eq!(held.len(), 2);
        assert!(source.fetch(4, SHORT).await.unwrap().is_empty());
        held.remove(0).ack().await.unwrap();
        assert_eq!(one(&source).await.sequence(), 3);
    })
    .await;
}

#[tokio::test]
async fn what_is_given_back_comes_when_it_was_said_to() {
    on_nats(async |place| {
        place.make_stream().await;
        place.publish(1..=1).await;
        let source = place.source().await;
        one(&source).await.nak(Duration::ZERO).await.unwrap();
        let again = one(&source).await;
        assert_eq!(again.deliveries(), 2);
        again.nak(Duration::from_secs(3600)).await.unwrap();
        assert!(source.fetch(1, place.config.ack_wait * 2).await.unwrap().is_empty());
        assert_eq!(source.pending().await.unwrap(), Pending { waiting: 0, held: 1 });
    })
    .await;
}

#[tokio::test]
async fn rejected_twice_leaves_one_dead_letter_with_the_first_reason() {
    on_nats(async |place| {
        place.make_stream().await;
        place.publish(1..=1).await;
        let source = place.source().await;
        // Stored but not ended, as if the worker died in between.
        one(&source).await.store_dead_letter("not JSON\nat line 1").await.unwrap();
        let again = one(&source).await;
        assert_eq!(again.deliveries(), 2);
        again.reject("not JSON, again").await.unwrap();
        assert_eq!(source.pending().await.unwrap(), NOTHING);
        assert!(source.fetch(1, place.config.ack_wait * 2).await.unwrap().is_empty());

        let (count, letter) = place.dead_letters().await;
        assert_eq!(count, 1);
        assert_eq!(&letter.payload[..], b"1");
        let header = |name: &str| letter.headers.get(name).map(|value| value.as_str().to_owned());
        let expected = [
            ("Annalist-Reason", "not JSON at line 1".to_owned()),
            ("Annalist-Subject", place.subject()),
            ("Annalist-Stream", place.stream.clone()),
            ("Annalist-Sequence", "1".to_owned()),
            ("Annalist-Msg-Id", ID.to_owned()),
            ("Colour", "blue".to_owned()),
        ];
        for (name, value) in expected {
            assert_eq!(header(name), Some(value), "{name}");
        }
        assert_ne!(header("Nats-Msg-Id"), Some(ID.to_owned()));
    })
    .await;
}

#[tokio::test]
async fn same_place_in_a_stream_made_anew_has_a_letter_of_its_own() {
    on_nats(async |place| {
        for _ in 0..2 {
            place.make_stream().await;
            place.publish(1..=1).await;
            one(&place.source().await).await.reject(&"é".repeat(REASON_BYTES_MAX)).await.unwrap();
            place.context.delete_stream(&place.stream).await.unwrap();
        }
        let (count, letter) = place.dead_letters().await;
        assert_eq!(count, 2);
        let reason = letter.headers.get("Annalist-Reason").unwrap().as_str();
        assert_eq!(reason.len(), REASON_BYTES_MAX);
    })
    .await;
}

#[tokio::test]
async fn message_whose_dead_letter_is_not_stored_is_not_ended() {
    on_nats(async |place| {
        place.make_stream().await;
        // Leaves no room for headers.
        let payload = vec![b'x'; place.context.client().max_payload()];
        let sent = place.context.publish(place.subject(), payload.into()).await.unwrap();
        sent.await.unwrap();
        let source = place.source().await;
        let error = one(&source).await.reject("too odd").await.unwrap_err();
        let subject = format!("annalist.dead.{}", place.stream);
        assert_eq!(error.kind, NatsErrorKind::DeadLetterNotStored { subject });
        assert_eq!(error.retry_after(), None);
        assert_eq!(source.pending().await.unwrap(), Pending { waiting: 0, held: 1 });
    })
    .await;
}

#[tokio::test]
async fn missing_stream_is_told_with_the_command_that_makes_it() {
    on_nats(async |place| {
        let error = place.connect().await.unwrap_err();
        assert_eq!(error.kind, NatsErrorKind::NoStream { stream: place.stream.clone() });
        let said = error.to_string();
        assert!(said.contains(&format!("nats stream add {}", place.stream)), "{said}");
    })
    .await;
}

#[tokio::test]
async fn consumer_that_would_lose_messages_is_told_with_every_difference() {
    on_nats(async |place| {
        place.make_stream().await;
        let stream = place.context.get_stream(&place.stream).await.unwrap();
        let other = pull::Config {
            durable_name: Some(CONSUMER.to_owned()),
            ack_policy: AckPolicy::None,
            deliver_policy: DeliverPolicy::Last,
            filter_subject: place.subject(),
            ..pull::Config::default()
        };
        stream.create_consumer(other).await.unwrap();
        let error = place.connect().await.unwrap_err();
        let said = error.to_string();
        assert!(matches!(error.kind, NatsErrorKind::OtherConsumer { .. }), "{said}");
        for part in ["ack policy None", "deliver policy Last", "1 subject filters", "consumer rm"] {
            assert!(said.contains(part), "{said}");
        }
        stream.delete_consumer(CONSUMER).await.unwrap();
        let ours = place.source().await;
        assert_eq!(ours.ack_wait().await, place.config.ack_wait);
        // An existing consumer keeps its settings.
        let place = place.with(SourceConfig::default());
        assert_eq!(place.source().await.ack_wait().await, ours.ack_wait().await);
    })
    .await;
}

#[tokio::test]
async fn consumer_that_was_removed_is_made_anew_and_a_stream_is_told() {
    on_nats(async |place| {
        place.make_stream().await;
        place.publish(1..=1).await;
        let source = place.source().await;
        let held = one(&source).await;
        let stream = place.context.get_stream(&place.stream).await.unwrap();
        stream.delete_consumer(CONSUMER).await.unwrap();
        assert_eq!(held.ack().await.unwrap_err().kind, NatsErrorKind::Unavailable);
        let error = source.fetch(1, SHORT).await.unwrap_err();
        assert_eq!(error.kind, NatsErrorKind::Unavailable);
        assert_eq!(one(&source).await.deliveries(), 1);
        place.context.delete_stream(&place.stream).await.unwrap();
        let error = source.fetch(1, SHORT).await.unwrap_err();
        assert_eq!(error.kind, NatsErrorKind::NoStream { stream: place.stream.clone() });
    })
    .await;
}
