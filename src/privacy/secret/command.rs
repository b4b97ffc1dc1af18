//! Logins on a command line (table `[commands]` of `words.txt`), in statements, and in sentences of
//! any language: a distinctive word near the word for a password, or a token after a word such as `is`.

use super::scan::{Scan, is_blank};
use super::{value, words};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Maximum bytes of a command that are searched for its login.
const COMMAND_MAX: usize = 512;

/// Position of the secret relative to a flag.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// `-p secret`, `-p=secret`
    Next,
    /// `-psecret`
    Glued,
    /// Either of the two.
    Either,
    /// After the separator in the next word: `-u user:secret`, `-U user%secret`.
    Behind(char),
    /// The last word of the command.
    Last,
    /// The first argument, if it is quoted or looks like a secret.
    First,
    /// The word before the flag.
    Before,
}

static COMMANDS: LazyLock<HashMap<&str, Vec<(&str, Form)>>> = LazyLock::new(|| {
    let mut commands: HashMap<&str, Vec<(&str, Form)>> = HashMap::new();
    for line in words::lines("commands") {
        let Some((form, rest)) = line.split_once(' ') else { continue };
        let form = match form {
            "next" => Form::Next,
            "glued" => Form::Glued,
            "either" => Form::Either,
            "login" => Form::Behind(':'),
            "percent" => Form::Behind('%'),
            "comma" => Form::Behind(','),
            "equals" => Form::Behind('='),
            "first" => Form::First,
            "before" => Form::Before,
            _ => Form::Last,
        };
        let (flags, names) = rest.split_once(" of ").unwrap_or((rest, ""));
        for name in names.split(", ") {
            let known = commands.entry(name).or_default();
            known.extend(flags.split(' ').map(|flag| (flag, form)));
        }
    }
    commands
});

pub(super) fn names() -> Vec<&'static str> {
    COMMANDS.keys().copied().collect()
}

/// Masks the secrets in the arguments of a command.
pub(super) fn login(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some(forms) = COMMANDS.get(scan.piece(at.clone())) else { return };
    if !scan.word_starts(at.start) || !matches!(scan.byte(at.end), b' ' | b'\t' | b'.') {
        return;
    }
    let end = scan.run_within(at.end, COMMAND_MAX, |byte| !matches!(byte, b'\n' | b'\r'));
    let arguments = scan.piece(at.end..end);
    let ends = [" | ", " && ", " || ", "; ", "\\n"];
    let end =
        at.end + ends.iter().filter_map(|it| arguments.find(it)).min().unwrap_or(arguments.len());
    for (flag, form) in forms {
        let arguments = scan.piece(at.end..end);
        let found = arguments.match_indices(flag).map(|(found, _)| at.end + found);
        let mut places: Vec<usize> = found.filter(|at| scan.before(*at) == b' ').collect();
        if *flag == "-" {
            places = vec![at.end - flag.len()];
        }
        for place in places {
            let argument = match form {
                Form::Before => word_before(scan, at.end..place),
                Form::Next
                | Form::Glued
                | Form::Either
                | Form::Behind(_)
                | Form::Last
                | Form::First => argument(scan, *form, place + flag.len(), end),
            };
            if let Some(secret) = argument.filter(|it| is_secret(scan.piece(it.clone()), *form)) {
                scan.add_hit(secret);
            }
        }
    }
}

/// Masks the word that `echo` pipes into a command that reads a secret: `echo secret | sudo -S ls`.
pub(super) fn piped(scan: &mut Scan<'_>, at: Range<usize>) {
    let line = scan.line_start(at.start, COMMAND_MAX);
    let head = scan.piece(line..at.end);
    let Some(echo) =
        head.rfind("echo ").filter(|echo| head.get(*echo..).is_some_and(|it| it.contains('|')))
    else {
        return;
    };
    let start = scan.run(line + echo + "echo ".len(), is_blank);
    let start =
        if matches!(scan.piece(start..start + 3), "-n " | "-e ") { start + 3 } else { start };
    let word = match scan.quote(start) {
        Some((quote, start)) => scan.quoted(quote, start),
        None => start..scan.run(start, |byte| !byte.is_ascii_whitespace() && byte != b'|'),
    };
    let text = scan.piece(word.clone());
    let colon =
        text.find(':').filter(|_| scan.piece(at.clone()) == "chpasswd").map_or(0, |it| it + 1);
    if !value::is_reference(text) && !text.contains(' ') {
        scan.add_hit(word.start + colon..word.end);
    }
}

