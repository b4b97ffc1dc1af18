//! Entities that a conversation mentions: those in a message's metadata, otherwise those that [`names`] finds in
//! its text.

use super::message::MemoryMessage;
use crate::domain::{Finding, Message, Role, Severity};
use crate::privacy::{Redacted, Woven};
use crate::text::names::names;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, Write};

const ENTITIES: &str = "entities";
/// Key of the mention count, which is always computed here, whatever the metadata says.
pub(super) const MENTIONS: &str = "mentions";
const LABEL: &str = "Known entities:";

#[derive(Clone, Default)]
pub(super) struct EntityTable {
    keys: HashMap<String, u64>,
    /// Entities in order of first mention.
    entities: BTreeMap<u64, (String, Map<String, Value>)>,
    /// Mention count and key of each entity; the first is evicted next.
    ranks: BTreeSet<(u64, u64)>,
    next: u64,
    pub(super) evicted: u64,
}

impl std::fmt::Debug for EntityTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EntityTable({} entities)", self.entities.len())
    }
}

impl EntityTable {
    /// Adds the entities of a message. A finding means that its metadata is invalid and nothing was added.
    pub(super) fn read(&mut self, message: &MemoryMessage, most: u32) -> Option<Finding> {
        let mut met = HashSet::new();
        match message.metadata.get(ENTITIES) {
            Some(Value::Object(named))
                if named.values().all(|it| it.is_object() || it.is_null()) =>
            {
                named.iter().for_each(|(name, info)| self.mention(name, info.as_object(), most));
            }
            Some(Value::Array(listed)) if listed.iter().all(Value::is_string) => {
                let listed = listed.iter().filter_map(Value::as_str);
                listed.filter(|name| met.insert(*name)).for_each(|it| self.mention(it, None, most));
            }
            Some(Value::Null) => {}
            Some(_) => {
                let detail =
                    "metadata.entities: expected an object for each name, or a list of names";
                return Some(Finding::new(Severity::Warning, "bad-entities", 0, detail));
            }
            None if message.role == Role::System => {}
            // The first word of a sentence counts only if it is already known.
            None => {
                for name in names(&message.content) {
                    let counts = name.is_sure || self.keys.contains_key(name.text);
                    if counts && met.insert(name.text) {
                        self.mention(name.text, None, most);
                    }
                }
            }
        }
        None
    }

    /// Counts a mention. A new entity evicts the least mentioned one, the oldest among equals.
    fn mention(&mut self, name: &str, info: Option<&Map<String, Value>>, most: u32) {
        let info = info.into_iter().flatten().filter(|(key, _)| *key != MENTIONS);
        let info = info.map(|(key, value)| (key.clone(), value.clone()));
        if let Some(key) = self.keys.get(name).copied()
            && let Some((_, data)) = self.entities.get_mut(&key)
        {
            let mentions = mentions_of(data);
            self.ranks.remove(&(mentions, key));
            self.ranks.insert((mentions.saturating_add(1), key));
            data.extend(info);
            data.insert(MENTIONS.to_owned(), mentions.saturating_add(1).into());
            return;
        }
        if self.entities.len() >= most as usize
            && let Some((_, key)) = self.ranks.pop_first()
            && let Some((name, _)) = self.entities.remove(&key)
        {
            self.keys.remove(&name);
            self.evicted += 1;
        }
        let mut data: Map<String, Value> = info.collect();
        data.insert(MENTIONS.to_owned(), 1.into());
        self.put(name.to_owned(), data);
    }

    /// Appends an entity; false if the name is already known.
    pub(super) fn put(&mut self, name: String, data: Map<String, Value>) -> bool {
        if self.keys.contains_key(&name) {
            return false;
        }
        let key = self.next;
        self.next += 1;
        self.ranks.insert((mentions_of(&data), key));
        self.keys.insert(name.clone(), key);
        self.entities.insert(key, (name, data));
        true
    }

    pub(super) fn get(&self, name: &str) -> Option<&Map<String, Value>> {
        self.entities.get(self.keys.get(name)?).map(|(_, data)| data)
    }

    pub(super) fn len(&self) -> usize {
        self.entities.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(String, Map<String, Value>)> {
        self.entities.values()
    }

    /// Renders the entities as a system message, if there are any.
    pub(super) fn shown(&self) -> Option<Message> {
        let mut text = LABEL.to_owned();
        for (name, data) in self.iter() {
            // Names stay on one line, so that none can imitate another.
            let name = name.replace(['\n', '\r'], " ");
            text.push_str(&format!("\n- {name}: {}", spaced_json(data)));
        }
        let content = Redacted::weave(&[Woven::Label(&text)]);
        (self.len() > 0).then_some(Message { role: Role::System, content })
    }
}

fn mentions_of(data: &Map<String, Value>) -> u64 {
    data.get(MENTIONS).and_then(Value::as_u64).unwrap_or(0)
}

/// Compact JSON with a space after each comma and colon, which people and models read best.
fn spaced_json(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and all keys are strings.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, SpacedFormatter));
    String::from_utf8(bytes).unwrap_or_default()
}

struct SpacedFormatter;

impl Formatter for SpacedFormatter {
    fn begin_array_value<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(to, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn commas_and_colons_have_a_blank_behind_them() {
        let value = json!({"type": "şehir", "n": [1, 2], "in": {"a:b": null}});
        let text = r#"{"type": "şehir", "n": [1, 2], "in": {"a:b": null}}"#;
        assert_eq!(super::spaced_json(&value), text);
    }
}
