//! The lowest layer: raw text in, [`Redacted`] text out. No layer above accepts raw text, so a path
//! that skips the gate does not compile.

mod block;
mod json;
mod letter;
mod mask;
mod pii;
mod redacted;
mod secret;

pub(crate) use block::{
    PRIVATE_MENTION, UNCLOSED_PRIVATE, is_private_file, private_spans, strip_private,
};
pub use mask::Gate;
pub(crate) use mask::Only;
pub use pii::Pii;
pub(crate) use redacted::Woven;
pub use redacted::{Redacted, Report};
pub(crate) use secret::{table_section, table_sections};

#[cfg(test)]
mod tests;
