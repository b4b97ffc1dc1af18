//! An earlier answer as text, for the model to see what it said.

use crate::domain::Reply;
use crate::privacy::{Redacted, Woven};

/// The longest earlier answer that is shown when asking again, in bytes: a whole one of usual
/// length; the beginning of a runaway one is enough.
const ECHO_BYTES_MAX: usize = 24_000;
/// Calls of one reply that are shown.
const CALLS_MAX: usize = 8;

/// What `reply` said. Never empty: some servers refuse a message without content, and some chat
/// templates two messages of one role in a row.
pub fn echo(reply: &Reply) -> Redacted {
    let mut pieces = Vec::new();
    for call in reply.calls.iter().take(CALLS_MAX) {
        pieces.extend([Woven::Passed(&call.arguments), Woven::Ours("\n")]);
    }
    if reply.calls.is_empty() {
        pieces.push(Woven::Passed(&reply.content));
    }
    let text = Redacted::weave(&pieces);
    if text.as_str().trim().is_empty() {
        return Redacted::weave(&[Woven::Ours("(no answer)")]);
    }
    if text.len() <= ECHO_BYTES_MAX {
        return text;
    }
    let mut end = ECHO_BYTES_MAX;
    while !text.as_str().is_char_boundary(end) {
        end -= 1;
    }
    Redacted::weave(&[Woven::Passed(&text.cut(0..end)), Woven::Ours(" …")])
}
