//! Secrets identified by their shape: key prefixes, private key blocks, passwords in URLs.

use super::scan::Scan;
use super::value;
use regex::Regex;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Maximum bytes of a label such as `OPENSSH PRIVATE KEY`.
const LABEL_MAX: usize = 64;
/// Maximum bytes of a key whose lines are separate strings; a later end belongs to something else.
const BROKEN_MAX: usize = 16 * 1024;
/// Maximum bytes of a part of a token.
const KEY_MAX: usize = 1024;
/// Minimum run of base64 characters in a line of a key.
const LINE_MIN: usize = 16;
/// The same for the only, short line of a truncated key; it must also have digits.
const SHORT_LINE_MIN: usize = 8;
/// The same for lines in separate strings, where paths also occur.
const BROKEN_LINE_MIN: usize = 40;
/// Maximum bytes between the scheme and the host.
const LOGIN_MAX: usize = 512;
/// Minimum length of a login without a colon but with digits to be a token.
const URL_TOKEN_MIN: usize = 20;
/// The same for web URLs, which seldom contain a user name.
const WEB_TOKEN_MIN: usize = 8;

/// The table of prefixes.
pub(super) const TOKENS: &str = include_str!("tokens.txt");

/// Shape of a token with a known prefix.
struct Shape {
    before: Option<Part>,
    rest: Part,
    /// May follow a letter, since no name or word looks like this.
    anywhere: bool,
}

/// Allowed characters and length of a part of a token.
struct Part {
    fits: fn(u8) -> bool,
    least: usize,
    most: usize,
}

impl Part {
    /// Parses `alnum:10..40`.
    fn parse(text: &str) -> Option<Part> {
        let (letters, length) = text.split_once(':')?;
        let (least, most) = length.split_once("..")?;
        let fits = match letters {
            "alnum" => alnum,
            "under" => |byte| alnum(byte) || byte == b'_',
            "dash" => dash,
            "colon" => |byte| dash(byte) || byte == b':',
            "alnum_dot" => |byte| alnum(byte) || byte == b'.',
            "dot" => |byte| dash(byte) || byte == b'.',
            "azure" => |byte| dash(byte) || byte == b'.' || byte == b'~',
            "url" => |byte| dash(byte) || matches!(byte, b'%' | b'+' | b'/' | b'='),
            "base64" => |byte| alnum(byte) || matches!(byte, b'_' | b'+' | b'/' | b'='),
            "blank64" => |byte| alnum(byte) || b" _+/=-,".contains(&byte),
            "crypt" => |byte| alnum(byte) || b"./$=,+-_".contains(&byte),
            "capital" => capital,
            "upperdash" => |byte| capital(byte) || byte == b'-',
            "lower" => |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            "hex" => hex,
            "uuid" => |byte| hex(byte) || byte == b'-',
            "digit" => |byte: u8| byte.is_ascii_digit(),
            _ => return None,
        };
        Some(Part { fits, least: least.parse().ok()?, most: most.parse().unwrap_or(usize::MAX) })
    }

    fn takes(&self, length: usize) -> bool {
        (self.least..=self.most).contains(&length)
    }
}

