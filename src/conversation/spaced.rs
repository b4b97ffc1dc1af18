//! JSON on one line with a blank behind each comma and colon, as people and models read it best.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// The value as text.
pub(super) fn text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut to = Serializer::with_formatter(&mut bytes, Spaced);
    // Writing to memory does not fail, and the keys of JSON are texts.
    let _ = value.serialize(&mut to);
    String::from_utf8(bytes).unwrap_or_default()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(to, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn commas_and_colons_have_a_blank_behind_them() {
        let value = json!({"type": "şehir", "n": [1, 2], "in": {"a:b": null}});
        let text = r#"{"type": "şehir", "n": [1, 2], "in": {"a:b": null}}"#;
        assert_eq!(super::text(&value), text);
    }
}
