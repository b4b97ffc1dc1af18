//! Parses the beginning of a JSON value that may be cut off anywhere. For detection only.

use serde_json::{Map, Value};

/// Maximum depth of the tree; deeper values do not distinguish formats.
const DEPTH_MAX: usize = 24;

/// Returns the first value of `text`, as much as there is of it, and the text after it; `None` if
/// the value is cut off or broken.
pub(super) fn value(text: &str) -> (Value, Option<&str>) {
    let mut parser = Parser { bytes: text.as_bytes(), at: 0, broken: false };
    let json = parser.value(0);
    let rest = if parser.broken { None } else { text.get(parser.at..) };
    (json, rest)
}

struct Parser<'t> {
    bytes: &'t [u8],
    at: usize,
    broken: bool,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<u8> {
        let space = |b: &&u8| b.is_ascii_whitespace();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(space).count();
        self.bytes.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.next() {
            Some(b'{' | b'[') if depth >= DEPTH_MAX => self.stop(),
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Value::String(self.string()),
            Some(_) => self.scalar(),
            None => self.stop(),
        }
    }

    fn stop(&mut self) -> Value {
        self.broken = true;
        Value::Null
    }

    fn map(&mut self, depth: usize) -> Value {
        let mut map = Map::new();
        self.at += 1;
        while !self.broken {
            match self.next() {
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(b',') => self.at += 1,
                Some(b'"') => {
                    let key = self.string();
                    if self.broken || self.next() != Some(b':') {
                        self.broken = true;
                        break;
                    }
                    self.at += 1;
                    map.insert(key, self.value(depth + 1));
                }
                Some(_) | None => self.broken = true,
            }
        }
        Value::Object(map)
    }

    fn list(&mut self, depth: usize) -> Value {
        let mut list = Vec::new();
        self.at += 1;
        while !self.broken {
            match self.next() {
                Some(b']') => {
                    self.at += 1;
                    break;
                }
                Some(b',') => self.at += 1,
                Some(b'}' | b':') | None => self.broken = true,
                Some(_) => {
                    let value = self.value(depth + 1);
                    if !(self.broken && value.is_null()) {
                        list.push(value);
                    }
                }
            }
        }
        Value::Array(list)
    }

    /// Reads a string without decoding escapes; field names and roles have none.
    fn string(&mut self) -> String {
        self.at += 1;
        let begin = self.at;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    let text = self.bytes.get(begin..self.at).unwrap_or_default();
                    self.at += 1;
                    return String::from_utf8_lossy(text).into_owned();
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at = self.bytes.len();
        self.broken = true;
        String::from_utf8_lossy(self.bytes.get(begin..).unwrap_or_default()).into_owned()
    }

    fn scalar(&mut self) -> Value {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length =
            rest.iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
        if length == 0 {
            return self.stop();
        }
        self.at += length;
        let word = rest.get(..length).unwrap_or_default();
        serde_json::from_slice::<serde_json::Number>(word).map_or_else(
            |_| if word == b"null" { Value::Null } else { Value::Bool(word == b"true") },
            Value::Number,
        )
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
        check("[", "[]", None);
        check("oops", "false", Some(""));
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