/// Prefix in a line of the table.
pub(super) fn prefix(line: &'static str) -> Option<&'static str> {
    Some(parse(line)?.0)
}

fn parse(line: &'static str) -> Option<(&'static str, Shape)> {
    let mut words = line.split(' ').peekable();
    let before = words.peek().and_then(|word| Part::parse(word));
    let prefix = words.nth(usize::from(before.is_some()))?;
    let rest = Part::parse(words.next()?)?;
    Some((prefix, Shape { before, rest, anywhere: words.next() == Some("anywhere") }))
}

static SHAPES: LazyLock<HashMap<&str, Shape>> = LazyLock::new(|| {
    super::words::sections(TOKENS).flat_map(|(_, lines)| lines).filter_map(parse).collect()
});

fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn dash(byte: u8) -> bool {
    alnum(byte) || byte == b'_' || byte == b'-'
}

fn capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

/// Marks the token that has the prefix at `at`.
pub(super) fn prefixed(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some(shape) = SHAPES.get(scan.piece(at.clone())) else { return };
    let mut start = at.start;
    if let Some(part) = &shape.before {
        start = scan.run_back(at.start, part.most, part.fits);
        // The digits of a percent code are not part of the token.
        start += if scan.before(start) == b'%' { 2 } else { 0 };
        if !part.takes(at.start.saturating_sub(start)) {
            return;
        }
    }
    let end = scan.run(at.end, shape.rest.fits);
    let alone = shape.anywhere || scan.word_starts(start) && looks_random(scan, shape, at.end..end);
    let ends = shape.rest.most == usize::MAX || !alnum(scan.byte(end));
    if value::is_filler(scan.piece(at.end..end)) {
        return;
    }
    if shape.rest.takes(end - at.end) && alone && ends {
        scan.add_hit(start..end);
    } else if let Some(rest) = continuation(scan, start..end).filter(|_| alone)
        && shape.rest.takes(end - at.end + rest.len())
    {
        scan.add_hit(start..end);
        scan.add_hit(rest);
    }
}

/// Masks the rest of a key that a terminal, a shell or a literal wrapped onto further lines.
pub(super) fn wrapped(scan: &mut Scan<'_>) {
    const LINES_MAX: usize = 8;
    for place in 0..scan.hits.len() {
        let mut part = scan.hits[place].at.clone();
        if KEY_MAX < part.len() || !value::is_random(scan.piece(part.clone())) {
            continue;
        }
        scan.rule = scan.hits[place].rule;
        for _ in 0..LINES_MAX {
            let Some(rest) = continuation(scan, part) else { break };
            scan.add_hit(rest.clone());
            part = rest;
        }
    }
}

/// Range of the next part of a token, alone on the line after `part`; it must look random. Behind a backslash or in
/// another literal, less is enough.
fn continuation(scan: &Scan<'_>, part: Range<usize>) -> Option<Range<usize>> {
    /// Minimum length of the first part, and of others.
    const KEY_MIN: usize = 16;
    const PART_MIN: usize = 6;
    let (quote, closed) = scan.quote_or(part.end);
    let quote = quote.filter(|quote| quote.depth == 0 && quote.mark != b'`');
    let at = if quote.is_some() { scan.gap(closed) } else { part.end };
    let joins = |byte: u8| matches!(byte, b'+' | b'.' | b'&') && quote.is_some();
    let at = scan.gap(at + usize::from(joins(scan.byte(at))));
    let is_joined = scan.byte(at) == b'\\' && matches!(scan.byte(at + 1), b'\n' | b'\r');
    let line = scan.next_line(at + usize::from(is_joined))?;
    let margin = |byte: u8| matches!(byte, b' ' | b'\t' | b'>' | b'|' | b'+');
    let start = scan.run_within(line, 64, margin);
    let start = match quote {
        Some(quote) => scan.quote(start).filter(|(next, _)| *next == quote)?.1,
        None => start,
    };
    let end = scan.run_within(start, KEY_MAX, |byte| is_base64(byte) || b"_-".contains(&byte));
    let rest = scan.piece(start..end);
    let is_end = matches!(scan.byte(scan.gap(end)), 0 | b'\n' | b'\r' | b'"' | b'\'' | b'\\');
    let hex = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    // The digest of a commit is no part of a key in letters.
    let digest = hex(rest) && matches!(rest.len(), 40 | 64) && !hex(scan.piece(part.clone()));
    let certain = quote.is_some() || is_joined;
    let fits = match certain {
        true => PART_MIN <= rest.len() && KEY_MIN <= part.len() && !value::is_name_of_words(rest),
        false => value::is_key(scan.piece(part.clone())) && value::is_tail(rest),
    };
    (is_end && fits && !digest).then_some(start..end)
}

/// `sk-` also begins names: a token is one long word, or has digits and no short words.
fn looks_random(scan: &Scan<'_>, shape: &Shape, rest: Range<usize>) -> bool {
    let rest = scan.piece(rest);
    let digits = rest.bytes().filter(u8::is_ascii_digit).count();
    let longest = rest.split(['-', '_', '.']).map(str::len).max().unwrap_or(0);
    let one_word = !(shape.rest.fits)(b'-') && !(shape.rest.fits)(b'_');
    // The random part of some keys stands before the mark.
    let keyed = shape.before.as_ref().is_some_and(|part| 20 <= part.least);
    keyed || one_word || 20 <= longest || (3 <= digits && 10 <= longest) || 6 <= digits
}

/// Marks tokens without a known prefix: those of Discord, three words with dots between, and those of vendors that the
/// table does not know.
pub(super) fn unknown(scan: &mut Scan<'_>) {
    for mark in memchr::memchr2_iter(b'.', b'_', scan.bytes) {
        let found = match scan.byte(mark) {
            b'.' => three_parts(scan, mark),
            _ => random_part(scan, mark),
        };
        found.into_iter().for_each(|it| scan.add_hit(it));
    }
}

/// Range of three words with dots between; the first dot is at `first`.
fn three_parts(scan: &Scan<'_>, first: usize) -> Option<Range<usize>> {
    let second = first + "a1b2c3.".len();
    if scan.byte(second) != b'.' {
        return None;
    }
    let start = scan.run_back(first, 30, dash);
    let end = scan.run_within(second + 1, 48, dash);
    let fits = (23..=28).contains(&(first - start)) && (27..=40).contains(&(end - second - 1));
    let middle = scan.run(first + 1, dash) == second;
    let digits = scan.piece(start..end).bytes().filter(u8::is_ascii_digit).count();
    let fits = fits && middle && 4 <= digits && matches!(scan.byte(start), b'M' | b'N' | b'O');
    fits.then_some(start..end)
}

/// Range of a short prefix, the mark behind it, and many letters of both cases with digits.
fn random_part(scan: &Scan<'_>, mark: usize) -> Option<Range<usize>> {
    /// Maximum length of a prefix; minimum length of what follows, which identifiers do not reach, and of each class.
    const PREFIX_MAX: usize = 16;
    const RANDOM_MIN: usize = 32;
    const CLASS_MIN: usize = 4;
    if !alnum(scan.byte(mark + RANDOM_MIN)) {
        return None;
    }
    let end = scan.run_within(mark + 1, KEY_MAX, alnum);
    let goes_on = matches!(scan.byte(end), b'+' | b'/' | b'=' | b'_' | b'-');
    let word = scan.piece(mark + 1..end);
    let (digits, letters) =
        (value::count(word, u8::is_ascii_digit), value::count(word, u8::is_ascii_uppercase));
    let capitals = CLASS_MIN <= digits.min(letters) && digits + letters == word.len();
    if end - mark <= RANDOM_MIN || goes_on || !value::has_each(word, CLASS_MIN) && !capitals {
        return None;
    }
    let fits = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase() || byte == b'_';
    let start = scan.run_back(mark, PREFIX_MAX, fits);
    let known = ["sha", "pk_live", "pk_test"].iter().any(|it| scan.from(start).starts_with(it));
    let start = scan.skip_escape(start, mark) + if scan.before(start) == b'%' { 2 } else { 0 };
    (start < mark && !known && scan.word_starts(start)).then_some(start..end)
}

/// Marks a token of three parts, the first two of them encoded JSON, or of five if encrypted.
pub(super) fn jwt(scan: &mut Scan<'_>, at: Range<usize>) {
    static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let part = "[A-Za-z0-9_-]";
        Regex::new(&format!(r"\AeyJ{part}{{6,}}\.{part}{{6,}}\.{part}*(?:\.{part}+){{0,2}}")).ok()
    });
    let token = TOKEN.as_ref().and_then(|token| token.find(scan.from(at.start)));
    if let Some(token) = token.filter(|_| scan.word_starts(at.start)) {
        scan.add_hit(at.start..at.start + token.len());
    }
}

