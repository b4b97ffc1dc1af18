//! Where something may have changed, as the system's events say it. A hint is looked at before it is
//! believed, so all that counts is that none is lost: where there are too many, everything is looked at.

use notify::event::{AccessKind, AccessMode, RemoveKind};
use notify::{Event, EventKind};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Paths that are kept apart; beyond it, looking at everything costs less than remembering more.
const PATHS_MAX: usize = 4_096;

/// Hints that wait to be looked at. Written by the thread of the events.
#[derive(Debug, Default)]
pub(super) struct Hints {
    held: Mutex<Hinted>,
    /// Told when there are hints where there were none.
    pub(super) arrived: Notify,
}

/// What to look at.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Hinted {
    /// Files and folders.
    pub(super) paths: HashSet<PathBuf>,
    /// Whether events were lost, so that the change may be anywhere.
    pub(super) anywhere: bool,
}

impl Hints {
    /// Notes what an event says.
    pub(super) fn note(&self, event: notify::Result<Event>) {
        let mut held = self.lock();
        let knew = held.anywhere || !held.paths.is_empty();
        match event {
            Ok(event) if event.need_rescan() => held.anywhere = true,
            Ok(event) if tells_of_change(&event.kind) => held.add(event.paths),
            Ok(_) => {}
            Err(_) => held.anywhere = true,
        }
        if !knew && (held.anywhere || !held.paths.is_empty()) {
            self.arrived.notify_one();
        }
    }

    /// Takes all hints.
    pub(super) fn take(&self) -> Hinted {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Hinted> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hinted {
    fn add(&mut self, paths: Vec<PathBuf>) {
        self.paths.extend(paths);
        if PATHS_MAX < self.paths.len() {
            self.anywhere = true;
        }
        // What is looked at anyway need not be named.
        if self.anywhere {
            self.paths = HashSet::new();
        }
    }
}

/// Whether a file or folder may be new or different. A file that was removed is no news; a folder
/// that was removed may have been made again since.
fn tells_of_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(access) => *access == AccessKind::Close(AccessMode::Write),
        EventKind::Remove(removed) => *removed != RemoveKind::File,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{CreateKind, Flag, ModifyKind};

    fn event(kind: EventKind, path: &str) -> notify::Result<Event> {
        Ok(Event::new(kind).add_path(PathBuf::from(path)))
    }

    #[test]
    fn reading_and_deleting_files_are_no_hints_and_what_is_hinted_twice_is_held_once() {
        let hints = Hints::default();
        hints.note(event(EventKind::Access(AccessKind::Open(AccessMode::Any)), "read"));
        hints.note(event(EventKind::Remove(RemoveKind::File), "gone"));
        assert_eq!(hints.take(), Hinted::default());
        for path in ["a", "b", "a"] {
            hints.note(event(EventKind::Modify(ModifyKind::Any), path));
        }
        hints.note(event(EventKind::Remove(RemoveKind::Folder), "c"));
        let paths: HashSet<_> = ["a", "b", "c"].map(PathBuf::from).into();
        assert_eq!(hints.take(), Hinted { paths, anywhere: false });
        assert_eq!(hints.take(), Hinted::default());
    }

    #[test]
    fn lost_events_and_too_many_of_them_may_mean_anything() {
        let hints = Hints::default();
        hints.note(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert!(hints.take().anywhere);
        hints.note(Err(notify::Error::generic("broken")));
        assert!(hints.take().anywhere);
        for n in 0..=PATHS_MAX + 10 {
            hints.note(event(EventKind::Create(CreateKind::File), &n.to_string()));
        }
        assert_eq!(hints.take(), Hinted { paths: HashSet::new(), anywhere: true });
    }

    #[tokio::test]
    async fn the_first_hint_wakes_and_the_next_ones_need_not() {
        let hints = Hints::default();
        for path in ["a", "b"] {
            hints.note(event(EventKind::Any, path));
        }
        hints.arrived.notified().await;
        let mut second = std::pin::pin!(hints.arrived.notified());
        assert!(futures_poll(second.as_mut()).is_pending());
        hints.take();
        hints.note(event(EventKind::Any, "c"));
        second.await;
    }

    fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
