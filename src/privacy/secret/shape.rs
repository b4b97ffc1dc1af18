//! Secrets that show by their shape: what providers put before their keys, and how keys go on.

use super::Scan;
use std::ops::Range;

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
