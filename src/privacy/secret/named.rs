//! Secrets identified by a name: `password = "…"`, `API_KEY=…`, `"token": "…"`, `--password …`.
//!
//! A quoted literal after such a name is secret. An unquoted word is secret if the form says so (an
//! environment file, a query, a flag) or if it looks like one: types, calls and variables stay.

use super::scan::{Quote, Scan, is_blank};
use super::separator::{Separator, pair_value, separator};
use super::value;
use super::words::{self, Kind};
use super::{file, sentence, shape};
use std::ops::Range;

/// Maximum length of a name; anything longer is data.
const NAME_MAX: usize = 80;

/// Length of a key of 256 bits in base64.
const KEY_LEN: usize = 44;

/// Maximum length of a word that may be code; anything longer is data.
const WORD_MAX: usize = 1024;

/// A name and where its value starts.
struct NamedValue<'a> {
    name: &'a str,
    kind: Kind,
    start: usize,
    /// Quote after the name, if the name is quoted.
    quote: Option<Quote>,
    separator: Separator,
    value: usize,
    /// Blanks surround the separator.
    spaced: bool,
    /// The name is the value of a `name` or `key` member, and the secret that of `value`.
    paired: bool,
}

/// Reads a name, the token that joins it to a value, and the value.
pub(super) fn read(scan: &mut Scan<'_>, at: Range<usize>) {
    if at.start < scan.named_to {
        return;
    }
    let Some(mut named) = find_name(scan, at) else { return };
    scan.named_to = named.value.min(scan.bytes.len());
    if named.separator == Separator::Colon && block(scan, &named) {
        return;
    }
    let tag = scan.run_within(named.value, NAME_MAX, |byte| byte > b' ');
    let is_tag = named.separator == Separator::Colon && scan.byte(named.value) == b'!';
    if is_tag && is_blank(scan.byte(tag)) && !value::is_reference(scan.piece(named.value..tag)) {
        named.value = scan.gap(tag);
    }
    let listed = matches!(named.separator, Separator::Equals | Separator::Colon);
    if listed && scan.byte(named.value) == b'(' {
        // A literal in brackets, perhaps of several parts.
        let first = scan.run_within(named.value + 1, NAME_MAX, |byte| byte.is_ascii_whitespace());
        named.value = if scan.quote(first).is_some() { first } else { named.value };
    }
    let prefixed = match scan.byte(named.value) {
        b'b' | b'r' | b'f' | b'u' | b'@' | b'N' if scan.quote(named.value + 1).is_some() => 1,
        _ => 0,
    };
    let tripled = ["\"\"\"", "'''"].iter().any(|it| scan.from(named.value).starts_with(it));
    let prefixed = prefixed.max(wrapper(scan, named.value)).max(if tripled { 2 } else { 0 });
    if let Some(content) = scan.marked_string(named.value).filter(|_| named.quote.is_none()) {
        let secret = scan.piece(content.clone());
        let fits = matches!(named.kind, Kind::Password | Kind::Token)
            && !secret.contains(' ')
            && 4 <= secret.len();
        let is_call = scan.before(content.start) == b'(' && !value::is_random(secret);
        if fits && !is_call && !value::is_no_secret(secret, named.name) {
            scan.named_to = content.end;
            scan.add_hit(content);
        }
        return;
    }
    match scan.quote(named.value + prefixed) {
        Some((quote, _)) if named.quote.is_some_and(|name| quote.ends_around(name)) => {}
        Some((quote, start)) => quoted(scan, &named, quote, start),
        None if listed && scan.byte(named.value) == b'[' => list(scan, &named),
        None => unquoted(scan, &named),
    }
}

