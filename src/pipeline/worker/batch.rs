//! The batch of a replay. It is read and worked on at the same time; reading never runs far ahead of the model.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct Batch {
    id: String,
    /// Enqueued jobs that have not ended.
    ahead: AtomicU32,
    ahead_max: u32,
    is_read: AtomicBool,
    /// Notified when the reader enqueued something or ended.
    news: Notify,
    /// Notified when a job ended.
    room: Notify,
}

impl Batch {
    /// Creates a batch whose reader stays at most about `ahead_max` jobs ahead.
    pub(crate) fn new(id: &str, ahead_max: u32) -> Batch {
        Batch {
            id: id.to_owned(),
            ahead: AtomicU32::new(0),
            ahead_max,
            is_read: AtomicBool::new(false),
            news: Notify::new(),
            room: Notify::new(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn enqueued(&self, jobs: usize) {
        self.ahead.fetch_add(u32::try_from(jobs).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.news.notify_one();
    }

    pub(crate) fn end_reading(&self) {
        self.is_read.store(true, Ordering::SeqCst);
        self.news.notify_one();
    }

    /// Waits until the reader may go on.
    pub(crate) async fn room(&self, cancel: &CancellationToken) {
        while self.ahead_max <= self.ahead.load(Ordering::Relaxed) && !cancel.is_cancelled() {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = self.room.notified() => {}
            }
        }
    }

    pub(super) fn ended(&self) {
        let less = |ahead: u32| Some(ahead.saturating_sub(1));
        // The closure always returns a value.
        let _ = self.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.room.notify_one();
    }

    /// Resets the count when nothing is left to claim: the enqueued jobs ended elsewhere or wait.
    pub(super) fn idle(&self) {
        self.ahead.store(0, Ordering::Relaxed);
        self.room.notify_one();
    }

    pub(super) fn is_read(&self) -> bool {
        self.is_read.load(Ordering::SeqCst)
    }

    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}
