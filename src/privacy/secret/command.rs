//! Logins on a command line (table `[commands]` of `words.txt`), in statements, and in sentences of
//! any language: a distinctive word near the word for a password, or a token after a word such as `is`.

use super::scan::{Scan, is_blank};
use super::{value, words};
use std::collections::{HashMap, HashSet};
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
    /// The word after the flag's own: `/user:name secret`.
    After,
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
            "after" => Form::After,
            "slash" => Form::Behind('/'),
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
    let ends = matches!(scan.byte(at.end), b' ' | b'\t' | b'.')
        || matches!(scan.byte(at.end - 1), b':' | b'=');
    if !scan.word_starts(at.start) || !ends {
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
            let argument = if let Form::Before = form {
                word_before(scan, at.end..place)
            } else {
                argument(scan, *form, place + flag.len(), end)
            };
            if let Some(secret) = argument.filter(|it| is_secret(scan.piece(it.clone()), *form)) {
                scan.add_hit(secret);
            }
        }
    }
}

/// Masks the word that a command which reads a secret gets from `echo secret | sudo -S ls` or
/// `sudo -S ls <<< secret`.
pub(super) fn piped(scan: &mut Scan<'_>, at: Range<usize>) {
    let line = scan.line_start(at.start, COMMAND_MAX);
    let end = scan.line_end(at.end, COMMAND_MAX);
    let raw = scan.floor(scan.run_back(at.start, COMMAND_MAX, |byte| byte != b'\n'));
    // An escaped line end may be part of the string.
    let parts = scan.before(line) == b'n'
        && scan
            .piece(line..at.start)
            .trim_start_matches(|it| it != '\'' && it != '"')
            .starts_with(['\'', '"']);
    let line = if parts && !scan.piece(line..at.start).contains("echo ") { raw } else { line };
    let (head, tail) = (scan.piece(line..at.end), scan.piece(at.end..end));
    let here = tail.find("<<<").map(|found| at.end + found + "<<<".len());
    let echo = ["echo ", "printf ", "yes "].iter().filter_map(|word| {
        let found = head.rfind(word)?;
        head.get(found..)?.contains('|').then_some(line + found + word.len())
    });
    let Some(mut start) = here.or(echo.max()) else { return };
    start = scan.run(start, is_blank);
    for skipped in ["-n ", "-e ", "-ne ", "'%s' ", "'%s\\n' ", "\"%s\" ", "\"%s\\n\" "] {
        if scan.from(start).starts_with(skipped) {
            start = scan.run(start + skipped.len(), is_blank);
        }
    }
    let fits = |byte: u8| !byte.is_ascii_whitespace() && !b"|)".contains(&byte);
    let word = scan.string(start).unwrap_or_else(|| start..scan.run(start, fits));
    let text = scan.piece(word.clone());
    // `user:password` of `chpasswd`, `password\npassword` of `passwd`
    let pair = scan.piece(at).ends_with("chpasswd");
    let user = text.find(':').filter(|_| pair).map_or(0, |colon| colon + 1);
    let plain = words::PLAIN.contains(text) || tail.starts_with(" --help");
    if !value::is_reference(text) && !text.contains(' ') && !plain {
        scan.add_hit(word.start + user..word.end);
    }
}

/// Range of the secret that belongs to the flag ending at `at`.
fn argument(scan: &Scan<'_>, form: Form, at: usize, command_end: usize) -> Option<Range<usize>> {
    let apart = matches!(scan.byte(at), b' ' | b'=');
    let fits = match form {
        Form::Next | Form::First | Form::Before => apart,
        Form::Last => apart || scan.byte(at) == b'.',
        Form::Glued => !apart,
        Form::Either | Form::Behind(_) | Form::After => true,
    };
    let next = scan.run(at, |byte| matches!(byte, b' ' | b'='));
    let behind = |word: usize| scan.run(scan.run(word, |byte| byte > b' '), is_blank);
    let start = match form {
        Form::Last => at + scan.piece(at..command_end).trim_end().rfind(' ')? + 1,
        Form::After => behind(at),
        // The type of a key in a router's settings: `secret 0 …`.
        Form::First if scan.byte(next).is_ascii_digit() && is_blank(scan.byte(next + 1)) => {
            next + 2
        }
        Form::Behind('/') if scan.byte(next) == b'-' => behind(next),
        Form::Next | Form::Glued | Form::Either | Form::Behind(_) | Form::First | Form::Before => {
            next
        }
    };
    let is_inner = |byte: u8| !byte.is_ascii_whitespace() && !b"\"'`\\<>".contains(&byte);
    let mut word = scan.string(start).unwrap_or_else(|| start..scan.run(start, is_inner));
    let text = scan.piece(word.clone());
    if let Form::Behind(mark) = form {
        let (user, secret) = text.split_once(mark)?;
        word = match mark {
            // `https://user/…` and `@//host/database` have no login.
            '/' if user.is_empty() || user.contains(['@', ':']) => return None,
            '/' => word.start + user.len() + 1..word.start + text.rfind('@').unwrap_or(text.len()),
            // `curl -u key:`
            ':' if secret.is_empty() && value::is_key(user) => word.start..word.start + user.len(),
            _ => word.start + user.len() + mark.len_utf8()..word.end,
        };
    }
    let prose = matches!(form, Form::First) && word.start == start && !value::is_random(text);
    let slash = matches!(form, Form::After) && text.starts_with('/');
    let whole = value::is_reference(text) || text.starts_with('-') || prose || slash;
    (fits && !whole && word.start < word.end).then_some(word)
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
    let user = scan.quote_or(scan.gap(at.end)).1;
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

/// Calls with a secret, and the number of the arguments before it.
static CALLS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let lines = words::lines("calls").into_iter().filter_map(|line| line.split_once(' '));
    let calls = lines.flat_map(|(place, names)| {
        let before = place.parse::<usize>().unwrap_or(1) - 1;
        names.split(", ").map(move |name| (name, before))
    });
    calls.collect()
});

