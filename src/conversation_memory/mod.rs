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
mod message;
mod snapshot;
mod summary;
#[cfg(test)]
mod tests;

use crate::domain::{Finding, Message, Role, Severity, Tokens, named};
use crate::privacy::Redacted;
pub(crate) use context::{BranchFilter, SliceContext};
pub use context::{render, summarise_by_rule, within};
use entity::EntityTable;
use message::History;
pub use message::{MemoryMessage, Metadata};
pub(crate) use message::{MessageAccount, MessageCount};
use serde::{Deserialize, Serialize};
pub use snapshot::from_json;
pub(crate) use snapshot::{Snapshot, messages_with_metadata};
use std::fmt;
use std::str::FromStr;
pub(crate) use summary::Absorbed;
use summary::{SummaryRequest, SummaryState};

/// Number of recent messages shown beside the known entities.
pub(crate) const RECENT_MAX: usize = 10;

/// Memory of one conversation.
#[derive(Clone, Debug)]
pub struct ConversationMemory {
    kind: MemoryType,
    limits: ConversationLimits,
    history: History,
    /// Empty unless the strategy is `Summary`.
    summary: SummaryState,
    /// Empty unless the strategy is `Entity`.
    entities: EntityTable,
}

/// Creates a memory of `kind`, for the conversation with this id if there is one.
///
/// # Errors
/// If the strategy's limit is below 1, or `keep_recent` is not below `summary_threshold`.
pub fn create(
    kind: MemoryType,
    limits: &ConversationLimits,
    session_id: Option<Redacted>,
) -> Result<ConversationMemory, MemoryError> {
    limits.check_for(kind)?;
    Ok(ConversationMemory {
        kind,
        limits: *limits,
        history: History { session_id, ..History::default() },
        summary: SummaryState::default(),
        entities: EntityTable::default(),
    })
}

impl ConversationMemory {
    /// The strategy.
    pub fn kind(&self) -> MemoryType {
        self.kind
    }

    /// Adds the next message. A finding reports the part that could not be used.
    pub fn add_message(&mut self, message: MemoryMessage) -> Option<Finding> {
        let is_system = message.role == Role::System;
        let finding = match self.kind {
            MemoryType::Buffer | MemoryType::Window | MemoryType::Summary => None,
            MemoryType::Entity => self.entities.read(&message, self.limits.max_entities),
        };
        self.history.push(message);
        self.history.drop_oldest_above(self.others_max());
        let full = self.limits.max_messages.map(|most| most as usize);
        if self.kind == MemoryType::Buffer && is_system && full == Some(self.history.pinned.len()) {
            let detail = "system messages alone fill the buffer: nothing else is kept";
            return Some(Finding::new(Severity::Warning, "pinned-fill", 0, detail));
        }
        finding
    }

    fn others_max(&self) -> usize {
        match self.kind {
            MemoryType::Buffer => {
                let most = self.limits.max_messages.map_or(usize::MAX, |most| most as usize);
                most.saturating_sub(self.history.pinned.len())
            }
            MemoryType::Window => self.limits.window_size as usize,
            MemoryType::Summary => usize::MAX,
            MemoryType::Entity => RECENT_MAX,
        }
    }

    /// Messages in the order in which a model sees them.
    pub fn messages(&self) -> Vec<Message> {
        match self.kind {
            MemoryType::Buffer | MemoryType::Summary => self.summary.insert_into(&self.history),
            MemoryType::Window | MemoryType::Entity => {
                let History { pinned, others, .. } = &self.history;
                let pinned = pinned.iter().map(|it| it.message.shown());
                let others = others.iter().map(|it| it.message.shown());
                pinned.chain(self.entities.shown()).chain(others).collect()
            }
        }
    }

    /// Messages that are due for summarisation, if there are any.
    pub fn due(&self) -> Option<SummaryRequest> {
        let ConversationMemory { kind, limits, history, summary, .. } = self;
        let others = &history.others;
        let is_due = *kind == MemoryType::Summary
            && others.len() >= limits.summary_threshold as usize
            && summary.tried_at != Some(history.read.messages);
        let taken = others.len().checked_sub(limits.keep_recent as usize).filter(|_| is_due)?;
        let last = others.get(taken.checked_sub(1)?)?;
        Some(SummaryRequest {
            existing: summary.text.clone(),
            messages: others.iter().take(taken).map(|stored| stored.message.shown()).collect(),
            through: last.ordinal,
        })
    }

    /// Stores the reply to a request as the new summary. Idempotent.
    pub fn absorb(&mut self, request: &SummaryRequest, reply: &Redacted) -> Absorbed {
        match self.kind {
            MemoryType::Summary => self.summary.absorb(&mut self.history, request, reply),
            MemoryType::Buffer | MemoryType::Window | MemoryType::Entity => Absorbed::Stale,
        }
    }

    /// Data about the entity `name`, including its mention count.
    pub fn entity(&self, name: &str) -> Option<Metadata> {
        self.entities.entities.get(name)?.as_object().map(|data| Metadata::passed(data.clone()))
    }

    /// Counts of all messages by state.
    pub fn account(&self) -> MessageAccount {
        let mut account = self.history.account(self.summary.count);
        account.entities = self.entities.entities.len() as u64;
        account.entities_evicted = self.entities.evicted;
        account
    }

