//! Headers that carry credentials: `Authorization` and `Cookie`.

use super::scan::{Scan, is_blank};
use super::{value, words};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Returns whether a header's value ends here: at a quote, an escape or the end of the line.
fn ends_value(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b'\n' | b'\r' | b'<' | b'>')
}

/// Start of a header's value: after the closing quote of the name, a colon, and an opening quote.
fn value_start(scan: &Scan<'_>, name_end: usize) -> Option<usize> {
    let named = scan.quote_or(name_end).1;
    let separator = scan.gap(scan.run(named, |byte| byte == b']'));
    let after = match scan.byte(separator) {
        b':' | b',' => separator + 1,
        b'=' => scan.run(separator, |byte| matches!(byte, b'=' | b'>')),
        _ => return None,
    };
    let value = scan.gap(after);
    let inner = scan.run(value + 1, |byte| byte.is_ascii_whitespace());
    let value = match scan.byte(value) {
        b'[' if scan.quote(inner).is_some() => inner,
        _ => value,
    };
    Some(scan.quote_or(value).1)
}

/// Servers accept 8 KiB.
const HEADER_MAX: usize = 8 * 1024;

/// Schemes whose next word is always a credential.
const SCHEMES: [&str; 16] = [
    "bearer", "basic", "token", "digest", "apikey", "api-key", "negotiate", "ntlm", "hawk",
    "oauth", "ssws", "key", "splunk", "mac", "dpop", "aws4-hmac-sha256",
];

/// Schemes of these whose credential is a list.
const LISTING_SCHEMES: [&str; 5] = ["digest", "aws4-hmac-sha256", "hawk", "mac", "oauth"];

/// Masks the credential of an `Authorization` header, and the token after `Bearer` or `Basic`
/// anywhere.
pub(super) fn authorization(scan: &mut Scan<'_>, at: Range<usize>) {
    if scan.byte(at.end - 1) == b' ' {
        let start = scan.run(at.end, is_blank);
        let end = scan
            .run(start, |byte| !ends_value(byte) && !byte.is_ascii_whitespace() && byte != b',');
        let token = scan.piece(start..end).trim_end_matches(['.', ')', ';', ']', '}']);
        let basic = scan.piece(at.clone()).eq_ignore_ascii_case("basic ");
        let fits = if basic { is_basic(token) } else { is_token(token) };
        if scan.word_starts(at.start) && fits {
            let end = start + token.len();
            scan.add_hit(start..end);
        }
        return;
    }
    let Some(start) = value_start(scan, at.end) else { return };
    let end = scan.run_within(start, HEADER_MAX, |byte| !ends_value(byte));
    let header = scan.piece(start..end).trim_end();
    let (scheme, login) = header.split_once([' ', '\t']).unwrap_or(("", header));
    let known = SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let login = login.trim_start();
    let login_start = start + header.len() - login.len();
    let listed = LISTING_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if listed && login.ends_with('=') && scan.quote(login_start + login.len()).is_some() {
        return parameters(scan, login_start);
    }
    let first = login.split([' ', '\t', ',', ';']).next().unwrap_or_default();
    let login = if listed || !known { login } else { first };
    let login_end = login_start + login.len();
    let secret = if known {
        !value::is_reference(login) && !is_word_for_it(login)
    } else {
        let first = login.split([' ', '\t', ',', ';', ')']).next().unwrap_or_default();
        !value::is_reference(login) && value::is_random(first) && !first.contains(['(', '{', '['])
    };
    if secret {
        let piece = scan.piece(login_start..login_end);
        let end = login_start + piece.trim_end_matches([')', ',', ';', '}', ']']).len();
        // A longer credential is masked to its end.
        let beyond =
            if start + HEADER_MAX <= end { scan.run(end, |byte| !ends_value(byte)) } else { end };
        scan.add_hit(login_start..beyond);
    }
}

