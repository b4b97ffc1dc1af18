//! Tokens between a name and its value: a separator, words (`for the server is`), or a pair's keys.

use super::scan::{Quote, Scan, is_blank};
use super::sentence::{OPENING, names_user};
use super::{value, words};
use std::ops::Range;

/// Keys that hold the name in a name-value pair.
const PAIR_NAMES: [&str; 5] = ["name", "key", "id", "variable", "type"];
/// Maximum bytes of the prefix of a tag's name.
const NAME_SPACE_MAX: usize = 16;
/// Maximum members between the name and the value of a pair.
const MEMBERS_MAX: usize = 2;
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
    /// `password for bob: …`, `password -> …`, and in a cell beside the name.
    Linked,
}

/// Returns the quote after the name, the joining token, and the start of the value.
pub(super) fn separator(
    scan: &Scan<'_>,
    start: usize,
    end: usize,
) -> Option<(Option<Quote>, Separator, usize)> {
    let index = scan.run_within(end + 1, 4, |byte| byte.is_ascii_digit());
    let indexed = scan.byte(end) == b'[' && scan.byte(index) == b']';
    let end = if indexed { index + 1 } else { end };
    let (quote, after) = scan.quote_or(end);
    // An item of YAML: `- --password`, and its value in the next.
    let item = scan.run_within(end + 1, NAME_SPACE_MAX, is_blank);
    if scan.byte(end) == b'\n'
        && is_flag(scan.piece(start..end))
        && scan.from(item).starts_with("- ")
    {
        return Some((None, Separator::Flag, item + "- ".len()));
    }
    let marks = |byte| matches!(byte, b']' | b'*' | b'?' | b'!') && quote.is_none() || byte == b']';
    let closed = scan.run(after, marks);
    let at = typed(scan, scan.gap(closed));
    let skip = |at: usize| {
        let at = scan.gap(at);
        let stars = scan.run(at, |byte| byte == b'*');
        if stars - at == 2 { scan.gap(stars) } else { at }
    };
    if let Some((separator, value)) = element(scan, start, quote, at) {
        return Some((quote, separator, value));
    }
    if let Some((quote, value)) = selected(scan, start, end) {
        return Some((Some(quote), Separator::Comma, value));
    }
    let (separator, value) = match (scan.byte(at), scan.byte(at + 1)) {
        (b'=', b'=') if scan.byte(at + 2) == b'=' => (Separator::Compares, skip(at + 3)),
        (b'=', b'=') => (Separator::Compares, skip(at + 2)),
        (b'=', b'>') | (b':' | b'+' | b'?', b'=') => (Separator::Equals, skip(at + 2)),
        (b'=', b'~') => return None,
        (b':', b':') if end == at || !is_blank(scan.byte(at + 2)) => return None,
        (b':', b':') => (Separator::Linked, skip(at + 2)),
        (b'!', b'=') => (Separator::Comma, skip(scan.run(at + 1, |byte| byte == b'='))),
        (b'=', _) if scan.before(at) == b'!' => (Separator::Compares, skip(at + 1)),
        (b'=', _) => (Separator::Equals, skip(at + 1)),
        (b':', _) => (Separator::Colon, nested_value(scan, skip(at + 1))),
        (b'|', b'|') | (b'?', b'?') => {
            (Separator::Comma, skip(scan.run_within(at + 2, 1, |byte| byte == b'=')))
        }
        (b'<', b'-') => (Separator::Equals, skip(at + 2)),
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
        _ if end < at && quote.is_none() && dashed(scan, at).is_some() => {
            (Separator::Linked, skip(dashed(scan, at)?))
        }
        _ if end < at && is_behind_user(scan, start) => (Separator::Linked, at),
        _ if end < at && (is_configured(scan, start) || is_setting(scan, start..end, at)) => {
            (Separator::Linked, behind_kind(scan, at))
        }
        _ if end < at => {
            let name = scan.piece(start..end);
            let is_variable = name.contains('_') && !name.bytes().any(|it| it.is_ascii_lowercase());
            linked(scan, at, is_variable).map(|(separator, value)| (separator, skip(value)))?
        }
        _ => return None,
    };
    (value < scan.bytes.len()).then_some((quote, separator, value))
}

/// Start of the `=` behind a type: `Dim password As String = …`, `var password string = …`.
fn typed(scan: &Scan<'_>, at: usize) -> usize {
    let named = ["As String", "string"].iter().find(|it| scan.from(at).starts_with(**it));
    let after = named.map_or(at, |it| scan.gap(at + it.len()));
    if scan.byte(after) == b'=' && scan.byte(after + 1) != b'=' { after } else { at }
}

