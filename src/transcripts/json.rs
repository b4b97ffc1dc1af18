//! JSON values of any shape, for the formats that have a dozen dialects, and the repair of JSON that a strict
//! parser refuses. Records of a known shape are read with [`fields`](super::fields), which builds no tree.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Any JSON value; strings are borrowed where they have no escapes. Fields keep their order; of fields with
/// one name the last one counts.
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
    /// Reads one value; if that fails, once more with the text repaired into `store`. The error never holds
    /// words of the text.
    pub(super) fn parse(text: &'a str, store: &'a mut String) -> Result<Json<'a>, String> {
        let error = match serde_json::from_str(text) {
            Ok(json) => return Ok(json),
            Err(error) => error,
        };
        let Some(repaired) = repair_json(text) else { return Err(expected(&error)) };
        *store = repaired;
        serde_json::from_str(store).map_err(|error| expected(&error))
    }

    /// Returns the field `key` of an object, or null.
    pub(super) fn get(&self, key: &str) -> &Json<'a> {
        let null: &Json<'_> = &NULL;
        self.map().iter().rev().find(|(name, _)| name == key).map_or(null, |(_, value)| value)
    }

    /// True if the value is an object with a field `key`, which may be null.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.map().iter().any(|(name, _)| name == key)
    }

    /// True if the value is an object with a field `key` that is not null.
    pub(super) fn has(&self, key: &str) -> bool {
        !self.get(key).is_null()
    }

    /// Returns the field `type`, empty if it is not a string.
    pub(super) fn kind(&self) -> &str {
        self.get("type").text().unwrap_or_default()
    }

    /// Returns the first of `keys` that is a string and not empty.
    pub(super) fn first_text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().filter_map(|key| self.get(key).text()).find(|text| !text.is_empty())
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn bool(&self) -> Option<bool> {
        if let Json::Bool(bool) = self { Some(*bool) } else { None }
    }

    /// Returns a number, also one written as a string.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Json::Number(number) => number.as_f64(),
            Json::Text(text) => text.trim().parse().ok(),
            Json::Null | Json::Bool(_) | Json::List(_) | Json::Map(_) => None,
        }
    }

    /// Returns the elements of a list; none for anything else.
    pub(super) fn list(&self) -> &[Json<'a>] {
        if let Json::List(list) = self { list } else { &[] }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Json::List(_))
    }

    /// Returns the fields of an object; none for anything else.
    pub(super) fn map(&self) -> &[(Cow<'a, str>, Json<'a>)] {
        if let Json::Map(map) = self { map } else { &[] }
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self, Json::Map(_))
    }

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

    /// Writes the value as JSON without spaces.
    pub(super) fn compact(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn expected(error: &serde_json::Error) -> String {
    // A syntax error names a token that was expected and a position, never content.
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

/// Result of parsing a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Parsed {
    Valid,
    Repaired,
    Invalid,
}

/// Lets `read` parse an object, repaired if necessary.
pub(super) fn parse_object(
    text: &str,
    mut read: impl FnMut(&str) -> serde_json::Result<()>,
) -> Parsed {
    if !text.trim_start().starts_with('{') {
        return Parsed::Invalid;
    }
    if read(text).is_ok() {
        return Parsed::Valid;
    }
    match repair_json(text).map(|repaired| read(&repaired)) {
        Some(Ok(())) => Parsed::Repaired,
        Some(Err(_)) | None => Parsed::Invalid,
    }
}

/// Replaces lone surrogate escapes, which clients write when they cut a string inside an emoji, by `\ufffd`;
/// escapes control characters inside strings and blanks them between. `None` if nothing was repaired.
pub(super) fn repair_json(text: &str) -> Option<String> {
    let mut out = String::new();
    let bytes = text.as_bytes();
    let (mut at, mut kept, mut in_string, mut changed) = (0, 0, false, false);
    while let Some(&byte) = bytes.get(at) {
        let (length, replacement) = match byte {
            b'"' => {
                in_string = !in_string;
                (1, None)
            }
            b'\\' if in_string => escape(bytes.get(at..).unwrap_or_default()),
            0..=0x1f if in_string => (1, Some(format!("\\u{byte:04x}"))),
            b'\t' | b'\n' | b'\r' => (1, None),
            0..=0x1f => (1, Some(" ".to_owned())),
            _ => (1, None),
        };
        if let Some(replacement) = replacement {
            out.push_str(text.get(kept..at).unwrap_or_default());
            out.push_str(&replacement);
            kept = at + length;
            changed = true;
        }
        at += length;
    }
    out.push_str(text.get(kept..).unwrap_or_default());
    changed.then_some(out)
}

/// Length of the escape at the beginning of `bytes`, and its replacement if it is invalid.
fn escape(bytes: &[u8]) -> (usize, Option<String>) {
    match unit(bytes) {
        Some(0xd800..=0xdbff) => match bytes.get(6..).and_then(unit) {
            Some(0xdc00..=0xdfff) => (12, None),
            _ => (6, Some("\\ufffd".to_owned())),
        },
        Some(0xdc00..=0xdfff) => (6, Some("\\ufffd".to_owned())),
        Some(_) => (6, None),
        // The escaped byte may be a quote or a backslash, which must be skipped.
        None => (if bytes.get(1).is_some_and(u8::is_ascii) { 2 } else { 1 }, None),
    }
}

/// UTF-16 unit of `\uXXXX` at the beginning of `bytes`.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let hex = |value: Option<u32>, digit: &u8| Some(value? * 16 + char::from(*digit).to_digit(16)?);
    digits.iter().fold(Some(0), hex)
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

#[cfg(test)]
mod repair_tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(input: &str, expected: Option<&str>) {
        let repaired = repair_json(input);
        assert_eq!(repaired.as_deref(), expected);
        if let Some(once) = repaired {
            assert_eq!(repair_json(&once), None, "repairing twice changes nothing");
        }
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_kept() {
        check(r#"{"a":"x\ud83d y"}"#, Some(r#"{"a":"x\ufffd y"}"#));
        check(r#"{"a":"\ude00"}"#, Some(r#"{"a":"\ufffd"}"#));
        check(r#"{"a":"\ud83d\ude00"}"#, None);
        check(r#"{"a":"\ud83d\ud83d\ude00"}"#, Some(r#"{"a":"\ufffd\ud83d\ude00"}"#));
    }

    #[test]
    fn an_escaped_backslash_is_no_escape() {
        check(r#"{"a":"\\ud83d"}"#, None);
        check(r#"{"a":"\\\ud83d"}"#, Some(r#"{"a":"\\\ufffd"}"#));
    }

    #[test]
    fn control_characters_are_escaped_inside_strings_and_blanked_between_them() {
        check("{\n\"a\":\"x\u{0}\ty\"}", Some("{\n\"a\":\"x\\u0000\\u0009y\"}"));
        check("{\n\t\"a\": 1}\u{0}", Some("{\n\t\"a\": 1} "));
        check("{\n\t\"a\": 1}", None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[\\\\ud83e\"\u{0}é{}]{0,40}") {
            if let Some(once) = repair_json(&text) {
                prop_assert_eq!(repair_json(&once), None);
            }
        }
    }
}
