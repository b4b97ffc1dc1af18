//! Test helpers for feeds: a feed over a store in its own folder, and its messages.

use super::Feed;
use crate::pipeline::ingest::testing::IntakeFixture;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Timeout of events that take a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    /// Lines printed on this thread; each test and its runtime share one thread.
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// A feed under test, with the jobs that it reports.
pub(super) struct FeedFixture {
    pub(super) feed: Feed,
    jobs: UnboundedReceiver<u64>,
}

impl FeedFixture {
    /// A feed into the store of `place`.
    pub(super) fn new(place: &IntakeFixture) -> FeedFixture {
        let (tell, jobs) = unbounded_channel();
        let feed = Feed {
            enqueuer: Arc::clone(&place.enqueuer),
            closing: CancellationToken::new(),
            drain: None,
            tell: |line| TOLD.with_borrow_mut(|told| told.push(line.to_owned())),
            // The receiver may be gone.
            enqueued: Arc::new(move |jobs| tell.send(jobs).unwrap_or_default()),
            rejected: Arc::default(),
        };
        FeedFixture { feed, jobs }
    }

    /// Waits until the feed enqueued something; returns the number of new jobs.
    pub(super) async fn jobs(&mut self) -> u64 {
        in_time(self.jobs.recv()).await.unwrap()
    }

    /// Number of new jobs reported since.
    pub(super) fn jobs_so_far(&mut self) -> u64 {
        std::iter::from_fn(|| self.jobs.try_recv().ok()).sum()
    }

    /// Closes the feed and waits until it has ended.
    pub(super) async fn close(self, running: JoinHandle<Result<(), String>>) {
        self.feed.closing.cancel();
        assert_eq!(in_time(running).await.unwrap(), Ok(()));
    }
}

/// Takes the lines printed since the last call.
pub(super) fn told() -> Vec<String> {
    TOLD.take()
}

/// Awaits `coming`; panics after [`PATIENCE`].
pub(super) async fn in_time<T>(coming: impl Future<Output = T>) -> T {
    timeout(PATIENCE, coming).await.unwrap_or_else(|_| panic!("nothing came"))
}

/// Breaks the store permanently: renames a table that every intake needs.
pub(super) fn break_store(place: &IntakeFixture) {
    let db = rusqlite::Connection::open(place.path("s.db")).unwrap();
    db.execute_batch("ALTER TABLE sessions RENAME TO gone").unwrap();
}
