//! Lint of a directory: every rule has a stable name, a severity and a location.

mod check;
mod fix;
mod issue;
#[cfg(test)]
mod tests;

pub use check::lint;
pub(crate) use fix::fix;
pub(crate) use issue::Issue;
pub use issue::{Linting, print_text};
