//! Conversations as APIs and web clients have them, one JSON message after the other. A message is
//! read in one place, [`messages`], whichever dialect it is in.

mod calls;
mod document;
mod log;
mod messages;
mod parts;
mod record;
mod tree;
pub(super) mod anthropic;
pub(super) mod chatgpt;
pub(super) mod openai;

pub(super) use messages::{has_known_role, is_message, time_of};
