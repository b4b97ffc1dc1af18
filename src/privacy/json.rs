//! Redaction of JSON: every string is decoded, redacted separately and encoded again, so that a
//! private block never extends into the next value.

use super::block::{before_first_tag, private_spans};
use super::mask::Gate;
use super::redacted::{Redacted, Report, spliced};
use super::secret::PLACEHOLDER;
use regex::{Captures, Match, Regex};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// Maximum depth of JSON encoded in JSON strings.
const ENCODINGS_MAX: usize = 3;

impl Gate {
    /// Redacts a model's answer: JSON, JSON within prose, or any text. JSON stays valid: an
    /// unclosed private tag hides at most the rest of its own string.
    pub(crate) fn redact_json(&self, text: &str) -> Redacted {
        let text = unescape_plain(text);
        let Some(json) = json_range(&text) else { return self.redact(&text) };
        let (head, json, tail) = (&text[..json.start], &text[json.clone()], &text[json.end..]);
        let around = |json: &str| format!("{head}{json}{tail}");
        let mut values = self.redact_strings(json, ENCODINGS_MAX, false);
        // Tags in different strings would hide everything between them.
        if !private_spans(&around(&values)).0.is_empty() {
            values = self.redact_strings(json, ENCODINGS_MAX, true);
        }
        // A key may make its value a secret, so the whole text is redacted once more.
        let whole = around(&values);
        let passed = self.redact(&whole);
        if passed.as_str() == whole || json_range(passed.as_str()).is_some() {
            return passed;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(&values) else { return passed };
        self.redact_values(None, &mut value);
        let again = self.redact(&around(&value.to_string()));
        if json_range(again.as_str()).is_some() { again } else { passed }
    }

    /// Redacts the strings of a JSON text, keys included; all other bytes stay. With `hides_rest`, an unclosed private
    /// tag hides the rest of its string.
    fn redact_strings(&self, json: &str, encodings: usize, hides_rest: bool) -> String {
        static LITERAL: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r#"(?s)"(?:[^"\\]|\\.)*(?:"|\\?\z)"#).ok());
        let Some(literal) = LITERAL.as_ref() else { return json.to_owned() };
        let redacted = |it: Match<'_>| self.redact_literal(it.as_str(), encodings, hides_rest);
        spliced(json, literal.find_iter(json).map(|it| (it.range(), redacted(it))))
    }

    fn redact_literal(&self, literal: &str, encodings: usize, hides_rest: bool) -> String {
        let Ok(words) = serde_json::from_str::<String>(literal) else {
            // Lone surrogate; the answer decoder repairs it later.
            return self.masked(literal, &mut Report::default()).into_owned();
        };
        // The answer decoder drops U+0000, so it must not split a secret here.
        let words = words.replace('\0', "");
        let nested = encodings > 0 && words.trim_start().starts_with(['{', '[', '"']);
        let passed = match json_range(&words).filter(|_| nested) {
            Some(_) => Cow::Owned(self.redact_strings(&words, encodings - 1, hides_rest)),
            None => self.masked(&words, &mut Report::default()),
        };
        let head = before_first_tag(&passed).filter(|_| hides_rest).unwrap_or(&passed);
        if head == words { literal.to_owned() } else { Value::from(head).to_string() }
    }

    /// Redacts every key and value; `key` is the nearest enclosing one, also that of a list.
    fn redact_values(&self, key: Option<&str>, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|it| self.redact_values(key, it)),
            Value::Object(map) => {
                let passed = |(key, mut item): (String, Value)| {
                    self.redact_values(Some(&key), &mut item);
                    (self.redact(&key).as_str().to_owned(), item)
                };
                *map = std::mem::take(map).into_iter().map(passed).collect();
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
                if let Value::Number(number) = value {
                    let raw = number.to_string();
                    let passed = self.redact(&raw);
                    if passed.as_str() != raw {
                        *value = Value::String(passed.as_str().to_owned());
                    }
                }
                if let Some(key) = key {
                    self.redact_named(key, value);
                }
            }
        }
    }

    /// Redacts a value that its key makes a secret; masks it whole if the mask spans both.
    fn redact_named(&self, key: &str, value: &mut Value) {
        let pair = Value::Object(Map::from_iter([(key.to_owned(), value.clone())])).to_string();
        let passed = self.redact(&pair);
        if passed.as_str() == pair {
            return;
        }
        let parsed = serde_json::from_str::<Map<String, Value>>(passed.as_str());
        let mut values = parsed.unwrap_or_default().into_iter().map(|(_, value)| value);
        // A value that cannot be separated from its surroundings is masked as a whole.
        *value = match (values.next(), values.next()) {
            (Some(only), None) => only,
            _ => Value::String(PLACEHOLDER.to_owned()),
        };
    }
}

