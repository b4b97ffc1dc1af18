//! Logins on a command line (table `[commands]` of `words.txt`), in calls and in statements.

use super::scan::{Scan, is_blank};
use super::sentence::ends_clause;
use super::separator::behind_kind;
use super::value;
use super::words::{self, COMMAND_MAX, GIVEN};
use regex::{Captures, Regex};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Position of the secret relative to a flag.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
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

pub(super) static COMMANDS: LazyLock<HashMap<&str, Vec<(&str, Form)>>> = LazyLock::new(|| {
    let mut commands: HashMap<&str, Vec<(&str, Form)>> = HashMap::new();
    for line in words::lines("commands") {
        let Some((form, rest)) = line.split_once(' ') else { continue };
        let form = match form {
            "next" => Form::Next,
            "glued" => Form::Glued,
            "either" => Form::Either,
            "first" => Form::First,
            "before" => Form::Before,
            "after" => Form::After,
            "last" => Form::Last,
            mark => Form::Behind(mark.chars().next().unwrap_or(':')),
        };
        let (flags, names) = rest.split_once(" of ").unwrap_or((rest, ""));
        for name in names.split(", ") {
            let known = commands.entry(name).or_default();
            known.extend(flags.split(' ').map(|flag| (flag, form)));
        }
    }
    commands
});

/// Line ends within a command, and marks between two arguments in a list of strings or in `.arg("…")`; escaped or not.
static CONTINUED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:\\|[ \t][\^`])\r?\n[ \t]*|(?:\\{3}|\\{6})n[ \t]*").ok());
static LISTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let (space, quote) = (r"(?:\s|\\+[nrt])*", r#"\\*["']"#);
    let marks = format!(r"(?:,|\){space}\.args?\(|\]{space}args:)");
    Regex::new(&format!(r"{quote}{space}{marks}{space}[\[&]*{space}{quote}")).ok()
});

/// Masks the secrets in the arguments of a command.
pub(super) fn login(scan: &mut Scan<'_>, at: Range<usize>) {
    let next = scan.byte(at.end);
    let ends = matches!(next, b' ' | b'\t' | b'.') || matches!(scan.byte(at.end - 1), b':' | b'=');
    if !scan.word_starts(at.start) || !ends && !b"\"'\\\n:".contains(&next) {
        return;
    }
    let text = scan.piece(at.end..scan.floor(scan.bytes.len().min(at.end + COMMAND_MAX)));
    match on_one_line(text) {
        Some(line) => {
            let line = format!("{}{line}", scan.piece(at.clone()));
            let mut command = Scan::new(&line);
            arguments(&mut command, 0..at.len());
            let hits = command.hits.into_iter().map(|hit| hit.at);
            hits.for_each(|it| scan.add_hit(at.start + it.start..at.start + it.end));
        }
        None if ends => arguments(scan, at),
        None => {}
    }
}

/// Arguments that continue on further lines, or are the items of a list, as one line of the same
/// length; `None` for a plain command.
fn on_one_line(text: &str) -> Option<String> {
    let blanked = |text: &str, form: &Option<Regex>| {
        let blanks = |found: &Captures<'_>| " ".repeat(found[0].len());
        form.as_ref().map(|it| it.replace_all(text, blanks).into_owned())
    };
    let head = text.split('\n').next().unwrap_or_default();
    let line = match text.as_bytes().first()? {
        b'"' | b'\'' | b'\\' => {
            let first = LISTED.as_ref()?.find(text).filter(|it| it.start() == 0);
            let first = first?.end();
            let ends = ["\"]", "']"].iter().filter_map(|end| text.get(first..)?.find(end));
            blanked(text.get(..ends.min().map_or(text.len(), |end| first + end))?, &LISTED)
        }
        _ if head.trim_end_matches('\r').ends_with(['\\', '^', '`'])
            || head.contains("\\\\\\n") =>
        {
            return blanked(text, &CONTINUED);
        }
        _ if head.len() < text.len() && !head.contains([' ', '\t']) => Some(yaml_items(text)),
        _ => None,
    };
    line.filter(|line| line.contains(" -"))
}

/// The items below the first line of a text as one line: those of a command in YAML.
fn yaml_items(text: &str) -> String {
    let mut line = String::new();
    for (place, row) in text.split_inclusive('\n').enumerate() {
        let word = match row.trim_start().strip_prefix("- ") {
            _ if place == 0 => "",
            Some(word) => word,
            None if place == 1 && row.trim().ends_with("args:") => "",
            None => break,
        };
        line.push_str(&" ".repeat(row.len() - word.len()));
        line.push_str(&word.replace(['"', '\'', '\n'], " "));
    }
    line
}

