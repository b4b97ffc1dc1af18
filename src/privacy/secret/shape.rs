//! Secrets that show by their shape: prefixes of keys, private key blocks, passwords in addresses.

use super::scan::Scan;
use super::value;
use std::ops::Range;

/// Bytes of a label such as `OPENSSH PRIVATE KEY`.
const LABEL_MAX: usize = 64;
/// Bytes of a key whose lines are strings of their own; beyond, the end belongs to something else.
const BROKEN_MAX: usize = 16 * 1024;
/// Letters in a row that tell a line of a key from words.
const LINE_MIN: usize = 16;
/// The same for the one short line of a key that breaks off: it has digits too.
const SHORT_LINE_MIN: usize = 8;
/// The same among strings, where paths are about.
const BROKEN_LINE_MIN: usize = 40;
/// Bytes of what may stand between the scheme and the host.
const LOGIN_MAX: usize = 512;
/// A login without a colon that is this long and has digits is a token.
const URL_TOKEN_MIN: usize = 20;
/// The same for the web, where a user is seldom named in an address.
const WEB_TOKEN_MIN: usize = 8;

/// A key that begins with a prefix of its own.
struct Shape {
    prefix: &'static str,
    /// Bytes that the rest is made of, and how many.
    rest: fn(u8) -> bool,
    least: usize,
    most: usize,
    /// No name or word looks like this, so it may follow a letter.
    anywhere: bool,
}

const fn key(prefix: &'static str, rest: fn(u8) -> bool, least: usize) -> Shape {
    Shape { prefix, rest, least, most: usize::MAX, anywhere: true }
}

const fn word(prefix: &'static str, rest: fn(u8) -> bool, least: usize, most: usize) -> Shape {
    Shape { prefix, rest, least, most, anywhere: false }
}

const fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

const fn under(byte: u8) -> bool {
    alnum(byte) || byte == b'_'
}

const fn dash(byte: u8) -> bool {
    under(byte) || byte == b'-'
}

const fn dot(byte: u8) -> bool {
    dash(byte) || byte == b'.'
}

const fn capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