pub(super) fn callees() -> Vec<&'static str> {
    CALLS.keys().copied().collect()
}

/// Masks the string that a call takes as a secret: `auth=("bob", "secret")`.
pub(super) fn called(scan: &mut Scan<'_>, at: Range<usize>) {
    /// Maximum bytes of an argument before the secret.
    const ARGUMENT_MAX: usize = 128;
    /// Minimum length of a secret in a call that also takes names.
    const RANDOM_MIN: usize = 10;
    let Some(before) = CALLS.get(scan.piece(at.clone())).copied() else { return };
    let small = scan.piece(at.clone()).starts_with(|letter: char| letter.is_ascii_lowercase());
    if small && !scan.word_starts(at.start) {
        return;
    }
    let mut start = scan.gap(at.end);
    for _ in 0..before {
        let end = match scan.string(start) {
            Some(argument) => scan.quote_or(argument.end).1,
            None => scan.run_within(start, ARGUMENT_MAX, |byte| !b",;)\"'`\n".contains(&byte)),
        };
        if scan.byte(end) != b',' {
            return;
        }
        start = scan.gap(end + 1);
    }
    let wraps = ["b", "Some(", "[]byte(", "Buffer.from("];
    start += wraps.iter().find(|it| scan.from(start).starts_with(**it)).map_or(0, |it| it.len());
    let Some(secret) = scan.string(start) else { return };
    let text = scan.piece(secret.clone());
    // In other calls than those of logins plain words are names and samples.
    let callee = scan.piece(at).to_ascii_lowercase();
    let logins = ["credential", "basic", "auth=(", ".login(", "connect", "wifi", "mysqli", "pdo"];
    let login = 0 < before && logins.iter().any(|it| callee.contains(it));
    let random = RANDOM_MIN <= text.len() && value::is_random(text);
    if !value::is_no_secret(text, "password") && (login || random) {
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
const TOKEN_MIN: usize = 20;
const AROUND: &[char] = &['.', ':', '!', '?', '(', ')', '[', ']', '*', '-'];

static TOLD_TOKENS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| words::phrases("told-tokens").into_iter().collect());

/// Masks the secrets near the name at `at`, within its line.
pub(super) fn told(scan: &mut Scan<'_>, at: Range<usize>) {
    let name = scan.piece(at.clone()).to_lowercase();
    // `password=`, `password.len`, `db_password` and `tokens` are different names.
    let goes_on = |byte: u8| b"_-=(/".contains(&byte) || byte.is_ascii_alphanumeric();
    let member = scan.byte(at.end) == b'.' && goes_on(scan.byte(at.end + 1));
    // `Root-Passwort` is a word.
    let joined = match scan.before(at.start) {
        b'-' => !scan.byte(at.start).is_ascii_uppercase(),
        before => before == b'_' || before == b'.',
    };
    let is_code = member || goes_on(scan.byte(at.end)) || joined;
    if name.is_ascii() && (is_code || !scan.word_starts(at.start)) {
        return;
    }
    let is_token = TOLD_TOKENS.contains(name.as_str());
    let from = scan.line_start(at.start, NEAR_MAX);
    let text = scan.piece(from..scan.line_end(at.end, NEAR_MAX));
    let (head, tail) = (at.start - from, at.end - from);
    let purpose = text.get(..head).unwrap_or_default().split_whitespace().next_back();
    if name.starts_with("key") && purpose.is_some_and(|it| words::KEYS_NOT.contains(it)) {
        return;
    }
    let is_pin = scan.piece(at.clone()).starts_with("PIN");
    let given = is_given(text.get(..head).unwrap_or_default());
    let is_told = |place: usize, word: &str| {
        let between = text.get(tail..place).unwrap_or_default().trim_start_matches("'s").trim();
        if between.contains("\",") || between.contains("\":") {
            return false;
        }
        let after = text.get(place + word.len()..head).unwrap_or_default();
        let is_next = tail < place && between.is_empty();
        let is_linked = tail <= place && is_linked(text, place);
        let is_led = is_linked || tail <= place && is_led(text, place) || is_role(after);
        // Paths and signatures also hold `/` and `+`.
        let fits = !word.contains(['+', '/', '=']) || scan.before(from + place) == b' ';
        let is_key = is_told_token(word) && fits || value::is_hex_key(word);
        if is_token || (is_next || is_led) && is_key {
            return (is_next || is_led) && is_key;
        }
        let ends = between.ends_with(':')
            && text.get(place + word.len()..).is_some_and(|it| it.trim().is_empty());
        let is_subject =
            is_linked && is_subject(between) || ends || is_next && given || is_role(after);
        if name.starts_with("pin") {
            let digits = word.bytes().all(|byte| byte.is_ascii_digit());
            return is_pin && is_next && digits && (4..=8).contains(&word.len());
        }
        let enclosed = text.get(..place).is_some_and(|it| it.ends_with(['`', '"', '\'', '„', '«']))
            && text
                .get(place + word.len()..)
                .is_some_and(|it| it.starts_with(['`', '"', '\'', '“', '»']));
        let small = word.starts_with(|letter: char| letter.is_ascii_lowercase());
        let digits_min = match is_next || is_led {
            is_near if is_subject || is_near && small => 1,
            true => 2,
            false => usize::MAX,
        };
        value::is_strong(word) && (!is_numbered(word) || is_linked)
            || value::is_mixed(word, digits_min)
            || is_subject && value::is_divided(word)
            || is_subject
                && enclosed
                && is_linked
                && value::may_be_secret(word, false)
                && !value::is_code(word)
            || (is_next || is_led) && value::is_made_up(word)
            || value::is_phrase(word) && is_linked
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

/// Masks what a command at a prompt printed that reads a name at the end of its line:
/// `$ cat password.txt`.
pub(super) fn shown(scan: &mut Scan<'_>, name: Range<usize>) {
    /// Maximum bytes after the name.
    const TAIL_MAX: usize = 32;
    let ends = |byte: u8| byte == b'\n' || byte == b'\\';
    let end = scan.run_within(name.end, TAIL_MAX, |byte| !ends(byte));
    if !ends(scan.byte(end)) {
        return;
    }
    let line = scan.piece(scan.line_start(name.start, COMMAND_MAX)..name.start).trim_start();
    let command = line.strip_prefix(['$', '#', '%', '❯', '>']).unwrap_or_default();
    let reads = command.split_whitespace().next().is_some_and(|it| words::READERS.contains(it));
    if reads && words::kind(scan.piece(name)).is_some() {
        answer(scan, end);
    }
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

/// Returns whether the words before a name introduce its value: `with password …`, `user bob and
/// password …`.
fn is_given(before: &str) -> bool {
    let words = ["with", "and", "mit", "und", "avec", "et", "con", "y", "com", "e", "met", "en"];
    let mut last = before.split_whitespace().rev();
    let article = |word: &&str| ["the", "dem", "le", "la", "a", "o"].contains(word);
    last.find(|word| !article(word)).is_some_and(|word| words.contains(&word))
}

/// Returns whether the words after a value say what it is for: `… as the password`.
fn is_role(after: &str) -> bool {
    /// Maximum words up to the name.
    const WORDS_MAX: usize = 5;
    let roles = ["as", "als", "comme", "como", "come", "when", "wenn", "quand", "cuando"];
    let mut words = after.split_whitespace();
    after.starts_with([' ', '`', '"', '\''])
        && words
            .find(|it| it.starts_with(char::is_alphabetic))
            .is_some_and(|it| roles.contains(&it))
        && words.count() < WORDS_MAX
}

/// Returns whether the words between a name and a verb or a colon leave it the subject: `for the
/// wiki is`, but not `hasher is`.
fn is_subject(between: &str) -> bool {
    let first = between.split_whitespace().next().unwrap_or_default().to_lowercase();
    let first = first.trim_matches(|letter: char| !letter.is_alphanumeric());
    first.is_empty() || words::LINKS.contains(first)
}

/// Returns whether a word such as `is`, `to` or `now`, or a mark, precedes the word at `place`.
fn is_led(text: &str, place: usize) -> bool {
    let before = text.get(..place).unwrap_or_default();
    let tag = before.rfind('<').filter(|_| before.ends_with('>'));
    let before = before.trim_end_matches([' ', '\'', '"', '`']);
    let word = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    is_linked(text, tag.unwrap_or(place))
        || matches!(word.as_str(), "=" | "-" | "→" | "->" | "=>")
        || word.ends_with('?')
        || words::LEADS.contains(word.as_str())
}

/// Returns whether the word may denote an issue or a line of a file: `annalist#12`, `auth.md#L12`.
fn is_numbered(word: &str) -> bool {
    let Some((name, place)) = word.split_once('#') else { return false };
    value::is_of(name, b"_-.")
        && (name.contains('.') || place.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True for a long word of upper-case letters, lower-case letters and digits.
fn is_told_token(word: &str) -> bool {
    let classes: [fn(&u8) -> bool; 3] =
        [u8::is_ascii_digit, u8::is_ascii_uppercase, u8::is_ascii_lowercase];
    let mixed = classes.iter().all(|class| 2 < value::count(word, class));
    TOKEN_MIN <= word.len()
        && (mixed || value::is_mixed(word, usize::MAX))
        && value::is_of(word, b"_-+/=")
}
