//! The entities that a conversation mentions, and its last messages. Whoever adds a message may name
//! its entities; where nobody does, they are found in its words by [`names`].

use super::held::{Account, Count, Held};
use super::spaced;
use super::{ConversationMemory, Limits, MemoryMessage, MemoryType, Metadata, saved};
use crate::domain::{Finding, Message, Role, Severity};
use crate::entity::names;
use crate::privacy::{Redacted, Woven};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The last messages that are shown besides what is known, in number.
pub const RECENT_MAX: usize = 10;
/// Where a message's metadata name its entities.
const ENTITIES: &str = "entities";
/// How often an entity was mentioned: counted here, whatever a message says.
pub(super) const MENTIONS: &str = "mentions";
/// What stands before the entities, for the model that reads them.
const LABEL: &str = "Known entities:";

/// Keeps what is known of the entities that were mentioned most, and the last messages.
#[derive(Clone, Debug)]
pub struct EntityMemory {
    pub(super) max_entities: u32,
    pub(super) held: Held,
    pub(super) known: Known,
}

/// What is known, by name.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// The place of each name in `entities`.
    places: HashMap<String, u64>,
    /// In the order in which they came.
    entities: BTreeMap<u64, (String, Map<String, Value>)>,
    /// Mentions and place of each: the first is the next to go.
    ranks: BTreeSet<(u64, u64)>,
    next: u64,
    pub(super) evicted: u64,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Known({} entities)", self.entities.len())
    }
}

impl Known {
    /// Mentions an entity once more; a new one has the least mentioned make room, of equals the one
    /// that came first.
    fn mention(&mut self, name: &str, info: Option<&Map<String, Value>>, most: u32) {
        let info = || info.into_iter().flatten().filter(|(key, _)| *key != MENTIONS);
        let info = || info().map(|(key, value)| (key.clone(), value.clone()));
        let place = self.places.get(name);
        if let Some((place, (_, data))) =
            place.and_then(|place| Some((*place, self.entities.get_mut(place)?)))
        {
            let mentions = mentions_of(data);
            self.ranks.remove(&(mentions, place));
            self.ranks.insert((mentions.saturating_add(1), place));
            data.extend(info());
            data.insert(MENTIONS.to_owned(), mentions.saturating_add(1).into());
            return;
        }
        if self.entities.len() >= most as usize
            && let Some((_, place)) = self.ranks.pop_first()
            && let Some((name, _)) = self.entities.remove(&place)
        {
            self.places.remove(&name);
            self.evicted += 1;
        }
        let mut data: Map<String, Value> = info().collect();
        data.insert(MENTIONS.to_owned(), 1.into());
        self.put(name.to_owned(), data);
    }

    /// Puts an entity behind those that are known; false if it is known.
    pub(super) fn put(&mut self, name: String, data: Map<String, Value>) -> bool {
        if self.places.contains_key(&name) {
            return false;
        }
        let place = self.next;
        self.next += 1;
        self.ranks.insert((mentions_of(&data), place));
        self.places.insert(name.clone(), place);
        self.entities.insert(place, (name, data));
        true
    }

    fn get(&self, name: &str) -> Option<&Map<String, Value>> {
        self.entities.get(self.places.get(name)?).map(|(_, data)| data)
    }

    pub(super) fn len(&self) -> usize {
        self.entities.len()
    }

    fn all(&self) -> impl Iterator<Item = &(String, Map<String, Value>)> {
        self.entities.values()
    }
}

fn mentions_of(data: &Map<String, Value>) -> u64 {
    data.get(MENTIONS).and_then(Value::as_u64).unwrap_or(0)
}

impl EntityMemory {
    pub(super) fn new(limits: &Limits, session_id: Option<Redacted>) -> EntityMemory {
        let (held, known) = (Held::new(session_id), Known::default());
        EntityMemory { max_entities: limits.max_entities, held, known }
    }

    /// Finds names in the words of a message. One that begins a sentence may be any word, and counts
    /// where it is known already. However often it stands there, a message mentions it once.
    fn recognise(&mut self, content: &Redacted) {
        let mut met = HashSet::new();
        for name in names(content) {
            if (name.is_sure || self.known.get(name.text).is_some()) && met.insert(name.text) {
                self.known.mention(name.text, None, self.max_entities);
            }
        }
    }

    /// Takes what a message names: an object for each name, or a list of names.
    fn named(&mut self, entities: &Value) -> Option<Finding> {
        match entities {
            Value::Object(named) => {
                let is_fine = |it: &Value| it.is_object() || it.is_null();
                if !named.values().all(is_fine) {
                    return Some(bad());
                }
                for (name, info) in named {
                    self.known.mention(name, info.as_object(), self.max_entities);
                }
                None
            }
            Value::Array(names) => {
                let read: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
                let Some(names) = read else { return Some(bad()) };
                let mut met = HashSet::new();
                for name in names.into_iter().filter(|name| met.insert(*name)) {
                    self.known.mention(name, None, self.max_entities);
                }
                None
            }
            Value::Null => None,
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(bad()),
        }
    }

    fn shown(&self) -> Option<Message> {
        let mut text = LABEL.to_owned();
        for (name, data) in self.known.all() {
            // A name is one line, so that none can pass for another.
            let name = name.replace(['\n', '\r'], " ");
            text.push_str(&format!("\n- {name}: {}", spaced::text(data)));
        }
        let content = Redacted::weave(&[Woven::Label(&text)]);
        (self.known.len() > 0).then_some(Message { role: Role::System, content })
    }
}

/// Nothing of a message's entities was taken; the message itself was.
fn bad() -> Finding {
    let what = "metadata.entities: expected an object for each name, or a list of names";
    Finding::new(Severity::Warning, "bad-entities", 0, what)
}

impl ConversationMemory for EntityMemory {
    fn kind(&self) -> MemoryType {
        MemoryType::Entity
    }

    fn add_message(&mut self, message: MemoryMessage) -> Option<Finding> {
        let metadata = message.metadata.clone();
        let finding = match metadata.get(ENTITIES) {
            Some(entities) => self.named(entities),
            None if message.role == Role::System => None,
            None => {
                self.recognise(&message.content);
                None
            }
        };
        self.held.push(message);
        self.held.let_go_above(RECENT_MAX);
        finding
    }

    fn messages(&self) -> Vec<Message> {
        self.held.pinned_shown().chain(self.shown()).chain(self.held.others_shown()).collect()
    }

    fn entity(&self, name: &str) -> Option<Metadata> {
        self.known.get(name).map(|data| Metadata::passed(data.clone()))
    }

    fn account(&self) -> Account {
        Account {
            entities: self.known.len() as u64,
            entities_evicted: self.known.evicted,
            ..self.held.account(Count::default())
        }
    }

    fn clear(&mut self) {
        self.held.clear();
        self.known = Known::default();
    }

    fn to_json(&self) -> String {
        let known: Map<String, Value> =
            self.known.all().map(|(name, data)| (name.clone(), data.clone().into())).collect();
        let entities = json!({ "entities": known, "entities_evicted": self.known.evicted });
        let limits = json!({ "max_entities": self.max_entities });
        saved::write(self.kind(), limits, &self.held, entities)
    }
}