/// Marks a private key or an encrypted message, from its opening line to the closing one, or as far
/// as the key extends.
pub(super) fn private_key(scan: &mut Scan<'_>, at: Range<usize>) {
    if scan.hits.last().is_some_and(|hit| at.start < hit.at.end) {
        return;
    }
    let label_end = title_end(scan, at.end);
    let marks = scan.gap(label_end);
    let body = scan.run_within(marks, "-----".len(), |byte| byte == b'-');
    if !is_secret_title(scan.piece(at.end..label_end)) || body - marks < "----".len() {
        return;
    }
    let Some(end) = closing_end(scan, body) else {
        return unclosed(scan, at.start, body);
    };
    if memchr::memchr3(b'"', b'\'', b'`', scan.bytes.get(body..end).unwrap_or_default()).is_none() {
        scan.add_hit(at.start..end);
    } else if end - body <= BROKEN_MAX {
        broken(scan, body..end);
    } else {
        unclosed(scan, at.start, body);
    }
}

/// End of the title in the first or last line of an armoured block.
pub(super) fn title_end(scan: &Scan<'_>, start: usize) -> usize {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b' ';
    let is_title = |at: usize| scan.byte(at) == b'-' && scan.byte(at + 1) != b'-';
    let mut end = scan.run_within(start, LABEL_MAX, fits);
    // `tls-crypt-v2 client key`
    while is_title(end) && end < start + LABEL_MAX {
        end = scan.run_within(end + 1, LABEL_MAX, fits);
    }
    start + scan.piece(start..end).trim_end().len()
}

