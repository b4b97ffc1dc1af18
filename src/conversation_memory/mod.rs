//! Conversation memory: what a model sees of a running conversation. Has four strategies, created by [`create`];
//! none does I/O or calls a model.
//!
//! | strategy | shows | drops |
//! |---|---|---|
//! | buffer | all messages in their order | the oldest, above `max_messages` |
//! | window | system messages, then the last `window_size` others | the oldest |
//! | summary | a summary in the place of the messages in it, and the messages since | what is summarised |
//! | entity | system messages, the known entities, the last 10 others | the oldest; the least mentioned entity |
//!
//! All four pin system messages; only the buffer's limit counts them.

mod context;
mod entity;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod laws;
mod memory;
mod message;
mod snapshot;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use context::{BranchFilter, SliceContext};
pub use context::{render, summarise_by_rule, within};
pub use memory::{ConversationLimits, ConversationMemory, MemoryType, create};
pub(crate) use memory::{ConversationSettings, MemoryError};
pub use message::{MemoryMessage, Metadata};
pub(crate) use message::{MessageAccount, MessageCount};
pub use snapshot::from_json;
pub(crate) use snapshot::{Snapshot, messages_with_metadata};
pub(crate) use summary::Absorbed;