/// Range of the secret that belongs to the flag ending at `at`.
fn argument(scan: &Scan<'_>, form: Form, at: usize, command_end: usize) -> Option<Range<usize>> {
    let apart = matches!(scan.byte(at), b' ' | b'=');
    let fits = match form {
        Form::Next | Form::First | Form::Before => apart,
        Form::Last => apart || scan.byte(at) == b'.',
        Form::Glued => !apart,
        Form::Either | Form::Behind(_) => true,
    };
    let next = scan.run(at, |byte| matches!(byte, b' ' | b'='));
    let start = match form {
        Form::Last => at + scan.piece(at..command_end).trim_end().rfind(' ')? + 1,
        Form::Next | Form::Glued | Form::Either | Form::Behind(_) | Form::First | Form::Before => {
            next
        }
    };
    let word = match scan.quote(start) {
        Some((quote, start)) => scan.quoted(quote, start),
        None => {
            let ends = |byte: u8| byte.is_ascii_whitespace() || b"\"'`\\<>".contains(&byte);
            start..scan.run(start, |byte| !ends(byte))
        }
    };
    let text = scan.piece(word.clone());
    let from = match form {
        Form::Behind(mark) => text.find(mark)? + 1,
        Form::Next | Form::Glued | Form::Either | Form::Last | Form::First | Form::Before => 0,
    };
    let prose = matches!(form, Form::First) && word.start == start && !value::is_random(text);
    let whole = value::is_reference(text) || text.starts_with('-') || prose;
    (fits && !whole).then_some(word.start + from..word.end)
}

/// Last of at least two words, if it is no path.
fn word_before(scan: &Scan<'_>, arguments: Range<usize>) -> Option<Range<usize>> {
    let words = scan.piece(arguments.clone()).trim_end();
    let (others, word) = words.rsplit_once(' ').filter(|(_, word)| !word.starts_with('\\'))?;
    let start = arguments.start + words.len() - word.len();
    (!others.trim().is_empty()).then_some(start..start + word.len())
}

/// Returns whether the argument may be a secret: not a reference, and not a flag such as `-port`.
fn is_secret(text: &str, form: Form) -> bool {
    let flags = ["ort", "assword", "rotocol", "rogress", "retty", "ager"];
    let is_flag = matches!(form, Form::Glued) && flags.iter().any(|flag| text.starts_with(flag));
    !text.is_empty() && !value::is_reference(text) && !is_flag
}

/// Masks the word after a user name: `login: bob / secret`, `creds: bob:secret`.
pub(super) fn login_pair(scan: &mut Scan<'_>, at: Range<usize>) {
    const USER_MAX: usize = 64;
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte);
    let user = scan.gap(at.end);
    let end = scan.run_within(user, USER_MAX, is_user);
    let mark = scan.gap(end);
    let pair = !scan.piece(at.clone()).to_ascii_lowercase().starts_with("user");
    let value = match scan.byte(mark) {
        b'/' if end < mark && is_blank(scan.byte(mark + 1)) => scan.gap(mark + 1),
        b':' if end == mark && pair => mark + 1,
        _ => return,
    };
    let ends = |byte: u8| byte.is_ascii_whitespace() || b"\"'`\\<>,;|\x1b".contains(&byte);
    let secret = scan.piece(value..scan.run(value, |byte| !ends(byte)));
    let secret = secret.trim_end_matches(['.', ')', ']', '}']);
    if user < end && scan.word_starts(at.start) && value::is_random(secret) {
        scan.add_hit(value..value + secret.len());
    }
}

/// Masks the second of two strings: `auth=("bob", "secret")`.
pub(super) fn pair_call(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some((quote, start)) = scan.quote(scan.gap(at.end)) else { return };
    let user = scan.quoted(quote, start);
    let Some((_, closed)) = scan.quote(user.end) else { return };
    let comma = scan.gap(closed);
    let Some((quote, start)) = scan.quote(scan.gap(comma + 1)) else { return };
    let secret = scan.quoted(quote, start);
    if scan.byte(comma) == b',' && !value::is_no_secret(scan.piece(secret.clone()), "password") {
        scan.add_hit(secret);
    }
}

