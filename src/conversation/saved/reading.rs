//! Reads what [`write`](super::write) wrote, checks that it holds together, and makes the memory of it.

use super::VERSION;
use super::object::Object;
use crate::conversation::entity::{EntityMemory, Known, MENTIONS, RECENT_MAX};
use crate::conversation::held::{Count, Held, Kept};
use crate::conversation::summary::{SummaryMemory, Told};
use crate::conversation::{
    BufferMemory, ConversationMemory, Limits, MemoryError, MemoryMessage, MemoryType, Metadata,
    WindowMemory,
};
use crate::domain::{Role, Timestamp};
use crate::privacy::Gate;
use serde_json::{Map, Value};

/// The keys that every memory has.
const KEYS: [&str; 6] = ["version", "memory_type", "session_id", "limits", "read", "messages"];
const MESSAGE_KEYS: [&str; 7] =
    ["ordinal", "role", "content", "timestamp", "id", "token_count", "metadata"];

/// The most messages that a memory can have read: every number of JSON up to it is exact.
const MESSAGES_MAX: u64 = 1 << 53;

/// Makes the memory that [`ConversationMemory::to_json`] wrote: it shows and does what that one did.
/// Limits, places, counts, times, ids and metadata may be missing and are then as if the messages had
/// just been added.
///
/// # Errors
/// If `text` is something else, or does not hold together: one sentence that says where, and what was
/// expected there. It has no words of the text.
pub fn from_json(text: &str, gate: &Gate) -> Result<Box<dyn ConversationMemory>, MemoryError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        MemoryError::Unreadable(format!("line {line}, column {column}: no JSON that can be read"))
    })?;
    let own: &[&str] = match kind_of(&value)? {
        MemoryType::Buffer | MemoryType::Window => &[],
        MemoryType::Summary => &["summary"],
        MemoryType::Entity => &["entities", "entities_evicted"],
    };
    let kind = kind_of(&value)?;
    let root = Object::read(&value, "", &[&KEYS, own].concat())?;
    if root.number("version")?.is_some_and(|version| version != VERSION) {
        return Err(root.wrong("version", &VERSION.to_string()));
    }
    let limits = limits_of(&root, kind)?;
    let held = held_of(&root, gate)?;
    match kind {
        MemoryType::Buffer => buffer(&root, &limits, held),
        MemoryType::Window => window(&root, &limits, held),
        MemoryType::Summary => summary(&root, &limits, held, gate),
        MemoryType::Entity => entity(&root, &limits, held, gate),
    }
}

fn kind_of(value: &Value) -> Result<MemoryType, MemoryError> {
    let kind = value.get("memory_type").and_then(Value::as_str);
    let kind = kind.and_then(|name| name.parse().ok());
    kind.ok_or_else(|| {
        let names = MemoryType::ALL.map(MemoryType::name).join(", ");
        MemoryError::Unreadable(format!("memory_type: expected one of {names}"))
    })
}

fn limits_of(root: &Object<'_>, kind: MemoryType) -> Result<Limits, MemoryError> {
    let mut limits = Limits::default();
    let Some(value) = root.get("limits") else { return Ok(limits) };
    let recent: &[&str] = if kind == MemoryType::Summary { &["keep_recent"] } else { &[] };
    let found = Object::read(value, "limits", &[&[kind.limit_name()], recent].concat())?;
    if let Some(limit) = found.small(kind.limit_name())? {
        limits = limits.with(kind, limit.into())?;
    }
    if let Some(recent) = recent.first().map(|key| found.small(key)).transpose()?.flatten() {
        limits.keep_recent = recent;
    }
    limits.check_for(kind)?;
    Ok(limits)
}

fn held_of(root: &Object<'_>, gate: &Gate) -> Result<Held, MemoryError> {
    let mut held = Held::new(root.text("session_id")?.map(|id| gate.redact(id)));
    let Some(Value::Array(messages)) = root.get("messages") else {
        return Err(root.wrong("messages", "a list of messages"));
    };
    let (mut next, mut count) = (0, Count::default());
    for (number, value) in messages.iter().enumerate() {
        let object = Object::read(value, format!("messages[{number}]"), &MESSAGE_KEYS)?;
        let ordinal = object.number("ordinal")?.unwrap_or(next);
        if !(next..MESSAGES_MAX).contains(&ordinal) {
            return Err(object.wrong("ordinal", "a number above that of the message before"));
        }
        next = ordinal + 1;
        let message = message_of(&object, gate)?;
        count.add(&message);
        held.put(Kept { ordinal, message });
    }
    count.messages = next;
    held.read = count_of(root, "read")?.unwrap_or(count);
    if !(next..=MESSAGES_MAX).contains(&held.read.messages) {
        return Err(root.wrong("read.messages", "a number above every ordinal"));
    }
    Ok(held)
}

