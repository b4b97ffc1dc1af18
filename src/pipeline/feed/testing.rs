//! What the tests of feeds share: a feed over a store in a folder of its own, and what it said.

use super::Feed;
use crate::pipeline::ingest::testing::Place;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long is waited for what must come; it comes in a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    /// Lines that were told on this thread; each test has one, and its runtime no other.
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// A feed that is listened to.
pub(super) struct Heard {
    pub(super) feed: Feed,
    jobs: UnboundedReceiver<u64>,
}

impl Heard {
    /// A feed into the store of `place`.
    pub(super) fn new(place: &Place) -> Heard {
        let (tell, jobs) = unbounded_channel();
        let feed = Feed {
            enqueuer: Arc::clone(&place.enqueuer),
            closing: CancellationToken::new(),
            drain: None,
            tell: |line| TOLD.with_borrow_mut(|told| told.push(line.to_owned())),
            // Who no longer listens has seen enough.
            enqueued: Arc::new(move |jobs| tell.send(jobs).unwrap_or_default()),
        };
        Heard { feed, jobs }
    }

    /// Waits until the feed handed over something; how many jobs are new.
    pub(super) async fn jobs(&mut self) -> u64 {
        in_time(self.jobs.recv()).await.unwrap()
    }

    /// How many jobs it heard of since.
    pub(super) fn jobs_so_far(&mut self) -> u64 {
        std::iter::from_fn(|| self.jobs.try_recv().ok()).sum()
    }

    /// Closes the feed and waits until it has ended.
    pub(super) async fn close(self, running: JoinHandle<Result<(), String>>) {
        self.feed.closing.cancel();
        assert_eq!(in_time(running).await.unwrap(), Ok(()));
    }
}

/// The lines that were told since it was asked last.
pub(super) fn told() -> Vec<String> {
    TOLD.take()
}

/// What must come in time.
pub(super) async fn in_time<T>(coming: impl Future<Output = T>) -> T {
    timeout(PATIENCE, coming).await.unwrap_or_else(|_| panic!("nothing came"))
}

/// Takes away a table that every intake needs: the store is wrong for good.
pub(super) fn break_store(place: &Place) {
    let db = rusqlite::Connection::open(place.path("s.db")).unwrap();
    db.execute_batch("ALTER TABLE sessions RENAME TO gone").unwrap();
}
