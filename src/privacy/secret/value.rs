//! Classification of values: a secret, or a reference, placeholder, type or sentence.

use super::scan::PLACEHOLDER;
use super::words;

const NOTHING: [&str; 8] = ["null", "none", "nil", "true", "false", "undefined", "empty", "unset"];
/// Characters used to blank out a value.
const FILLING: &[char] = &['*', '.', '-', '_', '#', '?', '\u{2022}', '\u{2026}', ' '];
/// Maximum bytes of a secret of which only the end is shown: `...ab12`.
const SHOWN_MAX: usize = 8;
/// Prefixes of references to secret stores.
const STORE_PREFIXES: [&str; 10] = [
    "@Microsoft.", "op://", "vault:", "vault://", "env:", "env.", "file:", "file://", "arn:aws:",
    "urn:",
];

/// Minimum length of a plain secret.
const PLAIN_MIN: usize = 3;
/// Minimum length at which `/` and `+` are base64 rather than arithmetic.
const ENCODED_MIN: usize = 20;

/// Returns whether the value refers to a secret, is already masked, or is empty.
pub(super) fn is_reference(value: &str) -> bool {
    let value = value.trim();
    let enclosed = |open: char, close: char| value.starts_with(open) && value.ends_with(close);
    value.trim_matches(FILLING).is_empty()
        || (3 <= value.len() && value.trim_matches(['x', 'X']).is_empty())
        || (value.starts_with("...") && value.len() <= SHOWN_MAX)
        || is_masked(value)
        || NOTHING.iter().any(|word| value.eq_ignore_ascii_case(word))
        || enclosed('<', '>')
        || enclosed('[', ']')
        || enclosed('{', '}')
        || enclosed('(', ')')
        || (enclosed('%', '%') && is_path(value.trim_matches('%')))
        || matches!(value, "%s" | "%v" | "%q" | "%d" | "{}" | "%r" | "%@")
        || ["${", "{{", "$(", "#{", PLACEHOLDER].iter().any(|mark| value.contains(mark))
        || (value.starts_with('$') && is_variable(value))
        || STORE_PREFIXES.iter().any(|keeper| value.starts_with(keeper))
        || value.to_ascii_lowercase().starts_with("redacted")
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

/// Returns whether a word is distinctive: it has letters, digits and marks, and is not part of a
/// URL, a path or an expression.
pub(super) fn is_strong(word: &str) -> bool {
    /// Minimum length of such a word.
    const STRONG_MIN: usize = 8;
    let count = |fits: fn(u8) -> bool| word.bytes().filter(|byte| fits(*byte)).count();
    let is_mark = |byte: u8| b"!#$%?".contains(&byte);
    let is_escape =
        |two: &[u8]| matches!(two, [b'%', b'2'] | [b'$', b'a'..=b'z' | b'A'..=b'Z' | b'_']);
    STRONG_MIN <= word.len()
        && 3 <= count(|byte| byte.is_ascii_alphabetic())
        && 1 <= count(|byte| byte.is_ascii_digit())
        && (1..=4).contains(&count(is_mark))
        && word.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || is_mark(byte) || b"_-.+~^&*@".contains(&byte)
        })
        && word.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && !word.as_bytes().windows(2).any(is_escape)
}

/// Returns whether a word in a sentence about a password can hardly be anything else: letters of
/// both cases and at least `digits_min` digits, or letters and digits that alternate more than in
/// `Sha256Digest`, and no name with underscores.
pub(super) fn is_mixed(word: &str, digits_min: usize) -> bool {
    let class = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let has = |fits: fn(&u8) -> bool| word.bytes().filter(fits).count();
    let turns = word.as_bytes().windows(2).filter(|two| class(two[0]) != class(two[1])).count();
    let (digits, irregular) =
        (has(u8::is_ascii_digit), 10 <= word.len() && 2 * word.len() <= 5 * turns);
    8 <= word.len()
        && 0 < digits
        && (digits_min <= digits || irregular && is_made_up(word))
        && 0 < has(u8::is_ascii_uppercase)
        && 0 < has(u8::is_ascii_lowercase)
        && word.bytes().all(|byte| {
            let joins = byte == b'_' && irregular && digits_min <= digits;
            byte.is_ascii_alphanumeric() || b"-^*&@~+".contains(&byte) || joins
        })
        && is_random(word)
        && !names_algorithm(word)
}