/// Masks the secrets in the arguments on the line of a command.
fn arguments(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some(forms) = COMMANDS.get(scan.piece(at.clone())) else { return };
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
    // `--password-command 'echo secret'`, `--password-file=<(echo secret)`
    let inner = tail.trim_start_matches([' ', '=', ':', '"', '\'', '<', '(', '\\']);
    let inner = inner.strip_prefix("echo ").map(|rest| end - rest.len());
    let Some(mut start) = inner.or(here).or(echo.max()) else { return };
    start = scan.run(start, is_blank);
    for skipped in ["-n ", "-e ", "-ne ", "'%s' ", "'%s\\n' ", "\"%s\" ", "\"%s\\n\" "] {
        if scan.from(start).starts_with(skipped) {
            start = scan.run(start + skipped.len(), is_blank);
        }
    }
    let fits = |byte: u8| !byte.is_ascii_whitespace() && !b"|)\"'".contains(&byte);
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
        Form::First => behind_kind(scan, next),
        Form::Behind('/') if scan.byte(next) == b'-' => behind(next),
        Form::Next | Form::Glued | Form::Either | Form::Behind(_) | Form::Before => next,
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
    // A line of settings begins with the command.
    let head = scan.piece(scan.line_start(at, COMMAND_MAX)..at);
    let is_plain = || {
        value::is_plain_password(text)
            && COMMANDS.keys().any(|it| head.trim_start().starts_with(it))
    };
    let prose = matches!(form, Form::First)
        && word.start == start
        && !value::is_random(text)
        && !is_plain();
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
    let flags = ["ort", "wd", "assword", "rotocol", "rogress", "retty", "ager"];
    let is_flag = matches!(form, Form::Glued) && flags.iter().any(|flag| text.starts_with(flag));
    !text.is_empty() && !value::is_reference(text) && !is_flag
}

/// Masks the word after a user name: `login: bob / secret`, `creds: bob:secret`, `login is bob with
/// secret`.
pub(super) fn login_pair(scan: &mut Scan<'_>, at: Range<usize>) {
    const USER_MAX: usize = 64;
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte);
    let name = scan.piece(at.clone()).to_lowercase();
    // `credentials for the server: bob / secret`
    let goes_on = words::ACCESS.contains(name.trim_end());
    let after = scan.run_within(at.end, USER_MAX, |byte| !b":\n\"\\".contains(&byte));
    if goes_on && scan.byte(after) != b':' {
        return;
    }
    let user = scan.quote_or(scan.gap(if goes_on { after + 1 } else { at.end })).1;
    let end = scan.run_within(user, USER_MAX, is_user);
    let mark = scan.gap(end);
    let pair = !name.starts_with("user") || name.contains('/');
    let is_as = [" as", " als", " comme", " como", " come"].iter().any(|it| name.ends_with(it));
    let given =
        |it: &&&str| scan.from(mark).strip_prefix(**it).is_some_and(|rest| rest.starts_with(' '));
    let given = GIVEN.iter().find(given).filter(|_| end < mark);
    let alone = GIVEN.iter().any(|it| name.strip_suffix(it).is_some_and(|it| it.ends_with(' ')));
    let word = scan
        .piece(user..scan.run(user, |byte| byte.is_ascii_graphic()))
        .trim_end_matches([',', '.', ')']);
    if alone && value::is_marked(word) && !word.contains([':', '@']) {
        scan.add_hit(user..user + word.len());
        return;
    }
    let value = match scan.byte(mark) {
        _ if given.is_some() => scan.gap(mark + given.map_or(0, |word| word.len())),
        b'/' if end < mark && is_blank(scan.byte(mark + 1)) => scan.gap(mark + 1),
        b'/' | b':' if end == mark && pair => mark + 1,
        _ => return,
    };
    let tight = scan.byte(mark) == b'/' && end == mark;
    let ends = |byte: u8| byte.is_ascii_whitespace() || b"\"'`\\<>,;|\x1b".contains(&byte);
    let secret = scan.piece(value..scan.run(value, |byte| !ends(byte)));
    let secret = secret.trim_end_matches(['.', ')', ']', '}']);
    // `login is possible with Chrome120`
    let is_named = is_as || !words::PLAIN.contains(scan.piece(user..end));
    let fits =
        given.is_none() || is_named && value::is_likely(secret) && !value::is_versioned(secret);
    let fits = fits && (!tight && !goes_on || value::is_likely(secret));
    let is_title =
        ["cred", "zugang", "anmelde", "identif", "login:"].iter().any(|it| name.starts_with(it));
    let plain = given.is_none()
        && (is_title || name.contains('/'))
        && value::is_plain_password(secret)
        && ends_clause(scan.piece(value + secret.len()..scan.line_end(value, COMMAND_MAX)));
    if user < end && scan.word_starts(at.start) && (value::is_random(secret) && fits || plain) {
        scan.add_hit(value..value + secret.len());
    }
}

