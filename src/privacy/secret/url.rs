//! Passwords in addresses: `scheme://user:password@host`, and hooks whose path is the key.

use super::{Scan, value};
use std::ops::Range;

/// Bytes of what may stand between the scheme and the host.
const LOGIN_MAX: usize = 512;
/// A login without a colon that is this long and has digits is a token.
const TOKEN_MIN: usize = 20;
/// The same for the web, where a user is seldom named in an address.
const WEB_TOKEN_MIN: usize = 8;

/// Reads the login behind `://`.
pub(super) fn password(scan: &mut Scan<'_>, at: Range<usize>) {
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
            let least = if web { WEB_TOKEN_MIN } else { TOKEN_MIN };
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