/// Start of the text that an element, an attribute or a cell names: `<password>…`,
/// `<entry key="password">…`, `<name>password</name><value>…`, `<td>Password</td><td>…`.
fn element(
    scan: &Scan<'_>,
    start: usize,
    quote: Option<Quote>,
    at: usize,
) -> Option<(Separator, usize)> {
    /// Maximum bytes of a tag.
    const TAG_MAX: usize = 128;
    let tag_end = |at: usize| {
        let end = scan.run_within(at, TAG_MAX, |byte| !matches!(byte, b'<' | b'>' | b'\n'));
        (scan.byte(end) == b'>' && scan.before(end) != b'/').then_some(end + 1)
    };
    let closes = scan.byte(at) == b'<' && scan.byte(at + 1) == b'/';
    let space =
        scan.run_back(start, NAME_SPACE_MAX, |byte| byte.is_ascii_alphabetic() || byte == b':');
    let is_tag =
        scan.before(start) == b'<' || scan.before(start) == b':' && scan.before(space) == b'<';
    let is_attribute = || quote.is_some() && is_pair_name(scan, start);
    let ends_name = matches!(scan.byte(at), b'>') || at < scan.gap(at) || is_blank(scan.before(at));
    if !closes && !(ends_name && (is_tag || is_attribute())) {
        return None;
    }
    let mut value = tag_end(if closes { at + 1 } else { at })?;
    let (mut opened, mut is_cell) = (0, false);
    for _ in 0..3 {
        let tag = scan.run(value, |byte| byte.is_ascii_whitespace());
        if scan.from(tag).starts_with("<![CDATA[") {
            value = tag + "<![CDATA[".len();
            opened += 1;
            break;
        }
        let opens = scan.byte(tag) == b'<' && scan.byte(tag + 1).is_ascii_alphabetic();
        let Some(end) = tag_end(tag + 1).filter(|_| opens) else { break };
        is_cell |= ["<td", "<dd", "<th"].iter().any(|it| scan.from(tag).starts_with(it));
        (value, opened) = (end, opened + 1);
    }
    let separator = if is_cell { Separator::Linked } else { Separator::Tag };
    (!closes || 0 < opened).then_some((separator, value))
}

/// Start of the string that fills a field or stands in for a variable: `('#password').fill('…`,
/// `get('PASSWORD', default='…`.
fn selected(scan: &Scan<'_>, start: usize, end: usize) -> Option<(Quote, usize)> {
    let closed = scan.run_within(end, 8, |byte| b"]'\")/i`\\".contains(&byte));
    if closed == end {
        return None;
    }
    let rest = scan.from(closed);
    let is_string = matches!(scan.before(start), b'"' | b'\'');
    if let Some(value) = converted(scan, closed).filter(|_| is_string) {
        return Some(value);
    }
    let fills = words::FILLS.iter().filter(|it| rest.starts_with(**it));
    let fill = fills.max_by_key(|it| it.len())?;
    let value = scan.gap(closed + fill.len());
    let prefix = usize::from(scan.byte(value) == b'b');
    scan.quote(value + prefix).map(|(quote, _)| (quote, value))
}

/// Start of the string after the name, in a call or behind a blank: `from_static("x-api-key"), HeaderValue::from("…")`,
/// `writeText "password" "…"`. It must look like a secret.
fn converted(scan: &Scan<'_>, at: usize) -> Option<(Quote, usize)> {
    /// Maximum bytes of the name of a call.
    const CALL_MAX: usize = 48;
    let value = match scan.byte(at) {
        b',' => {
            let call = scan.run_within(at + 1, CALL_MAX, |byte| byte.is_ascii_whitespace());
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_:.<>&".contains(&byte);
            let end = scan.run_within(call, CALL_MAX, fits);
            (call < end && scan.byte(end) == b'(').then_some(end + 1)?
        }
        b' ' => scan.gap(at),
        _ => return None,
    };
    let secret = scan.piece(scan.string(value)?);
    let fits = value::is_key(secret) || value::is_likely(secret) || value::is_marked(secret);
    let (quote, _) = scan.quote(value)?;
    (fits && !value::is_versioned(secret)).then_some((quote, value))
}

/// Start of the value in `{"type": …, "value": …}`, or `at` if there is no such object.
fn nested_value(scan: &Scan<'_>, at: usize) -> usize {
    /// Maximum bytes of such an object.
    const OBJECT_MAX: usize = 256;
    if scan.byte(at) != b'{' {
        return at;
    }
    let end = scan.run_within(at + 1, OBJECT_MAX, |byte| !matches!(byte, b'{' | b'}'));
    let members = scan.piece(at + 1..end).match_indices("value");
    let value = |name: usize| {
        let (_, after) = scan.quote(name + "value".len())?;
        let colon = scan.gap(after);
        let named = matches!(scan.before(name), b'"' | b'\'') && scan.byte(colon) == b':';
        named.then(|| scan.gap(colon + 1))
    };
    members.map(|(found, _)| at + 1 + found).find_map(value).unwrap_or(at)
}