/// Masks the secret before `gets you in`: `admin/secret`, or the word alone.
pub(super) fn admitted(scan: &mut Scan<'_>, at: Range<usize>) {
    /// Maximum words between a user's name with the secret, or the secret alone, and the phrase.
    const PAIR_WORDS_MAX: usize = 4;
    const ALONE_WORDS_MAX: usize = 1;
    let ends = [' ', '"', '\'', '`', '(', ')', ','];
    let start = scan.line_start(at.start, COMMAND_MAX);
    let mut end = at.start;
    let words = scan.piece(start..at.start).trim_end_matches(ends).rsplit(ends);
    end -= scan.piece(start..at.start).len()
        - scan.piece(start..at.start).trim_end_matches(ends).len();
    let mut found = None;
    for (place, word) in words.enumerate().take(PAIR_WORDS_MAX + 1) {
        let pair = word.split_once(['/', ':']).filter(|(user, _)| !user.is_empty());
        let secret = pair.map_or(word, |(_, secret)| secret);
        // `use Chrome120 to log in`
        let is_program = value::is_versioned(secret)
            && pair.is_none_or(|(system, _)| value::is_versioned(system));
        let is_near = pair.is_some() || place <= ALONE_WORDS_MAX;
        if value::is_likely(secret) && is_near && !is_program {
            found = Some(end - secret.len()..end);
            break;
        }
        end = end.saturating_sub(word.len() + 1);
    }
    found.into_iter().for_each(|it| scan.add_hit(it));
}

/// Masks the string that a script sends after it saw a password's prompt: `send "secret\r"`.
pub(super) fn sent(scan: &mut Scan<'_>, at: Range<usize>) {
    /// Maximum bytes between the prompt and the answer.
    const PROMPT_MAX: usize = 128;
    let head = scan.piece(scan.floor(at.start.saturating_sub(PROMPT_MAX))..at.start).to_lowercase();
    let prompt = head.rfind("expect").and_then(|found| head.get(found..)).unwrap_or_default();
    let word = scan.run(at.start, |byte| byte.is_ascii_alphabetic());
    let start = scan.run(word, |byte| b" (-".contains(&byte));
    let asks = ["assword", "assphrase", "passcode", "asswort", "kennwort", "pin"];
    let Some(content) = scan.string(start) else { return };
    let text = scan.piece(content.clone());
    let secret = ["\\r", "\\n"]
        .iter()
        .fold(text, |text, end| text.trim_end_matches(end).trim_end_matches('\\'));
    let fits = !secret.starts_with('$') && !value::is_no_secret(secret, "password");
    if fits && asks.iter().any(|it| prompt.contains(it)) {
        scan.add_hit(content.start..content.start + secret.len());
    }
}

/// Masks the word that a command writes into a file for secrets: `echo secret > ~/.vault_pass`.
pub(super) fn written(scan: &mut Scan<'_>, at: Range<usize>) {
    let text = scan.piece(at.end..scan.line_end(at.end, COMMAND_MAX));
    let Some((words, target)) = text.split_once('>').or_else(|| text.split_once("| tee ")) else {
        return;
    };
    let quotes = [' ', '>', '"', '\''];
    let target = target.trim_start_matches("-a ").trim_start_matches(quotes);
    let path = target.split(|it: char| it.is_whitespace() || "\"';&|)\\".contains(it)).next();
    let path = path.unwrap_or_default().to_ascii_lowercase();
    let names = ["pass", "pgpass", "passphrase", "pwd", "secrets", "tokens", "cred", "creds"];
    let ends = ["password", "passwords", "passwd", "secret", "token", "credentials", "apikey"];
    let is_holder = |part: &str| names.contains(&part) || ends.iter().any(|it| part.ends_with(it));
    let holds = path.split(['/', '.', '_', '-']).any(is_holder)
        || ["api_key", "api-key"].iter().any(|it| path.contains(it));
    let word = words.trim_end_matches(quotes).rsplit(quotes).next().unwrap_or_default();
    let start = at.end + words.trim_end_matches(quotes).len() - word.len();
    if scan.word_starts(at.start)
        && holds
        && 6 <= word.len()
        && value::is_random(word)
        && !value::is_identifier(word)
    {
        scan.add_hit(start..start + word.len());
    }
}

