//! Models behind one trait: network endpoints, and cassettes as a substitute. Providers' wire types and error
//! shapes stay in this module.
//!
//! The client is async-openai: its configuration, URLs, headers, chat and model APIs and error type. Three parts
//! are our own, because real servers break its versions: the request body (`request`: omits fields that an endpoint
//! refuses), the reply (`wire`: its typed replies reject nulls, objects as arguments and errors behind 200) and the
//! transport (`transport`: reads `Retry-After`, bounds bodies and keeps replies out of its log). Its retries are
//! disabled: `ModelError::retry` decides.

mod cassette;
mod concurrency;
mod error;
mod openai;
pub(crate) mod prompt;
mod probe;
pub(crate) mod tool;
mod transport;
mod wire;

#[cfg(test)]
mod faults_test;

pub(crate) use cassette::{Cassette, CassetteFile, Origin, Origins, schema_file};
pub(crate) use concurrency::{CallPermit, ConcurrencyLimit};
pub use openai::{Endpoint, EndpointConfig};
pub(crate) use probe::{Probe, probe};
pub(crate) use transport::back_off;
#[cfg(test)]
pub(crate) use wire::request_tests::question;

use crate::domain::{Reply, Request};

/// Crate that is never logged, whatever the filter: async-openai logs the bodies of replies that it cannot parse,
/// which contain conversation text.
pub(crate) const NEVER_LOGGED: &str = "async_openai";

/// The next step of a dialogue.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// Make this call and pass the reply back.
    Ask(Request),
    Done(T),
}

/// A sans-I/O dialogue: returns the next request and consumes the reply. Bounded by `ASKS_MAX`.
pub(crate) trait ModelDialogue {
    type Outcome;

    /// Consumes the reply and returns the next step.
    fn reply(&mut self, reply: &Reply) -> Step<Self::Outcome>;
    /// Tries the next output mode, because the endpoint refused that of the last request.
    fn output_mode_refused(&mut self) -> Step<Self::Outcome>;
    /// Ends with the results so far, because the last request cannot be made.
    fn stop(&mut self) -> Step<Self::Outcome>;
    /// True if earlier replies gave a usable result.
    fn has_partial_result(&self) -> bool;
    /// True if it ended because no output mode gave a usable reply.
    fn is_exhausted(&self) -> bool {
        false
    }
}

/// Detail of a dialogue that ended without a usable reply.
pub(crate) const UNUSABLE: &str =
    "the model's answers were unusable; try another model, which `annalist doctor` checks";
/// Detail of a dialogue in which the endpoint refused every request.
pub(crate) const NO_MODE: &str = "the endpoint supports none of the output modes";