/// Masks the password of `IDENTIFIED BY 'secret'` and `identified with … by "secret"`.
pub(super) fn identified(scan: &mut Scan<'_>, at: Range<usize>) {
    /// Maximum bytes between the two words.
    const PLUGIN_MAX: usize = 64;
    let end = scan.run_within(at.end, PLUGIN_MAX, |byte| !matches!(byte, b'\n' | b';'));
    let words = scan.piece(at.end..end).to_ascii_lowercase();
    let start = match words.starts_with("by ") {
        true => at.end + "by ".len(),
        false => match words.find(" by ") {
            Some(by) => at.end + by + " by ".len(),
            None => return,
        },
    };
    let start = scan.gap(start);
    let start =
        if scan.from(start).starts_with("PASSWORD ") { start + "PASSWORD ".len() } else { start };
    let end = scan.run_within(start, PLUGIN_MAX, |byte| {
        byte.is_ascii_alphanumeric() || b"_$#".contains(&byte)
    });
    let line = scan.piece(scan.line_start(at.start, COMMAND_MAX)..at.start).to_ascii_lowercase();
    if line.contains("user ") && scan.byte(end) == b';' && !value::is_about(scan.piece(start..end))
    {
        scan.add_hit(start..end);
        return;
    }
    if let Some((quote, start)) = scan.quote(start).filter(|(quote, _)| quote.mark != b'`') {
        let content = scan.quoted(quote, start);
        if !value::is_no_secret(scan.piece(content.clone()), "password") {
            scan.add_hit(content);
        }
    }
}

/// Bytes before and after the name that are read.
const NEAR_MAX: usize = 80;
const TOKEN_MIN: usize = 24;
const AROUND: &[char] = &['.', ':', '!', '?', '(', ')', '[', ']', '*', '-'];

/// Masks the secrets near the name at `at`, within its line.
pub(super) fn told(scan: &mut Scan<'_>, at: Range<usize>) {
    let name = scan.piece(at.clone()).to_lowercase();
    // `password=`, `password.len`, `db_password` and `tokens` are different names.
    let goes_on = |byte: u8| b"_-=(/".contains(&byte) || byte.is_ascii_alphanumeric();
    let member = scan.byte(at.end) == b'.' && goes_on(scan.byte(at.end + 1));
    let is_code =
        member || goes_on(scan.byte(at.end)) || matches!(scan.before(at.start), b'_' | b'-' | b'.');
    if name.is_ascii() && (is_code || !scan.word_starts(at.start)) {
        return;
    }
    let is_token = words::phrases("told-tokens").contains(&name.as_str());
    let from = scan.line_start(at.start, NEAR_MAX);
    let text = scan.piece(from..scan.line_end(at.end, NEAR_MAX));
    let is_next =
        |place: usize| at.end < from + place && scan.piece(at.end..from + place).trim().is_empty();
    let follows_blank = |place: usize| scan.before(from + place) == b' ';
    let is_led = |place: usize| at.end <= from + place && is_led(text, place);
    let is_linked = |place: usize| is_linked(text, place);
    let is_told = |place: usize, word: &str| match is_token {
        // Paths and signatures also hold `/` and `+`.
        true => {
            (is_next(place) || is_led(place))
                && is_told_token(word)
                && (follows_blank(place) || !word.contains(['+', '/', '=']))
        }
        false => {
            value::is_strong(word) && (!is_numbered(word) || is_linked(place))
                || value::is_mixed(word, !is_next(place) && !is_led(place))
                || value::is_phrase(word) && is_led(place) && is_linked(place)
        }
    };
    let told = pieces(text).filter(|(place, word)| is_told(*place, word));
    let told: Vec<Range<usize>> =
        told.map(|(place, word)| from + place..from + place + word.len()).collect();
    told.into_iter().for_each(|it| scan.add_hit(it));
    let end = scan.line_end(at.end, NEAR_MAX);
    let rest = scan.piece(at.end..end).trim_end();
    if rest.ends_with(':') || rest.is_empty() && scan.piece(from..at.start).starts_with('#') {
        answer(scan, end);
    }
}

/// Masks what a command printed on the line after it: `gh auth token`.
pub(super) fn printed(scan: &mut Scan<'_>, at: Range<usize>) {
    answer(scan, scan.line_end(at.end, COMMAND_MAX));
}