/// Returns whether a block with this title holds a key that is not public, or a message.
pub(super) fn is_secret_title(title: &str) -> bool {
    let words = title.to_ascii_lowercase();
    let has = |names: &[&str]| names.iter().any(|it| words.contains(it));
    has(&["key", "secret", "token", "password"])
        && !has(&["public", "host key", "fingerprint", "signature", "certificate"])
        || title == "PGP MESSAGE"
}

fn closing_end(scan: &mut Scan<'_>, from: usize) -> Option<usize> {
    let known = scan.pem_end.filter(|known| from <= *known);
    let start = known.unwrap_or_else(|| {
        let rest = scan.bytes.get(from..).unwrap_or_default();
        let closes = |end: &usize| {
            let before = scan.piece(scan.floor(end.saturating_sub("-----".len()))..*end);
            before == "-----" || before.ends_with("---- ")
        };
        let found = memchr::memmem::find_iter(rest, b"END ").map(|found| from + found).find(closes);
        found.unwrap_or(scan.bytes.len())
    });
    scan.pem_end = Some(start);
    if start == scan.bytes.len() {
        return None;
    }
    let title = scan.gap(title_end(scan, start + "END ".len()));
    Some(scan.run_within(title, "-----".len(), |byte| byte == b'-'))
}

/// Masks everything up to a quote if the closing line is missing and the text starts like a key.
fn unclosed(scan: &mut Scan<'_>, start: usize, body: usize) {
    let first = scan.run(body, |byte| byte.is_ascii_whitespace());
    let is_break = |at: usize| matches!(scan.byte(at), b'n' | b'r') && scan.before(at) == b'\\';
    let mut first = scan.run(first, |byte| byte == b'\\');
    while is_break(first) {
        first = scan.run(first + 1, |byte| byte == b'\\' || byte.is_ascii_whitespace());
    }
    let breaks = body < first;
    first = behind_number(scan, behind_file(scan, start, first));
    let line = scan.run(first, is_base64);
    let is_header = scan.byte(line) == b':'
        || scan.piece(line..line + 6) == "-Type:"
        || scan.piece(line..line + 6) == "-Info:";
    if line - first < LINE_MIN && !is_header {
        let digits = scan.piece(first..line).bytes().any(|byte| byte.is_ascii_digit());
        let ends = !matches!(scan.byte(line), b' ' | b'.' | b',' | b'-' | b'_' | b'(' | b':');
        if breaks && digits && ends && SHORT_LINE_MIN <= line - first {
            scan.add_hit(start..line);
        }
        return;
    }
    let end = scan.run(first, |byte| !matches!(byte, b'"' | b'\'' | b'`'));
    let end = if end < scan.bytes.len() {
        scan.run_back(end, end - first, |byte| byte == b'\\')
    } else {
        end
    };
    scan.add_hit(start..end);
}