/// Masks the first line that a store of passwords printed at a prompt: `$ pass show mail/kai`.
pub(super) fn unlocked(scan: &mut Scan<'_>, at: Range<usize>) {
    /// Minimum bytes of a password.
    const LENGTH_MIN: usize = 6;
    let end = scan.line_end(at.end, COMMAND_MAX);
    let head = scan.piece(scan.line_start(at.start, COMMAND_MAX)..at.start).trim();
    let is_prompt = head.is_empty() || head.ends_with(['$', '%', '❯', '#', '>']) || head == "$ go";
    let command = scan.piece(at.end..end).trim();
    let name = command.rsplit([' ', '/']).next().unwrap_or_default();
    let arguments = command.split(' ').filter(|it| !it.starts_with('-') && *it != "show");
    let is_path =
        command.contains('/') && !command.contains(['|', '>', '"']) && arguments.count() == 1;
    let Some(line) = scan.next_line(end).filter(|_| is_prompt && is_path) else { return };
    let text = scan.piece(line..scan.line_end(line, COMMAND_MAX)).trim_end();
    let grammar = text.split(' ').filter(|it| words::GRAMMAR.contains(it)).count();
    let is_message = text.ends_with([':', '.']) && text.contains(' ')
        || ["Error", "error", "gpg", "Password Store", "├", "$ ", name]
            .iter()
            .any(|it| text.starts_with(it))
        || 1 < grammar;
    if LENGTH_MIN <= text.len() && !is_message && !value::is_reference(text) {
        scan.add_hit(line..line + text.len());
    }
}

/// Calls with a secret, and the number of the arguments before it.
pub(super) static CALLS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let lines = words::lines("calls").into_iter().filter_map(|line| line.split_once(' '));
    let calls = lines.flat_map(|(place, names)| {
        let before = place.parse::<usize>().unwrap_or(1) - 1;
        names.split(", ").map(move |name| (name, before))
    });
    calls.collect()
});

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
    // Arguments may stand on lines of their own.
    let skip = |at: usize| {
        let line = scan.run_within(at, ARGUMENT_MAX, |byte| byte.is_ascii_whitespace());
        scan.gap(line)
    };
    let mut start = skip(at.end);
    for _ in 0..before {
        let end = match scan.string(start) {
            Some(argument) => scan.quote_or(argument.end).1,
            None => scan.run_within(start, ARGUMENT_MAX, |byte| !b",;)\"'`\n".contains(&byte)),
        };
        if scan.byte(end) != b',' {
            return;
        }
        start = skip(end + 1);
    }
    let wraps = ["b", "Some(", "[]byte(", "Buffer.from("];
    start += wraps.iter().find(|it| scan.from(start).starts_with(**it)).map_or(0, |it| it.len());
    let Some(secret) = scan.string(start).or_else(|| scan.marked_string(start)) else { return };
    let text = scan.piece(secret.clone());
    // In other calls than those of logins plain words are names and samples.
    let callee = scan.piece(at).to_ascii_lowercase();
    const KEYED: [&str; 7] = ["jwt", "hmac", "hash", "sign", "crypt", "secret", "key"];
    let logins = ["credential", "basic", "auth=(", ".login(", "connect", "wifi", "mysqli", "pdo"];
    let login = 0 < before && logins.iter().any(|it| callee.contains(it));
    let random = RANDOM_MIN <= text.len() && value::is_random(text);
    let bare = words::SIGN_INS.contains(callee.trim_end_matches('('));
    let login = login && !bare || bare && value::is_likely(text.trim_end_matches('!'));
    // `Client("account", "key")`
    let takes_key = KEYED.iter().any(|it| callee.contains(it));
    let plain = takes_key && value::is_plain_password(text);
    let fits = (login || random || plain) && (callee != "client(" || value::is_hex_key(text));
    if fits && !value::is_no_secret(text, "password") {
        scan.add_hit(secret);
    }
}
