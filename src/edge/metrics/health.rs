//! Whether the process is of use, in one word or one line.

use std::sync::{Mutex, PoisonError};

/// The longest reason, in bytes; it is one line for a person.
const REASON_BYTES_MAX: usize = 300;

/// What `/healthz` says. Begins well.
#[derive(Debug, Default)]
pub struct Health(Mutex<Option<String>>);

impl Health {
    /// The process does its work.
    pub fn well(&self) {
        self.set(None);
    }

    /// It does not, for this reason: one line without words of a conversation, cut at 300 bytes.
    pub fn ill(&self, reason: &str) {
        let mut line: String =
            reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        line.truncate(line.floor_char_boundary(REASON_BYTES_MAX));
        self.set(Some(line));
    }

    /// Why it does not do its work.
    pub(super) fn reason(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, reason: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}
