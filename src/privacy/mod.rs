//! The ground floor: raw text in, [`Redacted`] text out. Nothing above it takes raw text, so a path
//! that skips the gate does not compile.

mod block;
mod letter;
mod mask;
mod pii;
mod secret;

pub use block::{PrivateRemark, is_private_file, private_spans, strip_private};
pub use mask::{Gate, Only, Redacted, Report, Woven};
pub use pii::{Pii, UnknownPii};

#[cfg(test)]
mod tests;
