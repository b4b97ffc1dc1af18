//! Classification of values: a secret, or a reference, placeholder, type or sentence.

use super::words;
use regex::Regex;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Maximum bytes of the start or the end of a secret of which only these are shown: `...ab12`.
const SHOWN_MAX: usize = 8;

/// Minimum length of a plain secret.
const PLAIN_MIN: usize = 3;
/// Minimum length at which `/` and `+` are base64 rather than arithmetic.
const ENCODED_MIN: usize = 20;

/// Values that refer to a secret, or stand for none. `(?s)`: a value may have line ends.
static REFERENCES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        // Characters that blank out a value, perhaps none; `xxx`.
        r"[*.\-_\#?\u{2022}\u{2026} ]*",
        "[xX]{3,}",
        "(?i-u:null|none|nil|true|false|undefined|empty|unset)",
        "(?i-u:redacted).*",
        "(?i-u:todo|tbd|fixme|change-?me|placeholder|example|dummy)",
        // Tags of YAML.
        r"!(?i-u:vault|secret|env|ref|sub|getatt|include)",
        // `"Bearer {}".format(…)`
        r"(?i-u:bearer|basic|token|apikey) (?:\{[^}]*\}|%[svqdr@])",
        // Files that hold a secret.
        r"(?:~|\.{0,2})/[A-Za-z0-9._/-]+\.(?:json|pem|key|p12|pfx|txt|ya?ml|toml|ini|env|conf|crt|jks)",
        // In brackets, or with the marks of templates, formats and earlier masks.
        r"<.*>|\[.*\]|\{.*\}|\(.*\)|%[svqdr@]",
        r"(?:\$\{|\{\{|\$\(|\#\{).*",
        // Within a value only whole ones, or one that a blank cut off.
        r".*(?:\$\{[^}]*\}|\{\{.*\}|\$\([^)]*\)|\#\{[^}]*\}|<SECRET>).*",
        r".*(?:\$\{|\{\{|\$\(|\#\{)(?:[A-Za-z_][A-Za-z0-9_.:(\[-]*)?",
        // `%NAME%`; `$NAME`, `$env:NAME`, `$config.token`, `$user->token`; but not the hash `$2b$…`.
        r"%+(?:[A-Za-z0-9_:.\->\[\]']*%+)?",
        r"\$+[A-Za-z_][A-Za-z0-9_:.\->\[\]']*",
        // Secret stores.
        r"(?:@Microsoft\.|op://|vault:|env[:.]|file:|fd:|arn:aws:|urn:).*",
    ];
    Regex::new(&format!(r"(?s)\A(?:{})\z", forms.join("|"))).ok()
});

/// Returns whether the value refers to a secret, is already masked, or is empty.
pub(super) fn is_reference(value: &str) -> bool {
    let value = value.trim();
    // At least half of a masked value is stars.
    let is_masked = value.contains("***") && value.len() <= 2 * value.matches('*').count();
    is_masked
        || value
            .split_once("...")
            .is_some_and(|(head, tail)| head.len().max(tail.len()) < SHOWN_MAX)
        || REFERENCES.as_ref().is_some_and(|forms| forms.is_match(value))
        || is_placeholder(value)
}

/// `your-api-key-here`, `REPLACE_ME`, `sk-xxxxxxxx`: a placeholder.
fn is_placeholder(value: &str) -> bool {
    const FILLED_MAX: usize = 16;
    let lower = value.to_ascii_lowercase();
    let verbs = ["your", "change", "replace", "insert", "enter", "example", "placeholder"];
    let vendor = lower.find("your-").or(lower.find("your_")).filter(|at| *at < FILLED_MAX);
    let head = lower.get(vendor.unwrap_or(0)..).unwrap_or_default();
    let rest = verbs.iter().find_map(|verb| head.strip_prefix(verb)).unwrap_or_default();
    let filled = lower.trim_end_matches(['x', '.', '*', '\u{2026}']);
    rest.starts_with(['-', '_'])
        && rest.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_".contains(&byte))
        || filled.ends_with(['-', '_'])
            && filled.len() <= FILLED_MAX
            && filled.len() + 3 <= lower.len()
}

/// Number of the bytes of a word that are of a class.
pub(super) fn count(word: &str, fits: impl Fn(&u8) -> bool) -> usize {
    word.bytes().filter(|byte| fits(byte)).count()
}

/// Returns whether a word has at least so many digits, capitals and small letters each.
pub(super) fn has_each(word: &str, least: usize) -> bool {
    let classes: [fn(&u8) -> bool; 3] =
        [u8::is_ascii_digit, u8::is_ascii_uppercase, u8::is_ascii_lowercase];
    classes.iter().all(|class| least <= count(word, class))
}

