//! Serialises memories as JSON and back. Loading redacts again: stored text is unchanged, and text that was added
//! to the file by hand is masked.

use super::entity::MENTIONS;
use super::message::{MemoryMessage, MessageCount, Metadata, StoredMessage};
use super::summary::SummaryState;
use super::{ConversationLimits, ConversationMemory, MemoryError, MemoryType, create};
use crate::domain::{Role, Timestamp, Tokens};
use crate::privacy::{Gate, Redacted};
use crate::text::lenient_json::expectation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const VERSION: u64 = 1;
/// Maximum number of messages read by a memory: JSON numbers up to it are exact.
const MESSAGES_MAX: u64 = 1 << 53;
/// Message keys that transcripts do not have.
const OWN_KEYS: [&str; 2] = ["metadata", "token_count"];
const EXPECTED_TIME: &str = "expected a time such as 2026-11-21T09:00:00Z";

/// A memory as JSON.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Snapshot {
    version: Option<u64>,
    memory_type: MemoryType,
    session_id: Option<Redacted>,
    /// Limits of the strategy, by name.
    limits: Option<Map<String, Value>>,
    read: Option<MessageCount>,
    messages: Vec<SavedMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entities: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entities_evicted: Option<u64>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
struct SavedMessage {
    ordinal: Option<u64>,
    role: Role,
    content: Redacted,
    timestamp: Option<SavedTime>,
    id: Option<Redacted>,
    token_count: Option<Tokens>,
    metadata: Option<Map<String, Value>>,
}

/// RFC 3339; milliseconds where the calendar ends before the time does.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(untagged)]
enum SavedTime {
    Text(String),
    Millis(i64),
}

impl ConversationMemory {
    /// Serialises the memory for [`from_json`].
    pub fn to_json(&self) -> String {
        // Every key is a string, so this cannot fail.
        serde_json::to_string(&self.snapshot()).unwrap_or_default()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let ConversationMemory { kind, limits, history, summary, entities } = self;
        let mut named = json!({ kind.limit_name(): limits.of(*kind) });
        if *kind == MemoryType::Summary {
            named["keep_recent"] = limits.keep_recent.into();
        }
        let named: Option<Map<String, Value>> = serde_json::from_value(named).ok();
        let is_entity = *kind == MemoryType::Entity;
        Snapshot {
            version: Some(VERSION),
            memory_type: *kind,
            session_id: history.session_id.clone(),
            limits: named,
            read: Some(history.read),
            messages: history.in_order().map(SavedMessage::of).collect(),
            summary: (*kind == MemoryType::Summary).then(|| summary.clone()),
            entities: is_entity.then(|| entities.entities.clone()),
            entities_evicted: is_entity.then_some(entities.evicted),
        }
    }
}

/// Parses the output of [`ConversationMemory::to_json`]. Limits, positions, counts, times, ids and metadata may be
/// missing; their defaults are those of newly added messages.
///
/// # Errors
/// If `text` is malformed or inconsistent: one sentence with the path and the expected value, without any of the
/// text.
pub fn from_json(text: &str, gate: &Gate) -> Result<ConversationMemory, MemoryError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let read: Result<Snapshot, _> = serde_path_to_error::deserialize(&mut json);
    let saved = read.map_err(|error| {
        let path = error.path().to_string();
        wrong(&path, &expectation(error.inner()))
    })?;
    json.end().map_err(|error| wrong(".", &expectation(&error)))?;
    saved.restore(gate)
}

/// Reads messages that have `metadata` or `token_count`: an array of messages, or an object with `messages`. `None`
/// if no message has either. The error names the first invalid message, and the expected value.
pub(crate) fn messages_with_metadata(
    text: &str,
    gate: &Gate,
) -> Option<Result<Vec<MemoryMessage>, String>> {
    let document: Value = serde_json::from_str(text).ok()?;
    let listed = document.as_array().or_else(|| document["messages"].as_array())?;
    let has_own_key = |it: &Value| OWN_KEYS.iter().any(|key| !it[*key].is_null());
    listed.iter().any(has_own_key).then(|| {
        let read = |(number, message)| {
            let saved = SavedMessage::deserialize(message)
                .map_err(|error| format!("messages[{number}]: {}", expectation(&error)))?;
            let message = saved.restore(gate);
            message.ok_or_else(|| format!("messages[{number}].timestamp: {EXPECTED_TIME}"))
        };
        listed.iter().enumerate().map(read).collect()
    })
}

fn wrong(path: &str, expected: &str) -> MemoryError {
    let place = if path == "." { String::new() } else { format!("{path}: ") };
    MemoryError::Unreadable(format!("{place}{expected}"))
}

