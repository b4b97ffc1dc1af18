//! Conversation memory: what a model is shown of a conversation that goes on. Four strategies behind
//! [`ConversationMemory`], made by [`create`]; none of them reads, asks or waits.
//!
//! | strategy | shows | lets go of |
//! |---|---|---|
//! | buffer | all messages in their order | the oldest, above `max_messages` |
//! | window | system messages, then the last `window_size` others | the oldest |
//! | summary | a summary in the place of what it stands for, and the messages since | what is summarised |
//! | entity | system messages, the entities known, the last [`RECENT_MAX`] others | the oldest; the entity that was mentioned least |
//!
//! System messages are pinned in all four, and no limit but the buffer's counts them.

mod brief;
mod budget;
mod buffer;
mod context;
mod entity;
mod held;
#[cfg(test)]
mod laws;
mod line;
mod message;
mod metadata;
mod saved;
mod spaced;
mod strategy;
mod summary;
#[cfg(test)]
mod tests;
mod window;

pub use budget::{render, within};
pub use buffer::BufferMemory;
pub use context::{Context, summarise_by_rule};
pub use entity::{EntityMemory, RECENT_MAX};
pub use held::{Account, Count};
pub use line::Line;
pub use message::MemoryMessage;
pub use metadata::Metadata;
pub use saved::from_json;
pub use strategy::{Limits, MemoryError, MemoryType, Settings, create};
pub use summary::{Absorbed, SummaryMemory, SummaryRequest};
pub use window::WindowMemory;

use crate::domain::{Finding, Message};
use crate::privacy::Redacted;
use std::fmt;

/// A memory of one conversation.
pub trait ConversationMemory: fmt::Debug + Send {
    /// Which strategy it is.
    fn kind(&self) -> MemoryType;

    /// Takes the next message; says if something about it could not be used.
    fn add_message(&mut self, message: MemoryMessage) -> Option<Finding>;

    /// What a model sees, in its order.
    fn messages(&self) -> Vec<Message>;

    /// Messages that are to be summarised now, if there are any.
    fn due(&self) -> Option<SummaryRequest> {
        None
    }

    /// Takes the reply to a request as the summary. The same reply a second time changes nothing.
    fn absorb(&mut self, _request: &SummaryRequest, _reply: &Redacted) -> Absorbed {
        Absorbed::Stale
    }

    /// What is known of the entity `name`, how often it was mentioned among it.
    fn entity(&self, _name: &str) -> Option<Metadata> {
        None
    }

    /// What became of every message.
    fn account(&self) -> Account;

    /// Forgets everything, system messages with it, but not the conversation's id.
    fn clear(&mut self);

    /// All of it as JSON, to be read by [`from_json`].
    fn to_json(&self) -> String;
}
