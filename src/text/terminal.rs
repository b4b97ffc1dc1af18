//! Makes text safe for a terminal: it cannot move the cursor, hide words or change the writing direction.

/// Styles that the tool and clap print.
const STYLES: [&str; 7] =
    ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[4m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];
/// Replacement for a character that controls a terminal.
const HIDDEN: char = '\u{fffd}';

/// True for characters that control a terminal: controls, line separators, direction overrides and isolates, and
/// characters that hide in words. Joiners, which scripts and emoji need, are not among them.
pub(crate) fn is_obeyed(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\t')
        || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{200b}' | '\u{feff}')
}

/// Replaces characters that control a terminal. The tool's own styles stay.
pub(crate) fn shown(text: &str) -> String {
    let (mut page, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(letter) = rest.chars().next() {
        let style = STYLES.into_iter().find(|style| rest.starts_with(style));
        let piece = style.unwrap_or(&rest[..letter.len_utf8()]);
        match piece {
            "\r" if rest.starts_with("\r\n") => {}
            _ if style.is_none() && is_obeyed(letter) => page.push(HIDDEN),
            piece => page.push_str(piece),
        }
        rest = &rest[piece.len()..];
    }
    page
}

/// Replaces such characters and our own styles: for pages, which have none.
pub(crate) fn neutral(text: &str) -> String {
    text.chars().map(|letter| if is_obeyed(letter) { HIDDEN } else { letter }).collect()
}

/// Escapes such characters in JSON.
pub(crate) fn json(text: &str) -> String {
    let mut page = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_obeyed(letter) {
            // Only strings have such characters, all of them in the basic multilingual plane.
            true => page.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => page.push(letter),
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_shown_and_never_obeyed() {
        assert_eq!(
            shown("\x1b[1m\x1b[31merror:\x1b[0m Größe\t1\n"),
            "\x1b[1m\x1b[31merror:\x1b[0m Größe\t1\n"
        );
        assert_eq!(
            shown("a\rb\r\nc\x1b[2Jd\u{9b}e\x07"),
            "a\u{fffd}b\nc\u{fffd}[2Jd\u{fffd}e\u{fffd}"
        );
        assert_eq!(
            shown("\u{202e}fdp\u{2069}.exe \x1b[8m\x7f"),
            "\u{fffd}fdp\u{fffd}.exe \u{fffd}[8m\u{fffd}"
        );
        assert_eq!(shown("pass\u{200b}word\u{2028}x\u{feff}"), "pass\u{fffd}word\u{fffd}x\u{fffd}");
        let plain = "שלום \u{200f}👩\u{200d}💻";
        assert_eq!(shown(plain), plain);
    }

    #[test]
    fn json_is_the_same_with_escapes() {
        let value = serde_json::json!({"a": "b\u{202e}c\u{9b}d\u{7f}\r"});
        let text = value.to_string();
        let safe = json(&text);
        assert!(!safe.contains(is_obeyed) && text.contains(is_obeyed));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