/// True for a word of ASCII letters, digits and these marks.
pub(super) fn is_of(word: &str, marks: &[u8]) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric() || marks.contains(&byte))
}

/// Returns whether a word is distinctive: it has letters, digits and marks, and is not part of a
/// URL, a path or an expression.
pub(super) fn is_strong(word: &str) -> bool {
    /// Minimum length of such a word.
    const STRONG_MIN: usize = 8;
    let is_escape =
        |two: &[u8]| matches!(two, [b'%', b'2'] | [b'$', b'a'..=b'z' | b'A'..=b'Z' | b'_']);
    STRONG_MIN <= word.len()
        && 3 <= count(word, u8::is_ascii_alphabetic)
        && 1 <= count(word, u8::is_ascii_digit)
        && (1..=4).contains(&count(word, |byte| b"!#$%?".contains(byte)))
        && is_of(word, b"!#$%?_-.+~^&*@")
        && word.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && !word.as_bytes().windows(2).any(is_escape)
}

/// Returns whether a word in a sentence about a password can hardly be anything else: letters of
/// both cases and at least `digits_min` digits, or letters and digits that alternate more than in
/// `Sha256Digest`, and no name with underscores.
pub(super) fn is_mixed(word: &str, digits_min: usize) -> bool {
    let class = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let turns = word.as_bytes().windows(2).filter(|two| class(two[0]) != class(two[1])).count();
    let digits = count(word, u8::is_ascii_digit);
    let irregular = 10 <= word.len() && 2 * word.len() <= 5 * turns;
    let joint: &[u8] = if irregular && digits_min <= digits { b"_" } else { b"" };
    8 <= word.len()
        && 0 < digits
        && (digits_min <= digits || irregular && is_made_up(word))
        && 0 < count(word, u8::is_ascii_uppercase)
        && 0 < count(word, u8::is_ascii_lowercase)
        && is_of(word, &[&b"-^*&@~+"[..], joint].concat())
        && is_random(word)
        && !names_algorithm(word)
}

/// Returns whether no name is built like this word: it has digits and, twice or in letters of both
/// cases, a small letter after a digit (`dei5quaweIs`) or a case for a single letter (`xPpr`).
pub(super) fn is_made_up(word: &str) -> bool {
    let has = |fits: fn(&u8) -> bool| 0 < count(word, fits);
    let is_odd = |three: &&[u8]| match three {
        [a, b, _] if a.is_ascii_digit() && b.is_ascii_lowercase() => true,
        [a, b, c] => {
            a.is_ascii_lowercase() && b.is_ascii_uppercase() && !c.is_ascii_lowercase()
                || !a.is_ascii_lowercase()
                    && b.is_ascii_lowercase()
                    && c.is_ascii_uppercase()
                    && !a.is_ascii_uppercase()
        }
        _ => false,
    };
    let odd = word.as_bytes().windows(3).filter(is_odd).count();
    let cases = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    8 <= word.len()
        && has(u8::is_ascii_digit)
        && (0 < odd && cases || 1 < odd && is_of(word, b"") && !hex)
        && is_of(word, b"-_^*&@~+!#%?")
        && is_random(word)
        && !names_algorithm(word)
}

/// Returns whether a word is letters and then two to six digits, as people write passwords
/// (`hunter22`), and no algorithm or type.
pub(super) fn ends_in_digits(word: &str) -> bool {
    let letters = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (2..=6).contains(&(word.len() - letters.len()))
        && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
        && is_random(word)
        && !names_algorithm(word)
}

/// Returns whether a word is letters around digits, as few words are that a sentence calls a password: `jamai4ivaji`.
pub(super) fn is_divided(word: &str) -> bool {
    let digit = |it: char| it.is_ascii_digit();
    let mut parts = word.split(digit).skip_while(|it| it.is_empty());
    let divides = parts.next().is_some() && parts.any(|it| !it.is_empty());
    8 <= word.len()
        && is_of(word, b"")
        && divides
        && !is_hex_key(word)
        && is_random(word)
        && !names_algorithm(word)
}

