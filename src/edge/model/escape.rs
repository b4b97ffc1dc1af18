//! Escapes that hide plain letters: JSON may write any letter as `\u0061`, and what is written so is
//! not seen by a gate that reads text.

use std::borrow::Cow;

/// `text` with every escape of a plain ASCII letter, digit or sign undone. JSON stays the same JSON:
/// quotes, backslashes and control characters keep their escapes.
pub(super) fn undone(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u00") {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    // Each round takes at least the backslash that it found.
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        plain.push_str(before);
        let letter = escape.get(2..6).filter(|_| escape.starts_with("\\u")).and_then(letter_of);
        let length = match letter {
            Some(letter) => {
                plain.push(letter);
                6
            }
            // A backslash belongs to what follows it, be it another backslash.
            None => {
                let length = 1 + escape.chars().nth(1).map_or(0, char::len_utf8);
                plain.push_str(&escape[..length]);
                length
            }
        };
        rest = &escape[length..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// The letter with this number in hexadecimal, if it needs no escape.
fn letter_of(digits: &str) -> Option<char> {
    let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u8::from_str_radix(digits, 16).ok().filter(|_| hexadecimal)?;
    let plain = (b' '..=b'~').contains(&number) && !matches!(number, b'"' | b'\\');
    plain.then(|| char::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn plain_letters_lose_their_escapes_and_nothing_else_does() {
        let check = |text: &str, expected: &str| assert_eq!(undone(text), expected);
        check(r#"{"a":"\u0073k-\u0061"}"#, r#"{"a":"sk-a"}"#);
        check(r#""\u0022 \u005c \u000a \u00e9 \n""#, r#""\u0022 \u005c \u000a \u00e9 \n""#);
        check(r#""\\u0061 \\\u0061""#, r#""\\u0061 \\a""#);
        check(r"cut \u00", r"cut \u00");
        check(r"cut \u006", r"cut \u006");
        check(r"\u00é1 \u+061 \", r"\u00é1 \u+061 \");
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
            assert_eq!(value(&undone(&json)), value(&json));
            assert_eq!(undone(&undone(&json)), undone(&json));
        }
    }
}
