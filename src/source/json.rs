//! A JSON value of any shape, for the formats that have a dozen dialects. It borrows its strings from
//! the text it was read from: conversations are mostly long strings, and most are looked at once.
//! Records of one known shape are read with [`fields`](super::fields) instead, which builds no tree.

use super::repair;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Any JSON value. Fields keep their order; of fields with one name the last one counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Map(Vec<(Cow<'a, str>, Json<'a>)>),
}

static NULL: Json<'static> = Json::Null;

impl<'a> Json<'a> {
    /// Reads one value; if that fails, once more with the text repaired into `store`. The error
    /// says what was expected and never holds words of the text.
    pub(super) fn parse(text: &'a str, store: &'a mut String) -> Result<Json<'a>, String> {
        let error = match serde_json::from_str(text) {
            Ok(json) => return Ok(json),
            Err(error) => error,
        };
        let Some(repaired) = repair::json(text) else { return Err(expected(&error)) };
        *store = repaired;
        serde_json::from_str(store).map_err(|error| expected(&error))
    }

    /// The field `key` of an object, or null.
    pub(super) fn get(&self, key: &str) -> &Json<'a> {
        let null: &Json<'_> = &NULL;
        self.map().iter().rev().find(|(name, _)| name == key).map_or(null, |(_, value)| value)
    }

    /// Whether it is an object with a field `key` that is not null.
    pub(super) fn has(&self, key: &str) -> bool {
        !self.get(key).is_null()
    }

    /// The first of `keys` that is a string with something in it.
    pub(super) fn first_text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().filter_map(|key| self.get(key).text()).find(|text| !text.is_empty())
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::List(_) | Json::Map(_) => None,
        }
    }

    pub(super) fn bool(&self) -> Option<bool> {
        match self {
            Json::Bool(bool) => Some(*bool),
            Json::Null | Json::Text(_) | Json::Number(_) | Json::List(_) | Json::Map(_) => None,
        }
    }

    /// A number, also one written as a string.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Json::Number(number) => number.as_f64(),
            Json::Text(text) => text.trim().parse().ok(),
            Json::Null | Json::Bool(_) | Json::List(_) | Json::Map(_) => None,
        }
    }

    /// The elements of a list; none for anything else.
    pub(super) fn list(&self) -> &[Json<'a>] {
        match self {
            Json::List(list) => list,
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::Map(_) => &[],
        }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Json::List(_))
    }

    /// The fields of an object; none for anything else.
    pub(super) fn map(&self) -> &[(Cow<'a, str>, Json<'a>)] {
        match self {
            Json::Map(map) => map,
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => &[],
        }
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self, Json::Map(_))
    }

    /// The same value with strings of its own.
    pub(super) fn into_owned(self) -> Json<'static> {
        match self {
            Json::Null => Json::Null,
            Json::Bool(value) => Json::Bool(value),
            Json::Number(number) => Json::Number(number),
            Json::Text(text) => Json::Text(Cow::Owned(text.into_owned())),
            Json::List(list) => Json::List(list.into_iter().map(Json::into_owned).collect()),
            Json::Map(map) => {
                let own = |(key, value): (Cow<'a, str>, Json<'a>)| {
                    (Cow::Owned(key.into_owned()), value.into_owned())
                };
                Json::Map(map.into_iter().map(own).collect())
            }
        }
    }

    /// The value as JSON without spaces.
    pub(super) fn compact(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn expected(error: &serde_json::Error) -> String {
    // A syntax error names a token that was expected and a place, never content.
    if error.is_syntax() || error.is_eof() {
        format!("expected one JSON value: {error}")
    } else {
        "expected one JSON value".to_owned()
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json<'de>, E> {
        Ok(serde_json::Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json<'de>, A::Error> {
        let mut map = Vec::new();
        while let Some(Key(key)) = fields.next_key()? {
            map.push((key, fields.next_value()?));
        }
        Ok(Json::Map(map))
    }
}

/// A field's name, borrowed where it has no escapes: a plain `Cow` would always be owned.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Number(number) => number.serialize(serializer),
            Json::Text(text) => serializer.serialize_str(text),
            Json::List(list) => serializer.collect_seq(list),
            Json::Map(map) => {
                let mut fields = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map {
                    fields.serialize_entry(key, value)?;
                }
                fields.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let mut store = String::new();
        let got = Json::parse(text, &mut store).map(|json| json.compact());
        assert_eq!(got.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn what_is_read_is_written_back_without_spaces() {
        let text = r#"{ "b": [1, -2, 1.5, true, null], "a": "\u00e9\n" }"#;
        check(text, Ok(r#"{"b":[1,-2,1.5,true,null],"a":"é\n"}"#));
    }

    #[test]
    fn a_lone_surrogate_does_not_lose_the_value() {
        check(r#"{"a":"x\ud83d"}"#, Ok("{\"a\":\"x\u{fffd}\"}"));
    }

    #[test]
    fn deep_nesting_is_refused_without_panic() {
        let mut store = String::new();
        assert!(Json::parse(&"[".repeat(100_000), &mut store).is_err());
    }

    #[test]
    fn an_error_holds_no_words() {
        let mut store = String::new();
        let error = Json::parse(r#"{"secret": hunter2}"#, &mut store).unwrap_err();
        assert!(error.starts_with("expected one JSON value"), "{error}");
        assert!(!error.contains("hunter"));
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let mut store = String::new();
        let json = Json::parse(r#"{"k":"v"}"#, &mut store).unwrap();
        assert!(matches!(json.map(), [(Cow::Borrowed("k"), Json::Text(Cow::Borrowed("v")))]));
    }
}
