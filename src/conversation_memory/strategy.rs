//! Memory strategies and their limits.

use crate::domain::{Tokens, named};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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

/// Settings of the context of slices.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct ConversationSettings {
    /// The strategy.
    pub strategy: MemoryType,
    /// The limits of all strategies.
    pub limits: ConversationLimits,
    /// Maximum size of a slice's context, in estimated tokens; 0 disables it.
    pub context_tokens: Tokens,
}
