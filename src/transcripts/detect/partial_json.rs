//! Parses the beginning of a JSON value that may be cut off anywhere. For detection only.

use crate::transcripts::json::repair_json;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Returns the first value of `text`, as much as there is of it, and the text after it; `None` if
/// the value is cut off or broken.
pub(super) fn value(text: &str) -> (Value, Option<&str>) {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    if let Some(Ok(json)) = values.next() {
        return (json, text.get(values.byte_offset()..));
    }
    // The quote closes a string that is cut off; anywhere else it is one more error.
    let closed = repair_json(text).unwrap_or_else(|| text.to_owned()) + "\"";
    let mut json = Value::Null;
    // What was read before the error counts.
    let _ = Target(&mut json).deserialize(&mut serde_json::Deserializer::from_str(&closed));
    (json, None)
}

/// Value that is filled in while its text is read.
struct Target<'v>(&'v mut Value);

impl Target<'_> {
    fn set<E>(self, value: impl Into<Value>) -> Result<(), E> {
        *self.0 = value.into();
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Target<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Target<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.set(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.set(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.set(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.set(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.set(value)
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.set(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        *self.0 = Value::Array(Vec::new());
        let Value::Array(list) = self.0 else { return Err(A::Error::custom("no list")) };
        loop {
            let mut element = Value::Null;
            let read = elements.next_element_seed(Target(&mut element));
            match read {
                Ok(None) => return Ok(()),
                Err(_) if element.is_null() => {}
                Ok(Some(())) | Err(_) => list.push(element),
            }
            read?;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        *self.0 = Value::Object(Map::new());
        let Value::Object(map) = self.0 else { return Err(A::Error::custom("no object")) };
        while let Some(key) = fields.next_key::<String>()? {
            let mut value = Value::Null;
            let read = fields.next_value_seed(Target(&mut value));
            if read.is_ok() || !value.is_null() {
                map.insert(key, value);
            }
            read?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &str, rest: Option<&str>) {
        let (json, after) = value(text);
        assert_eq!((json.to_string().as_str(), after), (expected, rest));
    }

    #[test]
    fn a_whole_value_says_what_follows() {
        check(r#"{"a":[1,true,null,"x"]} {"b""#, r#"{"a":[1,true,null,"x"]}"#, Some(r#" {"b""#));
    }

    #[test]
    fn what_is_there_of_a_cut_value_is_read() {
        check(r#"{"a":[{"b":"some wo"#, r#"{"a":[{"b":"some wo"}]}"#, None);
        check(r#"{"a":1,"b"#, r#"{"a":1}"#, None);
        check("{\"a\":\"x\ty\",\"b\":", r#"{"a":"x\ty"}"#, None);
        check("[", "[]", None);
        check("oops", "null", None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[\\[{}\\],:\"\\\\a1é \n]{0,60}") {
            let _ = value(&text);
        }
    }

    #[test]
    fn deep_nesting_is_survived() {
        let _ = value(&"[".repeat(60_000));
        let _ = value(&"{\"a\":".repeat(10_000));
    }
}
