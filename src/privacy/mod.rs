//! The ground floor: raw text in, [`Redacted`] text out. Nothing above it takes raw text, so a path
//! that skips the gate does not compile.

mod block;
mod file;
mod letter;
mod mask;
mod pii;
mod places;
mod secret;
mod tag;

pub use block::{PRIVATE_MENTION, PrivateRemark, UNCLOSED_PRIVATE, private_spans, strip_private};
pub use file::is_private_file;
pub use mask::{Gate, Only, Redacted, Report, Woven};
pub use pii::{Pii, UnknownPii};

#[cfg(test)]
mod tests;