/// Range of the JSON in `text`: all of it, or the object or list of texts after prose without a private tag.
fn json_range(text: &str) -> Option<Range<usize>> {
    let is_json = |range: &Range<usize>| {
        text.get(range.clone()).is_some_and(|json| serde_json::from_str::<IgnoredAny>(json).is_ok())
    };
    if text.contains(['{', '[']) && is_json(&(0..text.len())) {
        return Some(0..text.len());
    }
    let within = |open, close| Some(text.find(open)?..text.rfind(close)? + 1);
    let (object, list) = (within('{', '}'), within('[', ']'));
    // A list within an object is not the outermost value.
    let is_outermost =
        |list: &Range<usize>| text.find('{').is_none_or(|object| list.start < object);
    // Lists without a text, such as `[1]`, are marks in prose.
    let has_texts = |list: &Range<usize>| text.get(list.clone()).is_some_and(|it| it.contains('"'));
    let list = list.filter(is_outermost).filter(has_texts);
    let is_after_prose = |range: &Range<usize>| {
        text.get(..range.start).is_some_and(|prose| before_first_tag(prose).is_none())
    };
    [list, object].into_iter().flatten().find(|range| is_after_prose(range) && is_json(range))
}

/// Decodes `\u0061` escapes of printable ASCII, which would hide words from the patterns. The JSON
/// is equivalent: quotes, backslashes and control characters keep their escapes.
fn unescape_plain(text: &str) -> Cow<'_, str> {
    // A backslash escapes the next character, even another backslash.
    static ESCAPE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?s)\\(?:u00([2-7][0-9A-Fa-f])|.)").ok());
    let Some(escape) = ESCAPE.as_ref().filter(|_| text.contains("\\u00")) else {
        return Cow::Borrowed(text);
    };
    escape.replace_all(text, |found: &Captures<'_>| {
        let code = found.get(1).and_then(|it| u8::from_str_radix(it.as_str(), 16).ok());
        match code.map(char::from) {
            Some(letter @ ' '..='~') if !matches!(letter, '"' | '\\') => letter.to_string(),
            _ => found[0].to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::Pii;
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let gate = Gate::new(&Pii::ALL);
        let once = gate.redact_json(text);
        assert_eq!(once.as_str(), expected);
        assert_eq!(gate.redact_json(once.as_str()), once, "redacting twice changes nothing");
    }

    #[test]
    fn tag_hides_at_most_the_rest_of_its_string() {
        check(
            r#"{"a": ["x <private>y"], "b": "u </private> v", "c": "d"}"#,
            r#"{"a": ["x "], "b": "u </private> v", "c": "d"}"#,
        );
        check(r#"{"a":"<private>y","b":"z"}"#, r#"{"a":"","b":"z"}"#);
        check(r#"["<private>a", "b</private>"]"#, r#"["", "b</private>"]"#);
        check(r#"["x", "<private>a", "b"]"#, r#"["x", "", "b"]"#);
        check(r#"Here: ["<private>a", "b"]"#, r#"Here: ["", "b"]"#);
        check(r#"Here [1]: see"#, r#"Here [1]: see"#);
        check(r#"{"a":"p\n<private>\ny","b":"z"}"#, r#"{"a":"p\n","b":"z"}"#);
        check(r#"{"a":"x <private>y</private> z","b":1}"#, r#"{"a":"x  z","b":1}"#);
        check(r#"{"a":"the `<private>` tag","b":1}"#, r#"{"a":"the `<private>` tag","b":1}"#);
        check(
            r#"{"x":"{\"a\":\"q <private>y\",\"b\":\"</private> z\"}"}"#,
            r#"{"x":"{\"a\":\"q \",\"b\":\"</private> z\"}"}"#,
        );
    }

    #[test]
    fn json_between_prose_is_redacted_by_string() {
        check(
            "Here:\n```json\n{\"a\":\"x <private>y\",\"b\":\"</private> z\"}\n```",
            "Here:\n```json\n{\"a\":\"x \",\"b\":\"</private> z\"}\n```",
        );
        check("<private>\n{\"a\":\"x\"}\n</private>\nyes", "yes");
        check(r#"{"a":"x <private>y</private> z"#, r#"{"a":"x  z"#);
    }

    #[test]
    fn bytes_of_public_json_stay() {
        for text in [r#"{ "a" : 1.50, "a": [ "\u0000", "\ud800", "\u00e9" ] }"#, "[]", "3", ""] {
            check(text, text);
        }
    }

    #[test]
    fn plain_letters_lose_their_escapes_and_nothing_else_does() {
        let check = |text: &str, expected: &str| assert_eq!(unescape_plain(text), expected);
        check(r#"{"a":"\u0073k-\u0061"}"#, r#"{"a":"sk-a"}"#);
        check(r#""\u0022 \u005c \u000a \u00e9 \n""#, r#""\u0022 \u005c \u000a \u00e9 \n""#);
        check(r#""\\u0061 \\\u0061""#, r#""\\u0061 \\a""#);
        check(r"cut \u00", r"cut \u00");
        check(r"cut \u006", r"cut \u006");
        check(r"\u00é1 \u+061 \", r"\u00é1 \u+061 \");
    }

    /// Checks that `secret` is masked, and that the result is JSON and a fixed point of the gate.
    #[track_caller]
    fn check_hidden(text: &str, secret: &str) {
        let gate = Gate::new(&Pii::ALL);
        let kept = gate.redact_json(text);
        assert!(!kept.as_str().contains(secret), "{text} -> {}", kept.as_str());
        assert!(json_range(kept.as_str()).is_some(), "{text} -> {}", kept.as_str());
        assert_eq!(gate.redact(kept.as_str()), kept);
    }

    #[test]
    fn key_names_a_secret_beside_what_breaks_json() {
        for breaker in [r#""phone": 5551234567"#, r#""card": 4111111111111111"#] {
            for planted in [
                r#""password": "hunter2secret""#,
                r#""password":"hunter2secret \"and\" more""#,
                r#""p\u0061ssword":"hunter2secret""#,
                r#""login": {"password": "hunter2secret"}"#,
                r#""list": [{"password": "hunter2secret"}]"#,
            ] {
                check_hidden(&format!("{{{breaker}, {planted}}}"), "hunter2secret");
                check_hidden(&format!("{{{planted}, {breaker}}}"), "hunter2secret");
            }
        }
    }

    #[test]
    fn number_that_is_masked_turns_into_text() {
        check_hidden(r#"{"card": [4111111111111111], "n": 3}"#, "4111111111111111");
    }

    proptest::proptest! {
        #[test]
        fn json_stays_the_same_json(text: String, escaped: Vec<bool>) {
            let letters = text.chars().zip(escaped.iter().chain(std::iter::repeat(&false)));
            let inner: String = letters
                .map(|(letter, escape)| match escape {
                    true if u32::from(letter) < 0x1_0000 => format!("\\u{:04x}", u32::from(letter)),
                    true | false => {
                        let quoted = Value::from(letter.to_string()).to_string();
                        quoted[1..quoted.len() - 1].to_owned()
                    }
                })
                .collect();
            let json = format!("\"{inner}\"");
            let value = |json: &str| serde_json::from_str::<Value>(json).unwrap();
            assert_eq!(value(&unescape_plain(&json)), value(&json));
            assert_eq!(unescape_plain(&unescape_plain(&json)), unescape_plain(&json));
        }

        #[test]
        fn every_value_without_a_tag_survives(tags: Vec<proptest::sample::Index>) {
            let tagged = ["<private>", "x <private> y", "z </private>", "<private>\nq", "w"];
            let mut values: Vec<String> = Vec::new();
            for tag in &tags {
                values.push((*tag.get(&tagged)).to_owned());
                values.push("public".to_owned());
            }
            let json = serde_json::json!({ "values": values }).to_string();
            let passed = Gate::new(&[]).redact_json(&json);
            let read: Value = serde_json::from_str(passed.as_str()).unwrap();
            let public = read["values"].as_array().unwrap().iter().skip(1).step_by(2);
            assert!(public.eq(values.iter().skip(1).step_by(2)), "{json} -> {}", passed.as_str());
        }
    }
}
