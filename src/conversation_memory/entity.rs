//! Entities that a conversation mentions: those in a message's metadata, otherwise those that [`names`] finds in
//! its text.

use super::message::MemoryMessage;
use crate::domain::{Finding, Message, Role, Severity};
use crate::privacy::{Redacted, Woven};
use crate::text::names::names;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::io::{self, Write};

const ENTITIES: &str = "entities";
/// Key of the mention count, which is always computed here, whatever the metadata says.
pub(super) const MENTIONS: &str = "mentions";
const LABEL: &str = "Known entities:";

#[derive(Clone, Default)]
pub(super) struct EntityTable {
    /// Objects by name, in order of first mention.
    pub(super) entities: Map<String, Value>,
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
                    let counts = name.is_sure || self.entities.contains_key(name.text);
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
        if let Some(Value::Object(data)) = self.entities.get_mut(name) {
            data.extend(info);
            let mentions = data.get(MENTIONS).and_then(Value::as_u64).unwrap_or(0);
            data.insert(MENTIONS.to_owned(), mentions.saturating_add(1).into());
            return;
        }
        if self.entities.len() >= most as usize {
            let least = self.entities.iter().min_by_key(|(_, data)| data[MENTIONS].as_u64());
            if let Some(name) = least.map(|(name, _)| name.clone()) {
                self.entities.shift_remove(&name);
                self.evicted += 1;
            }
        }
        let mut data: Map<String, Value> = info.collect();
        data.insert(MENTIONS.to_owned(), 1.into());
        self.entities.insert(name.to_owned(), data.into());
    }

    /// Renders the entities as a system message, if there are any.
    pub(super) fn shown(&self) -> Option<Message> {
        let mut text = LABEL.to_owned();
        for (name, data) in &self.entities {
            // Names stay on one line, so that none can imitate another.
            let name = name.replace(['\n', '\r'], " ");
            text.push_str(&format!("\n- {name}: {}", spaced_json(data)));
        }
        let content = Redacted::weave(&[Woven::Label(&text)]);
        (!self.entities.is_empty()).then_some(Message { role: Role::System, content })
    }
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