/// Returns whether no name is built like this word: it has digits and, twice or in letters of both
/// cases, a small letter after a digit (`dei5quaweIs`) or a case for a single letter (`xPpr`).
pub(super) fn is_made_up(word: &str) -> bool {
    let bytes = word.as_bytes();
    let has = |fits: fn(&u8) -> bool| bytes.iter().any(fits);
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
    let odd = bytes.windows(3).filter(is_odd).count();
    let cases = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let plain = bytes.iter().all(u8::is_ascii_alphanumeric);
    let hex = bytes.iter().all(u8::is_ascii_hexdigit);
    8 <= word.len()
        && has(u8::is_ascii_digit)
        && (0 < odd && cases || 1 < odd && plain && !hex)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_^*&@~+!#%?".contains(byte))
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

/// Returns whether a word is letters around a digit, as few words are that a sentence calls a
/// password: `jamai4ivaji`.
pub(super) fn is_divided(word: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic();
    let divides =
        |three: &[u8]| matches!(three, [a, b, c] if letter(*a) && b.is_ascii_digit() && letter(*c));
    8 <= word.len()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && word.as_bytes().windows(3).any(divides)
        && !is_hex_key(word)
        && is_random(word)
        && !names_algorithm(word)
}

/// Returns whether a word ends with the name of an algorithm or a type.
fn names_algorithm(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    words::TYPES.iter().any(|it| 3 < it.len() && lower.ends_with(it))
}

/// Returns whether a word stands for a user or a password in a sample of an address.
pub(super) fn is_sample(word: &str) -> bool {
    let names = ["user", "username", "login", "pass", "password", "passwd", "pwd", "pw", "secret"];
    names.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns whether a word is a key in hexadecimal digits.
pub(super) fn is_hex_key(word: &str) -> bool {
    /// Minimum length of such a key.
    const HEX_MIN: usize = 32;
    HEX_MIN <= word.len() && word.bytes().all(|byte| byte.is_ascii_hexdigit())
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

/// Returns whether a line of one word may be a password that the line before announces: letters and
/// digits, but not the digest of a commit or a file.
pub(super) fn is_answer(word: &str) -> bool {
    let hex = word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    let digest = hex && (word.len() < 16 || matches!(word.len(), 40 | 64));
    let has = |fits: fn(&u8) -> bool| word.bytes().filter(fits).count();
    let digits = has(u8::is_ascii_digit) + usize::from(0 < has(u8::is_ascii_uppercase));
    let slash = word.contains('+') || word.ends_with('=');
    let fits = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-_+=.!#$%^*?@&".contains(&byte) || slash && byte == b'/'
    };
    8 <= word.len() && 2 <= digits && !digest && word.bytes().all(fits) && is_random(word)
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
    is_name(word) && !placeholder && (plain || capital)
}

/// At least half of it is stars: already masked.
fn is_masked(value: &str) -> bool {
    value.contains("***") && value.len() <= 2 * value.matches('*').count()
}

/// `$NAME`, `$env:NAME`, `$config.token`, `$user->token`; but not the hash `$2b$…`.
fn is_variable(value: &str) -> bool {
    let name = value.trim_start_matches('$');
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts && is_path(name)
}

/// True for names and the separators between them.
fn is_path(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:.->[]'".contains(&byte))
}

/// Returns whether a quoted value under a secret's name is no secret: a word about it, a sentence,
/// a variable name, a path.
pub(super) fn is_no_secret(value: &str, name: &str) -> bool {
    let word = value.trim();
    is_reference(value)
        || words::ABOUT.contains(word.to_ascii_lowercase().as_str())
        || word.eq_ignore_ascii_case(name)
        || is_name_of_variable(word)
        || is_prompt(word)
        || is_template(value)
        || is_place(word)
        || is_sentence(value)
}

/// `Password:`, as a program asks for it.
fn is_prompt(word: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphabetic() || letter == ' ';
    word.strip_suffix(':').is_some_and(|name| name.chars().all(is_letter))
}

/// A path or flag of letters only.
fn is_place(word: &str) -> bool {
    let starts = ["./", "../", "~/", "--"].iter().any(|start| word.starts_with(start));
    starts && word.bytes().all(|byte| byte.is_ascii_alphabetic() || b"./~_-".contains(&byte))
}

/// `OPENAI_API_KEY`: the variable that holds the key.
fn is_name_of_variable(word: &str) -> bool {
    let capitals =
        word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit());
    let parts = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASS", "PWD", "CREDENTIALS"];
    capitals
        && word.contains('_')
        && parts.iter().any(|part| word.split('_').any(|word| word == *part))
}

/// `{name}`, with only blanks and formatting around it.
fn is_template(value: &str) -> bool {
    let Some((head, rest)) = value.split_once('{') else { return false };
    let Some((name, tail)) = rest.split_once('}') else { return false };
    let is_name =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:[]()!?".contains(&byte));
    is_name && head.trim().is_empty() && tail.trim().is_empty()
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
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let marks = word.bytes().filter(|byte| b"!@#$%^&*+=?~".contains(byte)).count();
    let others = !word.is_ascii();
    let mixed = 0 < letters && (0 < digits || 0 < marks) || (0 < digits && 0 < marks);
    let long = 6 <= word.len();
    long && (mixed || others && 0 < digits || is_scrambled(word))
        && !is_code(word)
        && !is_reference(word)
}

/// Returns whether a word looks like a key: long, undivided, digits among letters, and not a UUID.
pub(super) fn is_key(word: &str) -> bool {
    /// Minimum length of a key.
    const KEY_MIN: usize = 20;
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let id = word.matches('-').count() == 4 && word.len() == 36;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+/=~.".contains(&byte);
    let mixed = 3 <= digits && 3 <= letters || is_scrambled(word);
    KEY_MIN <= word.len() && mixed && !id && word.bytes().all(fits) && !is_code(word)
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
        || (is_name(word) && holds_secret_name(&lower))
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
    starts && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns whether a part of the name says that it holds a secret: `new_password2`, `apiToken1`.
fn holds_secret_name(lower: &str) -> bool {
    let parts =
        lower.split('_').map(|part| part.trim_end_matches(|letter: char| letter.is_ascii_digit()));
    let long = ["password", "token", "secret", "credential"];
    parts.into_iter().any(|part| words::HOLDERS.contains(part))
        || long.iter().any(|word| lower.contains(word))
}

/// `self.next_token2`, `config.v1.key`: dotted names with few digits.
fn is_path_of_names(word: &str) -> bool {
    /// Maximum digits in dotted names; a token with dots has more.
    const DIGITS_MAX: usize = 3;
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
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
}

/// Returns whether a single word after such a name may be the secret. After a colon, a capitalised
/// word is a type.
pub(super) fn may_be_secret(word: &str, colon: bool) -> bool {
    let bytes = word.as_bytes();
    let digits = bytes.iter().any(u8::is_ascii_digit);
    let encoded = ENCODED_MIN <= bytes.len();
    let fits = |byte: &u8| {
        let mark = b"_-.!@#$%^&*=~?".contains(byte) || (encoded && b"/+".contains(byte));
        byte.is_ascii_alphanumeric() || mark
    };
    let starts = bytes.first().is_some_and(u8::is_ascii_alphanumeric);
    let is_type = colon && bytes.first().is_some_and(u8::is_ascii_uppercase);
    let joined = bytes.windows(2).any(|two| match two {
        [before, after] => {
            before.is_ascii_lowercase() && (after.is_ascii_uppercase() || *after == b'_')
        }
        _ => false,
    });
    PLAIN_MIN <= bytes.len()
        && starts
        && bytes.iter().all(fits)
        && (digits || encoded || !(is_type || joined))
        && !is_about(word)
        && !words::PLAIN.contains(word.to_ascii_lowercase().as_str())
}
