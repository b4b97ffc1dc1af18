//! What is known of a message besides its words: a JSON object that has passed the gate.

use crate::privacy::Gate;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Passes over one object: the first finds nearly everything, the second that there is no more.
const PASSES_MAX: usize = 8;

/// A JSON object behind the gate; most messages have none. Copies share it.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Metadata(Option<Arc<Map<String, Value>>>);

impl Metadata {
    /// Takes `raw` through the gate: each key, text and number alone, then all of it together, since a
    /// password is told by its key. What cannot be shown to be clean is left out as a whole.
    pub fn seal(raw: Map<String, Value>, gate: &Gate) -> Metadata {
        let mut object = raw;
        for _ in 0..PASSES_MAX {
            if object.is_empty() {
                break;
            }
            let alone = map(object.clone(), gate);
            let text = Value::Object(alone.clone()).to_string();
            let masked = gate.redact(&text);
            if masked.as_str() != text {
                let read: Option<Map<_, _>> = serde_json::from_str(masked.as_str()).ok();
                object = read.unwrap_or_default();
            } else if alone == object {
                return Metadata::passed(object);
            } else {
                object = alone;
            }
        }
        Metadata::default()
    }

    /// What has passed before.
    pub(super) fn passed(object: Map<String, Value>) -> Metadata {
        Metadata((!object.is_empty()).then(|| Arc::new(object)))
    }

    /// The object itself.
    pub(super) fn into_object(self) -> Map<String, Value> {
        self.0.map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

fn map(object: Map<String, Value>, gate: &Gate) -> Map<String, Value> {
    let masked =
        |(key, it): (String, Value)| (gate.redact(&key).as_str().to_owned(), value(it, gate));
    object.into_iter().map(masked).collect()
}

fn value(it: Value, gate: &Gate) -> Value {
    match it {
        Value::Null | Value::Bool(_) => it,
        Value::Number(number) => {
            let text = number.to_string();
            let masked = gate.redact(&text);
            match masked.as_str() == text {
                true => Value::Number(number),
                false => Value::String(masked.as_str().to_owned()),
            }
        }
        Value::String(text) => Value::String(gate.redact(&text).as_str().to_owned()),
        Value::Array(items) => items.into_iter().map(|it| value(it, gate)).collect(),
        Value::Object(object) => Value::Object(map(object, gate)),
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