/// Returns whether the name is `--api-key` of a shell or `-ApiKey` of PowerShell.
fn is_flag(name: &str) -> bool {
    let Some(name) = name.strip_prefix('-') else { return false };
    name.starts_with(|letter: char| letter == '-' || letter.is_ascii_uppercase())
        || words::kind(name) == Some(words::Kind::Password)
}

/// Returns whether a blank is enough before a value that looks random: it is coloured, or a quoted
/// password, or can be nothing else.
fn is_apart(scan: &Scan<'_>, name: Range<usize>, at: usize) -> bool {
    const KEY_MAX: usize = 256;
    let kind = words::kind(scan.piece(name.clone()));
    let is_password = kind == Some(words::Kind::Password);
    let is_login = is_password || kind == Some(words::Kind::Token);
    let is_open = scan.quote(name.end).is_none();
    if let Some((quote, start)) = scan.quote(at) {
        let is_key = || is_login && value::is_key(scan.piece(scan.quoted(quote, start)));
        return is_open && quote.depth == 0 && quote.mark != b'`' && (is_password || is_key());
    }
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"\"'`,;()<>\\".contains(&byte);
    let end = scan.run_within(at, KEY_MAX, fits);
    let word = scan.piece(at..end).trim_end_matches(['.', ':']);
    let ends = matches!(scan.byte(end), 0 | b'\n' | b'\r' | b'\\');
    let is_column = is_blank(scan.byte(name.end + 1)) || scan.byte(name.end) == b'\t';
    let fills = ends && is_column && !scan.byte(name.start).is_ascii_punctuation();
    scan.byte(name.end) == 0x1b
        || is_open && (ends || scan.byte(end) == b' ') && value::is_key(word) && !word.contains('-')
        || is_password && (value::is_strong(word) || value::is_marked(word))
        || is_login && (value::is_made_up(word) || fills && value::is_mixed(word, 1))
}

/// Position after the words between a name and its value: `for the server:`, `of bob is`. One word among them may be
/// any, after a link: `for the billing box is`.
fn linked(scan: &Scan<'_>, mut at: usize, is_variable: bool) -> Option<(Separator, usize)> {
    /// Maximum words in such a chain.
    const LINKS_MAX: usize = 5;
    let marks = |at: usize| matches!(scan.byte(at), b':' | b'=');
    // `password (bob): …`
    if matches!(scan.byte(at), b'(' | b'[') {
        let end = scan.run_within(at, 32, |byte| !matches!(byte, b')' | b']' | b'\n'));
        let next = scan.gap(end + 1);
        return marks(next).then_some((Separator::Linked, next + 1));
    }
    let mut others = 0;
    for place in 0..LINKS_MAX {
        let is_letter =
            |byte: u8| byte.is_ascii_alphabetic() || b"'-".contains(&byte) || !byte.is_ascii();
        let end = scan.run_within(at, 32, is_letter);
        let word = scan.piece(at..end).to_lowercase();
        // `DB_PASSWORD to …`, `DB_PASSWORD is now …`
        let next = scan.gap(end);
        if is_variable && end < next && words::LEADS.contains(word.as_str()) {
            return Some((Separator::Is, next));
        }
        if !words::LINKS.contains(word.as_str()) {
            others += 1;
            if place == 0 || 1 < others || end == at {
                return None;
            }
            at = scan.gap(end);
            if marks(at) {
                return Some((Separator::Linked, at + 1));
            }
            continue;
        }
        if marks(next) {
            return Some((Separator::Linked, next + 1));
        }
        let led = scan.run_within(next, 8, |byte| byte.is_ascii_alphabetic());
        let is_led = is_variable && words::LEADS.contains(scan.piece(next..led));
        if words::VERBS.contains(word.as_str()) && !is_led {
            let opened =
                OPENING.iter().find(|it| !it.is_ascii() && scan.from(next).starts_with(**it));
            let value = next + opened.map_or(0, |it| it.len_utf8());
            return (end < next).then_some((Separator::Is, value));
        }
        at = next;
    }
    None
}

/// Position after a dash or an arrow between a name and its value.
fn dashed(scan: &Scan<'_>, at: usize) -> Option<usize> {
    let marks = ["->", "→", "- ", "– ", "— "];
    marks.iter().find(|it| scan.from(at).starts_with(**it)).map(|it| at + it.len())
}

/// Returns whether the user stands before the name, on its line or in the lines above: `user bob password …`.
fn is_behind_user(scan: &Scan<'_>, start: usize) -> bool {
    let head = scan.piece(scan.line_start(start, GAP_MAX)..start);
    let head = match head.trim().is_empty() {
        true => scan.piece(scan.floor(start.saturating_sub(GAP_MAX))..start),
        false => head,
    };
    names_user(head, 1)
}