/// Position after the name of a file and a line number, if a search printed both before the key: `dev.key:1:-----BEGIN`,
/// `dev.key-2-MII…`.
fn behind_file(scan: &Scan<'_>, key: usize, line: usize) -> usize {
    let head = scan.piece(scan.line_start(key, LABEL_MAX)..key);
    let name = head.trim_end_matches(|it: char| it.is_ascii_digit() || it == ':');
    let named = !name.is_empty() && head.ends_with(':') && scan.from(line).starts_with(name);
    let is_place = |byte: u8| byte.is_ascii_digit() || b":-".contains(&byte);
    if named { scan.run_within(line + name.len(), LABEL_MAX, is_place) } else { line }
}

/// Position after the line number that a viewer printed, if there is one.
pub(super) fn behind_number(scan: &Scan<'_>, at: usize) -> usize {
    const DIGITS_MAX: usize = 6;
    let end = scan.run_within(at, DIGITS_MAX, |byte| byte.is_ascii_digit());
    let marks = ["\u{2192}", "\\u2192", "\t", "\\t", "|", ":"];
    let mark = marks.iter().find(|mark| scan.piece(end..end + mark.len()) == **mark);
    match mark {
        Some(mark) if at < end => scan.run(end + mark.len(), |byte| byte == b' ' || byte == b'\t'),
        Some(_) | None => at,
    }
}

/// Masks the lines of a key separately where each is a string literal.
fn broken(scan: &mut Scan<'_>, body: Range<usize>) {
    let mut at = body.start;
    while at < body.end {
        let end = scan.run(at, is_base64).min(body.end);
        if BROKEN_LINE_MIN <= end - at {
            let start = scan.skip_escape(at, end);
            scan.add_hit(start..end);
        }
        at = end + 1;
    }
}

pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Marks the credentials after `://`.
pub(super) fn url_password(scan: &mut Scan<'_>, at: Range<usize>) {
    let before = scan.before(at.start);
    if !(before.is_ascii_alphanumeric() || matches!(before, b'+' | b'-' | b'.')) {
        return;
    }
    let scheme = scan.piece(at.start.saturating_sub(5)..at.start);
    let web = scheme.ends_with("http") || scheme.ends_with("https");
    let window = scan.bytes.get(at.end..(at.end + LOGIN_MAX).min(scan.bytes.len()));
    let window = window.unwrap_or_default();
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'|')
    };
    let window = window.split(ends).next().unwrap_or_default();
    let host = window.split(|byte| *byte == b'/').next().unwrap_or_default();
    let port = |byte: &u8| byte.is_ascii_digit();
    let has_port = host.rsplit(|byte| *byte == b':').next().is_some_and(|it| it.iter().all(port));
    // A slash may be part of a database password, unless a host with a port precedes it.
    let login = if web || has_port || !host.contains(&b':') { host } else { window };
    let Some(login) = memchr::memrchr(b'@', login) else {
        return;
    };
    let (start, end) = (at.end, at.end + login);
    let piece = scan.piece(start..end);
    match piece.find(':') {
        Some(colon) => {
            let password = start + colon + 1;
            // `https://token:x-oauth-basic@host`
            let from =
                if value::is_key(scan.piece(start..start + colon)) { start } else { password };
            let sample = value::is_sample(piece.get(..colon).unwrap_or_default())
                && value::is_sample(scan.piece(password..end));
            if !sample && !value::is_reference(scan.piece(password..end)) {
                scan.add_hit(from..end);
            }
        }
        None => {
            let mixed = piece.bytes().any(|byte| byte.is_ascii_digit());
            let least = if web { WEB_TOKEN_MIN } else { URL_TOKEN_MIN };
            if least <= piece.len() && mixed && !value::is_reference(piece) {
                scan.add_hit(start..end);
            }
        }
    }
}

/// Marks the key in the path of a webhook.
pub(super) fn webhook(scan: &mut Scan<'_>, at: Range<usize>) {
    let in_path = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-');
    let mut start = at.end;
    for word in ["services/", "workflows/", "triggers/"] {
        if scan.piece(start..start + word.len()).eq_ignore_ascii_case(word) {
            start += word.len();
        }
    }
    let end = scan.run(start, in_path);
    if 16 <= end - start {
        scan.add_hit(start..end);
    }
}