/// Length of `String::from(` or `[]byte(` before a quote.
fn wrapper(scan: &Scan<'_>, at: usize) -> usize {
    const WRAPPER_MAX: usize = 24;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"[]:._".contains(&byte);
    let end = scan.run_within(at, WRAPPER_MAX, fits);
    let name = scan.piece(at..end).rsplit([':', '.', ']']).next().unwrap_or_default();
    let closes =
        |string: Range<usize>| matches!(scan.byte(scan.quote_or(string.end).1), b')' | b'.' | b',');
    let wraps = scan.byte(end) == b'(' && scan.string(end + 1).is_some_and(closes);
    if wraps && words::WRAPPERS.contains(name) { end + 1 - at } else { 0 }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Finds the name that the keyword is part of, if a value may follow it.
fn find_name<'a>(scan: &mut Scan<'a>, at: Range<usize>) -> Option<NamedValue<'a>> {
    let is_mark = |byte: u8| byte.is_ascii() && !is_name_byte(byte);
    let core = scan.run(at.start, is_mark).min(at.end);
    let last = scan.run_back(at.end, at.len(), is_mark);
    let left = scan.run_back(core, NAME_MAX, is_name_byte);
    let end = scan.run(last, is_name_byte);
    if NAME_MAX < end - left {
        scan.named_to = end;
        return None;
    }
    let start = scan.skip_escape(left, at.end);
    let pair = pair_value(scan, start, end);
    let paired = pair.is_some();
    let Some((quote, separator, value)) = pair.or_else(|| separator(scan, start, end)) else {
        file::table(scan, start..end);
        sentence::shown(scan, start..end);
        return None;
    };
    scan.named_to = end;
    let name = scan.text.get(start..end)?.trim_matches('-');
    // `--ask-password`
    if ["ask-", "no-", "prompt-"].iter().any(|it| name.starts_with(it)) {
        return None;
    }
    // `${NAME:?missing}` is an error message, not a value.
    if separator == Separator::Colon
        && scan.piece(start.saturating_sub(2)..start) == "${"
        && scan.byte(value) == b'?'
    {
        return None;
    }
    let kind = kind(scan, name, start, separator).or_else(|| {
        let end = scan.run_within(scan.quote_or(value).1, KEY_LEN, shape::is_base64);
        let key = scan.piece(scan.quote_or(value).1..end);
        let is_base64 = key.len() == KEY_LEN && key.ends_with('=');
        // `id:secret`, both in hexadecimal digits
        let rest = scan.byte(end) == b':' && {
            let end = scan.run_within(end + 1, 2 * KEY_LEN, |byte| byte.is_ascii_hexdigit());
            value::is_hex_key(scan.piece(scan.quote_or(value).1 + key.len() + 1..end))
        };
        (name == "key" && (is_base64 || rest)).then_some(if rest { Kind::Token } else { Kind::Key })
    })?;
    let spaced = is_blank(scan.byte(end)) || is_blank(scan.before(value));
    Some(NamedValue { name, kind, start, quote, separator, value, spaced, paired })
}

fn kind(scan: &Scan<'_>, name: &str, start: usize, separator: Separator) -> Option<Kind> {
    let in_query = matches!(scan.before(start), b'?' | b'&') && separator == Separator::Equals;
    let short = in_query && ["key", "code", "sig", "jwt", "session", "hmac"].contains(&name);
    // `api.key=`
    let path = scan.run_back(start, NAME_MAX, |byte| is_name_byte(byte) || byte == b'.');
    let dotted = (name == "key").then(|| scan.piece(path..start + name.len()));
    match dotted.unwrap_or(name) {
        "pass" if in_query => Some(Kind::Password),
        name if name.ends_with("sonar.login") => Some(Kind::Key),
        "appid" if in_query => Some(Kind::Key),
        name => words::kind(name).or(short.then_some(Kind::Maybe)),
    }
}

fn quoted(scan: &mut Scan<'_>, named: &NamedValue<'_>, quote: Quote, start: usize) {
    let same = named.quote.is_some_and(|name| name.mark == quote.mark);
    if !same && scan.lies_in_string(named.start, quote) {
        return;
    }
    // A quote less deep than the name's closes the string that contains the name.
    if named.quote.is_some_and(|name| quote.depth < name.depth) {
        return;
    }
    let content = scan.quoted(quote, start);
    let secret = scan.piece(content.clone());
    // `NAME=`command argument`` of a shell
    if quote.mark == b'`' && !named.spaced && secret.contains(' ') {
        return;
    }
    let continues = secret.trim_start().starts_with([')', ',', ';', ']', '}', '+'])
        && secret.len() != secret.trim_start().len()
        || matches!(secret.bytes().next(), Some(b')' | b',' | b';' | b']' | b'}'))
            && named.quote.is_none();
    let secret_by_form = fits_form(scan, named, &content);
    // `"login.forgotPassword": "Passwort vergessen?"`
    let is_message = named.quote.is_some() && scan.before(named.start) == b'.';
    let is_message = is_message && value::is_message(secret);
    if secret_by_form && !continues && !is_message && !value::is_no_secret(secret, named.name) {
        scan.named_to = content.end;
        scan.add_hit(content);
    }
}

