//! Text within text: a string of a program, a JSON string, JSON in a JSON string. What looks like a
//! letter may be the end of an escape, and what looks like a quote may belong to another depth.

use super::Scan;
use std::ops::Range;

/// Backslashes before a quote that are worth counting: seven levels of JSON in JSON.
const BACKSLASHES_MAX: usize = 127;

/// A quote that opens a string.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Quote {
    pub(super) mark: u8,
    /// How many backslashes stand before it.
    pub(super) depth: usize,
}

impl Quote {
    /// Whether what looks like the quote of a value, whose name stands in these quotes, is backslashes
    /// that were said and the end of the string around: written out once more a quote has 0, 1, 3, 7
    /// of them before it, as the name's has.
    pub(super) fn ends_around(self, name: Quote) -> bool {
        let other = name.mark == self.mark && name.depth != self.depth;
        other && !(self.depth + 1).is_power_of_two()
    }
}

impl Scan<'_> {
    /// Whether no word goes on behind `at`: the letter there may end an escape, a colour or a
    /// percent code.
    pub(super) fn word_starts(&self, at: usize) -> bool {
        !self.before(at).is_ascii_alphanumeric() || self.escape_ends(at)
    }

    /// Whether `\n`, `\u0020`, `ESC[32m` or `%3D` ends here.
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

    /// The start of the character at `at`.
    pub(super) fn floor(&self, at: usize) -> usize {
        self.text.floor_char_boundary(at)
    }

    /// The start of a name that reaches back to `start`, without the end of an escape before it.
    pub(super) fn skip_escape(&self, start: usize, end: usize) -> usize {
        if self.before(start) != b'\\' {
            return start;
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

    /// What stands between the quote and the one that closes it; without one, the rest of the line.
    ///
    /// A backslash of this depth is doubled within, so the backslashes before a mark tell whether
    /// it is part of the string (2n+1 of them), or closes it or one around it (any other number).
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

    /// Whether a JSON string that ended before `at` would be followed by what stands there.
    fn goes_on_outside(&self, at: usize) -> bool {
        matches!(
            self.byte(at),
            0 | b',' | b':' | b'}' | b']' | b'\\' | b' ' | b'\n' | b'\r' | b'\t'
        )
    }

    /// Whether `at` lies within a string that such a quote opened on the same line.
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
