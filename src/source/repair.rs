//! Makes JSON readable that a strict parser refuses: lone surrogate escapes, which clients write
//! when they cut a string in the middle of an emoji, and bare control characters.

use std::fmt::Write as _;

/// How a line parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Parsed {
    /// As it stands.
    AsIs,
    /// After it was repaired.
    Repaired,
    /// Not at all.
    Not,
}

/// Lets `read` parse an object, repaired if it has to be.
pub(super) fn parse(text: &str, mut read: impl FnMut(&str) -> serde_json::Result<()>) -> Parsed {
    if !text.trim_start().starts_with('{') {
        return Parsed::Not;
    }
    if read(text).is_ok() {
        return Parsed::AsIs;
    }
    match json(text).map(|repaired| read(&repaired)) {
        Some(Ok(())) => Parsed::Repaired,
        Some(Err(_)) | None => Parsed::Not,
    }
}

/// The text with lone surrogate escapes replaced by `\ufffd`, and control characters escaped inside
/// strings and blanked between them; none if there is nothing of that kind to repair. Lengths inside strings may change,
/// structure never does.
pub(super) fn json(text: &str) -> Option<String> {
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
            0..=0x1f if in_string => {
                let mut escaped = String::new();
                let _ = write!(escaped, "\\u{byte:04x}");
                (1, Some(escaped))
            }
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

/// How long the escape at the beginning of `bytes` is, and what to write instead, if anything.
fn escape(bytes: &[u8]) -> (usize, Option<String>) {
    match unit(bytes) {
        Some(0xd800..=0xdbff) => match bytes.get(6..).and_then(unit) {
            Some(0xdc00..=0xdfff) => (12, None),
            _ => (6, Some("\\ufffd".to_owned())),
        },
        Some(0xdc00..=0xdfff) => (6, Some("\\ufffd".to_owned())),
        Some(_) => (6, None),
        // The escaped byte may be a quote or a backslash, which must not be looked at again.
        None => (if bytes.get(1).is_some_and(u8::is_ascii) { 2 } else { 1 }, None),
    }
}

/// The UTF-16 unit of `\uXXXX` at the beginning of `bytes`.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let hex = |value: Option<u32>, digit: &u8| Some(value? * 16 + char::from(*digit).to_digit(16)?);
    digits.iter().fold(Some(0), hex)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(input: &str, expected: Option<&str>) {
        let repaired = json(input);
        assert_eq!(repaired.as_deref(), expected);
        if let Some(once) = repaired {
            assert_eq!(json(&once), None, "repairing twice changes nothing");
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
            if let Some(once) = json(&text) {
                prop_assert_eq!(json(&once), None);
            }
        }
    }
}