/// Returns whether a string is a secret because of what joins it to the name.
fn fits_form(scan: &Scan<'_>, named: &NamedValue<'_>, content: &Range<usize>) -> bool {
    let secret = scan.piece(content.clone());
    let head = scan.piece(scan.line_start(named.start, NAME_MAX)..named.start);
    let after = scan.run(content.end, |byte| b"\\\"'`".contains(&byte));
    let random = value::is_random(secret);
    let is_password = named.kind == Kind::Password;
    let is_login = is_password || named.kind == Kind::Token;
    match named.separator {
        Separator::Equals
        | Separator::Colon
        | Separator::Compares
        | Separator::Flag
        | Separator::Linked => match named.kind {
            Kind::Password | Kind::Token => true,
            Kind::Maybe if named.name.eq_ignore_ascii_case("pass") => {
                random
                    || scan.before(named.start) == b'$' && value::is_plain_password(secret)
                    || is_below_user(scan, named)
                    || named.name == "PASS" && value::may_be_secret(secret, false)
            }
            Kind::Maybe if named.name.to_ascii_lowercase().ends_with("pin") => {
                named.quote.is_some() && is_pin(secret)
            }
            Kind::Maybe => random && 16 <= secret.len(),
            Kind::Key => value::is_key(secret),
        },
        Separator::Call => {
            (is_password || is_login && random && 16 <= secret.len()) && scan.byte(after) == b')'
        }
        Separator::Comma => {
            let sets = ["setProperty(\"", "setenv(\"", "setenv('", "fill(", "type("];
            let is_set = is_password && sets.iter().any(|it| head.contains(it))
                || scan.piece(named.start..named.start + 2) == "--";
            // `process.env.SECRET || '…'`, `with: "…"`
            let from = scan.floor(content.start.saturating_sub("with: '".len()));
            let joint = scan.piece(from..content.start);
            let defaults = ["||", "??", "with:", "s('", "s(\"", "type("];
            let is_default = is_login && defaults.iter().any(|it| joint.contains(it));
            let is_defined = head.contains("define(") && (is_password || KEY_LEN <= secret.len());
            random
                || is_defined
                || is_set && value::may_be_secret(secret, false)
                || is_default && value::is_plain_password(secret)
        }
        Separator::Is => {
            let is_phrase =
                named.name == "PSK" || named.name.to_ascii_lowercase().ends_with("passphrase");
            let given = || sentence::is_given(head) && value::may_be_secret(secret, false);
            let rest = scan.piece(after..scan.line_end(after, NAME_MAX));
            let plain = || value::is_plain_password(secret) && sentence::ends_clause(rest);
            random || is_phrase && value::is_words(secret) || is_password && (given() || plain())
        }
        Separator::Tag => false,
    }
}

/// `["…", "…"]`: masks each string that looks like a secret; lists also hold password rules.
fn list(scan: &mut Scan<'_>, named: &NamedValue<'_>) {
    /// A longer list holds no credentials.
    const STRINGS_MAX: usize = 64;
    /// Maximum bytes of blanks and line ends between two strings.
    const GAP_MAX: usize = 256;
    let mut at = named.value + 1;
    for _ in 0..STRINGS_MAX {
        at = scan.run_within(at, GAP_MAX, |byte| byte.is_ascii_whitespace());
        let Some((quote, start)) = scan.quote(at) else { return };
        let content = scan.quoted(quote, start);
        let secret = scan.piece(content.clone());
        if value::is_random(secret) && !secret.contains(char::is_whitespace) {
            quoted(scan, named, quote, start);
        }
        let closed = scan.quote(content.end).filter(|(closing, _)| *closing == quote);
        let Some((_, after)) = closed else { return };
        let after = scan.run_within(after, GAP_MAX, |byte| byte.is_ascii_whitespace());
        if scan.byte(after) != b',' {
            return;
        }
        at = after + 1;
    }
}

