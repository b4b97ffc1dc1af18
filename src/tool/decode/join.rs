//! Two values under one key: lists are joined, so that no claim is lost.

use serde_json::map::Entry;
use serde_json::{Map, Value};

/// Puts `value` under `key`; says whether the key was there already.
pub(super) fn put(map: &mut Map<String, Value>, key: String, value: Value) -> bool {
    match map.entry(key) {
        Entry::Vacant(free) => {
            free.insert(value);
            false
        }
        Entry::Occupied(mut taken) => {
            match (taken.get_mut(), value) {
                (Value::Array(first), Value::Array(second)) => first.extend(second),
                (old, new) => *old = new,
            }
            true
        }
    }
}
