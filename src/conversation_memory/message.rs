//! Messages in a memory, and the history of one conversation.

use crate::domain::{Message, Role, Timestamp, Tokens, estimate_tokens};
use crate::privacy::{Gate, Redacted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Maximum redaction passes over one object: the first finds nearly everything, the second confirms it.
const PASSES_MAX: usize = 8;

/// One message of a conversation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemoryMessage {
    /// Speaker. System messages are pinned: no strategy drops them.
    pub role: Role,
    /// Text.
    pub content: Redacted,
    /// Time, if known.
    pub at: Option<Timestamp>,
    /// The conversation's own id of this message.
    pub id: Option<Redacted>,
    /// Token count of the caller; otherwise estimated.
    pub token_count: Option<Tokens>,
    /// Further data; `entities` is a list of names, or an object with an object for each name.
    pub metadata: Metadata,
}

impl MemoryMessage {
    /// Creates a message with text only.
    pub fn new(role: Role, content: Redacted) -> MemoryMessage {
        let (at, id, token_count) = (None, None, None);
        MemoryMessage { role, content, at, id, token_count, metadata: Metadata::default() }
    }

    /// Creates a user message.
    pub fn user(content: Redacted) -> MemoryMessage {
        MemoryMessage::new(Role::User, content)
    }

    /// Creates an assistant message.
    pub fn assistant(content: Redacted) -> MemoryMessage {
        MemoryMessage::new(Role::Assistant, content)
    }

    /// Creates a system message, which is pinned.
    pub fn system(content: Redacted) -> MemoryMessage {
        MemoryMessage::new(Role::System, content)
    }

    /// Tokens of the text.
    pub fn tokens(&self) -> Tokens {
        self.token_count.unwrap_or_else(|| estimate_tokens(self.content.as_str()))
    }

    pub(super) fn shown(&self) -> Message {
        Message { role: self.role, content: self.content.clone() }
    }
}

/// A redacted JSON object; most messages have none. Clones share it.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Metadata(Option<Arc<Map<String, Value>>>);

impl Metadata {
    /// Redacts `raw`, including keys and numbers. Drops the whole object if redaction does not converge.
    pub fn seal(raw: Map<String, Value>, gate: &Gate) -> Metadata {
        let mut text = Value::Object(raw).to_string();
        for _ in 0..PASSES_MAX {
            let passed = gate.redact_json(&text);
            if passed.as_str() == text {
                return Metadata::passed(serde_json::from_str(&text).unwrap_or_default());
            }
            text = passed.as_str().to_owned();
        }
        Metadata::default()
    }

    /// Wraps an object that is already redacted.
    pub(super) fn passed(object: Map<String, Value>) -> Metadata {
        Metadata((!object.is_empty()).then(|| Arc::new(object)))
    }

    pub(super) fn into_object(self) -> Map<String, Value> {
        self.0.map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Metadata({} keys)", self.0.as_ref().map_or(0, |object| object.len()))
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(object) => object.serialize(serializer),
            None => Map::new().serialize(serializer),
        }
    }
}

/// Number of messages and their tokens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MessageCount {
    /// Messages.
    pub messages: u64,
    /// Their tokens together, estimated where nobody counted.
    pub tokens: u64,
}

impl MessageCount {
    pub(super) fn add(&mut self, message: &MemoryMessage) {
        self.messages += 1;
        self.tokens = self.tokens.saturating_add(message.tokens().into());
    }

    fn minus(self, other: MessageCount) -> MessageCount {
        MessageCount {
            messages: self.messages.saturating_sub(other.messages),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    fn of<'a>(messages: impl IntoIterator<Item = &'a StoredMessage>) -> MessageCount {
        let mut count = MessageCount::default();
        messages.into_iter().for_each(|it| count.add(&it.message));
        count
    }
}

/// Messages by state: `read` is the sum of the four fields after it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct MessageAccount {
    /// All added messages.
    pub read: MessageCount,
    /// System messages, which are never dropped.
    pub pinned: MessageCount,
    /// Other messages in memory.
    pub kept: MessageCount,
    /// Messages in the summary.
    pub summarised: MessageCount,
    /// Dropped messages.
    pub evicted: MessageCount,
    /// Known entities.
    pub entities: u64,
    /// Evicted entities.
    pub entities_evicted: u64,
}

