//! Strings, blanks and comments of the tolerant parser.

use super::parser::Parser;
use super::repair::Repair;

impl Parser<'_> {
    /// The string that begins here, and whether it was closed.
    pub(super) fn string(&mut self, quote: u8) -> (String, bool) {
        if quote == b'\'' {
            self.repairs.add(Repair::SingleQuotes);
        }
        self.at += 1;
        let mut out = String::new();
        loop {
            let plain = |byte: &u8| *byte != quote && *byte != b'\\' && *byte >= 0x20;
            let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let run = bytes.iter().take_while(|byte| plain(byte)).count();
            out.push_str(self.text.get(self.at..self.at + run).unwrap_or_default());
            self.at += run;
            match self.peek() {
                None => return (out, false),
                Some(b'\\') => {
                    if !self.escape(&mut out) {
                        return (out, false);
                    }
                    continue;
                }
                Some(byte) if byte == quote => {
                    if self.closes(quote) {
                        self.at += 1;
                        return (out, true);
                    }
                    self.repairs.add(Repair::RawQuote);
                    out.push(char::from(quote));
                }
                Some(0) => self.repairs.add(Repair::Nul),
                Some(byte) => {
                    self.repairs.add(Repair::Control);
                    out.push(char::from(byte));
                }
            }
            self.at += 1;
        }
    }

    /// Whether the quote here ends its string: something must follow that can follow a string.
    fn closes(&self, quote: u8) -> bool {
        let behind = self.text.as_bytes().get(self.at + 1..).unwrap_or_default();
        match behind.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None | Some(b',' | b':' | b'}' | b']' | b'/') => true,
            Some(byte) => *byte == quote,
        }
    }

    /// Reads one escape; false if the text ends in it.
    fn escape(&mut self, out: &mut String) -> bool {
        let Some(next) = self.rest().chars().nth(1) else {
            self.at = self.text.len();
            return false;
        };
        self.at += 1 + next.len_utf8();
        match next {
            '"' | '\\' | '/' => out.push(next),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => return self.code_unit(out),
            other => {
                // A path such as C:\Users, whose backslash the model forgot to double.
                self.repairs.add(Repair::Escape);
                out.push('\\');
                out.push(other);
            }
        }
        true
    }

    /// The four digits behind `\u`, and the second half of a pair; false if the text ends in them.
    fn code_unit(&mut self, out: &mut String) -> bool {
        let Some(digits) = self.text.as_bytes().get(self.at..self.at + 4) else {
            self.at = self.text.len();
            return false;
        };
        let Some(unit) = hex(digits) else {
            self.repairs.add(Repair::Escape);
            out.push_str("\\u");
            return true;
        };
        self.at += 4;
        if (0xD800..0xDC00).contains(&unit) {
            let behind = self.rest().as_bytes().strip_prefix(b"\\u");
            let low = behind.and_then(|digits| digits.get(..4)).and_then(hex);
            if let Some(low) = low.filter(|low| (0xDC00..0xE000).contains(low)) {
                self.at += 6;
                let code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return true;
            }
        }
        match char::from_u32(unit) {
            Some('\0') => self.repairs.add(Repair::Nul),
            Some(letter) => out.push(letter),
            None => {
                self.repairs.add(Repair::Surrogate);
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
        true
    }

    /// Passes over blanks and comments.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
            self.at += bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let rest = self.rest();
            let length = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                return;
            };
            self.repairs.add(Repair::Comment);
            self.at += length;
        }
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}
