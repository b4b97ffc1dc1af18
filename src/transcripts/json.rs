//! JSON values of any shape, for formats with many dialects. For records of known shape see
//! [`fields`](super::fields), which builds no tree.

use crate::text::lenient_json::repaired;
use serde_json::Value;
use serde_json::value::RawValue;

/// Parses one value, repairing the text if necessary. The error never contains content of the text.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let error = match serde_json::from_str(text) {
        Ok(json) => return Ok(json),
        Err(error) => error,
    };
    let repaired = repaired(text).map_or(Err(error), |text| serde_json::from_str(&text));
    repaired.map_err(|error| match error.is_syntax() || error.is_eof() {
        // A syntax error names an expected token and a position, never content.
        true => format!("expected one JSON value: {error}"),
        false => "expected one JSON value".to_owned(),
    })
}

/// Lenient access: a value of unexpected shape is treated as empty.
pub(super) trait JsonExt {
    fn json(&self) -> &Value;

    /// Returns the field `key`, or null. An object has few, so that comparing their names is faster than hashing one.
    fn field(&self, key: &str) -> &Value {
        self.map().find(|(name, _)| *name == key).map_or(&Value::Null, |(_, value)| value)
    }

    /// Returns the string field `key`, or an empty string.
    fn text(&self, key: &str) -> &str {
        self.field(key).as_str().unwrap_or_default()
    }

    /// Returns the first of `keys` that is a non-empty string.
    fn first_text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().map(|key| self.text(key)).find(|text| !text.is_empty())
    }

    /// Returns the first of `keys` that is not null, or null.
    fn first(&self, keys: &[&str]) -> &Value {
        keys.iter().map(|key| self.field(key)).find(|it| !it.is_null()).unwrap_or(&Value::Null)
    }

    /// True if the value is an object with a field `key` that is not null.
    fn has(&self, key: &str) -> bool {
        !self.field(key).is_null()
    }

    /// Returns a number, including one written as a string.
    fn number(&self) -> Option<f64> {
        self.json().as_f64().or_else(|| self.json().as_str()?.trim().parse().ok())
    }

    /// Returns a small integer, such as an exit code.
    fn int(&self) -> Option<i32> {
        i32::try_from(self.json().as_i64()?).ok()
    }

    fn list(&self) -> &[Value] {
        self.json().as_array().map_or(&[], Vec::as_slice)
    }

    fn map(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.json().as_object().into_iter().flatten()
    }
}

impl JsonExt for Value {
    fn json(&self) -> &Value {
        self
    }
}

/// Parses the values of a line: a client may have appended to a line without an end. Returns the
/// objects before an error too.
pub(super) fn parse_line(text: &str) -> (Vec<Value>, Option<String>) {
    let error = match parse(text) {
        Ok(json) => return (vec![json], None),
        Err(error) => error,
    };
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let Ok(value) = value else {
            values.retain(Value::is_object);
            return (values, Some(error));
        };
        values.push(value);
    }
    (values, None)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Parsed {
    Valid,
    Repaired,
    /// Only the first of several values.
    First,
    Invalid,
}

/// Parses an object with `read`, repairing it if necessary.
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
    let first = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>().next();
    if first.and_then(Result::ok).is_some_and(|first| read(first.get()).is_ok()) {
        return Parsed::First;
    }
    match repaired(text).map(|repaired| read(&repaired)) {
        Some(Ok(())) => Parsed::Repaired,
        Some(Err(_)) | None => Parsed::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let got = parse(text).map(|json| json.to_string());
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
    fn a_line_may_hold_several_values() {
        for (text, count, is_whole) in
            [(r#"{"a":1}{"b":2}"#, 2, true), (r#"{"a":1}{"b":"#, 1, false), ("12 {", 0, false)]
        {
            let (values, error) = parse_line(text);
            assert_eq!((values.len(), error.is_none()), (count, is_whole));
        }
        for (text, expected) in [
            (r#"{"a":1}"#, Parsed::Valid),
            (r#"{"a":1}{"b":2}"#, Parsed::First),
            (r#"{"a":1"#, Parsed::Invalid),
        ] {
            let read = |text: &str| serde_json::from_str::<Value>(text).map(drop);
            assert_eq!(parse_object(text, read), expected);
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_panic() {
        assert!(parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn an_error_holds_no_words() {
        let error = parse(r#"{"secret": hunter2}"#).unwrap_err();
        assert!(error.starts_with("expected one JSON value"), "{error}");
        assert!(!error.contains("hunter"));
    }
}
