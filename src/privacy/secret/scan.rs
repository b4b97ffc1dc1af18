//! A text on its way through the rules: what is at a place, and the strings within it. Text within text
//! is common: a string of a program, a JSON string, JSON in a JSON string. An apparent letter may be the
//! end of an escape, and an apparent quote may belong to another depth.

use std::ops::Range;

/// Replacement for a secret.
pub(in crate::privacy) const PLACEHOLDER: &str = "<SECRET>";
/// Backslashes before a quote that are worth counting: seven levels of JSON in JSON.
const BACKSLASHES_MAX: usize = 127;

/// A place to mask.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) at: Range<usize>,
    pub(super) rule: &'static str,
    /// Put in quotes as deep as this: the value of a JSON key that had none.
    pub(super) quotes: Option<usize>,
}

pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) rule: &'static str,
    pub(super) hits: Vec<Hit>,
    /// Names before this place have been read.
    pub(super) named_to: usize,
    /// Position of the next end of a key block, once looked up; the length of the text if there is
    /// none.
    pub(super) pem_end: Option<usize>,
}

/// True for the bytes between two words of a line.
pub(super) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// A quote that opens a string.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Quote {
    pub(super) mark: u8,
    /// Number of backslashes before it.
    pub(super) depth: usize,
}

impl Quote {
    /// Returns whether an apparent quote is literal backslashes followed by the end of the
    /// surrounding string. With each level of escaping a quote has 0, 1, 3, 7 backslashes, as the
    /// quotes of the name have.
    pub(super) fn ends_around(self, name: Quote) -> bool {
        let other = name.mark == self.mark && name.depth != self.depth;
        other && !(self.depth + 1).is_power_of_two()
    }
}

impl Scan<'_> {
    pub(super) fn mark(&mut self, at: Range<usize>) {
        self.mark_as(at, None);
    }

    pub(super) fn mark_as(&mut self, at: Range<usize>, quotes: Option<usize>) {
        if !at.is_empty() && self.piece(at.clone()) != PLACEHOLDER {
            self.hits.push(Hit { at, rule: self.rule, quotes });
        }
    }

    /// A piece of the text; empty if the range is none.
    pub(super) fn piece(&self, at: Range<usize>) -> &str {
        self.text.get(at).unwrap_or_default()
    }

    pub(super) fn from(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or_default()
    }

    /// The byte at a place; zero beyond the ends.
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The byte before a place; zero at the start.
    pub(super) fn before(&self, at: usize) -> u8 {
        at.checked_sub(1).map_or(0, |at| self.byte(at))
    }

    /// End of the run of bytes that fit, from `at` on.
    pub(super) fn run(&self, at: usize, fits: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len())
    }

    /// The same, at most `most` bytes on: what lies further would be read again for every word
    /// before it.
    pub(super) fn run_within(&self, at: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(at..self.bytes.len().min(at + most)).unwrap_or_default();
        let length = rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len());
        self.text.floor_char_boundary(at + length).max(at)
    }

    /// Start of the run of bytes that fit, back from `at`, at most `most` bytes.
    pub(super) fn run_back(&self, at: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
        let head = self.bytes.get(at.saturating_sub(most)..at).unwrap_or_default();
        at - head.iter().rev().take_while(|byte| fits(**byte)).count()
    }
}

