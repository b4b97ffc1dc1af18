//! Received streams: a message is acknowledged once its content is in the store, and not before.

use super::testing::{FeedFixture, break_store, in_time, told};
use crate::adapters::nats::fixture::{Pending, Place as Stream, Server, on_nats};
use crate::adapters::nats::{Source, SourceConfig};
use crate::pipeline::ingest::EnqueueOptions;
use crate::pipeline::ingest::testing::{IntakeFixture, TestEntry, document, entries};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Wait for messages that are known to come.
const LONG: Duration = Duration::from_secs(20);
const NOTHING: Pending = Pending { waiting: 0, held: 0 };

fn how() -> EnqueueOptions {
    EnqueueOptions { flush: true, ..EnqueueOptions::default() }
}

fn receive(heard: &FeedFixture, source: &Source) -> JoinHandle<Result<(), String>> {
    tokio::spawn(heard.feed.clone().receiving(source.clone(), how()))
}

/// A conversation of six entries as numbered documents of two.
fn documents() -> Vec<Vec<u8>> {
    let all = entries(&[const { TestEntry::Person(20) }; 6]);
    (0..3).map(|n| document(Some(n * 2), &all[n * 2..n * 2 + 2], false)).collect()
}

/// Waits until no message is pending.
async fn settled(source: &Source) {
    let wait = async {
        while source.pending().await.unwrap() != NOTHING {
            tokio::task::yield_now().await;
        }
    };
    in_time(wait).await;
}

/// A source that does not redeliver messages within a test.
async fn patient(stream: &Stream) -> Source {
    let stream = stream.with(SourceConfig::default());
    stream.make_stream().await;
    stream.source().await
}

#[tokio::test]
async fn what_is_received_is_in_the_store_in_its_order_and_once() {
    on_nats(async |stream| {
        let (place, source) = (IntakeFixture::new(), patient(stream).await);
        // Every message twice, as after a lost reply.
        stream.publish_words(&[documents(), documents()].concat()).await;
        let mut heard = FeedFixture::new(&place);
        let running = receive(&heard, &source);
        assert!(heard.jobs().await > 0);
        settled(&source).await;
        heard.close(running).await;
        let said: Vec<String> =
            place.entries().await.iter().map(|entry| entry.text.as_str()[..6].to_owned()).collect();
        assert_eq!(said, ["word0-", "word1-", "word2-", "word3-", "word4-", "word5-"]);
        assert_eq!(told(), Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn a_part_that_comes_before_an_earlier_one_waits_for_it() {
    on_nats(async |stream| {
        let (place, source) = (IntakeFixture::new(), patient(stream).await);
        let all = documents();
        stream.publish_words(&[all[1].clone(), all[0].clone(), all[2].clone()]).await;
        let heard = FeedFixture::new(&place);
        let running = receive(&heard, &source);
        settled(&source).await;
        heard.close(running).await;
        assert_eq!((place.entries().await.len(), told()), (6, Vec::new()));
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_used_is_set_aside_with_the_reason_and_the_rest_goes_on() {
    on_nats(async |stream| {
        let (place, source) = (IntakeFixture::new(), patient(stream).await);
        let all = documents();
        let gap = all[2].clone();
        let messages = [b"{\"session\": \"hush\"".to_vec(), all[0].clone(), gap];
        stream.publish_words(&messages).await;
        let mut heard = FeedFixture::new(&place);
        let running = receive(&heard, &source);
        heard.jobs().await;
        settled(&source).await;
        assert_eq!(heard.feed.rejected.load(std::sync::atomic::Ordering::Relaxed), 2);
        heard.close(running).await;
        assert_eq!(place.entries().await.len(), 2);
        let told = told();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("message 1 is rejected: "), "{told:?}");
        assert!(told[1].starts_with("message 3 is rejected: from: expected at most 2"), "{told:?}");
        let (count, letter) = stream.dead_letters().await;
        assert_eq!((count, &letter.payload[..]), (2, &all[2][..]));
        let reason = letter.headers.get("Annalist-Reason").unwrap().as_str();
        assert!(told[1].ends_with(reason), "{reason}");
        assert!(!told.concat().contains("hush") && !told.concat().contains("word"), "{told:?}");
    })
    .await;
}

#[tokio::test]
async fn a_drain_waits_for_messages_that_a_lost_worker_held() {
    on_nats(async |stream| {
        // Longer than one fetch waits.
        let ack_wait = Duration::from_secs(7);
        let stream = stream.with(SourceConfig { ack_wait, ..SourceConfig::default() });
        stream.make_stream().await;
        let (place, source) = (IntakeFixture::new(), stream.source().await);
        stream.publish_words(&documents()).await;
        drop(source.fetch(9, LONG).await.unwrap());
        let mut heard = FeedFixture::new(&place);
        heard.feed.drain = Some(std::sync::Arc::default());
        assert_eq!(in_time(receive(&heard, &source)).await.unwrap(), Ok(()));
        assert_eq!((place.entries().await.len(), told()), (6, Vec::new()));
    })
    .await;
}

#[tokio::test]
async fn what_the_store_does_not_take_is_not_acknowledged() {
    on_nats(async |stream| {
        let (place, source) = (IntakeFixture::new(), patient(stream).await);
        stream.publish_words(&documents()).await;
        let mut heard = FeedFixture::new(&place);
        break_store(&place);
        // The store is not waited for.
        heard.feed.closing.cancel();
        let deliveries = source.fetch(9, LONG).await.unwrap();
        assert_eq!(deliveries.len(), 3);
        heard.feed.batch(deliveries, "here", &how()).await.unwrap();
        assert_eq!(source.pending().await.unwrap(), Pending { waiting: 0, held: 3 });
        assert_eq!((heard.jobs_so_far(), told().len()), (0, 0));
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_is_gone_ends_the_feed_and_the_worker_beside() {
    on_nats(async |stream| {
        let (place, source) = (IntakeFixture::new(), patient(stream).await);
        stream.context.delete_stream(&stream.stream).await.unwrap();
        let heard = FeedFixture::new(&place);
        let line = in_time(receive(&heard, &source)).await.unwrap().unwrap_err();
        assert!(line.contains("there is no stream"), "{line}");
        assert!(heard.feed.closing.is_cancelled());
    })
    .await;
}

#[tokio::test]
async fn jobs_are_heard_of_where_the_server_does_not_hear_of_their_messages() {
    let Some(mut server) = Server::start(&[]).await else { return };
    let stream = Stream::at(&server.url("")).await.unwrap();
    let (place, source) = (IntakeFixture::new(), patient(&stream).await);
    stream.publish_words(&documents()).await;
    let deliveries = source.fetch(9, LONG).await.unwrap();
    server.kill();
    let mut heard = FeedFixture::new(&place);
    let error = heard.feed.batch(deliveries, "here", &how()).await.unwrap_err();
    assert!(error.retry_after().is_some(), "{error}");
    assert_eq!(place.entries().await.len(), 6);
    // Redelivered messages bring no jobs, so these must be reported now.
    assert!(heard.jobs_so_far() > 0);
}