/// Returns whether digits stand among the letters of a word, as in no name: `Bl4nket-Fox`, `h4rbor-m1st-22`.
pub(super) fn is_woven(word: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic();
    let divides = |three: &&[u8]| matches!(three, [a, b, c] if letter(*a) && b.is_ascii_digit() && letter(*c));
    let small = |three: &[u8]| three[2].is_ascii_lowercase();
    let mut found = word.as_bytes().windows(3).filter(divides);
    let capital = 0 < count(word, u8::is_ascii_uppercase);
    8 <= word.len()
        && is_of(word, b"-_.!#$%^&*?@~+")
        && (1 < found.clone().count() || capital && found.any(small))
        && !names_algorithm(word)
}

/// Returns whether several digits stand among the letters of both cases of a word, as in no name.
pub(super) fn is_interspersed(word: &str) -> bool {
    10 <= word.len()
        && 3 <= count(word, u8::is_ascii_digit)
        && has_each(word, 1)
        && is_woven(word)
        && is_random(word)
}

/// Returns whether a word is words and numbers with hyphens between: `plum-tiger-204`.
pub(super) fn is_numbered_phrase(word: &str) -> bool {
    let is_part = |part: &str| {
        let letters = 2 <= part.len() && part.bytes().all(|byte| byte.is_ascii_alphabetic());
        letters || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    2 <= word.matches('-').count()
        && is_random(word)
        && word.split('-').all(|it| is_part(it) && !is_technical(it))
}

/// Returns whether a word at the end of a line that announces a generated password is one.
pub(super) fn is_generated(word: &str) -> bool {
    8 <= word.len()
        && word.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`\\/".contains(&byte))
        && has_each(word, 1)
        && !is_reference(word)
}

/// Returns whether a word is a code that lets a person in once: letters and digits, or many digits.
pub(super) fn is_recovery_code(word: &str) -> bool {
    let digits = count(word, u8::is_ascii_digit);
    let letters = count(word, u8::is_ascii_alphabetic);
    let groups = word.split('-').all(|part| 4 <= part.len());
    6 <= word.len() && is_of(word, b"-") && groups && (0 < letters && 0 < digits || 6 <= digits)
}

/// Returns whether a word is groups of small letters and digits, as such codes are: `k7wq-m2dx`.
pub(super) fn is_grouped_code(word: &str) -> bool {
    let fits = |part: &str| {
        let digits = count(part, u8::is_ascii_digit);
        0 < digits && digits < part.len() && part.bytes().any(|it| it.is_ascii_lowercase())
    };
    word.contains('-') && is_recovery_code(word) && word.split('-').all(fits)
}

/// Returns whether a plain word behind `the password is` may be the password, since it does not look like one that says
/// how the password is.
pub(super) fn is_plain_password(word: &str) -> bool {
    (8..=24).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_lowercase())
        && !is_about(word)
        && !words::PLAIN.contains(word)
        && !words::ATTRIBUTES.contains(word)
        && !words::names_secret(word)
        && !is_state(word)
}

fn is_state(word: &str) -> bool {
    words::STATES.iter().any(|end| word.ends_with(end))
}

/// Returns whether a word may be a part of such a code: `8392 1184`.
pub(super) fn is_code_group(word: &str) -> bool {
    (4..=6).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a word is a number as long as the printed key of a router.
pub(super) fn is_long_number(word: &str) -> bool {
    (10..=63).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a part of a word is an algorithm or a type, or the word a small version: `JWT-RS256`, `ProfileV2`.
pub(super) fn names_type(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    count(word, u8::is_ascii_digit) < 2 || lower.split('-').any(|it| words::TYPES.contains(it))
}

/// Returns whether a word ends with the name of an algorithm or a type.
fn names_algorithm(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let names = |it: &&str| 3 < it.len() && (lower.ends_with(*it) || lower.starts_with(*it));
    words::TYPES.iter().any(names)
}

/// Returns whether a word stands for a user or a password in a sample of an address.
pub(super) fn is_sample(word: &str) -> bool {
    let names = [
        "postgres", "guest", "user", "username", "login", "pass", "password", "passwd", "pwd",
        "pw", "secret",
    ];
    names.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns whether a word is a key in hexadecimal digits.
pub(super) fn is_hex_key(word: &str) -> bool {
    /// Minimum length of such a key.
    const HEX_MIN: usize = 32;
    HEX_MIN <= word.len() && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether a word with letters and digits is probably a secret where its place says little: no name, version,
/// file or digest.
pub(super) fn is_likely(word: &str) -> bool {
    /// Minimum digits after letters alone: `Winter2024`, but not `web01`.
    const DIGITS_MIN: usize = 3;
    let letters = word.trim_end_matches(|it: char| it.is_ascii_digit());
    let hex = word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    let capital = word.bytes().any(|byte| byte.is_ascii_uppercase());
    let numbered = ends_in_digits(word) && capital && DIGITS_MIN < word.len() - letters.len();
    is_random(word)
        && !hex
        && !is_file(word)
        && !is_identifier(word)
        && !word.contains(['/', '\\', '=', '(', '[', '{', ':'])
        && (is_strong(word) || is_mixed(word, 2) || is_woven(word) || is_made_up(word) || numbered)
}

/// Returns whether a word is a program's name with a version: `Chrome120`, `1Password7`.
pub(super) fn is_versioned(word: &str) -> bool {
    /// Maximum digits of the version; four are a year.
    const DIGITS_MAX: usize = 3;
    let digit = |it: char| it.is_ascii_digit();
    let start = word.strip_prefix(digit).unwrap_or(word);
    let name = start.trim_end_matches(digit);
    let small = name.strip_prefix(|it: char| it.is_ascii_uppercase()).unwrap_or_default();
    (1..=DIGITS_MAX).contains(&(start.len() - name.len()))
        && 1 < small.len()
        && small.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Returns whether a word is a name with a capital and then a number, a version or a year: `PostgreSQL15`, `Debian-12`.
pub(super) fn is_release(word: &str) -> bool {
    let digits = |it: char| it.is_ascii_digit() || it == '.';
    let name = word.trim_end_matches(digits);
    let letters = name.trim_end_matches(['-', '_', '.']);
    (1..5).contains(&(word.len() - name.len()))
        && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
        && (letters.starts_with(|it: char| it.is_ascii_uppercase())
            || 2 < count(letters, u8::is_ascii_uppercase))
        || is_versioned(word)
}

/// Returns whether a word is the name of a column, a type or a constant, or describes a format: `kunde_id2`, `UINT16_BE`,
/// `utf8-encoded`.
pub(super) fn is_identifier(word: &str) -> bool {
    /// Maximum digits besides those of a type.
    const DIGITS_MAX: usize = 2;
    const ALGORITHMS: [&str; 6] = ["aes", "rsa", "sha", "hmac", "utf", "des"];
    const UNITS: [&str; 5] = ["bit", "byte", "bytes", "chars", "long"];
    let lower = word.to_ascii_lowercase();
    let is_type = |part: &str| words::TYPES.contains(part);
    let is_known = |part: &str| is_type(part) || ALGORITHMS.contains(&part);
    let is_plain = |part: &str| {
        let is_number = part.len() < 4 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number
            || is_known(&part.to_ascii_lowercase())
            || part.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let (before, last) = word.rsplit_once('-').unwrap_or_default();
    let describes = last.ends_with("ed") || UNITS.contains(&last);
    let is_format = |part: &str| is_known(part) || UNITS.contains(&part);
    let is_sized =
        word.starts_with(|it: char| it.is_ascii_digit()) && lower.split('-').any(is_format);
    let is_format = is_sized || lower.split('-').any(is_known);
    if describes && before.split('-').all(is_plain) && is_format {
        return true;
    }
    let letters = |part: &str| part.trim_end_matches(|it: char| it.is_ascii_digit()).to_owned();
    let others = || lower.split('_').filter(|part| !is_type(part));
    let digits: usize = others().map(|part| part.len() - letters(part).len()).sum();
    let noun = lower.rsplit('_').map(letters).find(|part| !part.is_empty());
    let is_column = noun.is_some_and(|noun| words::COLUMNS.contains(&*noun));
    let cased = [u8::is_ascii_uppercase, u8::is_ascii_lowercase];
    is_name(word)
        && word.contains('_')
        && digits <= DIGITS_MAX
        && others().all(|part| letters(part).bytes().all(|byte| byte.is_ascii_alphabetic()))
        && (lower.split('_').any(is_type) || is_column)
        && cased.iter().any(|case| count(word, case) == 0)
}

/// Returns whether a word with non-ASCII letters and digits is probably a secret: `Ключ-42собака`.
pub(super) fn is_foreign(word: &str) -> bool {
    /// Letters of alphabets come before; later scripts do not divide words.
    const ALPHABETS_END: char = '\u{700}';
    let count = |fits: fn(char) -> bool| word.chars().filter(|it| fits(*it)).count();
    let digits = count(|it| it.is_ascii_digit());
    !word.is_ascii()
        && 6 <= word.chars().count()
        && 3 <= count(char::is_alphabetic)
        && (2 <= digits || 1 == digits && 0 < count(|it| "!#$%^&*+_.".contains(it)))
        && word
            .chars()
            .all(|it| it.is_alphanumeric() && it < ALPHABETS_END || "-_.!#$%^&*?@~+".contains(it))
}

/// Returns whether a word that a sentence gives as a password has what names and versions lack: letters of both cases or
/// marks of two kinds, besides digits: `Lucertola.94-mare`.
pub(super) fn is_marked(word: &str) -> bool {
    let marks: HashSet<u8> = word.bytes().filter(|byte| byte.is_ascii_punctuation()).collect();
    let has = |fits: fn(&u8) -> bool| 0 < count(word, fits);
    let cases = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let is_version =
        |three: &[u8]| matches!(three, [a, b'.', b] if a.is_ascii_digit() && b.is_ascii_digit());
    let strange = marks.iter().any(|mark| b"!#$%^&*+~?".contains(mark));
    8 <= word.len()
        && is_of(word, b"-_.!#$%^&*?@~+:=,")
        && has(u8::is_ascii_alphabetic)
        && !marks.is_empty()
        && (has(u8::is_ascii_digit) && (cases || 1 < marks.len()) || cases && strange)
        && !word.split(|it: char| !it.is_ascii_alphanumeric()).any(is_technical)
        && !is_file(word)
        && !is_identifier(word)
        && !is_code(&word.replace('.', "-"))
        && !is_reference(word)
        && !word.as_bytes().windows(3).any(is_version)
        && (!word.contains('.') || 1 < count(word, u8::is_ascii_digit) || strange)
        && !words::PLAIN.contains(word.to_ascii_lowercase().as_str())
}

/// Returns whether a word has the shape of a password: likely to be a secret, or with what names lack.
pub(super) fn is_distinct(word: &str) -> bool {
    // `backup_2024-05-01`
    let is_date = |part: &[u8]| matches!(part, [b'2', b'0', a, b, b'-', c, d] if [a, b, c, d].iter().all(|it| it.is_ascii_digit()));
    (is_likely(word) || is_marked(word)) && !word.as_bytes().windows(7).any(is_date)
}

/// Returns whether a word may denote an issue or a line of a file: `annalist#12`, `auth.md#L12`, `auth.md:12`.
pub(super) fn is_place(word: &str) -> bool {
    word.split_once(['#', ':']).is_some_and(|(name, place)| {
        is_of(name, b"_-.") && (name.contains('.') || is_number(place))
    })
}

/// Returns whether a part of a word is an algorithm, a standard or a type, perhaps with a size.
fn is_technical(part: &str) -> bool {
    let lower = part.to_ascii_lowercase();
    let name = lower.trim_end_matches(|it: char| it.is_ascii_digit());
    words::TYPES.contains(lower.as_str())
        || ["aes", "sha", "rsa", "hmac", "utf", "iso", "rfc", "v"].contains(&name)
}

/// Returns whether a word may be the name of a file: it ends in a dot and a few small letters.
fn is_file(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(_, end)| {
        (1..=4).contains(&end.len()) && end.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

/// Returns whether a word is a passphrase: three or more plain words with hyphens between.
pub(super) fn is_phrase(word: &str) -> bool {
    let is_word = |part: &str| {
        (3..=9).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_lowercase())
            && ![&words::PLAIN, &words::GRAMMAR, &words::ABOUT].iter().any(|it| it.contains(part))
    };
    2 <= word.matches('-').count() && word.split('-').all(is_word)
}

/// Returns whether a quoted text may be a passphrase: several plain words that form no sentence.
pub(super) fn is_words(text: &str) -> bool {
    let is_plain = |word: &str| 2 < word.len() && word.bytes().all(|it| it.is_ascii_alphabetic());
    (3..=10).contains(&text.split(' ').count()) && text.split(' ').all(is_plain)
}

/// Returns whether all characters of a word are the same, as in a sample of a token.
pub(super) fn is_filler(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| Some(byte) == word.bytes().next())
}

/// Returns whether a line of one word may be a password that the line before announces: letters and
/// digits, but not the digest of a commit or a file.
pub(super) fn is_answer(word: &str) -> bool {
    let hex = word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    let digest = hex && (word.len() < 16 || matches!(word.len(), 40 | 64));
    let capital = usize::from(0 < count(word, u8::is_ascii_uppercase));
    let has_slash = word.contains('+') || word.ends_with('=');
    let slash: &[u8] = if has_slash { b"/" } else { b"" };
    8 <= word.len()
        && 2 <= count(word, u8::is_ascii_digit) + capital
        && !digest
        && is_of(word, &[&b"-_+=.!#$%^*?@&"[..], slash].concat())
        && is_random(word)
}

/// Returns whether a command may have printed this word as a secret.
pub(super) fn is_printed(word: &str) -> bool {
    is_answer(word) || is_hex_key(word) || is_key(word)
}

/// Returns whether a word in a sentence is a password of letters and a few digits: `hunter2`.
pub(super) fn is_numbered(word: &str) -> bool {
    let letters = word.trim_end_matches(|it: char| it.is_ascii_digit());
    letters.len() < word.len()
        && 4 < letters.len()
        && letters.bytes().all(|byte| byte.is_ascii_lowercase())
        && is_random(word)
        && !is_no_secret(letters, "")
        && !names_algorithm(word)
}

/// Returns whether a word is of small letters and digits as people choose keys: `tumbleweed99`, `plum-tiger-204`.
pub(super) fn is_plain_key(word: &str) -> bool {
    is_numbered(word) && 2 <= count(word, u8::is_ascii_digit)
        || is_numbered_phrase(word)
        || is_divided(word)
}

/// Returns whether `word` is a type and `behind` starts with its parameters, as in
/// `Option<String>`. Otherwise `<` starts a tag or a placeholder.
pub(super) fn is_generic(word: &str, behind: &str) -> bool {
    let last = word.rsplit([':', '.']).next().unwrap_or(word);
    let plain = !last.bytes().any(|byte| byte.is_ascii_digit());
    let capital = last.starts_with(|c: char| c.is_ascii_uppercase());
    let name: &[u8] = behind.strip_prefix('<').unwrap_or_default().as_bytes();
    let letters =
        name.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_').count();
    let placeholder = 1 < letters && name.get(letters) == Some(&b'>');
    is_name(word) && !placeholder && (plain || capital) && !behind.starts_with("</")
}

/// Paths and flags of letters only, and variables that hold a key: `OPENAI_API_KEY`.
static NO_SECRETS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let part = "(?:KEY|TOKEN|SECRET|PASSWORD|PASS|PWD|CREDENTIALS)";
    let place = r"(?:\./|\.\./|~/|--)[A-Za-z./~_-]*";
    let variable = format!("(?:[A-Z0-9]*_)+{part}(?:_[A-Z0-9]*)*|{part}(?:_[A-Z0-9]*)+");
    Regex::new(&format!(r"\A(?:{place}|{variable})\z")).ok()
});

