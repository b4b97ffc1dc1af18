//! The only reader of the clock; everybody else is told the time.

use crate::domain::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// The time, in milliseconds since 1970 UTC; 0 on a machine whose clock stands before that.
#[expect(clippy::disallowed_methods, reason = "this is edge::clock")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
