//! Memory of one conversation, with one of the four strategies.

use super::entity::EntityTable;
use super::message::{History, MemoryMessage, MessageAccount, Metadata};
use super::strategy::{ConversationLimits, MemoryError, MemoryType};
use super::summary::{Absorbed, SummaryRequest, SummaryState};
use crate::domain::{Finding, Message, Role, Severity};
use crate::privacy::Redacted;

/// Number of recent messages shown beside the known entities.
pub(crate) const RECENT_MAX: usize = 10;

/// Memory of one conversation.
#[derive(Clone, Debug)]
pub struct ConversationMemory {
    pub(super) kind: MemoryType,
    pub(super) limits: ConversationLimits,
    pub(super) history: History,
    /// Empty unless the strategy is `Summary`.
    pub(super) summary: SummaryState,
    /// Empty unless the strategy is `Entity`.
    pub(super) entities: EntityTable,
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
        let fills =
            self.kind == MemoryType::Buffer && is_system && full == Some(self.history.pinned.len());
        if fills {
            let detail = "system messages alone fill the buffer: nothing else is kept";
            return Some(Finding::new(Severity::Warning, "pinned-fill", 0, detail));
        }
        finding
    }

    pub(super) fn others_max(&self) -> usize {
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
        let is_summary = self.kind == MemoryType::Summary;
        is_summary.then(|| self.summary.due(&self.history, &self.limits)).flatten()
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
        self.entities.get(name).map(|data| Metadata::passed(data.clone()))
    }

    /// Counts of all messages by state.
    pub fn account(&self) -> MessageAccount {
        let mut account = self.history.account(self.summary.count);
        account.entities = self.entities.len() as u64;
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
