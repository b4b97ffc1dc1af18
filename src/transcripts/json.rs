//! JSON values of any shape, for formats with many dialects, and repair of JSON that a strict
//! parser rejects. For records of known shape see [`fields`](super::fields), which builds no tree.

use serde_json::Value;

/// Parses one value, repairing the text if necessary. The error never contains content of the text.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let error = match serde_json::from_str(text) {
        Ok(json) => return Ok(json),
        Err(error) => error,
    };
    let repaired = repair_json(text).map_or(Err(error), |text| serde_json::from_str(&text));
    repaired.map_err(|error| match error.is_syntax() || error.is_eof() {
        // A syntax error names an expected token and a position, never content.
        true => format!("expected one JSON value: {error}"),
        false => "expected one JSON value".to_owned(),
    })
}

/// Lenient access: a value of unexpected shape is treated as empty.
pub(super) trait JsonExt {
    /// Returns the string field `key`, or an empty string.
    fn text(&self, key: &str) -> &str;

    /// Returns the first of `keys` that is a non-empty string.
    fn first_text(&self, keys: &[&str]) -> Option<&str>;

    /// Returns the first of `keys` that is not null, or null.
    fn first(&self, keys: &[&str]) -> &Value;

    /// True if the value is an object with a field `key` that is not null.
    fn has(&self, key: &str) -> bool;

    /// Returns a number, including one written as a string.
    fn number(&self) -> Option<f64>;

    /// Returns a small integer, such as an exit code.
    fn int(&self) -> Option<i32>;

    fn list(&self) -> &[Value];

    fn map(&self) -> impl Iterator<Item = (&String, &Value)>;
}

impl JsonExt for Value {
    fn text(&self, key: &str) -> &str {
        self[key].as_str().unwrap_or_default()
    }

    fn first_text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().map(|key| self.text(key)).find(|text| !text.is_empty())
    }

    fn first(&self, keys: &[&str]) -> &Value {
        keys.iter().map(|key| &self[*key]).find(|it| !it.is_null()).unwrap_or(&Value::Null)
    }

    fn has(&self, key: &str) -> bool {
        !self[key].is_null()
    }

    fn number(&self) -> Option<f64> {
        self.as_f64().or_else(|| self.as_str()?.trim().parse().ok())
    }

    fn int(&self) -> Option<i32> {
        i32::try_from(self.as_i64()?).ok()
    }

    fn list(&self) -> &[Value] {
        self.as_array().map_or(&[], Vec::as_slice)
    }

    fn map(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.as_object().into_iter().flatten()
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Parsed {
    Valid,
    Repaired,
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
    match repair_json(text).map(|repaired| read(&repaired)) {
        Some(Ok(())) => Parsed::Repaired,
        Some(Err(_)) | None => Parsed::Invalid,
    }
}

/// Replaces lone surrogate escapes, which clients write when they cut a string inside an emoji,
/// with `\ufffd`; escapes control characters in strings, blanks others. `None` if unchanged.
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

/// UTF-16 code unit of `\uXXXX` at the beginning of `bytes`.
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
