//! The text that the rules read, and its string literals. Text is often nested: a string in a
//! program, JSON in a JSON string. So an apparent letter may end an escape, and an apparent quote
//! may belong to another nesting depth.

use std::ops::Range;

/// Replacement for a secret.
pub(in crate::privacy) const PLACEHOLDER: &str = "<SECRET>";
/// Maximum backslashes before a quote that are counted: seven levels of nested JSON.
const BACKSLASHES_MAX: usize = 127;

/// A range to mask.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) at: Range<usize>,
    pub(super) rule: &'static str,
    /// Quote the placeholder at this depth: the value of a JSON key was unquoted.
    pub(super) quotes: Option<usize>,
}

pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) rule: &'static str,
    pub(super) hits: Vec<Hit>,
    /// Names before this position have been read.
    pub(super) named_to: usize,
    /// Cached position of the next closing line of a key; the length of the text if there is none.
    pub(super) pem_end: Option<usize>,
}

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
    /// surrounding string. At successive nesting levels a quote has 0, 1, 3, 7 backslashes.
    pub(super) fn ends_around(self, name: Quote) -> bool {
        let other = name.mark == self.mark && name.depth != self.depth;
        other && !(self.depth + 1).is_power_of_two()
    }
}

/// A line without the colour codes and invisible characters within its words.
pub(super) struct WholeWords {
    pub(super) text: String,
    /// Position of each byte in the text.
    places: Vec<usize>,
}

impl WholeWords {
    /// Lines with divided words.
    pub(super) fn lines(text: &str) -> impl Iterator<Item = WholeWords> {
        /// Maximum bytes of a line that are read, on each side of a divided word.
        const LINE_MAX: usize = 1024;
        let (scan, mut passed_to) = (Scan::new(text), 0);
        memchr::memchr2_iter(0x1b, 0xe2, text.as_bytes()).filter_map(move |at| {
            if at < passed_to || !is_word_byte(scan.before(at)) || scan.hidden(at).is_none() {
                return None;
            }
            let in_line = |byte: u8| byte != b'\n';
            let start = scan.floor(scan.run_back(at, LINE_MAX, in_line)).max(passed_to);
            passed_to = scan.run_within(at, LINE_MAX, in_line);
            let (mut whole, mut places) = (String::new(), Vec::new());
            let mut at = start;
            while at < passed_to {
                let hidden = scan.hidden(at).filter(|length| {
                    let before = whole.as_bytes().last().copied().unwrap_or_default();
                    is_word_byte(before)
                        && (is_word_byte(scan.byte(at + length))
                            || scan.hidden(at + length).is_some())
                });
                let letter = scan.from(at).chars().next()?;
                if hidden.is_none() {
                    whole.push(letter);
                    places.extend(at..at + letter.len_utf8());
                }
                at += hidden.unwrap_or(letter.len_utf8());
            }
            Some(WholeWords { text: whole, places })
        })
    }

    /// The same range in the text.
    pub(super) fn place(&self, at: Range<usize>) -> Range<usize> {
        let place = |at: usize| self.places.get(at).copied().unwrap_or_default();
        place(at.start)..place(at.end.saturating_sub(1)) + 1
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Scan<'a> {
        let bytes = text.as_bytes();
        Scan { text, bytes, rule: "", hits: Vec::new(), named_to: 0, pem_end: None }
    }
}