/// Range of a password that a mail server made for a program: `lutn qifg krgw nbvi`.
fn in_fours(scan: &Scan<'_>, named: &NamedValue<'_>) -> Option<Range<usize>> {
    const LENGTH: usize = "lutn qifg krgw nbvi".len();
    let at = named.value..named.value + LENGTH;
    let fits = |(at, letter): (usize, u8)| match at % 5 {
        4 => letter == b' ',
        _ => letter.is_ascii_lowercase(),
    };
    let words = scan.piece(at.clone());
    let is_sentence = words.split(' ').any(|it| words::GRAMMAR.contains(it));
    let ends = !scan.byte(at.end).is_ascii_alphanumeric() && scan.byte(at.end) != b' ';
    let whole = named.kind == Kind::Password && words.len() == LENGTH && ends && !is_sentence;
    (whole && words.bytes().enumerate().all(fits)).then_some(at)
}

/// Range of an unquoted word. A quote, an escape or a tag ends it in any form.
fn bare(scan: &Scan<'_>, named: &NamedValue<'_>, form: Form) -> Range<usize> {
    let hard = |byte: u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | 0x1b)
    };
    let ends = |byte: u8| match form {
        Form::Environment => hard(byte),
        Form::Query => hard(byte) || b"&#)]},;".contains(&byte),
        Form::Other => hard(byte) || b",;()[]{}".contains(&byte),
    };
    if b",;&".contains(&scan.byte(named.value)) {
        return named.value..named.value;
    }
    // `Pwd={a;b};` of a connection string
    if scan.before(named.start) == b';' && scan.byte(named.value) == b'{' {
        let end = scan.run_within(named.value, WORD_MAX, |byte| byte != b'}' && !hard(byte));
        return named.value + 1..end;
    }
    let mut end = scan.run(named.value, |byte| !ends(byte));
    if form == Form::Other && named.quote.is_none() {
        // A value alone on its line includes commas, and brackets other than those of a call.
        let whole = scan.run_within(end, WORD_MAX, |byte| !hard(byte));
        let word = scan.piece(named.value..end);
        let call = matches!(scan.byte(end), b'(' | b'[' | b'{')
            && (word.is_empty() || value::is_code_or_name(word));
        if !call && stands_alone(scan, named, whole) {
            end = whole;
        }
    }
    let short = scan.floor(end.min(named.value + WORD_MAX));
    if let Some(next) = next_parameter(scan.piece(named.value..short)) {
        end = named.value + next;
    }
    let ends = |it: char| ".,;:)]}!|".contains(it) || sentence::CLOSING.contains(&it);
    let word = scan.piece(named.value..end).trim_end_matches(ends);
    named.value..named.value + word.len()
}

/// Position of a following `&name=`: the value is a form parameter.
fn next_parameter(word: &str) -> Option<usize> {
    word.match_indices('&').map(|(at, _)| at).find(|at| {
        let name = word.get(at + 1..).and_then(|rest| rest.split_once('='));
        name.is_some_and(|(name, _)| value::is_name(name))
    })
}

/// Context of a name, which decides how its value is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    /// `NAME=value` in capitals, nothing between.
    Environment,
    /// `?name=value`
    Query,
    /// Anything else.
    Other,
}

fn form(scan: &Scan<'_>, named: &NamedValue<'_>) -> Form {
    let capitals = named
        .name
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit());
    let tight = named.separator == Separator::Equals && !named.spaced;
    match (tight, scan.before(named.start)) {
        (true, b'?' | b'&' | b'#') => Form::Query,
        (true, _) if capitals => Form::Environment,
        _ => Form::Other,
    }
}