/// Returns whether a quoted value under a secret's name is no secret: a word about it, a sentence,
/// a variable name, a path.
pub(super) fn is_no_secret(value: &str, name: &str) -> bool {
    let word = value.trim();
    is_reference(value)
        || words::ABOUT.contains(word.to_ascii_lowercase().as_str())
        // `required|string|min:8`
        || word.split_once('|').is_some_and(|(first, _)| words::ABOUT.contains(first))
        || word.eq_ignore_ascii_case(name)
        || is_name_of_secret(word)
        || NO_SECRETS.as_ref().is_some_and(|forms| forms.is_match(word))
        || is_prompt(word)
        || is_sentence(value)
}

/// `Passwort bestätigen`, as a translation of a form has it: few words that start with a capital, one for a secret.
fn is_name_of_secret(text: &str) -> bool {
    /// Maximum words of a label.
    const WORDS_MAX: usize = 6;
    let text = text.trim_start_matches('¿');
    let parts = |it: char| " -'’:().,?!…".contains(it);
    // `MySecretPassword` is no label.
    let is_word = |word: &str| {
        word.chars().all(char::is_alphabetic) && {
            let inner = word.chars().skip(1).collect::<String>();
            inner.chars().all(char::is_lowercase) || inner.chars().all(char::is_uppercase)
        }
    };
    words::names_secret(&text.to_lowercase())
        || text.starts_with(char::is_uppercase)
            && text.split(parts).all(is_word)
            && text.split(parts).count() <= WORDS_MAX
            && text.split(parts).any(|it| words::kind(it).is_some())
}

