//! Models behind one trait: an endpoint on the network, and cassettes in its place. Providers' wire types and error
//! shapes stay in this module.
//!
//! async-openai is the client: its configuration, URLs, headers, chat and model APIs and error type are used. Three
//! things are ours, because real servers break its own: the request body (`request`: fields that an endpoint refuses are
//! left out), the reply (`wire`: its typed replies refuse nulls, objects as arguments and errors behind 200) and the
//! transport below it (`transport`: reads `Retry-After`, bounds bodies and keeps replies out of its log). Its retries are
//! off: `ModelError::retry` decides.

mod cassette;
mod cassette_file;
mod concurrency;
mod embeddings;
mod error;
mod openai;
pub(crate) mod prompt;
pub(crate) mod prompt_files;
mod probe;
mod quirks;
mod stale;
mod request;
pub(crate) mod tool;
mod transport;
mod wait;
mod wire;

#[cfg(test)]
mod faults_test;

pub(crate) use cassette::Cassette;
pub(crate) use cassette_file::schema_file;
pub(crate) use cassette_file::{CassetteFile, Origin};
pub(crate) use concurrency::{CallPermit, ConcurrencyLimit};
pub use openai::{Endpoint, EndpointConfig};
pub(crate) use probe::{Probe, probe};
#[cfg(test)]
pub(crate) use request::tests::question;
pub(crate) use wait::back_off;

/// The crate that is never let into a log, whatever the filter asks for: async-openai logs whole bodies
/// of replies it cannot read, which are words of a conversation.
pub(crate) const NEVER_LOGGED: &str = "async_openai";