fn unquoted(scan: &mut Scan<'_>, named: &NamedValue<'_>) {
    let form = form(scan, named);
    if named.separator == Separator::Tag {
        return tagged(scan, named);
    }
    if let Some(at) = in_fours(scan, named) {
        scan.named_to = at.end;
        return scan.add_hit(at);
    }
    let at = bare(scan, named, form);
    if named.separator == Separator::Colon && declared(scan, named, at.end) {
        return;
    }
    let word = scan.piece(at.clone());
    let is_place = named.name.to_ascii_lowercase().ends_with("pwd") && word.starts_with(['/', '~']);
    let shortened = word.ends_with(['-', '_']) && scan.from(at.end).starts_with("..");
    // The name of a stored secret: `arn:aws:secretsmanager:…:secret:prod/db`.
    let head = scan.piece(scan.line_start(named.start, NAME_MAX)..named.start);
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || ":-".contains(letter);
    let arn = head.rsplit(|letter| !is_part(letter)).next().unwrap_or_default();
    let is_arn = arn.starts_with("arn:") && arn.contains(":secretsmanager:") && arn.ends_with(':');
    if word.is_empty() || is_place || shortened || is_arn {
        return;
    }
    // A word longer than any reference is data.
    let long = WORD_MAX < word.len();
    if !long && value::is_reference(word) {
        return;
    }
    if long || is_secret(scan, named, form, &at) {
        scan.named_to = at.end;
        let key =
            named.quote.filter(|quote| quote.mark == b'"' && named.separator == Separator::Colon);
        scan.add_hit_quoted(at, key.map(|quote| quote.depth));
    }
}

fn is_secret(scan: &Scan<'_>, named: &NamedValue<'_>, form: Form, at: &Range<usize>) -> bool {
    let word = scan.piece(at.clone());
    let next = scan.byte(at.end);
    let called =
        matches!(next, b'(' | b'[') || (next == b'<' && value::is_generic(word, scan.from(at.end)));
    if called || value::is_code(word) && form == Form::Other {
        return false;
    }
    if value::is_number(word) {
        return is_secret_number(named, form, word);
    }
    if named.kind == Kind::Key {
        return value::is_key(word) || is_header(named) && value::is_random(word);
    }
    let colon = named.separator == Separator::Colon;
    let is_bare = named.kind != Kind::Maybe && form == Form::Other && !named.paired;
    // Most such words are types and variables, whose place need not be read.
    if (colon || named.separator == Separator::Linked)
        && is_bare
        && !is_label(named)
        && !value::is_random(word)
        && !value::may_be_secret(word, colon)
    {
        return false;
    }
    let slot = slot(scan, named, at.end);
    let (line, is_open) = (slot == Slot::Line, slot != Slot::Inner);
    // `pass` is also a verb, as in "tests pass": it names a password only if one follows.
    if named.kind == Kind::Maybe && named.name.eq_ignore_ascii_case("pass") {
        let is_linked = named.separator == Separator::Linked || is_beside_user(scan, named);
        let is_set = line || is_option(scan, named, at.end, word);
        return (is_set && is_below_user(scan, named) || is_open && is_linked)
            && value::may_be_secret(word, false)
            || line && (value::is_plain_password(word) || value::is_distinct(word))
            || value::is_random(word)
                && value::is_name(word)
                && !word.contains('_')
                && !word.to_ascii_lowercase().starts_with("test")
                && is_plain(scan, named, slot, at.end, word);
    }
    if named.paired {
        return value::is_random(word) || value::may_be_secret(word, true);
    }
    if matches!(named.separator, Separator::Is | Separator::Linked) && value::is_identifier(word) {
        return false;
    }
    let random = value::is_random(word)
        && (!value::is_name(word) || is_open || !named.spaced || 10 <= word.len());
    match (named.separator, form) {
        (Separator::Compares | Separator::Call | Separator::Comma | Separator::Tag, _) => false,
        (_, _) if named.kind == Kind::Maybe => {
            let plain = line && words::is_login(named.name)
                || is_open && !line && is_beside_user(scan, named);
            8 <= word.len() && value::is_random(word)
                || named.separator != Separator::Is && plain && value::is_plain_password(word)
        }
        (_, Form::Environment) => {
            !is_expression(word) && !words::names_secret(&word.to_lowercase())
        }
        (_, Form::Query) => true,
        (Separator::Flag, Form::Other) => {
            !value::is_about(word) && !is_metavariable(word) && !is_label_of(word)
        }
        (Separator::Is, Form::Other) => value::is_random(word),
        (Separator::Linked, Form::Other) => {
            let plain = is_open && named.kind == Kind::Password;
            value::is_random(word) || plain && value::is_plain_password(word)
        }
        (Separator::Equals, Form::Other) => {
            random
                || is_option(scan, named, at.end, word)
                || is_plain(scan, named, slot, at.end, word)
        }
        (Separator::Colon, Form::Other) => {
            random
                || (is_open && is_label(named) && !value::is_about(word))
                || is_plain(scan, named, slot, at.end, word)
                || value::is_made_up(word)
                || (words::is_login(named.name) && value::ends_in_digits(word))
        }
    }
}