const fn hex(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

/// The lengths are somewhat below those in use, so that shortened and sample keys go too.
static SHAPES: &[Shape] = &[
    key("sk-ant-", dash, 8),
    key("sk-or-", dash, 8),
    key("sk-proj-", dash, 8),
    key("sk-svcacct-", dash, 8),
    key("sk-admin-", dash, 8),
    word("sk-", dash, 16, usize::MAX),
    word("AKIA", capital, 16, 16),
    word("ASIA", capital, 16, 16),
    key("ghp_", alnum, 10),
    key("gho_", alnum, 10),
    key("ghu_", alnum, 10),
    key("ghs_", alnum, 10),
    key("ghr_", alnum, 10),
    key("github_pat_", under, 10),
    key("glpat-", dot, 10),
    key("gldt-", dash, 10),
    key("glrt-", dash, 10),
    key("glptt-", dash, 10),
    key("glcbt-", dash, 10),
    key("glft-", dash, 10),
    key("glimt-", dash, 10),
    key("glagent-", dash, 10),
    key("glsoat-", dash, 10),
    key("gloas-", dash, 10),
    word("AIza", dash, 30, 80),
    word("ya29.", dot, 16, usize::MAX),
    key("GOCSPX-", dash, 16),
    key("sk_live_", under, 8),
    key("sk_test_", under, 8),
    key("rk_live_", under, 8),
    key("rk_test_", under, 8),
    word("whsec_", |byte| under(byte) || matches!(byte, b'+' | b'/' | b'='), 16, usize::MAX),
    word("npm_", alnum, 30, usize::MAX),
    key("pypi-AgEI", dash, 16),
    word("hf_", alnum, 30, usize::MAX),
    key("dop_v1_", hex, 32),
    key("doo_v1_", hex, 32),
    key("dor_v1_", hex, 32),
    key("AGE-SECRET-KEY-1", capital, 20),
];

/// Reads a key behind its prefix.
pub(super) fn prefixed(scan: &mut Scan<'_>, at: Range<usize>) {
    let rest = scan.text.get(at.start..).unwrap_or_default();
    let Some(shape) = SHAPES.iter().find(|shape| rest.starts_with(shape.prefix)) else { return };
    let has_its_own_rule = matches!(shape.prefix, "sk-ant-" | "sk-or-") && at.len() == "sk-".len();
    let start = at.start + shape.prefix.len();
    let end = scan.run(start, shape.rest);
    let fits = (shape.least..=shape.most).contains(&(end - start)) && !has_its_own_rule;
    if fits && (shape.anywhere || scan.word_starts(at.start) && is_random(scan, shape, start..end))
    {
        scan.mark(at.start..end);
    }
}

/// `sk-` also begins names of styles; a key is one long word or has digits and no short words.
fn is_random(scan: &Scan<'_>, shape: &Shape, rest: Range<usize>) -> bool {
    let rest = scan.piece(rest);
    let digits = rest.bytes().filter(u8::is_ascii_digit).count();
    let longest = rest.split(['-', '_']).map(str::len).max().unwrap_or(0);
    shape.prefix != "sk-" || 20 <= longest || (3 <= digits && 10 <= longest) || 6 <= digits
}

/// `xoxb-…`, `xapp-…`
pub(super) fn slack(scan: &mut Scan<'_>, at: Range<usize>) {
    let start = match scan.piece(at.clone()) {
        "xapp-" => at.end,
        "xox" if scan.byte(at.end).is_ascii_lowercase() => {
            let dash_at = scan.run(at.end, |byte| byte == b'.' || alnum(byte));
            if scan.byte(dash_at) != b'-' || 8 < dash_at - at.end {
                return;
            }
            dash_at + 1
        }
        _ => return,
    };
    let end = scan.run(start, |byte| dash(byte) || matches!(byte, b'%' | b'+' | b'/' | b'='));
    if 8 <= end - start {
        scan.mark(at.start..end);
    }
}

/// Three parts, the first two of them encoded JSON; an encrypted token has five.
pub(super) fn jwt(scan: &mut Scan<'_>, at: Range<usize>) {
    if scan.piece(at.clone()) != "eyJ" || !scan.word_starts(at.start) {
        return;
    }
    let header = scan.run(at.end, dash);
    let payload = scan.run(header + 1, dash);
    let long = 6 <= header - at.end && scan.byte(header) == b'.' && 6 < payload - header;
    if !long || scan.byte(payload) != b'.' {
        return;
    }
    let mut end = scan.run(payload + 1, dash);
    for _ in 0..2 {
        if scan.byte(end) == b'.' && dash(scan.byte(end + 1)) {
            end = scan.run(end + 1, dash);
        }
    }
    scan.mark(at.start..end);
}

/// `SG.` and two parts.
pub(super) fn sendgrid(scan: &mut Scan<'_>, at: Range<usize>) {
    let first = scan.run(at.end, dash);
    let second = scan.run(first + 1, dash);
    let long = 16 <= first - at.end && scan.byte(first) == b'.' && 16 < second - first;
    if scan.piece(at.clone()) == "SG." && long && scan.word_starts(at.start) {
        scan.mark(at.start..second);
    }
}

/// `SK` and 32 hex digits.
pub(super) fn twilio(scan: &mut Scan<'_>, at: Range<usize>) {
    let end = scan.run(at.start + 2, hex);
    let apart = scan.word_starts(at.start) && !under(scan.byte(end));
    if scan.piece(at.start..at.start + 2) == "SK" && end - at.start == 34 && apart {
        scan.mark(at.start..end);
    }
}

/// The number of a bot, a colon, and a key that starts with `AA`.
pub(super) fn telegram(scan: &mut Scan<'_>, at: Range<usize>) {
    let start = scan.run_back(at.start, 12, |byte| byte.is_ascii_digit());
    let start = if scan.before(start) == b'%' { start + 2 } else { start };
    let end = scan.run(at.end, dash);
    let long =
        (6..=12).contains(&at.start.saturating_sub(start)) && (28..=40).contains(&(end - at.end));
    if scan.piece(at.clone()) == ":AA" && long {
        scan.mark(start..end);
    }
}

/// Reads a private key or an encrypted message behind its opening line: to the closing one, or as far as
/// the key goes on.
pub(super) fn private_key(scan: &mut Scan<'_>, at: Range<usize>) {
    if scan.hits.last().is_some_and(|hit| at.start < hit.at.end) {
        return;
    }
    let label_end =
        scan.run(at.end, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let label = scan.piece(at.end..label_end);
    let is_secret = label.contains("PRIVATE KEY") || label == "PGP MESSAGE";
    if !is_secret || LABEL_MAX < label.len() || scan.piece(label_end..label_end + 5) != "-----" {
        return;
    }
    let body = label_end + 5;
    let Some(end) = closing_end(scan, body) else {
        return unclosed(scan, at.start, body);
    };
    if memchr::memchr3(b'"', b'\'', b'`', scan.bytes.get(body..end).unwrap_or_default()).is_none() {
        scan.mark(at.start..end);
    } else if end - body <= BROKEN_MAX {
        broken(scan, body..end);
    } else {
        unclosed(scan, at.start, body);
    }
}

/// End of the next closing line.
fn closing_end(scan: &mut Scan<'_>, from: usize) -> Option<usize> {
    const CLOSING: &[u8] = b"-----END ";
    let known = scan.pem_end.filter(|known| from <= *known);
    let start = known.unwrap_or_else(|| {
        let rest = scan.bytes.get(from..).unwrap_or_default();
        memchr::memmem::find(rest, CLOSING).map_or(scan.bytes.len(), |found| from + found)
    });
    scan.pem_end = Some(start);
    if start == scan.bytes.len() {
        return None;
    }
    let label =
        scan.run(start + CLOSING.len(), |byte| byte.is_ascii_alphanumeric() || byte == b' ');
    Some(scan.run(label, |byte| byte == b'-').min(label + 5))
}

/// Without a closing line everything up to a quote goes, if it starts like a key.
fn unclosed(scan: &mut Scan<'_>, start: usize, body: usize) {
    let first = scan.run(body, |byte| byte.is_ascii_whitespace());
    let is_break = |at: usize| matches!(scan.byte(at), b'n' | b'r') && scan.before(at) == b'\\';
    let mut first = scan.run(first, |byte| byte == b'\\');
    while is_break(first) {
        first = scan.run(first + 1, |byte| byte == b'\\' || byte.is_ascii_whitespace());
    }
    let breaks = body < first;
    first = behind_number(scan, first);
    let line = scan.run(first, is_base64);
    let is_header = scan.byte(line) == b':'
        || scan.piece(line..line + 6) == "-Type:"
        || scan.piece(line..line + 6) == "-Info:";
    if line - first < LINE_MIN && !is_header {
        let digits = scan.piece(first..line).bytes().any(|byte| byte.is_ascii_digit());
        let ends = !matches!(scan.byte(line), b' ' | b'.' | b',' | b'-' | b'_' | b'(' | b':');
        if breaks && digits && ends && SHORT_LINE_MIN <= line - first {
            scan.mark(start..line);
        }
        return;
    }
    let end = scan.run(first, |byte| !matches!(byte, b'"' | b'\'' | b'`'));
    let end = if end < scan.bytes.len() {
        scan.run_back(end, end - first, |byte| byte == b'\\')
    } else {
        end
    };
    scan.mark(start..end);
}

/// Position behind the line number that a viewer printed, if there is one.
fn behind_number(scan: &Scan<'_>, at: usize) -> usize {
    /// Digits of a line number.
    const DIGITS_MAX: usize = 6;
    let end = scan.run_within(at, DIGITS_MAX, |byte| byte.is_ascii_digit());
    let marks = ["\u{2192}", "\\u2192", "\t", "\\t", "|", ":"];
    let mark = marks.iter().find(|mark| scan.piece(end..end + mark.len()) == **mark);
    match mark {
        Some(mark) if at < end => scan.run(end + mark.len(), |byte| byte == b' ' || byte == b'\t'),
        Some(_) | None => at,
    }
}

/// Lines that are strings of their own: each is masked where it stands.
fn broken(scan: &mut Scan<'_>, body: Range<usize>) {
    let mut at = body.start;
    while at < body.end {
        let end = scan.run(at, is_base64).min(body.end);
        if BROKEN_LINE_MIN <= end - at {
            let start = scan.skip_escape(at, end);
            scan.mark(start..end);
        }
        at = end + 1;
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Reads the login behind `://`.
pub(super) fn url_password(scan: &mut Scan<'_>, at: Range<usize>) {
    let before = scan.before(at.start);
    if !(before.is_ascii_alphanumeric() || matches!(before, b'+' | b'-' | b'.')) {
        return;
    }
    let window = scan.bytes.get(at.end..(at.end + LOGIN_MAX).min(scan.bytes.len()));
    let window = window.unwrap_or_default();
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'|')
    };
    let login = window.iter().position(ends).unwrap_or(window.len());
    let Some(login) = window.get(..login).and_then(|login| memchr::memrchr(b'@', login)) else {
        return;
    };
    let (start, end) = (at.end, at.end + login);
    let piece = scan.piece(start..end);
    match piece.find(':') {
        Some(colon) => {
            let password = start + colon + 1;
            if !value::is_reference(scan.piece(password..end)) {
                scan.mark(password..end);
            }
        }
        None => {
            let mixed = piece.bytes().any(|byte| byte.is_ascii_digit());
            let scheme = scan.piece(at.start.saturating_sub(5)..at.start);
            let web = scheme.ends_with("http") || scheme.ends_with("https");
            let least = if web { WEB_TOKEN_MIN } else { URL_TOKEN_MIN };
            if least <= piece.len() && mixed && !value::is_reference(piece) {
                scan.mark(start..end);
            }
        }
    }
}

/// Masks the key in the path of a hook.
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
        scan.mark(start..end);
    }
}
