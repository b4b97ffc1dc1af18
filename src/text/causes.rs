//! An error and its causes, in one line.

use std::error::Error;

/// Formats the error with its causes, the root cause last.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(&format!(": {error}"));
        cause = error.source();
    }
    line.replace('\n', " ")
}