fn is_secret_number(named: &NamedValue<'_>, form: Form, word: &str) -> bool {
    let digits = value::count(word, u8::is_ascii_digit);
    match named.kind {
        Kind::Password => 4 <= digits,
        Kind::Token => {
            let key = named.quote.is_some() && digits == word.len();
            (form != Form::Other && 6 <= digits) || (key && 8 <= digits)
        }
        Kind::Maybe => {
            let is_set = named.quote.is_some() || form == Form::Environment;
            is_set && named.name.to_ascii_lowercase().ends_with("pin") && is_pin(word)
        }
        Kind::Key => false,
    }
}

/// `password: plain` that fills its line or its clause, and `password=plain` among words. With blanks around the
/// separator, a word among words must look like a secret.
fn is_plain(scan: &Scan<'_>, named: &NamedValue<'_>, slot: Slot, end: usize, word: &str) -> bool {
    let is_foreign = !word.is_ascii() && named.kind != Kind::Password;
    if named.quote.is_some() || is_foreign || !words::is_login(named.name) {
        return false;
    }
    let colon = named.separator == Separator::Colon;
    let next = scan.gap(end);
    let goes_on = end < next && scan.byte(next).is_ascii_alphabetic();
    let ends = matches!(scan.byte(next), 0 | b'\n' | b'\r' | b'"' | b'\'');
    let quoted = matches!(scan.before(named.start), b'"' | b'\'')
        && scan.before(named.start) == scan.byte(next);
    let starts = named.start == 0 || scan.before(named.start).is_ascii_whitespace() || quoted;
    let among_words = !colon && starts && (goes_on || ends);
    let clause = among_words && (!named.spaced || value::is_random(word));
    let is_word = || value::is_plain_password(word) && is_beside_user(scan, named);
    let member = starts && scan.byte(next) == b'}' && (!value::is_name(word) || is_word());
    let is_listed = slot == Slot::Clause
        && named.kind == Kind::Password
        && (colon && value::is_plain_password(word) || is_beside_user(scan, named));
    (clause || member || slot == Slot::Line || is_listed) && value::may_be_secret(word, colon)
}

/// `"pin": "…"` of a person, not of a chip.
fn is_pin(word: &str) -> bool {
    (4..=8).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a pair before the name says who the user is: `user bob, pass: …`, `user: bob, port: 22, pass: …`.
fn is_beside_user(scan: &Scan<'_>, named: &NamedValue<'_>) -> bool {
    let head = scan.piece(scan.line_start(named.start, 2 * NAME_MAX)..named.start).trim_end();
    let last = head.rsplit([' ', '\t']).next().unwrap_or_default();
    let in_list = head.ends_with([',', '/', '|', ';', '-', '('])
        || last.split_once([':', '=']).is_some_and(|(name, _)| words::is_user(name))
        || head.contains([':', '=']);
    in_list && sentence::names_user(head, usize::MAX)
}

/// Returns whether a setting for the user precedes: `user = bob`.
fn is_below_user(scan: &Scan<'_>, named: &NamedValue<'_>) -> bool {
    /// Maximum bytes before the name that are searched.
    const ABOVE_MAX: usize = 256;
    let above = scan.piece(scan.floor(named.start.saturating_sub(ABOVE_MAX))..named.start);
    let joined = named.separator == Separator::Equals || named.quote.is_some();
    let next = || above.trim_end_matches([' ', '-', '*', '\n']).rsplit('\n').next();
    sentence::names_user(if joined { above } else { next().unwrap_or_default() }, usize::MAX)
}

/// `DB_PASSWORD: …` of an environment, `X-Api-Key: …` of a request: even a plain word is secret.
fn is_label(named: &NamedValue<'_>) -> bool {
    let capitals = named.name.contains(['_', '-'])
        && named.name.bytes().all(|byte| !byte.is_ascii_lowercase());
    named.quote.is_none() && (capitals || is_header(named))
}

fn is_header(named: &NamedValue<'_>) -> bool {
    named.name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
}

/// `--password=plain`, and `…;Password=plain;…` in a connection string.
fn is_option(scan: &Scan<'_>, named: &NamedValue<'_>, end: usize, word: &str) -> bool {
    let flag = scan.byte(named.start) == b'-' && !is_metavariable(word);
    let head = scan.piece(scan.line_start(named.start, NAME_MAX)..named.start);
    let listed = matches!(scan.before(named.start), b';' | b'=')
        || head.ends_with(',') && !head.contains('(')
        || head.ends_with('.') && head.contains('-')
        || (scan.byte(end) == b';' && scan.byte(end + 1).is_ascii_alphabetic());
    !named.spaced && (flag || listed) && !value::is_about(word) && !is_label_of(word)
}

/// `db`, `id=npm`: the name of a secret.
fn is_label_of(word: &str) -> bool {
    word.len() < 3 || word.starts_with("id=")
}

/// `PASSWORD`, as in a usage line.
fn is_metavariable(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte == b'-')
}

