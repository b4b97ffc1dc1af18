//! Watched folders: growth is enqueued once, and every problem is reported.

use super::testing::{FeedFixture, break_store, in_time, told};
use crate::adapters::watch::{Options, Watch};
use crate::pipeline::ingest::EnqueueOptions;
use crate::pipeline::ingest::testing::{IntakeFixture, TestEntry, lines};
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Follows these paths of `place`.
fn follow(
    place: &IntakeFixture,
    paths: &[&str],
    heard: &FeedFixture,
) -> JoinHandle<Result<(), String>> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| place.path(path)).collect();
    let (quiet, poll) = (Duration::from_millis(100), Duration::from_millis(10));
    let watch = Watch::start(&paths, Options { quiet, poll, ..Options::default() });
    tokio::spawn(
        heard
            .feed
            .clone()
            .watching(watch, EnqueueOptions { flush: true, ..EnqueueOptions::default() }),
    )
}

/// A place with a folder, and the lines of a conversation.
fn place() -> (IntakeFixture, Vec<String>) {
    let place = IntakeFixture::new();
    std::fs::create_dir(place.path("log")).unwrap();
    (place, lines("one", &[const { TestEntry::Person(30) }; 6]))
}

#[tokio::test]
async fn what_is_there_and_what_it_grows_by_is_handed_over_once() {
    let (place, lines) = place();
    place.write("log/one.jsonl", lines[..2].concat());
    let mut heard = FeedFixture::new(&place);
    let running = follow(&place, &["log"], &heard);
    assert_eq!(heard.jobs().await, 1);
    assert_eq!(place.entries().await.len(), 2);
    place.write("log/one.jsonl", lines[..5].concat());
    assert_eq!(heard.jobs().await, 1);
    assert_eq!(place.entries().await.len(), 5);
    heard.close(running).await;
    assert_eq!(told(), Vec::<String>::new());
}

#[tokio::test]
async fn another_process_goes_on_where_the_last_one_stood() {
    let (mut place, lines) = place();
    place.write("log/one.jsonl", lines[..2].concat());
    let mut heard = FeedFixture::new(&place);
    let running = follow(&place, &["log"], &heard);
    heard.jobs().await;
    heard.close(running).await;
    // It grew while no feed ran.
    place.write("log/one.jsonl", lines.concat());
    let mut heard = FeedFixture::new(&place);
    let running = follow(&place, &["log"], &heard);
    assert_eq!(heard.jobs().await, 1);
    heard.close(running).await;
    let entries = place.entries().await;
    assert_eq!(entries.len(), 6);
    assert_eq!(place.work().await, 2);
    place.check_covered(&entries);
}

#[tokio::test]
async fn a_folder_that_cannot_be_looked_at_is_told_and_the_others_go_on() {
    let (place, lines) = place();
    place.write("log/one.jsonl", lines.concat());
    #[cfg(unix)]
    std::os::unix::fs::symlink("loop", place.path("loop")).unwrap();
    let mut heard = FeedFixture::new(&place);
    let running = follow(&place, &["loop", "log"], &heard);
    heard.jobs().await;
    heard.close(running).await;
    let told = told();
    if cfg!(unix) {
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("loop: cannot be watched for now"), "{told:?}");
    }
}

#[tokio::test]
async fn a_store_that_is_wrong_for_good_ends_the_feed_and_the_worker_beside() {
    let (place, lines) = place();
    place.write("log/one.jsonl", lines.concat());
    let mut heard = FeedFixture::new(&place);
    break_store(&place);
    let running = follow(&place, &["log"], &heard);
    let line = in_time(running).await.unwrap().unwrap_err();
    assert!(!line.is_empty() && !line.contains("word0"), "{line}");
    assert!(heard.feed.closing.is_cancelled());
    assert_eq!(heard.jobs_so_far(), 0);
}

#[tokio::test]
async fn a_feed_that_is_closed_before_it_began_hands_over_nothing() {
    let (place, lines) = place();
    place.write("log/one.jsonl", lines.concat());
    let mut heard = FeedFixture::new(&place);
    heard.feed.closing.cancel();
    let running = follow(&place, &["log"], &heard);
    assert_eq!(in_time(running).await.unwrap(), Ok(()));
    assert_eq!(heard.jobs_so_far(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_with_its_time_or_with_the_feed() {
    let heard = FeedFixture::new(&IntakeFixture::new());
    assert!(heard.feed.pause(super::RETRY).await);
    heard.feed.closing.cancel();
    assert!(!heard.feed.pause(super::RETRY).await);
    assert_eq!(heard.feed.give_up("why".to_owned()), "why");
}
