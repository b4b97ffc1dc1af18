//! Fills the queue: the new part of a transcript or document becomes jobs. Idempotent. Asks no model.

mod batch;
mod document;
#[cfg(test)]
mod document_tests;
mod files;
mod intake;
mod replay;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use batch::Gather;
#[cfg(feature = "nats")]
pub(crate) use document::Document;
#[cfg(any(test, feature = "nats"))]
pub(crate) use document::DocumentError;
pub(crate) use files::IntakeSource;
pub(crate) use intake::{IntakeReport, SessionIntake};
pub(super) use replay::{Asking, CountSink, ReadSession, ReplaySink};

use super::extractor::{asking_digest, extraction_spec};
use super::preamble::PreambleSettings;
use crate::config::Config;
use crate::domain::{Digest, Format, Timestamp};
use crate::privacy::Gate;
use crate::slicing;
use crate::store::Store;
use batch::{BATCH_BYTES_MAX, Rules};
use std::sync::Arc;

/// Maximum number of times that a file is read if another process enqueues it concurrently, or it was rewritten.
const PASSES_MAX: u32 = 16;

pub(crate) struct Enqueuer {
    store: Store,
    gate: Gate,
    settings: slicing::SliceSettings,
    gather: Gather,
    asking: Digest,
    preamble: Arc<PreambleSettings>,
    namespace: Option<String>,
    /// Maximum size of all copies in the vault together, in bytes; `None` if no copies are kept.
    vault: Option<u64>,
    batch_bytes_max: usize,
    clock: fn() -> Timestamp,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct EnqueueOptions {
    /// Name of the conversation, instead of its transcript's.
    pub session: Option<String>,
    /// Namespace, instead of the settings'.
    pub namespace: Option<String>,
    /// Jobs of higher priority go first within their namespace; overrides a document's.
    pub priority: Option<i32>,
    /// True if the last entries do not wait for more.
    pub flush: bool,
    /// Format of named files; detected otherwise.
    pub format: Option<Format>,
    pub also_forgotten: bool,
}

impl Enqueuer {
    pub(crate) fn new(
        config: &Config,
        model: &str,
        gather: Gather,
        store: Store,
        clock: fn() -> Timestamp,
    ) -> Enqueuer {
        Enqueuer {
            store,
            gate: Gate::new(&config.pii),
            settings: config.slice,
            gather,
            asking: asking_digest(&extraction_spec(config, model), config),
            preamble: PreambleSettings::of(config),
            namespace: config.namespace.clone(),
            vault: config.vault.bound(),
            batch_bytes_max: BATCH_BYTES_MAX,
            clock,
        }
    }

    fn rules(&self, how: &EnqueueOptions) -> Rules {
        Rules {
            asking: self.asking,
            gather: self.gather,
            flush: how.flush,
            priority: how.priority.unwrap_or_default(),
            now: (self.clock)(),
            batch_bytes_max: self.batch_bytes_max,
        }
    }
}