/// Code as the value of `NAME=`: `os.environ["X"]`, `config.api_key`.
fn is_expression(word: &str) -> bool {
    let roots = [
        "os.", "self.", "this.", "process.", "config.", "settings.", "env.", "args.", "options.",
        "secrets.",
    ];
    word.contains("://") && !word.contains('@')
        || roots.iter().any(|root| word.starts_with(root))
        || (word.ends_with('(') || word.contains("(\"") || word.contains("()"))
}

/// Place of a pair of a name and a value in its line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Slot {
    /// Within a sentence or an expression.
    Inner,
    /// Between marks or behind a few words: `user: bob, password: …`, `the admin password: …`.
    Clause,
    /// The whole line.
    Line,
}

fn slot(scan: &Scan<'_>, named: &NamedValue<'_>, end: usize) -> Slot {
    /// Maximum words between a mark and the name.
    const WORDS_MAX: usize = 5;
    if stands_alone(scan, named, end) {
        return Slot::Line;
    }
    let after = scan.piece(end..scan.line_end(end, NAME_MAX));
    let head = scan.piece(scan.line_start(named.start, 2 * NAME_MAX)..named.start);
    let head = head.rsplit(['"', '`', '\'']).next().unwrap_or_default();
    let quote = scan.before(named.start - head.len().min(named.start));
    let head = head.rsplit(" '").next().unwrap_or_default();
    let head = head.trim_start().trim_start_matches("<!--");
    // An open bracket is one of code, unless it encloses a remark: `bob (password: …)`.
    let is_open = |open: char, close: char| head.rfind(open) > head.rfind(close);
    let is_call = || {
        let before = head.rfind('(').and_then(|at| head.get(..at)).unwrap_or_default();
        before.ends_with(|it: char| it.is_alphanumeric() || it == '_')
    };
    let in_code = is_open('{', '}') || is_open('[', ']') || is_open('(', ')') && is_call();
    let marks = [',', ';', '|', '/', '(', '\t', '.', '!', '?'];
    let clause = head.rsplit(marks).next().unwrap_or_default();
    let is_word = |it: &str| it.chars().all(|c| c.is_alphanumeric() || "-'’*#>[]:".contains(c));
    // A line that ends in a comma is a member of an object or an argument.
    let is_member = head.trim().is_empty() && after.trim() == ",";
    let is_tag = scan.before(named.value) == b'>';
    let fits = clause.split_whitespace().all(is_word)
        && clause.split_whitespace().count() <= WORDS_MAX
        && (clause.is_empty() || clause.ends_with([' ', '*', '-']) || named.start == 0);
    // `curl -H 'X-Api-Key: …' https://…`
    let is_quoted = b"\"'`".contains(&quote) && after.as_bytes().first() == Some(&quote);
    match is_tag && after.starts_with('<') || fits && !in_code && !is_member {
        true if sentence::ends_clause(after) || is_tag || is_quoted => Slot::Clause,
        true | false => Slot::Inner,
    }
}

