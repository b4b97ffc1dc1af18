//! One JSON object that is read by its keys; errors say where, and what was expected, but never what
//! stands there.

use crate::conversation::MemoryError;
use serde_json::{Map, Value};

/// An object and the way to it, such as `messages[3]`.
pub(super) struct Object<'v> {
    values: &'v Map<String, Value>,
    path: String,
}

impl<'v> Object<'v> {
    /// Reads `value` at `path`; it must be an object with no other keys than these.
    pub(super) fn read(
        value: &'v Value,
        path: impl Into<String>,
        keys: &[&str],
    ) -> Result<Object<'v>, MemoryError> {
        let path = path.into();
        let Value::Object(values) = value else { return Err(wrong(&path, "an object")) };
        if !values.keys().all(|key| keys.contains(&key.as_str())) {
            return Err(wrong(&path, &format!("no other keys than {}", keys.join(", "))));
        }
        Ok(Object { values, path })
    }

    /// The way to a key.
    pub(super) fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// What is not as `expected` under `key`.
    pub(super) fn wrong(&self, key: &str, expected: &str) -> MemoryError {
        wrong(&self.at(key), expected)
    }

    /// A value; none if it is absent or null.
    pub(super) fn get(&self, key: &str) -> Option<&'v Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// A text, if there is one.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'v str>, MemoryError> {
        let text = |value: &'v Value| value.as_str().ok_or_else(|| self.wrong(key, "a text"));
        self.get(key).map(text).transpose()
    }

    /// A text that must be there.
    pub(super) fn needed(&self, key: &str) -> Result<&'v str, MemoryError> {
        self.text(key)?.ok_or_else(|| self.wrong(key, "a text"))
    }

    /// A whole number from 0 up, if there is one.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, MemoryError> {
        let number = |value: &Value| {
            value.as_u64().ok_or_else(|| self.wrong(key, "a whole number from 0 up"))
        };
        self.get(key).map(number).transpose()
    }

    /// A whole number up to that of 32 bits, if there is one.
    pub(super) fn small(&self, key: &str) -> Result<Option<u32>, MemoryError> {
        let small = |number: u64| {
            let most = u32::MAX;
            u32::try_from(number).map_err(|_| self.wrong(key, &format!("a number up to {most}")))
        };
        self.number(key)?.map(small).transpose()
    }
}

fn wrong(path: &str, expected: &str) -> MemoryError {
    let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
    MemoryError::Unreadable(format!("{place}expected {expected}"))
}