/// Returns whether a text may be the translation of a label: several words and no passphrase, or a name of a secret.
pub(super) fn is_message(text: &str) -> bool {
    /// Minimum words of a passphrase.
    const PHRASE_MIN: usize = 4;
    let words = text.split_whitespace().count();
    let is_phrase =
        PHRASE_MIN <= words && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ');
    let letters = text.chars().filter(|it| it.is_alphabetic());
    let is_plain = !text.bytes().any(|byte| byte.is_ascii_digit());
    is_plain
        && (1 < words && !is_phrase
            || words::names_secret(&text.to_lowercase())
            || letters.into_iter().all(|it| '\u{3000}' < it))
}

/// `Password:`, as a program asks for it.
fn is_prompt(word: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphabetic() || letter == ' ';
    word.strip_suffix(':').is_some_and(|name| name.chars().all(is_letter))
}

/// At least three words with enough function words among them; a passphrase has few.
fn is_sentence(value: &str) -> bool {
    let plain = |word: &str| {
        word.trim_matches(|letter: char| letter.is_ascii_punctuation()).to_ascii_lowercase()
    };
    let words = value.split_whitespace().count();
    let is_grammar = |word: &&str| words::GRAMMAR.contains(plain(word).as_str());
    let grammar = value.split_whitespace().filter(is_grammar).count();
    (3 <= words && 2 <= grammar) || (4 <= words && 1 <= grammar)
}