impl Scan<'_> {
    /// Returns whether a word starts at `at`; the letter before may end an escape, a colour or a
    /// percent code.
    pub(super) fn word_starts(&self, at: usize) -> bool {
        !self.before(at).is_ascii_alphanumeric() || self.escape_ends(at)
    }

    /// Returns whether `\n`, `\u0020`, `ESC[32m` or `%3D` ends here.
    pub(super) fn escape_ends(&self, at: usize) -> bool {
        let back = |count: usize| at.checked_sub(count).map_or(0, |at| self.byte(at));
        let letter = matches!(back(1), b'n' | b't' | b'r' | b'b' | b'f') && back(2) == b'\\';
        let hex = |count: usize| (1..=count).all(|at| back(at).is_ascii_hexdigit());
        let unicode = hex(4) && back(5) == b'u' && back(6) == b'\\';
        let percent = hex(2) && back(3) == b'%';
        let colour = back(1) == b'm' && {
            let digits = self.run_back(at - 1, 8, |byte| byte.is_ascii_digit() || byte == b';');
            self.before(digits) == b'['
        };
        letter || unicode || percent || colour
    }

    /// End of the blanks, colours and invisible letters that start at `at`.
    pub(super) fn gap(&self, at: usize) -> usize {
        let mut at = self.run(at, is_blank);
        while let Some(length) = self.invisible(at) {
            at = self.run(at + length, is_blank);
        }
        at
    }

    /// Length of `ESC[32m`, escaped or not, of a no-break blank, or of an invisible letter.
    fn invisible(&self, at: usize) -> Option<usize> {
        let escape = match self.byte(at) {
            0x1b => at + 1,
            b'\\' => {
                let from = self.run_within(at, BACKSLASHES_MAX, |byte| byte == b'\\');
                let codes = ["x1b", "x1B", "u001b", "u001B", "033", "e"];
                from + codes.iter().find(|code| self.from(from).starts_with(**code))?.len()
            }
            0xc2 | 0xe2 => {
                let blanks = ["\u{a0}", "\u{202f}", "\u{200b}", "\u{2009}"];
                return blanks.iter().find(|it| self.from(at).starts_with(**it)).map(|it| it.len());
            }
            _ => return None,
        };
        let end = self.run(escape + 1, |byte| byte.is_ascii_digit() || byte == b';');
        let is_colour = self.byte(escape) == b'[' && matches!(self.byte(end), b'm' | b'K');
        is_colour.then_some(end + 1 - at)
    }

    /// End of the line that `at` lies in, at most `most` bytes on: at a line end, escaped or not.
    pub(super) fn line_end(&self, at: usize, most: usize) -> usize {
        let most = at + most;
        let mut end = at;
        loop {
            end = self.run_within(end, most.saturating_sub(end), |byte| {
                !matches!(byte, b'\n' | b'\r' | b'\\')
            });
            let escaped = self.run_within(end, BACKSLASHES_MAX, |byte| byte == b'\\');
            if most <= end || end == escaped || matches!(self.byte(escaped), b'n' | b'r') {
                return end;
            }
            end = escaped;
        }
    }

    /// Start of the line behind the one that ends at `end`; none behind the last.
    pub(super) fn next_line(&self, end: usize) -> Option<usize> {
        let escaped = |end: usize, letter: u8| {
            let at = self.run_within(end, BACKSLASHES_MAX, |byte| byte == b'\\');
            (end < at && self.byte(at) == letter).then_some(at + 1)
        };
        let step = |at: usize, letter: u8, code: u8| match self.byte(at) == letter {
            true => Some(at + 1),
            false => escaped(at, code),
        };
        let returned = step(end, b'\r', b'r').unwrap_or(end);
        step(returned, b'\n', b'n')
    }

    /// Start of the line that `at` lies in, at most `most` bytes back.
    pub(super) fn line_start(&self, at: usize, most: usize) -> usize {
        let head = self.floor(self.run_back(at, most, |byte| !matches!(byte, b'\n' | b'\r')));
        let line = self.piece(head..at);
        line.rfind("\\n").map_or(head, |end| head + end + "\\n".len())
    }

    pub(super) fn floor(&self, at: usize) -> usize {
        self.text.floor_char_boundary(at)
    }

    /// The start of a name that reaches back to `start`, without the end of an escape before it.
    pub(super) fn skip_escape(&self, start: usize, end: usize) -> usize {
        if self.before(start) != b'\\' {
            let colour = self.run(start, |byte| byte.is_ascii_digit()) + 1;
            let ends = self.byte(colour - 1) == b'm' && self.escape_ends(colour);
            return if ends { colour.min(end) } else { start };
        }
        let length = match self.byte(start) {
            b'n' | b't' | b'r' | b'b' | b'f' => 1,
            b'u' => 5,
            _ => 0,
        };
        (start + length).min(end)
    }

    /// A quote that starts at `at`, and the place behind it.
    pub(super) fn quote(&self, at: usize) -> Option<(Quote, usize)> {
        let mark_at = self.run(at, |byte| byte == b'\\');
        let mark = self.byte(mark_at);
        let depth = mark_at - at;
        let is_quote = matches!(mark, b'"' | b'\'' | b'`') && depth <= BACKSLASHES_MAX;
        is_quote.then_some((Quote { mark, depth }, mark_at + 1))
    }

    /// As [`Scan::quote`]; without one, the place itself.
    pub(super) fn quote_or(&self, at: usize) -> (Option<Quote>, usize) {
        self.quote(at).map_or((None, at), |(quote, after)| (Some(quote), after))
    }

    /// Range between the quote and the one that closes it; without one, the rest of the line. A
    /// backslash of this depth is doubled within, so the number of backslashes before a mark tells
    /// whether it belongs to the string (2n+1) or closes it or a surrounding one (any other
    /// number).
    pub(super) fn quoted(&self, quote: Quote, start: usize) -> Range<usize> {
        let unit = 2 * (quote.depth + 1);
        let mut at = start;
        loop {
            let end = self.run(at, |byte| !matches!(byte, b'"' | b'\'' | b'`' | b'\n' | b'\r'));
            let mark = self.byte(end);
            if self.bytes.len() <= end || matches!(mark, b'\n' | b'\r') {
                return start..end;
            }
            let slashes = end - self.run_back(end, end - start, |byte| byte == b'\\');
            let over = slashes % unit;
            let closes = if mark == quote.mark {
                over + 1 != unit
            } else {
                // Another mark closes a string around this one only if what follows goes on there.
                mark == b'"' && quote.mark != b'"' && self.goes_on_outside(end + 1)
            };
            if closes {
                let kept = if mark == quote.mark { over } else { slashes };
                return start..end - kept;
            }
            at = end + 1;
        }
    }

    /// Returns whether the text at `at` could follow a JSON string that ended before it.
    fn goes_on_outside(&self, at: usize) -> bool {
        matches!(
            self.byte(at),
            0 | b',' | b':' | b'}' | b']' | b'\\' | b' ' | b'\n' | b'\r' | b'\t'
        )
    }

    /// Returns whether `at` is inside a string that such a quote opened on the same line.
    pub(super) fn lies_in_string(&self, at: usize, quote: Quote) -> bool {
        /// Bytes looked at; a longer line says nothing about its quotes.
        const LOOK_BACK_MAX: usize = 256;
        let line = self.run_back(at, LOOK_BACK_MAX, |byte| byte != b'\n');
        if at - line == LOOK_BACK_MAX {
            return false;
        }
        let marks = (line..at).filter(|at| self.byte(*at) == quote.mark);
        let same =
            |at: usize| at - self.run_back(at, at - line, |byte| byte == b'\\') == quote.depth;
        marks.filter(|at| same(*at)).count() % 2 == 1
    }
}
