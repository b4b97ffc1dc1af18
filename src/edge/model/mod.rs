//! Models behind one trait: an endpoint on the network, and cassettes instead of it. Providers' wire
//! types and error shapes stay in this room.

mod ask;
mod cassette;
mod cassette_file;
mod difference;
mod embed;
mod error;
mod escape;
mod kept;
mod kept_prompt;
mod kept_talk;
mod openai;
mod pace;
mod pause;
mod probe;
mod probe_asks;
mod quirks;
mod sse;
mod stale;
mod still_json;
mod transport;
mod wait;
mod wire;

#[cfg(test)]
mod faults_test;

pub use cassette::{Cassette, Origins};
pub use cassette_file::{CassetteFile, Origin, schema_file};
pub use difference::difference;
pub use kept::{Accepting, Kept};
pub use kept_prompt::KeptPrompts;
pub use kept_talk::KeptTalk;
pub use openai::{Endpoint, EndpointConfig};
pub use pace::{Pace, Permit};
pub use pause::back_off;
pub use probe::{Check, Probe, probe};

/// The crate that is never let into a log, whatever the filter asks for: async-openai logs whole bodies
/// of replies it cannot read, which are words of a conversation.
pub const NEVER_LOGGED: &str = "async_openai";
