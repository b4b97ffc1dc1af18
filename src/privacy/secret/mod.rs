//! Secrets by shape and by name.

use super::mask::Report;

/// Masks.
pub(super) fn mask(text: &str, report: &mut Report) -> Option<String> {
    let _ = (text, report);
    None
}

/// Rules.
pub(super) fn rules() -> impl Iterator<Item = &'static str> {
    [].into_iter()
}
