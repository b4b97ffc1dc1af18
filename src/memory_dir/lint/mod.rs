//! Findings about a directory: every rule has a stable name, a severity and a place.

mod check;
mod fix;
mod issue;
#[cfg(test)]
mod tests;

pub use check::lint;
pub(crate) use fix::fix;
pub use issue::{Issue, Linting, print_text};