/// Returns whether an unquoted word looks like a secret rather than code or prose: it mixes digits
/// or marks with letters and is not a name, type, path, version or date.
pub(super) fn is_random(word: &str) -> bool {
    let letters = 0 < count(word, u8::is_ascii_alphabetic);
    let digits = 0 < count(word, u8::is_ascii_digit);
    let marks = 0 < count(word, |byte| b"!@#$%^&*+=?~".contains(byte));
    let mixed = letters && (digits || marks) || digits && marks;
    6 <= word.len()
        && (mixed || !word.is_ascii() && digits || is_scrambled(word))
        && !is_code(word)
        && !is_reference(word)
}

/// Returns whether a word looks like a key: long, undivided, digits among letters, and not a UUID.
pub(super) fn is_key(word: &str) -> bool {
    /// Minimum length of a key.
    const KEY_MIN: usize = 20;
    let id = word.matches('-').count() == 4 && word.len() == 36;
    let has_both =
        3 <= count(word, u8::is_ascii_digit) && 3 <= count(word, u8::is_ascii_alphabetic);
    let mixed = has_both || is_scrambled(word);
    KEY_MIN <= word.len() && mixed && !id && is_of(word, b"_-+/=~.") && !is_code(word)
}

/// Returns whether capitals stand among the letters of a word as in no name, at least twice: `fEsLYHuuazakACKt`.
fn is_uneven(word: &str) -> bool {
    const LETTERS_MIN: usize = 10;
    let (upper, lower) = (u8::is_ascii_uppercase, u8::is_ascii_lowercase);
    let odd = |three: &&[u8]| matches!(three, [a, b, c] if lower(a) && upper(b) && upper(c) || upper(a) && lower(b) && upper(c));
    LETTERS_MIN <= word.len()
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && 2 <= word.as_bytes().windows(3).filter(odd).count()
}