/// A message and its ordinal among all added messages, from 0.
#[derive(Clone, Debug)]
pub(super) struct StoredMessage {
    pub(super) ordinal: u64,
    pub(super) message: MemoryMessage,
}

/// Messages in memory: pinned ones and others, each in order.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) session_id: Option<Redacted>,
    pub(super) pinned: Vec<StoredMessage>,
    pub(super) others: VecDeque<StoredMessage>,
    pub(super) read: MessageCount,
}

impl History {
    pub(super) fn push(&mut self, message: MemoryMessage) {
        let ordinal = self.read.messages;
        self.read.add(&message);
        self.put(StoredMessage { ordinal, message });
    }

    /// Appends a message to the pinned ones or the others, by role.
    pub(super) fn put(&mut self, stored: StoredMessage) {
        match stored.message.role {
            Role::System => self.pinned.push(stored),
            Role::User | Role::Assistant => self.others.push_back(stored),
        }
    }

    /// Drops the oldest other message if there are more than `most`. Call it after each message.
    pub(super) fn drop_oldest_above(&mut self, most: usize) {
        if self.others.len() > most {
            self.others.pop_front();
        }
    }

    pub(super) fn in_order(&self) -> impl Iterator<Item = &StoredMessage> {
        let mut pinned = self.pinned.iter().peekable();
        let mut others = self.others.iter().peekable();
        std::iter::from_fn(move || match (pinned.peek(), others.peek()) {
            (Some(first), Some(other)) if first.ordinal < other.ordinal => pinned.next(),
            (Some(_), None) => pinned.next(),
            (_, Some(_)) | (None, None) => others.next(),
        })
    }

    pub(super) fn account(&self, summarised: MessageCount) -> MessageAccount {
        let (pinned, kept) = (MessageCount::of(&self.pinned), MessageCount::of(&self.others));
        let evicted = self.read.minus(pinned).minus(kept).minus(summarised);
        let read = self.read;
        MessageAccount { read, pinned, kept, summarised, evicted, ..MessageAccount::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Pii;
    use serde_json::json;

    #[track_caller]
    fn check(raw: Value, expected: Value) {
        let gate = Gate::new(&Pii::ALL);
        let Value::Object(raw) = raw else { panic!("an object") };
        let sealed = Metadata::seal(raw, &gate);
        assert_eq!(serde_json::to_value(&sealed).unwrap(), expected);
        let again = expected.as_object().unwrap().clone();
        assert_eq!(Metadata::seal(again, &gate), sealed, "sealing twice changes nothing");
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        let plain = json!({"type": "person", "n": [1, 0.30000000000000004, null, true], "e": {}});
        check(plain.clone(), plain);
        check(json!({}), json!({}));
    }

    #[test]
    fn texts_keys_and_numbers_are_masked_wherever_they_stand() {
        check(
            json!({"who": ["ada@example.com"], "ada@example.com": {"card": 4111111111111111_u64}}),
            json!({"who": ["<EMAIL>"], "<EMAIL>": {"card": "<CREDIT_CARD>"}}),
        );
    }

    #[test]
    fn a_secret_that_its_key_betrays_is_masked() {
        let gate = Gate::new(&Pii::ALL);
        let raw = json!({"password": "correct-horse-7", "city": "Oslo"});
        let sealed = Metadata::seal(raw.as_object().unwrap().clone(), &gate);
        let shown = serde_json::to_string(&sealed).unwrap();
        assert!(!shown.contains("correct-horse-7"), "{shown}");
        assert_eq!(sealed.get("city"), Some(&json!("Oslo")), "{shown}");
    }
}