impl Scan<'_> {
    pub(super) fn add_hit(&mut self, at: Range<usize>) {
        self.add_hit_quoted(at, None);
    }

    /// Marks ranges of the text that starts at `from`.
    pub(super) fn add_hits(&mut self, from: usize, found: Vec<Range<usize>>) {
        found.into_iter().for_each(|it| self.add_hit(from + it.start..from + it.end));
    }

    pub(super) fn add_hit_quoted(&mut self, at: Range<usize>, quotes: Option<usize>) {
        if !at.is_empty() && self.piece(at.clone()) != PLACEHOLDER {
            self.hits.push(Hit { at, rule: self.rule, quotes });
        }
    }

    /// A piece of the text; empty if the range is invalid.
    pub(super) fn piece(&self, at: Range<usize>) -> &str {
        self.text.get(at).unwrap_or_default()
    }

    pub(super) fn from(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or_default()
    }

    /// Zero beyond the ends.
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Zero at the start.
    pub(super) fn before(&self, at: usize) -> u8 {
        at.checked_sub(1).map_or(0, |at| self.byte(at))
    }

    /// End of the run of matching bytes that starts at `at`.
    pub(super) fn run(&self, at: usize, fits: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len())
    }

    /// Like [`Scan::run`], for at most `most` bytes, so that repeated keywords do not make the scan
    /// quadratic.
    pub(super) fn run_within(&self, at: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(at..self.bytes.len().min(at + most)).unwrap_or_default();
        let length = rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len());
        self.text.floor_char_boundary(at + length).max(at)
    }

    /// Start of the run of matching bytes that ends at `at`, at most `most` bytes long.
    pub(super) fn run_back(&self, at: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
        let head = self.bytes.get(at.saturating_sub(most)..at).unwrap_or_default();
        at - head.iter().rev().take_while(|byte| fits(**byte)).count()
    }

    /// Returns whether a word starts at `at`; the preceding letter may end an escape, a colour code
    /// or a percent code.
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

    /// End of the blanks, colour codes and invisible characters that start at `at`.
    pub(super) fn gap(&self, at: usize) -> usize {
        let mut at = self.run(at, is_blank);
        while let Some(length) = self.invisible(at) {
            at = self.run(at + length, is_blank);
        }
        at
    }

    /// Length of `ESC[32m` (escaped or not), of a no-break space, or of an invisible character.
    fn invisible(&self, at: usize) -> Option<usize> {
        let escape = match self.byte(at) {
            0x1b => at + 1,
            b'\\' => {
                let from = self.run_within(at, BACKSLASHES_MAX, |byte| byte == b'\\');
                let codes = ["x1b", "x1B", "u001b", "u001B", "033", "e"];
                from + codes.iter().find(|code| self.from(from).starts_with(**code))?.len()
            }
            0xc2 | 0xe2 => {
                let blanks = [
                    "\u{a0}", "\u{202f}", "\u{2009}", "\u{200b}", "\u{200c}", "\u{200d}",
                    "\u{2028}", "\u{2060}",
                ];
                return blanks.iter().find(|it| self.from(at).starts_with(**it)).map(|it| it.len());
            }
            _ => return None,
        };
        let end = self.run(escape + 1, |byte| byte.is_ascii_digit() || byte == b';');
        let is_colour = self.byte(escape) == b'[' && matches!(self.byte(end), b'm' | b'K');
        is_colour.then_some(end + 1 - at)
    }

    /// Length of what may divide a word: a colour code, or an invisible character but no blank.
    fn hidden(&self, at: usize) -> Option<usize> {
        let code = (self.byte(at + 1), self.byte(at + 2));
        match self.byte(at) {
            0x1b => self.invisible(at),
            0xe2 if matches!(code, (0x80, 0x8b..=0x8d) | (0x81, 0xa0)) => Some("\u{200b}".len()),
            _ => None,
        }
    }

    /// End of the line at `at`, at most `most` bytes on; line ends may be escaped.
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

    /// Start of the line after the one that ends at `end`; `None` after the last.
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

    /// Start of the line at `at`, at most `most` bytes back.
    pub(super) fn line_start(&self, at: usize, most: usize) -> usize {
        let head = self.floor(self.run_back(at, most, |byte| !matches!(byte, b'\n' | b'\r')));
        let line = self.piece(head..at);
        line.rfind("\\n").map_or(head, |end| head + end + "\\n".len())
    }

    pub(super) fn floor(&self, at: usize) -> usize {
        self.text.floor_char_boundary(at)
    }

    /// Start of a name that reaches back to `start`, without the end of an escape before it.
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

    /// The quote at `at`, and the position after it.
    pub(super) fn quote(&self, at: usize) -> Option<(Quote, usize)> {
        let mark_at = self.run(at, |byte| byte == b'\\');
        let mark = self.byte(mark_at);
        let depth = mark_at - at;
        let is_quote = matches!(mark, b'"' | b'\'' | b'`') && depth <= BACKSLASHES_MAX;
        is_quote.then_some((Quote { mark, depth }, mark_at + 1))
    }

    /// Range inside the string at `at`.
    pub(super) fn string(&self, at: usize) -> Option<Range<usize>> {
        self.quote(at).map(|(quote, start)| self.quoted(quote, start))
    }

    /// Range inside `q{…}` of Perl or `%q(…)` of Ruby at `at`.
    pub(super) fn marked_string(&self, at: usize) -> Option<Range<usize>> {
        const STRING_MAX: usize = 256;
        let name = at + usize::from(self.byte(at) == b'%');
        let open = self.run_within(name, "qq".len(), |byte| matches!(byte, b'q' | b'Q'));
        let close = match self.byte(open) {
            b'{' => b'}',
            b'(' => b')',
            b'[' => b']',
            b'<' => b'>',
            _ => return None,
        };
        let end = self.run_within(open + 1, STRING_MAX, |byte| byte != close && byte != b'\n');
        let is_whole = self.byte(end) == close && !self.byte(end + 1).is_ascii_alphanumeric();
        (name < open && is_whole).then_some(open + 1..end)
    }

    /// Like [`Scan::quote`], but returns `at` itself if there is no quote.
    pub(super) fn quote_or(&self, at: usize) -> (Option<Quote>, usize) {
        self.quote(at).map_or((None, at), |(quote, after)| (Some(quote), after))
    }

    /// Range between the quote and its closing quote, or to the end of the line. Inside, a
    /// backslash of this depth is doubled, so the number of backslashes before a quote tells
    /// whether it is part of the string (2n+1) or closes it or a surrounding one (any other
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
                // Another quote closes a surrounding string only if what may follow a JSON string goes on after it.
                let after = self.byte(end + 1);
                mark == b'"' && quote.mark != b'"' && b"\0,:}]\\ \n\r\t".contains(&after)
            };
            if closes {
                let kept = if mark == quote.mark { over } else { slashes };
                return start..end - kept;
            }
            at = end + 1;
        }
    }

    /// Returns whether `at` is inside a string that such a quote opened on the same line.
    pub(super) fn lies_in_string(&self, at: usize, quote: Quote) -> bool {
        /// Maximum bytes searched; on a longer line quotes are not counted.
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