/// Returns whether the name starts its line and the value ends it.
fn stands_alone(scan: &Scan<'_>, named: &NamedValue<'_>, end: usize) -> bool {
    // `Neues Passwort`, `解压密码`
    let fits = |byte: u8| is_name_byte(byte) || byte == b'.' || !byte.is_ascii();
    let path = scan.run_back(named.start, NAME_MAX, fits);
    let path = scan.skip_escape(path, named.start);
    let head = scan.run_back(path, NAME_MAX, |byte| {
        is_blank(byte) || matches!(byte, b'-' | b'#' | b'>' | b'*')
    });
    let starts =
        head == 0 || matches!(scan.before(head), b'\n' | b'\r' | b'"') || scan.escape_ends(head);
    let tail = scan.gap(end);
    let ends = matches!(scan.byte(tail), 0 | b'\n' | b'\r' | b'\\' | b'#' | b'"');
    starts && ends
}

/// `password: str = "…"`: reads a type annotation and the literal after it.
fn declared(scan: &mut Scan<'_>, named: &NamedValue<'_>, type_end: usize) -> bool {
    const TYPE_MAX: usize = 64;
    let is_type = |byte: u8| byte.is_ascii_alphanumeric() || b"_&<>[]:,'|. ?".contains(&byte);
    let equals = scan.run_within(type_end, TYPE_MAX, is_type);
    if TYPE_MAX < equals - named.value || scan.byte(equals) != b'=' {
        return false;
    }
    // `hunter2hunter2` is not a type: the digits of a type end it and are its width (`complex128`).
    let word_end = scan.run(named.value, |byte| byte.is_ascii_alphanumeric());
    let word =
        scan.piece(named.value..word_end).trim_end_matches(|letter: char| letter.is_ascii_digit());
    if word.starts_with(|letter: char| letter.is_ascii_lowercase())
        && (word.contains(|letter: char| letter.is_ascii_digit())
            || word_end - named.value > word.len() + "128".len())
    {
        return false;
    }
    let at = scan.run(equals + 1, is_blank);
    let Some((quote, start)) = scan.quote(at) else { return false };
    let assigned = NamedValue { separator: Separator::Equals, value: at, ..*named };
    quoted(scan, &assigned, quote, start);
    true
}

/// `<password>…</password>`
fn tagged(scan: &mut Scan<'_>, named: &NamedValue<'_>) {
    let end =
        scan.run(named.value, |byte| !matches!(byte, b'<' | b'>' | b'"' | b'\\' | b'\n' | b'\r'));
    let closes = scan.piece(end..end + 2) == "</" || scan.piece(end..end + 3) == "<\\/";
    let end = end - if scan.piece(named.value..end).ends_with("]]") { "]]".len() } else { 0 };
    let closes = closes || scan.from(end).starts_with("]]>");
    let secret = scan.piece(named.value..end);
    let fits = matches!(named.kind, Kind::Password | Kind::Token)
        || value::is_random(secret)
        || value::is_plain_password(secret);
    if closes && fits && !secret.is_empty() && !value::is_no_secret(secret, named.name) {
        scan.add_hit(named.value..end);
    }
}

/// Masks the deeper lines of a YAML block `password: |`; true if there is one.
fn block(scan: &mut Scan<'_>, named: &NamedValue<'_>) -> bool {
    const LINES_MAX: usize = 64;
    const LINE_MAX: usize = 1024;
    let header = scan.run_within(named.value, 4, |byte| b"|>+-123456789".contains(&byte));
    let mut end = scan.run(header, is_blank);
    if !matches!(scan.byte(named.value), b'|' | b'>') || scan.next_line(end).is_none() {
        return false;
    }
    let depth = named.start - scan.run_back(named.start, NAME_MAX, |byte| b" -\"'".contains(&byte));
    for _ in 0..LINES_MAX {
        let Some(line) = scan.next_line(end) else { break };
        let start = scan.run(line, |byte| byte == b' ');
        end = scan.line_end(start, LINE_MAX);
        let quote = scan.run_within(start, LINE_MAX, |byte| byte != b'"').min(end);
        let secret = scan.piece(start..quote).trim_end_matches([' ', '\\']);
        if start < end && start - line <= depth {
            break;
        }
        let random =
            named.kind == Kind::Password || named.kind == Kind::Token || value::is_random(secret);
        if random && !value::is_no_secret(secret, named.name) {
            scan.add_hit(start..start + secret.len());
        }
        if quote < end {
            break;
        }
    }
    true
}
