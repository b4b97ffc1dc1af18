//! Adapters: clock, file system, git, HTTP, NATS (feature `nats`), metrics, traces.

pub(crate) mod client_files;
pub(crate) mod clock;
pub(crate) mod code;
pub(crate) mod files;
pub(crate) mod hook_folder;
pub(crate) mod http_client;
pub(crate) mod http_server;
pub(crate) mod memory_files;
pub(crate) mod metrics;
#[cfg(feature = "nats")]
pub(crate) mod nats;
pub(crate) mod otel;
pub(crate) mod process;
pub(crate) mod repository;
pub(crate) mod spool;
pub(crate) mod walk;
pub(crate) mod watch;
