//! Finds the object in what a model said: behind prose, in a code fence, in a string, in a wrapper.

use super::join::put;
use super::parser::Parser;
use super::repair::{Repair, Repairs};
use serde_json::{Map, Value};

/// Places in prose where the object is looked for: each try may read on to the end.
const BRACES_MAX: usize = 32;
/// Bytes that are read by all those tries before no other is begun.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Objects that are joined when they stand one behind the other.
const OBJECTS_MAX: usize = 16;
/// JSON in a string in a string: nobody was seen to encode more than twice.
const ENCODINGS_MAX: usize = 3;

/// Reads `text` as the object that was asked for, which is known by one of the lists named `lists`. Null
/// if there is no object in it.
pub fn decode(text: &str, lists: &[&str]) -> (Value, Vec<Repair>) {
    let mut repairs = Repairs::default();
    let value = open(text, lists, ENCODINGS_MAX, &mut repairs);
    (value, repairs.into_vec())
}

fn open(text: &str, lists: &[&str], encodings: usize, repairs: &mut Repairs) -> Value {
    let mut text = text.trim();
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        repairs.add(Repair::Mark);
        text = rest.trim_start();
    }
    let mut seen = Repairs::default();
    let value = match text.bytes().next() {
        None => return Value::Null,
        Some(b'{') => objects(text, &mut seen),
        Some(b'[') => {
            let mut parser = Parser::new(text, 0);
            let value = parser.value(0).value;
            seen = parser.repairs;
            value.unwrap_or_default()
        }
        Some(b'"') if encodings > 0 => {
            let mut parser = Parser::new(text, 0);
            let (inner, _) = parser.string(b'"');
            if begins(&inner) {
                repairs.add(Repair::Twice);
                repairs.extend(parser.repairs.as_slice());
                return open(&inner, lists, encodings - 1, repairs);
            }
            Value::Null
        }
        Some(_) => Value::Null,
    };
    let value =
        if known(&value, lists) { value } else { unwrap(value, lists, encodings, &mut seen) };
    if !known(&value, lists) {
        let mut among = Repairs::default();
        let found = in_prose(text, lists, &mut among);
        if known(&found, lists) || value.is_null() {
            repairs.extend(among.as_slice());
            return found;
        }
    }
    repairs.extend(seen.as_slice());
    value
}

/// The objects at the beginning of `text`, joined.
fn objects(text: &str, repairs: &mut Repairs) -> Value {
    let mut parser = Parser::new(text, 0);
    let mut joined = Map::new();
    for count in 0..OBJECTS_MAX {
        let parsed = parser.value(0);
        if let Some(Value::Object(object)) = parsed.value {
            for (key, value) in object {
                put(&mut joined, key, value);
            }
        }
        parser.skip_blanks();
        if count > 0 {
            parser.repairs.add(Repair::Several);
        }
        match parser.peek() {
            Some(b'{') => {}
            Some(_) => {
                parser.repairs.add(Repair::Prose);
                break;
            }
            None => break,
        }
    }
    repairs.extend(parser.repairs.as_slice());
    Value::Object(joined)
}

/// The object among words. Of two that name the same list the later one counts: drafts come first.
fn in_prose(text: &str, lists: &[&str], repairs: &mut Repairs) -> Value {
    let thought = text.rfind("</think>").unwrap_or(0);
    let mut found = Map::new();
    let mut other = None;
    let (mut from, mut tries, mut read) = (thought, 0, 0);
    for (at, _) in text.match_indices('{') {
        if tries == BRACES_MAX || read > READ_BYTES_MAX {
            break;
        }
        if at < from || !opens(text, at) {
            continue;
        }
        tries += 1;
        let mut parser = Parser::new(text, at);
        let value = parser.value(0).value.unwrap_or_default();
        read += parser.at - at;
        let seen = parser.repairs.as_slice();
        match value {
            Value::Object(object) if lists.iter().any(|list| object.contains_key(*list)) => {
                from = parser.at;
                repairs.extend(seen);
                found.extend(object);
            }
            Value::Object(object) if other.is_none() && !object.is_empty() => {
                other = Some((object, seen.to_vec()));
            }
            Value::Object(_)
            | Value::Array(_)
            | Value::String(_)
            | Value::Number(_)
            | Value::Bool(_)
            | Value::Null => {}
        }
    }
    if found.is_empty() {
        let Some((object, seen)) = other else { return Value::Null };
        repairs.extend(&seen);
        found = object;
    }
    repairs.add(if text.contains("```") { Repair::Fence } else { Repair::Prose });
    Value::Object(found)
}

/// The object inside `value`, one level down; `value` itself if there is none.
fn unwrap(value: Value, lists: &[&str], encodings: usize, repairs: &mut Repairs) -> Value {
    let inner: Vec<&Value> = match &value {
        Value::Object(object) => object.values().collect(),
        Value::Array(items) => items.iter().take(OBJECTS_MAX).collect(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => Vec::new(),
    };
    let mut joined = Map::new();
    for inner in inner {
        let mut seen = Repairs::default();
        let encoded = inner.as_str().filter(|text| encodings > 0 && begins(text));
        let opened = match encoded {
            Some(text) => open(text, lists, encodings - 1, &mut seen),
            None => inner.clone(),
        };
        if let Value::Object(object) = opened
            && lists.iter().any(|list| object.contains_key(*list))
        {
            repairs.extend(seen.as_slice());
            for (key, list) in object {
                put(&mut joined, key, list);
            }
        }
    }
    if joined.is_empty() {
        return value;
    }
    repairs.add(Repair::Wrapped);
    Value::Object(joined)
}

/// Whether the brace at `at` may open an object: one of code, say, does not.
fn opens(text: &str, at: usize) -> bool {
    let behind = text.get(at + 1..).unwrap_or_default().trim_start();
    behind.starts_with(['"', '\''])
}

fn begins(text: &str) -> bool {
    text.trim_start().starts_with(['{', '"', '[', '`', '\u{feff}'])
}

fn known(value: &Value, lists: &[&str]) -> bool {
    lists.iter().any(|list| value.get(list).is_some())
}