/// Returns whether a line of one word may be the rest of a key: long, with digits among letters, and no name.
pub(super) fn is_tail(word: &str) -> bool {
    const TAIL_MIN: usize = 16;
    TAIL_MIN <= word.len()
        && (is_of(word, b"+/=_") || is_woven(word))
        && is_random(word)
        && 1 < count(word, u8::is_ascii_digit)
        && !is_identifier(word)
        && !word.starts_with('/')
}

/// Returns whether a word consists of words with marks between, or of one in small letters.
pub(super) fn is_name_of_words(word: &str) -> bool {
    let is_word = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase());
    word.split(['_', '-', '/']).all(is_word)
        || word
            .split(['_', '-', '/'])
            .all(|part| part.bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// True for a long word in one case, or in two cases that alternate more often than in camel case.
fn is_scrambled(word: &str) -> bool {
    /// Longer than words in prose.
    const LETTERS_MIN: usize = 20;
    let bytes = word.as_bytes();
    let rises =
        |pair: &&[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let rises = bytes.windows(2).filter(rises).count();
    let one_case =
        bytes.iter().all(u8::is_ascii_lowercase) || bytes.iter().all(u8::is_ascii_uppercase);
    let two_cases = bytes.iter().all(u8::is_ascii_alphanumeric) && bytes.len() <= rises * 5;
    LETTERS_MIN <= bytes.len() && (one_case || two_cases)
}

/// Returns whether a word looks like an expression, a path or a type.
pub(super) fn is_code(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let operator = ["::", "->", "=>", "==", "!=", "&&", "||", "://", "()"]
        .iter()
        .any(|op| word.trim_end_matches('=').contains(op));
    let typed = word.starts_with('&') || word.starts_with('*') || word.starts_with('@');
    let path = word.starts_with('/') || word.starts_with("./") || word.starts_with('~');
    operator
        || (typed && is_name(word.get(1..).unwrap_or_default()))
        || (path && !word.contains(['+', '=']))
        || words::TYPES.contains(lower.as_str())
        || (is_name(word) && holds_secret_name(word))
        || (word.contains('.') && is_path_of_names(word))
}

/// Returns whether a word may be a callee or an indexed variable.
pub(super) fn is_code_or_name(word: &str) -> bool {
    is_name(word)
        || is_code(word)
        || word.split(['.', ':']).all(|part| is_name(part) || part.is_empty())
}

/// True for an identifier: letters, digits and underscores, not starting with a digit.
pub(super) fn is_name(word: &str) -> bool {
    let first = word.bytes().next();
    let starts = first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts && is_of(word, b"_")
}

/// Returns whether a part of the name says that it holds a secret: `new_password2`, `apiToken1`.
fn holds_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut parts =
        lower.split('_').map(|part| part.trim_end_matches(|letter: char| letter.is_ascii_digit()));
    // Digits within a part stand in passwords, so the word must be a whole one: `oauth2Token`.
    let is_mixed = parts.clone().any(|part| part.contains(|letter: char| letter.is_ascii_digit()));
    let is_whole = |(at, word): (usize, &str)| {
        let (before, rest) = name.as_bytes().split_at(at);
        let begins = rest.first().is_some_and(u8::is_ascii_uppercase)
            || before.last().is_none_or(|byte| *byte == b'_');
        let after = rest.get(word.len());
        begins && after.is_none_or(|byte| *byte == b'_' || byte.is_ascii_uppercase())
    };
    let long = ["password", "token", "secret", "credential"];
    let mut found = long.iter().flat_map(|word| lower.match_indices(word));
    parts.any(|part| words::HOLDERS.contains(part)) || found.any(|it| !is_mixed || is_whole(it))
}

/// `self.next_token2`, `config.v1.key`: dotted names with few digits.
fn is_path_of_names(word: &str) -> bool {
    /// Maximum digits in dotted names; a token with dots has more.
    const DIGITS_MAX: usize = 3;
    let digits = count(word, u8::is_ascii_digit);
    let host = word.split(':').next().unwrap_or_default();
    digits <= DIGITS_MAX && host.split('.').all(|part| is_name(part) || part.is_empty())
        || word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// True for digits and their separators.
pub(super) fn is_number(word: &str) -> bool {
    let starts = word.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || byte == b'-');
    starts && word.bytes().all(|byte| byte.is_ascii_digit() || b"._,-+:".contains(&byte))
}

/// True for a function word, or a word that describes a secret.
pub(super) fn is_about(word: &str) -> bool {
    let more = [
        "to", "and", "or", "is", "for", "the", "flag", "option", "via", "set", "if", "when", "was",
        "that",
    ];
    let lower = word.to_ascii_lowercase();
    words::ABOUT.contains(lower.as_str())
        || words::GRAMMAR.contains(lower.as_str())
        || more.contains(&lower.as_str())
        || words::names_secret(&lower)
}

/// Returns whether a single word after such a name may be the secret. After a colon, a capitalised
/// word is a type.
pub(super) fn may_be_secret(word: &str, colon: bool) -> bool {
    let bytes = word.as_bytes();
    let digits = bytes.iter().any(u8::is_ascii_digit);
    let encoded = ENCODED_MIN <= bytes.len();
    let marks: &[u8] = if encoded { b"_-.!@#$%^&*=~?/+" } else { b"_-.!@#$%^&*=~?" };
    let starts = bytes.first().is_some_and(u8::is_ascii_alphanumeric);
    let is_type = colon && bytes.first().is_some_and(u8::is_ascii_uppercase);
    let joined = bytes.windows(2).any(|two| match two {
        [before, after] => {
            before.is_ascii_lowercase() && (after.is_ascii_uppercase() || *after == b'_')
        }
        _ => false,
    });
    if !word.is_ascii() {
        let fits = |it: char| it.is_alphanumeric() && it < '\u{700}' || "_-.!#$%^&*?".contains(it);
        return 5 <= word.chars().count()
            && word.starts_with(char::is_alphanumeric)
            && word.chars().all(fits)
            && !words::ABOUT.contains(word.to_lowercase().as_str())
            && !words::names_secret(&word.to_lowercase())
            && !is_state(word);
    }
    PLAIN_MIN <= bytes.len()
        && starts
        && is_of(word, marks)
        && (digits || encoded || !(is_type || joined) || is_uneven(word))
        && !is_about(word)
        && !words::PLAIN.contains(word.to_ascii_lowercase().as_str())
}