impl Snapshot {
    fn restore(self, gate: &Gate) -> Result<ConversationMemory, MemoryError> {
        if self.version.is_some_and(|version| version != VERSION) {
            return Err(wrong("version", &format!("expected {VERSION}")));
        }
        let kind = self.memory_type;
        let mut memory = create(kind, &limits_of(self.limits, kind)?, None)?;
        memory.history.session_id = self.session_id.map(|id| gate.redact(id.as_str()));
        restore_messages(&mut memory, self.messages, gate)?;
        let history = &mut memory.history;
        let next = history.read.messages;
        history.read = self.read.unwrap_or(history.read);
        if !(next..=MESSAGES_MAX).contains(&history.read.messages) {
            return Err(wrong("read.messages", "expected a number above every ordinal"));
        }
        let most = memory.others_max();
        if memory.history.others.len() > most {
            let expected = format!("expected at most {most} besides system messages");
            return Err(wrong("messages", &expected));
        }
        if self.summary.is_some() && kind != MemoryType::Summary {
            return Err(wrong("summary", "expected only in a memory of type summary"));
        }
        let has_entities = self.entities.is_some() || self.entities_evicted.is_some();
        if has_entities && kind != MemoryType::Entity {
            return Err(wrong("entities", "expected only in a memory of type entity"));
        }
        if let Some(mut summary) = self.summary {
            let history = &memory.history;
            let first = history.others.front().map_or(history.read.messages, |it| it.ordinal);
            if summary.before > first {
                let expected = "expected no place behind a message that is not in it";
                return Err(wrong("summary.before", expected));
            }
            summary.text = summary.text.map(|text| gate.redact(text.as_str()));
            memory.summary = summary;
        }
        memory.entities.evicted = self.entities_evicted.unwrap_or(0);
        restore_entities(&mut memory, &self.entities.unwrap_or_default(), gate)?;
        Ok(memory)
    }
}

fn limits_of(
    saved: Option<Map<String, Value>>,
    kind: MemoryType,
) -> Result<ConversationLimits, MemoryError> {
    let mut limits = ConversationLimits::default();
    for (name, value) in saved.unwrap_or_default() {
        let is_recent = kind == MemoryType::Summary && name == "keep_recent";
        if name != kind.limit_name() && !is_recent {
            return Err(wrong("limits", &format!("expected only the limit {}", kind.limit_name())));
        }
        if value.is_null() {
            continue;
        }
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let number = number
            .ok_or_else(|| wrong("limits", &format!("expected a number up to {}", u32::MAX)))?;
        match is_recent {
            true => limits.keep_recent = number,
            false => limits = limits.with(kind, number.into())?,
        }
    }
    Ok(limits)
}

fn restore_messages(
    memory: &mut ConversationMemory,
    saved: Vec<SavedMessage>,
    gate: &Gate,
) -> Result<(), MemoryError> {
    let (mut next, mut count) = (0, MessageCount::default());
    for (number, saved) in saved.into_iter().enumerate() {
        let at = |key: &str| format!("messages[{number}].{key}");
        let ordinal = saved.ordinal.unwrap_or(next);
        if !(next..MESSAGES_MAX).contains(&ordinal) {
            let expected = "expected a number above that of the message before";
            return Err(wrong(&at("ordinal"), expected));
        }
        next = ordinal + 1;
        let message = saved.restore(gate).ok_or_else(|| wrong(&at("timestamp"), EXPECTED_TIME))?;
        count.add(&message);
        memory.history.put(StoredMessage { ordinal, message });
    }
    count.messages = next;
    memory.history.read = count;
    Ok(())
}

impl SavedMessage {
    fn of(stored: &StoredMessage) -> SavedMessage {
        let message = &stored.message;
        SavedMessage {
            ordinal: Some(stored.ordinal),
            role: message.role,
            content: message.content.clone(),
            timestamp: message.at.map(|at| match at.to_string() {
                text if Timestamp::of_rfc3339(&text) == Some(at) => SavedTime::Text(text),
                _ => SavedTime::Millis(at.0),
            }),
            id: message.id.clone(),
            token_count: message.token_count,
            metadata: Some(message.metadata.clone().into_object()),
        }
    }

    /// Redacts the message; `None` if its time is invalid.
    fn restore(self, gate: &Gate) -> Option<MemoryMessage> {
        let at = match self.timestamp {
            None => None,
            Some(SavedTime::Millis(millis)) => Some(Timestamp(millis)),
            Some(SavedTime::Text(text)) => Some(Timestamp::parse(&text)?),
        };
        Some(MemoryMessage {
            role: self.role,
            content: gate.redact(self.content.as_str()),
            at,
            id: self.id.map(|id| gate.redact(id.as_str())),
            token_count: self.token_count,
            metadata: Metadata::seal(self.metadata.unwrap_or_default(), gate),
        })
    }
}

fn restore_entities(
    memory: &mut ConversationMemory,
    saved: &Map<String, Value>,
    gate: &Gate,
) -> Result<(), MemoryError> {
    let most = memory.limits.max_entities;
    if saved.len() > most as usize {
        return Err(wrong("entities", &format!("expected at most {most}")));
    }
    for (number, (name, value)) in saved.iter().enumerate() {
        let name = gate.redact(name).as_str().to_owned();
        let data = entity_data(value, gate).map(Value::Object);
        let is_new = data.is_some_and(|it| memory.entities.entities.insert(name, it).is_none());
        if !is_new {
            let expected = "expected an object in which `mentions` is a number of at least 1, for a \
                            name of its own";
            return Err(wrong(&format!("entities[{number}]"), expected));
        }
    }
    Ok(())
}

fn entity_data(value: &Value, gate: &Gate) -> Option<Map<String, Value>> {
    let mentions = value.get(MENTIONS).and_then(Value::as_u64).filter(|it| *it > 0)?;
    let mut data = Metadata::seal(value.as_object()?.clone(), gate).into_object();
    // Computed here, so it is not redacted.
    data.insert(MENTIONS.to_owned(), mentions.into());
    Some(data)
}
