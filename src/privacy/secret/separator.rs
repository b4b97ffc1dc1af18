//! Tokens between a name and its value: a separator, words (`for the server is`), or a pair's keys.

use super::scan::{Quote, Scan, is_blank};
use super::{value, words};
use std::ops::Range;

/// Keys that hold the name in a name-value pair.
const PAIR_NAMES: [&str; 4] = ["name", "key", "id", "variable"];
/// Maximum bytes between the two halves of a pair.
const GAP_MAX: usize = 128;

/// Token between a name and its value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Separator {
    /// `=`, `:=`, `=>`
    Equals,
    /// `==`, `!=`: only a literal operand is secret.
    Compares,
    /// `:`
    Colon,
    /// `<password>…</password>`
    Tag,
    /// `--password …`
    Flag,
    /// `password("…")`
    Call,
    /// `("X-Api-Key", "…")`
    Comma,
    /// `the password is …`
    Is,
}

/// Returns the quote after the name, the joining token, and the start of the value.
pub(super) fn separator(
    scan: &Scan<'_>,
    start: usize,
    end: usize,
) -> Option<(Option<Quote>, Separator, usize)> {
    let (quote, after) = scan.quote_or(end);
    let marks = |byte| matches!(byte, b']' | b'*' | b'?' | b'!') && quote.is_none() || byte == b']';
    let closed = scan.run(after, marks);
    let at = scan.gap(closed);
    let skip = |at: usize| {
        let at = scan.gap(at);
        let stars = scan.run(at, |byte| byte == b'*');
        if stars - at == 2 { scan.gap(stars) } else { at }
    };
    let (separator, value) = match (scan.byte(at), scan.byte(at + 1)) {
        (b'=', b'=') if scan.byte(at + 2) == b'=' => (Separator::Compares, skip(at + 3)),
        (b'=', b'=') => (Separator::Compares, skip(at + 2)),
        (b'=', b'>') | (b':' | b'+' | b'?', b'=') => (Separator::Equals, skip(at + 2)),
        (b'=', b'~') | (b':', b':') => return None,
        (b'=', _) if scan.before(at) == b'!' => (Separator::Compares, skip(at + 1)),
        (b'=', _) => (Separator::Equals, skip(at + 1)),
        (b':', _) => (Separator::Colon, nested_value(scan, skip(at + 1))),
        (b'|', b'|') | (b'?', b'?') => (Separator::Comma, skip(at + 2)),
        (b'<', b'/') if scan.from(at).starts_with("</key>") => {
            let value = scan.run(at + "</key>".len(), |byte| byte.is_ascii_whitespace());
            let string = "<string>";
            (Separator::Tag, scan.from(value).starts_with(string).then_some(value + string.len())?)
        }
        (b'>', _) if scan.before(start) == b'<' => (Separator::Tag, at + 1),
        (b'>', _) if scan.piece(0..start).ends_with("<string name=\"") => (Separator::Tag, at + 1),
        (b'(', _) if at == end => (Separator::Call, at + 1),
        (b',', _) if quote.is_some() => (Separator::Comma, skip(at + 1)),
        _ if scan.from(at).starts_with('\u{ff1a}') => {
            (Separator::Colon, skip(at + "\u{ff1a}".len()))
        }
        _ if end + 1 == at && quote.is_none() && is_flag(scan.piece(start..end)) => {
            (Separator::Flag, at)
        }
        _ if end < at && quote.is_none() && is_set(scan, start, end) => (Separator::Flag, at),
        _ if end < at && is_apart(scan, start..end, at) => (Separator::Is, at),
        _ if end < at => (Separator::Is, skip(linked(scan, at)?)),
        _ => return None,
    };
    (value < scan.bytes.len()).then_some((quote, separator, value))
}

/// Start of the value in `{"value": …}`, or `at` if there is no such object.
fn nested_value(scan: &Scan<'_>, at: usize) -> usize {
    let member = scan.quote(gap_end(scan, at + 1)).filter(|_| scan.byte(at) == b'{');
    let closed = member.filter(|(_, name)| scan.from(*name).starts_with("value"));
    let colon = closed.and_then(|(_, name)| scan.quote(name + "value".len()));
    match colon.map(|(_, after)| scan.gap(after)).filter(|colon| scan.byte(*colon) == b':') {
        Some(colon) => scan.gap(colon + 1),
        None => at,
    }
}