/// Masks every value of `username="…", nc=1, response="…"`.
fn parameters(scan: &mut Scan<'_>, mut at: usize) {
    /// Maximum parameters of one credential; the schemes have about ten.
    const PARAMETERS_MAX: usize = 32;
    static PARAMETER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let value = r#"\\*"([^"\\\r\n]*)\\*"|([^\s,"'`\\<>]*)"#;
        Regex::new(&format!(r"\A[\w*-]+=(?:{value})(,?)[ \t]*")).ok()
    });
    for _ in 0..PARAMETERS_MAX {
        let rest = scan.piece(at..scan.floor((at + HEADER_MAX).min(scan.bytes.len())));
        let Some(found) = PARAMETER.as_ref().and_then(|it| it.captures(rest)) else { return };
        let value = found.get(1).or(found.get(2)).filter(|it| !value::is_reference(it.as_str()));
        let hit = value.map(|it| at + it.start()..at + it.end());
        let goes_on = found.get(3).is_some_and(|it| !it.is_empty());
        at += found[0].len();
        hit.into_iter().for_each(|it| scan.add_hit(it));
        if !goes_on {
            return;
        }
    }
}

/// True for a word used in place of a credential in prose and samples.
fn is_word_for_it(login: &str) -> bool {
    let word = login.split([' ', ',', '.', ';', ')']).next().unwrap_or_default();
    let words = [
        "token", "tokens", "auth", "authentication", "scheme", "header", "credentials", "and",
        "or", "is",
    ];
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// True for a token after `Bearer` in prose: long or with digits, and not a call or template.
fn is_token(token: &str) -> bool {
    let plain = value::is_of(token, b"-._~+/=|:");
    let digits = token.bytes().any(|byte| byte.is_ascii_digit());
    plain && !value::is_reference(token) && ((8 <= token.len() && digits) || 32 <= token.len())
}

/// True for base64 after `Basic` in prose, where words such as "authentication" also follow.
fn is_basic(token: &str) -> bool {
    let has = |fits: fn(&u8) -> bool| 0 < value::count(token, fits);
    12 <= token.len()
        && token.len().is_multiple_of(4)
        && token.bytes().all(super::shape::is_base64)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && (has(u8::is_ascii_digit) || token.ends_with('='))
}

/// Masks the values of `Cookie: a=b; c=d`, and the first one of `Set-Cookie: a=b; Path=/`.
pub(super) fn cookie(scan: &mut Scan<'_>, at: Range<usize>) {
    /// Maximum pairs in one header; browsers keep fewer than 200 per site.
    const PAIRS_MAX: usize = 256;
    /// Minimum length of a value that is no setting of a page.
    const COOKIE_MIN: usize = 16;
    /// Parts of the names of cookies that let somebody in.
    const SESSIONS: [&str; 5] = ["sess", "auth", "token", "jwt", "remember"];
    let sets = scan.run_back(at.start, 4, |byte| byte == b'-' || byte.is_ascii_alphabetic());
    let sets = scan.piece(sets..at.start).eq_ignore_ascii_case("set-");
    let Some(mut start) = value_start(scan, at.end) else { return };
    let pairs = if sets { 1 } else { PAIRS_MAX };
    for _ in 0..pairs {
        let name = scan.run(start, |byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        if name == start || scan.byte(name) != b'=' {
            return;
        }
        let end = scan
            .run(name + 1, |byte| !ends_value(byte) && byte != b';' && !byte.is_ascii_whitespace());
        let secret = scan.piece(name + 1..end);
        let word = scan.piece(start..name).to_ascii_lowercase();
        let is_session = word.ends_with("sid")
            || SESSIONS.iter().any(|it| word.contains(it))
            || words::kind(&word).is_some();
        let is_random =
            value::is_random(secret) && (!secret.contains('%') || COOKIE_MIN < secret.len());
        let fits = (is_session || is_random) && !words::PLAIN.contains(secret);
        if 4 <= secret.len() && fits && !value::is_reference(secret) {
            scan.add_hit(name + 1..end);
        }
        if scan.byte(end) != b';' {
            return;
        }
        start = scan.run(end + 1, is_blank);
    }
}