    /// Removes everything, including system messages, except the conversation's id.
    pub fn clear(&mut self) {
        let session_id = self.history.session_id.take();
        self.history = History { session_id, ..History::default() };
        self.summary = SummaryState::default();
        self.entities = EntityTable::default();
    }
}

const LIMIT_MIN: u32 = 1;

named! {
    /// The four strategies.
    #[derive(schemars::JsonSchema)]
    pub MemoryType {
        /// Everything, up to a number of messages.
        Buffer = "buffer",
        /// The last messages.
        Window = "window",
        /// A summary of what was, and the last messages.
        Summary = "summary",
        /// The entities that were mentioned, and the last messages.
        Entity = "entity",
    }
}

impl MemoryType {
    /// Name of the strategy's limit.
    pub fn limit_name(self) -> &'static str {
        match self {
            MemoryType::Buffer => "max_messages",
            MemoryType::Window => "window_size",
            MemoryType::Summary => "summary_threshold",
            MemoryType::Entity => "max_entities",
        }
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MemoryType {
    type Err = MemoryError;

    fn from_str(text: &str) -> Result<MemoryType, MemoryError> {
        MemoryType::of_name(text).ok_or_else(|| MemoryError::UnsupportedType(text.to_owned()))
    }
}

/// Reason why a memory cannot be created, in one line with the allowed values.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MemoryError {
    #[error("unsupported memory type `{0}`: allowed are buffer, window, summary, entity")]
    UnsupportedType(String),
    #[error("{name} must be at least {LIMIT_MIN}: allowed are 1 to {}, found {found}", u32::MAX)]
    Limit { name: &'static str, found: i64 },
    /// `keep_recent` reaches the threshold, so that a summary would always be due.
    #[error("keep_recent must be below summary_threshold: allowed are 0 to {most}, found {found}")]
    KeepRecent { most: u32, found: u32 },
    /// Not a saved memory: the path, and the expected value.
    #[error("not a saved conversation memory: {0}")]
    Unreadable(String),
}

/// The limits of all strategies; each strategy uses its own.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ConversationLimits {
    /// Buffer: maximum messages, including system messages; `None` keeps everything.
    pub max_messages: Option<u32>,
    /// Window: maximum non-system messages.
    pub window_size: u32,
    /// Summary: number of non-system messages that makes a summary due.
    pub summary_threshold: u32,
    /// Summary: number of newest messages that are not summarised.
    pub keep_recent: u32,
    /// Entity: maximum known entities.
    pub max_entities: u32,
}

impl Default for ConversationLimits {
    fn default() -> ConversationLimits {
        ConversationLimits {
            max_messages: None,
            window_size: 10,
            summary_threshold: 10,
            keep_recent: 0,
            max_entities: 50,
        }
    }
}

impl ConversationLimits {
    /// Sets the limit of `kind`. Lowers `keep_recent` if it would reach a lower
    /// `summary_threshold`.
    ///
    /// # Errors
    /// If the number is below 1 or exceeds `u32`.
    pub fn with(
        mut self,
        kind: MemoryType,
        number: i64,
    ) -> Result<ConversationLimits, MemoryError> {
        let wrong = MemoryError::Limit { name: kind.limit_name(), found: number };
        let limit = u32::try_from(number).ok().filter(|it| *it >= LIMIT_MIN).ok_or(wrong)?;
        match kind {
            MemoryType::Buffer => self.max_messages = Some(limit),
            MemoryType::Window => self.window_size = limit,
            MemoryType::Summary => {
                self.summary_threshold = limit;
                self.keep_recent = self.keep_recent.min(limit - 1);
            }
            MemoryType::Entity => self.max_entities = limit,
        }
        Ok(self)
    }

    /// Checks the limits of every strategy.
    ///
    /// # Errors
    /// If one is below 1, or `keep_recent` is not below `summary_threshold`.
    pub fn check(&self) -> Result<(), MemoryError> {
        MemoryType::ALL.iter().try_for_each(|kind| self.check_for(*kind))
    }

    fn of(&self, kind: MemoryType) -> Option<u32> {
        match kind {
            MemoryType::Buffer => self.max_messages,
            MemoryType::Window => Some(self.window_size),
            MemoryType::Summary => Some(self.summary_threshold),
            MemoryType::Entity => Some(self.max_entities),
        }
    }

    fn check_for(&self, kind: MemoryType) -> Result<(), MemoryError> {
        let limit = self.of(kind).unwrap_or(u32::MAX);
        if limit < LIMIT_MIN {
            return Err(MemoryError::Limit { name: kind.limit_name(), found: limit.into() });
        }
        if kind == MemoryType::Summary && self.keep_recent >= limit {
            return Err(MemoryError::KeepRecent { most: limit - 1, found: self.keep_recent });
        }
        Ok(())
    }
}

/// Settings of the context of slices.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct ConversationSettings {
    /// The strategy.
    pub strategy: MemoryType,
    /// The limits of all strategies.
    pub limits: ConversationLimits,
    /// Maximum size of a slice's context, in estimated tokens; 0 disables it.
    pub context_tokens: Tokens,
}