fn message_of(object: &Object<'_>, gate: &Gate) -> Result<MemoryMessage, MemoryError> {
    let role = Role::of_name(object.needed("role")?);
    let role = role.ok_or_else(|| object.wrong("role", "system, user or assistant"))?;
    let mut message = MemoryMessage::new(role, gate.redact(object.needed("content")?));
    message.at = match object.get("timestamp") {
        None => None,
        Some(value) => {
            let at = value.as_i64().map(Timestamp);
            let at = at.or_else(|| Timestamp::parse(value.as_str()?));
            Some(
                at.ok_or_else(|| object.wrong("timestamp", "a time such as 2026-11-21T09:00:00Z"))?,
            )
        }
    };
    message.id = object.text("id")?.map(|id| gate.redact(id));
    message.token_count = object.small("token_count")?;
    message.metadata = match object.get("metadata") {
        None => Metadata::default(),
        Some(Value::Object(metadata)) => Metadata::seal(metadata.clone(), gate),
        Some(_) => return Err(object.wrong("metadata", "an object")),
    };
    Ok(message)
}

fn count_of(object: &Object<'_>, key: &str) -> Result<Option<Count>, MemoryError> {
    let Some(value) = object.get(key) else { return Ok(None) };
    let found = Object::read(value, object.at(key), &["messages", "tokens"])?;
    let needed = |key| found.number(key)?.ok_or_else(|| found.wrong(key, "a number"));
    Ok(Some(Count { messages: needed("messages")?, tokens: needed("tokens")? }))
}

/// Says if there are more messages besides system messages than a memory holds.
fn bounded(root: &Object<'_>, held: &Held, most: usize) -> Result<(), MemoryError> {
    match held.others.len() > most {
        true => Err(root.wrong("messages", &format!("at most {most} besides system messages"))),
        false => Ok(()),
    }
}

fn buffer(
    root: &Object<'_>,
    limits: &Limits,
    held: Held,
) -> Result<Box<dyn ConversationMemory>, MemoryError> {
    let memory = BufferMemory { max_messages: limits.max_messages, held };
    bounded(root, &memory.held, memory.room())?;
    Ok(Box::new(memory))
}

fn window(
    root: &Object<'_>,
    limits: &Limits,
    held: Held,
) -> Result<Box<dyn ConversationMemory>, MemoryError> {
    bounded(root, &held, limits.window_size as usize)?;
    Ok(Box::new(WindowMemory { window_size: limits.window_size, held }))
}

fn summary(
    root: &Object<'_>,
    limits: &Limits,
    held: Held,
    gate: &Gate,
) -> Result<Box<dyn ConversationMemory>, MemoryError> {
    let mut told = Told::default();
    if let Some(value) = root.get("summary") {
        let found = Object::read(value, "summary", &["text", "before", "of", "tried_at"])?;
        told.text = found.text("text")?.map(|text| gate.redact(text));
        told.before = found.number("before")?.unwrap_or(0);
        told.count = count_of(&found, "of")?.unwrap_or_default();
        told.tried_at = found.number("tried_at")?;
        let first = held.others.front().map_or(held.read.messages, |kept| kept.ordinal);
        if told.before > first {
            return Err(found.wrong("before", "no place behind a message that is not in it"));
        }
    }
    let Limits { summary_threshold, keep_recent, .. } = *limits;
    Ok(Box::new(SummaryMemory { summary_threshold, keep_recent, held, told }))
}

fn entity(
    root: &Object<'_>,
    limits: &Limits,
    held: Held,
    gate: &Gate,
) -> Result<Box<dyn ConversationMemory>, MemoryError> {
    bounded(root, &held, RECENT_MAX)?;
    let mut known = Known::default();
    known.evicted = root.number("entities_evicted")?.unwrap_or(0);
    let entities = match root.get("entities") {
        None => &Map::new(),
        Some(Value::Object(entities)) => entities,
        Some(_) => return Err(root.wrong("entities", "an object for each name")),
    };
    if entities.len() > limits.max_entities as usize {
        return Err(root.wrong("entities", &format!("at most {}", limits.max_entities)));
    }
    for (number, (name, value)) in entities.iter().enumerate() {
        let path = format!("entities[{number}]");
        let expected =
            "an object in which `mentions` is a number of at least 1, for a name of its own";
        let read = known_of(value, gate)
            .filter(|data| known.put(gate.redact(name).as_str().to_owned(), data.clone()));
        read.ok_or_else(|| root.wrong(&path, expected))?;
    }
    Ok(Box::new(EntityMemory { max_entities: limits.max_entities, held, known }))
}

/// What is known of an entity, behind the gate.
fn known_of(value: &Value, gate: &Gate) -> Option<Map<String, Value>> {
    let mentions = value.get(MENTIONS).and_then(Value::as_u64).filter(|it| *it > 0)?;
    let mut data = Metadata::seal(value.as_object()?.clone(), gate).into_object();
    // Counted here, so never a number that the gate should mask.
    data.insert(MENTIONS.to_owned(), mentions.into());
    Some(data)
}