/// Returns whether the name is `--api-key` of a shell or `-ApiKey` of PowerShell.
fn is_flag(name: &str) -> bool {
    let name = name.strip_prefix('-').unwrap_or_default();
    name.starts_with(|letter: char| letter == '-' || letter.is_ascii_uppercase())
}

/// Returns whether a blank is enough before a value that looks random: it is coloured, or a quoted
/// password, or can be nothing else.
fn is_apart(scan: &Scan<'_>, name: Range<usize>, at: usize) -> bool {
    const KEY_MAX: usize = 256;
    let quoted = scan.quote(at).is_some_and(|(quote, _)| quote.depth == 0 && quote.mark != b'`')
        && scan.quote(name.end).is_none()
        && words::kind(scan.piece(name.clone())) == Some(words::Kind::Password);
    let end =
        scan.run_within(at, KEY_MAX, |byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    let column = value::is_key(scan.piece(at..end))
        && matches!(scan.byte(end), 0 | b'\n' | b'\r' | b'\\' | b' ')
        && scan.quote(name.end).is_none();
    quoted || column || scan.byte(name.end) == 0x1b || is_strong(scan, name, at)
}

/// Returns whether the word after a password's name, with only a blank between, can be nothing but
/// a password: it has letters, digits and marks.
fn is_strong(scan: &Scan<'_>, name: Range<usize>, at: usize) -> bool {
    /// Minimum length of such a word.
    const STRONG_MIN: usize = 8;
    let end =
        scan.run_within(at, 64, |byte| byte.is_ascii_graphic() && !b"\"'`,;()<>\\".contains(&byte));
    let word = scan.piece(at..end).trim_end_matches(['.', ':']);
    let marks = word.bytes().filter(|byte| b"!@#$%^&*?~".contains(byte)).count();
    let is_login = || words::kind(scan.piece(name)) == Some(words::Kind::Password);
    let digits = word.bytes().any(|byte| byte.is_ascii_digit());
    STRONG_MIN <= word.len()
        && digits
        && (1..=3).contains(&marks)
        && !word.starts_with(['$', '@', '%', '*', '#'])
        && is_login()
}

/// Position after the words between a name and its value: `for the server:`, `of bob is`.
fn linked(scan: &Scan<'_>, mut at: usize) -> Option<usize> {
    /// Maximum words in such a chain.
    const LINKS_MAX: usize = 4;
    for _ in 0..LINKS_MAX {
        let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'\'' || !byte.is_ascii();
        let end = scan.run_within(at, 16, is_letter);
        let word = scan.piece(at..end).to_lowercase();
        if !words::LINKS.contains(word.as_str()) {
            return None;
        }
        let next = scan.gap(end);
        if matches!(scan.byte(next), b':' | b'=') {
            return Some(next + 1);
        }
        if words::VERBS.contains(word.as_str()) {
            return Some(next).filter(|next| end < *next);
        }
        at = next;
    }
    None
}

/// Start of the value of the pair whose name is at `start..end`.
pub(super) fn pair_value(
    scan: &Scan<'_>,
    start: usize,
    end: usize,
) -> Option<(Option<Quote>, Separator, usize)> {
    let (quote, after) = scan.quote_or(end);
    if let Some(value) = variable_default(scan, start, after) {
        return Some((quote, Separator::Equals, value));
    }
    let key = gap_end(scan, after);
    if key == after {
        return None;
    }
    let (key_quote, word) = scan.quote_or(key);
    let is_value = |value: &&str| scan.piece(word..word + value.len()).eq_ignore_ascii_case(value);
    let found = ["value", "content="].into_iter().find(is_value)?;
    let word_end = word + found.trim_end_matches('=').len();
    if !is_pair_name(scan, start) {
        return None;
    }
    let closed = match key_quote {
        Some(quote) => scan.quote(word_end).filter(|(closing, _)| *closing == quote)?.1,
        None => word_end,
    };
    let mark = scan.run(closed, is_blank);
    let separator = match scan.byte(mark) {
        b':' => Separator::Colon,
        b'=' => Separator::Equals,
        _ => return None,
    };
    let value = scan.run(mark + 1, is_blank);
    (value < scan.bytes.len()).then_some((quote, separator, value))
}

/// Start of the default of Terraform's `variable "name" { … default = … }`.
fn variable_default(scan: &Scan<'_>, start: usize, after: usize) -> Option<usize> {
    /// Maximum bytes of the block that are searched.
    const BLOCK_MAX: usize = 512;
    if !scan.piece(0..start).ends_with("variable \"") {
        return None;
    }
    let end = scan.run_within(after, BLOCK_MAX, |byte| byte != b'}');
    let at = after + scan.piece(after..end).find("default")? + "default".len();
    let equals = scan.gap(at);
    (scan.byte(equals) == b'=').then(|| scan.gap(equals + 1))
}

/// Skips blanks, line ends (escaped or not) and commas.
fn gap_end(scan: &Scan<'_>, from: usize) -> usize {
    let fits = |byte: u8| byte.is_ascii_whitespace() || byte == b',';
    let mut at = from;
    for _ in 0..GAP_MAX {
        let escape = scan.byte(at) == b'\\' && matches!(scan.byte(at + 1), b'n' | b'r' | b't');
        match (fits(scan.byte(at)), escape) {
            (true, _) => at += 1,
            (false, true) => at += 2,
            (false, false) => break,
        }
    }
    at
}

/// Returns whether `name:` or `key=` precedes `start`.
fn is_pair_name(scan: &Scan<'_>, start: usize) -> bool {
    let back = |at: usize, fits: fn(u8) -> bool| scan.run_back(at, GAP_MAX, fits);
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`' | b'\\');
    let path = back(start, |byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let mark = back(back(path, is_quote), is_blank);
    if !matches!(scan.before(mark), b':' | b'=') {
        return false;
    }
    let end = back(back(mark - 1, is_blank), is_quote);
    let word = back(end, |byte| byte.is_ascii_alphabetic());
    PAIR_NAMES.iter().any(|name| scan.piece(word..end).eq_ignore_ascii_case(name))
}

/// Returns whether a blank alone joins name and value: `ENV NAME …`, `setenv NAME …`, `machine …
/// login … password …` of a `.netrc`, `ALTER ROLE … PASSWORD '…'`.
fn is_set(scan: &Scan<'_>, start: usize, end: usize) -> bool {
    /// Bytes before the name that are read.
    const HEAD_MAX: usize = 256;
    let name = scan.piece(start..end);
    if words::SET.contains(name.trim_start_matches('-')) {
        return true;
    }
    let head = scan.piece(scan.floor(start.saturating_sub(HEAD_MAX))..start);
    let word = head.trim_end_matches([' ', '\t']);
    let sets = word.len() < head.len()
        && [
            "ENV", "setenv", "set -x", "set -gx", "set -Ux", "configure set", "config set",
            "CONFIG SET",
        ]
        .iter()
        .any(|known| {
            word.strip_suffix(known).is_some_and(|before| {
                before.bytes().next_back().is_none_or(|byte| !byte.is_ascii_alphanumeric())
                    || scan.escape_ends(start - head.len() + before.len())
            })
        });
    let netrc = name == "password"
        && (head.contains("machine ") || head.contains("default"))
        && head.contains("login ");
    let sql_name = ["password", "secret"].iter().any(|known| name.eq_ignore_ascii_case(known));
    let quoted = scan.byte(scan.gap(end)) == b'\'' && sql_name;
    let line = head.rsplit('\n').next().unwrap_or_default().to_ascii_lowercase();
    let sql = || ["alter ", "create ", "set ", "grant "].iter().any(|word| line.contains(word));
    sets || netrc || quoted && sql() || name == "password" && line.contains("nmcli ")
}
