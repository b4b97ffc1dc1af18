//! Shared state of the page: the store and the directories that its handlers read and change.

use crate::adapters::memory_files::MemoryFolder;
use crate::adapters::process;
use crate::domain::Timestamp;
use crate::pipeline::blocking;
use crate::pipeline::{Consolidator, DirSync, Directories, Embedder};
use crate::server::state::ServerState;
use crate::store::Store;
use std::sync::Arc;
use tokio::runtime::Handle;

pub(super) struct Page {
    pub(super) store: Store,
    pub(super) consolidator: Consolidator,
    pub(super) directories: Directories,
    pub(super) embedder: Option<Arc<Embedder>>,
    pub(super) clock: fn() -> Timestamp,
    /// Secret of this run that grants access to the page.
    pub(super) token: String,
}

impl Page {
    pub(super) fn of(state: &ServerState) -> Page {
        let ServerState {
            config, store, gate, embedder, clock, folders, home, page_secret, ..
        } = state;
        let here = folders.first().map(|it| MemoryFolder::find_above(it, home.as_deref()));
        let holder = process::name().to_owned();
        Page {
            store: store.clone(),
            consolidator: Consolidator {
                store: store.clone(),
                holder: holder.clone(),
                clock: *clock,
                waits: true,
                adjudicator: None,
            },
            directories: Directories {
                dir_sync: DirSync {
                    store: store.clone(),
                    holder,
                    clock: *clock,
                    gate: gate.clone(),
                },
                // An unreadable directory is treated as absent.
                here: here.and_then(Result::ok).flatten(),
                namespace: config.namespace.clone(),
            },
            embedder: embedder.clone(),
            clock: *clock,
            token: page_secret.clone().unwrap_or_default(),
        }
    }
}

/// Runs blocking work on directories on a separate thread.
pub(super) async fn apart<T, F>(work: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let runtime = Handle::current();
    blocking(move || runtime.block_on(work())).await
}
