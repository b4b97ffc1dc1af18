//! The section `[conversation]`: which memory gives a slice its context, and its limits.

use crate::conversation::{Limits, MemoryError, MemoryType, Settings};
use crate::domain::Tokens;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConversation {
    strategy: String,
    context_tokens: Tokens,
    max_messages: u32,
    window_size: u32,
    summary_threshold: u32,
    keep_recent: u32,
    max_entities: u32,
}

pub(super) fn check(raw: &RawConversation) -> Result<Settings, String> {
    let strategy: Result<MemoryType, MemoryError> = raw.strategy.trim().parse();
    let limits = Limits {
        max_messages: Some(raw.max_messages),
        window_size: raw.window_size,
        summary_threshold: raw.summary_threshold,
        keep_recent: raw.keep_recent,
        max_entities: raw.max_entities,
    };
    limits.check().map_err(|error| wrong(&error))?;
    Ok(Settings {
        strategy: strategy.map_err(|error| wrong(&error))?,
        limits,
        context_tokens: raw.context_tokens,
    })
}

fn wrong(error: &MemoryError) -> String {
    let key = match error {
        MemoryError::UnsupportedType(_) | MemoryError::Unreadable(_) => "strategy",
        MemoryError::Limit { name, .. } => name,
        MemoryError::KeepRecent { .. } => "keep_recent",
    };
    format!("conversation.{key}: {error}")
}
