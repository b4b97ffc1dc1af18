//! Strategies and their limits.

use crate::domain::Tokens;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The least that any limit may be.
const LIMIT_MIN: u32 = 1;

/// The four strategies.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryType {
    /// Everything, up to a number of messages.
    Buffer,
    /// The last messages.
    Window,
    /// A summary of what was, and the last messages.
    Summary,
    /// The entities that were mentioned, and the last messages.
    Entity,
}

impl MemoryType {
    /// Every type, in the order in which help lists them.
    pub const ALL: [MemoryType; 4] =
        [MemoryType::Buffer, MemoryType::Window, MemoryType::Summary, MemoryType::Entity];

    /// The name in settings, on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            MemoryType::Buffer => "buffer",
            MemoryType::Window => "window",
            MemoryType::Summary => "summary",
            MemoryType::Entity => "entity",
        }
    }

    /// The name of its limit.
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
        let found = MemoryType::ALL.into_iter().find(|it| it.name() == text);
        found.ok_or_else(|| MemoryError::UnsupportedType(text.to_owned()))
    }
}

/// Reason why no memory is made, in one line with what is allowed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MemoryError {
    /// A type that is none of the four.
    #[error("unsupported memory type `{0}`: allowed are buffer, window, summary, entity")]
    UnsupportedType(String),
    /// A limit out of its bounds.
    #[error("{name} must be at least {LIMIT_MIN}: allowed are 1 to {}, found {found}", u32::MAX)]
    Limit {
        /// The limit's name in settings.
        name: &'static str,
        /// Number that was given.
        found: i64,
    },
    /// As many messages would be kept as make a summary due, so it would be due for ever.
    #[error("keep_recent must be below summary_threshold: allowed are 0 to {most}, found {found}")]
    KeepRecent {
        /// The most that is allowed.
        most: u32,
        /// Number that was given.
        found: u32,
    },
    /// A text that is no stored memory: the place, and what was expected there.
    #[error("not a saved conversation memory: {0}")]
    Unreadable(String),
}

/// The limits of all strategies; each looks at its own.
#[derive(serde::Deserialize, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct ConversationLimits {
    /// Buffer: messages in all, system messages among them; none keeps everything.
    pub max_messages: Option<u32>,
    /// Window: messages besides system messages.
    pub window_size: u32,
    /// Summary: so many messages besides system messages make a summary due.
    pub summary_threshold: u32,
    /// Summary: the newest that stay out of it.
    pub keep_recent: u32,
    /// Entity: entities that are known at a time.
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
    /// The limits with `number` as the limit of `kind`. A lower threshold of summaries keeps fewer
    /// messages out of them.
    ///
    /// # Errors
    /// If the number is below 1, or more than fits.
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
    /// If one is below 1, or as many messages are kept out of summaries as make one due.
    pub fn check(&self) -> Result<(), MemoryError> {
        MemoryType::ALL.into_iter().try_for_each(|kind| self.check_for(kind))
    }

    /// The limit of `kind`, if it has one.
    pub(super) fn of(&self, kind: MemoryType) -> Option<u32> {
        match kind {
            MemoryType::Buffer => self.max_messages,
            MemoryType::Window => Some(self.window_size),
            MemoryType::Summary => Some(self.summary_threshold),
            MemoryType::Entity => Some(self.max_entities),
        }
    }

    pub(super) fn check_for(&self, kind: MemoryType) -> Result<(), MemoryError> {
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

/// ConversationSettings of the context of slices.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct ConversationSettings {
    /// The strategy.
    pub strategy: MemoryType,
    /// The limits of all strategies.
    pub limits: ConversationLimits,
    /// Maximum size of a slice's context, in estimated tokens; 0 gives none.
    pub context_tokens: Tokens,
}