/// Returns whether the line begins with a command of a configuration that names a secret further on.
fn is_configured(scan: &Scan<'_>, start: usize) -> bool {
    let line = scan.piece(scan.line_start(start, GAP_MAX)..start);
    line.split_whitespace().next().is_some_and(|it| words::SETTERS.contains(it))
}

/// Returns whether an identifier starts its line, so that a blank may join it to a value: `hibernate.connection.password …`.
fn is_setting(scan: &Scan<'_>, name: Range<usize>, value: usize) -> bool {
    let end = scan.run_within(value, GAP_MAX, |byte| byte > b' ');
    if !matches!(scan.byte(end), 0 | b'\n' | b'\r') {
        return false;
    }
    let line = scan.piece(scan.line_start(name.start, GAP_MAX)..name.end).trim_start();
    let is_divided = line.contains(['.', '_', '-'])
        || line
            .as_bytes()
            .windows(2)
            .any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    is_divided && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Position behind the kind of a secret in the settings of a router: `password 0 …`.
pub(super) fn behind_kind(scan: &Scan<'_>, at: usize) -> usize {
    let is_kind = scan.byte(at).is_ascii_digit() && is_blank(scan.byte(at + 1));
    if is_kind { scan.gap(at + 1) } else { at }
}

/// Start of the value of the pair whose name is at `start..end`.
pub(super) fn pair_value(
    scan: &Scan<'_>,
    start: usize,
    end: usize,
) -> Option<(Option<Quote>, Separator, usize)> {
    let (quote, after) = scan.quote_or(end);
    let mut key = gap_end(scan, after);
    for _ in 0..if is_pair_name(scan, start) { MEMBERS_MAX } else { 0 } {
        key = other_member(scan, key).unwrap_or(key);
    }
    if key == after {
        return value_before(scan, start).map(|value| (quote, Separator::Colon, value));
    }
    let (key_quote, word) = scan.quote_or(key);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b':' || byte == b'_';
    let word_end = scan.run_within(word, NAME_SPACE_MAX, fits);
    let word_end = word_end - usize::from(scan.before(word_end) == b':');
    if !holds_value(scan.piece(word..word_end)) {
        return value_before(scan, start).map(|value| (quote, Separator::Colon, value));
    }
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

/// Returns whether a member with this name holds the value of a pair.
fn holds_value(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("value") || name == "val" || name == "content"
}

/// Position after a member that is not the value of a pair: `"type": "SECURE",`.
fn other_member(scan: &Scan<'_>, at: usize) -> Option<usize> {
    let name = scan.string(at).filter(|name| !holds_value(scan.piece(name.clone())))?;
    let colon = scan.gap(scan.quote(name.end)?.1);
    let value = scan.string(scan.gap(colon + 1)).filter(|_| scan.byte(colon) == b':')?;
    let (_, after) = scan.quote(value.end)?;
    (scan.byte(scan.gap(after)) == b',').then(|| gap_end(scan, after))
}

/// Start of the value whose name follows: `"value": "…", "name": "password"`.
fn value_before(scan: &Scan<'_>, start: usize) -> Option<usize> {
    if !is_pair_name(scan, start) {
        return None;
    }
    let head = scan.piece(scan.floor(start.saturating_sub(GAP_MAX))..start);
    let (member, _) = head.rsplit_once(',')?;
    let (name, value) = member.rsplit_once(':')?;
    let text = value.trim_matches(|it: char| it.is_whitespace() || "\"'\\".contains(it));
    let named = name.trim_end_matches(['"', '\'', '\\']).to_ascii_lowercase().ends_with("value");
    let quoted = value.trim_start().starts_with(['"', '\'', '\\']) && !text.contains('"');
    let at = start - head.len() + name.len() + 1;
    (named && quoted).then(|| scan.gap(at))
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
    let word = scan.piece(word..end).to_ascii_lowercase();
    let is_type = word == "type";
    PAIR_NAMES.iter().any(|name| word.ends_with(name))
        && (!is_type || scan.from(start).starts_with("password"))
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
    let ends_with = |known: &&str| {
        word.strip_suffix(known).is_some_and(|before| {
            before.bytes().next_back().is_none_or(|byte| !byte.is_ascii_alphanumeric())
                || scan.escape_ends(start - head.len() + before.len())
        })
    };
    let sets = word.len() < head.len() && words::ENVIRONMENTS.iter().any(ends_with);
    let sql_name = ["password", "secret"].iter().any(|known| name.eq_ignore_ascii_case(known));
    let quoted = scan.byte(scan.gap(end)) == b'\'' && sql_name;
    let line = head.rsplit('\n').next().unwrap_or_default().to_ascii_lowercase();
    let sql = || ["alter ", "create ", "set ", "grant "].iter().any(|word| line.contains(word));
    sets || quoted && sql()
}