/// Masks the next line that is not blank, if it is a single word that looks like a secret.
fn answer(scan: &mut Scan<'_>, mut line_end: usize) {
    /// Maximum lines, of which all but the last are blank.
    const LINES_MAX: usize = 3;
    for _ in 0..LINES_MAX {
        let Some(line) = scan.next_line(line_end) else { return };
        let start = scan.quote_or(scan.gap(line)).1;
        let ends = |byte: u8| byte.is_ascii_whitespace() || b"\"'`\\<\x1b".contains(&byte);
        let end = scan.run_within(start, COMMAND_MAX, |byte| !ends(byte));
        let closed = scan.gap(scan.quote_or(end).1);
        let alone = matches!(scan.byte(closed), 0 | b'\n' | b'\r' | b'\\' | b',' | b'}' | b']');
        if start < end {
            if alone && value::is_answer(scan.piece(start..end)) {
                scan.add_hit(start..end);
            }
            return;
        }
        line_end = end;
    }
}

/// Masks the words of a wallet: twelve or more in a row, of three to eight letters each.
pub(super) fn seed(scan: &mut Scan<'_>, at: Range<usize>) {
    const WORDS_MIN: usize = 12;
    /// Maximum function words among them.
    const PLAIN_MAX: usize = 2;
    let mut start = at.end;
    let text = scan.piece(at.end..scan.line_end(at.end, COMMAND_MAX));
    let ends = |letter: char| !letter.is_ascii_lowercase() && letter != ' ';
    for run in text.split_inclusive(ends) {
        let phrase = run.trim_end_matches(|letter| ends(letter) || letter == ' ');
        let end = start + phrase.len();
        let words = phrase.rsplit(' ').take_while(|word| (3..=8).contains(&word.len()));
        let words: Vec<&str> = words.collect();
        let is_plain =
            |word: &&&str| words::PLAIN.contains(**word) || words::GRAMMAR.contains(**word);
        let plain = words.iter().filter(is_plain).count();
        if WORDS_MIN <= words.len() && plain <= PLAIN_MAX {
            let length: usize = words.iter().map(|word| word.len() + 1).sum();
            return scan.add_hit(end + 1 - length..end);
        }
        start += run.len();
    }
}

/// Words of ASCII letters and marks, with their positions.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let parts = |letter: char| !letter.is_ascii_graphic() || "\"'`,;<>".contains(letter);
    let mut end = 0;
    text.split_inclusive(parts).filter_map(move |piece| {
        end += piece.len();
        let word = piece.trim_end_matches(parts).trim_start_matches(AROUND);
        let start = end - piece.len() + piece.trim_end_matches(parts).len() - word.len();
        Some((start, word.trim_end_matches(AROUND))).filter(|(_, word)| !word.is_empty())
    })
}

/// Returns whether `is` or a colon precedes the word at `place`.
fn is_linked(text: &str, place: usize) -> bool {
    let quotes = |letter: char| letter.is_whitespace() || "\"'`«„“「*".contains(letter);
    let before = text.get(..place).unwrap_or_default().trim_end_matches(quotes);
    let word = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    before.ends_with([':', '：', '—', '–', '是', 'は', '为', '為'])
        || words::VERBS.contains(word.as_str())
}

/// Returns whether a word such as `is`, `to` or `now`, or a mark, precedes the word at `place`.
fn is_led(text: &str, place: usize) -> bool {
    let before = text.get(..place).unwrap_or_default();
    let tag = before.rfind('<').filter(|_| before.ends_with('>'));
    let word = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    is_linked(text, tag.unwrap_or(place))
        || matches!(word.as_str(), "=" | "-" | "→")
        || word.ends_with('?')
        || words::LEADS.contains(word.as_str())
}

/// Returns whether the word may denote an issue or a line of a file: `annalist#12`, `auth.md#L12`.
fn is_numbered(word: &str) -> bool {
    let Some((name, place)) = word.split_once('#') else { return false };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    name.bytes().all(plain)
        && (name.contains('.') || place.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True for a long word of upper-case letters, lower-case letters and digits.
fn is_told_token(word: &str) -> bool {
    let has = |fits: fn(&u8) -> bool| word.bytes().filter(fits).count();
    TOKEN_MIN <= word.len()
        && 2 < has(u8::is_ascii_digit)
        && 2 < has(u8::is_ascii_uppercase)
        && 2 < has(u8::is_ascii_lowercase)
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-+/=".contains(&byte))
}
