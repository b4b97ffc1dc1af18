//! Arguments of a call behind the gate, still JSON. A mask that breaks JSON (it may begin in one string
//! and end in another, or stand for a number) would cost the whole answer.

use crate::privacy::Redacted;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// What stands for a value that cannot be told apart from what the gate masked in it.
const HIDDEN: &str = "<SECRET>";

/// `text` behind the gate. Where that breaks its JSON each value passes with its key beside it, which may
/// be what makes it a secret, and then all of it once more. What is broken even then stays broken: it
/// costs an answer rather than a secret.
pub(super) fn still_json(text: &str, redact: impl Fn(&str) -> Redacted) -> Redacted {
    let passed = redact(text);
    if passed.as_str() == text || is_json(passed.as_str()) {
        return passed;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return passed };
    redact_values(None, &mut value, &redact);
    let again = redact(&value.to_string());
    if is_json(again.as_str()) { again } else { passed }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Redacts every key and value; `key` is the nearest one above, which names items of a list too.
/// JSON that was parsed is of bounded depth.
fn redact_values(key: Option<&str>, value: &mut Value, redact: &impl Fn(&str) -> Redacted) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| redact_values(key, item, redact)),
        Value::Object(map) => {
            let passed = |(key, mut item): (String, Value)| {
                redact_values(Some(&key), &mut item, redact);
                (redact(&key).as_str().to_owned(), item)
            };
            *map = std::mem::take(map).into_iter().map(passed).collect();
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
            redact_scalar(value, redact);
            if let Some(key) = key {
                redact_named(key, value, redact);
            }
        }
    }
}

/// Redacts a value by itself. A number that is masked turns into text.
fn redact_scalar(value: &mut Value, redact: &impl Fn(&str) -> Redacted) {
    let raw = match value {
        Value::String(text) => std::mem::take(text),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return,
    };
    let passed = redact(&raw);
    if value.is_string() || passed.as_str() != raw {
        *value = Value::String(passed.as_str().to_owned());
    }
}

/// Redacts a value for what its key says of it; all of it where the two cannot be told apart after.
fn redact_named(key: &str, value: &mut Value, redact: &impl Fn(&str) -> Redacted) {
    let pair = Value::Object(Map::from_iter([(key.to_owned(), value.clone())])).to_string();
    let passed = redact(&pair);
    if passed.as_str() == pair {
        return;
    }
    let parsed = serde_json::from_str::<Map<String, Value>>(passed.as_str()).unwrap_or_default();
    let mut values = parsed.into_iter().map(|(_, value)| value);
    *value = match (values.next(), values.next()) {
        (Some(only), None) => only,
        _ => Value::String(HIDDEN.to_owned()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Gate, Pii};

    #[test]
    fn mask_that_breaks_json_is_laid_on_each_string() {
        let hide_rest = |text: &str| {
            let seen = text.split("<private>").next().unwrap_or_default();
            Redacted::reopened(seen.to_owned())
        };
        let check = |text: &str, expected: &str| {
            assert_eq!(still_json(text, hide_rest).as_str(), expected);
        };
        check(r#"{"a":["x <private>y"],"b":"z"}"#, r#"{"a":["x "],"b":"z"}"#);
        check(r#"{"a": "x"}"#, r#"{"a": "x"}"#);
        check(r#"{"a":"x <private>y"#, r#"{"a":"x "#);
    }

    /// `secret` is gone, and what is left is JSON and passes the gate unchanged.
    #[track_caller]
    fn check_hidden(text: &str, secret: &str) {
        let gate = Gate::new(&Pii::ALL);
        assert!(!is_json(gate.redact(text).as_str()), "the mask does not break {text}");
        let kept = still_json(text, |text| gate.redact(text));
        assert!(!kept.as_str().contains(secret), "{text} -> {}", kept.as_str());
        assert!(is_json(kept.as_str()), "{text} -> {}", kept.as_str());
        assert_eq!(gate.redact(kept.as_str()).as_str(), kept.as_str());
    }

    #[test]
    fn key_names_a_secret_beside_what_breaks_json() {
        for breaker in [r#""phone": 5551234567"#, r#""card": 4111111111111111"#] {
            for planted in [
                r#""password": "hunter2secret""#,
                r#""password":"hunter2secret \"and\" more""#,
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

    #[test]
    fn pair_that_cannot_be_told_apart_is_hidden() {
        let swallow = |text: &str| Redacted::reopened(text.replace(r#""pin":"1"#, "<GONE>"));
        let kept = still_json(r#"{"pin":"1234","a":"b"}"#, swallow);
        assert_eq!(kept.as_str(), r#"{"pin":"<SECRET>","a":"b"}"#);
    }
}
